"""A case as an ONNX model, and who runs models: onnxruntime and onnx.reference."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.cases import Case
from bench.runner import Call, Unsupported, bounds, outputs_like

_OPSET = 13


def model_of(case: Case, x: Any) -> Any:
    """Make the model: Slices, a Transpose, a Split, or Identity where there is nothing to do."""
    from onnx import TensorProto, helper

    nodes, constants, value, shape = [], [], "x", x.shape
    for index in case.chain or ((case.index,) if case.index else ()):
        names = [f"{value}{name}" for name in ("starts", "ends", "axes", "steps")]
        lists = bounds(index, shape, case.ends)
        constants += [
            helper.make_tensor(name, TensorProto.INT64, [len(one)], one) for name, one in zip(names, lists, strict=True)
        ]
        nodes.append(helper.make_node("Slice", [value, *names], [f"{value}s"]))
        shape = np.broadcast_to(np.uint8(), shape)[index].shape
        value += "s"
    if case.transposed:
        nodes.append(helper.make_node("Transpose", [value], [f"{value}t"]))
        value, shape = f"{value}t", shape[::-1]
    outputs = ["y"]
    if case.split:
        sizes = case.split(shape[case.axis])
        outputs = [f"y{i}" for i in range(len(sizes))]
        constants.append(helper.make_tensor("sizes", TensorProto.INT64, [len(sizes)], sizes))
        nodes.append(helper.make_node("Split", [value, "sizes"], outputs, axis=case.axis))
    else:
        nodes.append(helper.make_node("Identity", [value], outputs))
    if len(nodes) > 1 and not case.split:
        nodes.pop()
        nodes[-1].output[0] = "y"
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(x.dtype))
    given = [helper.make_tensor_value_info("x", kind, x.shape)]
    results = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
    graph = helper.make_graph(nodes, case.name, given, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)


def runtime_into(case: Case, x: Any) -> Call:
    """Onnxruntime with input and outputs bound beforehand."""
    session, device = _session(case, x)
    binding = session.io_binding()
    binding.bind_input("x", device, 0, x.dtype, x.shape, _pointer(x))
    outs = outputs_like(case, x)
    for one, out in zip(session.get_outputs(), outs, strict=True):
        binding.bind_output(one.name, device, 0, out.dtype, out.shape, _pointer(out))

    def call() -> Sequence[Any]:
        session.run_with_iobinding(binding)
        return outs

    return call


def runtime_fresh(case: Case, x: Any) -> Call:
    """Onnxruntime's ``run``, which allocates its outputs."""
    if not isinstance(x, np.ndarray):
        raise Unsupported("run() takes and gives arrays of the host")
    session, _ = _session(case, x)
    return lambda: session.run(None, {"x": x})


def reference_into(case: Case, x: Any) -> Call:
    """Nothing: onnx.reference allocates its outputs."""
    raise Unsupported("onnx.reference allocates its outputs")


def reference_fresh(case: Case, x: Any) -> Call:
    """onnx.reference, with its views made dense."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model_of(case, x))
    return lambda: [np.ascontiguousarray(result) for result in evaluator.run(None, {"x": x})]


def _session(case: Case, x: Any) -> tuple[Any, str]:
    import onnxruntime

    device = "cpu" if isinstance(x, np.ndarray) else "cuda"
    provider = f"{device.upper()}ExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        raise Unsupported(f"this onnxruntime has no {provider}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(model_of(case, x).SerializeToString(), options, [provider]), device
    except Exception as error:  # whatever class it is this time
        raise Unsupported(str(error).split("\n")[0][:160]) from error


def _pointer(array: Any) -> int:
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr
