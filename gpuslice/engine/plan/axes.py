"""Axes made as few as can be: items as wide as they are aligned, the target's order, neighbours merged."""

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

from gpuslice.engine.plan.parts import Axis, Group, Launch, Part

VECTOR = 16


def reduced(group: Group, parts: Sequence[Part], itemsize: int) -> Launch:
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


def ordered(launch: Launch) -> Launch:
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


def merged(launch: Launch) -> Launch:
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


def widened(launch: Launch, parts: Sequence[Part]) -> Launch:
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
    if not launch.flat and axes[-1].target != width:
        axes = (*axes, Axis((1,), width, width))  # what was the run is an item now; the next axis is none
    return replace(launch, width=width, axes=axes)
