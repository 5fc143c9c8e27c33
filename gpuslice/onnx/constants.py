"""The values of Constant nodes."""

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from gpuslice.arrays import Array

_SCALARS = {"value_int": np.int64, "value_float": np.float32, "value_string": np.object_}


def constant_value(node: NodeProto) -> Array:
    """Give the value of a Constant node as a NumPy array.

    Raises
    ------
    ValueError
        Not exactly one attribute or output, or a sparse value.
    """
    if len(node.attribute) != 1 or len(node.output) != 1:
        raise ValueError("must have exactly one attribute, its value, and one output")
    attribute = node.attribute[0]
    if attribute.name == "value":
        return numpy_helper.to_array(attribute.t)
    name = attribute.name.removesuffix("s")
    if name not in _SCALARS:
        raise ValueError(f"attribute {attribute.name} is not supported; allowed are value, {', '.join(_SCALARS)}, ...s")
    value = helper.get_attribute_value(attribute)
    if name == "value_string":
        value = value.decode() if isinstance(value, bytes) else [item.decode() for item in value]
    return np.asarray(value, dtype=_SCALARS[name])
