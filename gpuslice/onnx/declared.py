"""What a model declares for its inputs and outputs, and whether a value matches."""

from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from onnx import TensorShapeProto, TypeProto, ValueInfoProto

from gpuslice.display import shape_text
from gpuslice.dtypes import FLOATS, INTEGERS, dtype_name
from gpuslice.engine import View
from gpuslice.errors import describe, error_prefix
from gpuslice.libraries import Array
from gpuslice.onnx.types import check_text, name_of_elem_type
from gpuslice.rules import show_int
from gpuslice.sequence import Sequence, as_sequence

# By the type of a Python number: the element type if none is declared, and those that it may become.
_SCALARS: dict[type, tuple[str, frozenset[str]]] = {
    bool: ("bool", frozenset({"bool"})),
    int: ("int64", INTEGERS | FLOATS | {"bfloat16"}),
    float: ("float32", FLOATS | {"bfloat16"}),
}


@dataclass(frozen=True)
class Declared:
    """The type of a graph's input or output.

    Attributes
    ----------
    is_sequence : bool
    dtype : str
        ONNX name; "" if the model does not declare it.
    shape : tuple of (int, str or None), or None
        Of the tensor, or of each item of the sequence. A dimension is str if it is a symbol, None if it is unknown,
        which some exporters write as -1; the shape is None if the rank is unknown.
    """

    is_sequence: bool
    dtype: str
    shape: tuple[int | str | None, ...] | None

    @classmethod
    def of(cls, entry: ValueInfoProto) -> "Declared":
        """Return a declaration.

        Raises
        ------
        ValueError
            It is neither a tensor nor a sequence of tensors.
        TypeError
            The element type is unknown.
        """
        kind = entry.type.WhichOneof("value")
        tensor = entry.type.sequence_type.elem_type if kind == "sequence_type" else entry.type
        inner = tensor.WhichOneof("value")
        if kind is not None and inner != "tensor_type":
            raise ValueError(f"{entry.name!r} must be a tensor or a sequence of tensors; got {inner}")
        with error_prefix(repr(entry.name)):
            return cls(kind == "sequence_type", *_tensor(tensor.tensor_type))

    def check(self, value: Any, name: str) -> Any:
        """Return a value that matches, as a `View` or a `Sequence` of them.

        Raises
        ------
        TypeError
            The value is neither an array nor a sequence, or has another dtype.
        ValueError
            It has another shape.
        """
        if not self.is_sequence:
            value = self._scalar(value, name) if type(value) in _SCALARS else value
            return self._check_tensor(View.of(value, f"input {name!r}"), f"input {name!r}")
        sequence = as_sequence(value, self.dtype or "float32", argument=f"input {name!r}")
        if self.dtype and sequence.dtype != self.dtype:
            raise TypeError(f"input {name!r} must be a sequence of {self.dtype}; got {sequence.dtype}")
        items = (self._check_tensor(View.of(item), f"input {name!r}[{i}]") for i, item in enumerate(sequence))
        return Sequence.of_items(items, sequence.dtype)

    def check_output(self, value: Any, name: str) -> None:
        """Raise TypeError if a value has another type than declared."""
        given = value.dtype if isinstance(value, Sequence) else dtype_name(value.dtype)
        if self.dtype and (given != self.dtype or isinstance(value, Sequence) != self.is_sequence):
            kinds = ["a sequence of " * sequence for sequence in (self.is_sequence, isinstance(value, Sequence))]
            raise TypeError(f"output {name!r} is declared as {kinds[0]}{self.dtype}; got {kinds[1]}{given}")

    def _scalar(self, value: Any, name: str) -> Array:
        """Return a Python number as a 0-d array of the declared type."""
        default, allowed = _SCALARS[type(value)]
        dtype = self.dtype or default
        if dtype not in allowed:
            raise TypeError(f"input {name!r} must have dtype {dtype}; got {describe(value)}")
        wanted, array = np.dtype(dtype), None
        with np.errstate(over="ignore"), suppress(OverflowError):
            array = np.asarray(value, wanted)
        # NumPy makes infinity of a number that is too large for a floating type.
        if array is None or (wanted.kind not in "biu" and np.isinf(array) and value not in (inf, -inf)):
            raise ValueError(
                f"input {name!r} must be a number of {dtype}; got {show_int(value) if type(value) is int else value}"
            )
        return array

    def _check_tensor(self, view: View, argument: str) -> View:
        given = dtype_name(view.dtype)
        if self.dtype and given != self.dtype:
            raise TypeError(f"{argument} must have dtype {self.dtype}; got {given}")
        check_text(view.array, argument)
        if self.shape is not None and not _fits(view.shape, self.shape):
            wanted = shape_text(tuple("?" if dim is None else dim for dim in self.shape))
            raise ValueError(f"{argument} must have shape {wanted}; got {shape_text(view.shape)}")
        return view


def _tensor(tensor: TypeProto.Tensor) -> tuple[str, tuple[int | str | None, ...] | None]:
    dtype = name_of_elem_type(tensor.elem_type) if tensor.elem_type else ""
    if not tensor.HasField("shape"):
        return dtype, None
    return dtype, tuple(map(_dim, tensor.shape.dim))


def _dim(dim: TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return dim.dim_param or None


def _fits(shape: tuple[int, ...], declared: tuple[int | str | None, ...]) -> bool:
    return len(shape) == len(declared) and all(
        dim == want or not isinstance(want, int) for dim, want in zip(shape, declared, strict=True)
    )
