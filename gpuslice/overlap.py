"""Whether arrays share memory, from their addresses alone: no memory is read, which may be a device's."""

from collections import abc
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from gpuslice.dtypes import itemsize
from gpuslice.libraries import Array, address_of_numpy, bridge_of, has_memory, library_of
from gpuslice.mapped_files import Mapping, is_foreign, mappings

# np.shares_memory is exact, and its time may grow exponentially. Past this much work, two strided arrays whose bounds
# overlap count as overlapping.
_MOST_WORK = 10_000
_MOST_STRIDES = 64
# A file's first byte has this address, since for NumPy 0 is none.
_FILE_START = 1 << 12


class _Items(NamedTuple):
    """Where the items of an array are.

    Attributes
    ----------
    start, end : int
        The first address and the one after the last.
    axes : tuple of (int, int)
        Stride in bytes and count, the largest stride first. Strides are positive, and counts more than 1: an axis that
        goes backward has the same items as one that goes forward, and one with a stride of 0 has one item.
    itemsize : int
    number : int
        Which array it is.
    written : bool
    """

    start: int
    end: int
    axes: tuple[tuple[int, int], ...]
    itemsize: int
    number: int
    written: bool

    def extent_below(self, stride: int) -> int:
        """Return the bytes from the first item to the end of the last one along the axes with smaller strides."""
        return self.itemsize + sum(step * (count - 1) for step, count in self.axes if step < stride)

    def after(self, steps: int, depth: int) -> "_Items":
        """Return the items from position ``steps`` on along the axis at ``depth``, and at 0 along those before."""
        stride, count = self.axes[depth]
        axes = ((stride, count - steps), *self.axes[depth + 1 :])
        return self._replace(start=self.start + steps * stride, axes=axes)

    def moved(self, distance: int) -> "_Items":
        """Return the same items at other addresses."""
        return self._replace(start=self.start + distance, end=self.end + distance)


def overlapping(inputs: abc.Sequence[Array], outs: abc.Sequence[Array]) -> tuple[int, int | None] | None:
    """Return which array of ``outs`` shares memory, and with which other one of them, or None if with an input.

    None if all are apart. Two mappings of one file share memory where they map the same bytes.
    """
    numbers = [i - len(inputs) for i, array in enumerate([*inputs, *outs]) if has_memory(array)]  # inputs below 0
    arrays = list(filter(has_memory, [*inputs, *outs]))
    if all(map(_owns_memory, arrays)) and len(set(map(id, arrays))) == len(arrays):  # many calls, quickly
        return None
    foreign = [array for array in arrays if is_foreign(array)]
    both_numpy = len(arrays) == 2 and type(arrays[0]) is type(arrays[1]) is np.ndarray
    if both_numpy and not foreign and not np.may_share_memory(*arrays):  # most calls, quickly
        return None
    bounds = sorted([_bounds(array) for array in arrays if 0 not in array.shape])
    if len(foreign) < 2 and _are_apart(bounds):
        return None
    items = [_items_of(array, i) for i, array in zip(numbers, arrays, strict=True) if 0 not in array.shape]
    pair = _overlap(items) or (_overlap_in_files(items) if len(foreign) > 1 else None)
    if pair is None:
        return None
    first, second = sorted(item.number for item in pair)
    return second, first if first >= 0 else None


def is_apart(array: Array, out: Array) -> bool:
    """Return True if two NumPy arrays surely share no memory, which is seen at once for most; False if not sure."""
    return (out.base is None or not is_foreign(out)) and not np.may_share_memory(array, out)


def are_apart(array: Array, outs: abc.Sequence[Array]) -> bool:
    """Return True if an array and several contiguous outputs surely share no memory; False if not sure."""
    owner = array
    while type(owner.base) is np.ndarray:
        owner = owner.base
    owners = [owner, *outs]
    if all(map(_owns_memory, owners)) and len(set(map(id, owners))) == len(owners):
        return True
    arrays = [array, *outs]
    if not array.flags.c_contiguous or any(map(is_foreign, arrays)):
        return False
    return _are_apart(sorted(map(_bounds, arrays)))


def _owns_memory(array: Array) -> bool:
    """Return whether an array's memory is its own, which is no other array's that is none of its views."""
    return type(array) is np.ndarray and array.base is None and array.flags.owndata


def _are_apart(bounds: abc.Iterable[tuple[int, int]]) -> bool:
    return all(one[1] <= other[0] for one, other in pairwise(bounds))


def repeats_an_item(array: Array) -> bool:
    """Return whether two items of an array share memory, or may share it if the answer takes too long."""
    if 0 in array.shape or not has_memory(array):
        return False
    if array.flags.c_contiguous if isinstance(array, np.ndarray) else bridge_of(array) and array.is_contiguous():
        return False
    items = _items_of(array)
    if len(items.axes) < sum(count > 1 for count in array.shape):  # an axis has a stride of 0
        return items.itemsize > 0
    if all(stride >= items.extent_below(stride) for stride, _ in items.axes) and _are_different(items.axes):
        return False
    # Two items that share memory have a first axis along which they differ. There one is ahead of the other.
    return any(
        _share(items.after(1, depth), items.after(0, depth)._replace(axes=items.axes[depth + 1 :]))
        for depth in range(len(items.axes))
    )


def _are_different(axes: tuple[tuple[int, int], ...]) -> bool:
    return len({stride for stride, _ in axes}) == len(axes)


def _overlap(items: abc.Sequence[_Items], depth: int = 0) -> tuple[_Items, _Items] | None:
    """Return two of the items that share memory, at least one of which is written; None if there are none.

    Columns of one array lie between each other, so their bounds say nothing. But with respect to the row's stride they
    have different remainders. Each depth compares the remainders of one more stride.
    """
    for group in _touching(items, [(item.start, item.end) for item in items]):
        strides = sorted({stride for item in group for stride, _ in item.axes}, reverse=True)
        remainders = _remainders(group, strides[: depth + 1]) if depth < min(len(strides), _MOST_STRIDES) else None
        if remainders is not None:
            found = (_overlap(closer, depth + 1) for closer in _touching(group, remainders))
        else:
            found = (pair for pair in combinations(group, 2) if _is_written(pair) and _share(*pair))
        for pair in found:
            if pair is not None:
                return pair
    return None


def _is_written(items: abc.Iterable[_Items]) -> bool:
    return any(item.written for item in items)


def _touching(items: abc.Sequence[_Items], bounds: abc.Sequence[tuple[int, int]]) -> abc.Iterator[list[_Items]]:
    """Yield groups of two and more items whose bounds overlap, from one to the next, if any of them is written."""
    group: list[_Items] = []
    end = 0
    for (start, stop), item in sorted(zip(bounds, items, strict=True), key=lambda pair: pair[0]):
        if group and start >= end:
            if len(group) > 1 and _is_written(group):
                yield group
            group, end = [], 0
        group.append(item)
        end = max(end, stop)
    if len(group) > 1 and _is_written(group):
        yield group


def _remainders(items: abc.Sequence[_Items], strides: abc.Sequence[int]) -> list[tuple[int, int]] | None:
    """Return the bounds of each item's remainders by the strides in turn; None if an item is larger than a stride."""
    first = min(item.start for item in items)
    bounds = []
    for item in items:
        start = item.start - first
        for stride in strides:
            start, extent = start % stride, item.extent_below(stride)
            if start + extent > stride:
                return None
        bounds.append((start, start + extent))
    return bounds


def _bounds(array: Array) -> tuple[int, int]:
    """Return the first address of an array and the one after its last."""
    if isinstance(array, np.ndarray) and array.flags.c_contiguous:
        start = address_of_numpy(array)
        return start, start + array.nbytes
    bridge = bridge_of(array)
    if bridge is not None:
        return bridge.bounds(array)
    items = _items_of(array)
    return items.start, items.end


def _items_of(array: Array, number: int = 0) -> _Items:
    """Return where the items of an array are. An input, whose number is below 0, is not written."""
    address, strides, size = _layout(array)
    axes = []
    start = end = address
    for stride, count in zip(strides, array.shape, strict=True):
        if count > 1 and stride:
            reach = stride * (count - 1)
            start, end = start + min(reach, 0), end + max(reach, 0)
            axes.append((abs(stride), count))
    return _Items(start, end + size, tuple(sorted(axes, reverse=True)), size, number, number >= 0)


def _layout(array: Array) -> tuple[int, tuple[int, ...], int]:
    """Return address, strides in bytes and item size."""
    if not isinstance(array, np.ndarray):
        library = library_of(array, "out")
        if library.address is not None and library.strides is not None:
            return library.address(array), library.strides(array), itemsize(array.dtype)
        array = np.from_dlpack(array)
    return address_of_numpy(array), array.strides, array.dtype.itemsize


def _overlap_in_files(items: abc.Sequence[_Items]) -> tuple[_Items, _Items] | None:
    """Return two of the items that share bytes of a file, in several mappings of it; None if there are none."""
    known = mappings()
    by_file: dict[str, list[_Items]] = {}
    for item in items:
        found = next((mapping for mapping in known if mapping.start <= item.start < mapping.end), None)
        if found is not None and found.file:
            by_file.setdefault(found.file, []).append(_in_file(item, found))
    return next(filter(None, map(_overlap, by_file.values())), None)


def _in_file(item: _Items, mapping: Mapping) -> _Items:
    """Return the items with their places in the file as addresses. What a private mapping writes stays out of it."""
    moved = item.moved(mapping.offset - mapping.start + _FILE_START)
    return moved._replace(written=item.written and mapping.is_shared)


class _Place:
    """Tells NumPy where the items of an array are."""

    def __init__(self, items: _Items) -> None:
        strides, shape = zip(*items.axes, strict=True) if items.axes else ((), ())
        interface = {"version": 3, "typestr": f"|V{items.itemsize}", "data": (items.start, True)}
        self.__array_interface__ = interface | {"shape": shape, "strides": strides}


def _share(one: _Items, other: _Items) -> bool:
    """Return whether two arrays share memory, or may share it if the answer takes too long."""
    try:
        return np.shares_memory(np.asarray(_Place(one)), np.asarray(_Place(other)), max_work=_MOST_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
