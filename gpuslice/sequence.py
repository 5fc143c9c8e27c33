"""gpuslice.Sequence: an immutable list of arrays of one dtype, for ONNX's sequence operators."""

from __future__ import annotations

import sys
from collections import abc
from itertools import islice
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np

from gpuslice.display import MOST_ROWS, html_table, shape_text
from gpuslice.dtypes import T16, DType, dtype_name
from gpuslice.engine import Consecutive, Lazy
from gpuslice.errors import describe, prefixes_errors
from gpuslice.libraries import Array, ArrayT, is_array, library_of, plain_array

# They can be iterated over, but not as arrays in an order.
_NOT_ITEMS = (str, bytes, abc.Mapping, abc.Set)

_MOST_SHAPES = 4

# Inside a graph the items are views that are not copied yet.
Item: TypeAlias = Array | Lazy


ArrayT_co = TypeVar("ArrayT_co", covariant=True)


class Sequence(abc.Sequence[ArrayT_co]):
    """An immutable sequence of arrays of one dtype. It holds references to them, never copies.

    ``in``, ``index`` and ``count`` look for an array itself, the same object, and read no items. Two sequences are
    equal if they are the same object.

    Parameters
    ----------
    items : iterable of array
        Shapes may differ.
    dtype : str, optional
        An ONNX name such as "float32", "bfloat16" or "string". Default: the dtype of the items, or that of another
        Sequence, or "float32", ONNX's default, if there are no items.

    Raises
    ------
    TypeError
        An item is not an array, or the dtypes differ.

    Examples
    --------
    >>> import numpy as np, gpuslice as gs
    >>> gs.Sequence([np.zeros(2), np.ones((3, 1))])
    Sequence(2 items, dtype='float64', shapes=[(2,), (3, 1)])
    """

    __slots__ = ("_dtype", "_items")

    _dtype: str
    _items: tuple[ArrayT_co, ...]

    @prefixes_errors("Sequence")
    def __init__(self, items: abc.Iterable[ArrayT_co] = (), dtype: str | None = None) -> None:
        if is_array(items) or isinstance(items, _NOT_ITEMS) or not isinstance(items, abc.Iterable):
            raise TypeError(f"items must be a list or tuple of arrays; got {describe(items)}")
        _register_with_jax()
        self._items = _arrays(items, "items")
        if dtype is None and isinstance(items, Sequence):
            self._dtype = items.dtype
        else:
            self._dtype = _one_dtype(self._items, None if dtype is None else known_dtype(dtype), "items")

    @classmethod
    def of_items(cls, items: abc.Iterable[Item], dtype: str) -> Sequence[Any]:
        """Return a sequence of items, views included, that are known to have ``dtype``."""
        _register_with_jax()
        sequence = cls.__new__(cls)
        # In a graph the items are views. The parts of a split are made when they are read.
        sequence._items = items if isinstance(items, Consecutive) else tuple(items)  # type: ignore
        sequence._dtype = dtype
        return sequence

    @classmethod
    def of_leaves(cls, dtype: str, leaves: abc.Iterable[Any]) -> Sequence[Any]:
        """Return a sequence of what JAX puts in place of the items: arrays, perhaps of another dtype, or no arrays.

        ``dtype`` is that of the sequence if the leaves do not have one that sequences can hold.
        """
        items = tuple(leaves)
        names = {_name_of(getattr(item, "dtype", None)) for item in items}
        name = names.pop() if len(names) == 1 else None
        return cls.of_items(items, name if name in T16 else dtype)

    @property
    def dtype(self) -> str:
        """ONNX name of the items' dtype, also if the sequence is empty."""
        return self._dtype

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> ArrayT_co: ...
    @overload
    def __getitem__(self, index: slice[Any, Any, Any]) -> Sequence[ArrayT_co]: ...
    def __getitem__(self, index: int | slice[Any, Any, Any]) -> ArrayT_co | Sequence[ArrayT_co]:
        if isinstance(index, slice):
            return Sequence.of_items(self._items[index], self._dtype)
        try:
            return self._items[index]
        except IndexError:
            count = len(self)
            allowed = (
                f"be in [{-count}, {count - 1}] for {count} items" if count else "not be given: there are no items"
            )
            raise IndexError(f"Sequence: position must {allowed}; got {index}") from None
        except TypeError:
            raise TypeError(f"Sequence: position must be an int or a slice; got {describe(index)}") from None

    def __iter__(self) -> abc.Iterator[ArrayT_co]:
        return iter(self._items)

    def __contains__(self, value: object) -> bool:
        """Return whether an array is an item: the same object, as arrays have no one answer to ``==``."""
        return any(item is value for item in self._items)

    def index(self, value: object, start: int = 0, stop: int | None = None) -> int:
        """Return the first position of an array, as `list.index` does; the same object is meant.

        Raises
        ------
        ValueError
            It is not an item, or not one from ``start`` to ``stop``.
        """
        for position in range(*slice(start, stop).indices(len(self))):
            if self._items[position] is value:
                return position
        where = "" if (start, stop) == (0, None) else f" in positions {start} to {len(self) if stop is None else stop}"
        raise ValueError(f"Sequence: value must be an item{where}, the same object; got {describe(value)}")

    def count(self, value: object) -> int:
        """Return how often an array is an item: the same object."""
        return sum(item is value for item in self._items)

    def __repr__(self) -> str:
        shapes = list(map(_shape_of, items_of(self)))
        shown = ""
        if shapes and len(set(shapes)) == 1:
            shown = f", shape={shapes[0]}"
        elif shapes:
            words = [str(shape) for shape in shapes[:_MOST_SHAPES]] + ["..."] * (len(shapes) > _MOST_SHAPES)
            shown = f", shapes=[{', '.join(words)}]"
        return f"Sequence({len(self)} item{'' if len(self) == 1 else 's'}, dtype={self._dtype!r}{shown})"

    def _repr_html_(self) -> str:
        items = islice(items_of(self), MOST_ROWS)
        shapes = map(_shape_of, items)
        rows = [(i, "None" if shape is None else shape_text(shape)) for i, shape in enumerate(shapes)]
        title = f"Sequence: {len(self)} item{'' if len(self) == 1 else 's'} of {self._dtype}"
        return html_table(title, ("item", "shape"), rows, len(self) - len(rows))


def _register_with_jax() -> None:
    """Make sequences known to JAX's transformations as containers of arrays, once JAX is imported."""
    global _is_registered
    # Not an import: that would take seconds. While JAX is being imported, this module may lack the function.
    tree_util = None if _is_registered else sys.modules.get("jax.tree_util")
    if tree_util is not None and hasattr(tree_util, "register_pytree_node"):
        _is_registered = True
        tree_util.register_pytree_node(Sequence, _leaves_of, Sequence.of_leaves)


_is_registered = False


def _leaves_of(sequence: Sequence[Any]) -> tuple[tuple[Any, ...], str]:
    return tuple(sequence), sequence.dtype


def items_of(sequence: Sequence[Any]) -> abc.Sequence[Item]:
    """Return the items of a sequence as they are kept, without a copy of their list."""
    return sequence._items


SequenceLike: TypeAlias = Sequence[ArrayT] | list[ArrayT] | tuple[ArrayT, ...]


def _arrays(items: abc.Iterable[ArrayT], argument: str) -> tuple[ArrayT, ...]:
    if type(items) in (list, tuple) and _are_numpy(items):  # the most frequent case, in a third of the time
        return tuple(items)
    arrays: list[ArrayT] = []
    for item in items:
        if type(item) is not np.ndarray:
            library_of(item, f"{argument}[{len(arrays)}]")
        arrays.append(plain_array(item))
    return tuple(arrays)


def _are_numpy(items: abc.Iterable[Any]) -> bool:
    return set(map(type, items)) <= {np.ndarray}


def _one_dtype(items: tuple[Array, ...], dtype: str | None, argument: str) -> str:
    dtypes = [item.dtype for item in items]
    if len(set(map(type, items))) == 1:  # dtypes of several libraries may not be comparable
        dtypes = list(dict.fromkeys(dtypes))
    names = list(dict.fromkeys(map(dtype_name, dtypes)))
    expected = dtype or (names[0] if names else "float32")
    if names and names != [expected]:
        all_names = [dtype_name(item.dtype) for item in items]
        number, name = next((i, name) for i, name in enumerate(all_names) if name != expected)
        raise TypeError(f"{argument} must hold one dtype, {expected}; got {name} in {argument}[{number}]")
    return expected


def known_dtype(dtype: DType) -> str:
    """Return the ONNX name of a dtype that sequences can hold; raise TypeError for others."""
    name = str.__str__(dtype) if isinstance(dtype, str) else _name_of(dtype)
    if name not in T16:
        given = describe(dtype) if name is None or isinstance(dtype, str) else name
        raise TypeError(f"dtype must be one of {', '.join(sorted(T16))}; got {given}")
    return name


def _shape_of(item: Any) -> tuple[Any, ...] | None:
    """Return the shape of an item; None if it has none: JAX may put anything in place of the items."""
    shape = getattr(item, "shape", None)
    return None if shape is None else tuple(shape)


def _name_of(dtype: DType) -> str | None:
    """Return the ONNX name of a dtype of any library; None if it is something else."""
    try:
        if isinstance(dtype, type):  # a scalar type of NumPy, or of JAX, which has a dtype
            inner = np.dtype(dtype) if issubclass(dtype, np.generic) else getattr(dtype, "dtype", None)
            return dtype_name(inner) if isinstance(inner, np.dtype) else None
        # The name of another library's dtype is in its text. That of a collection can be long, or have no end.
        return None if isinstance(dtype, abc.Iterable) else dtype_name(dtype)
    except TypeError:
        return None


def as_sequence(
    value: SequenceLike[ArrayT], empty: str = "float32", *, argument: str = "input_sequence"
) -> Sequence[ArrayT]:
    """Return a Sequence as it is, and a list or tuple of arrays as one. ``empty`` is the dtype of an empty list."""
    if type(value) is Sequence:
        return value
    if not isinstance(value, (list, tuple, Sequence)):
        raise TypeError(f"{argument} must be a gpuslice.Sequence, list or tuple of arrays; got {describe(value)}")
    # A subclass may have an endless iterator, and one of Sequence may hold anything.
    items = _arrays(value if type(value) in (list, tuple) else islice(value, len(value)), argument)
    return Sequence.of_items(items, _one_dtype(items, None if items else empty, argument))
