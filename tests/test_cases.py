"""Every worked case, through run_node, on each library and with its inputs in every memory layout."""

import json
from contextlib import contextmanager
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from helpers import LAYOUTS, assert_same
from libraries import LIBRARIES, library_of, make, to_numpy
from onnx import AttributeProto, helper

import gpuslice as gs
from gpuslice.onnx import VERSIONS, run_node

CASES = [json.loads(line) for line in (Path(__file__).parent / "data" / "cases.jsonl").read_text().splitlines()]
VALID = [case for case in CASES if case["expected"] is not None]
INVALID = [case for case in CASES if case["expected"] is None]
BUILTIN = {"ValueError": ValueError, "TypeError": TypeError, "IndexError": IndexError}


def dtypes_of(tensors):
    """Return the dtypes of tensors, which may be omitted or sequences of tensors."""
    dtypes = set()
    for tensor in filter(None, tensors):
        dtypes |= dtypes_of(tensor["seq"]) if "seq" in tensor else {tensor["dtype"]}
    return dtypes


def on_each_library(cases):
    """Return parameters: each case with each library that has its dtypes."""
    return [
        pytest.param(
            case, library, id=f"{library.name}-{case['id']}-{case['op']}-{case['version']}", marks=library.marks
        )
        for library in LIBRARIES
        for case in (cases if library.is_installed else cases[:1])  # which is skipped
        if library.lacks.isdisjoint(dtypes_of([*case["inputs"], *(case["expected"] or ())]))
    ]


def decode(tensor):
    """Return the tensor of a case as a NumPy array or a Sequence, and None as None."""
    if tensor is None:
        return None
    if "seq" in tensor:
        return gs.Sequence([decode(item) for item in tensor["seq"]], tensor["dtype"])
    name, data = tensor["dtype"], tensor["data"]
    if name == "string":
        return np.array(data, dtype=object).reshape(tensor["shape"])
    if name.startswith("complex"):
        data = [complex(*pair) for pair in data]
    elif "float" in name:
        data = [float(item) for item in data]
    return np.array(data, dtype=getattr(ml_dtypes, name, name)).reshape(tensor["shape"])


def node_of(case):
    """Return the node of a case."""
    inputs = ["" if tensor is None else f"input_{i}" for i, tensor in enumerate(case["inputs"])]
    wanted = case["expected"] or [True] * case["n_outputs"]
    outputs = ["" if tensor is None else f"output_{i}" for i, tensor in enumerate(wanted)]
    node = helper.make_node(case["op"], inputs, outputs)
    for name, value in case["attrs"].items():
        kind = AttributeProto.INTS if isinstance(value, list) else AttributeProto.INT
        node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
    return node


def inputs_of(case, xp, layout="plain"):
    """Return the inputs of a case as values of a library, from NumPy arrays in a layout.

    Bounds, sizes and positions stay in NumPy if arrays of the library cannot be read.
    """
    tensors = {"SequenceConstruct": len(case["inputs"]), "SequenceInsert": 2}.get(case["op"], 1)

    def placed(value, xp):
        if isinstance(value, gs.Sequence):
            return gs.Sequence([placed(item, xp) for item in value], value.dtype)
        return None if value is None else make(xp, LAYOUTS[layout](value))

    return [
        placed(decode(tensor), np if i >= tensors and library_of(xp).lazy else xp)
        for i, tensor in enumerate(case["inputs"])
    ]


def items_of(values):
    """Return the items of all arrays among some values as text, which NaN does not make unequal."""
    return repr([to_numpy(v).tolist() for v in values if v is not None and not isinstance(v, gs.Sequence)])


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
        assert_same(actual, expected, like=make(xp, expected))


@contextmanager
def noted(text):
    """Add a text to an error in the block."""
    try:
        yield
    except BaseException as error:
        error.add_note(text)
        raise


@pytest.mark.parametrize(("case", "library"), on_each_library(VALID))
def test_valid(case, library):
    xp = library.xp
    # Libraries that copy what they make arrays of have one layout.
    for layout in LAYOUTS if library.whole_suite else ("plain",):
        with noted(f"layout: {layout}"):
            inputs = inputs_of(case, xp, layout)
            before = items_of(inputs)
            results = run_node(node_of(case), inputs, opset=case["version"])
            assert len(results) == case["n_outputs"]
            for actual, expected in zip(results, map(decode, case["expected"]), strict=True):
                # SequenceLength counts in NumPy if there is no tensor to take the library from.
                without_tensor = case["op"] == "SequenceLength" and not len(inputs[0])
                assert_result(actual, expected, np if without_tensor else xp)
            assert items_of(inputs) == before


@pytest.mark.parametrize(("case", "library"), on_each_library(INVALID))
def test_invalid(case, library):
    inputs = inputs_of(case, library.xp)
    with pytest.raises(BUILTIN[case["raises"]]) as raised:
        run_node(node_of(case), inputs, opset=case["version"])
    assert type(raised.value) is BUILTIN[case["raises"]]
    operator, _, message = str(raised.value).partition(": ")
    assert operator == f"{case['op']}-{case['version']}"
    assert case["argument"] in message


def test_every_version_has_cases():
    assert {version.name for version in VERSIONS} == {f"{case['op']}-{case['version']}" for case in VALID}


def test_no_case_is_lost():
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert len(VALID) >= 188
    assert len(INVALID) >= 88
