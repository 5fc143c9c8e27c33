"""Which kernel moves a launch, by its inner axes."""

from collections import abc

from gpuslice.engine.plan.axes import forward_in_source, with_target_strides
from gpuslice.engine.plan.channels import interleaved, planes
from gpuslice.engine.plan.kernel_sources import MAX_RANK, MOST_PIXEL_CHANNELS, PIXEL_CHANNELS, VECTOR_BYTES, is_listed
from gpuslice.engine.plan.parts import Axis, LaunchPlan, Part
from gpuslice.engine.plan.stacks import stacked, unstacked

# Larger pixels are runs of their own: most of a cache line is used at once.
MOST_PIXEL_BYTES = 64


def with_kernel(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan:
    """Choose the kernel: the first of these kinds that can move the launch, else rows."""
    inner = launch.axes[-1]
    # Long runs of neighbours are rows for sure: no kernel has pixels of so many channels.
    if abs(inner.source) != launch.width or min(inner.counts) <= MOST_PIXEL_CHANNELS:
        for choose in (planes, interleaved, unstacked, stacked, _rearranged, _tiles, _pixel_tiles, _pixel_rows):
            chosen = choose(launch, parts)
            # Some kernels have an axis more.
            if chosen is not None and is_listed(*chosen.kernel) and len(chosen.axes) <= MAX_RANK:
                return chosen
    step, rest = divmod(inner.source, launch.width)
    return launch._replace(variant=step if not rest and is_listed("rows", launch.width, step) else 0)


def _rearranged(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan | None:
    """Interleaved channels that stay so, with the pixels or the channels of each reversed."""
    if len(launch.axes) < 2:
        return None
    *outer, run, inner = launch.axes
    channels, pixel = inner.counts[0], inner.counts[0] * launch.width
    if abs(run.source) != pixel or abs(inner.source) != launch.width or inner.varies or channels < 2:
        return None
    variant = -channels if run.source < 0 else channels
    if not is_listed("rearranged", launch.width, variant) or min(run.counts) < VECTOR_BYTES // launch.width:
        return None
    if not (launch.flat or run.target == pixel):
        return None
    offset = launch.source_offset - (0 if inner.source > 0 else (channels - 1) * launch.width)
    axes = (*outer, Axis(run.counts, run.source, pixel))
    return launch._replace(kind="rearranged", variant=variant, axes=axes, source_offset=offset)


def _tiles(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan | None:
    """A source that is contiguous along another axis than the target's run."""
    transposed = _transposed(launch, launch.width)
    return transposed and transposed._replace(kind="tiles")


def _pixel_tiles(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan | None:
    """The same of pixels, the channels of which may be reversed."""
    *outer, inner = launch.axes
    if not outer or inner.varies:
        return None
    if inner.source == launch.width == VECTOR_BYTES:
        half = launch.width // 2  # the kernels move pixels of wider channels as more channels
        inner = Axis((2 * inner.counts[0],), half, half)
        launch = launch._replace(width=half, axes=(*outer, inner))
    channels, pixel = inner.counts[0], inner.counts[0] * launch.width
    if abs(inner.source) != launch.width or not 2 <= channels <= MOST_PIXEL_CHANNELS:
        return None
    if pixel > (MOST_PIXEL_BYTES if inner.source > 0 else VECTOR_BYTES):
        return None
    variant = channels if is_listed("pixel_tiles", launch.width, channels) else 0
    transposed = _transposed(launch, pixel, axes_behind=1)
    return transposed and transposed._replace(kind="pixel_tiles", variant=variant)


def _pixel_rows(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan | None:
    """Pixels of three channels with others between them, or far apart."""
    if len(launch.axes) < 2:
        return None
    *outer, run, inner = launch.axes
    pixel = PIXEL_CHANNELS * launch.width
    if inner.counts != (PIXEL_CHANNELS,) or inner.source != launch.width or not run.source:
        return None
    if min(run.counts) < VECTOR_BYTES // launch.width or not (launch.flat or run.target == pixel):
        return None
    step, rest = divmod(run.source, pixel)
    variant = step if not rest and is_listed("pixel_rows", launch.width, step) else 0
    axes = (*outer, Axis(run.counts, run.source, pixel))
    return launch._replace(kind="pixel_rows", variant=variant, axes=axes)


def _transposed(launch: LaunchPlan, size: int, axes_behind: int = 0) -> LaunchPlan | None:
    """Put the axis on which the source's items of a size are neighbours before the one on which the target's are."""
    behind = len(launch.axes) - axes_behind
    neighbours = (k for k, axis in enumerate(launch.axes[: behind - 1]) if abs(axis.source) == size and not axis.varies)
    unit = next(neighbours, None)
    if unit is None or launch.axes[unit].counts[0] * size < VECTOR_BYTES:
        return None
    axes = with_target_strides(launch)
    *outer, run = axes[:behind]
    if run.target != size or abs(run.source) == size or run.varies or run.counts[0] * size < VECTOR_BYTES:
        return None
    if any(axis.varies for axis in outer[1:]):
        return None  # the targets' strides would differ by part
    axis, source, target = forward_in_source(outer[unit], launch.source_offset, launch.target_offset)
    ordered = (*outer[:unit], *outer[unit + 1 :], axis, run, *axes[behind:])
    return launch._replace(axes=ordered, flat=False, source_offset=source, target_offset=target)
