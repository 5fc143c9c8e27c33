"""parts: the sub-models that can run, and that they give what the whole model gives."""

import random

import numpy as np
import pytest
from helpers import model, node, tensor_info
from onnx import TensorProto, checker, helper, parser
from onnx.reference import ReferenceEvaluator

from gpuslice.onnx import Graph, parts
from gpuslice.onnx.declared import Declared
from gpuslice.onnx.partition import partition

HEADER = '<ir_version: 8, opset_import: ["" : 18]>'
BOUNDS = "int64[1] s = {1}, int64[1] e = {3}, int64[1] a = {0}"
# The nodes of a model with input x and output y; per part its inputs, its nodes' outputs and its outputs.
CUTS = {
    "all": ("y = Slice(x, s, e, a)", [("x", "y", "y")]),
    "none": ("y = Relu(x)", []),
    "no Identity alone": ("c = Identity(x) d = Relu(c) y = Identity(d)", []),
    "Identity inside": ("c = Slice(x, s, e) d = Identity(c) f = Slice(d, s, e) y = Relu(f)", [("x", "c d f", "f")]),
    "one input": ("c = Slice(x, s, e) d = Slice(x, s, e, a) y = Add(c, d)", [("x", "c d", "c d")]),
    "one initializer": (
        "c = Slice(x, s, e) d = Neg(x) f = Slice(d, s, e) y = Add(c, f)",
        [("x", "c", "c"), ("d", "f", "f")],
    ),
    "constants are copied": (
        "k = Constant<value_ints = [0]>() c = Slice(x, k, e) d = Neg(c) y = Slice(d, k, e)",
        [("x", "k c", "c"), ("d", "k y", "y")],
    ),
    "no piece around a node that cannot run": (
        "c = Slice(x, s, e) d = Neg(c) f = SequenceConstruct(c, d) y = ConcatFromSequence<axis = 0>(f)",
        [("x", "c", "c"), ("c d", "f y", "y")],
    ),
    "an early node joins a late one": (
        "c = Slice(x, s, e) z = Neg(x) f = Slice(z, s, e) h = Neg(f) i = SequenceConstruct(c, h) y = ConcatFromSequence<axis = 0>(i)",
        [("x h", "c i y", "y"), ("z", "f", "f")],
    ),
    "what a subgraph reads": (
        "c = Slice(x, s, e) d = Slice(c, s, e) k = Constant<value = bool {1}>() y = If(k) <then_branch = t () => (float[m] t) { t = Neg(c) }, else_branch = f () => (float[m] f) { f = Neg(d) }>",
        [("x", "c d", "c d")],
    ),
    "in a subgraph": (
        "c = Neg(x) k = Constant<value = bool {1}>() y = If(k) <then_branch = t () => (float[m] t) { b = Slice(c, s, e) t = Neg(b) }, else_branch = f () => (float[m] f) { b = Neg(c) f = Slice(b, s, e) }>",
        [("c", "b", "b"), ("b", "f", "f")],
    ),
    "what nobody reads": ("y = Neg(x) c, d = Split<num_outputs = 2>(x) f = Identity(c)", [("x", "c d f", "d f")]),
    "an attribute that is not allowed": ("c = Slice<foo = 1>(x, s, e) y = Slice(c, s, e)", [("c", "y", "y")]),
}  # fmt: skip


@pytest.mark.parametrize("name", CUTS)
def test_cuts(name):
    nodes, expected = CUTS[name]
    given = parser.parse_model(f"{HEADER} g (float[9] x) => (float[m] y) <{BOUNDS}> {{ {nodes} }}")
    cut = parts(given)
    assert [
        (
            " ".join(entry.name for entry in part.graph.input),
            " ".join(output for inner in part.graph.node for output in inner.output),
            " ".join(entry.name for entry in part.graph.output),
        )
        for part in cut
    ] == expected
    for part in cut:
        checker.check_model(part)
        Graph(part)


def test_types_are_declared_or_inferred():
    text = f"{HEADER} g (float[9] x) => (float[m] y) <{BOUNDS}, float[2] h> {{ c = Neg(x) d = Slice(c, s, e) f = F.G(d) h = Slice(f, s, e) y = Neg(h) }}"
    given = parser.parse_model(text)
    given.opset_import.append(helper.make_opsetid("F", 1))
    first, second = parts(given)
    assert first.graph.input[0] == helper.make_tensor_value_info("c", TensorProto.FLOAT, [9])
    inferred = Declared.of(first.graph.output[0])
    assert (inferred.dtype, len(inferred.shape)) == ("float32", 1)
    assert not second.graph.input[0].HasField("type")
    assert second.graph.output[0] == helper.make_tensor_value_info("h", TensorProto.FLOAT, [2])
    assert Graph(second).run({"f": np.arange(9, dtype=np.float32)})["h"].tolist() == [1, 2]


@pytest.mark.parametrize(
    "nodes",
    [
        "c = Neg(x) d = Slice(c, s, e) y = Neg(d)",
        "c = Pad(x, p) d = Slice(c, s, e) y = Neg(d)",
        "w = Constant<value = float {1}>() c = Slice(w, s, e) d = Neg(c) f = Slice(d, s, e) y = Neg(f)",
    ],
)
def test_a_negative_dimension_does_not_end_the_process(nodes):
    """Inference by onnx 1.23 aborts in a Slice of one."""
    text = f"{HEADER} g (float[9] x) => (float[m] y) <{BOUNDS}, int64[2] p = {{-9, -9}}> {{ {nodes} }}"
    given = parser.parse_model(text)
    for negative in (-1, -7, -(2**63)):
        given.graph.input[0].type.tensor_type.shape.dim[0].dim_value = negative
        for inner in given.graph.node:
            if inner.op_type == "Constant":
                inner.attribute[0].t.dims[:] = [negative]
        assert parts(given)


def test_an_initializer_may_be_an_input_with_a_default():
    given = model([node("Slice", ["x", "s", "e"])], ["x", tensor_info("s", [1], TensorProto.INT64)], ["y"], {"s": [0], "e": [1]})  # fmt: skip
    (part,) = parts(given)
    assert [entry.name for entry in part.graph.input] == ["x", "s"]
    assert {tensor.name for tensor in part.graph.initializer} == {"s", "e"}


BAD_MODELS = [
    ("model.onnx", TypeError, "model must be an onnx.ModelProto; got str"),
    (model([node("Slice", ["x"], ["y"]), node("Neg", ["z"], ["w"])], ["x"], ["y"]), ValueError, r"Neg \(node #1\): input 'z' is not"),
    (model([node("Neg", ["x"], ["y"]), node("Neg", ["x"], ["y"])], ["x"], ["y"]), ValueError, r"Neg \(node #1\): output 'y' already has a value"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "error", "message"), BAD_MODELS, ids=[bad[2] for bad in BAD_MODELS])
def test_bad_models(bad, error, message):
    with pytest.raises(error, match=message):
        parts(bad)


def draw(rng, count):
    """Return a model of matrices of which some nodes can run."""
    values, nodes = ["x"], []
    for i in range(count):
        left, right = rng.choice(values[-6:]), rng.choice(values)
        kind = rng.choice(["Slice", "Slice", "Split", "Join", "Neg", "Add"])
        if kind == "Slice":
            nodes.append(node("Slice", [left, "zero", "far"], [f"v{i}"]))
        elif kind == "Split":
            nodes.append(node("Split", [left, "all"], [f"v{i}"]))
        elif kind == "Join":
            nodes.append(node("SequenceConstruct", [left, right], [f"q{i}"]))
            nodes.append(node("SequenceAt", [f"q{i}", "last"], [f"v{i}"]))
        else:
            nodes.append(node(kind, [left, right][: 1 + (kind == "Add")], [f"v{i}"]))
        values.append(f"v{i}")
    outputs = [value for value in values if not any(value in inner.input for inner in nodes)]
    constants = {"zero": [0], "far": [9], "all": [3], "last": -1}
    return model(nodes, ["x"], outputs, constants)


def run_in_parts(given, cut, x):
    """Return the outputs of a model, its parts run by Graph and all other nodes by onnx.reference."""
    inside = {name for part in cut for inner in part.graph.node for name in inner.output}
    steps = [(Graph(part).run, [entry.name for entry in part.graph.input]) for part in cut]
    for inner in given.graph.node:
        if not inside.issuperset(inner.output):
            infos = [[helper.make_empty_tensor_value_info(name) for name in names] for names in (inner.input, inner.output)]  # fmt: skip
            evaluator = ReferenceEvaluator(helper.make_model(helper.make_graph([inner], "g", *infos), opset_imports=given.opset_import))  # fmt: skip
            steps.append((lambda values, e=evaluator: dict(zip(e.output_names, e.run(None, values), strict=True)), list(inner.input)))  # fmt: skip
    values = {"x": x}
    while steps:
        ready = next(step for step in steps if values.keys() >= set(step[1]))
        values |= ready[0]({name: values[name] for name in ready[1]})
        steps.remove(ready)
    return [values[entry.name] for entry in given.graph.output]


@pytest.mark.parametrize("seed", range(20))
def test_the_parts_and_the_rest_give_what_the_model_gives(seed):
    given = draw(random.Random(seed), 30)
    x = np.random.default_rng(seed).standard_normal((3, 2)).astype(np.float32)
    cut = parts(given)
    assert cut
    expected = ReferenceEvaluator(given).run(None, {"x": x})
    for actual, wanted in zip(run_in_parts(given, cut, x), expected, strict=True):
        assert actual.tobytes() == wanted.tobytes()


def reachable(follows, start):
    """Return all that follows from a piece."""
    seen, waiting = set(), [start]
    while waiting:
        new = follows[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


@pytest.mark.parametrize("seed", range(50))
def test_no_two_pieces_can_be_merged_and_none_waits_for_itself(seed):
    rng = random.Random(seed)
    count = rng.randrange(2, 25)
    reads = [{rng.randrange(i) for _ in range(rng.randrange(3))} if i else set() for i in range(count)]
    supported = {i for i in range(count) if rng.random() < 0.7}
    pieces = partition(reads, supported, [])
    assert sorted(i for piece in pieces for i in piece) == sorted(supported)
    pieces += [[i] for i in range(count) if i not in supported]
    piece_of = {i: piece for piece, members in enumerate(pieces) for i in members}
    follows = {piece: set() for piece in range(len(pieces))}
    for i in range(count):
        for source in reads[i]:
            if piece_of[source] != piece_of[i]:
                follows[piece_of[source]].add(piece_of[i])
    for piece in follows:
        assert piece not in reachable(follows, piece)
    for i in supported:
        for source in reads[i] & supported:
            a, b = piece_of[source], piece_of[i]
            assert a == b or any(b in reachable(follows, other) for other in follows[a] - {b})
