"""The parts of a copy, and which of them can share a launch."""

from collections import abc
from typing import NamedTuple

from gpuslice.engine.plan.kernel_sources import PIXEL_CHANNELS, TOGETHER_KINDS, Kernel

# A part is compared with so many groups, the latest ones, before it starts a group of its own.
_TRIED = 8


class Part(NamedTuple):
    """A view and its target: addresses and byte strides."""

    source: int
    source_strides: tuple[int, ...]
    target: int
    target_strides: tuple[int, ...]
    shape: tuple[int, ...]


class Axis(NamedTuple):
    """An axis of a launch.

    Attributes
    ----------
    counts : tuple of int
        One entry if all parts agree, else one per part.
    source, target : int
        Byte strides.
    """

    counts: tuple[int, ...]
    source: int
    target: int

    @property
    def varies(self) -> bool:
        """Whether the parts differ along the axis."""
        return len(self.counts) > 1


class LaunchPlan(NamedTuple):
    """A launch without its addresses.

    Attributes
    ----------
    kind, width, variant
        The kernel; see `Kernel`.
    axes : tuple of Axis
        Outermost first.
    flat : bool
        Whether targets are contiguous throughout; the strides of targets mean nothing then.
    parts : tuple of int
        Which of the parts, in the order of the tables.
    source_offset, target_offset : int
        Bytes from a part's addresses to where the axes start.
    channel_source, channel_target : int
        Bytes from the source and the target of a channel to those of the next, if one part has all channels. It is
        named in `parts` once for each.
    """

    kind: str
    width: int
    variant: int
    axes: tuple[Axis, ...]
    flat: bool
    parts: tuple[int, ...]
    source_offset: int = 0
    target_offset: int = 0
    channel_source: int = 0
    channel_target: int = 0

    @property
    def kernel(self) -> Kernel:
        """The kernel that moves the items."""
        return Kernel(self.kind, self.width, self.variant)

    @property
    def name(self) -> str:
        """The kernel with its width and variant, such as ``rows<4, -1>``."""
        return self.kernel.name

    @property
    def item_bytes(self) -> int:
        """Bytes of an item in the target: of a pixel if pixels are interleaved there."""
        if self.kind == "pixel_rows":
            return self.width * PIXEL_CHANNELS
        if self.kind in ("interleaved", "rearranged"):
            return self.width * sum(self.kernel.channels)
        return self.width

    @property
    def varying(self) -> int | None:
        """The axis along which the parts differ; None if they are alike."""
        if len(self.parts) == 1:
            return None
        return next((k for k, axis in enumerate(self.axes) if axis.varies), None)

    @property
    def part_count(self) -> int:
        """How many parts have tiles of their own: items of the same pixels or rows move together."""
        return 1 if self.kind in TOGETHER_KINDS else len(self.parts)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of all parts; one shape if they are alike."""
        varying, shape = self.varying, tuple([axis.counts[0] for axis in self.axes])
        if varying is None:
            return [shape]
        return [(*shape[:varying], count, *shape[varying + 1 :]) for count in self.axes[varying].counts]

    def counts(self, index: int) -> tuple[int, ...]:
        """Return the shape of the part at an index of `parts`."""
        return tuple([axis.counts[index if axis.varies else 0] for axis in self.axes])


class Group:
    """Parts that can share a launch, with the indices of all and the first of them."""

    __slots__ = ("first", "flat", "members", "strides", "varying")

    def __init__(self, index: int, part: Part, flat: bool) -> None:
        self.flat: bool = flat
        self.members: list[int] = [index]
        self.first: Part = part
        # A stride means nothing on an axis of one item; the first part with more says what it is.
        self.strides: list[int | None] = _given_strides(part)
        self.varying: int | None = None

    def add(self, index: int, part: Part, flat: bool) -> bool:
        """Add a part and return True if it fits; else return False."""
        first = self.first
        if flat != self.flat or len(part.shape) != len(first.shape):
            return False
        if not flat and part.target_strides != first.target_strides:
            return False
        alike = part.shape == first.shape and part.source_strides == first.source_strides
        if not alike and not self._differs_along_an_axis(part):
            return False
        self.members.append(index)
        return True

    def _differs_along_an_axis(self, part: Part) -> bool:
        """Return whether a part differs from the others along at most one axis; if so, remember what it says of all."""
        differing = [k for k, (n, m) in enumerate(zip(part.shape, self.first.shape, strict=True)) if n != m]
        if len(differing) > 1 or (differing and self.varying not in (None, differing[0])):
            return False
        if not self.flat and differing and part.target_strides[differing[0]] < 0:
            return False  # with the axis reversed, each part would begin elsewhere
        given = _given_strides(part)
        for known, stride in zip(self.strides, given, strict=True):
            if None not in (known, stride) and known != stride:
                return False
        self.strides = [g if known is None else known for known, g in zip(self.strides, given, strict=True)]
        self.varying = differing[0] if differing else self.varying
        return True

    def axes(self, parts: abc.Sequence[Part]) -> list[Axis]:
        """Return the axes that all parts have together, without those of one item."""
        axes = []
        first = self.first
        for k, stride in enumerate(self.strides):
            if stride is not None:
                varies = k == self.varying
                counts = tuple([parts[i].shape[k] for i in self.members]) if varies else (first.shape[k],)
                axes.append(Axis(counts, stride, first.target_strides[k]))
        return axes


def _given_strides(part: Part) -> list[int | None]:
    """Return the strides of a part's source, and None for each axis of one item."""
    return [stride if n > 1 else None for n, stride in zip(part.shape, part.source_strides, strict=True)]


def groups_of(parts: abc.Sequence[Part], itemsize: int) -> list[Group]:
    """Return groups of parts that can share a launch; parts without items are left out."""
    groups: list[Group] = []
    for index, part in enumerate(parts):
        if 0 in part.shape:
            continue
        flat = _is_flat(part.shape, part.target_strides, itemsize)
        # Only the latest groups, so that the cost of views with nothing in common grows with their number alone.
        for group in groups[: -_TRIED - 1 : -1]:
            if group.add(index, part, flat):
                break
        else:
            groups.append(Group(index, part, flat))
    return groups


def _is_flat(shape: abc.Sequence[int], strides: abc.Sequence[int], itemsize: int) -> bool:
    expected = itemsize
    for count, stride in zip(reversed(shape), reversed(strides), strict=True):
        if count > 1:
            if stride != expected:
                return False
            expected *= count
    return True
