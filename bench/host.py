"""Host kernels beside np.copyto and NumPy's own strided copies: ``python bench/host.py [MEBIBYTES]``.

Prints a Markdown table. Rates are shares of np.copyto's of as many contiguous bytes in the same round; targets are
allocated before, one thread. Medians of interleaved rounds.
"""

import os
import platform
import sys
import time
from pathlib import Path
from statistics import median

os.environ["GPUSLICE_NUM_THREADS"] = "1"

import numpy as np

import gpuslice as gs
from gpuslice.engine import host

ROUNDS = 7
DTYPES = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}


def cases(source, target, width):
    """Give (name, views, targets) of one item width over the same memory."""
    x, d = source.view(DTYPES[width]), target.view(DTYPES[width])
    rows, out = x.reshape(-1, 1024), d.reshape(-1, 1024)
    yield "contiguous", [x], [d]
    yield "reversed", [x[::-1]], [d]
    for size in (64, 256, 1024, 4096, 65536):
        yield f"reversed rows of {size} B", [x.reshape(-1, size // width)[:, ::-1]], [d.reshape(-1, size // width)]
    yield "reversed outer axis", [rows[::-1]], [out]
    yield "both axes reversed", [rows[::-1, ::-1]], [out]
    for step in (2, -2, -3, 7):
        yield f"step {step}", [x[::step]], [d[: x[::step].size]]
    crop = rows[1:-1, 1:-2]
    yield "misaligned crop", [crop], [d[: crop.size].reshape(crop.shape)]
    yield "split 4 outer", np.split(x, 4), np.split(d, 4)
    for count in (4, 64):
        targets = [part.reshape(-1, 1024 // count) for part in np.split(d, count)]
        yield f"split {count} inner", np.split(rows, count, axis=1), targets
    side = int(x.size**0.5) // 64 * 64
    yield "transposed", [x[: side * side].reshape(side, side).T], [d[: side * side].reshape(side, side)]
    if width == 1:
        pixels = x[: x.size // 3072 * 3072].reshape(-1, 1024, 3)
        flat = d[: pixels.size]
        yield "HWC planes", [pixels[..., i] for i in range(3)], [p.reshape(-1, 1024) for p in np.split(flat, 3)]
        yield "HWC channels reversed", [pixels[..., ::-1]], [flat.reshape(pixels.shape)]
        yield "HWC mirrored", [pixels[:, ::-1]], [flat.reshape(pixels.shape)]


def seconds(function):
    """Time one call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def shares(views, targets, source, target):
    """Give the rates of gpuslice and of NumPy as shares of np.copyto's, medians of interleaved rounds."""
    size = sum(part.nbytes for part in targets)
    ours, numpys = [], []
    for _ in range(ROUNDS):
        roof = seconds(lambda: np.copyto(target[:size], source[:size]))
        ours.append(roof / seconds(lambda: gs.contiguous(list(views), out=list(targets))))
        numpys.append(roof / seconds(lambda: [np.copyto(t, v) for t, v in zip(targets, views, strict=True)]))
    return median(ours), median(numpys)


def processor():
    """Name the processor and how many there are."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.machine()
    return f"{model}, {os.cpu_count()} processors"


def main(mebibytes):
    """Print the table."""
    source = np.random.default_rng(0).integers(0, 256, mebibytes << 20, np.uint8)
    target = np.zeros_like(source)
    table = {}
    for width in DTYPES:
        for name, views, targets in cases(source, target, width):
            table.setdefault(name, {})[width] = shares(views, targets, source, target)
    built = host.instruction_set() or "not built"
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, kernels {built}"
    print(f"{time.strftime('%Y-%m-%d')}, {processor()}, {versions}, {mebibytes} MiB")
    print("gpuslice / NumPy; 1.00 is np.copyto\n")
    print("| case |" + "".join(f" {width} B |" for width in DTYPES))
    print("|---|" + "---:|" * len(DTYPES))
    for name, row in table.items():
        cells = (f" {row[w][0]:.2f} / {row[w][1]:.2f} |" if w in row else " |" for w in DTYPES)
        print(f"| {name} |" + "".join(cells))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 128)
