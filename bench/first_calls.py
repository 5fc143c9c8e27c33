"""Calls of kinds that were not seen before: with other bounds, or on arrays of other shapes. Part of `bench tune`."""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gpuslice as gs

_KINDS = 1000
_PHOTO = np.random.default_rng(1).integers(0, 255, (300, 400, 3), np.uint8)


def _image(number: int) -> Any:
    """Return an image of a size of its own."""
    return _PHOTO[: 20 + number % 50, : 30 + number // 50].copy()


def _corner(number: int) -> list[int]:
    return [number % 200, number // 200]


# What is called with the number of a kind, and the arguments that are not part of the call.
CASES: dict[str, tuple[Callable[[int], Any], Callable[[Any, int], Any]]] = {
    "crop of 32 x 32": (
        lambda number: _PHOTO,
        lambda x, number: gs.slice(x, _corner(number), [place + 32 for place in _corner(number)]),
    ),
    "crop, mirrored": (
        lambda number: _PHOTO,
        lambda x, number: gs.slice(
            x, [number % 200, number // 200 + 32], [number % 200 + 32, number // 200], [0, 1], [1, -1]
        ),
    ),
    "mirror": (_image, lambda x, number: gs.slice(x, [-1], [-(2**31)], [1], [-1])),
    "split into channels": (_image, lambda x, number: gs.split(x, num_outputs=3, axis=2)),
    "join of 3 planes": (
        lambda number: [plane.copy() for plane in _image(number).transpose(2, 0, 1)],
        lambda planes, number: gs.concat_from_sequence(planes, axis=2, new_axis=1),
    ),
}


def lines() -> Iterator[str]:
    """Yield a table: the median microseconds of the first three calls of a kind."""
    yield f"{'calls of one kind':24}{'first':>8}{'second':>8}{'third':>8}"
    for name, (make, call) in CASES.items():
        gs.clear_caches()
        times: list[list[float]] = [[], [], []]
        for number in range(_KINDS):
            given = make(number)
            for kept in times:
                start = time.perf_counter()
                call(given, number)
                kept.append(time.perf_counter() - start)
        yield f"{name:24}" + "".join(f"{statistics.median(kept) * 1e6:8.1f}" for kept in times)
