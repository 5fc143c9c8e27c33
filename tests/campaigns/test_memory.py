"""Allocations that fail, one after the other, and memory over many distinct calls."""

import resource

import numpy as np
import pytest
from onnx import helper

import gpuslice as gs
from gpuslice.onnx import run_node

_testcapi = pytest.importorskip("_testcapi", reason="this Python has no _testcapi")

X = np.arange(40 * 50 * 12, dtype=np.float32).reshape(40, 50, 12)
LARGE = np.arange(700_000, dtype=np.int16).reshape(700, 1000)
PARTS = [X[i] for i in range(40)]
PLANES = [LARGE, LARGE + 1, LARGE + 2]
TEXTS = [np.full(1000, "ab"), np.full(1000, b"cd")]


def out_like(arrays):
    return [np.full(array.shape, 7).astype(array.dtype) for array in arrays]


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
    "many parts, out": (lambda out: gs.split_to_sequence(X, axis=1, out=out), lambda: np.split(X, 50, axis=1), True),
    "item, out": (lambda out: gs.sequence_at([X], 0, out=out[0]), lambda: [X], True),
    "concat, out": (lambda out: gs.concat_from_sequence(PARTS, axis=1, out=out[0]), lambda: [np.concatenate(PARTS, 1)], True),
    "planes, out": (lambda out: gs.concat_from_sequence(PLANES, axis=2, new_axis=1, out=out[0]), lambda: [np.stack(PLANES, 2)], True),
    "text, out": (lambda out: gs.concat_from_sequence(TEXTS, axis=0, out=out[0]), lambda: [np.concatenate(TEXTS)], True),
    "stack": (lambda _: gs.concat_from_sequence(PARTS, axis=0, new_axis=1), lambda: [np.stack(PARTS)], False),
}  # fmt: skip


def run(name, after, *, known=False):
    """Call with the k-th of Python's allocations failing, and all later ones; return whether the call succeeded."""
    call, expected, has_out = CALLS[name]
    wanted = [np.ascontiguousarray(array) for array in expected()]
    out = out_like(wanted)
    gs.clear_caches()
    if known:
        call(out_like(wanted))
    failed = None
    _testcapi.set_nomemory(after)
    try:
        try:
            result = call(out)
        finally:
            _testcapi.remove_mem_hooks()
    except MemoryError as error:
        failed = error
    if failed is not None:
        # Behind the copy Python itself allocates a little, so all may be written. But never a part.
        assert is_right(out, out_like(out)) or (has_out and is_right(out, wanted))
        return False
    results = list(result) if isinstance(result, (tuple, gs.Sequence)) else [result]
    assert is_right(results, wanted)
    return True


def is_right(results, wanted):
    return all(array.tobytes() == right.tobytes() for array, right in zip(results, wanted, strict=True))


@pytest.mark.parametrize("name", CALLS)
def test_the_kth_allocation_fails(name, campaign):
    """Nothing is written and the next call is right. Of a long call a random part of the allocations fails."""
    run(name, 1 << 30)
    last = 1
    while not run(name, last):
        last *= 2
        campaign.counts["failures"] += 1
    after = 0
    while not run(name, after, known=True):  # which allocates little
        after += campaign.random.randint(1, 2)
        campaign.counts["failures of known calls"] += 1
    for _ in campaign.rounds(30):
        if not run(name, campaign.random.randrange(last)):
            campaign.counts["failures"] += 1
        campaign.counts["calls"] += 1
    assert run(name, 1 << 30)


def peak_bytes():
    """Return the most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def distinct_call(random):
    """Call with arguments that were very likely never given before."""
    shape = [random.randint(1, 40) for _ in range(random.randint(1, 4))]
    x = np.zeros(shape, random.choice(["u1", "f4", "c16", "V3"]))
    axis = random.randrange(len(shape))
    start, step = random.randint(-50, 50), random.choice([-3, -2, -1, 1, 2])
    kind = random.randrange(4)
    if kind == 0:
        gs.slice(x, [start], [random.randint(-(2**70), 2**70)], [axis], [step])
    elif kind == 1:
        gs.split(x, num_outputs=shape[axis], axis=axis)
    elif kind == 2:
        large = np.zeros((random.randint(200, 400), random.randint(200, 400)), np.float32)
        gs.contiguous([large.T, large[:, ::step], large[random.randint(0, 99) :]])
    else:
        node = helper.make_node("Slice", ["x"], ["y"], starts=[start], ends=[random.randint(-50, 50)], axes=[axis])
        run_node(node, [np.zeros(shape, np.float32)], opset=9)


def test_memory_over_many_distinct_calls(campaign):
    """What is kept is bounded: 64 MB, and as much again for what the allocator of the system does not give back."""
    gs.clear_caches()
    for _ in range(200):
        distinct_call(campaign.random)
    before = peak_bytes()
    for _ in campaign.rounds(2000):
        distinct_call(campaign.random)
        campaign.counts["calls"] += 1
    campaign.counts["KB more"] = (peak_bytes() - before) // 1024
    assert peak_bytes() - before < 128 << 20
