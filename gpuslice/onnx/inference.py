"""The types of a model's values, by onnx.shape_inference."""

from collections import abc
from math import prod

import onnx.shape_inference
from google.protobuf.message import Message
from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, TensorShapeProto

# Inference reads the items of tensors that hold shapes. It does not need those of weights.
_MOST_ITEMS = 1024
# A name without a value.
_UNKNOWN = "?"


def bodies(node: NodeProto) -> list[GraphProto]:
    """Return the subgraphs of a node."""
    return [graph for entry in node.attribute for graph in (*([entry.g] if entry.HasField("g") else []), *entry.graphs)]


def with_types(model: ModelProto) -> GraphProto:
    """Return a model's graph with the types of its values, as far as they can be inferred."""
    light = _without_weights(model)
    _make_harmless(light)
    try:
        return onnx.shape_inference.infer_shapes(light).graph
    except Exception:  # of any kind: the model need not be valid
        return light.graph


def _without_weights(model: ModelProto) -> ModelProto:
    """Return a copy of a model, with its large initializers empty."""
    light = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph = light.graph
    for name in ("node", "input", "output", "value_info", "sparse_initializer"):
        getattr(graph, name).extend(getattr(model.graph, name))
    graph.name = model.graph.name
    for tensor in model.graph.initializer:
        few = prod(tensor.dims) <= _MOST_ITEMS
        empty = TensorProto(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)
        graph.initializer.append(tensor if few else empty)
    return light


def _make_harmless(model: ModelProto) -> None:
    """Take out of a model what ends the process in onnx 1.23: a Slice of a dimension that is negative.

    A dimension may also become negative during the inference. So no Slice has bounds that are known.
    """
    for message in _messages(model):
        if isinstance(message, TensorShapeProto.Dimension) and message.dim_value < 0:
            message.ClearField("dim_value")
        elif isinstance(message, (TensorProto, SparseTensorProto)) and any(dim < 0 for dim in message.dims):
            message.Clear()
        elif isinstance(message, NodeProto) and message.op_type == "Slice":
            message.input[1:] = [_UNKNOWN for _ in message.input[1:3]]
            del message.attribute[:]


def _messages(model: Message) -> abc.Iterator[Message]:
    """Yield a message and all messages in it."""
    waiting = [model]
    while waiting:
        message = waiting.pop()
        yield message
        for field, value in message.ListFields():
            if field.message_type is not None:
                waiting += value if field.is_repeated else [value]
