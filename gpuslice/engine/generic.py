"""The executor for any array library: a region becomes an Array API index, and the copy becomes an assignment."""

from collections import abc
from math import prod
from types import EllipsisType

from gpuslice.dtypes import itemsize
from gpuslice.engine.joined import Joined, Lazy
from gpuslice.engine.trace import Launch, is_tracing, record_allocation, record_launch
from gpuslice.engine.views import View, ascending, index_of
from gpuslice.errors import is_compiling
from gpuslice.libraries import Array
from gpuslice.rules import Region


def copy(pairs: abc.Iterable[tuple[View, View]], executor: str = "generic", kernel: str = "assign") -> None:
    """Copy each source view to its target view of the same shape.

    Parameters
    ----------
    pairs : iterable of (View, View)
        A pair without items copies nothing.
    executor, kernel : str
        How a trace names these copies.
    """
    for source, target in pairs:
        if 0 in target.region.shape:
            continue
        target.array[index_of(target.region)] = indexed(source)
        if is_tracing():
            count = prod(target.shape)
            read_bytes, written = count * itemsize(source.dtype), count * itemsize(target.dtype)
            record_launch(Launch(executor, kernel, None, None, read_bytes, written, (target.shape,)))


def assign(value: Lazy, target: Array) -> None:
    """Copy a value of a library that has a bridge to an array by the library's own assignment."""
    target[...] = indexed(value)
    _record(value, "assign")


def fresh(value: Lazy) -> Array:
    """Return a new C-contiguous array with a value by the operations of a library that has a bridge."""
    bridge = value.library.bridge
    assert bridge is not None
    array = bridge.fresh(indexed(value), is_view=gives_views(value))
    _record(value, "copy", allocates=True)
    return array


def _record(value: Lazy, kernel: str, *, allocates: bool = False) -> None:
    if is_compiling() or not is_tracing():
        return
    size = prod(value.shape) * itemsize(value.dtype)
    if allocates:
        record_allocation(size)
    if size:
        record_launch(Launch("generic", kernel, None, None, size, size, (value.shape,)))


def indexed(value: Lazy) -> Array:
    """Return a value as its library's indexing returns it: a view if the library has views, else a new array."""
    if isinstance(value, Joined):
        return value.xp.concat([indexed(part) for part in value.parts], axis=value.axis)
    if value.library.negative_steps:
        return value.array[index_of(value.region)]
    index, reversed_axes = steps_to(value.region)
    taken, bridge = value.array[index], value.library.bridge
    if not reversed_axes:
        return taken
    return value.xp.flip(taken, axis=reversed_axes) if bridge is None else bridge.flip(taken, reversed_axes)


def steps_to(region: Region) -> tuple[tuple[slice | EllipsisType, ...], tuple[int, ...]]:
    """Return an index without negative steps, and the axes to reverse afterwards, which together take a region."""
    reversed_axes = _reversed_axes(region)
    return index_of(ascending(region) if reversed_axes else region), reversed_axes


def gives_views(view: Lazy) -> bool:
    """Return whether `indexed` returns a view that shares memory with the array."""
    library = view.library
    return isinstance(view, View) and library.views and (library.negative_steps or not _reversed_axes(view.region))


def _reversed_axes(region: Region) -> tuple[int, ...]:
    return tuple(axis for axis, step in enumerate(region.step) if step < 0)
