"""``gpuslice warm-up``: compile CUDA kernels, with a bar that shows how many are ready."""

import sys
import time
from collections import abc

from gpuslice import devices
from gpuslice.cli.text import show
from gpuslice.engine import warm_up

_BAR = 40  # characters


def warm_up_command(widths: abc.Sequence[int] | None) -> None:
    """Compile the kernels of some widths, by default of all, and print how many there are."""
    devices.check("CUDA")
    began, total = time.perf_counter(), 0

    def progress(done: int, count: int) -> None:
        nonlocal total
        total = count
        show_bar(done, count)

    warm_up(widths=widths, progress=progress)
    show(f"{total} kernels are compiled, {time.perf_counter() - began:.1f} s")


def show_bar(done: int, total: int) -> None:
    """Show on standard error how much is done, in place of what was shown before; nothing if it is no terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        bar = "#" * (_BAR * done // total)
        end = "\n" if done == total else ""
        print(f"\r[{bar:<{_BAR}}] {done}/{total} kernels", end=end, file=sys.stderr, flush=True)
