"""ONNX's own tests: those of these operators alone on Backend, on both devices, and all that touch them on onnx.reference."""

import warnings

import onnx.backend.base
import onnx.backend.test
import pytest
from onnx.backend.test.loader import load_model_tests
from onnx.reference import ReferenceEvaluator

from gpuslice.onnx import Backend, reference_ops
from gpuslice.versions import OPERATORS

# onnx.reference without our operators fails these two as well.
FAILING = ("test_if_opt", "test_loop16_seq_none")
# onnx.backend.test.BackendTest's names for load_model_tests's kinds.
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


class ReferenceBackend(onnx.backend.base.Backend):
    """onnx.reference with our operators in place of its own."""

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        evaluator = ReferenceEvaluator(model, new_ops=reference_ops())

        class Prepared(onnx.backend.base.BackendRep):
            def run(self, inputs, **kwargs):
                return tuple(evaluator.run(None, dict(zip(evaluator.input_names, inputs, strict=False))))

        return Prepared()

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"


def operators_of(graph, model):
    """Yield the operators of a graph, of the functions it calls and of its subgraphs."""
    functions = {(function.domain, function.name): function for function in model.functions}
    for node in graph.node:
        yield node.op_type
        function = functions.get((node.domain, node.op_type))
        if function is not None:
            yield from operators_of(function, model)
        for attribute in node.attribute:
            for subgraph in [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]:
                yield from operators_of(subgraph, model)


def load(case):
    """Return the model of a test, which is in memory or on disk."""
    return case.model or onnx.load(f"{case.model_dir}/model.onnx")


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the generators of tests for other operators divide by zero
    CASES = [(case.name, load(case)) for kind in KINDS for case in load_model_tests(kind=kind)]
# SequenceMap is onnx.reference's, but it hands sequences to and takes them from ours.
FAMILY = {*OPERATORS, "SequenceMap"}
TOUCHED = {name: model for name, model in CASES if not FAMILY.isdisjoint(operators_of(model.graph, model))}
OURS = [name for name, model in CASES if Backend.is_compatible(model)]


class AnyBackend(Backend):
    """Backend that does not look for a GPU, which would take seconds for some thousand tests. The gpu mark does that."""

    @classmethod
    def supports_device(cls, device):
        return True


def collect(backend, names, device="cpu"):
    """Return the unittest classes of some tests, without the thousands of others, which would count as skipped."""
    tests = onnx.backend.test.BackendTest(backend, __name__)
    for name in FAILING:
        tests.xfail(f"^{name}_{device}$")
    wanted = {f"{name}_{device}" for name in names}
    cases = {name: case for name, case in tests.test_cases.items() if case is not None}
    for case in cases.values():
        for name in [name for name in vars(case) if name.startswith("test_") and name not in wanted]:
            delattr(case, name)
    return cases


globals().update({f"{name}OnBackend": case for name, case in collect(AnyBackend, OURS).items()})
globals().update({f"{name}OnCuda": pytest.mark.gpu(case) for name, case in collect(AnyBackend, OURS, "cuda").items()})
globals().update({f"{name}OnReference": case for name, case in collect(ReferenceBackend, TOUCHED).items()})


def test_no_test_is_missed():
    assert len(OURS) >= 43
    assert len(TOUCHED) >= 151
