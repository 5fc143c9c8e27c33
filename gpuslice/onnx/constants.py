"""The values of Constant nodes and initializers."""

from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, helper, numpy_helper

from gpuslice.arrays import Array

# Attribute -> its kind, its dtype, and the opset that brought it.
_VALUES: dict[str, tuple[int, Any, int]] = {
    "value": (AttributeProto.TENSOR, None, 1),
    "value_int": (AttributeProto.INT, np.int64, 12),
    "value_ints": (AttributeProto.INTS, np.int64, 12),
    "value_float": (AttributeProto.FLOAT, np.float32, 12),
    "value_floats": (AttributeProto.FLOATS, np.float32, 12),
    "value_string": (AttributeProto.STRING, np.object_, 12),
    "value_strings": (AttributeProto.STRINGS, np.object_, 12),
}


def constant_value(node: NodeProto, opset: int) -> Array:
    """Give the value of a Constant node as a NumPy array.

    Raises
    ------
    ValueError
        Inputs, not exactly one attribute or output, a sparse value, or an attribute of another kind than its name says.
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
    if attribute.type != kind:
        given = AttributeProto.AttributeType.Name(attribute.type)
        raise ValueError(f"attribute {attribute.name} must be {AttributeProto.AttributeType.Name(kind)}; got {given}")
    if kind == AttributeProto.TENSOR:
        return tensor_value(attribute.t)
    value = helper.get_attribute_value(attribute)
    if dtype is np.object_:
        value = value.decode() if isinstance(value, bytes) else [item.decode() for item in value]
    return np.asarray(value, dtype=dtype)


def tensor_value(tensor: TensorProto) -> Array:
    """Give a TensorProto as a NumPy array; ValueError where it can't be read."""
    try:
        return numpy_helper.to_array(tensor)
    except Exception as error:  # an unknown type is a KeyError, lost external data a ValidationError
        raise ValueError(f"tensor {tensor.name!r} cannot be read: {type(error).__name__}: {error}") from error
