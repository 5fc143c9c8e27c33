"""Every worked case, through run_node, on each library and with its inputs in every memory layout."""

import json
from pathlib import Path

import numpy as np
import pytest
from arrays import LAYOUTS, assert_same, decode, to_numpy
from onnx import AttributeProto, helper

import gpuslice as gs
from gpuslice.onnx import run_node

CASES = [json.loads(line) for line in (Path(__file__).parent / "data" / "cases.jsonl").read_text().splitlines()]
VALID = [case for case in CASES if case["expected"] is not None]
INVALID = [case for case in CASES if case["expected"] is None]
BUILTIN = {"ValueError": ValueError, "TypeError": TypeError, "IndexError": IndexError}


def node_of(case):
    """Make the node of a case."""
    inputs = ["" if tensor is None else f"input_{i}" for i, tensor in enumerate(case["inputs"])]
    wanted = case["expected"] or [True] * case["n_outputs"]
    outputs = ["" if tensor is None else f"output_{i}" for i, tensor in enumerate(wanted)]
    node = helper.make_node(case["op"], inputs, outputs)
    for name, value in case["attrs"].items():
        kind = AttributeProto.INTS if isinstance(value, list) else AttributeProto.INT
        node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
    return node


def in_library(value, xp, layout):
    """Lay a decoded value out and hand it to a library, which may refuse its dtype."""
    if value is None:
        return None
    if isinstance(value, gs.Sequence):
        return gs.Sequence([in_library(item, xp, layout) for item in value], value.dtype)
    laid_out = LAYOUTS[layout](value)
    if xp.__name__ == "numpy":
        return laid_out
    try:
        return xp.asarray(laid_out)
    except (TypeError, ValueError):  # CuPy raises the latter
        pytest.skip(f"{xp.__name__} has no {value.dtype}")


def assert_result(actual, expected, xp):
    """Compare one output, which may be a sequence or unwanted."""
    if expected is None:
        assert actual is None
    elif isinstance(expected, gs.Sequence):
        assert isinstance(actual, gs.Sequence)
        assert actual.dtype == expected.dtype
        assert len(actual) == len(expected)
        for item, wanted in zip(actual, expected, strict=True):
            assert_result(item, wanted, xp)
    else:
        numbers = expected if xp.__name__ == "numpy" else xp.asarray(expected)
        assert_same(actual, expected, like=numbers)


def ids(cases):
    return [f"{case['id']}-{case['op']}-{case['version']}" for case in cases]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", VALID, ids=ids(VALID))
def test_valid(case, layout, xp):
    inputs = [in_library(decode(tensor), xp, layout) for tensor in case["inputs"]]
    before = [to_numpy(value).tolist() for value in inputs if value is not None and not isinstance(value, gs.Sequence)]
    results = run_node(node_of(case), inputs, opset=case["version"])
    assert len(results) == case["n_outputs"]
    for actual, expected in zip(results, map(decode, case["expected"]), strict=True):
        # SequenceLength counts in NumPy where there is no tensor to take the library from.
        lonely = case["op"] == "SequenceLength" and not len(inputs[0])
        assert_result(actual, expected, np if lonely else xp)
    after = [to_numpy(value).tolist() for value in inputs if value is not None and not isinstance(value, gs.Sequence)]
    assert repr(before) == repr(after)


@pytest.mark.parametrize("case", INVALID, ids=ids(INVALID))
def test_invalid(case, xp):
    inputs = [in_library(decode(tensor), xp, "plain") for tensor in case["inputs"]]
    with pytest.raises(BUILTIN[case["raises"]]) as raised:
        run_node(node_of(case), inputs, opset=case["version"])
    assert type(raised.value) is BUILTIN[case["raises"]]
    operator, _, message = str(raised.value).partition(": ")
    assert operator == f"{case['op']}-{case['version']}"
    assert case["argument"] in message


def test_all_cases_are_here():
    assert (len(VALID), len(INVALID)) == (187, 88)
