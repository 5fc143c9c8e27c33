"""Views of other libraries' arrays as views of NumPy's or CuPy's arrays over the same memory."""

from collections import abc
from functools import cache
from operator import mul
from typing import Any

from gpuslice.dtypes import itemsize
from gpuslice.engine import choice
from gpuslice.engine.consecutive import Consecutive
from gpuslice.engine.joined import Joined, Lazy
from gpuslice.engine.views import View
from gpuslice.libraries import NUMPY, Array, Bridge, Library

_MOST_SEEN = 16


def has_bridges(values: abc.Sequence[Lazy]) -> bool:
    """Return whether some of the values are of a library whose arrays may be lowered."""
    if isinstance(values, Consecutive):
        return values.view.library.bridge is not None
    # A loop, since torch.compile follows no more than that.
    for value in values:  # noqa: SIM110
        if value.library.bridge is not None:
            return True
    return False


@cache
def torch_cuda() -> Any:
    """Return the module for CUDA tensors; None without CuPy."""
    try:
        from gpuslice.engine import torch_cuda
    except ImportError:
        return None
    return torch_cuda


def memory_of(bridge: Bridge, array: Array, *, written: bool = False) -> tuple[Array | None, Library]:
    """Return a NumPy or CuPy array over the memory of an array, and its library; None if the array is not plain.

    Parameters
    ----------
    written : bool
        Whether it is to be written.
    """
    if not bridge.is_plain(array, written=written):
        return None, NUMPY
    if bridge.is_on_host(array):
        return bridge.to_numpy(array), NUMPY
    cuda = torch_cuda()
    return (None, NUMPY) if cuda is None else (cuda.to_cupy(array), cuda.LIBRARY)


def lower(values: abc.Sequence[Lazy], *, written: bool = False) -> abc.Sequence[Lazy | None]:
    """Return the values as values of NumPy or CuPy; None for those that their library has to copy, or copies faster.

    Parameters
    ----------
    written : bool
        Whether there are outputs.
    """
    if isinstance(values, Consecutive):
        return _lower_consecutive(values)
    lowered: list[Lazy | None] = []
    array = source = None
    library = NUMPY
    for value in values:
        bridge = value.library.bridge
        if isinstance(value, View) and bridge is not None:
            if value.array is not array:  # the parts of a split share one array
                array = value.array
                source, library = memory_of(bridge, array)
            lowered.append(None if source is None else View(source, value.region, library))
        elif isinstance(value, Joined) and bridge is not None:
            parts = [part for part in lower(value.parts) if part is not None]
            lowered.append(Joined(parts, value.axis) if len(parts) == len(value.parts) else None)
        else:
            lowered.append(value)
    return [None] * len(lowered) if by_their_library(values, lowered, written=written) else lowered


def _lower_consecutive(values: Consecutive) -> abc.Sequence[Lazy | None]:
    view = values.view
    assert view.library.bridge is not None
    source, library = memory_of(view.library.bridge, view.array)
    return [None] * len(values) if source is None else values.of(View(source, view.region, library))


def by_their_library(values: abc.Sequence[Lazy], lowered: abc.Sequence[Lazy | None], *, written: bool) -> bool:
    """Return whether values are copied faster by the operations of their library than as what they were lowered to."""
    if len(values) > _MOST_SEEN:
        return False
    layouts = []
    for value, low in zip(values, lowered, strict=True):
        if value.library.bridge is None or not isinstance(low, View) or low.library is not NUMPY:
            return False
        layouts.append((low.shape, tuple(map(mul, low.array.strides, low.region.step))))
    if not layouts:
        return False
    threads = values[0].library.bridge.threads(values[0].dtype)  # type: ignore[union-attr]
    return choice.torch_is_faster(itemsize(values[0].dtype), layouts, threads=threads, written=written)


def lower_outs(values: abc.Sequence[Lazy], outs: abc.Sequence[Array]) -> list[tuple[Lazy, Array] | None]:
    """Return values and the outputs for them as NumPy's or CuPy's; None for those that their library has to copy."""
    pairs: list[tuple[Lazy, Array] | None] = []
    for value, lowered, out in zip(values, lower(values, written=True), outs, strict=True):
        bridge = value.library.bridge
        target = out if bridge is None or lowered is None else memory_of(bridge, out, written=True)[0]
        pairs.append(None if lowered is None or target is None else (lowered, target))
    return pairs


def raised(value: Lazy, copied: Array) -> Array:
    """Return a new NumPy array, the copy of a lowered value, as an array of the value's library."""
    bridge = value.library.bridge
    return copied if bridge is None else bridge.from_numpy(copied, value.dtype)
