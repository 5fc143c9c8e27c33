"""Many threads on one array and on one graph: every result is compared, fresh ones and those written to out=."""

import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import assert_same, chain, node

import gpuslice as gs
from gpuslice.onnx import Graph, run_node

THREADS = 16
# And how often each thread works on an array of the shape. The first is copied by NumPy, the second by kernels, the third by kernels on several threads.
SHAPES = {(2, 3, 4): 300, (40, 30, 20): 100, (300, 200, 60): 2}


@pytest.fixture(autouse=True)
def _switch_often():
    """Have Python change the thread more often than once in 5 ms."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def in_threads(campaign, rounds, work):
    """Call ``work(random, counts)`` so often in each thread; all begin at once. Each has random numbers of its own."""
    barrier = threading.Barrier(THREADS)
    seeds = [campaign.random.randrange(2**32) for _ in range(THREADS)]

    def run(seed):
        own = random.Random(seed)
        barrier.wait()
        return [work(own) for _ in campaign.rounds(rounds)]

    with ThreadPoolExecutor(THREADS) as pool:
        for names in pool.map(run, seeds):
            campaign.counts.update(names)


def axis_slice(random, dim):
    """Return start, end and step of a random slice of an axis, and the same as NumPy's."""
    low, high = sorted([random.randint(0, dim), random.randint(0, dim)])
    step = random.choice([1, 1, 2, 3])
    if low == high or random.random() < 0.5:
        return (low, high, step), slice(low, high, step)
    return (high - 1 - dim, low - 1 - dim, -step), slice(low, high)


def slice_one(array, random):
    """Slice an array, fresh or with out=."""
    chosen = [axis_slice(random, dim) for dim in array.shape]
    backward = tuple(slice(None, None, bounds[2]) if bounds[2] < 0 else slice(None) for bounds, _ in chosen)
    expected = np.ascontiguousarray(array[tuple(index for _, index in chosen)][backward])
    starts, ends, steps = zip(*(bounds for bounds, _ in chosen), strict=True)
    out = np.empty_like(expected) if random.random() < 0.5 else None
    assert_same(gs.slice(array, starts, ends, None, steps, out=out), expected)
    if out is not None:
        assert_same(out, expected)
    return "slices"


def split_one(array, random):
    """Split an array, fresh, in one block or with out=."""
    axis, parts = random.randrange(array.ndim), random.randint(1, 12)
    edges = sorted(random.randint(0, array.shape[axis]) for _ in range(parts - 1))
    expected = [np.ascontiguousarray(part) for part in np.split(array, edges, axis)]
    sizes = [part.shape[axis] for part in expected]
    how = random.choice([{}, {"one_block": True}, {"out": [np.empty_like(part) for part in expected]}])
    for part, right in zip(gs.split(array, sizes, axis=axis, **how), expected, strict=True):
        assert_same(part, right)
    return "splits"


def sequence_one(array, random):
    """Split into a sequence, change it, and join it again, fresh or with out=."""
    axis = random.randrange(array.ndim)
    rows = gs.split_to_sequence(array, random.randint(1, array.shape[axis]), axis=axis)
    rows = gs.sequence_insert(gs.sequence_erase(rows), gs.sequence_at(rows, -1))
    out = np.empty_like(array) if random.random() < 0.5 else None
    assert_same(gs.concat_from_sequence(rows, axis=axis, out=out), array)
    return "sequences"


def contiguous_one(array, random):
    """Copy two views, fresh or with out=."""
    views = [array.T, array[::-1, :, ::-2]]
    expected = [np.ascontiguousarray(view) for view in views]
    out = [np.empty_like(view) for view in expected] if random.random() < 0.5 else None
    for actual, right in zip(gs.contiguous(views, out=out), expected, strict=True):
        assert_same(actual, right)
    return "views"


def node_one(array, random):
    """Run a node."""
    middle = random.randint(0, array.shape[0])
    split = node("Split", ["x", "s"], ["a", "b"])
    for part, right in zip(
        run_node(split, [array, [middle, len(array) - middle]], opset=18), (array[:middle], array[middle:]), strict=True
    ):
        assert_same(part, right)
    return "nodes"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_threads_on_one_array(campaign, shape):
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    array.flags.writeable = False
    works = [slice_one, split_one, sequence_one, contiguous_one, node_one]
    in_threads(campaign, SHAPES[shape], lambda random: random.choice(works)(array, random))


@pytest.mark.parametrize("shape", [(12, 6, 5), (400, 90, 30)], ids=str)
def test_threads_on_one_graph(campaign, shape):
    graph = Graph(chain())
    inputs = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + k for k in range(4)]
    expected = [graph.run({"x": x}) for x in inputs]
    assert_same(expected[1]["a"], np.ascontiguousarray(inputs[1][1:9, : shape[1] // 3, ::-1]))

    def run(random):
        k = random.randrange(len(inputs))
        for name, output in graph.run({"x": inputs[k]}).items():
            assert_same(output, expected[k][name])
        return "runs"

    in_threads(campaign, 50, run)


def test_threads_that_make_the_same_graph(campaign):
    x = np.arange(360, dtype=np.float32).reshape(12, 6, 5)
    expected = Graph(chain()).run({"x": x})

    def run(random):
        for name, output in Graph(chain()).run({"x": x}).items():
            assert_same(output, expected[name])
        return "graphs"

    in_threads(campaign, 20, run)


def test_a_trace_sees_only_its_own_thread(campaign):
    array = np.arange(24000, dtype=np.int32).reshape(40, 30, 20)

    def run(random):
        count = random.randint(1, 5)
        with gs.trace() as t:
            for _ in range(count):
                gs.slice(array, [-1], [-99], steps=[-1])
        assert t.allocations == [array.nbytes] * count
        return "traces"

    in_threads(campaign, 50, run)
