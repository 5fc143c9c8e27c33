"""Which kernel moves a launch, by its inner axes."""

from collections import abc
from dataclasses import replace

from gpuslice.engine.plan.axes import with_target_strides
from gpuslice.engine.plan.channels import interleaved, planes
from gpuslice.engine.plan.kernel_sources import VECTOR_BYTES, is_listed
from gpuslice.engine.plan.parts import Axis, LaunchPlan, Part


def with_kernel(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan:
    """Choose the kernel: the first that can move the launch, of those for pixels and tiles; else rows."""
    for choose in (planes, interleaved, _rearranged, _tiles):
        chosen = choose(launch, parts)
        if chosen is not None and is_listed(*chosen.kernel):
            return chosen
    step, rest = divmod(launch.axes[-1].source, launch.width)
    return replace(launch, variant=step if not rest and is_listed("rows", launch.width, step) else 0)


def _rearranged(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan | None:
    """Interleaved channels that stay so, with the pixels or the channels of each reversed."""
    if len(launch.axes) < 2:
        return None
    *outer, run, inner = launch.axes
    channels, pixel = inner.counts[0], inner.counts[0] * launch.width
    if inner.varies or channels < 2 or abs(inner.source) != launch.width or abs(run.source) != pixel:
        return None
    if min(run.counts) < VECTOR_BYTES // launch.width or not (launch.flat or run.target == pixel):
        return None
    backward = run.source < 0
    offset = launch.source_offset - (0 if inner.source > 0 else (channels - 1) * launch.width)
    axes = (*outer, Axis(run.counts, run.source, pixel))
    variant = -channels if backward else channels
    return replace(launch, kind="rearranged", variant=variant, axes=axes, source_offset=offset)


def _tiles(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan | None:
    """A source that is contiguous along another axis than the target's run."""
    *outer, run = launch.axes
    if abs(run.source) == launch.width or run.varies or run.counts[0] * launch.width < VECTOR_BYTES:
        return None
    if any(axis.varies for axis in outer[1:]):
        return None  # the targets' strides would differ by part
    unit = next((k for k, axis in enumerate(outer) if abs(axis.source) == launch.width and not axis.varies), None)
    if unit is None or outer[unit].counts[0] * launch.width < VECTOR_BYTES:
        return None
    axes = with_target_strides(launch)
    axis, source, target = axes[unit], launch.source_offset, launch.target_offset
    if axis.source < 0:
        source += (axis.counts[0] - 1) * axis.source
        target += (axis.counts[0] - 1) * axis.target
        axis = Axis(axis.counts, -axis.source, -axis.target)
    ordered = (*axes[:unit], *axes[unit + 1 : -1], axis, axes[-1])
    return replace(launch, kind="tiles", axes=ordered, flat=False, source_offset=source, target_offset=target)
