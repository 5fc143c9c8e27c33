"""Time a case: check the result of each library, then time all of them in every round.

A change of the machine's speed so affects all of them.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Any

import numpy as np

from bench.case import Case
from bench.peers import Call
from bench.runners import PLAIN, Runner

MODES = ("into", "fresh")
# If the quartiles are further apart than this share of the median, more rounds follow.
_DISAGREEMENT = 0.5
MOST_TIMES = 3  # as many rounds in all, then
# A first call that takes so many times the least sample is long enough, warm or not.
_LONG = 10
# A source below this on a device is about the time of a call.
_SMALL_ON_DEVICE = 1 << 16
_MOST_SOURCES = 8
_CHUNK = 1 << 20
_CLOCK_RATE = 13  # cudaDevAttrClockRate, in kHz; CuPy's device properties lack it
_SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
  const long long began = clock64();
  while (clock64() - began < cycles) {
  }
}
"""


class HostClock:
    """Wall-clock time of calls that are complete when they return.

    Parameters
    ----------
    least : float
        A sample repeats a call for at least so many seconds, to hide the cost and the resolution of the clock.
    """

    host_bound = False

    def __init__(self, least: float = 5e-4) -> None:
        self._least = least

    def sources(self, case: Case, width: int) -> list[Any]:
        """Return the source array."""
        return [case.source(width)]

    def count(self, calls: Sequence[Call]) -> int:
        """Return how many calls a sample needs."""
        once = self.sample(calls, 1)
        if once < _LONG * self._least:
            once = min(self.sample(calls, 1), self.sample(calls, 1))
        return max(1, int(self._least / max(once, 1e-6)))

    def sample(self, calls: Sequence[Call], count: int) -> float:
        """Return the seconds per call over so many calls."""
        if count == 1:
            began = time.perf_counter()
            held = calls[0]()
            seconds = time.perf_counter() - began
            del held  # freeing is not timed
            return seconds
        call = calls[0]
        began = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - began) / count


class CudaClock:
    """Time on the device by events, or of the calls themselves if they are small.

    The calls are queued behind a kernel that spins for longer than queueing takes. So the device never waits for the
    host between them. Sources and outputs are rotated, so that none is still in the L2 cache.

    Attributes
    ----------
    host_bound : bool
        Whether the last sample is a time of the host: it queued the calls more slowly than the device ran them.
    host_seconds : float
        How long the host took to queue the calls of the last sample.
    """

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy
        device, runtime = cupy.cuda.Device().id, cupy.cuda.runtime
        self._cycles = runtime.deviceGetAttribute(_CLOCK_RATE, device) * 1000  # per second
        self._cache = runtime.getDeviceProperties(device)["l2CacheSize"]
        self._spin = cupy.RawKernel(_SPIN, "spin")
        self._small = False
        self.host_bound = False
        self.host_seconds = 0.0

    def sources(self, case: Case, width: int) -> list[Any]:
        """Return copies of the source on the device, together larger than twice the L2 cache."""
        source = case.source(width)
        self._small = source.nbytes < _SMALL_ON_DEVICE
        sets = 1 if self._small else min(_MOST_SOURCES, max(2, 2 * self._cache // source.nbytes + 1))
        return [self._cupy.asarray(source) for _ in range(sets)]

    def count(self, calls: Sequence[Call]) -> int:
        """Return how many calls a sample needs."""
        return 200 if self._small else 2 * len(calls)

    def sample(self, calls: Sequence[Call], count: int) -> float:
        """Return the seconds per call over so many calls."""
        cupy = self._cupy
        if self._small:
            cupy.cuda.Device().synchronize()
            began = time.perf_counter()
            for i in range(count):
                calls[i % len(calls)]()
            cupy.cuda.Device().synchronize()
            return (time.perf_counter() - began) / count
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        for queueing in (1e-4, 1e-3, 1e-2):  # seconds per call; the next if the host needed longer
            self._spin((1,), (1,), (np.int64(queueing * count * self._cycles),))
            start.record()
            began = time.perf_counter()
            for i in range(count):
                calls[i % len(calls)]()
            self.host_seconds = time.perf_counter() - began
            end.record()
            self.host_bound = start.done
            end.synchronize()
            if not self.host_bound:
                break
        return cupy.cuda.get_elapsed_time(start, end) / 1000 / count


Clock = HostClock | CudaClock


@dataclass
class Timed:
    """What is timed for one runner in one mode.

    Attributes
    ----------
    runner : str
    mode : {"into", "fresh"}
        Whether outputs exist before the call.
    calls : list of Call
        One per source; empty if the runner cannot do it.
    count : int
        Calls per sample.
    seconds : list of float
        The samples, in seconds per call.
    note : str
        Why there are no calls.
    host_bound : bool
        Whether a sample is a time of the host although the device's is wanted.
    """

    runner: str
    mode: str
    calls: list[Call] = field(default_factory=list)
    count: int = 0
    seconds: list[float] = field(default_factory=list)
    note: str = ""
    host_bound: bool = False

    @property
    def disagree(self) -> bool:
        """Whether the samples disagree so much that their median says little."""
        low, middle, high = quartiles(self.seconds)
        return high - low > _DISAGREEMENT * middle


def quartiles(values: Sequence[float]) -> list[float]:
    """Return the lower quartile, the median and the upper quartile."""
    return quantiles(values, n=4, method="inclusive") if len(values) > 1 else list(values) * 3


def measure(
    case: Case, width: int, runners: Sequence[Runner], clock: Clock, rounds: int, most: int = MOST_TIMES
) -> list[Timed]:
    """Time every runner in both modes; one that cannot do it has a note instead of samples.

    Rows whose samples disagree are timed in up to ``most`` times as many rounds.
    """
    rows = prepare(case, width, runners, clock)
    left = [row for row in rows if row.calls]
    for turn in range(most * rounds):
        if turn >= rounds and turn % rounds == 0:
            again = {row.mode for row in left if row.disagree}
            left = [row for row in left if row.disagree or (row.runner == PLAIN and row.mode in again)]
        for row in _rotated(left, turn):
            row.seconds.append(clock.sample(row.calls, row.count))
            row.host_bound |= clock.host_bound
    return rows


def prepare(case: Case, width: int, runners: Sequence[Runner], clock: Clock) -> list[Timed]:
    """Make the calls of every runner in both modes, and compare each result with NumPy's to the last bit.

    A result that is not dense, in C's order, is wrong too: the library would have left work to do.

    Raises
    ------
    ValueError
        A runner's result differs.
    """
    sources = clock.sources(case, width)
    expected = [np.ascontiguousarray(output) for output in case.outputs(_on_host(sources[0]))]
    rows = []
    for runner, mode in ((runner, mode) for runner in runners if runner.times(case) for mode in MODES):
        row = Timed(runner.name, mode)
        rows.append(row)
        try:
            _make_calls(row, runner, case, sources, expected)
        except _WrongResult as error:
            raise ValueError(f"{runner.name} returns wrong results for {case.name}, {width} B") from error
        except NotImplementedError as error:
            row.note = str(error)
        except Exception as error:  # a library that fails is a row that says so
            row.note = f"{type(error).__name__}: {error}".split("\n")[0][:160]
        else:
            row.count = clock.count(row.calls) if row.calls else 0
    return rows


class _WrongResult(Exception):
    """A result differs from NumPy's."""


def _make_calls(row: Timed, runner: Runner, case: Case, sources: Sequence[Any], expected: Sequence[np.ndarray]) -> None:
    row.note = runner.missing()
    if row.note:
        return
    calls = [getattr(runner, row.mode)(case, source) for source in sources]
    for call in calls:
        outputs = [_on_host(output) for output in call()]
        if runner.name != PLAIN and not _same_bits(outputs, expected):
            raise _WrongResult
    row.calls = calls


def _same_bits(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> bool:
    return len(left) == len(right) and all(map(_is_same, left, right))


def _is_same(one: np.ndarray, other: np.ndarray) -> bool:
    is_alike = one.shape == other.shape and one.dtype == other.dtype and one.flags.c_contiguous
    return is_alike and all(map(np.array_equal, _chunks(one), _chunks(other)))


def _chunks(array: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the bytes of an array, so few at a time that comparing them allocates little."""
    bits = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    yield from (bits[start : start + _CHUNK] for start in range(0, bits.size, _CHUNK))


def _on_host(output: Any) -> np.ndarray:
    for name in ("get", "cpu"):  # CuPy, PyTorch
        if hasattr(output, name) and not isinstance(output, np.ndarray):
            output = getattr(output, name)()
    return np.asarray(output)


def _rotated(rows: Sequence[Timed], turn: int) -> Iterator[Timed]:
    start = turn % max(1, len(rows))
    yield from rows[start:]
    yield from rows[:start]
