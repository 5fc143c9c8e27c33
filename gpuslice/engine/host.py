"""The executor for NumPy arrays: compiled kernels if they were built, else NumPy's own assignment."""

import os
import reprlib
import warnings
from collections import abc
from math import gcd

import numpy as np

from gpuslice.dtypes import DType
from gpuslice.engine import generic, host_library
from gpuslice.engine.kernel_executor import KernelExecutor, Pairs, Plan, ReadyLaunch, Runner
from gpuslice.engine.plan import HOST_64, HOST_TUNING, VECTOR_BYTES, LaunchPlan, PackedLaunch, Part, pack
from gpuslice.engine.plan.kernel_sources import STACK_KINDS
from gpuslice.engine.trace import is_tracing
from gpuslice.libraries import Array
from gpuslice.overlap import are_apart, is_apart

# Larger targets do not stay in the caches until they are read again, so stores bypass the caches.
_STREAM_BYTES = 1 << 23
# Single bytes of pixels are turned so slowly that stores through the caches keep up for longer.
_STREAM_TURNED_BYTES = 1 << 26
# Shorter runs that end inside a vector are faster through the caches.
_STREAM_RUN = 512
# Starting a thread costs as much as copying some hundred kilobytes, and what it copies leaves other caches.
_BYTES_PER_THREAD = 1 << 21
_MOST_THREADS = 256


def threads() -> int:
    """Return how many threads a large copy may use.

    GPUSLICE_NUM_THREADS, else OMP_NUM_THREADS, else the number of processors. A warning says if the first is no
    positive int. The second is not ours, and OpenMP has more forms of it.
    """
    given = os.environ.get("GPUSLICE_NUM_THREADS", "")
    number = _positive(given) or _positive(os.environ.get("OMP_NUM_THREADS", ""))
    if given and not _positive(given):
        text = f"GPUSLICE_NUM_THREADS must be a positive int; got {reprlib.repr(given)}"
        warnings.warn(f"{text}; it is ignored", RuntimeWarning, stacklevel=2)
    if number:
        return min(number, _MOST_THREADS)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _positive(text: str) -> int | None:
    """Return the first int of a variable such as "4" or "4,2"; None if it is no positive int."""
    digits = text.partition(",")[0].strip()
    try:
        return int(digits) or None if digits.isdecimal() else None
    except ValueError:  # thousands of digits
        return None


class HostExecutor(KernelExecutor):
    """Launches kernels on the CPU, split over threads if a copy is large."""

    name = "host"
    fallback: tuple[str, str] = ("numpy", "copyto")

    def runs_on(self, array: Array) -> bool:
        """Return True: what kernels cannot do NumPy does."""
        return True

    def allocate(
        self, shapes: abc.Sequence[tuple[int, ...]], dtype: DType, beside: Array, *, one_block: bool = False
    ) -> list[Array]:
        """Return new C-contiguous arrays, each with an allocation of its own."""
        return [np.empty(shape, dtype) for shape in shapes]

    def lie_apart(self, array: Array, outs: abc.Sequence[Array]) -> bool:
        """Return True if an array and contiguous outputs surely share no memory; False if not sure."""
        return is_apart(array, outs[0]) if len(outs) == 1 else are_apart(array, outs)

    def copy(self, pairs: Pairs) -> None:
        """Copy each source view to its target view, which has the same shape."""
        if host_library.LIBRARY is None:
            generic.copy(pairs, *self.fallback)
        else:
            super().copy(pairs)

    def pack(self, launch: LaunchPlan, parts: abc.Sequence[Part], size: int) -> list[PackedLaunch]:
        """Return the parameters of a launch."""
        packed = pack(launch, HOST_64, HOST_TUNING, stream=_streams(launch, parts, size))
        return [PackedLaunch(*one[:-1], host_library.compiled(one, size)) for one in packed]

    def kernel(self, packed: PackedLaunch) -> int:
        """Return the number of a kernel in the list that the library was built from."""
        return packed.kernel_number

    def launch(self, kernel: int, ready: ReadyLaunch) -> None:
        """Run a kernel and wait for it."""
        host_library.copy(kernel, ready.parameters, ready.packed.blocks, _workers(ready.size))

    def runner(self, plan: Plan) -> Runner | None:
        """Return what runs a plan with addresses alone: one launch on one thread, if known calls are compiled."""
        planned, left = plan
        if left or len(planned) != 1:
            return None
        packed, size = planned[0]
        return None if packed.compiled is None or size >= 2 * _BYTES_PER_THREAD else packed.compiled.run

    def run_planned(
        self,
        planned: abc.Sequence[tuple[PackedLaunch, int]],
        sources: abc.Sequence[int],
        targets: abc.Sequence[int],
        left: Pairs,
        array: Array,
    ) -> None:
        """Run what was planned. Most calls are one launch: nothing is made around it, and a small one shows that."""
        if left or len(planned) != 1 or is_tracing():
            super().run_planned(planned, sources, targets, left, array)
            return
        packed, size = planned[0]
        if packed.compiled is not None:
            packed.compiled.run(sources, targets, _workers(size))
            return
        host_library.copy(packed.kernel_number, packed.fill(sources, targets), packed.blocks, _workers(size))


HOST_EXECUTOR = HostExecutor()


def _workers(size: int) -> int:
    """Return how many threads share a launch that moves so many bytes."""
    return min(threads(), size // _BYTES_PER_THREAD) if size >= 2 * _BYTES_PER_THREAD else 1


def _streams(launch: LaunchPlan, parts: abc.Sequence[Part], size: int) -> bool:
    """Return whether stores should bypass the caches: into large targets, by runs of whole vectors."""
    turns_bytes = launch.kind == "pixel_tiles" and launch.width == 1
    if size < (_STREAM_TURNED_BYTES if turns_bytes else _STREAM_BYTES):
        return False
    if launch.kind in ("planes", "pixel_tiles", *STACK_KINDS):
        return True  # what is written at once begins at a cache line of its own
    places = [parts[i].target + launch.target_offset for i in launch.parts[: launch.part_count]]
    # Items that never end where a vector does would all be written as the edges of runs are.
    if any(place % gcd(launch.item_bytes, VECTOR_BYTES) for place in places):
        return False
    run = min(launch.axes[-1].counts) * launch.item_bytes
    if launch.part_count > 1 and launch.item_bytes < VECTOR_BYTES < abs(launch.axes[-1].source):
        return False  # parts take turns, and each writes a few items of its line
    if launch.flat:
        # A cache line that a run fills in part would be written twice, and slowly.
        return run >= _STREAM_RUN or run % VECTOR_BYTES == 0
    places += [axis.target for axis in launch.axes[:-1]]
    if any(place % VECTOR_BYTES for place in places):
        return False
    return launch.kind == "tiles" or (run >= _STREAM_RUN and run % VECTOR_BYTES == 0)
