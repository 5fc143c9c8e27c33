"""Element types by name: which ones ONNX's type lists hold, and how its protobufs and NumPy name them."""

import numpy as np
from onnx import helper

from gpuslice.arrays import Array, dtype_name

INDEX = frozenset({"int32", "int64"})
FLOATS = frozenset({"float16", "float32", "float64"})
# The lists that most versions share; 16 is 15 and bfloat16.
T15 = FLOATS | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
T15 = T15 | {"bool", "complex64", "complex128", "string"}
T16 = T15 | {"bfloat16"}


def name_of_elem_type(elem_type: int) -> str:
    """Give the name of a TensorProto data type; TypeError where the number means none."""
    try:
        return dtype_name(helper.tensor_dtype_to_np_dtype(elem_type))
    except KeyError:
        raise TypeError(f"dtype must be a data type of TensorProto; got {elem_type}") from None


def check_text(array: Array, argument: str) -> None:
    """Refuse an object array that holds anything but text, which is all that ONNX has for it."""
    if isinstance(array, np.ndarray) and array.dtype.kind == "O":
        other = next((item for item in array.flat if not isinstance(item, (str, bytes))), None)
        if other is not None:
            raise TypeError(f"{argument} must hold str where its dtype is object; got {type(other).__name__}")
