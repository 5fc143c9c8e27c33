"""Compare onnxruntime and gpuslice on random valid calls. Print how many agreed. Fail if two differ that should agree.

Run it in its own process, since onnxruntime crashes on some inputs: python tests/onnxruntime_calls.py SEED COUNT
"""

import json
import random
import sys
from collections import Counter
from functools import cache

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import gpuslice as gs
from gpuslice.onnx import run_node

EXTREMES = [-(2**63), -(2**31), 2**31 - 1, 2**63 - 1]
DTYPES = {
    "float32": TensorProto.FLOAT,
    "int8": TensorProto.INT8,
    "int64": TensorProto.INT64,
    "float16": TensorProto.FLOAT16,
}
COUNTS = Counter()


@cache
def session(op, opset, dtype, bound, inputs, outputs, **attributes):
    """Return a session of one node whose inputs have any shape."""
    node = helper.make_node(op, inputs, [f"o{i}" for i in range(outputs)], **attributes)
    elements = [DTYPES[dtype], *[TensorProto.INT32 if bound == "int32" else TensorProto.INT64] * 4]
    return _session([node], opset, inputs, elements, outputs, DTYPES[dtype])


@cache
def at_session(count, dtype):
    """Return a session that constructs a sequence and takes one tensor of it."""
    tensors = [f"t{i}" for i in range(count)]
    nodes = [
        helper.make_node("SequenceConstruct", tensors, ["seq"]),
        helper.make_node("SequenceAt", ["seq", "position"], ["o0"]),
    ]
    return _session(nodes, 13, [*tensors, "position"], [DTYPES[dtype]] * count + [TensorProto.INT64], 1, DTYPES[dtype])


def _session(nodes, opset, inputs, elements, outputs, out_type):
    entries = [helper.make_tensor_value_info(n, e, None) for n, e in zip(inputs, elements, strict=False)]
    results = [helper.make_tensor_value_info(f"o{i}", out_type, None) for i in range(outputs)]
    graph = helper.make_graph(nodes, "g", entries, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def numbers(rng, shape, dtype):
    return np.array([rng.randrange(100) for _ in range(int(np.prod(shape)))], dtype).reshape(shape)


def expect(same, kind, *context):
    COUNTS[kind] += 1
    if not same:
        raise SystemExit(f"{kind}: {context}")


def same(left, right):
    return len(left) == len(right) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(left, right, strict=True)
    )


def compare_slice(rng):
    shape = [rng.randrange(7) for _ in range(rng.randrange(1, 5))]
    axes = rng.sample(range(len(shape)), rng.randrange(1, len(shape) + 1))
    opset, bound = rng.choice([10, 11, 13]), rng.choice(["int32", "int64"])
    limits = np.iinfo(bound)

    def pick(low, high):
        return rng.choice([rng.randint(low, high)] * 3 + [e for e in EXTREMES if limits.min <= e <= limits.max])

    steps = [pick(-4, 4) or 1 for _ in axes]
    starts, ends = [pick(-9, 9) for _ in axes], [pick(-9, 9) for _ in axes]
    data = numbers(rng, shape, rng.choice(["float32", "int8", "int64"]))
    bounds = [np.array(values, bound) for values in (starts, ends, axes, steps)]
    names = ("data", "starts", "ends", "axes", "steps")
    theirs = session("Slice", opset, data.dtype.name, bound, names, 1).run(
        None, dict(zip(names, [data, *bounds], strict=True))
    )
    ours = run_node(helper.make_node("Slice", names, ["o0"]), [data, *bounds], opset=opset)
    # With a negative step and an end of INT_MAX, the text selects nothing, onnxruntime everything down to element 0.
    odd = [
        axis for axis, end, step in zip(axes, ends, steps, strict=True) if step < 0 and end in (2**31 - 1, 2**63 - 1)
    ]
    if not odd:
        return expect(same(ours, theirs), "slice agrees", shape, starts, ends, axes, steps)
    nothing = all(ours[0].shape[axis] == 0 for axis in odd)
    lower = [-(2**63) if axis in odd else end for axis, end in zip(axes, ends, strict=True)]
    return expect(
        nothing and same([gs.slice(data, starts, lower, axes, steps)], theirs),
        "slice differs at INT_MAX",
        shape,
        starts,
        ends,
        axes,
        steps,
    )


def compare_scalar(rng):
    empty = np.zeros(0, np.int64)
    data = numbers(rng, (), "float32")
    names = ("data", "starts", "ends", "axes")
    node = helper.make_node("Slice", names, ["o0"])
    identity = same(run_node(node, [data, empty, empty, empty], opset=13), [data])
    try:
        session("Slice", 13, "float32", "int64", names, 1).run(
            None, dict(zip(names, [data, empty, empty, empty], strict=True))
        )
    except Exception as error:
        return expect(identity and "scalar" in str(error), "slice of a scalar refused", error)
    raise SystemExit("onnxruntime now slices scalars")


def compare_split(rng):
    opset = rng.choice([2, 11, 13, 18])
    axis, rank = 0, rng.randrange(1, 4)
    axis = rng.randrange(-rank, rank)
    count = rng.randrange(1, 7)
    sizes = [rng.randrange(4) for _ in range(count)]
    shape = [rng.randrange(1, 4) for _ in range(rank)]
    attributes, inputs, values = {"axis": axis}, ["input"], []
    form = rng.choice(["sizes", "equal"])
    if form == "sizes":
        shape[axis] = sum(sizes)
        if opset < 13:
            attributes["split"] = tuple(sizes)
        else:
            inputs, values = ["input", "split"], [np.array(sizes, np.int64)]
    elif opset < 18:
        shape[axis] = count * rng.randrange(4)
    else:
        shape[axis] = rng.randrange(30)
        attributes["num_outputs"] = count
        if -(-shape[axis] // count) * (count - 1) > shape[axis]:
            return None  # the last chunk would be negative; both refuse
    data = numbers(rng, shape, rng.choice(["float32", "int8", "int64"]))
    feed = dict(zip(inputs, [data, *values], strict=True))
    theirs = session("Split", opset, data.dtype.name, "int64", tuple(inputs), count, **attributes).run(None, feed)
    node = helper.make_node("Split", inputs, [f"o{i}" for i in range(count)], **attributes)
    return expect(
        same(run_node(node, [data, *values], opset=opset), theirs), "split agrees", opset, shape, attributes, values
    )


def compare_sequence_at(rng):
    count = rng.randrange(1, 6)
    dtype = rng.choice(["float32", "int64"])
    tensors = [numbers(rng, [rng.randrange(4) for _ in range(rng.randrange(3))], dtype) for _ in range(count)]
    position = rng.randrange(-count, count)
    feed = {f"t{i}": tensor for i, tensor in enumerate(tensors)} | {"position": np.array(position)}
    return expect(
        same([gs.sequence_at(tensors, position)], at_session(count, dtype).run(None, feed)),
        "sequence_at agrees",
        position,
    )


def main(seed, count):
    rng = random.Random(seed)
    compare_scalar(rng)
    for _ in range(count):
        compare_slice(rng)
        compare_split(rng)
        compare_sequence_at(rng)
    print(json.dumps(COUNTS))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
