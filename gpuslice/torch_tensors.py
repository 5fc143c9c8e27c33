"""PyTorch's tensors: which are plain memory that kernels can read and write, and what is done with the others.

Only this module imports torch. Import it only when there is a tensor, never at the top of a module.
"""

import ctypes
import sys
from collections.abc import Hashable, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

import array_api_compat.torch
import numpy as np
import torch
from torch.autograd import forward_ad

from gpuslice.dtypes import DType
from gpuslice.errors import AutogradError
from gpuslice.libraries import by_namespace
from gpuslice.library_rows import strides_of_torch

Tensor: TypeAlias = Any

LIBRARY = by_namespace(array_api_compat.torch)

_CLASSES = (torch.Tensor, torch.nn.Parameter)
# The dtypes that NumPy has. Items of others are moved as integers of their size.
_NAMES = ("bool", "float16", "float32", "float64", "complex64", "complex128")
_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_DTYPES = {getattr(torch, name): np.dtype(name) for name in (*_NAMES, *_INTEGERS)}
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_FLIPPED = set(_DTYPES) - {torch.uint16, torch.uint32, torch.uint64} | {torch.bfloat16}
_COPIED = frozenset(_DTYPES) | {torch.bfloat16}
_MOST_AXES = 64  # of a NumPy array; a tensor may have more
_QUANTIZED = frozenset({torch.qint8, torch.qint32, torch.quint8, torch.quint4x2, torch.quint2x4})


class _Memory(ctypes.c_char * sys.maxsize):  # type: ignore[misc]
    """Memory from an address on."""


_dispatch_keys = torch._C._dispatch_keys


def _keys(tensor: Tensor) -> int:
    keys: int = _dispatch_keys(tensor).raw_repr()
    return keys


def _keys_of_plain(device: str, *more: str) -> int:
    names = (device, f"Autocast{device}", *more)
    sets = [torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name)) for name in names]
    return int(reduce(or_, sets).raw_repr())


# What PyTorch dispatches on has a key for each property that makes a tensor more than memory: sparse, quantized, nested
# or meta tensors, negative and conjugate bits, the wrappers of torch.func. A list of properties could miss one.
_DEVICES = ("CPU", "CUDA")
_INFERENCE_KEYS = frozenset(map(_keys_of_plain, _DEVICES))
_KEYS = _INFERENCE_KEYS | {_keys_of_plain(device, f"Autograd{device}", "ADInplaceOrView") for device in _DEVICES}


def is_plain(tensor: Tensor, *, written: bool = False) -> bool:
    """Return whether a tensor is nothing but memory now. If not, only PyTorch's operations do what is meant.

    Parameters
    ----------
    written : bool
        Whether it is to be written. Outside of inference mode, PyTorch refuses that for tensors made inside.
    """
    return not _are_watched() and _is_memory(tensor, written=written)


def _are_watched() -> bool:
    """Return whether something follows the operations of this thread, which a copy by others would not be."""
    if torch.compiler.is_compiling():
        return True
    # Forward-mode derivatives are kept where no_grad holds, too. Modes are such as FakeTensorMode.
    return bool(forward_ad._current_level >= 0 or torch._C._len_torch_dispatch_stack() or torch._C._is_tracing())


def _is_memory(tensor: Tensor, *, written: bool = False) -> bool:
    if type(tensor) not in _CLASSES or (tensor.requires_grad and torch.is_grad_enabled()):
        return False
    keys = _keys(tensor)
    if keys not in _KEYS or (written and keys in _INFERENCE_KEYS and not torch.is_inference_mode_enabled()):
        return False
    return tensor.dim() <= _MOST_AXES and _is_stored(tensor)


def kind(tensor: Tensor) -> tuple[Hashable, ...] | None:
    """Return all that the way to copy a plain tensor depends on; None if it is not plain."""
    return None if _are_watched() or not _is_memory(tensor) else _kind(tensor)


def kinds(tensors: Sequence[Any]) -> tuple[Hashable, ...] | None:
    """Return the kind of each tensor, which may be other things, too; None if one is not a plain tensor."""
    if _are_watched() or not all(map(_is_memory, tensors)):
        return None
    return tuple(map(_kind, tensors))


def _kind(tensor: Tensor) -> tuple[Hashable, ...]:
    # Not the class, whose size would count when the key is kept.
    return "torch", tensor.shape, tensor.stride(), tensor.dtype, tensor.get_device()


def is_on_host(tensor: Tensor) -> bool:
    """Return whether a plain tensor is in the memory of the CPU; if not, it is in that of a CUDA device."""
    return bool(tensor.is_cpu)


def stored_dtype(dtype: DType) -> np.dtype[Any]:
    """Return NumPy's dtype for the items of a tensor: integers of the same size if NumPy lacks theirs."""
    return _DTYPES.get(dtype) or _DTYPES[_BITS[dtype.itemsize]]


def to_numpy(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return a NumPy array over the memory of a plain tensor of the CPU, for as long as the tensor lives."""
    # Not `tensor.numpy()`, which keeps the storage from being resized later. Not DLPack, which refuses some dtypes.
    memory = _Memory.from_address(tensor.data_ptr())
    dtype, shape = stored_dtype(tensor.dtype), tuple(tensor.shape)
    if tensor.is_contiguous():
        return np.ndarray(shape, dtype, memory)
    return np.ndarray(shape, dtype, memory, 0, strides_of_torch(tensor))


def from_numpy(array: np.ndarray[Any, Any], dtype: DType) -> Tensor:
    """Return a tensor of a dtype over the memory of a new C-contiguous array."""
    tensor = torch.from_numpy(array)
    return tensor if tensor.dtype == dtype else without_base(tensor.view(dtype))


def without_base(tensor: Tensor) -> Tensor:
    """Return a new tensor over the same memory. It is no view for autograd, and has a version of its own."""
    return tensor.data


def takes(tensors: Sequence[Tensor], outs: Sequence[Any], shapes: Iterable[tuple[int, ...]]) -> bool:
    """Return whether outputs for results of plain tensors need no closer look: plain, contiguous, and apart.

    The tensors have one dtype and device.
    """
    dtype, device = tensors[0].dtype, tensors[0].get_device()
    places = [(*bounds(tensor), False) for tensor in tensors]
    for out, shape in zip(outs, shapes, strict=True):
        if type(out) not in _CLASSES or not _is_memory(out, written=True):  # first: nested tensors have no shape
            return False
        if out.shape != shape or out.dtype != dtype or not out.is_contiguous() or out.get_device() != device:
            return False
        start = out.data_ptr()
        places.append((start, start + out.nbytes, True))
    read_end = written_end = 0
    for start, end, written in sorted(places):
        if start < written_end or (written and start < read_end):
            return False
        if written:
            written_end = end
        else:
            read_end = max(read_end, end)
    return True


def has_memory(tensor: Tensor) -> bool:
    """Return whether a tensor surely has an address: one of torch.func or of the device "meta" has none."""
    if torch.compiler.is_compiling() or tensor.is_meta:
        return False
    if type(tensor) not in _CLASSES and _dispatch_keys(tensor).has(torch._C.DispatchKey.Python):
        return False  # a subclass whose operations are its own, and perhaps its memory
    return not (torch._C._functorch.is_functorch_wrapped_tensor(tensor) or torch._is_functional_tensor(tensor))


def were_written(tensors: Sequence[Tensor]) -> None:
    """Tell autograd that tensors were written, as PyTorch's own operations do: it may keep them for a backward pass."""
    torch._C._increment_version([tensor for tensor in tensors if not tensor.is_inference()])


def threads(dtype: DType) -> int:
    """Return how many threads PyTorch's operations use; 0 if it lacks some for a dtype."""
    return int(torch.get_num_threads()) if dtype in _COPIED else 0


def join(tensors: Sequence[Tensor], axis: int, new_axis: bool, out: Tensor | None = None) -> Tensor:
    """Return tensors side by side as ``torch.cat`` and ``torch.stack`` do, or write them to an output."""
    return (torch.stack if new_axis else torch.cat)(tensors, axis, out=out)  # type: ignore[arg-type, unused-ignore]


def current_stream(device: int) -> int:
    """Return the handle of the stream on which PyTorch's operations on a CUDA device run now."""
    return int(torch.cuda.current_stream(device).cuda_stream)


def asarray(array: np.ndarray[Any, Any], device: Any) -> Tensor:
    """Return a copy of a NumPy array, of the dtype with its name, on a device; raise TypeError if there is none."""
    dtype = getattr(torch, array.dtype.name, None)
    if not isinstance(dtype, torch.dtype) or dtype.itemsize != array.dtype.itemsize:
        raise TypeError(f"PyTorch has no dtype {array.dtype}")
    stored = array.astype(array.dtype.newbyteorder("="), order="C").view(stored_dtype(dtype))
    return from_numpy(stored, dtype).to(device)


def fresh(tensor: Tensor, *, is_view: bool) -> Tensor:
    """Return a result of PyTorch's indexing as a tensor that is C-contiguous and shares no memory with the input."""
    return tensor.clone(memory_format=torch.contiguous_format) if is_view else tensor.contiguous()


def flip(tensor: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return a tensor reversed along some axes, of any dtype: ``torch.flip`` lacks some."""
    if tensor.dtype in _FLIPPED:
        return torch.flip(tensor, axes)
    if tensor.requires_grad and torch.is_grad_enabled():
        raise TypeError(f"data of dtype {tensor.dtype} must not require grad to go backward; torch.flip lacks it")
    tensor = tensor.resolve_conj()  # a view of integers has no such bit
    return torch.flip(tensor.view(_BITS[tensor.element_size()]), axes).view(tensor.dtype)


def unread(tensor: Tensor) -> str | None:
    """Return why the values of a tensor cannot be read, and what to do; None if they can."""
    if torch.compiler.is_compiling():
        return None
    if tensor.is_meta:
        return "a tensor of the device meta has no values; give ints"
    if torch._C._functorch.is_batchedtensor(tensor):
        return "torch.vmap makes one call for all its values; give ints or a tensor that is not mapped"
    return None


def check(tensor: Tensor, argument: str) -> None:
    """Raise TypeError if a tensor has more than dense items, and ValueError if its storage has fewer."""
    if not torch.compiler.is_compiling() and type(tensor) in _CLASSES and _keys(tensor) in _KEYS:
        if not _is_stored(tensor):  # PyTorch does not always look
            raise ValueError(
                f"{argument} must have its items in its storage; got a storage of "
                f"{tensor.untyped_storage().nbytes()} bytes, which was resized"
            )
        return
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


def _is_stored(tensor: Tensor) -> bool:
    """Return whether the storage of a tensor has all its items: a storage can be resized."""
    size = _extent(tensor)
    if not size:  # which may begin behind the end of its storage
        return True
    return bool(tensor.storage_offset() * tensor.element_size() + size <= tensor.untyped_storage().nbytes())


def _extent(tensor: Tensor) -> int:
    """Return the bytes from the first item to the end of the last one."""
    if tensor.is_contiguous() or not tensor.numel():
        return int(tensor.nbytes)
    last = sum([(count - 1) * step for count, step in zip(tensor.shape, tensor.stride(), strict=True)])
    return int((last + 1) * tensor.element_size())


def bounds(tensor: Tensor) -> tuple[int, int]:
    """Return the first address of a tensor and the one after its last."""
    start = tensor.data_ptr()
    return start, start + _extent(tensor)
