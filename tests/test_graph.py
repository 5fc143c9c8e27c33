"""Graph: values on their way through a model, constants and defaults, and one copy at the outputs."""

import numpy as np
import pytest
from helpers import assert_same, chain, model, node, sequence_info, tensor_info
from libraries import make
from onnx import TensorProto, numpy_helper

import gpuslice as gs
from gpuslice.onnx import Graph

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_a_chain_is_copied_once_at_the_outputs(xp):
    graph = Graph(chain())
    x = make(xp, X)
    with gs.trace() as t:
        results = graph.run({"x": x})
    assert list(results) == ["a", "c"]
    assert_same(results["a"], X[1:, 0:1, ::-1].copy(), like=x)
    assert_same(results["c"], X[1:, 2:3, ::-1].copy(), like=x)
    assert sorted(t.allocations) == [16, 16]
    assert sum(launch.bytes_written for launch in t.launches) == 32


def test_graph_inputs_that_are_outputs_are_copied():
    results = Graph(model([node("Identity", ["x"])], ["x"], ["y", "x"])).run({"x": X})
    assert_same(results["y"], X)
    assert not np.shares_memory(results["y"], X)
    assert not np.shares_memory(results["x"], X)
    assert not np.shares_memory(results["x"], results["y"])


def test_sequences_go_through_a_graph(xp):
    nodes = [
        node("SequenceInsert", ["seq", "x"], ["longer"]),
        node("SequenceErase", ["longer", "zero"], ["shorter"]),
        node("SplitToSequence", ["x"], ["rows"], axis=0, keepdims=0),
        node("ConcatFromSequence", ["rows"], ["stacked"], axis=-1, new_axis=1),
        node("Slice", ["stacked", "zero_1", "one_1", "two"], ["first"]),
        node("SequenceLength", ["shorter"], ["length"]),
        node("SequenceConstruct", ["stacked", "first"], ["pair"]),
        node("SequenceAt", ["pair", "zero"], ["again"]),
        node("SequenceEmpty", [], ["none"]),
    ]
    constants = {"zero": 0, "zero_1": [0], "one_1": [1], "two": [2]}
    outputs = [
        sequence_info("shorter"),
        "stacked",
        "first",
        tensor_info("length", [], TensorProto.INT64),
    ]
    outputs += [sequence_info("pair"), "again", sequence_info("none")]
    graph = Graph(model(nodes, [sequence_info("seq"), "x"], outputs, constants))
    x = make(xp, X)
    results = graph.run({"seq": [x[0, ...], x], "x": x})
    stacked = np.ascontiguousarray(X.transpose(1, 2, 0))
    assert [item.shape for item in results["shorter"]] == [(2, 3, 4)] * 2
    for item in (*results["shorter"],):
        assert_same(item, X, like=x)
    assert_same(results["stacked"], stacked, like=x)
    assert_same(results["again"], stacked, like=x)
    assert_same(results["first"], stacked[..., :1].copy(), like=x)
    assert_same(results["pair"][1], stacked[..., :1].copy(), like=x)
    assert int(results["length"]) == 2
    assert (len(results["none"]), results["none"].dtype) == (0, "float32")


def test_constants_and_initializers_are_data_too(xp):
    nodes = [
        node("Constant", [], ["c"], value=numpy_helper.from_array(X)),
        node("Constant", [], ["from"], value_ints=[1]),
        node("Constant", [], ["to"], value_ints=[2]),
        node("Slice", ["c", "from", "to"], ["part"]),
        node("SequenceConstruct", ["part", "x", "w"], ["all"]),
        node("ConcatFromSequence", ["all"], ["y"], axis=0),
    ]
    graph = Graph(model(nodes, ["x"], ["y"], {"w": X[:1] + 100}))
    x = make(xp, X)
    assert_same(graph.run({"x": x})["y"], np.concatenate([X[1:2], X, X[:1] + 100]), like=x)


def test_bounds_may_be_computed_by_the_graph():
    index = tensor_info("bounds", [4], TensorProto.INT64)
    nodes = [node("Split", ["bounds"], ["s", "e"], num_outputs=2), node("Slice", ["x", "s", "e"], ["y"])]
    assert_same(
        Graph(model(nodes, ["x", index], ["y"])).run({"x": X, "bounds": np.array([0, 2, 1, 3])})["y"], X[:1, 2:].copy()
    )


def test_an_input_with_an_initializer_has_a_default():
    graph = Graph(model([node("Identity", ["x"])], ["x"], ["y"], {"x": X}))
    assert list(graph.inputs) == []
    assert_same(graph.run({})["y"], X)
    assert_same(graph.run({"x": X + 1})["y"], X + 1)


def test_an_observer_sees_each_output_before_it_is_copied():
    nodes = [
        node("SplitToSequence", ["x"], ["rows"], name="split"),
        node("ConcatFromSequence", ["rows"], ["all"], axis=1),
        node("Slice", ["all", "s", "e", "", ""], ["y"]),
    ]
    seen = []
    graph = Graph(model(nodes, ["x"], ["y"], {"s": [0], "e": [1]}))
    graph.run({"x": X}, observe=lambda *row: seen.append(row))
    assert [row[:3] for row in seen] == [
        ("split", "SplitToSequence-11", "rows"),
        ("#1", "ConcatFromSequence-11", "all"),
        ("#2", "Slice-13", "y"),
    ]
    assert len(seen[0][3]) == 2
    assert [(value.shape, str(value.dtype), value.device) for *_, value in seen[1:]] == [
        ((1, 6, 4), "float32", "cpu"),
        ((1, 6, 4), "float32", "cpu"),
    ]


def test_other_constants():
    nodes = [
        node("Constant", [], ["i"], value_int=3),
        node("Constant", [], ["f"], value_floats=[1.5, 2]),
        node("Constant", [], ["s"], value_strings=["a", "é"]),
    ]
    outputs = [tensor_info("i", [], TensorProto.INT64), "f", tensor_info("s", [2], TensorProto.STRING)]
    results = Graph(model(nodes, [], outputs)).run({})
    assert_same(results["i"], np.array(3))
    assert_same(results["f"], np.array([1.5, 2], np.float32))
    assert_same(results["s"], np.array(["a", "é"], object))


def test_a_constant_may_be_data_and_bounds():
    strict = pytest.importorskip("array_api_strict")
    nodes = [node("Slice", ["x", "i", "e"], ["y"]), node("Identity", ["i"], ["j"])]
    outputs = ["y", tensor_info("j", None, TensorProto.INT64)]
    results = Graph(model(nodes, ["x"], outputs, {"i": [1], "e": [2]})).run({"x": strict.asarray(X)})
    assert_same(results["y"], X[1:2].copy(), like=strict.asarray(X))
    assert type(results["j"]) is type(results["y"])


def test_constants_join_the_data_and_not_the_bounds():
    strict = pytest.importorskip("array_api_strict")
    index = [tensor_info(name, None, TensorProto.INT64) for name in "se"]
    nodes = [
        node("Slice", ["x", "s", "e"], ["part"]),
        node("SequenceConstruct", ["part", "w"], ["all"]),
        node("ConcatFromSequence", ["all"], ["y"], axis=0),
    ]
    graph = Graph(model(nodes, [*index, "x"], ["y"], {"w": X}))
    results = graph.run({"s": np.array([1]), "e": np.array([2]), "x": strict.asarray(X)})
    assert_same(results["y"], np.concatenate([X[1:2], X]), like=strict.asarray(X))


def test_a_constant_that_the_library_cannot_hold_is_refused():
    strict = pytest.importorskip("array_api_strict")
    half = X.astype(np.float16)
    graph = Graph(
        model(
            [node("Identity", ["w"])],
            ["x"],
            [tensor_info("y", None, TensorProto.FLOAT16), "x"],
            {"w": half},
        )
    )
    with pytest.raises(TypeError, match="constant 'w' of float16 cannot be an array of array_api_strict"):
        graph.run({"x": strict.asarray(X)})
