"""Bounds, axes, sizes and positions read as Python ints, from ints, sequences and integer arrays of any library."""

import operator
import sys
from collections import abc
from itertools import islice
from math import prod
from typing import TypeAlias

import numpy as np

from gpuslice.dtypes import INTEGERS, dtype_name
from gpuslice.errors import describe
from gpuslice.libraries import Array, Library, check_readable, is_array, is_symbolic, library_of, plain_array, shape_of
from gpuslice.rules import show_int

Ints: TypeAlias = abc.Sequence[int] | Array

_HONEST = (list, tuple, range)


def integers(values: object, argument: str, most: int = sys.maxsize) -> tuple[int, ...]:
    """Return bounds, axes, steps or sizes as Python ints. Reading values on a device waits for the device.

    Parameters
    ----------
    most : int, optional
        How many there may be. A range or an array can have more values than memory can hold.

    Raises
    ------
    TypeError
        Neither a sequence of ints nor an integer array. A bool is not a bound, a bare int is not a sequence.
    ValueError
        An array that is not 1-D, or more than ``most`` values.
    """
    if type(values) in _HONEST:
        _check_count(len(values), argument, most)  # type: ignore[arg-type]
        # A copy, since reading an item may call code that changes the list.
        return _all_integers(tuple(values), argument)  # type: ignore[arg-type]
    if type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind in "iu" and len(values) <= most:
        return tuple(values.tolist())  # what the next lines do, sooner
    if is_array(values):
        library = library_of(values, argument)
        array = plain_array(values)
        shape = shape_of(array, library, argument)
        if len(shape) != 1:
            raise ValueError(f"{argument} must be 1-D; got shape {shape}")
        _check_count(shape[0], argument, most)
        return _read(array, library, argument)
    if not isinstance(values, abc.Sequence) or isinstance(values, (str, bytes, bytearray)):
        raise TypeError(f"{argument} must be a sequence of ints or a 1-D integer array; got {describe(values)}")
    count = len(values)
    _check_count(count, argument, most)
    return _all_integers(tuple(islice(values, count)), argument)  # the iterator may be endless


def integer(value: object, argument: str) -> int:
    """Return one int, from a Python or NumPy int or a 0-d integer array.

    Raises
    ------
    TypeError
        Anything else, a bool included.
    """
    return value if type(value) is int else _integer(value, argument, "be an int")


def single_integer(value: object, argument: str, what: str = "an int or an integer array of one value") -> int:
    """Return one int, from an int, or an array of any rank that holds exactly one.

    Parameters
    ----------
    what : str
        What is allowed, for the message.

    Raises
    ------
    IndexError
        An array of another number of values.
    TypeError
        Not an integer. A list is none, also if it holds only one.
    """
    if type(value) is int:
        return value
    if is_array(value):
        library = library_of(value, argument)
        return _read(_flat(value, library, argument), library, argument)[0]
    return _integer(value, argument, f"be {what}")


def flag(value: int, argument: str) -> bool:
    """Return an attribute that is 0 or 1 as a bool; raise ValueError or TypeError for anything else but bools."""
    number = int(value) if isinstance(value, (bool, np.bool)) else _integer(value, argument, "be 0 or 1")
    if number not in (0, 1):
        raise ValueError(f"{argument} must be 0 or 1; got {show_int(number)}")
    return bool(number)


def _check_count(count: int, argument: str, most: int) -> None:
    if count > most:
        raise ValueError(f"{argument} must have at most {most} values; got {count}")


def _all_integers(values: tuple[object, ...], argument: str) -> tuple[int, ...]:
    for value in values:
        if type(value) is not int:
            return tuple([_integer(value, argument, "hold ints") for value in values])
    return values  # type: ignore[return-value]


def _integer(value: object, argument: str, what: str) -> int:
    if type(value) is int:
        return value
    if is_symbolic(value):
        return value  # type: ignore[return-value]
    # No error is kept in a variable: it holds this frame, and so the arrays of the call, until they are collected.
    message = f"{argument} must {what}; got {describe(value)}"
    if isinstance(value, (bool, np.ma.MaskedArray)):
        raise TypeError(message)
    if is_array(value):
        if dtype_name(value.dtype) not in INTEGERS:
            raise TypeError(message)
        check_readable(value, library_of(value, argument), argument)
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(message) from None


def _flat(value: Array, library: Library, argument: str) -> Array:
    array = plain_array(value)
    shape = shape_of(array, library, argument)
    if prod(shape) != 1:
        raise IndexError(f"{argument} must hold one value; got shape {shape}")
    return library.xp.reshape(array, (1,))


def _read(array: Array, library: Library, argument: str) -> tuple[int, ...]:
    name = dtype_name(array.dtype)
    if name not in INTEGERS:
        given = "object" if getattr(array.dtype, "kind", "") == "O" else name
        raise TypeError(f"{argument} must have an integer dtype; got {given}")
    check_readable(array, library, argument)
    values = array.tolist() if hasattr(array, "tolist") else [int(array[i]) for i in range(array.shape[0])]
    return _all_integers(tuple(values), argument)
