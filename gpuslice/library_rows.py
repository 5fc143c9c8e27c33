"""What is known of each array library: one row per library, and how NumPy looks into the memory of another.

A library that is not in the table works through the Array API standard alone; see `WRITABLE` and `FUNCTIONAL`.
"""

import ctypes
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, Protocol, TypeAlias

from gpuslice.dtypes import DType

# The Array API standard names no common base class of arrays.
Array: TypeAlias = Any

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


def strides_of_torch(array: Array) -> Shape:
    """Return the strides of a tensor in bytes."""
    size = array.element_size()
    return tuple([step * size for step in array.stride()])


def _empty_of_torch(xp: ModuleType, shape: Shape, dtype: DType, beside: Array) -> Array:
    return beside.new_empty(shape, dtype=dtype)


def _traced_by_jax(array: Array) -> str | None:
    from jax.core import Tracer

    if not isinstance(array, Tracer):
        return None
    return "its values are not known while JAX traces; give ints, a NumPy array, or a static argument of jax.jit"


def _unread_of_torch(array: Array) -> str | None:
    from gpuslice import torch_tensors

    return torch_tensors.unread(array)


def _without_a_value(array: Array) -> str | None:
    try:
        array.unwrap_numpy()
    except ValueError:
        return "its values are not known before the ONNX model runs; give ints or a NumPy array"
    return None


def _byte_strides(array: Array) -> Shape:
    return tuple(array.strides)


_Byte = ctypes.c_char


class Bridge(Protocol):
    """How arrays of a library are copied as NumPy's or CuPy's over the same memory; see `gpuslice.torch_tensors`."""

    def check(self, array: Array, argument: str) -> None:
        """Raise TypeError for an array that has more than its items."""

    def is_plain(self, array: Array, *, written: bool = False) -> bool:
        """Return whether an array is nothing but memory; if not, only the library's own operations do what is meant."""

    def kind(self, array: Array) -> tuple[Hashable, ...] | None:
        """Return all that the way to copy a plain array depends on; None if it is not plain."""

    def kinds(self, arrays: Sequence[Any]) -> tuple[Hashable, ...] | None:
        """Return the kind of each array, which may be other things, too; None if one is not a plain array."""

    def takes(self, arrays: Sequence[Array], outs: Sequence[Any], shapes: Iterable[Shape]) -> bool:
        """Return whether outputs for results of plain arrays need no closer look: plain, contiguous, and apart.

        The arrays have one dtype and device.
        """

    def bounds(self, array: Array) -> tuple[int, int]:
        """Return the first address of an array and the one after its last."""

    def is_on_host(self, array: Array) -> bool:
        """Return whether a plain array is in the memory of the CPU; if not, it is in that of a CUDA device."""

    def stored_dtype(self, dtype: DType) -> DType:
        """Return NumPy's dtype for the items of an array: integers of the same size if NumPy lacks theirs."""

    def to_numpy(self, array: Array) -> Array:
        """Return a NumPy array over the memory of a plain array of the CPU."""

    def from_numpy(self, array: Array, dtype: DType) -> Array:
        """Return an array of the library over the memory of a new NumPy array."""

    def without_base(self, array: Array) -> Array:
        """Return an array over the same memory that its library does not know as a view."""

    def asarray(self, array: Array, device: object) -> Array:
        """Return a copy of a NumPy array on a device; raise TypeError if the library lacks its dtype."""

    def fresh(self, array: Array, *, is_view: bool) -> Array:
        """Return what indexing returned as a new C-contiguous array."""

    def flip(self, array: Array, axes: Shape) -> Array:
        """Return an array reversed along some axes."""

    def has_memory(self, array: Array) -> bool:
        """Return whether an array has an address."""

    def threads(self, dtype: DType) -> int:
        """Return how many threads the library's own operations use; 0 if it lacks some for a dtype."""

    def join(self, arrays: Sequence[Array], axis: int, new_axis: bool, out: Array | None = None) -> Array:
        """Return arrays side by side, as the library's own operation joins them, or write them to an output."""

    def current_stream(self, device: int) -> int:
        """Return the handle of the stream on which the library's operations on a CUDA device run now."""

    def were_written(self, arrays: Sequence[Any]) -> None:
        """Tell the library that arrays were written."""

    def check_out(self, array: Array, out: Array) -> None:
        """Raise AutogradError if the library would record that an output is written from an array."""


@dataclass(frozen=True)
class Row:
    """What is known of a library.

    Attributes
    ----------
    mutable : bool
        Arrays can be written in place.
    views : bool
        Indexing by slices gives views that share memory with the array.
    negative_steps : bool
        Indexing takes negative steps.
    executor : {"host", "cuda", "torch_cuda", "generic", "functional", "jax", "dask"}
        Which module of `gpuslice.engine` copies. The last three make new arrays where the others write to them.
    address, strides : callable or None
        Return the address of the first item and the strides in bytes. None: DLPack has to be asked.
    make : callable or None
        Return a new C-contiguous array on the device of another. None: the standard's `empty` does.
    unread : callable or None
        Return why the values of an array cannot be read and what to do, or None if they can. None: they all can.
    unsized : str
        What to do about an array whose shape is not known.
    """

    mutable: bool = True
    views: bool = False
    negative_steps: bool = True
    executor: Literal["host", "cuda", "torch_cuda", "generic", "functional", "jax", "dask"] = "generic"
    address: Address | None = None
    strides: Callable[[Array], Shape] | None = None
    make: Callable[[ModuleType, Shape, DType, Array], Array] | None = None
    unread: Callable[[Array], str | None] | None = None
    unsized: str = "give it a known shape"


# By the name of the package that defines the arrays.
ROWS = {
    "numpy": Row(views=True, executor="host", address=address_of_numpy, strides=_byte_strides),
    "cupy": Row(views=True, executor="cuda", address=_address_of_cupy, strides=_byte_strides, make=_empty_of_cupy),
    "array_api_strict": Row(views=True),
    "torch": Row(
        views=True,
        negative_steps=False,
        address=_address_of_torch,
        strides=strides_of_torch,
        make=_empty_of_torch,
        unread=_unread_of_torch,
    ),
    "jax": Row(mutable=False, executor="jax", unread=_traced_by_jax),
    "dask": Row(
        mutable=False,
        executor="dask",
        unread=lambda array: "a Dask array is lazy; call compute() first",
        unsized="call compute_chunk_sizes() first",
    ),
    "ndonnx": Row(mutable=False, executor="functional", unread=_without_a_value),
}
# By what its arrays can do: some cannot be written, or have no device to make an array on.
WRITABLE, FUNCTIONAL = Row(), Row(mutable=False, executor="functional")
