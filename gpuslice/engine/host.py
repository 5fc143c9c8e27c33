"""The executor for NumPy arrays: compiled kernels where they were built, NumPy's own assignment elsewhere."""

import ctypes
import os
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from pathlib import Path

from gpuslice.engine import generic
from gpuslice.engine.packing import HOST, Packed, pack
from gpuslice.engine.plan import MAX_CHANNELS, VECTOR, Launch, Part, plan
from gpuslice.engine.trace import Launch as Record
from gpuslice.engine.trace import is_tracing, record_launch
from gpuslice.engine.view import View

_KINDS = {"rows": 0, "planes": 1, "rearranged": 2, "tiles": 3}
# Above this a target is not read again before it leaves the caches, so stores may as well go past them.
_STREAM_BYTES = 1 << 23
# Starting a thread costs as much as copying some hundred kilobytes.
_BYTES_A_THREAD = 1 << 22
# Below this NumPy is done before a plan is looked up; above the second bound its plain copy is as fast as ours.
_SMALL_BYTES = 1 << 12
_ALIGNMENT = 64


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
            return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def copy(pairs: Sequence[tuple[View, View]]) -> None:
    """Copy each source view to its target view, which has the same shape."""
    by_size: dict[int, list[tuple[View, View]]] = {}
    for pair in pairs:
        source, target = pair
        if LIBRARY is None or source.dtype != target.dtype or source.dtype.hasobject or not source.dtype.itemsize:
            generic.copy([pair], "numpy", "copyto")
        else:
            by_size.setdefault(source.dtype.itemsize, []).append(pair)
    for itemsize, members in by_size.items():
        _copy(members, itemsize)


def _copy(pairs: Sequence[tuple[View, View]], itemsize: int) -> None:
    if len(pairs) == 1 and prod(pairs[0][0].shape) * itemsize < _SMALL_BYTES:
        return generic.copy(pairs, "numpy", "copyto")
    sources, targets, geometry = [], [], []
    for source, target in pairs:
        address, source_strides = _place(source)
        sources.append(address)
        address, target_strides = _place(target)
        targets.append(address)
        geometry.append((source_strides, target_strides, source.region.shape))
    planned = _planned(
        itemsize, tuple(geometry), _alignment(sources), tuple([target % _ALIGNMENT for target in targets])
    )
    if planned is None:
        return generic.copy(pairs, "numpy", "copyto")
    for packed, size in planned:
        launch = packed.launch
        workers = min(threads(), size // _BYTES_A_THREAD) if size >= 2 * _BYTES_A_THREAD else 1
        LIBRARY.gpuslice_copy(  # type: ignore[union-attr]
            _KINDS[launch.kind], launch.width, launch.variant, packed.fill(sources, targets), packed.blocks, workers
        )
        if is_tracing():
            kernel = f"{launch.kind}<{launch.width}, {launch.variant}>"
            record_launch(Record("host", kernel, VECTOR, packed.blocks, size, size))
    return None


def _place(view: View) -> tuple[int, tuple[int, ...]]:
    """Give the address of a view's first item and its byte strides."""
    array, region = view.array, view.region
    address: int = array.__array_interface__["data"][0]
    strides = array.strides
    for first, stride in zip(region.first, strides, strict=True):
        address += first * stride
    return address, tuple([stride * step for stride, step in zip(strides, region.step, strict=True)])


def _alignment(sources: Sequence[int]) -> tuple[int, ...]:
    """Give what a plan depends on of the sources: where each lies in a cache line, and how far apart a few do."""
    if len(sources) > MAX_CHANNELS:
        return tuple([source % _ALIGNMENT for source in sources])
    base = sources[0] - sources[0] % _ALIGNMENT
    return tuple([source - base for source in sources])


Geometry = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@lru_cache(maxsize=512)
def _planned(
    itemsize: int, geometry: tuple[Geometry, ...], sources: tuple[int, ...], targets: tuple[int, ...]
) -> list[tuple[Packed, int]] | None:
    """Plan and pack; addresses are reduced to what matters of them."""
    parts = [
        Part(source, strides, target, target_strides, shape)
        for source, target, (strides, target_strides, shape) in zip(sources, targets, geometry, strict=True)
    ]
    launches = plan(parts, itemsize)
    if launches is None:
        return None
    planned = []
    for launch in launches:
        size = sum(prod(parts[i].shape) for i in launch.parts) * itemsize
        planned += [(packed, size) for packed in pack(launch, HOST, stream=_streams(launch, parts, size))]
    return planned


def _streams(launch: Launch, parts: Sequence[Part], size: int) -> bool:
    """Tell whether stores should go past the caches: into large targets, by runs that keep whole vectors aligned."""
    if size < _STREAM_BYTES or launch.kind == "tiles":
        return False
    run = min(launch.axes[-1].counts) * launch.item_bytes
    aligned = len({parts[i].target % 16 for i in launch.parts}) == 1
    return aligned and (run % 16 == 0 or run >= 1024)
