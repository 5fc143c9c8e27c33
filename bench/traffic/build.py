"""Compile the kernels that launches ask for, so that they count."""

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gpuslice.engine.packing import instantiation

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
DEVICE = ROOT / "tests" / "cuda_on_cpu" / "device"
# Two places in the code stay two.
_FLAGS = ["-std=c++20", "-O2", "-fPIC", "-shared", "-w", "-fno-crossjumping", "-fno-tree-tail-merge"]
# What tells the counter which of a thread's vectors it is at: loops of kernels/cuda.cuh, and what they become.
_ROUNDS = {
    "(int i = 0; i < batch<Body>(); ++i)": "(int i = traffic::round = 0; i < batch<Body>(); traffic::round = ++i)",
    "; i < count; i += kThreads)": "; traffic::round = i / kThreads, i < count; i += kThreads)",
}

Key = tuple[str, int, int, int, int]  # kind, width, variant, bits of the index, capacity


def build(folder: Path, keys: Sequence[Key]) -> ctypes.CDLL:
    """Compile into a folder; the library numbers kernels as the keys come."""
    for path in (ROOT / "kernels").glob("*.cu*"):
        shutil.copy(path, folder)
    text = (folder / "cuda.cuh").read_text()
    for loop, marked in _ROUNDS.items():
        if loop not in text:
            raise RuntimeError(f"kernels/cuda.cuh has no loop {loop}")
        text = text.replace(loop, marked)
    (folder / "cuda.cuh").write_text(text)
    (folder / "kernels.inc").write_text("".join(map(_entry, keys)))
    sources = [HERE / "count.cpp", DEVICE / "block.cpp"]
    library = folder / "count.so"
    subprocess.run(["g++", *_FLAGS, f"-I{DEVICE}", f"-I{folder}", *sources, "-o", library], check=True)
    return ctypes.CDLL(str(library))


def _entry(key: Key) -> str:
    *_, bits, capacity = key
    index = {32: "unsigned", 64: "unsigned long long"}[bits]
    return f"traffic::call<{instantiation(*key)}, gpuslice::Parameters<{index}, {capacity}>>,\n"
