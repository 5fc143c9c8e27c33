"""How long a run on the CPU takes: said before it begins, from the time of a copy on this machine."""

import time
from collections.abc import Sequence
from math import prod

import numpy as np

from bench.case import Case
from bench.measure import MODES
from bench.runners import Runner

# What a call takes on average over the libraries, in copies of the outputs: by their bytes, and by their items, which
# many libraries move one by one. Measured on one machine; enough for a time in minutes.
_BY_BYTE, _BY_ITEM, _BY_ITEM_OF_PIXELS_TURNED, _BY_ITEM_TURNED = 1.7, 3.0, 10.0, 33.0
# Before the rounds, for each library: arrays are made and compared, and each call runs a few times.
_ARRAYS, _CALLS = 6.0, 3.0
# Seconds of a small cell: making it, and a sample.
_CELL, _SAMPLE = 0.02, 5e-4
_PROBE = 32 << 20


def in_words(seconds: float) -> str:
    """Return a time in words."""
    return f"about {max(1, seconds):.0f} seconds" if seconds < 100 else f"about {seconds / 60:.0f} minutes"


def seconds_of(cells: Sequence[tuple[Case, int]], runners: Sequence[Runner], rounds: int) -> float:
    """Return about how many seconds the cells take: each a case and its bytes per item."""
    runners = [runner for runner in runners if not runner.missing()]
    of_a_byte = _of_a_copied_byte()
    total = 0.0
    for case, width in cells:
        count = sum(runner.times(case) for runner in runners)
        size = sum(map(prod, case.output_shapes(case.shape(case.size // width, width)))) * width
        copies = _ARRAYS + _copies(case, width) * (_CALLS + rounds)
        total += count * (size * copies * of_a_byte + len(MODES) * rounds * _SAMPLE) + _CELL
    return total


def _copies(case: Case, width: int) -> float:
    """Return how many copies of the outputs a call in each mode takes."""
    by_item = (_BY_ITEM_OF_PIXELS_TURNED if case.recipe else _BY_ITEM_TURNED) if case.axes else _BY_ITEM
    return _BY_BYTE + by_item / width


def _of_a_copied_byte() -> float:
    """Return how many seconds a large copy takes on this machine, per byte."""
    source, seconds = np.ones(_PROBE, np.uint8), []
    target = np.zeros_like(source)
    for _ in range(5):
        began = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - began)
    return min(seconds) / _PROBE
