"""What is kept for repeated calls: right results, bounded in bytes, and dropped if asked."""

import numpy as np
import pytest
from helpers import assert_same

import gpuslice as gs
from gpuslice import caches
from gpuslice.caches import bounded_cache

LIMIT = 64 << 20


def kept_bytes():
    """Return how many bytes the caches hold, as they count them."""
    return sum(cache._size for cache in caches._caches)


@pytest.fixture(autouse=True)
def _empty():
    gs.clear_caches()


def test_all_caches_together_are_bounded():
    assert sum(cache._limit for cache in caches._caches) <= LIMIT


def test_results_are_kept_until_there_are_too_many_bytes():
    calls = []

    @bounded_cache(1)
    def text(number):
        calls.append(number)
        return bytes(1000 * number)

    assert [len(text(number)) for number in (1, 2, 1)] == [1000, 2000, 1000]
    assert calls == [1, 2]
    for number in range(3, 100):
        text(number)
    text(99)
    assert calls == list(range(1, 100))
    text(1)  # it made room for others
    assert calls[-1] == 1
    text(500)
    text(500)  # too large to be kept
    assert calls[-2:] == [500, 500]
    gs.clear_caches()
    text(99)
    assert calls[-1] == 99
    caches._caches.pop()


def test_many_large_splits_keep_little():
    for n in range(30_000, 30_030):
        parts = gs.split(np.empty((1, n), np.int8), num_outputs=n, axis=1)
        assert len(parts) == n
    outs = np.empty((2000, 40), np.float32)
    for n in range(1000, 1020):
        gs.contiguous([np.ones(40, np.float32)[::-1]] * n, out=list(outs[:n]))
    large = np.zeros((300, 400, 400), np.int8)
    for n in range(200, 220):
        gs.split(large[:n], num_outputs=n)
    assert 0 < kept_bytes() <= LIMIT


def test_bounds_of_any_size_keep_little():
    x = np.arange(5)
    for power in range(40):
        assert_same(gs.slice(x, [-1], [-(1 << 8_000_000 + power)], steps=[-1]), x[::-1].copy())
    assert kept_bytes() <= LIMIT


def test_clearing_changes_no_result():
    x = np.arange(60_000).reshape(200, 300)
    for _ in range(2):
        assert_same(gs.contiguous(x.T), x.T.copy())
        gs.clear_caches()
        assert kept_bytes() == 0
