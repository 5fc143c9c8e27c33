"""How other libraries do the work of a case: PyTorch; onnxruntime and onnx.reference, which run it as an ONNX model."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench.cases import Case

# Does the work once and returns the outputs. They are freed after the clock has stopped.
Call = Callable[[], Sequence[Any]]

_OPSET = 13


def outputs_like(case: Case, x: Any) -> list[Any]:
    """Allocate the outputs of a case in the library of its source, and write to every page of them."""
    shapes = case.output_shapes(x.shape)
    if isinstance(x, np.ndarray):
        return [np.full(shape, 0, x.dtype) for shape in shapes]
    import cupy

    return [cupy.zeros(shape, x.dtype) for shape in shapes]


def torch_into(case: Case, x: Any) -> Call:
    """``copy_`` of a view, or split_with_sizes_copy, to existing tensors."""
    import torch

    view, flips = _torch_view(case, x)
    if flips:
        raise NotImplementedError("torch.flip has no out=")
    outs = [_tensor(out) for out in outputs_like(case, x)]
    if case.split is None:
        return lambda: [outs[0].copy_(view)]
    sizes = case.split(view.shape[case.axis])

    def call() -> Sequence[Any]:
        torch.split_with_sizes_copy(view, sizes, case.axis, out=outs)
        return outs

    return call


def torch_fresh(case: Case, x: Any) -> Call:
    """Flip, clone or split_with_sizes_copy; a split of a flipped tensor needs both."""
    import torch

    view, flips = _torch_view(case, x)
    if case.split is None:
        return lambda: [torch.flip(view, flips) if flips else view.clone(memory_format=torch.contiguous_format)]
    sizes = case.split(view.shape[case.axis])
    return lambda: torch.split_with_sizes_copy(torch.flip(view, flips) if flips else view, sizes, case.axis)


def _tensor(array: Any) -> Any:
    import torch

    torch.set_num_threads(1)
    return torch.from_numpy(array) if isinstance(array, np.ndarray) else torch.from_dlpack(array)


def _torch_view(case: Case, x: Any) -> tuple[Any, list[int]]:
    """Return a view with positive steps, because tensors have no others, and the axes to flip."""
    index, flips = [], []
    for axis, one in enumerate(case.index):
        start, _, step = one.indices(x.shape[axis])
        if step < 0:
            count = len(range(*one.indices(x.shape[axis])))
            one = slice(start + (count - 1) * step, start + 1, -step)
            flips.append(axis)
        index.append(one)
    view = _tensor(x)[tuple(index)]
    if case.transposed:
        view, flips = view.permute(*reversed(range(view.ndim))), [view.ndim - 1 - axis for axis in flips]
    return view, flips


def runtime_into(case: Case, x: Any) -> Call:
    """Onnxruntime with the input and existing outputs bound."""
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
        raise NotImplementedError("run() takes and returns arrays of the host")
    session, _ = _session(case, x)
    return lambda: session.run(None, {"x": x})


def reference_into(case: Case, x: Any) -> Call:
    """Raise: onnx.reference cannot write to existing arrays."""
    raise NotImplementedError("onnx.reference allocates its outputs")


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
        raise NotImplementedError(f"this onnxruntime has no {provider}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(model_of(case, x).SerializeToString(), options, [provider]), device
    except Exception as error:  # its class differs between versions
        raise NotImplementedError(str(error).split("\n")[0][:160]) from error


def _pointer(array: Any) -> int:
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr


def model_of(case: Case, x: Any) -> Any:
    """Return the case as an ONNX model: Slices, a Transpose and a Split, or Identity if there is none of them."""
    from onnx import TensorProto, helper

    nodes, constants, value, shape = [], [], "x", x.shape
    for index in case.chain or ((case.index,) if case.index else ()):
        names = [f"{value}{name}" for name in ("starts", "ends", "axes", "steps")]
        constants += [
            helper.make_tensor(name, TensorProto.INT64, [len(one)], one)
            for name, one in zip(names, case.bounds(shape, index), strict=True)
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
    elif nodes:
        nodes[-1].output[0] = "y"
    else:
        nodes.append(helper.make_node("Identity", ["x"], outputs))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(x.dtype))
    given = [helper.make_tensor_value_info("x", kind, x.shape)]
    results = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
    graph = helper.make_graph(nodes, case.name, given, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
