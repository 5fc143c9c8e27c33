"""run_node: which version runs, which inputs may be left out, and what is refused."""

import ml_dtypes
import numpy as np
import pytest
from helpers import assert_same, node
from libraries import make, to_numpy
from onnx import AttributeProto, TensorProto, helper

import gpuslice as gs
from gpuslice.onnx import VERSIONS, run_node

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


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
    (node("Slice", ["x"]), [X], 0, ValueError, "Slice: opset must be an int of at least 1; got int 0"),
    (node("Slice", ["x"]), [X], True, ValueError, "Slice: opset must be an int of at least 1; got bool True"),
    (node("Slice", ["x"]), X, 13, TypeError, "Slice-13: inputs must be a list or tuple, one value per input; got ndarray"),
    (node("Slice", ["x", "s", "e"], ["y", "z"]), [X, [0], [1]], 13, ValueError, "Slice-13: outputs must be exactly 1; got 2"),
    (node("Slice", ["x", "s", "e"]), [X, [0], [1], [0]], 13, ValueError, "Slice-13: inputs must be at most 3, as the node names them; got 4"),
    (node("Slice", ["x", "s", "e", ""]), [X, [0], [1], [0]], 13, ValueError, "Slice-13: input 3 must be None"),
    (node("Slice", ["x", "s", "e"]), [X, None, [1]], 13, ValueError, "Slice-13: input starts is required"),
    (node("Slice", ["x", "s", "e"]), [[1, 2], [0], [1]], 13, TypeError, "Slice-13: data must be an array; got list"),
    (node("Slice", ["x", "s", "e"]), [X, 0, [1]], 13, TypeError, "Slice-13: starts must be a sequence of ints"),
    (node("Slice", ["x", "s", "e"]), [X.astype(object), [0], [1]], 13, TypeError, "Slice-13: data must hold str if its dtype is object; got float"),
    (node("Slice", ["x", "s", "e"]), [np.array([None, "a"], object), [0], [1]], 13, TypeError, "Slice-13: data must hold str if its dtype is object; got NoneType"),
    (node("Slice", ["x", "s", "e"]), [X.view(ml_dtypes.float8_e4m3fn), [0], [1]], 13, TypeError, "Slice-13: data must have a type in .*; got float8_e4m3fn"),
    (node("Slice", ["x"], starts=[0], ends=[1], axes=0), [X], 1, ValueError, "Slice-1: attribute axes must be a list of ints; got 0"),
    (node("Slice", ["x"], starts=[0]), [X], 1, ValueError, "Slice-1: attribute ends is required"),
    (node("Split", ["x"], axis=1.5), [X], 13, ValueError, "Split-13: attribute axis must be an int; got 1.5"),
    (node("Split", ["x", "s"]), [X, np.array([0.5])], 1, TypeError, "Split-1: split must have the type of input, float32; got float64"),
    (node("Split", ["x", "s"]), [X, np.array([1.5], np.float32)], 1, ValueError, "Split-1: split must hold whole numbers; got 1.5"),
    (node("Split", ["x", "s"]), [X, np.array([np.inf], np.float32)], 1, ValueError, "Split-1: split must hold whole numbers; got inf"),
    (node("Split", ["x", "s"]), [X, np.array(2, np.float32)], 1, ValueError, "Split-1: split must be 1-D"),
    (node("Split", ["x"]), [X.astype(int)], 1, TypeError, "Split-1: input must have a type in {float16, float32, float64}; got int64"),
    (node("SequenceAt", ["s", "p"]), [X, 0], 11, TypeError, "SequenceAt-11: input_sequence must be a gpuslice.Sequence"),
    (node("SequenceEmpty", [], dtype=TensorProto.BFLOAT16), [], 11, TypeError, "SequenceEmpty-11: dtype must be .*; got bfloat16"),
    (node("SequenceEmpty", [], dtype=999), [], 11, TypeError, "SequenceEmpty-11: dtype must be a data type of TensorProto; got 999"),
    (node("SequenceConstruct", ["a", "", "b"]), [X, None, X], 11, ValueError, "SequenceConstruct-11: inputs must all be given; input 1"),
    (node("SequenceConstruct", []), [], 11, ValueError, "SequenceConstruct-11: input inputs is required"),
    (node("Slice", ["x"]), [X], 13.0, ValueError, "Slice: opset must be an int of at least 1; got float 13.0"),
    (node("Slice", ["x"]), [X], None, ValueError, "Slice: opset must be an int of at least 1; got NoneType None"),
    (node("Split", ["x"]), None, 13, TypeError, "Split-13: inputs must be a list or tuple, one value per input; got NoneType"),
    (None, [X], 13, TypeError, "node must be an onnx.NodeProto; got NoneType"),
    ("Slice", [X], 13, TypeError, "node must be an onnx.NodeProto; got str"),
    (node("Split", ["x"], axis=[0]), [X], 13, ValueError, r"Split-13: attribute axis must be an int; got \[0\]"),
    (node("Split", ["x"], axis="0"), [X], 13, ValueError, "Split-13: attribute axis must be an int; got b'0'"),
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


def test_an_attribute_has_one_value_of_its_type():
    for fields in (
        {"type": AttributeProto.INT, "f": 1.9},
        {"f": 1.0, "i": 1},
        {"type": AttributeProto.INT, "i": 1, "ints": [1]},
    ):
        broken = node("Split", ["x"])
        broken.attribute.append(AttributeProto(name="axis", **fields))
        with pytest.raises(
            ValueError, match="^Split-13: attribute axis of type (INT|FLOAT) must have one value; it has "
        ):
            run_node(broken, [X], opset=13)
    # A writer may leave out a zero, and IR version 1 the type.
    for fields in ({"type": AttributeProto.INT}, {"i": 0}):
        plain = node("Split", ["x"], ["a", "b"])
        plain.attribute.append(AttributeProto(name="axis", **fields))
        assert_same(run_node(plain, [X], opset=np.int64(13))[0], X[:1].copy())


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
    x = make(xp, X.copy())
    (seq,) = run_node(node("SequenceConstruct", ["a"]), [x], opset=11)
    assert seq[0] is x
    (at,) = run_node(node("SequenceAt", ["s", "p"]), [seq, np.array(0)], opset=11)
    assert_same(at, X, like=x)
    at[...] = xp.zeros_like(at)
    assert to_numpy(x).any()


def test_nodes_that_are_known_are_not_confused_with_others():
    """After a right run: other bounds in the same array, other ints in a list, wrong inputs, and an array twice."""
    cut = node("Slice", ["x", "s", "e", "a"])
    starts, ends = np.array([0]), np.array([1])
    for first in (0, 1, 0):
        starts[0], ends[0] = first, first + 1
        assert_same(run_node(cut, [X, starts, ends, [1]], opset=13)[0], X[:, first : first + 1].copy())
        assert_same(run_node(cut, [X, starts, ends], opset=13)[0], X[first : first + 1].copy())
        assert_same(run_node(cut, [X, [first], (first + 1,), None], opset=13)[0], X[first : first + 1].copy())
        assert_same(run_node(cut, [X, starts, starts, None], opset=13)[0], X[first:first].copy())
    for wrong in ([[True], [1]], [[0], [1.0]], [np.array([0.0]), [1]], [np.array([0], np.uint64), [1]]):
        with pytest.raises(TypeError, match="^Slice-13: (starts|ends) must"):
            run_node(cut, [X, *wrong], opset=13)
    with pytest.raises(ValueError, match="^Slice-13: inputs must be at most 4"):
        run_node(cut, [X, [0], [1], [1], [1], [1]], opset=13)
    with pytest.raises(ValueError, match="^Slice-13: input ends is required"):
        run_node(cut, [X, [0], None, [1]], opset=13)
    halves = node("Split", ["x"], ["a", ""], axis=2)
    for array in (X, X[:, ::-1], X + 1):
        first, second = run_node(halves, [array], opset=11)
        assert second is None
        assert_same(first, array[..., :2].copy())
    with pytest.raises(TypeError, match="^Split-1: input must have a type in"):
        run_node(node("Split", ["x"], ["a"]), [X.astype(int)], opset=1)
    sized = node("Split", ["x", "sizes"], ["a", "b"], axis=1)
    for sizes in ([1, 2], [2, 1]):
        parts = run_node(sized, [X, np.array(sizes, np.float32)], opset=1)
        assert [part.shape[1] for part in parts] == sizes


ONE, TWO = np.array([1]), np.array([2])


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "outputs", "attributes"),
    [
        ("Slice", 13, [X, ONE, TWO, ONE, ONE], ["y"], {}),  # an array is there twice
        ("Slice", 13, [X, [0], (1,), None, TWO], ["y"], {}),
        ("Slice", 13, [TWO, np.array([0]), ONE], ["y"], {}),
        ("Slice", 13, [ONE, ONE, ONE], ["y"], {}),
        ("Slice", 1, [X], ["y"], {"starts": [1], "ends": [9]}),
        ("Split", 13, [X, np.array([1, 1, 1])], ["a", "", "b"], {"axis": 1}),
        ("SplitToSequence", 11, [X], ["y"], {"axis": 1}),
    ],
)
def test_a_run_of_the_same_kind_is_known(op, opset, inputs, outputs, attributes, monkeypatch):
    """It is not run in full again. Then no array is there twice."""
    of = node(op, [f"i{i}" for i in range(len(inputs))], outputs, **attributes)
    others = [value.copy() if isinstance(value, np.ndarray) else value for value in inputs]
    others[0] += 1
    with gs.trace():  # always in full
        expected = run_node(of, others, opset=opset)
    run_node(of, inputs, opset=opset)
    monkeypatch.delattr("gpuslice.onnx.node.apply")
    for actual, right in zip(run_node(of, others, opset=opset), expected, strict=True):
        if isinstance(right, np.ndarray):
            assert_same(actual, right)
        else:
            assert type(actual) is type(right)
            for item, same in zip(actual or (), right or (), strict=True):
                assert_same(item, same)


def test_an_array_that_is_data_twice_is_not_known_as_one():
    """A sequence of two views of one array, then of two arrays of its kind."""
    pair = node("SequenceConstruct", ["a", "b"])
    other = X + 1
    for first, second in ((X, X), (X, other), (other, X)):
        ((a, b),) = run_node(pair, [first, second], opset=11)
        assert_same(a, first)
        assert_same(b, second)
