"""run_node, Graph, Backend and reference_ops: what they take, what they give, and what they refuse."""

import ml_dtypes
import numpy as np
import pytest
from arrays import assert_same, to_numpy
from onnx import AttributeProto, TensorProto, TypeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import gpuslice as gs
from gpuslice.onnx import VERSIONS, Backend, Graph, reference_ops, run_node, unsupported

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def node(op, inputs, outputs=("y",), **attributes):
    return helper.make_node(op, inputs, list(outputs), **attributes)


def model(nodes, inputs, outputs, constants=None, opset=18, **more):
    """Make a model; inputs and outputs are value infos or names of float32 tensors of any shape."""

    def info(entry):
        return helper.make_tensor_value_info(entry, TensorProto.FLOAT, None) if isinstance(entry, str) else entry

    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", [info(i) for i in inputs], [info(o) for o in outputs], initializers, **more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def sequence_info(name, elem_type=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_sequence_value_info(name, elem_type, shape)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_a_node_gets_the_newest_version_not_above_the_opset(version):
    """The opset before a version runs an older one or, if there is none, raises."""
    bad = node(version.operator, [], foo=1)
    with pytest.raises(ValueError, match=f"^{version.name}: attribute foo does not exist in this version"):
        run_node(bad, [], opset=version.since)
    if version.since > 1:
        older = [v.since for v in VERSIONS if v.operator == version.operator and v.since < version.since]
        expected = (
            f"^{version.operator}-{max(older)}: " if older else f"^{version.operator}: needs opset {version.since}"
        )
        with pytest.raises(ValueError, match=expected):
            run_node(bad, [], opset=version.since - 1)


BAD_NODES = [
    (helper.make_node("Slice", ["x"], ["y"], domain="com.example"), [X], 13, ValueError, "Slice: domain must be '' or 'ai.onnx'"),
    (node("Relu", ["x"]), [X], 13, ValueError, "Relu: not a supported operator; supported are Slice"),
    (node("Slice", ["x"]), [X], 0, ValueError, "Slice: opset must be an int of at least 1; got 0"),
    (node("Slice", ["x", "s", "e"], ["y", "z"]), [X, [0], [1]], 13, ValueError, "Slice-13: outputs must be exactly 1; got 2"),
    (node("Slice", ["x", "s", "e"]), [X, [0], [1], [0]], 13, ValueError, "Slice-13: inputs must be at most 3, as the node names them; got 4"),
    (node("Slice", ["x", "s", "e", ""]), [X, [0], [1], [0]], 13, ValueError, "Slice-13: input 3 must be None"),
    (node("Slice", ["x", "s", "e"]), [X, None, [1]], 13, ValueError, "Slice-13: input starts is required"),
    (node("Slice", ["x", "s", "e"]), [[1, 2], [0], [1]], 13, TypeError, "Slice-13: data must be an array; got list"),
    (node("Slice", ["x", "s", "e"]), [X, 0, [1]], 13, TypeError, "Slice-13: starts must be a sequence of ints"),
    (node("Slice", ["x", "s", "e"]), [X.astype(object), [0], [1]], 13, TypeError, "Slice-13: data must hold str if its dtype is object; got float"),
    (node("Slice", ["x", "s", "e"]), [X.view(ml_dtypes.float8_e4m3fn), [0], [1]], 13, TypeError, "Slice-13: data must have a type in .*; got float8_e4m3fn"),
    (node("Slice", ["x"], starts=[0], ends=[1], axes=0), [X], 1, ValueError, "Slice-1: attribute axes must be a list of ints; got 0"),
    (node("Slice", ["x"], starts=[0]), [X], 1, ValueError, "Slice-1: attribute ends is required"),
    (node("Split", ["x"], axis=1.5), [X], 13, ValueError, "Split-13: attribute axis must be an int; got 1.5"),
    (node("Split", ["x", "s"]), [X, np.array([0.5])], 1, TypeError, "Split-1: split must have the type of input, float32; got float64"),
    (node("Split", ["x", "s"]), [X, np.array([1.5], np.float32)], 1, ValueError, "Split-1: split must hold whole numbers; got 1.5"),
    (node("Split", ["x", "s"]), [X, np.array([np.inf], np.float32)], 1, ValueError, "Split-1: split must hold whole numbers; got inf"),
    (node("Split", ["x", "s"]), [X, np.array(2, np.float32)], 1, ValueError, "Split-1: split must be 1-D"),
    (node("Split", ["x"]), [X.astype(int)], 1, TypeError, "Split-1: input must have a type in {float16, float32, float64}; got int64"),
    (node("SequenceAt", ["s", "p"]), [X, 0], 11, TypeError, "SequenceAt-11: a sequence must be a gpuslice.Sequence"),
    (node("SequenceEmpty", [], dtype=TensorProto.BFLOAT16), [], 11, TypeError, "SequenceEmpty-11: dtype must be .*; got bfloat16"),
    (node("SequenceEmpty", [], dtype=999), [], 11, TypeError, "SequenceEmpty-11: dtype must be a data type of TensorProto; got 999"),
    (node("SequenceConstruct", ["a", "", "b"]), [X, None, X], 11, ValueError, "SequenceConstruct-11: inputs must all be given; input 1"),
    (node("SequenceConstruct", []), [], 11, ValueError, "SequenceConstruct-11: input inputs is required"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "inputs", "opset", "error", "message"), BAD_NODES, ids=[bad[4][:60] for bad in BAD_NODES]
)
def test_bad_nodes(bad, inputs, opset, error, message):
    with pytest.raises(error, match=f"^{message}"):
        run_node(bad, inputs, opset=opset)


def test_attributes_given_twice_or_by_reference_are_refused():
    twice = node("Split", ["x"], axis=0)
    twice.attribute.append(helper.make_attribute("axis", 1))
    with pytest.raises(ValueError, match="^Split-13: attribute axis must be given once"):
        run_node(twice, [X], opset=13)
    linked = node("Split", ["x"])
    linked.attribute.append(AttributeProto(name="axis", type=AttributeProto.INT, ref_attr_name="outer"))
    with pytest.raises(ValueError, match="^Split-13: attribute axis must have a value; it refers to 'outer'"):
        run_node(linked, [X], opset=13)


def test_python_ints_are_bounds_and_positions():
    (result,) = run_node(node("Slice", ["x", "s", "e", "", "t"]), [X, [-1], (-99,), None, range(-1, 0)], opset=13)
    assert_same(result, X[::-1].copy())
    assert_same(run_node(node("SequenceAt", ["s", "p"]), [[X, X[0]], 1], opset=11)[0], X[0].copy())


def test_trailing_inputs_may_be_left_out():
    full = node("Slice", ["x", "s", "e", "a", "t"])
    assert_same(run_node(full, [X, [1], [2]], opset=13)[0], X[1:2].copy())


def test_unwanted_outputs_are_not_copied():
    with gs.trace() as t:
        results = run_node(node("Split", ["x"], ["", "b", ""], axis=1), [X], opset=13)
    assert [result is None for result in results] == [True, False, True]
    assert_same(results[1], X[:, 1:2].copy())
    assert len(t.allocations) == 1


def test_sequence_nodes_hold_references_and_copy_at_last(xp):
    x = X.copy() if xp is np else xp.asarray(X)
    (seq,) = run_node(node("SequenceConstruct", ["a"]), [x], opset=11)
    assert seq[0] is x
    (at,) = run_node(node("SequenceAt", ["s", "p"]), [seq, np.array(0)], opset=11)
    assert_same(at, X, like=x)
    at[...] = xp.zeros_like(at)
    assert to_numpy(x).any()


CHAIN = [
    node("Slice", ["x", "last", "before", "two", "back"], ["mirror"]),
    node("Slice", ["mirror", "one", "nine"], ["crop"]),
    node("Identity", ["crop"], ["same"]),
    node("Split", ["same"], ["a", "", "c"], axis=1, num_outputs=3),
]
CHAIN_CONSTANTS = {"last": [-1], "before": [-(2**63)], "two": [2], "back": [-1], "one": [1], "nine": [9]}


def test_a_chain_is_copied_once_at_the_outputs(xp):
    graph = Graph(model(CHAIN, ["x"], ["a", "c"], CHAIN_CONSTANTS))
    x = X if xp is np else xp.asarray(X)
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
        helper.make_tensor_value_info("length", TensorProto.INT64, []),
    ]
    outputs += [sequence_info("pair"), "again", sequence_info("none")]
    graph = Graph(model(nodes, [sequence_info("seq"), "x"], outputs, constants))
    x = X if xp is np else xp.asarray(X)
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
    x = X if xp is np else xp.asarray(X)
    assert_same(graph.run({"x": x})["y"], np.concatenate([X[1:2], X, X[:1] + 100]), like=x)


def test_bounds_may_be_computed_by_the_graph():
    index = helper.make_tensor_value_info("bounds", TensorProto.INT64, [4])
    nodes = [node("Split", ["bounds"], ["s", "e"], num_outputs=2), node("Slice", ["x", "s", "e"], ["y"])]
    assert_same(
        Graph(model(nodes, ["x", index], ["y"])).run({"x": X, "bounds": np.array([0, 2, 1, 3])})["y"], X[:1, 2:].copy()
    )


def test_an_input_with_an_initializer_has_a_default():
    graph = Graph(model([node("Identity", ["x"])], ["x"], ["y"], {"x": X}))
    assert list(graph.inputs) == []
    assert_same(graph.run({})["y"], X)
    assert_same(graph.run({"x": X + 1})["y"], X + 1)


def test_other_constants():
    nodes = [
        node("Constant", [], ["i"], value_int=3),
        node("Constant", [], ["f"], value_floats=[1.5, 2]),
        node("Constant", [], ["s"], value_strings=["a", "é"]),
    ]
    outputs = [fixed("i", [], TensorProto.INT64), "f", fixed("s", [2], TensorProto.STRING)]
    results = Graph(model(nodes, [], outputs)).run({})
    assert_same(results["i"], np.array(3))
    assert_same(results["f"], np.array([1.5, 2], np.float32))
    assert_same(results["s"], np.array(["a", "é"], object))


def fixed(name, shape, elem_type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, elem_type, shape)


BAD_RUNS = [
    ({}, ValueError, "input 'x', 's' was not given"),
    ({"x": X, "s": [X], "z": X}, ValueError, "the model has no input 'z'; it has x, s"),
    ({"x": X.astype(int), "s": [X]}, TypeError, "input 'x' must have dtype float32; got int64"),
    ({"x": X[0], "s": [X]}, ValueError, r"input 'x' must have shape \(n, 3, \?\); got \(3, 4\)"),
    ({"x": X[:, :2], "s": [X]}, ValueError, r"input 'x' must have shape \(n, 3, \?\); got \(2, 2, 4\)"),
    ({"x": [1, 2], "s": [X]}, TypeError, "input 'x' must be an array; got list"),
    ({"x": X, "s": X}, TypeError, "a sequence must be a gpuslice.Sequence"),
    ({"x": X, "s": [X.astype(int)]}, TypeError, "input 's' must be a sequence of float32; got int64"),
    ({"x": X, "s": [X[0]]}, ValueError, r"input 's' must have shape \(2, 3, 4\); got \(3, 4\)"),
]


@pytest.mark.parametrize(("inputs", "error", "message"), BAD_RUNS, ids=[bad[2][:40] for bad in BAD_RUNS])
def test_inputs_must_be_as_declared(inputs, error, message):
    infos = [fixed("x", ["n", 3, None]), sequence_info("s", shape=(2, 3, 4))]
    graph = Graph(model([node("Identity", ["x"])], infos, ["y"]))
    with pytest.raises(error, match=message):
        graph.run(inputs)


BAD_MODELS = [
    (
        [node("Relu", ["x"], ["a"], name="r"), node("Foo", ["a"], ["y"])],
        18,
        "cannot run: Relu (node r): not a supported operator",
    ),
    (
        [node("Relu", ["x"], ["a"], name="r"), node("Foo", ["a"], ["y"])],
        18,
        "; Foo (node #1): not a supported operator",
    ),
    ([node("SequenceLength", ["x"])], 9, "SequenceLength (node #0): needs opset 11 or newer; got opset 9"),
    (
        [node("Identity", ["z"])],
        18,
        "Identity (node #0): input 'z' is not a graph input, an initializer or the output of an earlier node",
    ),
    ([node("Identity", ["x"]), node("Identity", ["x"])], 18, "Identity (node #1): output 'y' already has a value"),
    ([node("Identity", ["x"], ["z"])], 18, "graph output 'y' is not the output of any node, input or initializer"),
    ([node("Split", ["x"], ["y"], foo=1)], 18, "Split-18 (node #0): attribute foo does not exist in this version"),
    ([node("Slice", ["x"], ["y"])], 18, "Slice-13 (node #0): input starts is required and was not given"),
    ([node("Constant", [], ["y"])], 18, "Constant (node #0): must have exactly one attribute"),
    (
        [node("Constant", [], ["y"], value_int=1)],
        11,
        "Constant (node #0): attribute value_int is not supported at opset 11",
    ),
    ([node("Constant", [], ["y"], value_int=[1])], 18, "Constant (node #0): attribute value_int must be INT; got INTS"),
    (
        [node("Identity", ["c"]), node("Constant", [], ["c"], value_int=1)],
        18,
        "input 'c' is not a graph input, an initializer or the output of an earlier",
    ),
    ([node("Constant", [], ["x"], value_int=1), node("Identity", ["x"])], 18, "output 'x' already has a value"),
]


@pytest.mark.parametrize(("nodes", "opset", "message"), BAD_MODELS, ids=[bad[2][:40] for bad in BAD_MODELS])
def test_bad_models_are_refused_before_anything_runs(nodes, opset, message):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is compared
        Graph(model(nodes, ["x"], ["y"], opset=opset))
    assert message in str(raised.value)


def test_duplicates_and_broken_tensors_are_refused():
    for field, kind in (("input", "input"), ("output", "output"), ("initializer", "initializer")):
        twice = model([node("Identity", ["x"])], ["x"], ["y"], {"w": X})
        getattr(twice.graph, field).append(getattr(twice.graph, field)[0])
        with pytest.raises(ValueError, match=f"graph has two {kind}s"):
            Graph(twice)
    broken = model([node("Identity", ["x"])], ["x"], ["y"], {"w": X})
    broken.graph.initializer[0].data_type = 999
    with pytest.raises(ValueError, match="tensor 'w' cannot be read: KeyError"):
        Graph(broken)


def test_outputs_must_be_of_the_declared_type():
    wrong = model([node("Identity", ["x"])], ["x"], [helper.make_tensor_value_info("y", TensorProto.INT64, None)])
    with pytest.raises(TypeError, match="output 'y' is declared as int64; got float32"):
        Graph(wrong).run({"x": X})
    wrong = model([node("Identity", ["x"])], ["x"], [sequence_info("y")])
    with pytest.raises(TypeError, match="output 'y' is declared as a sequence of float32; got float32"):
        Graph(wrong).run({"x": X})


def test_a_constant_may_be_data_and_bounds():
    strict = pytest.importorskip("array_api_strict")
    nodes = [node("Slice", ["x", "i", "e"], ["y"]), node("Identity", ["i"], ["j"])]
    outputs = ["y", helper.make_tensor_value_info("j", TensorProto.INT64, None)]
    results = Graph(model(nodes, ["x"], outputs, {"i": [1], "e": [2]})).run({"x": strict.asarray(X)})
    assert_same(results["y"], X[1:2].copy(), like=strict.asarray(X))
    assert type(results["j"]) is type(results["y"])


def test_constants_join_the_data_and_not_the_bounds():
    strict = pytest.importorskip("array_api_strict")
    index = [helper.make_tensor_value_info(name, TensorProto.INT64, None) for name in "se"]
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
            [helper.make_tensor_value_info("y", TensorProto.FLOAT16, None), "x"],
            {"w": half},
        )
    )
    with pytest.raises(TypeError, match="constant 'w' of float16 cannot be an array of array_api_strict"):
        graph.run({"x": strict.asarray(X)})


def test_a_node_that_fails_is_named():
    graph = Graph(model([node("Slice", ["x", "s", "e"], name="crop")], ["x"], ["y"], {"s": [0], "e": [[1]]}))
    with pytest.raises(ValueError, match=r"^Slice-13 \(node crop\): ends must be 1-D; got shape \(1, 1\)"):
        graph.run({"x": X})


def test_models_without_an_opset_and_inputs_of_other_types_are_refused():
    empty = model([node("Identity", ["x"])], ["x"], ["y"])
    del empty.opset_import[:]
    with pytest.raises(ValueError, match="model must import an opset"):
        Graph(empty)
    tensor = TypeProto(tensor_type=TypeProto.Tensor(elem_type=1))
    optional = helper.make_value_info("x", TypeProto(optional_type=TypeProto.Optional(elem_type=tensor)))
    with pytest.raises(ValueError, match="'x' must be a tensor or a sequence of tensors; got optional_type"):
        Graph(model([node("Identity", ["x"])], [optional], ["y"]))


def test_backend_protocol():
    chain = model(CHAIN, ["x"], ["a", "c"], CHAIN_CONSTANTS)
    for results in (Backend.run_model(chain, [X]), Backend.prepare(chain).run({"x": X})):
        assert_same(results[0], X[1:, 0:1, ::-1].copy())
    assert_same(Backend.run_node(node("Slice", ["x"], starts=[1], ends=[2]), [X], opset_version=9)[0], X[1:2].copy())
    (rows,) = Backend.run_node(node("SplitToSequence", ["x"]), [X])
    assert isinstance(rows, list)
    assert Backend.is_compatible(chain)
    assert not Backend.is_compatible(model([node("Relu", ["x"])], ["x"], ["y"]))
    assert not Backend.is_compatible(helper.make_model(chain.graph, opset_imports=[helper.make_opsetid("other", 1)]))
    with pytest.raises(TypeError, match="inputs must be a sequence or a mapping of arrays"):
        Backend.run_model(chain, X)
    assert Backend.supports_device("CPU")
    assert not Backend.supports_device("TPU")
    with pytest.raises(ValueError, match="device must be one of CPU, CUDA; got 'TPU'"):
        Backend.prepare(chain, "TPU")
    with pytest.raises(ValueError, match="inputs must be at most 1, the number of the model; got 2"):
        Backend.run_model(chain, [X, X])


def test_reference_ops_take_linked_attributes_and_correct_the_reference():
    """A function's attribute reaches our Split, and a start below -d is element 0 as the text says."""
    inner = helper.make_node("Split", ["x"], ["a", "b"], num_outputs=2)
    inner.attribute.append(AttributeProto(name="axis", type=AttributeProto.INT, ref_attr_name="along"))
    function = helper.make_function(
        "local", "Halve", ["x"], ["a", "b"], [inner], [helper.make_opsetid("", 18)], ["along"]
    )
    call = helper.make_node("Halve", ["x"], ["a", "b"], domain="local", along=2)
    low = node("Slice", ["x", "s", "e", "", "t"], ["y"])
    outer = model([call, low], ["x"], ["a", "b", "y"], {"s": [-9], "e": [-99], "t": [-1]}, opset=18)
    outer.opset_import.append(helper.make_opsetid("local", 1))
    outer.functions.append(function)
    a, b, y = ReferenceEvaluator(outer, new_ops=reference_ops()).run(None, {"x": X})
    assert_same(a, X[..., :2].copy())
    assert_same(b, X[..., 2:].copy())
    assert_same(y, X[:1].copy())
    assert unsupported(outer)
