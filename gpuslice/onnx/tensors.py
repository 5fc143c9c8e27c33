"""Tensors of protobufs as NumPy arrays, after checks that onnx.numpy_helper leaves out."""

import re
from collections import abc
from math import prod

import numpy as np
from onnx import SparseTensorProto, TensorProto, numpy_helper
from onnx.external_data_helper import uses_external_data

from gpuslice.errors import error_prefix
from gpuslice.libraries import Array

_BYTE = 8
_MOST_SHOWN = 8


def tensor_value(tensor: TensorProto) -> Array:
    """Return a TensorProto as a NumPy array, text as an object array of str.

    Raises
    ------
    ValueError
        Its dims do not fit its data, its type is unknown, text is not UTF-8, or its data is in a file.
    """
    try:
        return _dense_value(tensor)
    except MemoryError:
        raise
    except Exception as error:  # whatever numpy_helper does with a broken tensor
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"tensor {tensor.name!r} cannot be read: {reason}") from error


def sparse_value(tensor: SparseTensorProto) -> Array:
    """Return a SparseTensorProto as a dense NumPy array.

    Raises
    ------
    ValueError
        Values or indices cannot be read, their numbers differ, or an index is outside of the tensor or given twice.
    """
    values, indices, dims = tensor_value(tensor.values), tensor_value(tensor.indices), tuple(tensor.dims)
    with error_prefix(f"sparse tensor {tensor.values.name!r}"):
        _check_dims(dims)
        dense = np.full(dims, "" if values.dtype.kind == "O" else 0, values.dtype)
        dense.reshape(-1)[_flat_indices(indices, dims, values.shape)] = values
        return dense


def text(value: bytes) -> str:
    """Return bytes of a protobuf as text; raise ValueError if they are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ValueError(f"text must be UTF-8; got {_short(value)}") from None


def _dense_value(tensor: TensorProto) -> Array:
    _check_dims(tensor.dims)
    if uses_external_data(tensor):
        raise ValueError("its data is in a file; load_model(path) reads a model together with its files")
    if tensor.data_type not in TensorProto.DataType.values() or tensor.data_type == TensorProto.UNDEFINED:
        raise ValueError(f"data_type must be a data type of TensorProto; got {tensor.data_type}")
    if tensor.data_type != TensorProto.STRING:
        _check_packed(tensor)
        return numpy_helper.to_array(tensor)
    # numpy_helper takes NUL from the end of text.
    count = prod(tensor.dims)
    if len(tensor.string_data) != count:
        raise ValueError(f"dims {_short(list(tensor.dims))} need {count} strings; got {len(tensor.string_data)}")
    array = np.empty(count, object)
    array[:] = [text(item) for item in tensor.string_data]
    return array.reshape(tensor.dims)


def _check_dims(dims: abc.Sequence[int]) -> None:
    if any(dim < 0 for dim in dims):
        raise ValueError(f"dims must be at least 0; got {_short(list(dims))}")


def _check_packed(tensor: TensorProto) -> None:
    """Raise ValueError if a tensor of several items per byte has more bytes than its items need."""
    name = TensorProto.DataType.Name(tensor.data_type)
    bits = int((re.search(r"\d+", name) or "8")[0])
    if bits >= _BYTE or not tensor.HasField("raw_data"):
        return
    needed = -(-prod(tensor.dims) * bits // _BYTE)
    if len(tensor.raw_data) != needed:
        dims = _short(list(tensor.dims))
        raise ValueError(f"dims {dims} of {name} need {needed} bytes of raw_data; got {len(tensor.raw_data)}")


def _flat_indices(indices: Array, dims: tuple[int, ...], values: tuple[int, ...]) -> Array:
    """Return the positions of a sparse tensor's values in the flat dense tensor."""
    count = values[0] if len(values) == 1 else None
    if count is None or indices.dtype != np.int64 or indices.shape not in ((count,), (count, len(dims))):
        raise ValueError(
            f"indices must be int64 of shape (n,) or (n, {len(dims)}) for values of shape (n,); got "
            f"{indices.dtype} of shape {indices.shape} for values of shape {values}"
        )
    # An index is one number in the flat tensor, or one per axis.
    limits = [prod(dims)] if indices.ndim == 1 else dims
    steps = [prod(limits[axis + 1 :]) for axis in range(len(limits))]
    rows = indices.reshape(count, len(limits))
    outside = ((rows < 0) | (rows >= np.array(limits, np.int64))).any(axis=1)
    if outside.any():
        raise ValueError(f"indices must be inside of shape {dims}; got {_short(rows[outside][0].tolist())}")
    flat = rows @ np.array(steps, np.int64)
    if len(np.unique(flat)) != count:
        raise ValueError("indices must differ; got one twice")
    return flat


def _short(value: object) -> str:
    shown = value if not isinstance(value, (list, bytes)) or len(value) <= _MOST_SHOWN else value[:_MOST_SHOWN]
    return repr(shown) + ("..." if shown is not value else "")
