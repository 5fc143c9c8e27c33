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
    parts = [Part(*_place(source), *_place(target), source.shape) for source, target in pairs]
    launches = _planned(_key(parts), itemsize)
    if launches is None:
        return generic.copy(pairs, "numpy", "copyto")
    sources, targets = [part.source for part in parts], [part.target for part in parts]
    limit = threads()
    for packed, size in launches:
        launch = packed.launch
        parameters = packed.fill(sources, targets)
        workers = min(limit, max(1, size // _BYTES_A_THREAD))
        LIBRARY.gpuslice_copy(  # type: ignore[union-attr]
            _KINDS[launch.kind], launch.width, launch.variant, parameters, packed.blocks, workers
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


def _key(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Give the parts with addresses moved to where only what a plan depends on is left of them."""
    base = parts[0].source - parts[0].source % 64 if len(parts) <= MAX_CHANNELS else None
    return tuple(
        part._replace(source=part.source % 64 if base is None else part.source - base, target=part.target % 64)
        for part in parts
    )


@lru_cache(maxsize=512)
def _planned(parts: tuple[Part, ...], itemsize: int) -> list[tuple[Packed, int]] | None:
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
