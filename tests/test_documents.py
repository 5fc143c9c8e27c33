"""The worked examples that the operators' pages print, with the values printed there."""

import numpy as np
import pytest
from helpers import assert_same
from onnx import helper

import gpuslice as gs
from gpuslice.onnx import run_node


def counted(*shape, first=0):
    """Return consecutive numbers, with which the pages fill their inputs."""
    return (np.arange(np.prod(shape)) + first).reshape(shape).astype(np.float32)


CUBE = counted(20, 10, 5)
ROWS = counted(2, 4, first=1)
SLICE_13 = {
    # The page prints no bounds for this one; its output is 0:3 of the last axis.
    "shape_inference_slice_symbolic_end": (counted(2, 3, 4, first=1), [0], [3], [2], None, [[[1, 2, 3], [5, 6, 7], [9, 10, 11]], [[13, 14, 15], [17, 18, 19], [21, 22, 23]]]),
    "slice": (CUBE, [0, 0], [3, 10], [0, 1], [1, 1], counted(3, 10, 5)),
    "slice_axes_steps": (ROWS, [1, 0], [2, 3], [0, 1], [1, 2], [[5, 7]]),
    "slice_default_axes_steps": (ROWS, [0, 1], [-1, 1000], None, None, [[2, 3, 4]]),
    "slice_default_steps": (CUBE, [0, 0, 3], [20, 10, 4], [0, 1, 2], None, (3 + 5 * counted(20, 10))[..., None]),
    "slice_end_out_of_bounds": (CUBE, [1], [1000], [1], [1], [[[50 * i + 5 * j + k for k in range(5)] for j in range(1, 10)] for i in range(20)]),
    "slice_neg": (CUBE, [0], [-1], [1], [1], [[[50 * i + 5 * j + k for k in range(5)] for j in range(9)] for i in range(20)]),
    "slice_neg_steps": (CUBE, [20, 10, 4], [0, 0, 1], [0, 1, 2], [-1, -3, -2], [[[50 * i + 49 - 15 * j - 2 * k for k in range(2)] for j in range(3)] for i in range(19, 0, -1)]),
    "slice_negative_axes": (CUBE, [0, 0, 3], [20, 10, 4], [0, -2, -1], None, (3 + 5 * counted(20, 10))[..., None]),
    "slice_start_out_of_bounds": (CUBE, [1000], [1000], [1], [1], np.zeros((20, 0, 5))),
}  # fmt: skip


@pytest.mark.parametrize("name", SLICE_13)
def test_slice_13(name):
    data, starts, ends, axes, steps, expected = SLICE_13[name]
    expected = np.asarray(expected, np.float32)
    assert_same(gs.slice(data, starts, ends, axes, steps), expected)
    bounds = [None if values is None else np.asarray(values) for values in (starts, ends, axes, steps)]
    node = helper.make_node("Slice", ["data", *("" if b is None else "b" for b in bounds)], ["output"])
    assert_same(run_node(node, [data, *bounds], opset=13)[0], expected)


DYNAMIC_SLICE_1 = {
    "example 1": ([1, 0], [2, 3], [0, 1], [[5, 6, 7]]),
    "example 2": ([0, 1], [-1, 1000], None, [[2, 3, 4]]),
}


@pytest.mark.parametrize("name", DYNAMIC_SLICE_1)
def test_dynamic_slice_1(name):
    starts, ends, axes, expected = DYNAMIC_SLICE_1[name]
    expected = np.asarray(expected, np.float32)
    assert_same(gs.dynamic_slice(ROWS, starts, ends, axes), expected)
    names = ["data", "starts", "ends", *([] if axes is None else ["axes"])]
    bounds = [np.asarray(values) for values in (starts, ends, axes) if values is not None]
    for opset in (1, 9, 13, 28):
        assert_same(
            run_node(helper.make_node("DynamicSlice", names, ["output"]), [ROWS, *bounds], opset=opset)[0], expected
        )


FIRST = np.array([[-1, 0, 1.5], [-2.25, 3.5, -4.75]], np.float32)
SECOND = np.array([[0, 1, 2], [3, 4, 5]], np.float32)
THIRD = np.array([[6, 7, 8], [9, 10, 11]], np.float32)


@pytest.mark.parametrize(
    ("name", "position", "expected"), [("at_neg", -2, SECOND), ("at_pos0", 0, FIRST), ("at_pos2", 2, THIRD)]
)
def test_sequence_at_11(name, position, expected):
    construct = helper.make_node("SequenceConstruct", ["a", "b", "c"], ["sequence"])
    (sequence,) = run_node(construct, [FIRST, SECOND, THIRD], opset=11)
    at = helper.make_node("SequenceAt", ["sequence", "position"], ["tensor"])
    assert_same(run_node(at, [sequence, np.array(position)], opset=11)[0], expected)
    assert_same(gs.sequence_at(sequence, position), expected)


def split_2(attributes, outputs=2, inputs=1):
    node = helper.make_node("Split", ["input", "split"][:inputs], [f"output_{i}" for i in range(outputs)], **attributes)
    return run_node(node, [ROWS, np.array([2, 2])][:inputs], opset=2)


def test_split_2():
    assert [part.tolist() for part in split_2({})] == [[[1, 2, 3, 4]], [[5, 6, 7, 8]]]
    assert [part.tolist() for part in split_2({"axis": 1})] == [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]
    assert [part.shape for part in split_2({"axis": 1, "split": [4, 0]})] == [(2, 4), (2, 0)]
    assert split_2({}, outputs=1)[0].shape == (2, 4)
    with pytest.raises(ValueError, match="^Split-2: split must not be negative"):
        split_2({"axis": 1, "split": [5, -1]})
    with pytest.raises(ValueError, match="^Split-2: inputs must be at most 1"):
        split_2({"axis": 1}, inputs=2)
    with pytest.raises(ValueError, match="^Split-2: outputs must be at least 1; got 0"):
        split_2({}, outputs=0)
