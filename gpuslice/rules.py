"""ONNX's rules for slices, splits and positions, in unbounded Python integers.

The functions take shapes, starts, ends, axes, steps and sizes; they return regions, sizes and positions. They use no
arrays and nothing outside the standard library, so each rule can be read beside the operator text and tried alone.
Error messages name the argument; the caller adds the operator and its version.
"""

from collections import abc
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, repeat
from typing import NamedTuple, overload

_SHOWN = 8
_MOST_BITS_SHOWN = 128
# An empty axis can be split into any number of outputs; a protobuf cannot hold more than this.
_MOST_OUTPUTS = 2**31 - 1


class Region(NamedTuple):
    """The items that a view has of an array: per axis ``shape`` items, from ``first`` on, ``step`` apart.

    An axis of at most one item has step 1, so a step of ``-2**63`` never reaches stride arithmetic. An axis without
    items starts at 0. So every ``first`` and every item is inside the array.

    Attributes
    ----------
    first, step, shape : tuple of int
        One entry per axis. ``shape`` is the shape of the result.
    """

    first: tuple[int, ...]
    step: tuple[int, ...]
    shape: tuple[int, ...]


class Whole(Region):
    """The region of a whole array."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class EqualSizes(abc.Sequence[int]):
    """Sizes of consecutive parts that are equal except for the last, which takes what is left of the axis.

    There may be billions of them, so they are computed when they are read.

    Attributes
    ----------
    dim : int
        Length of the axis.
    size : int
        Size of each part but the last.
    parts : int
        Number of parts.
    """

    dim: int
    size: int
    parts: int

    def __len__(self) -> int:
        return self.parts

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[int, ...]: ...
    def __getitem__(self, index: int | slice) -> int | tuple[int, ...]:
        position = range(self.parts)[index]
        return self._at(position) if isinstance(position, int) else tuple(map(self._at, position))

    def __iter__(self) -> abc.Iterator[int]:
        if self.parts:
            yield from repeat(self.size, self.parts - 1)
            yield self._at(self.parts - 1)

    def _at(self, position: int) -> int:
        return self.size if position < self.parts - 1 else self.dim - self.size * position


@lru_cache(maxsize=1024)
def whole(shape: tuple[int, ...]) -> Whole:
    """Return the region of a whole array of the given shape."""
    rank = len(shape)
    return Whole((0,) * rank, (1,) * rank, tuple(shape))


def compose(outer: Region, inner: Region) -> Region:
    """Return the region of an array that is region ``inner`` of its region ``outer``."""
    if type(outer) is Whole:
        return inner
    first, step = [], []
    for outer_first, outer_step, inner_first, inner_step, count in zip(
        outer.first, outer.step, inner.first, inner.step, inner.shape, strict=True
    ):
        first.append(outer_first + inner_first * outer_step if count else 0)
        step.append(outer_step * inner_step if count > 1 else 1)
    return Region(tuple(first), tuple(step), inner.shape)


def slice_region(
    shape: abc.Sequence[int],
    starts: abc.Sequence[int],
    ends: abc.Sequence[int],
    axes: abc.Sequence[int] | None = None,
    steps: abc.Sequence[int] | None = None,
) -> Region:
    """Return the region of a slice. Slice-13's text defines the clamps; they also hold for 1, 10, 11 and DynamicSlice.

    Raises
    ------
    ValueError
        A step is 0, an axis is repeated or out of range, or arguments have different lengths.
    """
    for name, values in (("ends", ends), ("axes", axes), ("steps", steps)):
        if values is not None and len(values) != len(starts):
            raise ValueError(f"{name} must have as many values as starts, {len(starts)}; got {show(name, values)}")
    axes = _slice_axes(starts, axes, len(shape))
    if steps is not None and 0 in steps:
        raise ValueError(f"steps must not be 0; got 0 in {show('steps', steps)}")
    first, step, count = [0] * len(shape), [1] * len(shape), list(shape)
    for i, axis in enumerate(axes):
        first[axis], step[axis], count[axis] = _slice_axis(shape[axis], starts[i], ends[i], steps[i] if steps else 1)
    return Region(tuple(first), tuple(step), tuple(count))


def _slice_axes(starts: abc.Sequence[int], axes: abc.Sequence[int] | None, rank: int) -> abc.Sequence[int]:
    if axes is None:
        # Slice-1's attribute and ONNX's shape inference say [0, ..., len(starts)-1], as is done here. The texts of 10
        # to 13 say [0, ..., r-1], which is impossible with fewer starts than axes.
        if len(starts) > rank:
            raise ValueError(
                f"starts must have at most {rank} values for rank {rank} if axes are omitted; "
                f"got {show('starts', starts)}"
            )
        return range(len(starts))
    normalized = [normalize_axis(axis, rank, "axes", axes) for axis in axes]
    if len(set(normalized)) != len(normalized):
        axis = next(axis for i, axis in enumerate(normalized) if axis in normalized[:i])
        same = [axes[i] for i, meant in enumerate(normalized) if meant == axis]
        which = "which" if len(axes) == 2 else f"of which {same[0]} and {same[1]}"
        raise ValueError(f"axes must name different axes; got {show('axes', axes)}, {which} are both axis {axis}")
    return normalized


def _slice_axis(dim: int, start: int, end: int, step: int) -> tuple[int, int, int]:
    """Return (first, step, count) of one axis."""
    start += dim if start < 0 else 0
    end += dim if end < 0 else 0
    if step > 0:
        start, end = _clamp(start, 0, dim), _clamp(end, 0, dim)
        count = -((start - end) // step)
    else:
        # A start below -dim means element 0 (NumPy selects nothing), and end = -1 now means "before element 0".
        start, end = _clamp(start, 0, dim - 1), _clamp(end, -1, dim - 1)
        count = -((end - start) // -step)
    if dim == 0 or count <= 0:
        return 0, 1, 0
    return start, step if count > 1 else 1, count


def _clamp(value: int, low: int, high: int) -> int:
    # Not min(): of PyTorch's symbolic ints it makes an expression, which torch.export cannot always simplify.
    if value < low:
        return low
    return high if value > high else value


def normalize_axis(axis: int, rank: int, name: str = "axis", given: abc.Sequence[int] | None = None) -> int:
    """Return ``axis`` counted from the front.

    Raises
    ------
    ValueError
        ``axis`` is not in [-rank, rank-1].
    """
    if -rank <= axis < rank:
        return axis + rank if axis < 0 else axis
    allowed = (
        f"must be in [{-rank}, {rank - 1}] for rank {rank}" if rank else "must name an axis, but rank 0 has no axes"
    )
    raise ValueError(
        f"{name} {allowed}; got {show_int(axis)}" + (f" in {show(name, given)}" if given is not None else "")
    )


def split_regions(shape: abc.Sequence[int], axis: int, sizes: abc.Iterable[int]) -> list[Region]:
    """Return the regions of consecutive parts of the given sizes along an axis counted from the front."""
    rank, start, regions = len(shape), 0, []
    step = (1,) * rank
    for size in sizes:
        first = tuple(start if i == axis and size else 0 for i in range(rank))
        regions.append(Region(first, step, (*shape[:axis], size, *shape[axis + 1 :])))
        start += size
    return regions


def listed_sizes(dim: int, split: abc.Sequence[int], outputs: int | None = None) -> abc.Sequence[int]:
    """Return sizes that were given one by one, checked (all versions of Split, and SplitToSequence).

    Raises
    ------
    ValueError
        A size is negative, the sum is not ``dim``, or the number of sizes is not ``outputs`` (None: any number).
    """
    if split and min(split) < 0:
        raise ValueError(f"split must not be negative; got {show('split', split)}")
    if outputs is not None and len(split) != outputs:
        raise ValueError(f"split must have {outputs} values, one per output; got {show('split', split)}")
    total = sum(split)
    if total != dim:
        raise ValueError(
            f"split must add up to the length of the axis, {dim}; got {show_int(total)} from {show('split', split)}"
            f"{_hint_of_positions(dim, split)}"
        )
    return split


def _hint_of_positions(dim: int, split: abc.Sequence[int]) -> str:
    """Return what sizes that do not add up would be if they were positions, as in numpy.split; "" if they cannot be."""
    sizes = [end - start for start, end in pairwise((0, *split, dim))]
    if not split or min(sizes) < 1:
        return ""
    return f"; as positions, which numpy.split takes, they are {show('split', sizes)}"


def equal_sizes(dim: int, outputs: int) -> EqualSizes:
    """Return ``outputs`` equal sizes (Split-1, -2, -11, -13 without split).

    Raises
    ------
    ValueError
        ``dim`` is not a multiple of ``outputs``. (onnx.reference makes the last part smaller.)
    """
    if dim % outputs:
        raise ValueError(
            f"split must be given if the outputs cannot be equal; got {outputs} outputs for an axis of length {dim}"
        )
    return EqualSizes(dim, dim // outputs, outputs)


def num_outputs_sizes(dim: int, num_outputs: int) -> EqualSizes:
    """Return the sizes for Split-18's num_outputs: equal ones, of which the last may be smaller, even 0.

    Raises
    ------
    ValueError
        ``num_outputs`` is below 1, or its last chunk would be negative (5 into 4 is 2, 2, 2, -1).
    """
    if not 1 <= num_outputs <= _MOST_OUTPUTS:
        raise ValueError(f"num_outputs must be at least 1 and at most {_MOST_OUTPUTS}; got {show_int(num_outputs)}")
    chunk = -(-dim // num_outputs)
    last = dim - chunk * (num_outputs - 1)
    if last < 0:
        raise ValueError(
            f"num_outputs must not make the last chunk of an axis of length {dim} negative; "
            f"got {num_outputs}: {num_outputs - 1} chunks of {chunk} leave {last}"
        )
    return EqualSizes(dim, chunk, num_outputs)


def chunk_sizes(dim: int, chunk: int) -> EqualSizes:
    """Return the sizes for SplitToSequence's scalar split: equal chunks, of which the last may be smaller.

    An empty axis has no chunks.

    Raises
    ------
    ValueError
        ``chunk`` is below 1.
    """
    if chunk < 1:
        raise ValueError(f"split must be at least 1 if it is a scalar; got {show_int(chunk)}")
    return EqualSizes(dim, chunk, -(-dim // chunk))


def normalize_position(position: int, length: int, *, end: bool = False) -> int:
    """Return ``position`` counted from the front, in a sequence of ``length`` tensors.

    Parameters
    ----------
    end : bool
        Whether ``length`` itself is a position. SequenceInsert appends there.

    Raises
    ------
    IndexError
        ``position`` is out of range.
    """
    high = length if end else length - 1
    if -length <= position <= high:
        return position + length if position < 0 else position
    if high < 0:
        raise IndexError(f"position must name a tensor, but the sequence is empty; got {show_int(position)}")
    raise IndexError(
        f"position must be in [{-length}, {high}] for a sequence of length {length}; got {show_int(position)}"
    )


def show(name: str, values: abc.Sequence[int]) -> str:
    """Return an argument as messages show it: ``axes=[0, 5]``, long ones shortened."""
    shown = [show_int(value) for value in values[:_SHOWN]] + (["..."] if len(values) > _SHOWN else [])
    return f"{name}=[{', '.join(shown)}]"


def show_int(value: int) -> str:
    """Return an int as messages show it. Python refuses to print the largest."""
    bits = value.bit_length()
    return str(value) if bits <= _MOST_BITS_SHOWN else f"an int of {bits} bits"
