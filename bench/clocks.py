"""How long a call takes, on a host and on a CUDA device."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.cases import Case
from bench.runner import Call

# A sample takes at least so long, so that the clock's own cost and grain don't show.
_LEAST_SECONDS = 5e-4
_MOST_CALLS = 2000
# Cases of less are about the time of a call, not of the device.
_SMALL = 1 << 16
_SETS = 8

_CLOCK_RATE = 13  # cudaDevAttrClockRate, in kHz; properties have it no longer

_SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
  const long long began = clock64();
  while (clock64() - began < cycles) {
  }
}
"""


class HostClock:
    """Wall-clock time of calls that have ended when they return."""

    def sources(self, case: Case, width: int) -> list[Any]:
        """Give the source array."""
        return [case.source(width)]

    def sample(self, calls: Sequence[Call], count: int) -> float:
        """Give the seconds a call takes, over so many calls. Results are freed outside."""
        if count == 1:
            began = time.perf_counter()
            held = calls[0]()
            seconds = time.perf_counter() - began
            del held
            return seconds
        call = calls[0]
        began = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - began) / count

    def count(self, calls: Sequence[Call]) -> int:
        """Say how many calls a sample needs."""
        self.sample(calls, 1)
        once = min(self.sample(calls, 1), self.sample(calls, 1))
        return max(1, min(_MOST_CALLS, int(_LEAST_SECONDS / max(once, 1e-9))))


class CudaClock:
    """Time on the device by events, or of the calls themselves where they are small.

    The calls are queued behind a kernel that does nothing for longer than queuing takes, so that the device never waits
    for the host between them. Sources and targets are rotated, so that none is still in the L2 cache.
    """

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy
        device, runtime = cupy.cuda.Device().id, cupy.cuda.runtime
        self._cycles = runtime.deviceGetAttribute(_CLOCK_RATE, device) * 1000  # a second
        self._cache = runtime.getDeviceProperties(device)["l2CacheSize"]
        self._spin = cupy.RawKernel(_SPIN, "spin")
        self._small = False

    def sources(self, case: Case, width: int) -> list[Any]:
        """Copy the source to the device, as often as it takes to be larger than the L2 cache twice over."""
        source = case.source(width)
        self._small = source.nbytes < _SMALL
        sets = 1 if self._small else min(_SETS, max(2, 2 * self._cache // source.nbytes + 1))
        return [self._cupy.asarray(source) for _ in range(sets)]

    def sample(self, calls: Sequence[Call], count: int) -> float:
        """Give the seconds a call takes, over so many calls."""
        cupy = self._cupy
        if self._small:
            cupy.cuda.Device().synchronize()
            began = time.perf_counter()
            for i in range(count):
                calls[i % len(calls)]()
            cupy.cuda.Device().synchronize()
            return (time.perf_counter() - began) / count
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        for queueing in (1e-4 * count, 1e-3 * count):  # seconds; again where the host was slower than that
            self._spin((1,), (1,), (np.int64(queueing * self._cycles),))
            start.record()
            for i in range(count):
                calls[i % len(calls)]()
            end.record()
            in_time = not start.done
            end.synchronize()
            if in_time:
                break
        return cupy.cuda.get_elapsed_time(start, end) / 1000 / count

    def count(self, calls: Sequence[Call]) -> int:
        """Say how many calls a sample needs."""
        return 200 if self._small else 2 * len(calls)


def clock_of(device: str) -> HostClock | CudaClock:
    """Give the clock of a device."""
    return HostClock() if device == "cpu" else CudaClock()
