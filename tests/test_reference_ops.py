"""reference_ops: these operators in onnx.reference's evaluator."""

import numpy as np
import pytest
from helpers import assert_same, model, node, sequence_info, tensor_info
from onnx import AttributeProto, TensorProto, helper, inliner, parser
from onnx.reference import ReferenceEvaluator

from gpuslice.onnx import reference_ops, unsupported

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
HEADER = '<ir_version: 8, opset_import: ["" : 18]>'


def run(given, inputs):
    """Return the outputs of a model with our operators."""
    return ReferenceEvaluator(given, new_ops=reference_ops()).run(None, inputs)


def test_reference_ops_correct_the_reference():
    """A start below -d is element 0, as the text says."""
    low = model([node("Slice", ["x", "s", "e", "", "t"])], ["x"], ["y"], {"s": [-9], "e": [-99], "t": [-1]})
    assert_same(run(low, {"x": X})[0], X[:1].copy())


def function_model():
    """Return a model of a function whose attribute reaches a Split, and which corrects the reference."""
    inner = [
        helper.make_node("Split", ["x"], ["a", "b"], num_outputs=2),
        helper.make_node("Slice", ["b", "s", "e", "", "t"], ["c"]),
    ]
    inner[0].attribute.append(AttributeProto(name="axis", type=AttributeProto.INT, ref_attr_name="along"))
    function = helper.make_function(
        "local", "Halve", ["x", "s", "e", "t"], ["a", "c"], inner, [helper.make_opsetid("", 18)], ["along"]
    )
    call = helper.make_node("Halve", ["x", "s", "e", "t"], ["a", "c"], domain="local", along=2)
    outer = model([call], ["x"], ["a", "c"], {"s": [-9], "e": [-99], "t": [-1]}, opset=18)
    outer.opset_import.append(helper.make_opsetid("local", 1))
    outer.functions.append(function)
    return outer


def test_a_function_runs_them_if_it_is_inlined_or_the_proto():
    outer = function_model()
    expected = X[..., :2].copy(), X[:1, :, 2:].copy()
    for actual, wanted in zip(run(inliner.inline_local_functions(outer), {"x": X}), expected, strict=True):
        assert_same(actual, wanted)
    evaluator = ReferenceEvaluator(outer.functions[0], new_ops=reference_ops())
    bounds = {name: np.array([value]) for name, value in (("s", -9), ("e", -99), ("t", -1))}
    for actual, wanted in zip(evaluator.run(None, {"x": X, **bounds}, attributes={"along": 2}), expected, strict=True):
        assert_same(actual, wanted)
    assert unsupported(outer)


WRONG = {
    "float attribute": ("y = Split<axis: float = 1.5>(x, s)", ValueError, "Split-18: attribute axis must be an int; got 1.5"),
    "list of floats": ("y = Split<axis: floats = [1.0]>(x, s)", ValueError, r"Split-18: attribute axis must be an int; got \[1.0\]"),
    "text": ('y = Split<axis: string = "1">(x, s)', ValueError, "Split-18: attribute axis must be an int; got '1'"),
    "element type": ("e = SequenceEmpty<dtype = 7>() q = SequenceInsert(e, x) y = SequenceAt(q, p)", TypeError, "SequenceInsert-11: tensor must have the type of input_sequence, int64; got float32"),
    "default element type": ("e = SequenceEmpty() q = SequenceInsert(e, s) y = SequenceAt(q, p)", TypeError, "SequenceInsert-11: tensor must have the type of input_sequence, float32; got int64"),
    "emptied": ("e = SequenceConstruct(s) f = SequenceErase(e) q = SequenceInsert(f, x) y = SequenceAt(q, p)", TypeError, "SequenceInsert-11: tensor must have the type of input_sequence, int64; got float32"),
    "type of bounds": ("y = Slice(x, x, s)", TypeError, "Slice-13: starts must have a type in {int32, int64}; got float32"),
    "two types": ("y = SequenceConstruct(x, s)", TypeError, r"SequenceConstruct-11: inputs\[1\] must have the type of inputs\[0\], float32; got int64"),
    "no sequence": ("y = SequenceLength(x)", TypeError, "SequenceLength-11: input_sequence must be a gpuslice.Sequence, list or tuple"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_the_operators_own(name):
    nodes, error, message = WRONG[name]
    given = parser.parse_model(
        f"{HEADER} g (float[n] x) => (float[m] y) <int64[1] s = {{2}}, int64 p = {{0}}> {{ {nodes} }}"
    )
    with pytest.raises(error, match=f"^{message}"):
        run(given, {"x": X[0, 0, :2]})


def test_a_loop_that_goes_on_with_an_empty_sequence_keeps_its_type():
    given = parser.parse_model(
        f"""{HEADER} g (int64 n, double[2] x) => (seq(double[2]) s) {{
            c = Constant<value = bool {{1}}>()
            e = SequenceEmpty<dtype = 11>()
            s = Loop(n, c, e) <body = b (int64 i, bool k, seq(double[2]) a) => (bool k2, seq(double[2]) z) {{
                k2 = Identity(k)
                part = Slice(x, i, i)
                z = SequenceInsert(a, x, i)
            }}>
        }}"""
    )
    (items,) = run(given, {"n": np.array(3), "x": np.zeros(2)})
    assert [item.dtype for item in items] == [np.float64] * 3
    assert run(given, {"n": np.array(0), "x": np.zeros(2)})[0] == []


def test_a_bound_of_one_value_may_have_any_shape():
    """onnx.reference makes a Loop's iteration number 0-d, also if the model declares it otherwise."""
    given = parser.parse_model(
        f"""{HEADER} g (int64 n, float[3] x) => (float[1] last, float[m, k] all) {{
            c = Constant<value = bool {{1}}>()
            one = Constant<value_ints = [1]>()
            zero = Constant<value_ints = [0]>()
            v = Slice(x, zero, one)
            last, all = Loop(n, c, v) <body = b (int64[1] i, bool k, float[1] a) => (bool k2, float[1] z, float[1] w) {{
                k2 = Identity(k)
                j = Add(i, one)
                z = Slice(x, i, j)
                w = Identity(z)
            }}>
        }}"""
    )
    last, rows = run(given, {"n": np.array(3), "x": X[0, 0, :3]})
    assert_same(last, X[0, 0, 2:3].copy())
    assert_same(rows, X[0, 0, :3].reshape(3, 1))


def test_the_sizes_of_split_to_sequence_keep_their_rank():
    nodes = [node("SplitToSequence", ["x", "scalar"], ["s"]), node("SplitToSequence", ["x", "list"], ["l"])]
    given = model(nodes, ["x"], [sequence_info("s"), sequence_info("l")], {"scalar": 2, "list": [2]})
    scalar, listed = run(given, {"x": np.zeros(2, np.float32)})
    assert (len(scalar), len(listed)) == (1, 1)
    with pytest.raises(ValueError, match="^SplitToSequence-11: split must add up to the length of the axis, 3; got 2"):
        run(given, {"x": np.zeros(3, np.float32)})


CHANGES = {
    "append": lambda items: items.append(np.zeros(2)),
    "set": lambda items: items.__setitem__(0, np.zeros(2)),
    "alike": lambda items: items.__setitem__(0, np.zeros(1)),
    "insert past the methods of the class": lambda items: list.insert(items, 0, np.zeros(2)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_sequence_that_is_changed_is_checked_again(name):
    made = model([node("SequenceConstruct", ["x"], ["s"])], ["x"], [sequence_info("s")])
    (items,) = run(made, {"x": np.zeros(1, np.float32)})
    assert type(items[0]) is np.ndarray
    length = model([node("SequenceLength", ["s"])], [sequence_info("s")], [tensor_info("y", [], TensorProto.INT64)])
    inserted = model([node("SequenceInsert", ["s", "x"], ["t"])], [sequence_info("s"), "x"], [sequence_info("t")])
    assert run(length, {"s": items})[0] == 1
    CHANGES[name](items)
    with pytest.raises(TypeError, match="^SequenceInsert-11: .*float(32|64)"):
        run(inserted, {"s": items, "x": np.zeros(1, np.float32)})


@pytest.mark.parametrize(("imports", "expected"), [([("", 7), ("", 18)], 2), ([("ai.onnx", 18), ("", 7)], 2)])
def test_the_highest_opset_of_the_default_domain_binds(imports, expected):
    given = model([node("Split", ["x"], ["a", "b"], num_outputs=2)], ["x"], ["a", "b"])
    del given.opset_import[:]
    given.opset_import.extend(helper.make_opsetid(*entry) for entry in imports)
    assert len(run(given, {"x": X})) == expected
