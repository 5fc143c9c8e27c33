"""The executor for NumPy arrays: compiled kernels where they were built, NumPy's own assignment elsewhere."""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from gpuslice.arrays import NUMPY, Array, address
from gpuslice.engine import generic
from gpuslice.engine.packing import HOST, Packed, pack
from gpuslice.engine.plan import VECTOR, Part
from gpuslice.engine.plan import Launch as Planned
from gpuslice.engine.prepare import Pairs, by_itemsize, prepare
from gpuslice.engine.trace import Launch, is_tracing, record_allocation, record_launch
from gpuslice.engine.view import Joined, View

_KINDS = {"rows": 0, "planes": 1, "rearranged": 2, "tiles": 3}
# Above this a target is not read again before it leaves the caches, so stores may as well go past them.
_STREAM_BYTES = 1 << 23
# Shorter runs that leave a vector unfilled are put together faster in the caches.
_STREAM_RUN = 512
# Starting a thread costs as much as copying some hundred kilobytes.
_BYTES_A_THREAD = 1 << 22
_MOST_THREADS = 256
# Below these NumPy is done before a plan is looked up. Contiguous bytes it copies as fast as can be: they weigh less.
_SMALL_BYTES = 1 << 15
_LESS = 1 / 8
_FEW_PARTS = 8


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
    """Give how many threads a large copy may use: GPUSLICE_NUM_THREADS, else OMP_NUM_THREADS, else one a processor."""
    for name in ("GPUSLICE_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "").partition(",")[0]
        if value.isdecimal() and int(value) > 0:
            return min(int(value), _MOST_THREADS)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def small_copies(values: Sequence[View | Joined]) -> list[Array] | None:
    """Give NumPy's own copies of a few small views of NumPy arrays; None where the kernels are quicker."""
    if len(values) > _FEW_PARTS:
        return None
    arrays = []
    weight = 0.0  # summed up here, where a function would take as long as all else
    for value in values:
        if value.xp is not NUMPY or type(value) is Joined:
            return None
        array = value.array[generic.index(value.region)]  # type: ignore[union-attr]
        weight += array.nbytes * _LESS if array.flags.c_contiguous else array.nbytes
        arrays.append(array)
    if weight >= _SMALL_BYTES:
        return None
    copies = [array.copy() for array in arrays]
    if is_tracing():
        for copy in copies:
            record_allocation(copy.nbytes)
            if copy.size:
                record_launch(Launch("numpy", "copy", None, None, copy.nbytes, copy.nbytes))
    return copies


def copy(pairs: Pairs) -> None:
    """Copy each source view to its target view, which has the same shape."""
    if len(pairs) <= _FEW_PARTS and _weights(pairs) < _SMALL_BYTES:
        return generic.copy(pairs, "numpy", "copyto")
    taken: list[tuple[View, View]] = []
    left: list[tuple[View, View]] = []
    for pair in pairs:
        (taken if _takes(*pair) else left).append(pair)
    generic.copy(left, "numpy", "copyto")
    for size, members in by_itemsize(taken):
        _copy(members, size)
    return None


def _weight(array: Array) -> float:
    return float(array.nbytes * _LESS if array.flags.c_contiguous else array.nbytes)


def _weights(pairs: Pairs) -> float:
    arrays = [(s.array[generic.index(s.region)], t.array[generic.index(t.region)]) for s, t in pairs]
    return sum([max(_weight(source), _weight(target)) for source, target in arrays])


def _takes(source: View, target: View) -> bool:
    """Tell whether kernels may move a view: the same bits, none of them references."""
    dtype, written = source.array.dtype, target.array.dtype
    return LIBRARY is not None and (dtype is written or dtype == written) and not dtype.hasobject and dtype.itemsize > 0


def _copy(pairs: Pairs, size: int) -> None:
    prepared, left = prepare(pairs, size, address, _pack)
    generic.copy(left, "numpy", "copyto")
    for packed, parameters, moved in prepared:
        launch = packed.launch
        workers = min(threads(), moved // _BYTES_A_THREAD) if moved >= 2 * _BYTES_A_THREAD else 1
        LIBRARY.gpuslice_copy(  # type: ignore[union-attr]
            _KINDS[launch.kind], launch.width, launch.variant, parameters, packed.blocks, workers
        )
        if is_tracing():
            record_launch(Launch("host", launch.name, VECTOR, packed.blocks, moved, moved))


def _pack(launch: Planned, parts: Sequence[Part], moved: int) -> list[Packed]:
    return pack(launch, HOST, stream=_streams(launch, parts, moved))


def _streams(launch: Planned, parts: Sequence[Part], moved: int) -> bool:
    """Tell whether stores should go past the caches: into large targets, by runs of whole vectors."""
    # What a run leaves of a cache line would be written twice, and slowly.
    # Planes write to several places in turns, which goes slower past the caches.
    if moved < _STREAM_BYTES or launch.kind == "planes":
        return False
    places = [parts[i].target + launch.target_offset for i in launch.parts]
    run = min(launch.axes[-1].counts) * launch.item_bytes
    if launch.flat:
        return run >= _STREAM_RUN or run % VECTOR == 0
    places += [axis.target for axis in launch.axes[:-1]]
    return (launch.kind == "tiles" or run % VECTOR == 0) and not any(place % VECTOR for place in places)
