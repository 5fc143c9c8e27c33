"""From parts to launches, step by step."""

from collections import abc

from gpuslice.engine.plan.axes import simplified
from gpuslice.engine.plan.channels import interleaved_pair
from gpuslice.engine.plan.kernel_sources import MAX_RANK
from gpuslice.engine.plan.kernels import with_kernel
from gpuslice.engine.plan.parts import LaunchPlan, Part, groups_of


def plan(parts: abc.Sequence[Part], itemsize: int) -> tuple[list[LaunchPlan], list[int]]:
    """Return the launches that copy the parts, and the indices of the parts that keep too many axes for the kernels.

    Notes
    -----
    Of the addresses only the alignment to a vector matters, and whether up to MAX_CHANNELS sources or targets are
    neighbours in a pixel. A plan holds for all parts that agree in these.
    """
    launches, left = [], list[int]()
    for group in groups_of(parts, itemsize):
        launch = simplified(group, parts, itemsize)
        if len(launch.axes) > MAX_RANK:
            left += launch.parts
        else:
            launches.append(launch)
    pair = interleaved_pair(launches, parts)
    return [pair] if pair else [with_kernel(launch, parts) for launch in launches], left
