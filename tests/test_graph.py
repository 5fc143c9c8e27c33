"""Graph: values on their way through a model, constants and defaults, and one copy at the outputs."""

import weakref

import ml_dtypes
import numpy as np
import pytest
from helpers import assert_same, chain, model, node, sequence_info, tensor_info
from libraries import make
from onnx import AttributeProto, NodeProto, TensorProto, helper, numpy_helper

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


IMPORTS = [
    [("", 7), ("", 18)],
    [("", 18), ("", 7)],
    [("", 7), ("ai.onnx", 18)],
    [("ai.onnx", 18), ("other", 99), ("", 7)],
]


@pytest.mark.parametrize("imports", IMPORTS)
def test_the_highest_opset_of_the_default_domain_binds(imports):
    given = model([node("Split", ["x"], ["a", "b"], axis=2, num_outputs=2)], ["x"], ["a"])
    del given.opset_import[:]
    given.opset_import.extend(helper.make_opsetid(*entry) for entry in imports)
    assert_same(Graph(given).run({"x": X})["a"], X[..., :2].copy())


def test_a_model_of_ir_version_1_has_no_imports_and_no_types_of_attributes():
    crop = NodeProto(op_type="Slice", input=["x"], output=["y"])
    crop.attribute.extend([AttributeProto(name="starts", ints=[1, 0]), AttributeProto(name="ends", ints=[2, 2])])
    halves = NodeProto(op_type="Split", input=["y"], output=["a", "b"], attribute=[AttributeProto(name="axis", i=1)])
    constant = NodeProto(op_type="Constant", output=["c"])
    constant.attribute.append(AttributeProto(name="value", t=numpy_helper.from_array(X[0])))
    given = model([constant, crop, halves], ["x"], ["a", "c"])
    given.ir_version = 1
    del given.opset_import[:]
    results = Graph(given).run({"x": X})
    assert_same(results["a"], X[1:2, :1].copy())
    assert_same(results["c"], X[0].copy())


def test_text_keeps_every_byte():
    words = [b"a\0", "\u00e9\0\0".encode(), b"", b"\0"]
    expected = np.array([word.decode() for word in words], object)
    tensor = TensorProto(name="w", data_type=TensorProto.STRING, dims=[4], string_data=words)
    nodes = [
        node("Constant", [], ["c"], value=tensor),
        node("Constant", [], ["s"], value_strings=words),
        node("Constant", [], ["one"], value_string=words[0]),
        node("Slice", ["w", "start", "end"], ["part"]),
    ]
    names = ["w", "c", "s", "one", "part"]
    given = model(
        nodes, [], [tensor_info(name, None, TensorProto.STRING) for name in names], {"start": [-1], "end": [-9]}
    )
    given.graph.node[3].input.append("axis")
    given.graph.node[3].input.append("start")
    given.graph.initializer.append(numpy_helper.from_array(np.array([0]), "axis"))
    given.graph.initializer.append(tensor)
    results = Graph(given).run({})
    for name in ("w", "c", "s"):
        assert_same(results[name], expected)
    assert results["one"].item() == "a\0"
    assert_same(results["part"], expected[::-1].copy())


SPARSE = {
    "flat": (np.float32([5, 6]), [1, 5], [2, 3], [[0, 5, 0], [0, 0, 6]]),
    "by axis": (np.float32([5, 6]), [[1, 0], [0, 2]], [2, 3], [[0, 0, 6], [5, 0, 0]]),
    "nothing": (np.float32([]), [], [2, 1], [[0], [0]]),
    "no items": (np.float32([]), np.zeros((0, 2)), [0, 3], np.zeros((0, 3))),
    "one item": (np.float32([5]), [0], [], 5),
    "one item without axes": (np.float32([5]), np.zeros((1, 0)), [], 5),
    "bfloat16": (np.array([5], ml_dtypes.bfloat16), [1], [2], [0, 5]),
    "text": (np.array(["a"], object), [1], [2], ["", "a"]),
}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_constants_are_made_dense(name):
    values, indices, dims, expected = SPARSE[name]
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(values, "w"), numpy_helper.from_array(np.asarray(indices, np.int64)), dims
    )
    kind = helper.np_dtype_to_tensor_dtype(values.dtype)
    nodes = [node("Constant", [], ["c"], sparse_value=sparse), node("Identity", ["w"], ["d"])]
    given = model(nodes, [], [tensor_info("c", None, kind), tensor_info("d", dims, kind)])
    given.graph.sparse_initializer.append(sparse)
    for result in Graph(given).run({}).values():
        assert_same(result, np.array(expected, values.dtype))


@pytest.mark.parametrize("dim", [-1, -9])
def test_a_negative_dimension_is_one_that_is_not_known(dim):
    given = model([node("Identity", ["x"])], [tensor_info("x", [dim, 3, 0])], ["y"])
    assert Graph(given).run({"x": X[:, :, :0]})["y"].shape == (2, 3, 0)
    with pytest.raises(ValueError, match=r"input 'x' must have shape \(\?, 3, 0\); got \(2, 3, 4\)"):
        Graph(given).run({"x": X})


def test_an_output_may_be_listed_twice():
    given = model([node("Identity", ["x"])], ["x"], ["y", "x", "y"])
    assert list(Graph(given).run({"x": X})) == ["y", "x"]
    assert [name for name, _ in Graph(given).run_in_order({"x": X})] == ["y", "x", "y"]


NUMBERS = [
    (3, TensorProto.INT8, np.array(3, np.int8)),
    (3, TensorProto.UNDEFINED, np.array(3)),
    (2, TensorProto.DOUBLE, np.array(2.0)),
    (True, TensorProto.BOOL, np.array(True)),
    (1.5, TensorProto.FLOAT, np.array(1.5, np.float32)),
    (1.5, TensorProto.UNDEFINED, np.array(1.5, np.float32)),
    (1.5, TensorProto.BFLOAT16, np.array(1.5, ml_dtypes.bfloat16)),
    (300, TensorProto.UINT8, "input 'x' must be a number of uint8; got 300"),
    (1e300, TensorProto.FLOAT, "input 'x' must be a number of float32; got 1e\\+300"),
    (70000, TensorProto.FLOAT16, "input 'x' must be a number of float16; got 70000"),
    (10**400, TensorProto.FLOAT, "input 'x' must be a number of float32; got an int of 1329 bits"),
    (float("inf"), TensorProto.FLOAT16, np.array(np.inf, np.float16)),
    (1.5, TensorProto.INT64, "input 'x' must have dtype int64; got float"),
    (True, TensorProto.INT64, "input 'x' must have dtype int64; got bool"),
    (1, TensorProto.BOOL, "input 'x' must have dtype bool; got int"),
]


@pytest.mark.parametrize(("number", "kind", "expected"), NUMBERS)
def test_a_python_number_is_a_tensor_without_axes(number, kind, expected):
    given = model([node("Identity", ["x"])], [tensor_info("x", [], kind)], [tensor_info("y", [], kind)])
    if isinstance(expected, str):
        with pytest.raises((TypeError, ValueError), match=expected):
            Graph(given).run({"x": number})
    else:
        assert_same(Graph(given).run({"x": number})["y"], expected)


def test_what_nobody_reads_any_more_is_dropped():
    """A concatenation lives until its last reader has run."""
    nodes = [
        node("SequenceConstruct", ["x", "x"], ["s"]),
        node("ConcatFromSequence", ["s"], ["joined"], axis=0),
        node("SplitToSequence", ["joined"], ["parts"]),
        node("SequenceLength", ["parts"], ["length"]),
        node("Identity", ["x"], ["y"]),
        node("Identity", ["y"], ["z"]),
    ]
    held, alive = [], {}

    def observe(name, operator, output, value):
        if output == "joined":
            held.append(weakref.ref(value))
        elif held:
            alive[output] = held[0]() is not None

    Graph(model(nodes, ["x"], ["z"])).run({"x": X.copy()}, observe=observe)
    assert alive == {"parts": True, "length": False, "y": False, "z": False}


def test_runs_that_are_known_give_the_same():
    """Runs with inputs of the same kinds, of other kinds, and with arrays that change or change places."""
    bounds = tensor_info("bounds", [4], TensorProto.INT64)
    nodes = [
        node("Split", ["bounds"], ["s", "e"], num_outputs=2),
        node("Slice", ["x", "s", "e"], ["part"]),
        node("Slice", ["w", "s", "e"], ["fixed"]),
        node("SplitToSequence", ["z"], ["rows"], axis=0, keepdims=0),
        node("SequenceLength", ["rows"], ["length"]),
        node("Identity", ["z"], ["same"]),
    ]
    outputs = ["part", "fixed", sequence_info("rows"), "same", "x"]
    graph = Graph(model(nodes, ["x", bounds, "z"], outputs, {"w": X + 100}))
    random = np.random.default_rng(0)
    arrays = [random.random((2, 3, 4), np.float32) for _ in range(4)]
    arrays += [array.astype(np.float32)[..., ::-1] for array in (arrays[0], arrays[1])]
    arrays += [random.random((3, 3, 5), np.float32), np.asfortranarray(arrays[0])]
    for _ in range(60):
        x, z = (arrays[i] for i in random.integers(0, len(arrays), 2))
        s, e = random.integers(-1, 2, 2), random.integers(0, 4, 2)
        if random.random() < 0.3:
            x[0, 0, 0] += 1
        results = graph.run({"x": x, "bounds": np.array([*s, *e]), "z": z})
        expected = x[tuple(slice(a, b) for a, b in zip(np.where(s < 0, s + x.shape[:2], s), e, strict=True))]
        assert_same(results["part"], np.ascontiguousarray(expected))
        w = X + 100
        expected = w[tuple(slice(a, b) for a, b in zip(np.where(s < 0, s + w.shape[:2], s), e, strict=True))]
        assert_same(results["fixed"], np.ascontiguousarray(expected))
        assert len(results["rows"]) == len(z)
        for row, right in zip(results["rows"], z, strict=True):
            assert_same(row, np.ascontiguousarray(right))
        for name, right in (("same", z), ("x", x)):
            assert_same(results[name], np.ascontiguousarray(right))
            assert not np.shares_memory(results[name], right)


def test_bounds_that_are_returned_too_may_have_any_strides():
    bounds = tensor_info("bounds", [2], TensorProto.INT64)
    nodes = [node("Split", ["bounds"], ["s", "e"], num_outputs=2), node("Slice", ["x", "s", "e"])]
    graph = Graph(model(nodes, ["x", bounds], ["y", tensor_info("e", [1], TensorProto.INT64), bounds]))
    packed, apart = np.array([0, 1]), np.array([0, 7, 1, 7])[::2]
    for given in (packed, apart, packed, np.array([1, 0])[::-1]):
        results = graph.run({"x": X, "bounds": given})
        assert_same(results["y"], X[:1].copy())
        assert_same(results["e"], np.array([1]))
        assert_same(results["bounds"], packed)


def test_the_same_array_as_two_inputs_is_not_known_as_one():
    graph = Graph(
        model(
            [node("Slice", ["x", "zero", "one"], ["a"]), node("Slice", ["z", "zero", "one"], ["b"])],
            ["x", "z"],
            ["a", "b"],
            {"zero": [0], "one": [1]},
        )
    )
    for x, z in ((X, X), (X, X + 1), (X + 2, X), (X, X)):
        results = graph.run({"x": x, "z": z})
        assert_same(results["a"], x[:1].copy())
        assert_same(results["b"], z[:1].copy())


def test_a_known_run_is_refused_and_traced_like_another():
    graph = Graph(chain())
    for _ in range(2):
        graph.run({"x": X})
        with gs.trace() as t:
            graph.run({"x": X})
        assert sorted(t.allocations) == [16, 16]
        with pytest.raises(TypeError, match="input 'x' must have dtype float32; got float64"):
            graph.run({"x": X.astype(float)})
        with pytest.raises(ValueError, match="the model has no input 'y'"):
            graph.run({"x": X, "y": X})
        with pytest.raises(ValueError, match="input 'x' was not given"):
            graph.run({})
