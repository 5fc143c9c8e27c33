"""Calls that were made before: a call with the same arguments, on an array of the same kind, is a look-up.

These functions run in every call, however small its arrays are, so they are written for speed.
"""

from collections import abc
from sys import getsizeof
from typing import Any

import numpy as np

from gpuslice.caches import BoundedCache
from gpuslice.engine import (
    BLOCK_ABOVE,
    EXECUTORS,
    PREPARERS,
    TOO_LARGE,
    Joined,
    Lazy,
    Prepared,
    PreparedJoin,
    is_tracing,
    prepared_for,
    prepared_join,
)
from gpuslice.engine.calls import COMPILED
from gpuslice.libraries import Array, bridge_of
from gpuslice.overlap import is_apart

Key = tuple[Any, ...]

_MOST_JOINED = 64
_BYTES_PER_ENTRY = 256


class KnownCalls:
    """How the results of one function's calls are copied, by the array's shape, strides and dtype and the arguments."""

    def __init__(self) -> None:
        cache = BoundedCache(6)
        self._keep = cache.keep
        self.find: abc.Callable[[Key | None], Prepared | None] = cache.results.get  # type: ignore[assignment]

    def deliver_one(self, key: Key | None, array: Any, out: Any) -> Any:
        """Return the only result of a call; None if the call is not known or its output is not a usual one."""
        prepared = self.find(key)
        if prepared is None:
            return None
        try:
            if out is None:
                return prepared.fresh_one(array)
            if prepared.shapes and is_usual(array, out, prepared.shapes[0]):
                prepared.into_one(array, out)
                return out
        except TOO_LARGE:  # the call in full says what was wanted
            pass
        return None

    def deliver(self, key: Key | None, array: Any, out: Any, *, one_block: bool = False) -> abc.Sequence[Any] | None:
        """Return all results of a call; None if the call is not known or its outputs are not usual ones.

        Parameters
        ----------
        one_block : bool
            Whether new outputs may share an allocation if there are many.
        """
        prepared = self.find(key)
        if prepared is None:
            return None
        try:
            if out is None:
                return prepared.fresh(array, one_block=one_block and len(prepared.shapes) > BLOCK_ABOVE)
            if type(out) in (list, tuple) and are_usual(array, out, prepared.shapes):
                written = tuple(out)
                prepared.into(array, written)
                return written
        except TOO_LARGE:  # the call in full says what was wanted
            pass
        return None

    def learn(self, key: Key | None, array: Array, views: abc.Sequence[Lazy], *, dropped: int | None = None) -> None:
        """Keep how the views that a call has are copied: before it copies them, so that it is planned once.

        Parameters
        ----------
        dropped : int, optional
            An axis of one item, which the copies do not have.
        """
        if key is None or self.find(key) is not None:
            return
        prepared = prepared_for(array, views, keep=False, dropped=dropped)
        if prepared is not None:
            self._keep(key, prepared, _size_of(key) + getsizeof(prepared))


class KnownJoins:
    """How arrays are joined, by their shapes, strides and dtypes and the arguments."""

    def __init__(self) -> None:
        cache = BoundedCache(6)
        self._keep = cache.keep
        self._find: abc.Callable[[Key | None], PreparedJoin | None] = cache.results.get  # type: ignore[assignment]

    def deliver(self, key: Key | None, arrays: abc.Sequence[Any], out: Any) -> Any:
        """Return the result of a call; None if the call is not known or its output is not a usual one."""
        prepared = self._find(key)
        if prepared is None:
            return None
        try:
            if out is None:
                return prepared.fresh(arrays)
            if is_usual_join(arrays, out, prepared.shape):
                prepared.into(arrays, out)
                return out
        except TOO_LARGE:  # the call in full says what was wanted
            pass
        return None

    def learn(self, key: Key | None, arrays: abc.Sequence[Any], joined: Joined, *, new_axis: bool) -> None:
        """Keep how the result of a call is copied: before it is copied, so that it is planned once."""
        if key is None or self._find(key) is not None:
            return
        prepared = prepared_join(arrays, joined, new_axis=new_axis)
        if prepared is not None:
            self._keep(key, prepared, _size_of(key) + getsizeof(prepared))


def key_of_join(arrays: Any, axis: Any, new_axis: Any) -> Key | None:
    """Return the key of a join; None if no call is known: not of a few arrays of NumPy or tensors, or not by ints."""
    if type(arrays) is not tuple or not 0 < len(arrays) <= _MOST_JOINED:
        return None
    if COMPILED is not None and type(arrays[0]) is np.ndarray:
        return None if is_tracing() else COMPILED.key_of_join(arrays, axis, new_axis)
    if type(axis) is not int or type(new_axis) is not int:
        return None
    bridge = bridge_of(arrays[0])
    if bridge is not None:
        kinds = bridge.kinds(arrays)
        return None if kinds is None or is_tracing() else (axis, new_axis, kinds)
    key: list[Any] = [axis, new_axis]
    for array in arrays:
        if type(array) is not np.ndarray:
            return None
        key += (array.shape, array.strides, array.dtype)
    return None if is_tracing() else tuple(key)  # asked last: torch.compile cannot follow it


def key_of(array: Any, starts: Any, ends: Any, axes: Any, steps: Any) -> Key | None:
    """Return the key of a slice; None if no call on the array is known, or bounds are not all lists or tuples of ints.

    Only exact ints: True and 1.0 equal 1 and have its hash, but they are not allowed.
    """
    library = type(array)
    if COMPILED is not None and library is np.ndarray:
        return None if is_tracing() else COMPILED.key_of_slice(array, starts, ends, axes, steps)
    kind = type(starts)
    other = None
    if library not in EXECUTORS:
        other = kind_of_other(array)
        if other is None:
            return None
    if not (kind is list or kind is tuple) or type(ends) is not kind or is_tracing():
        return None
    values, axis_count = starts + ends, -1
    if axes is not None:
        if type(axes) is not kind:
            return None
        values += axes
        axis_count = len(axes)
    if steps is not None:
        if type(steps) is not kind:
            return None
        values += steps
    for value in values:
        if type(value) is not int:
            return None
    lengths = len(starts), len(ends), axis_count, steps is None
    if other is not None:
        return other, tuple(values), lengths
    return library, array.shape, array.strides, array.dtype, tuple(values), lengths


def key_of_split(array: Any, split: Any, axis: Any, number: Any) -> Key | None:
    """Return the key of a split; None if no call on the array is known, or arguments are not ints and lists of ints.

    Parameters
    ----------
    number : int or None
        Another argument of the call.
    """
    library = type(array)
    if COMPILED is not None and library is np.ndarray:
        return None if is_tracing() else COMPILED.key_of_split(array, split, axis, number)
    other = None
    if library not in EXECUTORS:
        other = kind_of_other(array)
        if other is None:
            return None
    if type(axis) is not int or is_tracing():
        return None
    if type(split) is list or type(split) is tuple:
        split = tuple(split)
        for size in split:
            if type(size) is not int:
                return None
    elif split is not None and type(split) is not int:
        return None
    if number is not None and type(number) is not int:
        return None
    if other is not None:
        return other, split, axis, number
    return library, array.shape, array.strides, array.dtype, split, axis, number


def kind_of_other(array: Any) -> Key | None:
    """Return all that decides how an array is copied which no executor takes itself; None if no call is known."""
    if type(array) in PREPARERS:
        return type(array), array.shape, array.dtype
    bridge = bridge_of(array)
    return None if bridge is None else bridge.kind(array)


def is_usual(array: Array, out: Any, shape: tuple[int, ...]) -> bool:
    """Return whether an output needs no closer look: it is plain, contiguous and of the right kind, and lies apart."""
    if type(array) is not np.ndarray:
        return are_usual(array, (out,), (shape,))
    if COMPILED is not None:
        return COMPILED.takes_one(array, out, shape)
    if type(out) is not np.ndarray or out.shape != shape or out.dtype != array.dtype:
        return False
    flags = out.flags
    return flags.c_contiguous and flags.writeable and is_apart(array, out)


def is_usual_join(arrays: abc.Sequence[Array], out: Any, shape: tuple[int, ...]) -> bool:
    """Return whether an output for several arrays needs no closer look."""
    bridge = bridge_of(arrays[0])
    if bridge is not None:
        return bridge.takes(arrays, (out,), (shape,))
    if COMPILED is not None:
        return COMPILED.takes(arrays, (out,), (shape,))
    return all(is_usual(array, out, shape) for array in arrays)


def are_usual(array: Array, outs: abc.Sequence[Any], shapes: abc.Sequence[tuple[int, ...]]) -> bool:
    """Return whether several outputs need no closer look."""
    if len(outs) != len(shapes):
        return False
    library, dtype = type(array), array.dtype
    if COMPILED is not None and library is np.ndarray:
        return COMPILED.takes((array,), outs, shapes)
    if library not in EXECUTORS:
        bridge = bridge_of(array)
        return bridge is not None and bridge.takes((array,), outs, shapes)
    for out, shape in zip(outs, shapes, strict=True):
        if type(out) is not library or out.shape != shape or out.dtype != dtype:
            return False
        flags = out.flags
        if not flags.c_contiguous or (library is np.ndarray and not flags.writeable):
            return False
    return EXECUTORS[library].lie_apart(array, outs)


def _size_of(key: Key) -> int:
    """Return about how many bytes a key takes: its bytes, and its tuples of ints. Others hold the rest anyway."""
    held = [getsizeof(item) for item in key if type(item) in (tuple, bytes)]
    return _BYTES_PER_ENTRY + sum(held) + sum([sum(map(getsizeof, item)) for item in key if type(item) is tuple])
