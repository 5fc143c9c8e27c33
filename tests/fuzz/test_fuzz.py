"""A quick share of the fuzz, and proof that it would see a broken kernel. ``nox -s fuzz`` runs more."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from build import KERNELS

HERE = Path(__file__).parent
COUNT = 3000

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("g++") is None, reason="the sanitized kernels are built by g++ on Linux"
)


def sanitized():
    """Give the environment in which Python can load sanitized libraries."""
    names = ("libasan.so", "libubsan.so")
    paths = [subprocess.check_output(["g++", f"-print-file-name={name}"], text=True).strip() for name in names]
    if not all(Path(path).is_absolute() for path in paths):
        pytest.skip("g++ has no sanitizers here")
    return os.environ | {"LD_PRELOAD": ":".join(paths), "ASAN_OPTIONS": "detect_leaks=0"}


def run(folder, *more):
    """Run the fuzz on the libraries of a folder."""
    command = [sys.executable, str(HERE / "fuzz.py"), str(folder), "--seed", "1", "--count", str(COUNT), *more]
    return subprocess.run(command, env=sanitized(), capture_output=True, text=True, check=False)


def test_kernels_copy_every_byte_and_touch_no_other(tmp_path):
    subprocess.run([sys.executable, str(HERE / "build.py"), str(tmp_path)], check=True)
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    launches = json.loads(done.stdout)["launches"]
    assert {"rows", "tiles", "planes", "rearranged", "sparse"} <= set(launches)


# What a slip would look like: the file, the text, and what it became.
BROKEN = {
    "a tile that is not cut at its part's end": (
        "geometry.cuh",
        "tile.begin + items < count ? tile.begin + items : count",
        "tile.begin + items",
    ),
    "an item off by one": ("permute.cuh", "(taken * Channels + channel) * Width", "(taken * Channels + (channel + 1) % Channels) * Width"),
    "a vector stored where none is aligned": (
        "cuda.cuh",
        "return reinterpret_cast<unsigned long long>(target) % kVectorBytes == 0;",
        "return true;",
    ),
    "a load beside its run": (
        "cuda.cuh",
        "return begin <= span.bytes && begin + (vectors + (offset != 0)) * kVectorBytes <= span.bytes;",
        "return true;",
    ),
    "a batch beyond the end of its run": ("cuda.cuh", "if (first.room <= kLast) return false;", ""),
    "two runs spliced beside where they meet": ("cuda.cuh", "before * Body::kWidth)", "before * Body::kWidth / 2)"),
    "a vector of a whole tile in another's place": (
        "cuda.cuh",
        "scatter<Width>(target(threadIdx.x + i * kThreads), vector[i]);",
        "scatter<Width>(target(threadIdx.x + i * kThreads), vector[0]);",
    ),
    "a missing barrier": ("tiles.cuh", "Executor::barrier();", ""),
}  # fmt: skip


@pytest.mark.parametrize("slip", BROKEN)
def test_a_broken_kernel_is_seen(slip, tmp_path):
    file, text, slipped = BROKEN[slip]
    shutil.copytree(KERNELS, tmp_path / "kernels")
    source = (tmp_path / "kernels" / file).read_text()
    assert source.count(text) == 1
    (tmp_path / "kernels" / file).write_text(source.replace(text, slipped))
    build = [sys.executable, str(HERE / "build.py"), str(tmp_path), "--few", "--kernels", str(tmp_path / "kernels")]
    subprocess.run(build, check=True)
    assert run(tmp_path, "--few").returncode != 0
