"""The executor for CuPy arrays: CUDA kernels. Only this module and `cuda_kernels` import CuPy.

Import it only when CUDA is wanted, never at the top of a module. A launch goes to the current stream of the array's
device, with all its parameters by value: nothing is uploaded, nothing is waited for, nothing is allocated. Once its
kernel is compiled, which the first call or `warm_up` does, a launch may be captured into a CUDA graph.
"""

import ctypes
import threading
from collections import abc
from contextvars import ContextVar
from functools import cache
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import cupy
import numpy as np

from gpuslice.dtypes import DType
from gpuslice.engine import cuda_kernels
from gpuslice.engine.cuda_kernels import Wanted, capability, compiled
from gpuslice.engine.kernel_executor import BLOCK_ALIGNMENT, KernelExecutor, Pairs, ReadyLaunch, Work
from gpuslice.engine.plan import CUDA_THREADS, CUDA_TUNING, LaunchPlan, PackedLaunch, Part, index_bits, pack
from gpuslice.engine.prepared import EXECUTORS
from gpuslice.engine.views import View
from gpuslice.libraries import Array, bridge_of

# __grid_constant__, which keeps parameters where they are, needs it.
_LEAST_CAPABILITY = 70

# The kernels that the calls of a `compile_for` need, as keys: these calls copy nothing. None: calls copy.
_collected: ContextVar[dict[Wanted, None] | None] = ContextVar("gpuslice_collected", default=None)


class CudaExecutor(KernelExecutor):
    """Launches kernels on the device of the arrays, on its current stream, without waiting.

    Raises
    ------
    RuntimeError
        A kernel cannot be compiled. Nothing is copied then.
    """

    name = "cuda"
    fallback: tuple[str, str] = ("generic", "assign")

    def copy(self, pairs: Pairs) -> None:
        """Copy each source view to its target view, which has the same shape and is on the same device."""
        if _collected.get() is None and _are_on_current_device(pairs):
            super().copy(pairs)  # the usual call, quickly
            return
        prepared = []
        for device, members in _by_device(pairs).items():
            with cupy.cuda.Device(device):
                prepared.append((device, self.prepare(members)))
        for device, work in prepared if _collected.get() is None else ():
            with cupy.cuda.Device(device):
                self.run(*work)

    def runs_on(self, array: Array) -> bool:
        """Return whether an array's device runs the kernels."""
        return _runs_kernels(array.device.id)

    def allocate(
        self, shapes: abc.Sequence[tuple[int, ...]], dtype: DType, beside: Array, *, one_block: bool = False
    ) -> list[Array]:
        """Return new C-contiguous arrays on the device of another one.

        Those of one block are arrays over its memory: to slice and reshape it, as is done for other libraries, takes
        nearly twice as long.
        """
        if _device_count() > 1 and beside.device.id != cupy.cuda.runtime.getDevice():
            with beside.device:
                return self.allocate(shapes, dtype, beside, one_block=one_block)
        if not one_block:
            return [cupy.ndarray(shape, dtype) for shape in shapes]
        sizes = [-(-prod(shape) * dtype.itemsize // BLOCK_ALIGNMENT) * BLOCK_ALIGNMENT for shape in shapes]
        *starts, end = accumulate(sizes, initial=0)
        block = cupy.ndarray(end, np.uint8).data
        return [cupy.ndarray(shape, dtype, block + start) for shape, start in zip(shapes, starts, strict=True)]

    def lie_apart(self, array: Array, outs: abc.Sequence[Array]) -> bool:
        """Return True if contiguous arrays surely share no memory and are on one device; False if not sure."""
        device, bounds = array.device.id, []
        for each in (array, *outs):
            start = each.data.ptr
            if each.device.id != device:
                return False
            bounds.append((start, start + each.nbytes))
        bounds.sort()
        return bool(array.flags.c_contiguous) and all(one[1] <= other[0] for one, other in pairwise(bounds))

    def run_planned(
        self,
        planned: abc.Sequence[tuple[PackedLaunch, int]],
        sources: abc.Sequence[int],
        targets: abc.Sequence[int],
        left: Pairs,
        array: Array,
    ) -> None:
        """Launch what was planned on the device of an array; without a copy if kernels are only collected."""
        if _device_count() > 1 and array.device.id != cupy.cuda.runtime.getDevice():
            with array.device:
                self.run_planned(planned, sources, targets, left, array)
        elif _collected.get() is None:
            super().run_planned(planned, sources, targets, left, array)
        else:
            for packed, _ in planned:
                self.kernel(packed)

    def prepare(self, pairs: Pairs) -> Work:
        """Return kernels and launches for pairs on the current device, and the pairs that kernels cannot move."""
        return super().prepare(pairs) if _runs_kernels(cupy.cuda.runtime.getDevice()) else ([], pairs)

    def pack(self, launch: LaunchPlan, parts: abc.Sequence[Part], size: int) -> list[PackedLaunch]:
        """Return the parameters of a launch."""
        return pack(launch, cuda_kernels.layout(index_bits(launch)), CUDA_TUNING)

    def kernel(self, packed: PackedLaunch) -> Any:
        """Return the compiled kernel for the current device; None if kernels are only collected."""
        launch, device, collected = packed.launch, cupy.cuda.runtime.getDevice(), _collected.get()
        wanted = (launch.kind, launch.width, launch.variant, packed.index_bits, packed.capacity, device)
        if collected is None:
            return compiled(*wanted)
        collected[Wanted(*wanted)] = None
        return None

    def launch(self, kernel: Any, ready: ReadyLaunch) -> None:
        """Launch a kernel on the current stream."""
        kernel((ready.packed.blocks,), (CUDA_THREADS,), (_by_value(ready.parameters),))


CUDA_EXECUTOR = CudaExecutor()
EXECUTORS[cupy.ndarray] = CUDA_EXECUTOR


def devices() -> list[str]:
    """Return the names of the CUDA devices that CuPy can use; an empty list without a driver."""
    if not cupy.cuda.is_available():
        return []
    count = cupy.cuda.runtime.getDeviceCount()
    return [str(cupy.cuda.runtime.getDeviceProperties(i)["name"].decode()) for i in range(count)]


def has_array(value: object, depth: int = 3) -> bool:
    """Return whether a value is an array on CUDA, or holds one: the deepest argument is a mapping to lists."""
    if isinstance(value, cupy.ndarray) or (bridge_of(value) is not None and value.is_cuda):  # type: ignore[attr-defined]
        return True
    if isinstance(value, abc.Mapping):
        value = list(value.values())
    is_nested = isinstance(value, abc.Sequence) and not isinstance(value, (str, bytes))
    return depth > 0 and is_nested and any(has_array(item, depth - 1) for item in value)  # type: ignore[attr-defined]


def compile_for(call: abc.Callable[[], object], progress: abc.Callable[[int, int], object] | None) -> list[str]:
    """Compile the kernels that a call needs, which copies nothing then; return the names of the kernels."""
    collected: dict[Wanted, None] = {}
    token = _collected.set(collected)
    try:
        call()
    finally:
        _collected.reset(token)
    return _compile(collected, progress)


def compile_widths(widths: abc.Container[int], progress: abc.Callable[[int, int], object] | None) -> list[str]:
    """Compile all kernels for items of some widths for the current device; return their names."""
    device = cupy.cuda.runtime.getDevice()
    return _compile(cuda_kernels.of_widths(widths, device) if _runs_kernels(device) else (), progress)


def _compile(wanted: abc.Collection[Wanted], progress: abc.Callable[[int, int], object] | None) -> list[str]:
    cuda_kernels.compile_all(wanted, progress)
    return list(dict.fromkeys(one.kernel.name for one in wanted))


def from_host(array: Array, device: int | None = None) -> Array:
    """Return a copy of a NumPy array on a device, by default the current one."""
    with cupy.cuda.Device(device):
        return cupy.asarray(array)


def to_host(array: Array) -> Array:
    """Return a copy of a device's array in NumPy; other arrays unchanged."""
    return cupy.asnumpy(array) if isinstance(array, cupy.ndarray) else array


def synchronize(device: int | None = None) -> None:
    """Wait until a device, by default the current one, has finished all its work."""
    cupy.cuda.Device(device).synchronize()


class _Buffer(threading.local):
    """Parameters of this thread's launch. The driver reads them without Python's lock, and has read them on return."""

    def __init__(self) -> None:
        memory = ctypes.create_string_buffer(1 << 15)
        self.bytes = memoryview(memory).cast("B")
        self.pointer = cupy.cuda.function.CPointer(ctypes.addressof(memory))


_buffer = _Buffer() if cupy.__version__.startswith("14.") else None


def _by_value(parameters: bytes) -> Any:
    """Return the argument by which CuPy passes a struct by value.

    CuPy documents a NumPy array of one item. To find its address costs more than the rest of a launch. CuPy 14 turns
    it into a pointer to the bytes, so that is what this returns; other versions get the documented form.
    """
    if _buffer is None:
        return np.frombuffer(parameters, f"V{len(parameters)}")
    _buffer.bytes[: len(parameters)] = parameters
    return _buffer.pointer


def _runs_kernels(device: int) -> bool:
    """Return whether a device runs the kernels: CUDA devices of compute capability 7.0 and newer do, ROCm's do not."""
    return not cupy.cuda.runtime.is_hip and capability(device) >= _LEAST_CAPABILITY


def _are_on_current_device(pairs: Pairs) -> bool:
    if _device_count() == 1:
        return True
    current, array = cupy.cuda.runtime.getDevice(), None
    for source, _ in pairs:
        if source.array is not array:  # the parts of a split share one array
            array = source.array
            if array.data.device_id != current:
                return False
    return True


def _by_device(pairs: Pairs) -> dict[int, list[tuple[View, View]]]:
    """Return pairs by the device of their arrays."""
    members: dict[int, list[tuple[View, View]]] = {}
    array = None
    for pair in pairs:
        if pair[0].array is not array:  # the parts of a split share one array
            array = pair[0].array
            group = members.setdefault(array.data.device_id, [])
        group.append(pair)
    return members


@cache
def _device_count() -> int:
    return int(cupy.cuda.runtime.getDeviceCount())
