"""How other libraries do the work of a case: PyTorch; onnxruntime and onnx.reference, which run it as an ONNX model."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench.case import Case
from bench.machine import threads

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
    if case.joins:
        join, tensors = (torch.cat if case.keeps_axis else torch.stack), list(map(_tensor, case.inputs(x)))
        return lambda: [join(tensors, case.axis, out=outs[0])]
    if case.split is None:
        return lambda: [outs[0].copy_(view)]
    sizes = case.split(view.shape[case.axis])

    def call() -> Sequence[Any]:
        if case.keeps_axis:
            torch.split_with_sizes_copy(view, sizes, case.axis, out=outs)
        else:
            torch.unbind_copy(view, case.axis, out=outs)
        return outs

    return call


def torch_fresh(case: Case, x: Any) -> Call:
    """Flip, clone, split_with_sizes_copy or cat; some need two of them. A flip keeps the order of strides."""
    import torch

    view, flips = _torch_view(case, x)
    if case.joins:
        join, tensors = (torch.cat if case.keeps_axis else torch.stack), list(map(_tensor, case.inputs(x)))
        return lambda: [join(tensors, case.axis)]
    if case.split is None:
        if flips:
            return lambda: [torch.flip(view, flips).contiguous()]
        return lambda: [view.clone(memory_format=torch.contiguous_format)]
    if not case.keeps_axis:
        return lambda: torch.unbind_copy(view, case.axis)
    sizes = case.split(view.shape[case.axis])
    return lambda: torch.split_with_sizes_copy(torch.flip(view, flips) if flips else view, sizes, case.axis)


def _tensor(array: Any) -> Any:
    import torch

    torch.set_num_threads(threads())
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
    if case.axes:
        view, flips = view.permute(case.axes), [case.axes.index(axis) for axis in flips]
    return view, flips


def runtime_into(case: Case, x: Any) -> Call:
    """Onnxruntime with the input and existing outputs bound."""
    session, device = _session(case, x)
    binding = session.io_binding()
    inputs = case.inputs(x)
    for one, array in zip(session.get_inputs(), inputs, strict=True):
        binding.bind_input(one.name, device, 0, array.dtype, array.shape, _pointer(array))
    outs = outputs_like(case, x)
    for one, out in zip(session.get_outputs(), outs, strict=True):
        binding.bind_output(one.name, device, 0, out.dtype, out.shape, _pointer(out))

    def call(_inputs: object = inputs) -> Sequence[Any]:  # which the binding does not keep
        session.run_with_iobinding(binding)
        return outs

    return call


def runtime_fresh(case: Case, x: Any) -> Call:
    """Onnxruntime's ``run``, which allocates its outputs."""
    if not isinstance(x, np.ndarray):
        raise NotImplementedError("run() takes and returns arrays of the host")
    session, _ = _session(case, x)
    inputs = _by_name(case, x)
    return lambda: session.run(None, inputs)


def reference_into(case: Case, x: Any) -> Call:
    """Raise: onnx.reference cannot write to existing arrays."""
    raise NotImplementedError("onnx.reference allocates its outputs")


def reference_fresh(case: Case, x: Any) -> Call:
    """onnx.reference, with its views made dense."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model_of(case, x))
    inputs = _by_name(case, x)
    return lambda: [np.ascontiguousarray(result) for result in evaluator.run(None, inputs)]


def _by_name(case: Case, x: Any) -> dict[str, Any]:
    inputs = case.inputs(x)
    return {"x": x} if len(inputs) == 1 else {f"x{i}": array for i, array in enumerate(inputs)}


def _session(case: Case, x: Any) -> tuple[Any, str]:
    import onnxruntime

    device = "cpu" if isinstance(x, np.ndarray) else "cuda"
    provider = f"{device.upper()}ExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        raise NotImplementedError(f"this onnxruntime has no {provider}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads()
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(model_of(case, x).SerializeToString(), options, [provider]), device
    except Exception as error:  # its class differs between versions
        raise NotImplementedError(str(error).split("\n")[0][:160]) from error


def _pointer(array: Any) -> int:
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr


def model_of(case: Case, x: Any) -> Any:
    """Return the case as an ONNX model: Slices, a Transpose and a Split, or a Concat, or Identity if there is none."""
    from onnx import TensorProto, helper

    if not case.keeps_axis:
        raise NotImplementedError("a stack of tensors is several operators")
    inputs = _by_name(case, x)
    if case.joins:
        return _model([helper.make_node("Concat", list(inputs), ["y"], axis=case.axis)], inputs, ["y"], [])
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
    if case.axes:
        nodes.append(helper.make_node("Transpose", [value], [f"{value}t"], perm=case.axes))
        value, shape = f"{value}t", tuple(shape[axis] for axis in case.axes)
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
    return _model(nodes, inputs, outputs, constants)


def _model(nodes: Sequence[Any], inputs: dict[str, Any], outputs: Sequence[str], constants: Sequence[Any]) -> Any:
    from onnx import helper

    (kind,) = {helper.np_dtype_to_tensor_dtype(np.dtype(array.dtype)) for array in inputs.values()}
    given = [helper.make_tensor_value_info(name, kind, array.shape) for name, array in inputs.items()]
    results = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
    graph = helper.make_graph(nodes, "case", given, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
