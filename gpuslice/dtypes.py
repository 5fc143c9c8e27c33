"""Element types by their ONNX names, and the type lists that the operator texts share."""

import re
from collections.abc import Collection
from functools import lru_cache, reduce
from typing import Any, TypeAlias

import numpy as np

# Each library has dtype objects of its own; the Array API standard names no common base class.
DType: TypeAlias = Any

INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
INDEX = frozenset({"int32", "int64"})
FLOATS = frozenset({"float16", "float32", "float64"})
# The two lists that most operator versions admit. The names are those of the ONNX type tables: 15 types, then bfloat16.
T15 = FLOATS | INTEGERS | {"bool", "complex64", "complex128", "string"}
T16 = T15 | {"bfloat16"}


def dtype_name(dtype: DType) -> str:
    """Return the ONNX name of a dtype, such as ``"float32"``, ``"bfloat16"`` or ``"string"``.

    Text of every kind is "string": NumPy has StringDType, fixed-width and object arrays for it.
    """
    # NumPy needs microseconds to name a dtype, so names are cached. Only NumPy's dtypes are: a dtype of another library
    # may have the hash of one of NumPy's, and comparing the two can raise.
    return _numpy_dtype_name(dtype) if isinstance(dtype, np.dtype) else str(dtype).rpartition(".")[2]


@lru_cache(maxsize=256)
def _numpy_dtype_name(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "SUTO":
        return "string"
    return str(dtype) if dtype.fields else dtype.name


def itemsize(dtype: DType) -> int:
    """Return the size of an item in bytes."""
    size = getattr(dtype, "itemsize", None)
    if size is None:  # array-api-strict has no itemsize; its dtype names contain the bits
        bits = re.search(r"\d+", dtype_name(dtype))
        size = int(bits[0]) // 8 if bits else 1
    return int(size)


def common_dtype(dtypes: Collection[DType]) -> DType:
    """Return a NumPy dtype that holds all of some dtypes with one ONNX name; if there is only one, that.

    They may still differ: in byte order, or in how NumPy stores text.

    Raises
    ------
    TypeError
        There is none: two kinds of StringDType have different markers of missing text.
    """
    if len(dtypes) == 1:
        return next(iter(dtypes))
    # Objects first: they hold all text, of which NumPy does not know a common dtype for every two kinds.
    return reduce(_common_dtype, sorted(dtypes, key=lambda dtype: dtype != np.dtype(object)))


def _common_dtype(left: DType, right: DType) -> DType:
    if left == right:
        return left
    if np.dtype(object) in (left, right) and dtype_name(left) == "string":
        return np.dtype(object)
    try:
        return np.promote_types(left, right)
    except TypeError as error:
        raise TypeError(f"arrays of a sequence must have a common dtype; got {left} and {right}") from error
