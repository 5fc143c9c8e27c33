"""The executor for NumPy arrays: compiled kernels if they were built, else NumPy's own assignment."""

import ctypes
import os
from collections import abc
from pathlib import Path

from gpuslice.engine import generic
from gpuslice.engine.kernel_executor import KernelExecutor, Pairs, ReadyLaunch
from gpuslice.engine.packing import HOST, Packed, pack
from gpuslice.engine.plan import VECTOR, Launch, Part

# Larger targets do not stay in the caches until they are read again, so stores bypass the caches.
_STREAM_BYTES = 1 << 23
# Shorter runs that leave a vector unfilled are put together faster in the caches.
_STREAM_RUN = 512
# Starting a thread costs as much as copying some hundred kilobytes.
_BYTES_PER_THREAD = 1 << 22
_MOST_THREADS = 256
_KINDS = {"rows": 0, "planes": 1, "rearranged": 2, "tiles": 3}


def _library() -> ctypes.CDLL | None:
    """Load the kernels; None where they were not built or the processor lacks what they were built for."""
    path = Path(__file__).parent.parent / "_kernels.so"
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return None
    library.gpuslice_instruction_set.restype = ctypes.c_char_p
    if not library.gpuslice_instruction_set():
        return None
    library.gpuslice_copy.argtypes = [
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_ulonglong,
        ctypes.c_int,
    ]
    library.gpuslice_copy.restype = None
    return library


LIBRARY = _library()


def instruction_set() -> str:
    """Name the instruction set of the kernels; empty where there are none."""
    return LIBRARY.gpuslice_instruction_set().decode() if LIBRARY is not None else ""


def threads() -> int:
    """Return how many threads a large copy may use.

    GPUSLICE_NUM_THREADS, else OMP_NUM_THREADS, else the number of processors.
    """
    for name in ("GPUSLICE_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "").partition(",")[0]
        if value.isdecimal() and int(value) > 0:
            return min(int(value), _MOST_THREADS)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class HostExecutor(KernelExecutor):
    """Launches kernels on the CPU, split over threads if a copy is large."""

    name = "host"
    fallback: tuple[str, str] = ("numpy", "copyto")

    def copy(self, pairs: Pairs) -> None:
        """Copy each source view to its target view, which has the same shape."""
        if LIBRARY is None:
            generic.copy(pairs, *self.fallback)
        else:
            super().copy(pairs)

    def pack(self, launch: Launch, parts: abc.Sequence[Part], size: int) -> list[Packed]:
        """Return the parameters of a launch."""
        return pack(launch, HOST, stream=_streams(launch, parts, size))

    def kernel(self, packed: Packed) -> Launch:
        """Return the number of a kernel in the list that the library was built from."""
        return packed.launch

    def launch(self, kernel: Launch, ready: ReadyLaunch) -> None:
        """Run a kernel and wait for it."""
        workers = min(threads(), ready.size // _BYTES_PER_THREAD) if ready.size >= 2 * _BYTES_PER_THREAD else 1
        LIBRARY.gpuslice_copy(  # type: ignore[union-attr]
            _KINDS[kernel.kind], kernel.width, kernel.variant, ready.parameters, ready.packed.blocks, workers
        )


HOST_EXECUTOR = HostExecutor()


def _streams(launch: Launch, parts: abc.Sequence[Part], size: int) -> bool:
    """Return whether stores should bypass the caches: into large targets, by runs of whole vectors."""
    # Planes write to several places in turns, which is slower past the caches.
    if size < _STREAM_BYTES or launch.kind == "planes":
        return False
    places = [parts[i].target + launch.target_offset for i in launch.parts]
    run = min(launch.axes[-1].counts) * launch.item_bytes
    if launch.flat:
        # A cache line that a run fills in part would be written twice, and slowly.
        return run >= _STREAM_RUN or run % VECTOR == 0
    places += [axis.target for axis in launch.axes[:-1]]
    return (launch.kind == "tiles" or run % VECTOR == 0) and not any(place % VECTOR for place in places)
