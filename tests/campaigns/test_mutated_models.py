"""Mutated models: their bytes and their structure. Each is refused by a readable error, or runs as onnx.reference does."""

import warnings
from math import prod

import numpy as np
from google.protobuf.message import DecodeError
from helpers import chain, model, node, sequence_info, tensor_info
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from gpuslice import Sequence
from gpuslice.onnx import Backend, Graph, parts, reference_ops, run_node, unsupported
from gpuslice.versions import OPERATORS

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
REFUSALS = (IndexError, MemoryError, TypeError, ValueError)
EXTREME = [0, 1, -1, 2, 3, 7, 18, 2**31 - 1, -(2**31), 2**32, 2**62, 2**63 - 1, -(2**63)]
# Larger results are not made, so that a mutated bound or repetition costs no more than an error.
MOST_ITEMS = 1 << 20


def seeds():
    """Return valid models, with the sequence operators, constants of every kind and operators that cannot run."""
    text = TensorProto(name="w", data_type=TensorProto.STRING, dims=[2], string_data=[b"a\0", b"b"])
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.float32([5, 6]), "q"), numpy_helper.from_array(np.int64([1, 5])), [2, 3]
    )
    constants = model(
        [
            node("Constant", [], ["c"], value=numpy_helper.from_array(X)),
            node("Constant", [], ["one"], value_ints=[1]),
            node("Constant", [], ["d"], sparse_value=sparse),
            node("Constant", [], ["s"], value_strings=["x", "y"]),
            node("Slice", ["c", "one", "two"], ["y"]),
            node("Identity", ["q"], ["z"]),
            node("Identity", ["w"], ["t"]),
        ],
        [],
        ["y", "z", "d", *(tensor_info(name, [2], TensorProto.STRING) for name in "ts")],
        {"two": [2]},
    )
    constants.graph.initializer.append(text)
    constants.graph.sparse_initializer.append(sparse)
    sequences = model(
        [
            node("SplitToSequence", ["x", "two"], ["rows"], axis=1, keepdims=1),
            node("SequenceEmpty", [], ["none"], dtype=1),
            node("SequenceInsert", ["none", "x", "zero"], ["one"]),
            node("SequenceErase", ["rows", "zero"], ["fewer"]),
            node("SequenceLength", ["rows"], ["length"]),
            node("SequenceAt", ["rows", "zero"], ["first"]),
            node("SequenceConstruct", ["x", "x"], ["pair"]),
            node("ConcatFromSequence", ["pair"], ["both"], axis=0, new_axis=1),
            node("Split", ["both", "sizes"], ["left", "right"], axis=-1),
        ],
        [tensor_info("x", [2, "n", None])],
        [
            "left",
            "right",
            "first",
            sequence_info("fewer"),
            sequence_info("one"),
            tensor_info("length", [], TensorProto.INT64),
        ],
        {"two": 2, "zero": 0, "sizes": [1, 3]},
    )
    mixed = model(
        [
            node("Split", ["x"], ["a", "b"], axis=2, num_outputs=2),
            node("Neg", ["a"], ["c"]),
            node("SequenceConstruct", ["b", "c"], ["s"]),
            node("ConcatFromSequence", ["s"], ["d"], axis=0),
            node("Slice", ["d", "zero", "one"], ["y"]),
        ],
        ["x"],
        ["y"],
        {"zero": [0], "one": [1]},
    )
    old = model(
        [
            node("Slice", ["x"], ["a"], starts=[0], ends=[2], axes=[2]),
            node("Split", ["a"], ["y", "z"], axis=-1, split=[1, 1]),
        ],
        ["x"],
        ["y", "z"],
        opset=9,
    )
    branch = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]> g (float[2,3,4] x) => (float[m,k,l] y) <int64[1] s = {0}, int64[1] e = {1}> {
            c = Slice(x, s, e)
            k = Constant<value = bool {1}>()
            y = If(k) <
                then_branch = t () => (float[m,k,l] t) { b = Slice(c, s, e) t = Neg(b) },
                else_branch = f () => (float[m,k,l] f) { b = Neg(x) q = Slice(b, s, e) f = Identity(q) }>
        }"""
    )
    return [chain(), constants, sequences, mixed, old, branch]


def messages(message):
    """Return a protobuf message and all messages in it."""
    found, waiting = [], [message]
    while waiting:
        found.append(waiting.pop())
        for field, value in found[-1].ListFields():
            if field.message_type is not None:
                waiting += value if field.is_repeated else [value]
    return found


def mutate(rng, given, names):
    """Change one field of one message in a model."""
    target = rng.choice(messages(given))
    field = rng.choice(target.DESCRIPTOR.fields)
    if field.message_type is not None:
        others = [other for other in messages(given) if other.DESCRIPTOR is field.message_type]
        change_messages(rng, target, field, others)
    elif field.is_repeated:
        change_list(rng, getattr(target, field.name), lambda: scalar(rng, field, names))
    elif rng.random() < 0.1:
        target.ClearField(field.name)
    else:
        setattr(target, field.name, scalar(rng, field, names))


def change_messages(rng, target, field, others):
    """Add, remove, repeat, swap or replace a message in a field."""
    if not field.is_repeated:
        if others and rng.random() < 0.8:
            copied = type(others[0])()
            copied.CopyFrom(rng.choice(others))
            getattr(target, field.name).CopyFrom(copied)
        else:
            target.ClearField(field.name)
        return
    entries = [type(entry).FromString(entry.SerializeToString()) for entry in getattr(target, field.name)]
    change_list(rng, entries, lambda: rng.choice(others) if others else None)
    entries = [type(entry).FromString(entry.SerializeToString()) for entry in entries if entry is not None]
    target.ClearField(field.name)
    getattr(target, field.name).extend(entries)


def change_list(rng, entries, make):
    """Add, remove, repeat or swap an entry of a list, or replace it by a new one."""
    if not entries or rng.random() < 0.2:
        entries.insert(rng.randrange(len(entries) + 1), make())
        return
    i, j = rng.randrange(len(entries)), rng.randrange(len(entries))
    action = rng.randrange(4)
    if action == 0:
        del entries[i]
    elif action == 1:
        entries.insert(j, entries[i])
    elif action == 2:
        entry = entries.pop(i)
        entries.insert(j, entry)
    else:
        del entries[i]
        entries.insert(i, make())


def scalar(rng, field, names):
    """Return a value for a field: a name of the model, an extreme number, a few bytes."""
    if field.enum_type is not None:
        return rng.choice(field.enum_type.values).number
    if field.cpp_type == field.CPPTYPE_STRING:
        value = rng.choice([*names, "", "ai.onnx", "\0", rng.choice(OPERATORS)])
        return value if field.type == field.TYPE_STRING else rng.choice([value.encode(), b"\xff", bytes(8)])
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice([0.0, 1.5, -1.0, float("inf"), float("nan")])
    if field.cpp_type == field.CPPTYPE_BOOL:
        return rng.random() < 0.5
    low, high = (-(2**31), 2**31 - 1) if field.cpp_type == field.CPPTYPE_INT32 else (-(2**63), 2**63 - 1)
    low, high = (0, 2**64 - 1) if field.cpp_type == field.CPPTYPE_UINT64 else (low, high)
    return rng.choice([number for number in EXTREME if low <= number <= high])


def corrupt(rng, data):
    """Change, remove or repeat a few bytes."""
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data))
        # Most lengths in a protobuf fit only if the number of bytes stays.
        removed, added = (1, 1) if rng.random() < 0.8 else (rng.randrange(3), rng.randrange(3))
        data[at : at + removed] = rng.randbytes(added)
    return bytes(data)


def attempt(campaign, name, call):
    """Return what a call returns; None if it refuses with a message. Any other exception is a fault, and raised."""
    try:
        result = call()
    except REFUSALS as error:
        campaign.counts[f"{name} refused"] += 1
        if str(error).strip():
            return None
        raise
    campaign.counts[f"{name} ran"] += 1
    return result


def is_small(given):
    """Return whether the constants of a model, sparse ones included, are small."""
    tensors = [entry for entry in messages(given) if entry.DESCRIPTOR.name in ("TensorProto", "SparseTensorProto")]
    return all(prod(max(0, dim) for dim in entry.dims) <= MOST_ITEMS for entry in tensors)


def is_readable(given):
    """Return whether the initializers of a model can be read."""
    bare = ModelProto(ir_version=given.ir_version, opset_import=given.opset_import)
    bare.graph.initializer.extend(given.graph.initializer)
    bare.graph.sparse_initializer.extend(given.graph.sparse_initializer)
    return Backend.is_compatible(bare)


def same(ours, theirs):
    """Return whether two values have one type, shape and items."""
    if isinstance(theirs, (list, tuple, Sequence)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    theirs = np.asarray(theirs)
    if ours.dtype.kind in "OUT":
        return ours.shape == theirs.shape and [str(item) for item in ours.flat] == [
            str(item).rstrip("\0") if theirs.dtype.kind == "U" else str(item) for item in theirs.flat
        ]
    return ours.shape == theirs.shape and ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()


def check(campaign, given):
    """Run a model in every way, and compare."""
    attempt(campaign, "unsupported", lambda: unsupported(given))
    for part in attempt(campaign, "parts", lambda: parts(given)) or []:
        # A part may have initializers that cannot be read. Their data can be loaded later.
        assert attempt(campaign, "Graph of a part", lambda part=part: Graph(part)) or not is_readable(part)
    for inner in given.graph.node[:2]:
        inputs = [X if i == 0 else np.array([1]) for i in range(len(inner.input))]
        attempt(campaign, "run_node", lambda inner=inner, inputs=inputs: run_node(inner, inputs, opset=13))
    compatible = Backend.is_compatible(given)
    graph = attempt(campaign, "Graph", lambda: Graph(given))
    assert compatible == (graph is not None)
    if graph is None:
        return
    inputs = dict.fromkeys(graph.inputs, X)
    results = attempt(campaign, "run", lambda: graph.run_in_order(inputs))
    again = attempt(campaign, "Backend", lambda: Backend.prepare(given).run(inputs))
    assert (results is None) == (again is None)
    if results is not None:
        assert all(same(*pair) for pair in zip([value for _, value in results], again, strict=True))
        compare(campaign, given, inputs, [value for _, value in results])


def compare(campaign, given, inputs, results):
    """Compare with onnx.reference's run of the model with our operators, if it can run it."""
    try:
        expected = ReferenceEvaluator(given, new_ops=reference_ops()).run(None, inputs)
    except Exception:  # it refuses some models that we take, by errors of every kind
        return
    for ours, theirs in zip(results, expected, strict=True):
        assert same(ours, theirs)
    campaign.counts["compared"] += 1


def test_mutated_models(campaign):
    models = seeds()
    for seed in models:
        assert Backend.is_compatible(seed) or unsupported(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in campaign.rounds(800):
            given = ModelProto.FromString(campaign.random.choice(models).SerializeToString())
            names = [name for inner in given.graph.node for name in (*inner.input, *inner.output)]
            for _ in range(campaign.random.randrange(1, 4)):
                mutate(campaign.random, given, names)
            if is_small(given):
                run_one(campaign, given)


def test_mutated_bytes(campaign):
    models = [seed.SerializeToString() for seed in seeds()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in campaign.rounds(1500):
            try:
                given = ModelProto.FromString(corrupt(campaign.random, campaign.random.choice(models)))
            except DecodeError:
                campaign.counts["no protobuf"] += 1
                continue
            if is_small(given):
                run_one(campaign, given)


def run_one(campaign, given):
    """Check one model, and show it if something is wrong."""
    try:
        check(campaign, given)
    except Exception as error:
        error.add_note(f"seed {campaign.seed}, the model:\n{given}")
        raise
