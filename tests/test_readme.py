"""What the README and the docstrings say: their code runs, and the engines differ as told."""

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from helpers import MODULES, model, node
from onnx import helper
from onnx.reference import ReferenceEvaluator

from gpuslice.onnx import Graph

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_tour_runs():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(code, names)
    x = names["x"]
    assert names["a"].shape == (2, 2, 4)
    assert (names["a2"] == x[..., :1]).all()
    assert (names["flipped"] == x[::-1, ::-1]).all()
    assert (names["turned"] == x.T).all()
    assert len(names["rows"]) == 4
    assert names["t"].allocations == [96]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_docstring_examples(module):
    if module not in ("gpuslice.__main__", "gpuslice.engine.cuda"):
        assert doctest.testmod(importlib.import_module(module)).failed == 0


X = np.arange(10, dtype=np.float32)
SLICE = node("Slice", ["x", "s", "e", "", "t"])
INSERT = [
    node("SequenceConstruct", ["x"], ["one"]),
    node("SequenceInsert", ["one", "first", "p"], ["two"]),
    node("SequenceAt", ["two", "p"], ["y"]),
]
# nodes, constants, opset, ours (None: an error), onnx.reference's
DIFFERENCES = {
    "start below -d": ([SLICE], {"s": [-11], "e": [-(2**31)], "t": [-1]}, 13, [[0]], [[]]),
    "end INT_MAX": ([SLICE], {"s": [9], "e": [2**31 - 1], "t": [-1]}, 13, [[]], [[]]),
    "5 into 4": (
        [helper.make_node("Split", ["x5"], list("abcd"), num_outputs=4)],
        {"x5": X[:5]},
        18,
        None,
        [[0, 1], [2, 3], [4], []],
    ),
    "10 into 3": ([helper.make_node("Split", ["x"], list("abc"))], {}, 13, None, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
    "insert at n": (INSERT, {"first": X[:1], "p": 1}, 13, [[0]], [[*range(10)]]),
}


@pytest.mark.parametrize("case", DIFFERENCES)
def test_onnx_reference_differs_as_told(case):
    nodes, constants, opset, ours, theirs = DIFFERENCES[case]
    outputs = list(nodes[-1].output)
    whole = model(nodes, ["x"], outputs, constants, opset=opset)
    assert [array.tolist() for array in ReferenceEvaluator(whole).run(None, {"x": X})] == theirs
    if ours is None:
        with pytest.raises(ValueError, match="^Split-1[38]"):
            Graph(whole).run({"x": X})
    else:
        assert [array.tolist() for array in Graph(whole).run({"x": X}).values()] == ours
