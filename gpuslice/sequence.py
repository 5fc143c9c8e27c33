"""gpuslice.Sequence: an immutable list of arrays of one dtype, as ONNX's sequence operators take and give it."""

from __future__ import annotations

import collections.abc
from collections.abc import Iterable, Iterator
from typing import TypeAlias, overload

import numpy as np

from gpuslice.arrays import Array, DType, base_array, dtype_name, is_array, namespace
from gpuslice.engine import Joined, View

# Inside a graph the items are views that are not copied yet.
Item: TypeAlias = Array | View | Joined

_NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
_DTYPES = frozenset((*_NUMBERS, "bool", "complex64", "complex128", "string", "bfloat16"))


class Sequence(collections.abc.Sequence[Array]):
    """An immutable sequence of arrays of one dtype. It holds references to them, never copies.

    Parameters
    ----------
    items : iterable of array
        Shapes may differ.
    dtype : str, optional
        An ONNX name such as "float32", "bfloat16" or "string". Default: that of the items; "float32", ONNX's default,
        where there are none.

    Raises
    ------
    TypeError
        An item that is no array, or dtypes that differ.

    Examples
    --------
    >>> import numpy as np, gpuslice as gs
    >>> gs.Sequence([np.zeros(2), np.ones((3, 1))])
    Sequence(2 items, dtype='float64')
    """

    __slots__ = ("_dtype", "_items")

    def __init__(self, items: Iterable[Array] = (), dtype: str | None = None) -> None:
        if is_array(items) or isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
            raise TypeError(f"a sequence is made of a list or tuple of arrays; got {type(items).__name__}")
        self._items = tuple(items)
        for item in self._items:
            namespace(item, "each item of a sequence")
        self._items = tuple(map(base_array, self._items))
        self._dtype = _one_dtype(self._items, dtype)

    @classmethod
    def holding(cls, items: Iterable[Item], dtype: str) -> Sequence:
        """Hold items known to be of ``dtype``, views included."""
        sequence = cls.__new__(cls)
        sequence._items, sequence._dtype = tuple(items), dtype
        return sequence

    @property
    def dtype(self) -> str:
        """ONNX name of the items' dtype, also of an empty sequence."""
        return self._dtype

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence: ...
    def __getitem__(self, index: int | slice) -> Array | Sequence:
        if isinstance(index, slice):
            return Sequence.holding(self._items[index], self._dtype)
        return self._items[index]

    def __iter__(self) -> Iterator[Array]:
        return iter(self._items)

    def __repr__(self) -> str:
        return f"Sequence({len(self)} item{'' if len(self) == 1 else 's'}, dtype={self._dtype!r})"


SequenceLike: TypeAlias = Sequence | list[Array] | tuple[Array, ...]


def _one_dtype(items: tuple[Array, ...], dtype: str | None) -> str:
    names = list(dict.fromkeys(dtype_name(item.dtype) for item in items))
    expected = (names[0] if names else "float32") if dtype is None else known_dtype(dtype)
    for name in names:
        if name != expected:
            raise TypeError(f"a sequence must hold one dtype, {expected}; got {name}")
    return expected


def known_dtype(dtype: DType) -> str:
    """Give the ONNX name of a dtype that sequences may hold; TypeError where it is none."""
    if not isinstance(dtype, str):
        try:
            dtype = dtype_name(np.dtype(dtype) if isinstance(dtype, type) and issubclass(dtype, np.generic) else dtype)
        except TypeError:
            raise TypeError(f"dtype must be an ONNX name such as 'float32'; got {dtype!r}") from None
    if dtype not in _DTYPES:
        raise TypeError(f"dtype must be one of {', '.join(sorted(_DTYPES))}; got {dtype!r}")
    return str(dtype)


def as_sequence(value: SequenceLike, empty: str = "float32") -> Sequence:
    """Take a Sequence as it is and a list or tuple of arrays as one; ``empty`` is the dtype of a plain empty list."""
    if isinstance(value, Sequence):
        return value
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"a sequence must be a gpuslice.Sequence, list or tuple of arrays; got {type(value).__name__}")
    return Sequence(value, None if value else empty)
