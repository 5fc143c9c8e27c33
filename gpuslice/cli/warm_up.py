"""``gpuslice warm-up``: compile CUDA kernels, and show how many are ready."""

import time
from collections import abc

from gpuslice import devices
from gpuslice.cli.progress import Progress
from gpuslice.cli.text import show
from gpuslice.engine import warm_up


def warm_up_command(widths: abc.Sequence[int] | None) -> None:
    """Compile the kernels of some widths, by default of all, and print how many there are."""
    devices.check("CUDA")
    began = time.perf_counter()
    with Progress("warm-up", 0, "kernels") as progress:

        def advance(done: int, total: int) -> None:
            progress.total = total
            progress.add(done - progress.done)

        warm_up(widths=widths, progress=advance)
    show(f"{progress.total} kernels are compiled, {time.perf_counter() - began:.1f} s")
