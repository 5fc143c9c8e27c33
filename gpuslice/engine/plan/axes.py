"""Simpler launches for the same copy: fewer axes, and wider items."""

from collections import abc
from math import gcd

from gpuslice.engine.plan.kernel_sources import VECTOR_BYTES
from gpuslice.engine.plan.parts import Axis, Group, LaunchPlan, Part


def simplified(group: Group, parts: abc.Sequence[Part], itemsize: int) -> LaunchPlan:
    """Return a group's launch with few axes, and items as wide as a kernel moves and as all its parts are aligned."""
    axes, flat, members = group.axes(parts), group.flat, group.members
    # All that has to be a multiple of an item's width. Of the addresses only this matters.
    unit = gcd(VECTOR_BYTES, *[parts[i].source for i in members], *[parts[i].target for i in members])
    width = gcd(itemsize, unit, *_strides(axes, flat))
    if width < itemsize:
        axes.append(Axis((itemsize // width,), width, width))
    source = target = 0
    if not flat:
        axes, source, target = _in_target_order(axes, width)
    axes, width = _with_wider_items(_merged(axes, width, flat), width, flat, gcd(unit, source, target))
    return LaunchPlan("rows", width, 0, tuple(axes), flat, tuple(members), source, target)


def _strides(axes: abc.Sequence[Axis], flat: bool) -> list[int]:
    """Return the strides of axes that mean something."""
    sources = [axis.source for axis in axes]
    return sources if flat else sources + [axis.target for axis in axes]


def _in_target_order(axes: abc.Sequence[Axis], width: int) -> tuple[list[Axis], int, int]:
    """Reverse axes along which the target goes backward, and sort axes by the target's strides.

    Return the axes, and the bytes from the addresses of source and target to where the axes start.
    """
    ordered, source, target = [], 0, 0
    for axis in axes:
        if axis.target < 0:
            source += (axis.counts[0] - 1) * axis.source
            target += (axis.counts[0] - 1) * axis.target
            axis = Axis(axis.counts, -axis.source, -axis.target)
        ordered.append(axis)
    ordered.sort(key=lambda axis: -axis.target)
    if not ordered or ordered[-1].target != width:
        ordered.append(Axis((1,), width, width))  # gaps between the target's items: runs of one
    return ordered, source, target


def _merged(axes: abc.Sequence[Axis], width: int, flat: bool) -> list[Axis]:
    """Merge neighbours that are one axis, forward or backward, in both source and target."""
    merged: list[Axis] = []
    for axis in axes:
        if merged and len(axis.counts) == 1:
            outer, count = merged[-1], axis.counts[0]
            if outer.source == axis.source * count and (flat or outer.target == axis.target * count):
                merged[-1] = Axis(tuple([n * count for n in outer.counts]), axis.source, axis.target)
                continue
        merged.append(axis)
    return merged or [Axis((1,), width, width)]


def _with_wider_items(axes: list[Axis], width: int, flat: bool, unit: int) -> tuple[list[Axis], int]:
    """Make wider items of a contiguous inner axis: items that stay together move as one.

    ``unit`` is a power of two that divides all addresses. Return the axes and the width.
    """
    *outer, inner = axes
    if inner.source != width or width == unit:
        return axes, width
    times = gcd(gcd(unit, *_strides(outer, flat)) // width, *inner.counts)
    if times == 1:
        return axes, width
    width *= times
    inner = Axis(tuple([count // times for count in inner.counts]), width, width)
    if inner.counts != (1,) or not outer:
        return [*outer, inner], width
    if not flat and outer[-1].target != width:
        outer.append(Axis((1,), width, width))  # the run became one item, and the next axis is no run
    return outer, width


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
