"""Element types in protobufs and in object arrays."""

import numpy as np
from onnx import helper

from gpuslice.dtypes import dtype_name
from gpuslice.errors import describe
from gpuslice.libraries import Array


def name_of_elem_type(elem_type: int) -> str:
    """Return the name of a TensorProto data type; raise TypeError if there is no such type."""
    try:
        return dtype_name(helper.tensor_dtype_to_np_dtype(elem_type))
    except KeyError:
        raise TypeError(f"dtype must be a data type of TensorProto; got {elem_type}") from None


def check_text(array: Array, argument: str) -> None:
    """Raise TypeError if an object array holds anything except text, the only type that ONNX has for it."""
    if isinstance(array, np.ndarray) and array.dtype.kind == "O":
        other = next((item for item in array.flat if not isinstance(item, (str, bytes))), None)
        if other is not None:
            raise TypeError(f"{argument} must hold str if its dtype is object; got {describe(other)}")
