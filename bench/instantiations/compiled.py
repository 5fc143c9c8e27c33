"""Compile instantiations in several processes and put down what each came to."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.instantiations.nvrtc import Nvrtc, disassembled, package_file
from bench.instantiations.sass import measured
from gpuslice.engine.plan import instantiation

LIBRARIES = {"13": "cu13/lib/libnvrtc.so.13", "12": "cuda_nvrtc/lib/libnvrtc.so.12"}
PACKAGES = {"13": "nvidia-cuda-nvrtc", "12": "nvidia-cuda-nvrtc-cu12"}
NVDISASM = "cu13/bin/nvdisasm"
CHUNK = 16  # instantiations a program: enough to share the front end's work, few enough to see them go by

Key = tuple[str, int, int, int, int]  # kind, width, variant, bits of the index, capacity
_PTXAS = re.compile(
    r"Compiling entry function '(\w+)'.*?"
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads.*?"
    r"Used (\d+) registers([^\n]*)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Compiled:
    """What one instantiation came to on one architecture; the numbers are None where it did not compile.

    Attributes
    ----------
    cuda : str
        Major version of CUDA whose NVRTC compiled it.
    arch, kind, width, variant, index_bits, capacity
        What was compiled.
    registers, stack, spill_stores, spill_loads, shared : int or None
        Registers of a thread, and bytes, as ptxas says.
    load_bits, store_bits, main_store_bits : int or None
        The widest load and store of global memory, and the widest store of the main path.
    instructions, loop_instructions : int or None
        Of the whole kernel and of its main loops; see sass.py.
    best_instructions, best_vectors, worst_instructions, worst_vectors : int or None
        Of the shortest round through the best and the worst of the main loops, and the vectors that it stores.
    error : str or None
        Why it did not compile.
    """

    cuda: str
    arch: str
    kind: str
    width: int
    variant: int
    index_bits: int
    capacity: int
    registers: int | None = None
    stack: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    shared: int | None = None
    load_bits: int | None = None
    store_bits: int | None = None
    main_store_bits: int | None = None
    instructions: int | None = None
    loop_instructions: int | None = None
    best_instructions: int | None = None
    best_vectors: int | None = None
    worst_instructions: int | None = None
    worst_vectors: int | None = None
    error: str | None = None

    @property
    def best(self) -> float | None:
        """Instructions of a thread for 16 bytes stored, in the best main loop."""
        return self.best_instructions / self.best_vectors if self.best_instructions and self.best_vectors else None

    @property
    def worst(self) -> float | None:
        """Instructions of a thread for 16 bytes stored, in the worst main loop."""
        return self.worst_instructions / self.worst_vectors if self.worst_instructions and self.worst_vectors else None

    def broken(self) -> str | None:
        """Say what is not as it should be."""
        if self.error is not None:
            return self.error
        if self.stack or self.spill_stores or self.spill_loads:
            return f"{self.stack} bytes of stack, {self.spill_stores} stored and {self.spill_loads} loaded for spills"
        whole = self.kind != "rows" or self.variant != 0
        wanted = 128 if whole else 8 * self.width  # gathers read items
        if (self.load_bits or 0) < wanted or self.main_store_bits != 128:
            return f"loads {self.load_bits} bits at most and stores {self.main_store_bits}, not {wanted} and 128"
        return None


def compiled(jobs: Sequence[tuple[str, str]], keys: Sequence[Key], processes: int) -> Iterator[list[Compiled]]:
    """Compile all keys by every job, a major version of CUDA and an architecture, some at a time."""
    tasks = [(cuda, arch, keys[i : i + CHUNK]) for cuda, arch in jobs for i in range(0, len(keys), CHUNK)]
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(_chunk, tasks)


@cache
def _nvrtc(cuda: str) -> Nvrtc:
    return Nvrtc(package_file(LIBRARIES[cuda]))


def _chunk(task: tuple[str, str, Sequence[Key]]) -> list[Compiled]:
    cuda, arch, keys = task
    try:
        cubin, log, lowered = _nvrtc(cuda).compile([instantiation(*key) for key in keys], arch)
    except ValueError as error:
        if len(keys) > 1:  # which one is it?
            return [result for key in keys for result in _chunk((cuda, arch, [key]))]
        return [Compiled(cuda, arch, *keys[0], error=str(error))]
    used = _usage(log)
    code = dict(disassembled(cubin, _nvdisasm()))
    results = []
    for key in keys:
        name = lowered[instantiation(*key)]
        kind, _, variant, *_ = key
        gathers = kind == "tiles" or variant == 0
        results.append(Compiled(cuda, arch, *key, **used[name], **measured(code[name], gathers)))
    return results


@cache
def _nvdisasm() -> Path:
    return package_file(NVDISASM)


def _usage(log: str) -> dict[str, dict[str, int]]:
    used = {}
    for name, stack, stores, loads, registers, more in _PTXAS.findall(log):
        shared = re.search(r"(\d+) bytes smem", more)
        used[name] = {
            "registers": int(registers),
            "stack": int(stack),
            "spill_stores": int(stores),
            "spill_loads": int(loads),
            "shared": int(shared[1]) if shared else 0,
        }
    return used
