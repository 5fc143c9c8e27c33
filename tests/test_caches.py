"""What is kept for repeated calls: right results, bounded in bytes, and dropped if asked."""

import gc
import tracemalloc

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


def joined(x):
    thirds = tuple(np.array_split(x, 3, axis=-1))
    gs.concat_from_sequence(tuple(map(np.ascontiguousarray, thirds)), axis=-1)


# Calls on arrays of any shape; what is kept of each is counted as at least as much as it takes.
KEPT = {
    "a slice": lambda x: gs.slice(x, [-1], [-(1 << 60)], [-1], [-1]),
    "a slice with huge bounds": lambda x: gs.slice(x, [-1], [-(1 << 8 * 4000)], [-1], [-1]),
    "a split": lambda x: gs.split(x, num_outputs=4, axis=-1),
    "a split into many": lambda x: gs.split(x, [1] * x.shape[-1], axis=-1),
    "a join": joined,
    "views": lambda x: gs.contiguous([x[::-1], x[..., ::-1]]),
}


@pytest.mark.parametrize("rank", [2, 9])
@pytest.mark.parametrize("call", KEPT)
def test_what_is_kept_is_counted(call, rank):
    inputs = [np.zeros((1,) * (rank - 2) + (30 + i, 200 + 40 * k), np.uint8) for i in range(8) for k in range(4)]
    KEPT[call](np.zeros((2,) * (rank - 1) + (40,), np.uint8))  # what is imported and made once
    gs.clear_caches()
    gc.collect()
    tracemalloc.start()
    try:
        for x in inputs:
            KEPT[call](x)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken <= kept_bytes() + 20_000  # the caches' own tables


def test_clearing_changes_no_result():
    x = np.arange(60_000).reshape(200, 300)
    for _ in range(2):
        assert_same(gs.contiguous(x.T), x.T.copy())
        gs.clear_caches()
        assert kept_bytes() == 0
