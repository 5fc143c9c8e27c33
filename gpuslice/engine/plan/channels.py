"""Kernels for pixels whose channels are arrays of their own, on one side: planes as targets, interleaved as sources."""

from collections import abc

from gpuslice.engine.plan.axes import forward_in_source, with_target_strides
from gpuslice.engine.plan.kernel_sources import (
    CHANNEL_KINDS,
    KERNELS,
    MAX_CHANNELS,
    VECTOR_BYTES,
    is_listed,
    variant_of,
)
from gpuslice.engine.plan.parts import Axis, LaunchPlan, Part

# Targets farther apart than the largest pixel are never neighbours in one.
PIXEL_BYTES = max(kernel.width * sum(kernel.channels) for kernel in KERNELS if kernel.kind in CHANNEL_KINDS)


def planes(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan | None:
    """Channels side by side in the source, with a target for each: the source is read once for all."""
    if len(launch.parts) == 1:
        return _planes_of_one(launch)
    if len(parts) > MAX_CHANNELS or not launch.flat:
        return None
    *outer, run = launch.axes
    items = (1,) * len(launch.parts)
    if run.varies and outer and run.source == launch.width:  # such as three channels and one
        items, run = run.counts, outer.pop()
    pixel = sum(items) * launch.width
    if abs(run.source) != pixel or run.varies or any(axis.varies for axis in outer):
        return None
    order = sorted(range(len(items)), key=lambda k: parts[launch.parts[k]].source)
    sources = [parts[launch.parts[k]].source for k in order]
    items = tuple([items[k] for k in order])
    if not _are_neighbours(sources, items, launch.width):
        return None
    members = tuple([launch.parts[k] for k in order])
    return _of_channels(launch._replace(axes=(*outer, run), parts=members), "planes", items)


def _planes_of_one(launch: LaunchPlan) -> LaunchPlan | None:
    """One view whose axis of channels lies outside of the pixels in the target: height, width, channel to planes."""
    width = launch.width
    count = abs(launch.axes[-1].source) // width
    if not 2 <= count <= MAX_CHANNELS:
        return None
    *outer, run = with_target_strides(launch)
    at = next((k for k, axis in enumerate(outer) if abs(axis.source) == width), None)
    if at is None or outer[at].counts != (count,) or abs(run.source) != count * width or run.target != width:
        return None
    channel, source, target = forward_in_source(outer.pop(at), launch.source_offset, launch.target_offset)
    whole = launch._replace(
        axes=(*outer, run),
        flat=False,
        parts=launch.parts * count,
        source_offset=source,
        target_offset=target,
        channel_target=channel.target,
    )
    return _of_channels(whole, "planes", (1,) * count)


def interleaved(launch: LaunchPlan, parts: abc.Sequence[Part]) -> LaunchPlan | None:
    """Sources that become the channels of one target: each is read once, and the target is written once."""
    if len(launch.axes) < 2 or abs(launch.axes[-2].source) != launch.width:
        return None
    if len(launch.parts) == 1:
        return _interleaved_of_one(launch)
    *outer, run, inner = launch.axes
    items = (1,) * len(launch.parts)
    if launch.flat or inner.counts != (1,) or len(parts) > MAX_CHANNELS or run.target != len(items) * launch.width:
        return None
    order = tuple(sorted(launch.parts, key=lambda i: parts[i].target))
    if launch.varying is not None or not _are_neighbours([parts[i].target for i in order], items, launch.width):
        return None
    return _of_channels(launch._replace(axes=(*outer, run), parts=order), "interleaved", items)


def _interleaved_of_one(launch: LaunchPlan) -> LaunchPlan | None:
    """One view whose axis of channels lies outside of the pixels in the source: planes to height, width, channel."""
    count = launch.axes[-1].counts[0]
    if not 2 <= count <= MAX_CHANNELS:
        return None
    *outer, run, channel = with_target_strides(launch)
    if channel.target != launch.width or run.target != count * launch.width:
        return None
    whole = launch._replace(axes=(*outer, run), parts=launch.parts * count, channel_source=channel.source)
    return _of_channels(whole, "interleaved", (1,) * count)


def interleaved_pair(launches: abc.Sequence[LaunchPlan], parts: abc.Sequence[Part]) -> LaunchPlan | None:
    """Return two launches as one if the pixels of both become one pixel, such as three channels and one."""
    if len(launches) != 2 or len(parts) > MAX_CHANNELS:
        return None
    if any(len(launch.parts) != 1 or len(launch.axes) < 2 for launch in launches):
        return None
    first, second = sorted(launches, key=lambda launch: parts[launch.parts[0]].target)
    width, items = first.width, (first.axes[-1].counts[0], second.axes[-1].counts[0])
    if width != second.width or len(first.axes) != len(second.axes) or first.axes[-2].target != sum(items) * width:
        return None
    if any(launch.flat or launch.axes[-1].source != width or _has_offsets(launch) for launch in (first, second)):
        return None
    if not _are_neighbours([parts[launch.parts[0]].target for launch in (first, second)], items, width):
        return None
    axes = [Axis(axis.counts, axis.source // items[0], axis.target) for axis in first.axes[:-1]]
    for axis, one, other in zip(axes, first.axes, second.axes, strict=False):
        if (one.source, other.source) != (axis.source * items[0], axis.source * items[1]):
            return None
        if (one.counts, one.target) != (other.counts, other.target):
            return None
    if abs(axes[-1].source) != width:
        return None
    members = first.parts + second.parts
    return _of_channels(first._replace(axes=tuple(axes), parts=members), "interleaved", items)


def _of_channels(launch: LaunchPlan, kind: str, items: tuple[int, ...]) -> LaunchPlan | None:
    """Return a launch for a kernel of channels: ``items`` are those of a pixel in each array; None if there is none."""
    run = launch.axes[-1]
    variant = variant_of(items) * (1 if run.source > 0 else -1)
    if run.counts[0] < VECTOR_BYTES // launch.width or not is_listed(kind, launch.width, variant):
        return None
    chosen = launch._replace(kind=kind, variant=variant)
    return chosen if chosen.flat or not _is_flat(chosen) else chosen._replace(flat=True)


def _is_flat(launch: LaunchPlan) -> bool:
    """Return whether a target is contiguous as a whole."""
    stride = launch.item_bytes
    for axis in reversed(launch.axes):
        if axis.target != stride:
            return False
        stride *= axis.counts[0]
    return True


def _are_neighbours(addresses: abc.Sequence[int], items: abc.Sequence[int], width: int) -> bool:
    """Return whether arrays begin where the items of the array before end, in a pixel."""
    ends = [address + count * width for address, count in zip(addresses, items, strict=True)]
    return addresses[1:] == ends[:-1]


def _has_offsets(launch: LaunchPlan) -> bool:
    return bool(launch.source_offset or launch.target_offset)
