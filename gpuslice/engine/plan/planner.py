"""From parts to launches, step by step."""

from collections import abc

from gpuslice.engine.plan.axes import in_target_order, with_aligned_items, with_merged_axes, with_wider_items
from gpuslice.engine.plan.channels import interleaved_pair
from gpuslice.engine.plan.kernel_sources import MAX_RANK
from gpuslice.engine.plan.kernels import with_kernel
from gpuslice.engine.plan.parts import Group, LaunchPlan, Part, groups_of


def plan(parts: abc.Sequence[Part], itemsize: int) -> tuple[list[LaunchPlan], list[int]]:
    """Return the launches that copy the parts, and the indices of the parts that keep too many axes for the kernels.

    Notes
    -----
    Of the addresses only the alignment to a vector matters, and whether up to MAX_CHANNELS sources or targets are
    neighbours in a pixel. A plan holds for all parts that agree in these.
    """
    simplified = [_simplified(group, parts, itemsize) for group in groups_of(parts, itemsize)]
    left = [i for launch in simplified if len(launch.axes) > MAX_RANK for i in launch.parts]
    launches = [launch for launch in simplified if len(launch.axes) <= MAX_RANK]
    pair = interleaved_pair(launches, parts)
    return [pair] if pair else [with_kernel(launch, parts) for launch in launches], left


def _simplified(group: Group, parts: abc.Sequence[Part], itemsize: int) -> LaunchPlan:
    launch = in_target_order(with_aligned_items(group, parts, itemsize))
    return with_wider_items(with_merged_axes(launch), parts)
