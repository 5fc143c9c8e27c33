"""Views of other libraries' arrays in host memory as views of NumPy arrays over the same memory."""

from collections import abc
from operator import mul

from gpuslice.dtypes import itemsize
from gpuslice.engine import choice
from gpuslice.engine.consecutive import Consecutive
from gpuslice.engine.joined import Joined, Lazy
from gpuslice.engine.views import View
from gpuslice.libraries import NUMPY, Array

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


def lower(values: abc.Sequence[Lazy], *, written: bool = False) -> list[Lazy | None]:
    """Return the values as values of NumPy; None for those that their library has to copy, or copies faster.

    Parameters
    ----------
    written : bool
        Whether there are outputs.
    """
    lowered: list[Lazy | None] = []
    array = source = None
    for value in values:
        bridge = value.library.bridge
        if isinstance(value, View) and bridge is not None:
            if value.array is not array:  # the parts of a split share one array
                array = value.array
                source = bridge.to_numpy(array) if bridge.is_plain(array) else None
            lowered.append(None if source is None else View(source, value.region, NUMPY))
        elif isinstance(value, Joined) and bridge is not None:
            parts = [part for part in lower(value.parts) if part is not None]
            lowered.append(Joined(parts, value.axis) if len(parts) == len(value.parts) else None)
        else:
            lowered.append(value)
    return [None] * len(lowered) if by_their_library(values, lowered, written=written) else lowered


def by_their_library(values: abc.Sequence[Lazy], lowered: abc.Sequence[Lazy | None], *, written: bool) -> bool:
    """Return whether values are copied faster by the operations of their library than as what they were lowered to."""
    if len(values) > _MOST_SEEN:
        return False
    layouts = []
    for value, low in zip(values, lowered, strict=True):
        if value.library.bridge is None or not isinstance(low, View):
            return False
        layouts.append((low.shape, tuple(map(mul, low.array.strides, low.region.step))))
    return bool(layouts) and choice.torch_is_faster(itemsize(values[0].dtype), layouts, written=written)


def lower_outs(values: abc.Sequence[Lazy], outs: abc.Sequence[Array]) -> list[tuple[Lazy, Array] | None]:
    """Return values and the outputs for them as NumPy's; None for those that their library has to copy."""
    pairs: list[tuple[Lazy, Array] | None] = []
    for value, lowered, out in zip(values, lower(values, written=True), outs, strict=True):
        bridge = value.library.bridge
        if lowered is None or (bridge is not None and not bridge.is_plain(out, written=True)):
            pairs.append(None)
        else:
            pairs.append((lowered, out if bridge is None else bridge.to_numpy(out)))
    return pairs


def raised(value: Lazy, copied: Array) -> Array:
    """Return a new NumPy array, the copy of a lowered value, as an array of the value's library."""
    bridge = value.library.bridge
    return copied if bridge is None else bridge.from_numpy(copied, value.dtype)
