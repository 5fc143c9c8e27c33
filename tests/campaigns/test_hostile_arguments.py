"""Every public function, and run_node, with hostile values in the place of its arguments.

Each value is refused in our words, or the result is that of the plain value that it stands for.
"""

import numpy as np
import pytest
from campaigns.hostile import HOSTILE, SOUND, Own, Value
from helpers import assert_same, chain, node
from libraries import to_numpy

import gpuslice as gs
from gpuslice.onnx import Backend, Graph, parts, run_node, unsupported
from gpuslice.versions import newest

X = np.arange(2400, dtype=np.int32).reshape(2, 3, 400)  # large enough for a kernel, small enough to be quick
ROWS = [X[0], X[1]]
CHOICE = "choice"
SLICE = {"data": ("data", X), "starts": ("ints", [0]), "ends": ("ints", [9])}
AXES = {"axes": ("ints", [1]), "copy": (CHOICE, True), "out": ("out", None)}
SPLIT = {"input": ("data", X), "axis": ("int", 1), "copy": (CHOICE, True), "out": ("out", None)}
# What is called, the prefix of its errors, and for each argument its role and a value that is right.
CALLS = {
    "slice": (gs.slice, newest("Slice"), {**SLICE, **AXES, "steps": ("ints", [2])}),
    "dynamic_slice": (gs.dynamic_slice, newest("DynamicSlice"), {**SLICE, **AXES}),
    "split, sizes": (gs.split, newest("Split"), {**SPLIT, "split": ("ints", [1, 2]), "one_block": (CHOICE, False)}),
    "split, number": (gs.split, newest("Split"), {**SPLIT, "num_outputs": ("int", 2), "one_block": (CHOICE, None)}),
    "contiguous": (gs.contiguous, "contiguous", {"views": ("views", X.T), "out": ("out", None)}),
    "contiguous, several": (gs.contiguous, "contiguous", {"views": ("views", [X.T, X]), "out": ("out", None)}),
    "Sequence": (gs.Sequence, "Sequence", {"items": ("seq", ROWS), "dtype": ("dtype", None)}),
    "sequence_at": (
        gs.sequence_at, newest("SequenceAt"),
        {"seq": ("seq", ROWS), "position": ("position", 1), "copy": (CHOICE, True), "out": ("out", None)},
    ),
    "sequence_construct": (
        lambda a, b: gs.sequence_construct(a, b), newest("SequenceConstruct"), {"a": ("data", X), "b": ("data", X)}
    ),
    "sequence_empty": (gs.sequence_empty, newest("SequenceEmpty"), {"dtype": ("dtype", "int8")}),
    "sequence_insert": (
        gs.sequence_insert, newest("SequenceInsert"),
        {"seq": ("seq", ROWS), "tensor": ("data", X), "position": ("position", 1)},
    ),
    "sequence_erase": (
        gs.sequence_erase, newest("SequenceErase"), {"seq": ("seq", ROWS), "position": ("position", 1)}
    ),
    "sequence_length": (gs.sequence_length, newest("SequenceLength"), {"seq": ("seq", ROWS)}),
    "split_to_sequence": (
        gs.split_to_sequence, newest("SplitToSequence"),
        {"input": ("data", X), "split": ("sizes", 2), "axis": ("int", 1), "keepdims": ("flag", 0), "out": ("out", None)},
    ),
    "concat_from_sequence": (
        gs.concat_from_sequence, newest("ConcatFromSequence"),
        {"seq": ("seq", ROWS), "axis": ("int", 0), "new_axis": ("flag", 1), "out": ("out", None)},
    ),
}  # fmt: skip
# Arguments that may be omitted, which None says too.
OPTIONAL = {"axes", "steps", "out", "dtype", "split", "num_outputs", "position"}


def outcome(call, arguments):
    """Return what a call returned and None, or None and what it raised."""
    try:
        return call(**arguments), None
    except Exception as error:
        return None, error


def check_words(error, prefix, what):
    """Check that an error is of a documented type and has our words, unless a hostile object raised it itself."""
    if isinstance(error, Own):
        return
    assert isinstance(error, (IndexError, MemoryError, TypeError, ValueError)), (what, repr(error)[:500])
    text = str(error)
    if isinstance(error, UnicodeError):
        assert prefix in text, (what, text)
        return
    assert text.startswith(f"{prefix}: "), (what, text[:500])
    assert len(prefix) + 2 < len(text) <= 500, (what, text[:500])


def check_same(actual, expected):
    """Check that two results are the same, bit by bit."""
    if not isinstance(expected, (tuple, gs.Sequence)):
        assert_same(actual, to_numpy(expected), like=expected)
        return
    assert type(actual) is type(expected)
    assert getattr(actual, "dtype", None) == getattr(expected, "dtype", None)
    for one, other in zip(actual, expected, strict=True):
        check_same(one, other)


def plain_outs(result):
    """Return outputs of the caller, which are returned as they are, as plain arrays."""
    if isinstance(result, tuple):
        return tuple(map(plain_outs, result))
    return np.ndarray.view(result, np.ndarray) if issubclass(type(result), np.ndarray) else result


def fingerprint(value):
    """Return the items of an array, or those of a list that are not in a list themselves."""
    if issubclass(type(value), np.ndarray):
        plain = np.ndarray.view(value, np.ndarray)
        content = plain.tobytes() if plain.nbytes < 10**6 and not plain.dtype.hasobject else None
        return plain.shape, plain.strides, plain.dtype, content
    return [id(item) for item in list.__iter__(value)] if issubclass(type(value), list) else None


def in_a_list(value):
    """Return a list with one value in it."""
    meanings = {}
    if "int" in value.meanings:
        meanings |= {"ints": [value.meanings["int"]], "sizes": [value.meanings["int"]]}
    if "data" in value.meanings:
        meanings["seq"] = [value.meanings["data"]]
    return Value(lambda: [value.make()], meanings)


def drawn(random, role):
    """Return a random value, or a list of one. About half of them have a meaning in a role."""
    fit = [value for value in SOUND if role in value.meanings]
    if fit and random.random() < 0.5:
        return random.choice(fit)
    value = random.choice(random.choice([SOUND, HOSTILE]))
    return in_a_list(value) if random.random() < 0.25 else value


def meaning(role, name, value, given):
    """Return whether a value is allowed as an argument, and the plain one that it stands for."""
    if given is None and name in OPTIONAL:
        return True, None
    if role == "views":
        role = next((role for role in ("data", "seq") if role in value.meanings), role)
    return role in value.meanings, value.meanings.get(role)


def call_one(random, counts):
    """Call one function, with one to three of its arguments replaced."""
    name = random.choice(list(CALLS))
    call, prefix, arguments = CALLS[name]
    given = {argument: right for argument, (_, right) in arguments.items()}
    plain, known = dict(given), True
    for argument in random.sample(list(arguments), min(len(arguments), random.choice([1, 1, 1, 2, 3]))):
        role = arguments[argument][0]
        value = drawn(random, role)
        given[argument] = value.make()
        allowed, plain[argument] = meaning(role, argument, value, given[argument])
        known = known and (allowed or role == "out")
    counts["calls"] += 1
    what = (name, {argument: type(value).__name__[:30] for argument, value in given.items()})
    before = {argument: fingerprint(value) for argument, value in given.items() if argument != "out"}
    result, error = outcome(call, given)
    after = {argument: fingerprint(value) for argument, value in given.items() if argument != "out"}
    assert before == after, what
    if error is not None:
        check_words(error, prefix, what)
    expected, refusal = outcome(call, plain) if known else (None, "a value that must be refused")
    if error is None:
        assert refusal is None, (what, "accepted", refusal)
        check_same(plain_outs(result) if given.get("out") is not None else result, expected)
        counts["right"] += 1
    else:
        # An array that was given as out may not fit.
        assert refusal is not None or given.get("out") is not None, (what, "refused", error)
        counts["refused"] += 1


def test_hostile_arguments(campaign, kernels_from_512_bytes):
    for _ in campaign.rounds(15000):
        call_one(campaign.random, campaign.counts)


NODES = {
    "Slice-13": (node("Slice", ["x", "s", "e", "a", "t"]), [X, [0], [9], [1], [2]], ["data", *["ints"] * 4]),
    "Split-18": (node("Split", ["x", "s"], ["a", "b"], axis=1), [X, [1, 2]], ["data", "ints"]),
    "SequenceAt-11": (node("SequenceAt", ["s", "p"]), [ROWS, 1], ["seq", "position"]),
    "SequenceConstruct-11": (node("SequenceConstruct", ["a", "b"]), [X, X], ["data", "data"]),
    "SequenceInsert-11": (node("SequenceInsert", ["s", "x", "p"]), [ROWS, X, 1], ["seq", "data", "position"]),
    "SequenceErase-11": (node("SequenceErase", ["s", "p"]), [ROWS, 1], ["seq", "position"]),
    "SequenceLength-11": (node("SequenceLength", ["s"]), [ROWS], ["seq"]),
    "SplitToSequence-11": (node("SplitToSequence", ["x", "s"], axis=1), [X, 2], ["data", "sizes"]),
    "ConcatFromSequence-11": (node("ConcatFromSequence", ["s"], axis=0), [ROWS], ["seq"]),
}


def run_one(random, counts):
    """Run one node with an input replaced. A node admits fewer types than a function, so more is refused."""
    name = random.choice(list(NODES))
    proto, right, roles = NODES[name]
    given, plain = list(right), list(right)
    position = random.randrange(len(given))
    value = drawn(random, roles[position])
    given[position] = value.make()
    allowed, plain[position] = meaning(roles[position], "axes" if position else "data", value, given[position])
    counts["calls"] += 1
    what = (name, position, type(given[position]).__name__[:30])
    result, error = outcome(run_node, {"node": proto, "inputs": given, "opset": 18})
    if error is not None:
        check_words(error, name, what)
        counts["refused"] += 1
        return
    assert allowed, (what, "accepted")
    for actual, expected in zip(result, run_node(proto, plain, opset=18), strict=True):
        check_same(actual, expected)
    counts["right"] += 1


def test_hostile_inputs_of_nodes(campaign, kernels_from_512_bytes):
    for _ in campaign.rounds(10000):
        run_one(campaign.random, campaign.counts)


SLICE_13, SLICE_INPUTS, _ = NODES["Slice-13"]
# Functions of the layer above, by their one argument that is replaced.
LAYER = {
    "run_node, node": lambda value: run_node(value, SLICE_INPUTS, opset=18),
    "run_node, inputs": lambda value: run_node(SLICE_13, value, opset=18),
    "run_node, opset": lambda value: run_node(SLICE_13, SLICE_INPUTS, opset=value),
    "Graph": Graph,
    "Graph.run": lambda value: Graph(chain()).run(value),
    "Graph.run, an input": lambda value: Graph(chain()).run({"x": value}),
    "Graph.run, observe": lambda value: Graph(chain()).run({"x": np.zeros((9, 4, 3), "f4")}, observe=value),
    "unsupported": unsupported,
    "parts": parts,
    "Backend.prepare": Backend.prepare,
    "Backend.prepare, device": lambda value: Backend.prepare(chain(), value),
    "Backend.run": lambda value: Backend.prepare(chain()).run(value),
    "Backend.run_node": lambda value: Backend.run_node(SLICE_13, value),
    "Backend.supports_device": Backend.supports_device,
    "Backend.is_compatible": Backend.is_compatible,
}


@pytest.mark.parametrize("name", LAYER)
def test_hostile_arguments_of_the_onnx_layer(name):
    for value in [*SOUND, *HOSTILE]:
        for given in (value, in_a_list(value)):
            made = given.make()
            _, error = outcome(lambda made=made: LAYER[name](made), {})
            if error is not None and not isinstance(error, Own):
                assert isinstance(error, (IndexError, MemoryError, TypeError, ValueError)), (name, type(made), error)
                assert 0 < len(str(error)) <= 500, (name, type(made), str(error)[:500])
