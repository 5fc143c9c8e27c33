"""How to copy: from shapes and byte strides to launches of kernels. Integers only; executors add grids and addresses.

A part is one view and where its items go. Parts that share strides, and shape but for one axis, share a launch. Axes
are dropped, ordered by the target, turned round and merged until as few are left as can be; then the inner axis says
which kernel moves them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import NamedTuple

MAX_RANK = 8
VECTOR = 16
# Steps between small items that are cheaper to thin out of whole vectors than to gather, and for which widths.
THINNED = (2, 3, 4)
THINNED_WIDTHS = (1, 2)
PIXEL_WIDTHS = (1, 2, 4)
MAX_CHANNELS = 4


class Part(NamedTuple):
    """A view and its target: addresses and byte strides."""

    source: int
    source_strides: tuple[int, ...]
    target: int
    target_strides: tuple[int, ...]
    shape: tuple[int, ...]


class Axis(NamedTuple):
    """An axis of a launch: ``counts`` has one entry where all parts agree, else one a part; strides are in bytes."""

    counts: tuple[int, ...]
    source: int
    target: int

    @property
    def varies(self) -> bool:
        """Whether the parts differ along it."""
        return len(self.counts) > 1


@dataclass(frozen=True)
class Launch:
    """A launch without its addresses.

    Attributes
    ----------
    kind : {"rows", "planes", "rearranged", "tiles"}
    width : int
        Bytes of an item.
    variant : int
        rows: the step between items (0: any stride); planes and rearranged: the channels, negative where pixels go
        backward; tiles: 0.
    axes : tuple of Axis
        Outermost first.
    flat : bool
        Whether targets are contiguous throughout; the strides of targets mean nothing then.
    parts : tuple of int
        Which of the parts, in the order of the tables.
    source_offset, target_offset : int
        Bytes from a part's addresses to where the axes start.
    """

    kind: str
    width: int
    variant: int
    axes: tuple[Axis, ...]
    flat: bool
    parts: tuple[int, ...]
    source_offset: int = 0
    target_offset: int = 0

    @property
    def item_bytes(self) -> int:
        """Bytes of an item in the target: of a pixel where pixels stay interleaved."""
        return self.width * (abs(self.variant) if self.kind == "rearranged" else 1)

    def counts(self, index: int) -> tuple[int, ...]:
        """Give the shape of the part at an index of `parts`."""
        return tuple(axis.counts[index if axis.varies else 0] for axis in self.axes)


def plan(parts: Sequence[Part], itemsize: int) -> list[Launch] | None:
    """Give the launches that copy all parts; None where an array keeps more axes than the kernels have.

    Only alignments matter, to 64 bytes, and distances of up to MAX_CHANNELS sources: a plan holds for all parts that
    have the same.
    """
    launches = []
    for group in _groups(parts, itemsize):
        launch = _widened(_merged(_ordered(_reduced(group, parts, itemsize))), parts)
        if len(launch.axes) > MAX_RANK:
            return None
        launches.append(_classified(launch, parts))
    return launches


class _Group:
    """Parts that can share a launch."""

    def __init__(self, part: Part, flat: bool) -> None:
        self.flat = flat
        self.members: list[int] = []
        self.first = part
        # A stride means nothing on an axis of one item; the first part with more says what it is.
        self.strides: list[int | None] = [None] * len(part.shape)
        self.varying: int | None = None

    def add(self, index: int, part: Part, flat: bool) -> bool:
        """Add a part if it fits."""
        if flat != self.flat or len(part.shape) != len(self.strides):
            return False
        if not flat and (part.target_strides, part.shape) != (self.first.target_strides, self.first.shape):
            return False
        differing = [k for k, (n, m) in enumerate(zip(part.shape, self.first.shape, strict=True)) if n != m]
        if len(differing) > 1 or (differing and self.varying not in (None, differing[0])):
            return False
        given = [stride if n > 1 else None for n, stride in zip(part.shape, part.source_strides, strict=True)]
        for known, stride in zip(self.strides, given, strict=True):
            if None not in (known, stride) and known != stride:
                return False
        self.strides = [g if known is None else known for known, g in zip(self.strides, given, strict=True)]
        self.varying = differing[0] if differing else self.varying
        self.members.append(index)
        return True

    def axes(self, parts: Sequence[Part]) -> list[Axis]:
        """Give the axes of all parts together, without those of one item."""
        axes = []
        for k, stride in enumerate(self.strides):
            if stride is not None:
                varies = k == self.varying
                counts = tuple(parts[i].shape[k] for i in self.members) if varies else (self.first.shape[k],)
                axes.append(Axis(counts, stride, self.first.target_strides[k]))
        return axes


def _groups(parts: Sequence[Part], itemsize: int) -> list[_Group]:
    groups: list[_Group] = []
    for index, part in enumerate(parts):
        if prod(part.shape):
            flat = _is_flat(part.shape, part.target_strides, itemsize)
            if not any(group.add(index, part, flat) for group in groups):
                groups.append(_Group(part, flat))
                groups[-1].add(index, part, flat)
    return groups


def _is_flat(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    expected = itemsize
    for count, stride in zip(reversed(shape), reversed(strides), strict=True):
        if count > 1:
            if stride != expected:
                return False
            expected *= count
    return True


def _reduced(group: _Group, parts: Sequence[Part], itemsize: int) -> Launch:
    """Take items apart until they are as wide as a kernel moves and as addresses and strides are aligned."""
    axes = group.axes(parts)
    width = gcd(itemsize, VECTOR, *(axis.source for axis in axes))
    if not group.flat:
        width = gcd(width, *(axis.target for axis in axes))
    for i in group.members:
        width = gcd(width, parts[i].source, parts[i].target)
    if width < itemsize:
        axes.append(Axis((itemsize // width,), width, width))
    return Launch("rows", width, 0, tuple(axes), group.flat, tuple(group.members))


def _ordered(launch: Launch) -> Launch:
    """Turn axes round until no target goes backward, and put them in the target's order."""
    if launch.flat:
        return launch
    axes, source, target = [], 0, 0
    for axis in launch.axes:
        if axis.target < 0:
            source += (axis.counts[0] - 1) * axis.source
            target += (axis.counts[0] - 1) * axis.target
            axis = Axis(axis.counts, -axis.source, -axis.target)
        axes.append(axis)
    axes.sort(key=lambda axis: -axis.target)
    if not axes or axes[-1].target != launch.width:
        axes.append(Axis((1,), launch.width, launch.width))  # items apart in the target: runs of one
    return replace(launch, axes=tuple(axes), source_offset=source, target_offset=target)


def _merged(launch: Launch) -> Launch:
    """Merge neighbours that are one axis, forward or backward, in source and target."""
    axes: list[Axis] = []
    for axis in launch.axes:
        if axes and not axis.varies:
            outer, count = axes[-1], axis.counts[0]
            if outer.source == axis.source * count and (launch.flat or outer.target == axis.target * count):
                axes[-1] = Axis(tuple(n * count for n in outer.counts), axis.source, axis.target)
                continue
        axes.append(axis)
    return replace(launch, axes=tuple(axes) or (Axis((1,), launch.width, launch.width),))


def _widened(launch: Launch, parts: Sequence[Part]) -> Launch:
    """Make wider items of inner axes that are contiguous: pairs of bytes that stay together move as one item."""
    *outer, inner = launch.axes
    width = launch.width
    while inner.source == width < VECTOR and all(count % 2 == 0 for count in inner.counts):
        wider = 2 * width
        strides = [axis.source for axis in outer] + ([] if launch.flat else [axis.target for axis in outer])
        addresses = [address for i in launch.parts for address in (parts[i].source, parts[i].target)]
        offsets = [launch.source_offset, launch.target_offset]
        if any(number % wider for number in (*strides, *addresses, *offsets)):
            break
        width = wider
        inner = Axis(tuple(count // 2 for count in inner.counts), width, width)
    axes = (*outer, inner) if inner.counts != (1,) or not outer else tuple(outer)
    flat_or_dense = launch.flat or axes[-1].target == width
    if not flat_or_dense:
        axes = (*axes, Axis((1,), width, width))
    return replace(launch, width=width, axes=axes)


def _classified(launch: Launch, parts: Sequence[Part]) -> Launch:
    """Choose the kernel."""
    for choose in (_planes, _rearranged, _tiles):
        chosen = choose(launch, parts)
        if chosen is not None:
            return chosen
    stride, width = launch.axes[-1].source, launch.width
    step, rest = divmod(stride, width)
    thinned = width in THINNED_WIDTHS and abs(step) in THINNED
    if rest or not (step in (1, -1) or thinned):
        step = 0
    return replace(launch, variant=step)


def _planes(launch: Launch, parts: Sequence[Part]) -> Launch | None:
    """Channels side by side in the source, a target each: one reading for all."""
    channels, width, run = len(launch.parts), launch.width, launch.axes[-1]
    if len(parts) > MAX_CHANNELS:
        return None  # the distances of addresses are not known
    if not (2 <= channels <= MAX_CHANNELS and width in PIXEL_WIDTHS and launch.flat) or any(
        axis.varies for axis in launch.axes
    ):
        return None
    if abs(run.source) != channels * width or run.counts[0] < VECTOR // width:
        return None
    order = sorted(launch.parts, key=lambda i: parts[i].source)
    if any(parts[order[i]].source - parts[order[0]].source != i * width for i in range(channels)):
        return None
    return replace(launch, kind="planes", variant=channels if run.source > 0 else -channels, parts=tuple(order))


def _rearranged(launch: Launch, parts: Sequence[Part]) -> Launch | None:
    """Interleaved channels that stay so, with the pixels or the channels of each turned round."""
    if len(launch.axes) < 2 or launch.width not in PIXEL_WIDTHS:
        return None
    *outer, run, inner = launch.axes
    channels, pixel = inner.counts[0], inner.counts[0] * launch.width
    if (
        inner.varies
        or not 2 <= channels <= MAX_CHANNELS
        or abs(inner.source) != launch.width
        or abs(run.source) != pixel
    ):
        return None
    if min(run.counts) < VECTOR // launch.width or not (launch.flat or run.target == pixel):
        return None
    backward = run.source < 0
    offset = launch.source_offset - (0 if inner.source > 0 else (channels - 1) * launch.width)
    axes = (*outer, Axis(run.counts, run.source, pixel))
    variant = -channels if backward else channels
    return replace(launch, kind="rearranged", variant=variant, axes=axes, source_offset=offset)


def _tiles(launch: Launch, parts: Sequence[Part]) -> Launch | None:
    """Source neighbours along another axis than the target's run."""
    *outer, run = launch.axes
    if abs(run.source) == launch.width or run.varies or run.counts[0] * launch.width < VECTOR:
        return None
    if any(axis.varies for axis in outer[1:]):
        return None  # the targets' strides would differ by part
    unit = next((k for k, axis in enumerate(outer) if abs(axis.source) == launch.width and not axis.varies), None)
    if unit is None or outer[unit].counts[0] * launch.width < VECTOR:
        return None
    axes = _with_target_strides(launch)
    axis, source, target = axes[unit], launch.source_offset, launch.target_offset
    if axis.source < 0:
        source += (axis.counts[0] - 1) * axis.source
        target += (axis.counts[0] - 1) * axis.target
        axis = Axis(axis.counts, -axis.source, -axis.target)
    ordered = (*axes[:unit], *axes[unit + 1 : -1], axis, axes[-1])
    return replace(launch, kind="tiles", axes=ordered, flat=False, source_offset=source, target_offset=target)


def _with_target_strides(launch: Launch) -> tuple[Axis, ...]:
    if not launch.flat:
        return launch.axes
    axes, stride = [], launch.width
    for axis in reversed(launch.axes):
        axes.append(Axis(axis.counts, axis.source, stride))
        stride *= axis.counts[0]
    return tuple(reversed(axes))
