"""The executor for any array library: a region becomes an Array API index, and the copy an assignment."""

from collections.abc import Iterable
from functools import cache, lru_cache
from math import prod
from types import EllipsisType, ModuleType

import array_api_compat

from gpuslice.arrays import Array, itemsize
from gpuslice.engine.trace import Launch, is_tracing, record_launch
from gpuslice.engine.view import Joined, View
from gpuslice.rules import Region


def copy(pairs: Iterable[tuple[View, View]], executor: str = "generic", kernel: str = "assign") -> None:
    """Copy each source view to its target view, which has the same shape. Nothing is done where there are no items."""
    for source, target in pairs:
        if 0 in target.region.shape:
            continue
        target.array[index(target.region)] = read(source)
        if is_tracing():
            count = prod(target.shape)
            read_bytes, written = count * itemsize(source.array), count * itemsize(target.array)
            record_launch(Launch(executor, kernel, None, None, read_bytes, written))


def read(value: View | Joined) -> Array:
    """Give a value as the library does when it is indexed: a view where it has views, else a new array."""
    if isinstance(value, Joined):
        return value.xp.concat([read(part) for part in value.parts], axis=value.axis)
    region = value.region
    if not _steps_backward(value.xp) and (backward := _backward_axes(region)):
        forward = value.array[index(_forward(region))]
        return value.xp.flip(forward, axis=backward)
    return value.array[index(region)]


def gives_views(view: View) -> bool:
    """Tell whether `read` gives a view that shares memory with its array."""
    xp = view.xp
    if array_api_compat.is_torch_namespace(xp):
        return not _backward_axes(view.region)
    return bool(
        array_api_compat.is_numpy_namespace(xp)
        or array_api_compat.is_cupy_namespace(xp)
        or array_api_compat.is_array_api_strict_namespace(xp)
    )


@lru_cache(maxsize=1024)
def index(region: Region) -> tuple[slice | EllipsisType, ...]:
    """Give the index of a region, one slice an axis, in the range that array-api-strict accepts.

    The Ellipsis keeps 0-d results arrays: NumPy gives a scalar, and of an object array the object itself, without it.
    """
    return (*map(_axis_slice, region.first, region.step, region.shape), ...)


def _axis_slice(first: int, step: int, count: int) -> slice:
    if count == 0:
        return slice(0, 0, 1)
    stop = first + step * (count - 1) + (1 if step > 0 else -1)
    # -1 would be read as the last element; None is the only way to say "before element 0".
    return slice(first, stop if stop >= 0 else None, step)


@cache
def _steps_backward(xp: ModuleType) -> bool:
    return not array_api_compat.is_torch_namespace(xp)  # PyTorch refuses a negative step


def _backward_axes(region: Region) -> tuple[int, ...]:
    return tuple(axis for axis, step in enumerate(region.step) if step < 0)


def _forward(region: Region) -> Region:
    """Give the same items with every step positive."""
    first = (f + s * (n - 1) if s < 0 else f for f, s, n in zip(*region, strict=True))
    return Region(tuple(first), tuple(map(abs, region.step)), region.shape)
