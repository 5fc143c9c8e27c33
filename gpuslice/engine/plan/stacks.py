"""Kernels for many arrays that are the items of one array's rows: unstacked as targets, stacked as sources."""

from collections import abc

from gpuslice.engine.plan.axes import forward_in_source, with_target_strides
from gpuslice.engine.plan.kernel_sources import MAX_CHANNELS, VECTOR_BYTES
from gpuslice.engine.plan.parts import Axis, LaunchPlan, Part


def unstacked(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan | None:
    """Columns of the source, with a target for each."""
    if not launch.flat or not _are_enough(launch, parts) or launch.varying is not None:
        return None
    *outer, run = with_target_strides(launch)
    if not _is_long(run, launch.width) or abs(run.source) < len(parts) * launch.width:
        return None
    if not are_apart([part.source for part in parts], launch.width):
        return None
    axes = (*outer, Axis((len(parts),), launch.width, 0), run)
    return launch._replace(kind="unstacked", axes=axes, flat=False)


def stacked(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan | None:
    """Sources that become the columns of the target."""
    if launch.flat or len(launch.axes) < 2 or not _are_enough(launch, parts):
        return None
    *outer, unit, inner = launch.axes
    if inner.counts != (1,) or launch.varying is not None or abs(unit.source) != launch.width:
        return None
    if not _is_long(unit, launch.width) or not are_apart([part.target for part in parts], launch.width):
        return None
    unit, source, target = forward_in_source(unit, launch.source_offset, launch.target_offset)
    axes = (*outer, unit, Axis((len(parts),), 0, launch.width))
    return launch._replace(kind="stacked", axes=axes, source_offset=source, target_offset=target)


def _are_enough(launch: LaunchPlan, parts: abc.Sequence[Part]) -> bool:
    """Return whether a launch has all parts, and more of them than other kernels take together."""
    # Wide channels have no kernel that separates them in registers.
    return len(launch.parts) == len(parts) > (MAX_CHANNELS if launch.width < VECTOR_BYTES // 2 else 1)


def _is_long(axis: Axis, width: int) -> bool:
    """Return whether the axis along which each array lies has a vector's worth of items, and more than one."""
    return axis.counts[0] * width >= VECTOR_BYTES and axis.counts[0] > 1


def are_apart(addresses: abc.Sequence[int], distance: int) -> bool:
    """Return whether the distance from each address to the next is a positive number of bytes."""
    first, count = addresses[0], len(addresses)
    return addresses[-1] - first == (count - 1) * distance and [
        *range(first, first + count * distance, distance)
    ] == list(addresses)
