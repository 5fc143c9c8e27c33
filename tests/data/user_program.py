"""A program of a user, as test_types.py checks it: an array in is an array of the same type out."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, helper

import gpuslice as gs
from gpuslice.onnx import Backend, Graph, load_model, parts, reference_ops, run_node, unsupported

x: NDArray[np.float32] = np.zeros((2, 3), np.float32)
bounds: NDArray[np.int64] = np.zeros(1, np.int64)

assert_type(gs.slice(x, [0], (1,), steps=range(1, 2), copy=None), NDArray[np.float32])
assert_type(gs.slice(x, bounds, bounds, out=x), NDArray[np.float32])
assert_type(gs.dynamic_slice(x, [0], [1]), NDArray[np.float32])
assert_type(gs.split(x, num_outputs=2), tuple[NDArray[np.float32], ...])
assert_type(gs.contiguous(x), NDArray[np.float32])
assert_type(gs.contiguous([x, x]), tuple[NDArray[np.float32], ...])
assert_type(gs.contiguous((x, x)), tuple[NDArray[np.float32], ...])
assert_type(gs.contiguous(gs.Sequence([x])), tuple[NDArray[np.float32], ...])

rows = gs.split_to_sequence(x, axis=1)
assert_type(rows, gs.Sequence[NDArray[np.float32]])
assert_type(rows[0], NDArray[np.float32])
assert_type(rows[1:], gs.Sequence[NDArray[np.float32]])
assert_type(rows.dtype, str)
assert_type(gs.Sequence([x]), gs.Sequence[NDArray[np.float32]])
assert_type(gs.sequence_construct(x, x), gs.Sequence[NDArray[np.float32]])
assert_type(gs.sequence_empty("int8"), gs.Sequence[Any])
assert_type(gs.sequence_insert([x], x, 0), gs.Sequence[NDArray[np.float32]])
assert_type(gs.sequence_erase(rows), gs.Sequence[NDArray[np.float32]])
assert_type(gs.sequence_at(rows, -1), NDArray[np.float32])
assert_type(gs.sequence_at((x, x), bounds), NDArray[np.float32])
assert_type(gs.sequence_length(rows), Any)
assert_type(gs.concat_from_sequence(rows, axis=0), NDArray[np.float32])
for item in rows:
    assert_type(item, NDArray[np.float32])

with gs.trace() as t:
    gs.slice(x, [0], [1])
assert_type(t.launches, list[gs.Launch])
assert_type(t.allocations, list[int])

node = helper.make_node("Slice", ["x"], ["y"], starts=[0], ends=[1])
assert_type(run_node(node, [x], opset=1), list[Any])


def run(model: ModelProto) -> tuple[Any, ...]:
    assert_type(unsupported(model), list[str])
    assert_type(parts(model), list[ModelProto])
    assert_type(Graph(model).run({"x": x}), dict[str, Any])
    return Backend.prepare(model).run([x])


assert_type(load_model("model.onnx"), ModelProto)
assert_type(reference_ops(), list[type])
