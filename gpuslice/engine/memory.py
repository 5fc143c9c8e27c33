"""Aligned memory, and errors for what cannot be allocated: they say how many outputs of how many bytes were wanted."""

import os
import sys
from collections import abc
from math import prod
from typing import NoReturn

import numpy as np

from gpuslice.dtypes import DType, itemsize
from gpuslice.engine.calls import COMPILED
from gpuslice.engine.joined import Lazy
from gpuslice.libraries import NUMPY, Array, Shape, address_of_numpy

# What NumPy raises if there is no memory for an array, and if there are not even addresses for it.
TOO_LARGE = (MemoryError, ValueError)

_FEW_PARTS = 1 << 16
# What an output takes besides its items: an array object, its shape and strides, and its place in a tuple.
_BYTES_PER_PART = 160
_BYTES_PER_AXIS = 16
_LINE_BYTES, _LARGE_PAGE_BYTES = 64, 1 << 21
_address_of = address_of_numpy if COMPILED is None else COMPILED.address_of


def aligned_empty(shape: Shape, dtype: DType) -> Array:
    """Return a new C-contiguous NumPy array that begins at a cache line, and at a large page if it has many.

    Kernels write wide vectors. In memory of `numpy.empty`, which begins anywhere, most vectors lie in two lines, and
    a copy of some megabytes takes up to twice as long. What lies before a large page is some hundred small ones.
    """
    size = prod(shape) * dtype.itemsize
    alignment = _LARGE_PAGE_BYTES if size >= 8 * _LARGE_PAGE_BYTES else _LINE_BYTES
    memory = np.empty(size + alignment, np.uint8)
    return np.ndarray(shape, dtype, memory, -_address_of(memory) % alignment)


def raise_too_large(values: abc.Sequence[Lazy], error: MemoryError | ValueError) -> NoReturn:
    """Raise an error for outputs that cannot be allocated. ``error`` is what the library said.

    NumPy says ValueError if there are no addresses for so many bytes. The error of a library other than NumPy is raised
    unchanged: its users catch it by its type.
    """
    if any(value.library is not NUMPY for value in values):
        raise error
    size = sum(prod(value.shape) * itemsize(value.dtype) for value in values)
    if isinstance(error, ValueError) and size <= sys.maxsize:
        raise error
    outputs = "1 output" if len(values) == 1 else f"{len(values)} outputs"
    raise MemoryError(f"{outputs} of {size} bytes in all cannot be allocated") from error


def check_parts_fit(count: int, rank: int) -> None:
    """Raise MemoryError if so many arrays, even without items, are more than this machine can hold."""
    if count < _FEW_PARTS:
        return
    wanted = count * (_BYTES_PER_PART + _BYTES_PER_AXIS * rank)
    message = f"{count} outputs take {wanted} bytes even without their items; they cannot be allocated"
    if wanted > _physical_bytes():
        raise MemoryError(message)
    try:
        np.empty(wanted, np.uint8)  # asks for it, touches nothing, and gives it back at once
    except MemoryError:
        raise MemoryError(message) from None


def _physical_bytes() -> float:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return float("inf")
