"""The backend protocol of onnx."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import assert_same, chain, model, node, sequence_info, tensor_info
from onnx import TensorProto, helper
from onnx.backend.base import Device
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from gpuslice import devices, engine
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
    with pytest.raises(
        ValueError, match="device must be one of CPU, CUDA, or with a number as in CUDA:1; got str 'TPU'"
    ):
        Backend.prepare(mirror, "TPU")
    with pytest.raises(ValueError, match="inputs must be at most 1, the number of the model; got 2"):
        Backend.run_model(mirror, [X, X])


def test_operators_that_are_not_supported():
    """ONNX's runner skips a test that raises its class of errors."""
    relu = model([node("Relu", ["x"])], ["x"], ["y"])
    for call in (
        lambda: Backend.prepare(relu),
        lambda: Backend.run_model(relu, [X]),
        lambda: Backend.run_node(node("Relu", ["x"]), [X]),
        lambda: Backend.run_node(node("Split", ["x"], domain="com.example"), [X]),
        lambda: Backend.run_node(node("SplitToSequence", ["x"]), [X], opset_version=9),
    ):
        with pytest.raises(BackendIsNotSupposedToImplementIt) as raised:
            call()
        assert isinstance(raised.value, ValueError)
        assert str(raised.value)


REFUSED = [
    lambda: Backend.prepare(None),
    lambda: Backend.prepare(chain(), None),
    lambda: Backend.prepare(chain(), "CUDA:x"),
    lambda: Backend.prepare(chain(), "CPU:1"),
    lambda: Backend.prepare(chain(), "CUDA:999"),
    lambda: Backend.run_model(chain(), None),
    lambda: Backend.run_model(chain(), "x"),
    lambda: Backend.run_model(chain(), [None]),
    lambda: Backend.run_node(None, [X]),
    lambda: Backend.run_node(node("Split", ["x"]), None),
    lambda: Backend.run_node(node("Split", ["x"]), [X], opset_version="13"),
]


@pytest.mark.parametrize("call", REFUSED)
def test_nonsense_is_refused_in_our_words(call):
    with pytest.raises((TypeError, ValueError), match="(model|device|inputs|input 'x'|node|opset) .*") as raised:
        call()
    assert not isinstance(raised.value, BackendIsNotSupposedToImplementIt)


def test_is_compatible_is_whether_prepare_raises():
    broken = [chain() for _ in range(4)]
    broken[0].graph.initializer[0].dims[0] = -1
    broken[1].graph.input[0].type.tensor_type.elem_type = 999
    broken[2].graph.node[0].input[0] = "nowhere"
    del broken[3].opset_import[:]
    for bad in broken:
        with pytest.raises((TypeError, ValueError)):
            Backend.prepare(bad)
        assert not Backend.is_compatible(bad)
    assert Backend.is_compatible(chain())
    assert not Backend.is_compatible(chain(), "TPU")
    assert not Backend.is_compatible(None)


@pytest.mark.parametrize("name", ["CPU", "CPU:0"])
def test_a_device_may_have_a_number(name):
    assert Device(name).device_id == 0
    assert Backend.supports_device(name)
    assert_same(Backend.prepare(chain(), name).run([X])[1], X[1:, 2:3, ::-1].copy())
    assert not any(map(Backend.supports_device, ("CPU:1", "CUDA:999", "cpu", "CUDA:", "CUDA:-1", "CPU 0", None, 0)))


def test_a_number_selects_the_cuda_device(monkeypatch):
    fake = SimpleNamespace(devices=lambda: ["first", "second"], from_host=lambda array, device: (array.shape, device))
    monkeypatch.setitem(sys.modules, "gpuslice.engine.cuda", fake)
    monkeypatch.setattr(engine, "cuda", fake, raising=False)
    for name, number in (("CUDA", None), ("CUDA:0", 0), ("CUDA:1", 1)):
        devices.check(name)
        assert devices.place([X, 3], name) == [((2, 3, 4), number), 3]
    with pytest.raises(ValueError, match="device must be in CUDA:0 to CUDA:1; got str 'CUDA:2'"):
        Backend.prepare(chain(), "CUDA:2")


def test_an_output_that_is_listed_twice_is_two_results():
    first, second = Backend.run_model(model([node("Identity", ["x"])], ["x"], ["y", "y"]), [X])
    for result in (first, second):
        assert_same(result, X)
    assert not np.shares_memory(first, second)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["CUDA", "CUDA:0"])
def test_results_are_where_the_inputs_are(name):
    import cupy

    nodes = [
        node("SequenceConstruct", ["x", "x"], ["s"]),
        node("Slice", ["x", "start", "end"], ["y"]),
        node("Identity", ["t"], ["u"]),
    ]
    text = np.array(["a", "b"], object)
    infos = [tensor_info(letter, None, TensorProto.STRING) for letter in "tu"]
    given = model(nodes, ["x", infos[0]], ["y", sequence_info("s"), infos[1]], {"start": [1], "end": [2]})
    for x, kind in ((X, np.ndarray), (cupy.asarray(X), cupy.ndarray)):
        y, s, u = Backend.prepare(given, name).run([x, text])
        assert {type(value) for value in (y, *s)} == {kind}
        assert_same(cupy.asnumpy(y), X[1:2].copy())
        assert_same(cupy.asnumpy(s[1]), X)
        assert_same(u, text)
        (row, _) = Backend.run_node(node("Split", ["x"], ["a", "b"]), [x], name, opset_version=13)
        assert type(row) is kind
        assert_same(cupy.asnumpy(row), X[:1].copy())
