"""What an array of any library is, its dtype by ONNX's name, and bounds read from arrays as Python ints."""

import ctypes
import operator
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from math import prod
from types import ModuleType
from typing import Any, TypeAlias, TypeGuard

import array_api_compat
import numpy as np

# The Array API standard names no common base class, and dtypes differ by library.
Array: TypeAlias = Any
DType: TypeAlias = Any

# NumPy 2 follows the standard itself; array_api_compat's wrapper of it takes longer to import than all else here.
NUMPY: ModuleType = np

_Byte = ctypes.c_char
_INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


def is_array(value: object) -> TypeGuard[Array]:
    """Tell whether ``value`` is an array of a library that follows the Array API standard."""
    return type(value) is np.ndarray or bool(array_api_compat.is_array_api_obj(value))


def namespace(array: Array, argument: str) -> ModuleType:
    """Give the Array API namespace of ``array``.

    Raises
    ------
    TypeError
        ``array`` is no array, or one that says more than its items (a masked array).
    """
    if type(array) is np.ndarray:
        return NUMPY
    if not is_array(array):
        raise TypeError(f"{argument} must be an array; got {type(array).__name__}")
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{argument} must not be a masked array, whose mask would be lost; got MaskedArray")
    if isinstance(array, (np.ndarray, np.generic)):
        return NUMPY
    xp: ModuleType = array_api_compat.array_namespace(array)
    return xp


def base_array(array: Array) -> Array:
    """Give a NumPy scalar, memory map or other subclass as an ndarray, without a copy; other arrays as they are."""
    if type(array) is not np.ndarray and isinstance(array, (np.ndarray, np.generic)):
        return np.asarray(array)
    return array


def address(array: Array) -> int:
    """Give the address of a NumPy array's first item."""
    try:
        # Of what is contiguous and may be written, as most arrays are, this is the quickest way by far.
        return ctypes.addressof(_Byte.from_buffer(array))
    except (TypeError, ValueError, BufferError):
        start: int = array.__array_interface__["data"][0]
        return start


def device(array: Array) -> object:
    """Give the device of an array, as its library names it."""
    return "cpu" if isinstance(array, np.ndarray) else array_api_compat.device(array)


@cache
def is_immutable(xp: ModuleType) -> bool:
    """Tell whether arrays of the namespace can't be written in place."""
    return bool(array_api_compat.is_jax_namespace(xp) or array_api_compat.is_dask_namespace(xp))


def dtype_name(dtype: DType) -> str:
    """Give a dtype by its ONNX name, such as ``"float32"``, ``"bfloat16"`` or ``"string"``.

    Text of every kind is "string": NumPy's StringDType, fixed-width and object arrays hold it alike.
    """
    # NumPy takes microseconds to name a dtype. Dtypes of other libraries stay out of the cache, where a hash they share
    # with NumPy's would make the two be compared.
    return _numpy_dtype_name(dtype) if isinstance(dtype, np.dtype) else str(dtype).rpartition(".")[2]


@lru_cache(maxsize=256)
def _numpy_dtype_name(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "SUTO":
        return "string"
    return str(dtype) if dtype.fields else dtype.name


def itemsize(array: Array) -> int:
    """Give the bytes of one item."""
    size = getattr(array.dtype, "itemsize", None)
    if size is None:  # array-api-strict has none; its names say it
        bits = re.search(r"\d+", dtype_name(array.dtype))
        size = int(bits[0]) // 8 if bits else 1
    return int(size)


def integers(values: object, argument: str) -> tuple[int, ...]:
    """Read bounds, axes, steps or sizes as Python ints. Values on a device cost a synchronising read.

    Raises
    ------
    TypeError
        Neither a sequence of ints nor an integer array; bools are no bounds, a bare int is no sequence.
    ValueError
        An array that is not 1-D.
    """
    if type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind in "iu":
        return tuple(values.tolist())
    if not isinstance(values, (list, tuple)):
        if is_array(values):
            if len(values.shape) != 1:
                raise ValueError(f"{argument} must be 1-D; got shape {tuple(values.shape)}")
            return _read(values, argument)
        if not isinstance(values, Sequence) or isinstance(values, (str, bytes, bytearray)):
            raise TypeError(f"{argument} must be a sequence of ints or a 1-D integer array; got {_describe(values)}")
    for value in values:
        if type(value) is not int:
            return tuple([integer(value, argument) for value in values])
    return tuple(values)


def integer(value: object, argument: str) -> int:
    """Read one int: a Python or NumPy int or a 0-d integer array.

    Raises
    ------
    TypeError
        Anything else, a bool included.
    """
    if type(value) is int:
        return value
    dtype = getattr(value, "dtype", None)
    if isinstance(value, bool) or (dtype is not None and dtype_name(dtype) not in _INTEGERS):
        raise TypeError(f"{argument} must be of ints; got {_describe(value)}")
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{argument} must be of ints; got {_describe(value)}") from None


def single_integer(value: object, argument: str) -> int:
    """Read a position: an int, or an array or sequence that holds exactly one, of any rank.

    Raises
    ------
    IndexError
        Not exactly one value.
    TypeError
        Not an integer.
    """
    if is_array(value):
        shape = tuple(value.shape)
        if prod(shape) != 1:
            raise IndexError(f"{argument} must be a scalar or hold one value; got shape {shape}")
        return _read(namespace(value, argument).reshape(value, (1,)), argument)[0]
    if isinstance(value, (list, tuple)):
        if len(value) != 1:
            raise IndexError(f"{argument} must be a scalar or hold one value; got {len(value)} values")
        return single_integer(value[0], argument)
    return integer(value, argument)


def _read(array: Array, argument: str) -> tuple[int, ...]:
    name = dtype_name(array.dtype)
    if name not in _INTEGERS:
        raise TypeError(f"{argument} must be of an integer dtype; got {name}")
    if hasattr(array, "tolist"):
        return tuple(array.tolist())
    return tuple([int(array[i]) for i in range(array.shape[0])])


def _describe(value: object) -> str:
    shown = repr(value)
    return f"{type(value).__name__} {shown}" if len(shown) <= 40 and "\n" not in shown else type(value).__name__
