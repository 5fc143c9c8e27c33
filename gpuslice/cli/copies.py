"""Results on their way into files: copied in pieces, so that a command needs memory for one piece alone."""

import math
import time
from collections import abc
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from typing import TypeAlias

import numpy as np

from gpuslice import devices
from gpuslice.engine import Joined, Lazy, View, copy_into, dense
from gpuslice.engine.views import index_of
from gpuslice.errors import error_prefix
from gpuslice.libraries import NUMPY, Array
from gpuslice.rules import Region, whole

PIECE = 1 << 25

Value: TypeAlias = Array | Lazy


class Copies:
    """Makes arrays of NumPy from results that are not copied yet.

    Parameters
    ----------
    prefix : str, optional
        Before the message of an error.
    device : str
        Where the results are.

    Attributes
    ----------
    seconds : float
        How long the copies took.
    """

    def __init__(self, prefix: str | None = None, device: str = "CPU") -> None:
        self._prefix, self._device = prefix, device
        self.seconds: float = 0.0

    def fresh(self, values: abc.Sequence[Value]) -> list[Array]:
        """Return values as NumPy arrays. Views are copied together; NumPy's arrays stay as they are."""
        began = time.perf_counter()
        with self._named_errors():
            copied = iter(dense([value for value in values if isinstance(value, (View, Joined))]))
            arrays = [next(copied) if isinstance(value, (View, Joined)) else value for value in values]
            devices.synchronize(self._device)
        self.seconds += time.perf_counter() - began
        return arrays if self._device == "CPU" else devices.to_host(arrays)

    def into(self, value: Value, target: Array) -> None:
        """Copy a value of NumPy into an array."""
        began = time.perf_counter()
        with self._named_errors():
            copy_into([value if isinstance(value, (View, Joined)) else View.of(value)], [target])
        self.seconds += time.perf_counter() - began

    def batches(self, values: abc.Mapping[str, Value]) -> abc.Iterator[tuple[str, Value]]:
        """Yield values by name. What is together at most `PIECE` bytes is copied together; more is not copied."""
        batch: dict[str, Value] = {}
        total = 0
        for name, value in values.items():
            size = size_of(value)
            if total + size > PIECE:
                yield from self._fresh_by_name(batch)
                batch, total = {}, 0
            if size > PIECE:
                yield name, value
            else:
                batch[name] = value
                total += size
        yield from self._fresh_by_name(batch)

    def pieces(self, value: Value) -> abc.Iterator[Array]:
        """Yield the items of a value in C order, in contiguous NumPy arrays of at most `PIECE` bytes."""
        for region in regions(value.shape, value.dtype.itemsize):
            yield np.ascontiguousarray(self.fresh([part_of(value, region)])[0])

    def _fresh_by_name(self, values: abc.Mapping[str, Value]) -> abc.Iterator[tuple[str, Value]]:
        return zip(values, self.fresh(list(values.values())), strict=True)

    def _named_errors(self) -> AbstractContextManager[None]:
        return nullcontext() if self._prefix is None else error_prefix(self._prefix)


def size_of(value: Value) -> int:
    """Return the bytes of all items."""
    return math.prod(value.shape) * int(value.dtype.itemsize)


def is_numpy(value: Value) -> bool:
    """Return whether the items are in the memory of NumPy's arrays."""
    return isinstance(value, np.ndarray) or (isinstance(value, (View, Joined)) and value.library is NUMPY)


def regions(shape: tuple[int, ...], itemsize: int) -> abc.Iterator[Region]:
    """Yield consecutive parts of an array in C order, of at most `PIECE` bytes each."""
    if not shape:
        yield whole(shape)
        return
    most, axis = max(1, PIECE // max(1, itemsize)), 0
    while axis < len(shape) - 1 and math.prod(shape[axis + 1 :]) > most:
        axis += 1
    inner = shape[axis + 1 :]
    length = max(1, most // max(1, math.prod(inner)))
    for outer in product(*map(range, shape[:axis])):
        for start in range(0, shape[axis], length):
            first = (*outer, start, *(0 for _ in inner))
            yield Region(first, (1,) * len(shape), (*(1 for _ in outer), min(length, shape[axis] - start), *inner))


def part_of(value: Value, region: Region) -> Value:
    """Return a region of a value without a copy: of an array of NumPy as one, of others as a view."""
    if isinstance(value, np.ndarray):
        return value[index_of(region)]
    return (value if isinstance(value, (View, Joined)) else View.of(value)).part(region)
