"""Array libraries in use, and which library an array is of. All code that depends on the library asks here."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TypeGuard, TypeVar

import array_api_compat
import numpy as np

from gpuslice.dtypes import DType
from gpuslice.errors import describe, describe_no_array
from gpuslice.library_rows import FUNCTIONAL, ROWS, WRITABLE, Address, Array, Bridge, Row, Shape, address_of_numpy

__all__ = [
    "NUMPY",
    "Address",
    "Array",
    "ArrayT",
    "Bridge",
    "Library",
    "Shape",
    "address_of_numpy",
    "bridge_of",
    "by_namespace",
    "check_readable",
    "device_of",
    "has_memory",
    "is_array",
    "library_of",
    "plain_array",
    "shape_of",
]

ArrayT = TypeVar("ArrayT")


@dataclass(frozen=True, eq=False)
class Library(Row):
    """An array library that is in use: its row of the table and its Array API namespace.

    Attributes
    ----------
    name : str
        As messages show it, such as "numpy" or "jax.numpy".
    xp : module
    bridge : Bridge or None
        None: NumPy cannot look into the library's memory.
    """

    name: str = ""
    xp: ModuleType = np
    bridge: Bridge | None = None

    def empty(self, shape: Shape, dtype: DType, beside: Array) -> Array:
        """Return a new C-contiguous array on the device of ``beside``."""
        if self is NUMPY:  # whose standard form, with device=, takes longer than a small copy
            return np.empty(shape, dtype)
        if self.make is not None:
            return self.make(self.xp, shape, dtype, beside)
        return self.xp.empty(shape, dtype=dtype, device=array_api_compat.device(beside))

    def count(self, number: int, beside: Array) -> Array:
        """Return a 0-d array on the device of ``beside``, of int64, or of int32 if the library has no int64."""
        dtype = self.xp.int64
        if not self.mutable and hasattr(self.xp, "__array_namespace_info__"):  # JAX has it only if jax_enable_x64 is on
            dtypes = self.xp.__array_namespace_info__().dtypes(kind="signed integer")
            dtype = dtypes.get("int64", self.xp.int32)
        device = device_of(beside)
        where = {} if device is None else {"device": device}
        return self.xp.asarray(number, dtype=dtype, **where)


def _library(xp: ModuleType) -> Library:
    name = xp.__name__.removeprefix("array_api_compat.")
    row = ROWS.get(name.partition(".")[0]) or (WRITABLE if _can_be_written(xp) else FUNCTIONAL)
    if name == "torch":
        from gpuslice import torch_tensors

        return Library(**vars(row), name=name, xp=xp, bridge=torch_tensors)
    return Library(**vars(row), name=name, xp=xp)


def _can_be_written(xp: ModuleType) -> bool:
    """Return whether arrays of a library have what the default executor needs: assignment, and a device."""
    try:
        made = xp.empty((0,))
    except (AttributeError, TypeError):
        return False
    return hasattr(made, "device") and hasattr(type(made), "__setitem__")


# NumPy 2 follows the standard itself; array_api_compat's wrapper of it takes longer to import than all else here.
NUMPY = _library(np)
by_namespace: Callable[[ModuleType], Library] = cache(_library)


# Of classes whose arrays are all of one library, and have nothing that must be refused.
_BY_CLASS: dict[type, Library] = {}

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
    if kind is np.ndarray or issubclass(kind, (np.ndarray, np.generic)) or _is_tensor(kind):
        return True
    if kind is list or kind is tuple or issubclass(kind, type):
        return False
    if hasattr(kind, "__array_namespace__"):
        return hasattr(value, "shape") and hasattr(value, "dtype")
    return any(is_array_of(value) for is_array_of in _IS_ARRAY_OF)


def _is_tensor(kind: type) -> bool:
    """Return whether a class is one of PyTorch's tensors."""
    # Not array_api_compat's function, whose cache torch.compile cannot follow.
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(kind, getattr(torch, "Tensor", ()))


def is_symbolic(value: object) -> bool:
    """Return whether a value is an int of a length that PyTorch follows, such as ``x.shape[0]`` in `torch.export`.

    `operator.index` would put the int of this call in its place.
    """
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "SymInt") and isinstance(value, torch.SymInt)


def bridge_of(array: object) -> Bridge | None:
    """Return the bridge of an array's library; None if it has none."""
    kind = type(array)
    if kind in _bridges:
        return _bridges[kind]
    if not _is_tensor(kind):
        return None
    from gpuslice import torch_tensors

    _bridges[kind] = torch_tensors
    return torch_tensors


# The bridges of classes of arrays that were seen. To find one takes longer than many a check.
_bridges: dict[type, Bridge] = {}


def library_of(array: Array, argument: str) -> Library:
    """Return the library of an array.

    Raises
    ------
    TypeError
        ``array`` is not an array, or it has more than its items: it is masked, sparse, nested or quantized.
    """
    kind = type(array)
    if kind is np.ndarray:
        return NUMPY
    if _is_tensor(kind):
        from gpuslice import torch_tensors

        torch_tensors.check(array, argument)
        return torch_tensors.LIBRARY
    if kind in _BY_CLASS:
        return _BY_CLASS[kind]
    if not is_array(array):
        raise TypeError(f"{argument} must be an array; got {describe_no_array(array)}")
    if issubclass(kind, np.ma.MaskedArray) or _has_masked_chunks(array):
        raise TypeError(f"{argument} must not be a masked array, since its mask would be lost; got {describe(array)}")
    if issubclass(kind, (np.ndarray, np.generic)):
        return NUMPY
    try:
        library = by_namespace(array_api_compat.array_namespace(array))
    except (AttributeError, TypeError) as error:
        raise TypeError(f"{argument} must be an array; got {describe(array)}, which has no namespace") from error
    # Addresses are asked only of the library's own arrays.
    if library.address and not array_api_compat.is_cupy_array(array):
        raise TypeError(
            f"{argument} must be an array; got {describe(array)}, which only says that it is {library.name}'s"
        )
    if array_api_compat.is_jax_array(array):
        _BY_CLASS[kind] = library
    return library


def _has_masked_chunks(array: Array) -> bool:
    """Return whether the chunks of a Dask array, which are of the type of its ``_meta``, are masked arrays."""
    return array_api_compat.is_dask_array(array) and isinstance(array._meta, np.ma.MaskedArray)


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


def shape_of(array: Array, library: Library, argument: str) -> Shape:
    """Return the shape of an array; raise ValueError if the length of an axis is not known."""
    shape = tuple(array.shape)
    if library.address is None:
        for axis, length in enumerate(shape):
            if length is None or length != length:  # Dask's unknown lengths are NaN
                raise ValueError(
                    f"{argument} must have a known length along axis {axis}; got shape {shape}: {library.unsized}"
                )
    return shape


def check_readable(array: Array, library: Library, argument: str) -> None:
    """Raise TypeError if the values of an array are not known yet, as those of a lazy or traced one."""
    reason = None if library.unread is None else library.unread(array)
    if reason is not None:
        given = f"{describe(array)} of {library.name}"
        raise TypeError(f"{argument} must be known when the call is made; got {given}: {reason}")


def has_memory(array: Array) -> bool:
    """Return whether an array has an address. A tensor that stands for others, or only for a shape, has none."""
    bridge = None if type(array) is np.ndarray else bridge_of(array)
    return bridge is None or bridge.has_memory(array)


def device_of(array: Array) -> object:
    """Return the device of an array, as its library names it; None if the library has no devices."""
    if isinstance(array, np.ndarray):
        return "cpu"
    if _is_tensor(type(array)):
        return array.device
    try:
        return array_api_compat.device(array)
    except AttributeError:
        return None
