"""Which kernel moves a launch, by its inner axes."""

from collections import abc
from dataclasses import replace

from gpuslice.engine.plan.kernel_sources import KERNELS, VECTOR_BYTES, is_listed
from gpuslice.engine.plan.parts import Axis, LaunchPlan, Part

# Launches of more parts never become planes, so that a plan need not know the distances between their sources.
MAX_CHANNELS = max(abs(kernel.variant) for kernel in KERNELS if kernel.kind == "planes")


def with_kernel(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan:
    """Choose the kernel: of planes, rearranged and tiles the first that can move the launch, else rows."""
    for choose in (_planes, _rearranged, _tiles):
        chosen = choose(launch, parts)
        if chosen is not None and is_listed(*chosen.kernel):
            return chosen
    step, rest = divmod(launch.axes[-1].source, launch.width)
    return replace(launch, variant=step if not rest and is_listed("rows", launch.width, step) else 0)


def _planes(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan | None:
    """Channels side by side in the source, one target each: the source is read once for all."""
    channels, width, run = len(launch.parts), launch.width, launch.axes[-1]
    if channels < 2 or len(parts) > MAX_CHANNELS or not launch.flat or any(axis.varies for axis in launch.axes):
        return None
    if abs(run.source) != channels * width or run.counts[0] < VECTOR_BYTES // width:
        return None
    order = sorted(launch.parts, key=lambda i: parts[i].source)
    if any(parts[order[i]].source - parts[order[0]].source != i * width for i in range(channels)):
        return None
    return replace(launch, kind="planes", variant=channels if run.source > 0 else -channels, parts=tuple(order))


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
    axes = _with_target_strides(launch)
    axis, source, target = axes[unit], launch.source_offset, launch.target_offset
    if axis.source < 0:
        source += (axis.counts[0] - 1) * axis.source
        target += (axis.counts[0] - 1) * axis.target
        axis = Axis(axis.counts, -axis.source, -axis.target)
    ordered = (*axes[:unit], *axes[unit + 1 : -1], axis, axes[-1])
    return replace(launch, kind="tiles", axes=ordered, flat=False, source_offset=source, target_offset=target)


def _with_target_strides(launch: LaunchPlan) -> tuple[Axis, ...]:
    if not launch.flat:
        return launch.axes
    axes, stride = [], launch.width
    for axis in reversed(launch.axes):
        axes.append(Axis(axis.counts, axis.source, stride))
        stride *= axis.counts[0]
    return tuple(reversed(axes))
