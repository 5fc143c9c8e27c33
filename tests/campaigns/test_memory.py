"""Allocations that fail, one after the other, and memory over many distinct calls."""

import numpy as np
import pytest

import gpuslice as gs

_testcapi = pytest.importorskip("_testcapi", reason="this Python has no _testcapi")

X = np.arange(40 * 50 * 12, dtype=np.float32).reshape(40, 50, 12)
LARGE = np.arange(700_000, dtype=np.int16).reshape(700, 1000)
PARTS = [X[i] for i in range(40)]


def out_like(arrays):
    return [np.full(array.shape, 7, array.dtype) for array in arrays]


# A call with the arrays to write, if it has any, and what it returns.
CALLS = {
    "slice": (lambda _: gs.slice(X, [-1], [-99], [1], [-2]), lambda: [X[:, ::-2]], False),
    "large slice": (lambda _: gs.slice(LARGE, [-1], [-9999], [1], [-1]), lambda: [LARGE[:, ::-1]], False),
    "slice, out": (lambda out: gs.slice(X, [-1], [-99], [1], [-2], out=out[0]), lambda: [X[:, ::-2]], True),
    "transposed, out": (lambda out: gs.contiguous(LARGE.T, out=out[0]), lambda: [LARGE.T], True),
    "split": (lambda _: gs.split(X, num_outputs=3, axis=2), lambda: np.split(X, 3, axis=2), False),
    "split, out": (lambda out: gs.split(LARGE, num_outputs=5, axis=1, out=out), lambda: np.split(LARGE, 5, axis=1), True),
    "many parts": (lambda _: gs.split_to_sequence(X, axis=1), lambda: np.split(X, 50, axis=1), False),
    "concat": (lambda _: gs.concat_from_sequence(PARTS, axis=0), lambda: [np.concatenate(PARTS)], False),
    "stack": (lambda _: gs.concat_from_sequence(PARTS, axis=0, new_axis=1), lambda: [np.stack(PARTS)], False),
}  # fmt: skip


def run(name, after):
    """Call with the k-th of Python's allocations failing, and all later ones; return whether the call succeeded."""
    call, expected, has_out = CALLS[name]
    wanted = [np.ascontiguousarray(array) for array in expected()]
    out = out_like(wanted)
    gs.clear_caches()
    failed = None
    _testcapi.set_nomemory(after)
    try:
        result = call(out)
    except MemoryError as error:
        failed = error
    finally:
        _testcapi.remove_mem_hooks()
    if failed is not None:
        # NumPy and Python raise their own message; ours is not needed to be there when nothing at all can be allocated.
        assert all((array == 7).all() for array in out) or not has_out
        return False
    results = list(result) if isinstance(result, (tuple, gs.Sequence)) else [result]
    for array, right in zip(results, wanted, strict=True):
        assert array.tobytes() == right.tobytes()
    return True


@pytest.mark.parametrize("name", CALLS)
def test_the_kth_allocation_fails(name, campaign):
    """Nothing is written and the next call is right. Of a long call a random part of the allocations fails."""
    run(name, 1 << 30)
    last = 1
    while not run(name, last):
        last *= 2
        campaign.counts["failures"] += 1
    for _ in campaign.rounds(30):
        if not run(name, campaign.random.randrange(last)):
            campaign.counts["failures"] += 1
        campaign.counts["calls"] += 1
    assert run(name, 1 << 30)
