"""Graph: the models and inputs that it refuses, and what the errors say."""

import numpy as np
import pytest
from helpers import model, node, sequence_info, tensor_info
from onnx import TensorProto, TypeProto, helper, numpy_helper

from gpuslice.onnx import Graph, unsupported

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
BAD_RUNS = [
    ({}, ValueError, "input 'x', 's' were not given"),
    ({"x": X, "s": [X], "z": X}, ValueError, "the model has no input 'z'; it has x, s"),
    ({"x": X.astype(int), "s": [X]}, TypeError, "input 'x' must have dtype float32; got int64"),
    ({"x": X[0], "s": [X]}, ValueError, r"input 'x' must have shape \(n, 3, \?\); got \(3, 4\)"),
    ({"x": X[:, :2], "s": [X]}, ValueError, r"input 'x' must have shape \(n, 3, \?\); got \(2, 2, 4\)"),
    ({"x": [1, 2], "s": [X]}, TypeError, "input 'x' must be an array; got list"),
    ({"x": X, "s": X}, TypeError, "input 's' must be a gpuslice.Sequence"),
    ({"x": X, "s": [X.astype(int)]}, TypeError, "input 's' must be a sequence of float32; got int64"),
    ({"x": X, "s": [X, X.astype(int)]}, TypeError, r"input 's' must hold one dtype, float32; got int64 in .*\[1\]$"),
    ({"x": X, "s": [X, X[0], X]}, ValueError, r"input 's'\[1\] must have shape \(2, 3, 4\); got \(3, 4\)"),
]


@pytest.mark.parametrize(("inputs", "error", "message"), BAD_RUNS, ids=[bad[2][:40] for bad in BAD_RUNS])
def test_inputs_must_be_as_declared(inputs, error, message):
    infos = [tensor_info("x", ["n", 3, None]), sequence_info("s", (2, 3, 4))]
    graph = Graph(model([node("Identity", ["x"])], infos, ["y"]))
    with pytest.raises(error, match=message):
        graph.run(inputs)


BAD_MODELS = [
    (
        [node("Relu", ["x"], ["a"], name="r"), node("Foo", ["a"], ["b"]), node("Relu", ["b"], ["y"], name="s")],
        18,
        "cannot run: Relu: 2 nodes, first 'r'; Foo: 1 node, '#1'. Supported are Slice, DynamicSlice, Split, ",
    ),
    (
        [node("Relu", ["x"], ["a"]), node("Relu", ["a"], domain="com.x")],
        18,
        "Relu: 1 node, '#0'; Relu: 1 node, '#1' (domain must be '' or 'ai.onnx'; got 'com.x'). ",
    ),
    ([node(f"Op{i}", ["x"], [f"y{i}"]) for i in range(12)], 18, "Op9: 1 node, '#9'; and 2 more. Supported"),
    ([node("Foo", ["x"])], 18, "parts(model) returns the parts that can run (command line: gpuslice run --part N)"),
    ([node("SequenceLength", ["x"])], 9, "SequenceLength: 1 node, '#0' (needs opset 11 or newer; got opset 9)"),
    (
        [node("Identity", ["z"])],
        18,
        "Identity (node #0): input 'z' is not a graph input, an initializer or the output of an earlier node",
    ),
    ([node("Identity", ["x"]), node("Identity", ["x"])], 18, "Identity (node #1): output 'y' already has a value"),
    ([node("Identity", ["x"], ["z"])], 18, "graph output 'y' is not the output of any node, input or initializer"),
    ([node("Split", ["x"], ["y"], foo=1)], 18, "Split-18 (node #0): attribute foo does not exist in this version"),
    ([node("Slice", ["x"], ["y"])], 18, "Slice-13 (node #0): input starts is required and was not given"),
    (
        [node("Identity", ["x"], ["y", "z"])],
        18,
        "Identity (node #0): must have one input, one output and no attributes",
    ),
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


def test_an_operator_that_the_model_defines_itself_is_not_ours():
    own = model([node("Slice", ["x"], ["y"])], ["x"], ["y"])
    own.functions.append(helper.make_function("", "Slice", ["x"], ["y"], [node("Neg", ["x"])], own.opset_import))
    assert unsupported(own) == ["Slice: 1 node, '#0' (the model defines it as a function)"]


def test_a_graph_takes_a_model_and_a_mapping():
    with pytest.raises(TypeError, match="model must be an onnx.ModelProto; got str"):
        Graph("model.onnx")
    with pytest.raises(TypeError, match="inputs must be a mapping from names to values; got list"):
        Graph(model([node("Identity", ["x"])], ["x"], ["y"])).run([X])
    with pytest.raises(TypeError, match="observe must be callable or None; got int"):
        Graph(model([node("Identity", ["x"])], ["x"], ["y"])).run({"x": X}, observe=1)


def test_duplicates_are_refused():
    for field, kind in (("input", "input"), ("initializer", "initializer")):
        twice = model([node("Identity", ["x"])], ["x"], ["y"], {"w": X})
        getattr(twice.graph, field).append(getattr(twice.graph, field)[0])
        with pytest.raises(ValueError, match=f"graph has two {kind}s"):
            Graph(twice)


def test_outputs_must_be_of_the_declared_type():
    wrong = model([node("Identity", ["x"])], ["x"], [tensor_info("y", None, TensorProto.INT64)])
    with pytest.raises(TypeError, match="output 'y' is declared as int64; got float32"):
        Graph(wrong).run({"x": X})
    wrong = model([node("Identity", ["x"])], ["x"], [sequence_info("y")])
    with pytest.raises(TypeError, match="output 'y' is declared as a sequence of float32; got float32"):
        Graph(wrong).run({"x": X})


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


def tensor(kind, dims, **data):
    """Return a TensorProto by its fields."""
    return TensorProto(name="w", data_type=kind, dims=dims, **data)


BAD_TENSORS = [
    (tensor(TensorProto.FLOAT, [3, -1], float_data=[1, 2, 3]), "dims must be at least 0; got [3, -1]"),
    (tensor(TensorProto.FLOAT, [-3, -1], float_data=[1, 2, 3]), "dims must be at least 0; got [-3, -1]"),
    (tensor(TensorProto.STRING, [-1], string_data=[b"a"]), "dims must be at least 0; got [-1]"),
    (tensor(TensorProto.FLOAT, [4], float_data=[1, 2, 3]), "cannot reshape array of size 3 into shape (4,)"),
    (tensor(TensorProto.FLOAT, [1], raw_data=bytes(8)), "cannot reshape array of size 2 into shape (1,)"),
    (tensor(TensorProto.UINT4, [2], raw_data=bytes(3)), "dims [2] of UINT4 need 1 bytes of raw_data; got 3"),
    (tensor(TensorProto.STRING, [2], string_data=[b"a"]), "dims [2] need 2 strings; got 1"),
    (tensor(TensorProto.STRING, [1], string_data=[b"\xff"]), "text must be UTF-8; got b'\\xff'"),
    (tensor(999, [1]), "data_type must be a data type of TensorProto; got 999"),
    (
        tensor(TensorProto.FLOAT, [1], data_location=TensorProto.EXTERNAL),
        "its data is in a file; load_model(path) reads",
    ),
]


@pytest.mark.parametrize(("broken", "message"), BAD_TENSORS, ids=[bad[1] for bad in BAD_TENSORS])
def test_broken_tensors_are_refused(broken, message):
    initializer = model([node("Identity", ["x"])], ["x"], ["y"])
    initializer.graph.initializer.append(broken)
    for bad in (initializer, model([node("Constant", [], ["y"], value=broken)], [], ["y"])):
        with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is compared
            Graph(bad)
        assert "tensor 'w' cannot be read: " in str(raised.value)
        assert message in str(raised.value)


def test_external_data_is_not_read_from_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.bin").write_bytes(X.tobytes())
    outside = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=X.shape, data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="w.bin")
    given = model([node("Identity", ["w"])], [], ["y"])
    given.graph.initializer.append(outside)
    with pytest.raises(ValueError, match=r"tensor 'w' cannot be read: its data is in a file; load_model\(path\)"):
        Graph(given)


BAD_SPARSE = [
    ([0, 6], [2, 3], "indices must be inside of shape (2, 3); got [6]"),
    ([-1, 0], [2, 3], "indices must be inside of shape (2, 3); got [-1]"),
    ([[0, 0], [1, 3]], [2, 3], "indices must be inside of shape (2, 3); got [1, 3]"),
    ([1, 1], [2, 3], "indices must differ; got one twice"),
    ([1], [2, 3], "indices must be int64 of shape (n,) or (n, 2) for values of shape (n,); got int64 of shape (1,)"),
    ([[0], [1]], [2, 3], "got int64 of shape (2, 1) for values of shape (2,)"),
    ([0, 1], [-2, -3], "dims must be at least 0; got [-2, -3]"),
    ([0, 1], [2**62, 2**62], "sparse tensor 'w': "),
]


@pytest.mark.parametrize(("indices", "dims", "message"), BAD_SPARSE, ids=[bad[2] for bad in BAD_SPARSE])
def test_broken_sparse_tensors_are_refused(indices, dims, message):
    values = numpy_helper.from_array(np.float32([5, 6]), "w")
    given = model([node("Identity", ["w"])], [], ["y"])
    given.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(np.asarray(indices)), dims)
    )
    with pytest.raises(ValueError, match="^sparse tensor 'w': ") as raised:
        Graph(given)
    assert message in str(raised.value)
