"""How long a run on the CPU takes: said before it begins, from two copies that are timed on this machine."""

import time
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from bench.case import LARGE, Case
from bench.measure import MODES
from bench.runners import Runner

# What a call takes in both modes, on average over the libraries. By the bytes of the outputs it is so many copies; by
# their items, which many libraries move one by one, so many reversals. Measured on one machine; enough for minutes.
_COPIES = 1.5
_REVERSALS, _OF_PIXELS_TURNED, _TURNED = 1.0, 3.5, 12.0
# Before the rounds, for each library: arrays are made and compared, which takes so many copies, and calls are made.
_ARRAYS, _CALLS = 6.0, 3.0
# Seconds of a small cell: making it, and a sample.
_CELL, _SAMPLE = 0.02, 5e-4
_REVERSED = 4 << 20


def in_words(seconds: float) -> str:
    """Return a time in words."""
    return f"about {max(1, seconds):.0f} seconds" if seconds < 100 else f"about {seconds / 60:.0f} minutes"


def seconds_of(cells: Sequence[tuple[Case, int]], runners: Sequence[Runner], rounds: int) -> float:
    """Return about how many seconds the cells take: each a case and its bytes per item."""
    runners = [runner for runner in runners if not runner.missing()]
    items = [sum(map(prod, case.output_shapes(case.shape(case.size // width, width)))) for case, width in cells]
    copied, reversed_ = _probes(max(count * width for count, (_, width) in zip(items, cells, strict=True)))
    total = 0.0
    for count, (case, width) in zip(items, cells, strict=True):
        calls = _CALLS + rounds
        by_byte = (_ARRAYS + _COPIES * calls) * count * width * copied
        by_item = _reversals(case) * calls * count * reversed_
        libraries = sum(runner.times(case) for runner in runners)
        total += libraries * (by_byte + by_item + len(MODES) * rounds * _SAMPLE) + _CELL
    return total


def _reversals(case: Case) -> float:
    return (_OF_PIXELS_TURNED if case.recipe else _TURNED) if case.axes else _REVERSALS


def _probes(size: int) -> tuple[float, float]:
    """Return the seconds of a copy to a new array per byte, for outputs of a size, and of a reversal per item."""
    source = np.ones(min(size, LARGE), np.uint8)
    part = source[:_REVERSED]
    target = np.zeros_like(part)
    copied = _least(source.copy) / source.size
    return copied, _least(lambda: np.copyto(target, part[::-1])) / part.size


def _least(call: Callable[[], Any]) -> float:
    """Return the least seconds of a few calls."""
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        held = call()
        seconds.append(time.perf_counter() - began)
        del held
    return min(seconds)
