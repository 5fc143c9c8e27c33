"""The executor for JAX arrays: one compiled function per form of a slice, and the host kernels for large ones."""

from collections import abc
from functools import partial
from itertools import groupby, islice
from math import prod
from typing import Any, NoReturn, TypeAlias

import jax
import numpy as np

from gpuslice.dtypes import DType
from gpuslice.engine import copying
from gpuslice.engine.consecutive import Consecutive
from gpuslice.engine.generic import indexed
from gpuslice.engine.joined import Joined, Lazy
from gpuslice.engine.prepared import PREPARERS
from gpuslice.engine.trace import is_tracing, record_allocation
from gpuslice.engine.views import View, ascending
from gpuslice.libraries import NUMPY, Array, Shape
from gpuslice.rules import Region

# From this size on the host kernels are faster, with all that it takes to give their results to JAX.
_LEAST_BYTES = 1 << 25
# JAX takes memory of NumPy's that is aligned so, without a copy.
_ALIGNMENT = 64
# JAX makes 32-bit arrays of NumPy's if jax_enable_x64 is off, and counts in 32 bits.
_WIDE = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))
_MOST_ITEMS = 2**31 - 1
# So many regions of an array are taken by one call. More would take long to compile.
_MOST_TOGETHER = 16
_BYTES_PER_REGION = 256

# Steps and shape of a region.
_Form: TypeAlias = tuple[Shape, Shape]


class _Regions:
    """Regions that JAX takes from any array of one shape and dtype. There are no ``shapes``: no output is written."""

    __slots__ = ("_firsts", "_forms", "_regions", "_size")

    shapes = ()

    def __init__(self, dtype: DType, regions: tuple[Region, ...]) -> None:
        self._regions = regions
        self._firsts, self._forms = _described(regions)
        self._size = sum(prod(region.shape) for region in regions) * dtype.itemsize

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + _BYTES_PER_REGION * (1 + len(self._regions))

    def fresh(self, array: Array, *, one_block: bool = False) -> list[Array]:
        """Return a new array with each region."""
        if self._size < _LEAST_BYTES and len(self._forms) <= _MOST_TOGETHER and _can_take(array):
            made: list[Array] = _take(array, self._firsts, self._forms)
            return made
        return _dense([View.of(array).part(region) for region in self._regions])

    def fresh_one(self, array: Array) -> Array:
        """Return a new array with the only region."""
        return self.fresh(array)[0]

    def into_one(self, array: Array, target: Array) -> NoReturn:
        """Raise an error."""
        raise TypeError("JAX arrays cannot be written")

    into = into_one


def dense(values: abc.Sequence[Lazy]) -> list[Array]:
    """Return a new array with the items of each value."""
    kind = type(values[0].array)
    if not issubclass(kind, jax.core.Tracer):
        PREPARERS[kind] = _Regions
    return _dense(values)


def _dense(values: abc.Sequence[Lazy]) -> list[Array]:
    on_cpu = _as_numpy_values(values)
    return _taken_by_jax(values) if on_cpu is None else _copied_by_kernels(values, on_cpu)


def _copied_by_kernels(values: abc.Sequence[Lazy], on_cpu: abc.Sequence[Lazy]) -> list[Array]:
    """Return new JAX arrays, each where the array of a value is, and bound to its device if that is."""
    targets = [_aligned(value.shape, value.dtype) for value in on_cpu]
    copying.copy_into(on_cpu, targets)
    return [
        jax.device_put(target, value.array.sharding if value.array.committed else None)
        for target, value in zip(targets, values, strict=True)
    ]


def _taken_by_jax(values: abc.Sequence[Lazy]) -> list[Array]:
    made: list[Array] = []
    for number, group in groupby(values, _number_of_array):
        if number is None:
            made += map(_indexed, group)
        while number is not None and (views := list(islice(group, _MOST_TOGETHER))):
            made += _taken_together(views)  # type: ignore[arg-type]
    return made


def _taken_together(views: abc.Sequence[View]) -> list[Array]:
    """Return regions of one array."""
    made: list[Array] = _take(views[0].array, *_described([view.region for view in views]))
    return made


def _described(regions: abc.Sequence[Region]) -> tuple[np.ndarray[Any, Any], tuple[_Form, ...]]:
    """Return the lowest position of each region, and its steps and shape."""
    firsts = np.array([ascending(region).first for region in regions], np.int64)
    return firsts, tuple([(region.step, region.shape) for region in regions])


def _number_of_array(value: Lazy) -> int | None:
    """Return a number for the array of a value, if `_take` can take the value from it; else None."""
    if isinstance(value, Joined) or isinstance(value.array, jax.core.Tracer):
        return None
    return id(value.array) if _can_take(value.array) else None


def _can_take(array: Array) -> bool:
    return len(array.devices()) == 1 and array.size <= _MOST_ITEMS


def _indexed(value: Lazy) -> Array:
    if isinstance(value, Joined):
        if value.stacked is not None:
            return _stack([_part(part) for part in value.stacked], axis=value.axis)
        if len(value.parts) > 1:
            return _concat([_part(part) for part in value.parts], axis=value.axis)
    array = _part(value.parts[0]) if isinstance(value, Joined) else indexed(value)
    # JAX's indexing returns the array itself if it takes all of it.
    return jax.numpy.array(array, copy=True) if array is value.array else array


def _part(value: Lazy) -> Array:
    return value.array if isinstance(value, View) and value.is_whole else _taken_by_jax([value])[0]


# These take a third of the time of the functions as they are.
_concat = jax.jit(jax.numpy.concat, static_argnames="axis")
_stack = jax.jit(jax.numpy.stack, static_argnames="axis")


@partial(jax.jit, static_argnames="forms")
def _take(array: Array, firsts: Array, forms: tuple[_Form, ...]) -> list[Array]:
    """Return regions, given their lowest positions, and their steps and shapes, for which this is compiled."""
    return [_region(array, firsts[i], steps, shape) for i, (steps, shape) in enumerate(forms)]


def _region(array: Array, first: Array, steps: Shape, shape: Shape) -> Array:
    strides = list(map(abs, steps))
    spans = tuple([stride * (count - 1) + 1 if count else 0 for stride, count in zip(strides, shape, strict=True)])
    backward = [axis for axis, step in enumerate(steps) if step < 0]
    if spans == array.shape:  # XLA would look for the start of each row
        near = array if backward else jax.numpy.copy(array)
    else:
        near = jax.lax.dynamic_slice(array, first, spans)
    return jax.lax.rev(jax.lax.slice(near, [0] * array.ndim, spans, strides), backward)


def _as_numpy_values(values: abc.Sequence[Lazy]) -> abc.Sequence[Lazy] | None:
    """Return values as values of NumPy arrays in the same memory; None if they are small, or one cannot be."""
    if isinstance(values[0].array, jax.core.Tracer):  # its size may not be a number
        return None
    if isinstance(values, Consecutive):
        view = _as_numpy_value(values.view, {}) if _size([values.view]) >= _LEAST_BYTES else None
        return None if view is None else values.of(view)
    if _size(values) < _LEAST_BYTES:
        return None
    arrays: dict[int, np.ndarray[Any, Any] | None] = {}
    found = [_as_numpy_value(value, arrays) for value in values]
    return None if None in found else found


def _size(values: abc.Sequence[Lazy]) -> int:
    return sum(prod(value.shape) * value.dtype.itemsize for value in values)


def _as_numpy_value(value: Lazy, arrays: dict[int, np.ndarray[Any, Any] | None]) -> Any:
    if isinstance(value, Joined):
        parts = [_as_numpy_value(part, arrays) for part in value.stacked or value.parts]
        join = Joined if value.stacked is None else Joined.of_stack
        return None if None in parts else join(parts, value.axis, value.dtype)
    key = id(value.array)
    if key not in arrays:
        arrays[key] = np.asarray(value.array) if _shares_with_numpy(value.array) else None
    array = arrays[key]
    return None if array is None else View(array, value.region, NUMPY)


def _shares_with_numpy(array: Array) -> bool:
    """Return whether NumPy can read an array in place, and JAX can take one of its kind from NumPy."""
    if isinstance(array, jax.core.Tracer) or not array.is_fully_addressable:
        return False
    # A sharding over a mesh, even of one device, belongs to arrays of one rank.
    if not isinstance(array.sharding, jax.sharding.SingleDeviceSharding):
        return False
    (device,) = array.devices()
    # Random keys have a dtype of JAX's own.
    if device.platform != "cpu" or not isinstance(array.dtype, np.dtype) or array.weak_type:
        return False
    if array.dtype in _WIDE and not jax.config.jax_enable_x64:
        return False
    # An array that is not bound to its device may meet others elsewhere. A new one like it goes to the default device.
    return bool(array.committed) or device == (jax.config.jax_default_device or jax.local_devices()[0])


def _aligned(shape: Shape, dtype: DType) -> np.ndarray[Any, Any]:
    size = prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    if is_tracing():
        record_allocation(size)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)
