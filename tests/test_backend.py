"""The backend protocol of onnx."""

import numpy as np
import pytest
from helpers import assert_same, chain, model, node
from onnx import helper

from gpuslice.onnx import Backend

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_backend_protocol():
    mirror = chain()
    for results in (Backend.run_model(mirror, [X]), Backend.prepare(mirror).run({"x": X})):
        assert_same(results[0], X[1:, 0:1, ::-1].copy())
    assert_same(Backend.run_node(node("Slice", ["x"], starts=[1], ends=[2]), [X], opset_version=9)[0], X[1:2].copy())
    (rows,) = Backend.run_node(node("SplitToSequence", ["x"]), [X])
    assert isinstance(rows, list)
    assert Backend.is_compatible(mirror)
    assert not Backend.is_compatible(model([node("Relu", ["x"])], ["x"], ["y"]))
    assert not Backend.is_compatible(helper.make_model(mirror.graph, opset_imports=[helper.make_opsetid("other", 1)]))
    with pytest.raises(TypeError, match="inputs must be a list, tuple or mapping of values; got ndarray"):
        Backend.run_model(mirror, X)
    assert Backend.supports_device("CPU")
    assert not Backend.supports_device("TPU")
    with pytest.raises(ValueError, match="device must be one of CPU, CUDA, or with a number as in CUDA:1; got 'TPU'"):
        Backend.prepare(mirror, "TPU")
    with pytest.raises(ValueError, match="inputs must be at most 1, the number of the model; got 2"):
        Backend.run_model(mirror, [X, X])
