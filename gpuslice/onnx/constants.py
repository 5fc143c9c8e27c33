"""The values of Constant nodes and initializers, and how they join the arrays of a graph's inputs."""

from collections import abc
from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto

from gpuslice.dtypes import dtype_name
from gpuslice.engine import View
from gpuslice.libraries import NUMPY, Array
from gpuslice.onnx.node import attribute_type, attribute_value
from gpuslice.onnx.tensors import sparse_value, tensor_value, text
from gpuslice.sequence import Sequence

# Attribute -> its kind, its dtype, and the first opset that has it.
_VALUES: dict[str, tuple[int, Any, int]] = {
    "value": (AttributeProto.TENSOR, None, 1),
    "sparse_value": (AttributeProto.SPARSE_TENSOR, None, 11),
    "value_int": (AttributeProto.INT, np.int64, 12),
    "value_ints": (AttributeProto.INTS, np.int64, 12),
    "value_float": (AttributeProto.FLOAT, np.float32, 12),
    "value_floats": (AttributeProto.FLOATS, np.float32, 12),
    "value_string": (AttributeProto.STRING, np.object_, 12),
    "value_strings": (AttributeProto.STRINGS, np.object_, 12),
}


def constant_value(node: NodeProto, opset: int) -> Array:
    """Return the value of a Constant node as a NumPy array.

    Raises
    ------
    ValueError
        The node has inputs, or not exactly one attribute and one output; the attribute has another kind than its name
        says; or its value cannot be read.
    """
    if len(node.attribute) != 1 or len(node.output) != 1 or any(node.input):
        raise ValueError("must have exactly one attribute, its value, one output and no inputs")
    attribute = node.attribute[0]
    known = {name: entry for name, entry in _VALUES.items() if entry[2] <= opset}
    if attribute.name not in known:
        raise ValueError(
            f"attribute {attribute.name} is not supported at opset {opset}; allowed are {', '.join(known)}"
        )
    kind, dtype, _ = known[attribute.name]
    given = AttributeProto.AttributeType.Name(attribute_type(attribute))
    if given != AttributeProto.AttributeType.Name(kind):
        raise ValueError(f"attribute {attribute.name} must be {AttributeProto.AttributeType.Name(kind)}; got {given}")
    value = attribute_value(attribute)
    if kind == AttributeProto.TENSOR:
        return tensor_value(value)
    if kind == AttributeProto.SPARSE_TENSOR:
        return sparse_value(value)
    if dtype is np.object_:
        value = text(value) if isinstance(value, bytes) else list(map(text, value))
    return np.asarray(value, dtype=dtype)


def first_foreign(values: abc.Iterable[Any]) -> View | None:
    """Return the first tensor that is not NumPy's; None if all are."""
    for value in values:
        for item in value if isinstance(value, Sequence) else [value]:
            view: View = item
            if view.library is not NUMPY:
                return view
    return None


def placed(array: Array, like: View, name: str) -> Array:
    """Return a constant in the library and on the device of ``like``; raise TypeError if its dtype is missing there."""
    expected = dtype_name(array.dtype)
    try:
        bridge = like.library.bridge
        moved = like.xp.asarray(array, device=like.device) if bridge is None else bridge.asarray(array, like.device)
    except TypeError:
        moved = None
    if moved is None or dtype_name(moved.dtype) != expected:
        raise TypeError(f"constant {name!r} of {expected} cannot be an array of {like.library.name}")
    return moved
