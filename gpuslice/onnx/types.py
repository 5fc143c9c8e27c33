"""Element types in protobufs and in object arrays."""

from functools import cache

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


@cache
def element_types() -> frozenset[str]:
    """Return the names of all element types that onnx knows."""
    return frozenset(dtype_name(helper.tensor_dtype_to_np_dtype(number)) for number in helper.get_all_tensor_dtypes())


def check_text(array: Array, argument: str) -> None:
    """Raise TypeError if an object array holds anything except text, the only type that ONNX has for it."""
    if isinstance(array, np.ndarray) and array.dtype.kind == "O":
        for item in array.flat:
            if not isinstance(item, (str, bytes)):
                raise TypeError(f"{argument} must hold str if its dtype is object; got {describe(item)}")
