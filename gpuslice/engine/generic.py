"""The executor for any array library: a region becomes an Array API index, and the copy becomes an assignment."""

from collections import abc
from math import prod

from gpuslice.dtypes import itemsize
from gpuslice.engine.joined import Joined, Lazy
from gpuslice.engine.trace import Launch, is_tracing, record_launch
from gpuslice.engine.views import View, ascending, index_of
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


def indexed(value: Lazy) -> Array:
    """Return a value as its library's indexing returns it: a view if the library has views, else a new array."""
    if isinstance(value, Joined):
        return value.xp.concat([indexed(part) for part in value.parts], axis=value.axis)
    region = value.region
    if not value.library.negative_steps and (reversed_axes := _reversed_axes(region)):
        return value.xp.flip(value.array[index_of(ascending(region))], axis=reversed_axes)
    return value.array[index_of(region)]


def gives_views(view: Lazy) -> bool:
    """Return whether `indexed` returns a view that shares memory with the array."""
    library = view.library
    return isinstance(view, View) and library.views and (library.negative_steps or not _reversed_axes(view.region))


def _reversed_axes(region: Region) -> tuple[int, ...]:
    return tuple(axis for axis, step in enumerate(region.step) if step < 0)
