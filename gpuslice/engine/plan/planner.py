"""From parts to launches, step by step."""

from collections import abc

from gpuslice.engine.plan.axes import in_target_order, with_aligned_items, with_merged_axes, with_wider_items
from gpuslice.engine.plan.kernel_sources import MAX_RANK
from gpuslice.engine.plan.kernels import with_kernel
from gpuslice.engine.plan.parts import LaunchPlan, Part, groups_of


def plan(parts: abc.Sequence[Part], itemsize: int) -> tuple[list[LaunchPlan], list[int]]:
    """Return the launches that copy the parts, and the indices of the parts that keep too many axes for the kernels.

    Notes
    -----
    Of the addresses only the alignment to a vector matters, and for up to MAX_CHANNELS sources their distances. A plan
    holds for all parts that agree in these.
    """
    launches: list[LaunchPlan] = []
    left: list[int] = []
    for group in groups_of(parts, itemsize):
        launch = in_target_order(with_aligned_items(group, parts, itemsize))
        launch = with_wider_items(with_merged_axes(launch), parts)
        if len(launch.axes) > MAX_RANK:
            left += launch.parts
        else:
            launches.append(with_kernel(launch, parts))
    return launches, left
