"""Nodes and graphs that ran before on inputs like these do what a run in full does: the same bits, or the same error."""

import numpy as np
import pytest
from helpers import assert_same, model, node, tensor_info
from onnx import TensorProto

import gpuslice as gs
from gpuslice.onnx import Graph, run_node

DTYPES = ("f4", "f4", "f4", "i8", "u1", "?", ">f4", "U3", "O")
# Ints, and now and then what equals them.
NUMBERS = (*[0, 1, 2, -1] * 6, 1.0, True, np.int64(1), np.True_)
BOUNDS = ("s", "e", "a", "t")
NODES = {
    "Slice": (node("Slice", ["x", *BOUNDS]), (10, 11, 13)),
    "Slice of two": (node("Slice", ["x", "s", "e"]), (13,)),
    "Split": (node("Split", ["x", "s"], ["y", "z"], axis=1), (1, 13, 18)),
    "SplitToSequence": (node("SplitToSequence", ["x", "s"], axis=1), (11,)),
}
INDEX = [tensor_info(name, elem_type=TensorProto.INT64) for name in BOUNDS]
GRAPH = [
    node("Slice", ["x", *BOUNDS], ["y"]),
    node("Slice", ["z", "s", "e"], ["one"]),
    node("Slice", ["s", "from", "to"], ["first"]),
    node("Slice", ["y", "first", "e"], ["two"]),
]
CONSTANTS = {"from": [0], "to": [1]}


def layouts(random, dtype):
    """Return arrays of one dtype that lie differently, two of them alike."""
    whole = np.array([random.randrange(2) for _ in range(24)]).astype(dtype).reshape(2, 3, 4)
    return [whole, whole.copy(), whole[:, ::-1], np.asfortranarray(whole), whole[..., :3], whole[..., :3].copy()]


def bounds(random, pool):
    """Return bounds: one of a few arrays, which may so be there twice, a new one, or a list."""
    draw = random.random()
    if draw < 0.6:
        return random.choice(pool[:8] if draw < 0.5 else pool)
    if draw < 0.7:
        return np.array([random.randrange(-2, 3)], random.choice([*["i8"] * 6, "i4", ">i8", "f4", "?"]))
    if draw < 0.8:
        return None
    return random.choice([list, tuple])(random.choices(NUMBERS, k=random.choice([1] * 9 + [2])))


def one_bound(number):
    """Return an array of one bound."""
    return np.array([number])


def outcome(run):
    """Return the results of a run, or its error."""
    try:
        return run(), None
    except (IndexError, TypeError, ValueError) as error:
        return None, (type(error), str(error))


def compare(campaign, kind, run):
    """Run something in full, as always under a trace, then twice more."""
    with gs.trace():
        expected, error = outcome(run)
    for _ in range(2):
        results, other = outcome(run)
        assert other == error
        campaign.counts[f"{kind} {'ran' if error is None else 'refused'}"] += 1
        for actual, right in zip(results or [], expected or [], strict=True):
            for item, same in zip(_items(actual), _items(right), strict=True):
                assert_same(item, same)


def _items(value):
    return list(value) if isinstance(value, gs.Sequence) else [value]


@pytest.mark.parametrize("copier", ["numpy", "kernels_for_all"])
def test_nodes(campaign, copier, request):
    if copier != "numpy":
        request.getfixturevalue(copier)
    random = campaign.random
    arrays = [array for dtype in DTYPES for array in layouts(random, dtype)]
    arrays += [array.astype("U1").astype("O") for array in layouts(random, "i8")]
    pool = [*map(one_bound, (0, 1, 1, 1, 2, -1)), np.array([0, 9, 1, 9])[::2], np.array([1, 2])]
    pool += [np.zeros(1, "u8"), np.zeros(()), np.array(1), np.array([[1]]), np.zeros(1), np.zeros(1, ">i8")]
    for _ in campaign.rounds(2000):
        name, (one, opsets) = random.choice(list(NODES.items()))
        given = [random.choice(arrays), *(bounds(random, pool) for _ in one.input[1:])]
        if "Split" in name and random.random() < 0.7:
            given[1] = random.choice([[1, 2], (2, 1), np.array([2, 1]), np.array([1, 2], "f4"), pool[-1]])
        if random.random() < 0.1:
            given[0] = random.choice(pool)
        if random.random() < 0.1:
            pool[random.randrange(6)][0] = random.randrange(-1, 3)
        opset = random.choice(opsets)
        compare(campaign, name, lambda one=one, given=given, opset=opset: run_node(one, given, opset=opset))


@pytest.mark.parametrize("copier", ["numpy", "kernels_for_all"])
def test_graphs(campaign, copier, request):
    """Bounds are inputs, and one of them is returned, too."""
    if copier != "numpy":
        request.getfixturevalue(copier)
    random = campaign.random
    returned = tensor_info("first", elem_type=TensorProto.INT64)
    graphs = [
        Graph(model(GRAPH, ["x", "z", *INDEX], outputs, CONSTANTS, opset=13))
        for outputs in (["y", "one", "two", "x"], ["y", returned], ["two"])
    ]
    arrays = layouts(random, "f4")
    pool = [*map(one_bound, (0, 1, 1, 2, -1)), np.array([1, 9])[::2]]
    for _ in campaign.rounds(1000):
        given = {"x": random.choice(arrays), "z": random.choice(arrays)}
        given |= {name: random.choice(pool) for name in BOUNDS}
        if random.random() < 0.1:
            pool[random.randrange(5)][0] = random.randrange(-1, 3)
        graph = random.choice(graphs)
        compare(campaign, "graph", lambda graph=graph, given=given: list(graph.run(given).values()))
