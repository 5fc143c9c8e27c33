"""PyTorch's tensors: which are plain memory that NumPy can read and write, and what is done with the others.

Only this module imports torch. Import it only when there is a tensor, never at the top of a module.
"""

import ctypes
import sys
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import array_api_compat.torch
import numpy as np
import torch
from torch.autograd import forward_ad, graph

from gpuslice.dtypes import DType
from gpuslice.errors import AutogradError
from gpuslice.libraries import by_namespace

Tensor: TypeAlias = Any

LIBRARY = by_namespace(array_api_compat.torch)

_CLASSES = (torch.Tensor, torch.nn.Parameter)
# The dtypes that NumPy has. Items of others are moved as integers of their size.
_NAMES = ("bool", "float16", "float32", "float64", "complex64", "complex128")
_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_DTYPES = {getattr(torch, name): np.dtype(name) for name in (*_NAMES, *_INTEGERS)}
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_FLIPPED = set(_DTYPES) - {torch.uint16, torch.uint32, torch.uint64} | {torch.bfloat16}
_QUANTIZED = frozenset({torch.qint8, torch.qint32, torch.quint8, torch.quint4x2, torch.quint2x4})


class _Memory(ctypes.c_char * sys.maxsize):  # type: ignore[misc]
    """Memory from an address on."""


def _keys(tensor: Tensor) -> int:
    return int(torch._C._dispatch_keys(tensor).raw_repr())


# What PyTorch dispatches on has a key for each property that makes a tensor more than memory: sparse, quantized, nested
# or meta tensors, negative and conjugate bits, the wrappers of torch.func. A list of properties could miss one.
_KEYS = _keys(torch.empty(0, device="cpu"))
with torch.inference_mode():
    _INFERENCE_KEYS = _keys(torch.empty(0, device="cpu"))


def is_plain(tensor: Tensor, *, written: bool = False) -> bool:
    """Return whether a tensor is nothing but host memory now. If not, only PyTorch's operations do what is meant.

    Parameters
    ----------
    written : bool
        Whether it is to be written. Outside of inference mode, PyTorch refuses that for tensors made inside.
    """
    if torch.compiler.is_compiling() or type(tensor) not in _CLASSES:
        return False
    keys = _keys(tensor)
    if keys != _KEYS and (keys != _INFERENCE_KEYS or (written and not torch.is_inference_mode_enabled())):
        return False
    # Forward-mode derivatives are kept where no_grad holds, too.
    if (tensor.requires_grad and torch.is_grad_enabled()) or forward_ad._current_level >= 0:
        return False
    # Modes such as FakeTensorMode, and torch.jit.trace, see operations only.
    if torch._C._len_torch_dispatch_stack() or torch.jit.is_tracing():
        return False
    return tensor.dtype not in _QUANTIZED and _is_stored(tensor)


def kind(tensor: Tensor) -> tuple[Hashable, ...] | None:
    """Return all that the way to copy a plain tensor depends on; None if it is not plain."""
    return (torch.Tensor, tensor.shape, tensor.stride(), tensor.dtype) if is_plain(tensor) else None


def to_numpy(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return a NumPy array over the memory of a plain tensor, for as long as the tensor lives.

    Items of a dtype that NumPy lacks are integers of the same size.
    """
    size = tensor.element_size()
    dtype = _DTYPES.get(tensor.dtype) or _DTYPES[_BITS[size]]
    strides = tuple([step * size for step in tensor.stride()])
    # Not `tensor.numpy()`, which keeps the storage from being resized later. Not DLPack, which refuses some dtypes.
    return np.ndarray(tensor.shape, dtype, _Memory.from_address(tensor.data_ptr()), 0, strides)


def from_numpy(array: np.ndarray[Any, Any], dtype: DType) -> Tensor:
    """Return a tensor of a dtype over the memory of a new C-contiguous array."""
    tensor = torch.from_numpy(array)
    if tensor.dtype == dtype:
        return tensor
    # Not `view`, whose result has a base, and counts as a view for autograd.
    empty = torch.empty(0, dtype=dtype, device="cpu")
    return empty.set_(tensor.untyped_storage(), 0, tensor.shape, tensor.stride())


def takes(tensor: Tensor, outs: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> bool:
    """Return whether outputs for results of a plain tensor need no closer look: plain, contiguous, and apart."""
    dtype = tensor.dtype
    bounds = [_bounds(tensor)]
    for out, shape in zip(outs, shapes, strict=True):
        if type(out) not in _CLASSES or out.shape != shape or out.dtype != dtype or not out.is_contiguous():
            return False
        if not is_plain(out, written=True):
            return False
        bounds.append(_bounds(out))
    bounds.sort()
    return not any(one[1] > other[0] for one, other in pairwise(bounds))


def has_memory(tensor: Tensor) -> bool:
    """Return whether a tensor has an address: one of torch.func, torch.compile or the device "meta" has none."""
    if torch.compiler.is_compiling() or type(tensor) not in _CLASSES or tensor.is_meta:
        return False
    return not (torch._C._functorch.is_functorch_wrapped_tensor(tensor) or torch._is_functional_tensor(tensor))


def was_written(tensor: Tensor) -> None:
    """Tell autograd that a tensor was written, as PyTorch's own operations do: it may be kept for a backward pass."""
    if not tensor.is_inference():
        graph.increment_version(tensor)


def asarray(array: np.ndarray[Any, Any], device: Any) -> Tensor:
    """Return a copy of a NumPy array, of the dtype with its name, on a device; raise TypeError if there is none."""
    dtype = getattr(torch, array.dtype.name, None)
    if not isinstance(dtype, torch.dtype) or dtype.itemsize != array.dtype.itemsize:
        raise TypeError(f"PyTorch has no dtype {array.dtype}")
    stored = _DTYPES.get(dtype) or _DTYPES[_BITS[dtype.itemsize]]
    return from_numpy(array.astype(array.dtype.newbyteorder("="), order="C").view(stored), dtype).to(device)


def fresh(tensor: Tensor, *, is_view: bool) -> Tensor:
    """Return a result of PyTorch's indexing as a tensor that is C-contiguous and shares no memory with the input."""
    return tensor.clone(memory_format=torch.contiguous_format) if is_view else tensor.contiguous()


def flip(tensor: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return a tensor reversed along some axes, of any dtype: ``torch.flip`` lacks some."""
    if tensor.dtype in _FLIPPED or tensor.requires_grad:
        return torch.flip(tensor, axes)
    return torch.flip(tensor.view(_BITS[tensor.element_size()]), axes).view(tensor.dtype)


def check(tensor: Tensor, argument: str) -> None:
    """Raise TypeError if a tensor has more than dense items, and ValueError if its storage has fewer."""
    if isinstance(tensor, torch.masked.MaskedTensor):
        kind, remedy = "a MaskedTensor, whose mask would be lost", "x.to_tensor(value) gives one"
    elif tensor.is_nested:
        kind = "a nested tensor"
        remedy = "torch.nested.to_padded_tensor(x, value) gives one, and x.unbind() gives several"
    elif tensor.layout is not torch.strided:
        kind, remedy = f"a tensor of layout {tensor.layout}", "x.to_dense() gives one"
    elif tensor.dtype in _QUANTIZED:
        kind, remedy = f"a quantized tensor of dtype {tensor.dtype}", "x.dequantize() and x.int_repr() give one"
    else:
        _check_storage(tensor, argument)
        return
    raise TypeError(f"{argument} must be a dense tensor; got {kind}. {remedy}")


def check_out(tensor: Tensor, out: Tensor) -> None:
    """Raise AutogradError, as PyTorch's functions do, if autograd would record that an output is written."""
    if not torch.compiler.is_compiling() and out.is_inference() and not torch.is_inference_mode_enabled():
        # PyTorch says so after it has written.
        raise AutogradError("out is an inference tensor, which can be written in inference mode only; clone it first")
    if torch.is_grad_enabled() and (tensor.requires_grad or out.requires_grad):
        raise AutogradError(
            f"out does not support automatic differentiation, but {'the input' if tensor.requires_grad else 'out'} "
            "requires grad; leave out= away, or make the call under torch.no_grad()"
        )


def _check_storage(tensor: Tensor, argument: str) -> None:
    """Raise ValueError if the storage of a tensor was resized. PyTorch does not always look."""
    if torch.compiler.is_compiling() or _keys(tensor) not in (_KEYS, _INFERENCE_KEYS) or _is_stored(tensor):
        return
    stored = tensor.untyped_storage().nbytes()
    raise ValueError(
        f"{argument} must have its items in its storage; got a storage of {stored} bytes, which was resized"
    )


def _is_stored(tensor: Tensor) -> bool:
    """Return whether the storage of a tensor has all its items: a storage can be resized."""
    if not tensor.numel():  # which may begin behind the end of its storage
        return True
    end = tensor.storage_offset() * tensor.element_size() + _extent(tensor)
    return bool(end <= tensor.untyped_storage().nbytes())


def _extent(tensor: Tensor) -> int:
    """Return the bytes from the first item to the end of the last one."""
    if tensor.is_contiguous() or not tensor.numel():
        return int(tensor.nbytes)
    last = sum([(count - 1) * step for count, step in zip(tensor.shape, tensor.stride(), strict=True)])
    return int((last + 1) * tensor.element_size())


def _bounds(tensor: Tensor) -> tuple[int, int]:
    start = tensor.data_ptr()
    return start, start + _extent(tensor)
