"""Bounds, axes, sizes and positions read as Python ints, from ints, sequences and integer arrays of any library."""

import operator
from collections import abc
from math import prod
from typing import TypeAlias

import numpy as np

from gpuslice.dtypes import INTEGERS, dtype_name
from gpuslice.libraries import Array, is_array, library_of

Ints: TypeAlias = abc.Sequence[int] | Array

_LONGEST_SHOWN = 40


def integers(values: object, argument: str) -> tuple[int, ...]:
    """Return bounds, axes, steps or sizes as Python ints. Reading values on a device waits for the device.

    Raises
    ------
    TypeError
        Neither a sequence of ints nor an integer array. A bool is not a bound, a bare int is not a sequence.
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
        if not isinstance(values, abc.Sequence) or isinstance(values, (str, bytes, bytearray)):
            raise TypeError(f"{argument} must be a sequence of ints or a 1-D integer array; got {_describe(values)}")
    for value in values:
        if type(value) is not int:
            return tuple([_integer(value, f"{argument} must hold ints") for value in values])
    return tuple(values)


def integer(value: object, argument: str) -> int:
    """Return one int, from a Python or NumPy int or a 0-d integer array.

    Raises
    ------
    TypeError
        Anything else, a bool included.
    """
    return value if type(value) is int else _integer(value, f"{argument} must be an int")


def single_integer(value: object, argument: str) -> int:
    """Return one int, from an int, or an array or sequence of any rank that holds exactly one.

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
        return _read(library_of(value, argument).xp.reshape(value, (1,)), argument)[0]
    if isinstance(value, (list, tuple)):
        if len(value) != 1:
            raise IndexError(f"{argument} must be a scalar or hold one value; got {len(value)} values")
        return single_integer(value[0], argument)
    return integer(value, argument)


def flag(value: int, argument: str) -> bool:
    """Return an attribute that is 0 or 1 as a bool; raise ValueError or TypeError for anything else."""
    number = int(value) if isinstance(value, bool) else integer(value, argument)
    if number not in (0, 1):
        raise ValueError(f"{argument} must be 0 or 1; got {value!r}")
    return bool(number)


def _integer(value: object, allowed: str) -> int:
    if type(value) is int:
        return value
    dtype = getattr(value, "dtype", None)
    if isinstance(value, bool) or (dtype is not None and dtype_name(dtype) not in INTEGERS):
        raise TypeError(f"{allowed}; got {_describe(value)}")
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{allowed}; got {_describe(value)}") from None


def _read(array: Array, argument: str) -> tuple[int, ...]:
    name = dtype_name(array.dtype)
    if name not in INTEGERS:
        raise TypeError(f"{argument} must have an integer dtype; got {name}")
    if hasattr(array, "tolist"):
        return tuple(array.tolist())
    return tuple([int(array[i]) for i in range(array.shape[0])])


def _describe(value: object) -> str:
    shown = repr(value)
    short = len(shown) <= _LONGEST_SHOWN and "\n" not in shown
    return f"{type(value).__name__} {shown}" if short else type(value).__name__
