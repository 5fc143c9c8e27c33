"""The copy engine: any number of views become dense arrays. It knows strides and items, and has never heard of ONNX."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from math import prod
from types import ModuleType
from typing import TypeAlias

import array_api_compat
import numpy as np

from gpuslice.arrays import NUMPY, Array, is_immutable, itemsize
from gpuslice.engine import generic, host
from gpuslice.engine.trace import Launch, Trace, is_tracing, record_allocation, trace
from gpuslice.engine.view import Joined, View

__all__ = [
    "Joined",
    "Launch",
    "Trace",
    "View",
    "copy_into",
    "dense",
    "dense_in_one_block",
    "gives_views",
    "read",
    "trace",
]

# CuPy's pool rounds to it, so that outputs in one block are aligned like outputs apart.
_BLOCK_ALIGNMENT = 512

Executor: TypeAlias = Callable[[list[tuple[View, View]]], None]

read = generic.read
gives_views = generic.gives_views


def dense(values: Sequence[View | Joined]) -> list[Array]:
    """Copy each value to a fresh, C-contiguous array of its own library, dtype and device.

    Parameters
    ----------
    values : sequence of View or Joined
    """
    copies = host.small_copies(values)
    if copies is not None:
        return copies
    # An empty array that is written, never asarray(copy=True), which keeps Fortran order.
    targets = [_allocate(value) for value in values]
    copy_into(values, targets)
    return [read(value) if target is None else target for value, target in zip(values, targets, strict=True)]


def dense_in_one_block(views: Sequence[View]) -> list[Array]:
    """Do as `dense` with views of one array, but take all results from one allocation."""
    if not views or is_immutable(views[0].xp):
        return dense(views)
    targets = _allocate_block(views)
    copy_into(views, targets)
    return targets


def copy_into(values: Sequence[View | Joined], targets: Sequence[Array | None]) -> None:
    """Copy each value into the target of its shape, where there is one."""
    executors: dict[Executor, list[tuple[View, View]]] = {}
    for value, target in zip(values, targets, strict=True):
        if target is not None:
            executors.setdefault(_executor(value.xp), []).extend(value.pairs(target))
    for execute, pairs in executors.items():
        execute(pairs)


@cache
def _executor(xp: ModuleType) -> Executor:
    """Choose who copies between arrays of a library."""
    if xp is NUMPY:
        return host.copy
    if array_api_compat.is_cupy_namespace(xp):
        from gpuslice.engine import cuda

        return cuda.copy
    return generic.copy


def _allocate(value: View | Joined) -> Array | None:
    """Give an array to write to; None where the library's arrays are immutable and reading is all one can do."""
    if value.xp is NUMPY:  # whose wrapper for the standard's device= takes longer than a small copy
        target = np.empty(value.shape, value.dtype)
    elif is_immutable(value.xp):
        return None
    else:
        target = value.xp.empty(value.shape, dtype=value.dtype, device=value.device)
    if is_tracing():
        record_allocation(prod(value.shape) * itemsize(target))
    return target


def _allocate_block(views: Sequence[View]) -> list[Array]:
    first = views[0]
    unit = max(1, _BLOCK_ALIGNMENT // max(1, itemsize(first.array)))
    ends = list(accumulate(-(-prod(view.shape) // unit) * unit for view in views))
    block = first.xp.empty((ends[-1],), dtype=first.dtype, device=first.device)
    if is_tracing():
        record_allocation(ends[-1] * itemsize(block))
    starts = [0, *ends[:-1]]
    return [
        first.xp.reshape(block[start : start + prod(view.shape)], view.shape)
        for start, view in zip(starts, views, strict=True)
    ]
