"""``python -m bench tune``: small and middling copies by NumPy and by the kernels, what is chosen, and first calls."""

import argparse
import math
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import gpuslice as gs
from bench import first_calls
from bench.machine import machine
from gpuslice.engine import choice

# Views of an array of about so many bytes. The kinds differ in their runs and in how many views there are.
CASES: dict[str, Callable[[int], list[Any]]] = {
    "contiguous": lambda size: [np.ones(size + 64, np.uint8)[64:]],
    "runs of 512 B": lambda size: [np.ones((max(1, size // 512), 1024), np.uint8)[:, :512]],
    "runs of 64 B": lambda size: [np.ones((max(1, size // 64), 128), np.uint8)[:, :64]],
    "runs of 6 B": lambda size: [np.ones((max(1, size // 6), 8), np.uint8)[:, :6]],
    "reversed, 1 B": lambda size: [np.ones(size, np.uint8)[::-1]],
    "reversed, 4 B": lambda size: [np.ones(size // 4, np.float32)[::-1]],
    "step 2, 1 B": lambda size: [np.ones(2 * size, np.uint8)[::2]],
    "step 2, 4 B": lambda size: [np.ones(size // 2, np.float32)[::2]],
    "transposed, 4 B": lambda size: [np.ones((max(1, size // 256), 64), np.float32).T],
    "transposed, 16 B": lambda size: [np.ones((max(1, size // 1024), 64), np.complex128).T],
    "4 columns, 1 B": lambda size: np.split(np.ones((max(1, size // 4), 4), np.uint8), 4, axis=1),
    "4 columns, 4 B": lambda size: np.split(np.ones((max(1, size // 16), 4), np.float32), 4, axis=1),
    "4 parts of rows": lambda size: np.split(np.ones((max(1, size // 1024), 1024), np.uint8), 4, axis=1),
    "32 parts of rows": lambda size: np.split(np.ones((max(1, size // 4096), 4096), np.uint8), 32, axis=1),
}
SIZES = [1 << power for power in range(12, 23)]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--case", action="append", help="only cases whose name has this; may be repeated")
    parser.add_argument("--output", metavar="FILE", help="a Markdown file for the table, too")
    parser.add_argument("--repeats", type=int, default=60, help="how often each is timed; the least time counts")


def main(given: argparse.Namespace) -> None:
    """Print a row per case and size: microseconds by NumPy and by the kernels, what is chosen, and what that costs."""
    facts = machine()
    lines = [
        "# The choice between NumPy and the kernels\n",
        f"{facts['date']}, {facts['processor']}, Python {facts['python']}, NumPy {np.__version__}, one thread.",
        "Microseconds, the outputs given.",
        f"\n```text\n{choice.COSTS}\n",
        f"{'case':18}{'bytes':>9}{'NumPy':>10}{'kernels':>10}  {'chosen':9}{'of the best':>11}",
    ]
    print("\n".join(lines))
    worst = 1.0
    for name, make in CASES.items():
        if given.case and not any(text in name for text in given.case):
            continue
        for size in SIZES:
            line, ratio = _row(name, size, make(size), given.repeats)
            worst = max(worst, ratio)
            lines.append(line)
            print(line, flush=True)
    lines.append(f"```\n\nThe worst choice takes {worst:.2f} times the better one.")
    print(lines[-1])
    if not given.case:
        lines += ["\n## First calls\n", "Microseconds, new outputs.\n\n```text", *first_calls.lines(), "```"]
        print("\n".join(lines[-len(first_calls.CASES) - 4 :]))
    if given.output:
        Path(given.output).write_text("\n".join(lines) + "\n")


def _row(name: str, size: int, views: list[Any], repeats: int) -> tuple[str, float]:
    """Return a line of the table, and how many times as long as the better one the chosen one takes."""
    by_numpy, by_kernels = (_microseconds(views, faster, repeats) for faster in (True, False))
    chosen = choice.kernels_save(views[0].itemsize, [(v.shape, v.strides) for v in views], len(views)) < 0
    # A microsecond more is not counted: it is within the noise of small calls.
    ratio = max(1.0, ((by_numpy if chosen else by_kernels) - 1) / min(by_numpy, by_kernels))
    times = f"{by_numpy:10.2f}{by_kernels:10.2f}"
    return f"{name:18}{size:9}{times}  {'NumPy' if chosen else 'kernels':9}{ratio:11.2f}", ratio


def _microseconds(views: list[Any], numpy_is_faster: bool, repeats: int) -> float:
    """Return the least time of a copy of views with one of the two, the outputs given."""
    outs = [np.empty(view.shape, view.dtype) for view in views]
    with _chosen(numpy_is_faster):
        if len(views) == 1:
            once: Callable[[], Any] = lambda: gs.contiguous(views[0], out=outs[0])  # noqa: E731
        else:
            whole, count = views[0].base, len(views)
            once = lambda: gs.split(whole, num_outputs=count, axis=1, out=outs)  # noqa: E731
        once()
        number = max(1, int(2e-4 / timeit.timeit(once, number=1)))
        return min(timeit.repeat(once, number=number, repeat=repeats)) / number * 1e6


@contextmanager
def _chosen(numpy_is_faster: bool) -> Iterator[None]:
    """Have one of the two copy everything."""
    real = choice.kernels_save
    gs.clear_caches()
    choice.kernels_save = lambda itemsize, layouts, count: -math.inf if numpy_is_faster else math.inf
    try:
        yield
    finally:
        choice.kernels_save = real
        gs.clear_caches()
