"""From pairs of views to launches with addresses: what the executors of kernels share. Plans are cached."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from gpuslice.arrays import Array, itemsize
from gpuslice.engine.packing import Packed
from gpuslice.engine.plan import MAX_CHANNELS, VECTOR, Launch, Part, plan
from gpuslice.engine.view import View
from gpuslice.rules import Region

# Plans of more parts hold megabytes, so that fewer of them are kept.
_FEW_PARTS = 64

Pairs = Sequence[tuple[View, View]]
# Packs a launch of parts whose addresses are reduced to their alignment; the last argument is its bytes.
Packer = Callable[[Launch, Sequence[Part], int], list[Packed]]
Geometry = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class Prepared(NamedTuple):
    """A launch with its parameters and the bytes that it moves."""

    packed: Packed
    parameters: bytes
    size: int


def by_itemsize(pairs: Pairs) -> Iterator[tuple[int, Pairs]]:
    """Put pairs together that have items of one size, which is all that kernels know of a dtype."""
    sizes: dict[int, list[tuple[View, View]]] = {}
    for pair in pairs:
        sizes.setdefault(itemsize(pair[0].array), []).append(pair)
    yield from sizes.items()


def prepare(
    pairs: Pairs, size: int, pointer: Callable[[Array], int], packer: Packer
) -> tuple[list[Prepared], list[tuple[View, View]]]:
    """Give the launches that copy each source to its target, and the pairs that kernels can't copy.

    Parameters
    ----------
    pairs : sequence of (View, View)
        Of items of ``size`` bytes, in one memory.
    size : int
    pointer : callable
        Gives the address of an array.
    packer : callable
        Packs a launch for the executor.
    """
    sources, targets, geometry = [], [], []
    array, base = None, 0
    for source, target in pairs:
        if source.array is not array:  # the parts of a split have one
            array, base = source.array, pointer(source.array)
        offset, source_strides = _steps(source.region, source.array.strides)
        sources.append(base + offset)
        offset, target_strides = _steps(target.region, target.array.strides)
        targets.append(pointer(target.array) + offset)
        geometry.append((source_strides, target_strides, source.region.shape))
    aligned = tuple([target % VECTOR for target in targets])
    planner = _planned if len(pairs) <= _FEW_PARTS else _planned_for_many
    planned, left = planner(packer, size, tuple(geometry), _alignment(sources), aligned)
    prepared = [Prepared(packed, packed.fill(sources, targets), moved) for packed, moved in planned]
    return prepared, [pairs[i] for i in left]


@lru_cache(maxsize=1 << 14)
def _steps(region: Region, strides: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Give the bytes from an array's first item to a region's, and the region's byte strides."""
    offset = sum(first * stride for first, stride in zip(region.first, strides, strict=True))
    return offset, tuple([stride * step for stride, step in zip(strides, region.step, strict=True)])


def _alignment(sources: Sequence[int]) -> tuple[int, ...]:
    """Give what a plan depends on of the sources: where each lies in a vector, and how far apart a few do."""
    if len(sources) > MAX_CHANNELS:
        return tuple([source % VECTOR for source in sources])
    base = sources[0] - sources[0] % VECTOR
    return tuple([source - base for source in sources])


def _plan(
    packer: Packer, size: int, geometry: tuple[Geometry, ...], sources: tuple[int, ...], targets: tuple[int, ...]
) -> tuple[list[tuple[Packed, int]], list[int]]:
    """Plan and pack; addresses are reduced to what matters of them."""
    parts = [
        Part(source, strides, target, target_strides, shape)
        for source, target, (strides, target_strides, shape) in zip(sources, targets, geometry, strict=True)
    ]
    launches, left = plan(parts, size)

    def moved(launch: Launch) -> int:
        return sum(prod(parts[i].shape) for i in launch.parts) * size

    packed = [one for launch in launches for one in packer(launch, parts, moved(launch))]
    return [(one, moved(one.launch)) for one in packed], left


_planned = lru_cache(maxsize=512)(_plan)
_planned_for_many = lru_cache(maxsize=8)(_plan)
