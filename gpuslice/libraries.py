"""What is known of each array library, one row per library. All code that depends on the library asks here.

A library that is not in the table works through the Array API standard alone: see `_UNKNOWN`.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeGuard, TypeVar

import array_api_compat
import numpy as np

from gpuslice.dtypes import DType
from gpuslice.errors import describe

# The Array API standard names no common base class of arrays.
Array: TypeAlias = Any
ArrayT = TypeVar("ArrayT")

Shape: TypeAlias = tuple[int, ...]
Address: TypeAlias = Callable[[Array], int]


def address_of_numpy(array: Array) -> int:
    """Return the address of a NumPy array's first item."""
    try:
        # The fastest way by far, but only for contiguous writable arrays of most dtypes. The first item is contiguous.
        first = array if array.flags.c_contiguous else array[(0,) * array.ndim + (...,)]
        return ctypes.addressof(_Byte.from_buffer(first))
    except (TypeError, ValueError, BufferError, IndexError):
        start: int = array.__array_interface__["data"][0]
        return start


def _address_of_cupy(array: Array) -> int:
    return int(array.data.ptr)


def _empty_of_cupy(xp: ModuleType, shape: Shape, dtype: DType, beside: Array) -> Array:
    # array_api_compat's `empty` for CuPy takes device= and ignores it.
    with beside.device:
        return xp.ndarray(shape, dtype)


def _address_of_torch(array: Array) -> int:
    return int(array.data_ptr())


def _strides_of_torch(array: Array) -> Shape:
    size = array.element_size()
    return tuple([step * size for step in array.stride()])


def _byte_strides(array: Array) -> Shape:
    return tuple(array.strides)


_Byte = ctypes.c_char


@dataclass(frozen=True)
class _Row:
    """What is known of a library.

    Attributes
    ----------
    mutable : bool
        Arrays can be written in place.
    views : bool
        Indexing by slices gives views that share memory with the array.
    negative_steps : bool
        Indexing takes negative steps.
    executor : {"host", "cuda", "generic"}
        Which module of `gpuslice.engine` copies.
    address, strides : callable or None
        Return the address of the first item and the strides in bytes. None: DLPack has to be asked.
    make : callable or None
        Return a new C-contiguous array on the device of another. None: the standard's `empty` does.
    """

    mutable: bool = True
    views: bool = False
    negative_steps: bool = True
    executor: Literal["host", "cuda", "generic"] = "generic"
    address: Address | None = None
    strides: Callable[[Array], Shape] | None = None
    make: Callable[[ModuleType, Shape, DType, Array], Array] | None = None


# By the name of the package that defines the arrays.
_ROWS = {
    "numpy": _Row(views=True, executor="host", address=address_of_numpy, strides=_byte_strides),
    "cupy": _Row(views=True, executor="cuda", address=_address_of_cupy, strides=_byte_strides, make=_empty_of_cupy),
    "array_api_strict": _Row(views=True),
    "torch": _Row(views=True, negative_steps=False, address=_address_of_torch, strides=_strides_of_torch),
    "jax": _Row(mutable=False),
    "dask": _Row(mutable=False),
}
_UNKNOWN = _Row()


@dataclass(frozen=True, eq=False)
class Library(_Row):
    """An array library that is in use: its row of the table and its Array API namespace.

    Attributes
    ----------
    name : str
        As messages show it, such as "numpy" or "jax.numpy".
    xp : module
    """

    name: str = ""
    xp: ModuleType = np

    def empty(self, shape: Shape, dtype: DType, beside: Array) -> Array:
        """Return a new C-contiguous array on the device of ``beside``."""
        if self is NUMPY:  # whose standard form, with device=, takes longer than a small copy
            return np.empty(shape, dtype)
        if self.make is not None:
            return self.make(self.xp, shape, dtype, beside)
        return self.xp.empty(shape, dtype=dtype, device=array_api_compat.device(beside))


def _library(xp: ModuleType) -> Library:
    name = xp.__name__.removeprefix("array_api_compat.")
    row = _ROWS.get(name.partition(".")[0], _UNKNOWN)
    return Library(**vars(row), name=name, xp=xp)


# NumPy 2 follows the standard itself; array_api_compat's wrapper of it takes longer to import than all else here.
NUMPY = _library(np)
_by_namespace = cache(_library)


# Libraries whose classes of arrays do not have the standard's method, at least in versions that are in use.
_IS_ARRAY_OF = (
    array_api_compat.is_torch_array,
    array_api_compat.is_dask_array,
    array_api_compat.is_jax_array,
    array_api_compat.is_cupy_array,
    array_api_compat.is_pydata_sparse_array,
)


def is_array(value: object) -> TypeGuard[Array]:
    """Return whether ``value`` is an array of a library that follows the Array API standard.

    The class is asked for its namespace, not the value: a class of arrays is not an array, and some objects have every
    attribute.
    """
    kind = type(value)
    if kind is np.ndarray or issubclass(kind, (np.ndarray, np.generic)):
        return True
    if issubclass(kind, type):
        return False
    if hasattr(kind, "__array_namespace__"):
        return hasattr(value, "shape") and hasattr(value, "dtype")
    return any(is_array_of(value) for is_array_of in _IS_ARRAY_OF)


def library_of(array: Array, argument: str) -> Library:
    """Return the library of an array.

    Raises
    ------
    TypeError
        ``array`` is not an array, or it is a masked array.
    """
    kind = type(array)
    if kind is np.ndarray:
        return NUMPY
    if not is_array(array):
        raise TypeError(f"{argument} must be an array; got {describe(array)}")
    if issubclass(kind, np.ma.MaskedArray):
        raise TypeError(f"{argument} must not be a masked array, since its mask would be lost; got MaskedArray")
    if issubclass(kind, (np.ndarray, np.generic)):
        return NUMPY
    try:
        library = _by_namespace(array_api_compat.array_namespace(array))
    except (AttributeError, TypeError) as error:
        raise TypeError(f"{argument} must be an array; got {describe(array)}, which has no namespace") from error
    # Addresses are asked only of the library's own arrays.
    if library.address and not (array_api_compat.is_cupy_array(array) or array_api_compat.is_torch_array(array)):
        raise TypeError(
            f"{argument} must be an array; got {describe(array)}, which only says that it is {library.name}'s"
        )
    return library


def plain_array(array: Array) -> Array:
    """Return a NumPy scalar, memory map, matrix or other subclass as an ndarray without a copy; others unchanged.

    No method of the subclass is called, here or later: it may describe the memory wrongly.
    """
    kind = type(array)
    if kind is np.ndarray:
        return array
    if issubclass(kind, np.ndarray):
        return np.ndarray.view(array, np.ndarray)
    return np.generic.__array__(array) if issubclass(kind, np.generic) else array


def device_of(array: Array) -> object:
    """Return the device of an array, as its library names it."""
    return "cpu" if isinstance(array, np.ndarray) else array_api_compat.device(array)
