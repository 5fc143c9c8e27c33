"""How to copy: from shapes and byte strides to launches of kernels. Integers only; executors add grids and addresses.

A part is one view and where its items go. Parts that share strides, and shape but for one axis, share a launch. Axes
are dropped, ordered by the target, turned round and merged until as few are left as can be; then the inner axis says
which kernel moves them.
"""

from collections.abc import Sequence

from gpuslice.engine.plan.axes import VECTOR, merged, ordered, reduced, widened
from gpuslice.engine.plan.kernels import MAX_CHANNELS, all_kernels, classified
from gpuslice.engine.plan.parts import Axis, Launch, Part, groups_of

__all__ = ["MAX_CHANNELS", "MAX_RANK", "VECTOR", "Axis", "Launch", "Part", "all_kernels", "plan"]

# What the kernels' parameters hold; so many axes are seldom left.
MAX_RANK = 8


def plan(parts: Sequence[Part], itemsize: int) -> tuple[list[Launch], list[int]]:
    """Give the launches that copy the parts, and the parts that kernels can't take, since they keep too many axes.

    Only alignments matter, to a vector, and distances of up to MAX_CHANNELS sources: a plan holds for all parts that
    have the same.
    """
    launches: list[Launch] = []
    left: list[int] = []
    for group in groups_of(parts, itemsize):
        launch = widened(merged(ordered(reduced(group, parts, itemsize))), parts)
        if len(launch.axes) > MAX_RANK:
            left += launch.parts
        else:
            launches.append(classified(launch, parts))
    return launches, left
