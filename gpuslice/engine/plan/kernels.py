"""Which kernel moves a launch, by its inner axes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuslice.engine.plan.axes import VECTOR
from gpuslice.engine.plan.parts import Axis, Launch, Part

WIDTHS = (1, 2, 4, 8, 16)
# Steps between small items that are cheaper to thin out of whole vectors than to gather, and for which widths.
THINNED = (2, 3, 4)
THINNED_WIDTHS = (1, 2)
PIXEL_WIDTHS = (1, 2, 4)
MAX_CHANNELS = 4


def all_kernels() -> Iterator[tuple[str, int, int]]:
    """Give the kind, width and variant of every kernel that a plan can name; see Launch."""
    for width in WIDTHS:
        thinned = THINNED if width in THINNED_WIDTHS else ()
        for step in (0, *(sign * step for step in (1, *thinned) for sign in (1, -1))):
            yield "rows", width, step
        yield "tiles", width, 0
    for kind in ("planes", "rearranged"):
        for width in PIXEL_WIDTHS:
            for channels in range(2, MAX_CHANNELS + 1):
                yield kind, width, channels
                yield kind, width, -channels


def classified(launch: Launch, parts: Sequence[Part]) -> Launch:
    """Choose the kernel."""
    for choose in (_planes, _rearranged, _tiles):
        chosen = choose(launch, parts)
        if chosen is not None:
            return chosen
    stride, width = launch.axes[-1].source, launch.width
    step, rest = divmod(stride, width)
    thinned = width in THINNED_WIDTHS and abs(step) in THINNED
    if rest or not (step in (1, -1) or thinned):
        step = 0
    return replace(launch, variant=step)


def _planes(launch: Launch, parts: Sequence[Part]) -> Launch | None:
    """Channels side by side in the source, a target each: one reading for all."""
    channels, width, run = len(launch.parts), launch.width, launch.axes[-1]
    if len(parts) > MAX_CHANNELS:
        return None  # the distances of addresses are not known
    if not (2 <= channels <= MAX_CHANNELS and width in PIXEL_WIDTHS and launch.flat) or any(
        axis.varies for axis in launch.axes
    ):
        return None
    if abs(run.source) != channels * width or run.counts[0] < VECTOR // width:
        return None
    order = sorted(launch.parts, key=lambda i: parts[i].source)
    if any(parts[order[i]].source - parts[order[0]].source != i * width for i in range(channels)):
        return None
    return replace(launch, kind="planes", variant=channels if run.source > 0 else -channels, parts=tuple(order))


def _rearranged(launch: Launch, parts: Sequence[Part]) -> Launch | None:
    """Interleaved channels that stay so, with the pixels or the channels of each turned round."""
    if len(launch.axes) < 2 or launch.width not in PIXEL_WIDTHS:
        return None
    *outer, run, inner = launch.axes
    channels, pixel = inner.counts[0], inner.counts[0] * launch.width
    if (
        inner.varies
        or not 2 <= channels <= MAX_CHANNELS
        or abs(inner.source) != launch.width
        or abs(run.source) != pixel
    ):
        return None
    if min(run.counts) < VECTOR // launch.width or not (launch.flat or run.target == pixel):
        return None
    backward = run.source < 0
    offset = launch.source_offset - (0 if inner.source > 0 else (channels - 1) * launch.width)
    axes = (*outer, Axis(run.counts, run.source, pixel))
    variant = -channels if backward else channels
    return replace(launch, kind="rearranged", variant=variant, axes=axes, source_offset=offset)


def _tiles(launch: Launch, parts: Sequence[Part]) -> Launch | None:
    """Source neighbours along another axis than the target's run."""
    *outer, run = launch.axes
    if abs(run.source) == launch.width or run.varies or run.counts[0] * launch.width < VECTOR:
        return None
    if any(axis.varies for axis in outer[1:]):
        return None  # the targets' strides would differ by part
    unit = next((k for k, axis in enumerate(outer) if abs(axis.source) == launch.width and not axis.varies), None)
    if unit is None or outer[unit].counts[0] * launch.width < VECTOR:
        return None
    axes = _with_target_strides(launch)
    axis, source, target = axes[unit], launch.source_offset, launch.target_offset
    if axis.source < 0:
        source += (axis.counts[0] - 1) * axis.source
        target += (axis.counts[0] - 1) * axis.target
        axis = Axis(axis.counts, -axis.source, -axis.target)
    ordered = (*axes[:unit], *axes[unit + 1 : -1], axis, axes[-1])
    return replace(launch, kind="tiles", axes=ordered, flat=False, source_offset=source, target_offset=target)


def _with_target_strides(launch: Launch) -> tuple[Axis, ...]:
    if not launch.flat:
        return launch.axes
    axes, stride = [], launch.width
    for axis in reversed(launch.axes):
        axes.append(Axis(axis.counts, axis.source, stride))
        stride *= axis.counts[0]
    return tuple(reversed(axes))
