"""Simpler launches for the same copy: fewer axes, and wider items."""

from collections import abc
from dataclasses import replace
from math import gcd

from gpuslice.engine.plan.kernel_sources import VECTOR_BYTES
from gpuslice.engine.plan.parts import Axis, Group, LaunchPlan, Part


def with_aligned_items(group: Group, parts: abc.Sequence[Part], itemsize: int) -> LaunchPlan:
    """Return a group's launch with items as wide as a kernel moves and as addresses and strides are aligned.

    Wider items become an axis of narrower ones.
    """
    axes = group.axes(parts)
    width = gcd(itemsize, VECTOR_BYTES, *(axis.source for axis in axes))
    if not group.flat:
        width = gcd(width, *(axis.target for axis in axes))
    for i in group.members:
        width = gcd(width, parts[i].source, parts[i].target)
    if width < itemsize:
        axes.append(Axis((itemsize // width,), width, width))
    return LaunchPlan("rows", width, 0, tuple(axes), group.flat, tuple(group.members))


def in_target_order(launch: LaunchPlan) -> LaunchPlan:
    """Reverse axes along which the target goes backward, and sort axes by the target's strides."""
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
        axes.append(Axis((1,), launch.width, launch.width))  # gaps between the target's items: runs of one
    return replace(launch, axes=tuple(axes), source_offset=source, target_offset=target)


def with_merged_axes(launch: LaunchPlan) -> LaunchPlan:
    """Merge neighbours that are one axis, forward or backward, in both source and target."""
    axes: list[Axis] = []
    for axis in launch.axes:
        if axes and not axis.varies:
            outer, count = axes[-1], axis.counts[0]
            if outer.source == axis.source * count and (launch.flat or outer.target == axis.target * count):
                axes[-1] = Axis(tuple(n * count for n in outer.counts), axis.source, axis.target)
                continue
        axes.append(axis)
    return replace(launch, axes=tuple(axes) or (Axis((1,), launch.width, launch.width),))


def with_wider_items(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan:
    """Make wider items of a contiguous inner axis: pairs of items that stay together move as one."""
    *outer, inner = launch.axes
    width = launch.width
    while inner.source == width < VECTOR_BYTES and all(count % 2 == 0 for count in inner.counts):
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
        axes = (*axes, Axis((1,), width, width))  # the run became one item, and the next axis is no run
    return replace(launch, width=width, axes=axes)


def with_target_strides(launch: LaunchPlan) -> tuple[Axis, ...]:
    """Return a launch's axes with the strides of its targets, even if it is flat."""
    if not launch.flat:
        return launch.axes
    axes, stride = [], launch.width
    for axis in reversed(launch.axes):
        axes.append(Axis(axis.counts, axis.source, stride))
        stride *= axis.counts[0]
    return tuple(reversed(axes))


def forward_in_source(axis: Axis, source: int, target: int) -> tuple[Axis, int, int]:
    """Return an axis whose source does not go backward, and the offsets of source and target, which change with it."""
    if axis.source >= 0:
        return axis, source, target
    last = axis.counts[0] - 1
    reversed_axis = Axis(axis.counts, -axis.source, -axis.target)
    return reversed_axis, source + last * axis.source, target + last * axis.target
