"""PyTorch's CUDA tensors: CuPy's arrays over the same memory, and its kernels on PyTorch's current stream.

No tensor is marked by ``record_stream``. Results come from PyTorch's allocator, for the stream that is current there on
the device. The kernels run on that stream, too, and nothing else of a call touches a tensor. So the allocator knows of
all uses. A tensor that was made on another stream is the caller's to keep, as for PyTorch's own operations.

Import this module only when there is a CUDA tensor: CuPy may be missing.
"""

from collections import abc
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, lru_cache

import array_api_compat.cupy
import cupy

from gpuslice import torch_tensors
from gpuslice.engine.cuda import CUDA_EXECUTOR
from gpuslice.engine.views import View
from gpuslice.libraries import Array, by_namespace
from gpuslice.library_rows import strides_of_torch

# What views of these arrays belong to: `copy` copies them.
LIBRARY = replace(by_namespace(array_api_compat.cupy), executor="torch_cuda")

_MOST_STREAMS = 256


def to_cupy(tensor: Array) -> Array | None:
    """Return a CuPy array over the memory of a plain CUDA tensor; None if kernels cannot run on its device.

    Items of a dtype that NumPy lacks are integers of the same size.
    """
    device = tensor.get_device()
    if not _has_kernels(device):
        return None
    # Not DLPack, which refuses some dtypes and may wait for streams. The array keeps the tensor.
    memory = cupy.cuda.UnownedMemory(tensor.data_ptr(), tensor.nbytes, tensor, device)
    start = cupy.cuda.MemoryPointer(memory, 0)
    strides = None if tensor.is_contiguous() else strides_of_torch(tensor)
    return cupy.ndarray(tuple(tensor.shape), torch_tensors.stored_dtype(tensor.dtype), start, strides)


def on_current_streams(devices: abc.Iterable[int]) -> ExitStack:
    """Return a context in which CuPy's current stream for each device is PyTorch's. The last device is current."""
    with ExitStack() as stack:
        for device in devices:
            stack.enter_context(cupy.cuda.Device(device))
            stack.enter_context(_stream(device, torch_tensors.current_stream(device)))
        return stack.pop_all()


def copy(pairs: abc.Sequence[tuple[View, View]]) -> None:
    """Copy each source view to its target view, which has the same shape and is on the same device."""
    with on_current_streams({source.array.data.device_id for source, _ in pairs}):
        CUDA_EXECUTOR.copy(pairs)


class _Handle:
    """A stream as CuPy takes it from other libraries."""

    def __init__(self, handle: int) -> None:
        # CuPy may read 0 as the default stream of the thread.
        self._handle = handle or cupy.cuda.runtime.streamLegacy

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


@lru_cache(_MOST_STREAMS)
def _stream(device: int, handle: int) -> cupy.cuda.Stream:
    """Return the stream of a handle, for the current device, which is ``device``."""
    return cupy.cuda.Stream.from_external(_Handle(handle))


@cache
def _has_kernels(device: int) -> bool:
    if not cupy.cuda.is_available():
        return False
    with cupy.cuda.Device(device):
        return CUDA_EXECUTOR.runs_on(cupy.ndarray(0, "u1"))
