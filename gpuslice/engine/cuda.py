"""The executor for CuPy arrays: CUDA kernels, compiled by NVRTC. The only importer of CuPy.

Import it only when CUDA is wanted, never at the top of a module. A launch goes to the current stream of the array's
device, with all its parameters by value: nothing is uploaded, nothing is waited for, nothing is allocated. Once its
kernel is compiled, which the first call does, a launch may be captured into a CUDA graph.
"""

import ctypes
import threading
from collections import abc
from contextlib import contextmanager
from functools import cache
from typing import Any

import cupy
import numpy as np

from gpuslice.engine.kernel_executor import KernelExecutor, Pairs, Prepared, ReadyLaunch
from gpuslice.engine.plan import (
    CUDA_32,
    CUDA_64,
    CUDA_THREADS,
    CUDA_TUNING,
    LaunchPlan,
    PackedLaunch,
    Part,
    index_bits,
    instantiation,
    kernel_sources,
    pack,
)
from gpuslice.engine.views import View
from gpuslice.libraries import Array

# __grid_constant__, which keeps parameters where they are, needs it.
_LEAST_CAPABILITY = 70
# Parameters of 32,764 bytes need CUDA 12.1, in the driver and in NVRTC; before, a launch took 4,096.
_LARGE_PARAMETERS = 12010


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
        if _device_count() == 1:
            super().copy(pairs)
            return
        prepared = []
        for device, members in _by_device(pairs).items():
            with cupy.cuda.Device(device):
                prepared.append((device, self.prepare(members)))
        for device, work in prepared:
            with cupy.cuda.Device(device):
                self.run(*work)

    def prepare(self, pairs: Pairs) -> Prepared:
        """Return kernels and launches for pairs on the current device, and the pairs that kernels cannot move."""
        return super().prepare(pairs) if _runs_kernels(cupy.cuda.runtime.getDevice()) else ([], pairs)

    def pack(self, launch: LaunchPlan, parts: abc.Sequence[Part], size: int) -> list[PackedLaunch]:
        """Return the parameters of a launch."""
        layout = CUDA_32 if index_bits(launch) == 32 else CUDA_64
        if _cuda_version() < _LARGE_PARAMETERS:
            layout = layout.in_small_parameters()
        return pack(launch, layout, CUDA_TUNING)

    def kernel(self, packed: PackedLaunch) -> Any:
        """Return the compiled kernel for the current device."""
        launch, device = packed.launch, cupy.cuda.runtime.getDevice()
        return _kernel(launch.kind, launch.width, launch.variant, packed.index_bits, packed.capacity, device)

    def launch(self, kernel: Any, ready: ReadyLaunch) -> None:
        """Launch a kernel on the current stream."""
        kernel((ready.packed.blocks,), (CUDA_THREADS,), (_by_value(ready.parameters),))


CUDA_EXECUTOR = CudaExecutor()


def devices() -> list[str]:
    """Return the names of the CUDA devices that CuPy can use; an empty list without a driver."""
    if not cupy.cuda.is_available():
        return []
    count = cupy.cuda.runtime.getDeviceCount()
    return [str(cupy.cuda.runtime.getDeviceProperties(i)["name"].decode()) for i in range(count)]


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


@cache
def _kernel(kind: str, width: int, variant: int, bits: int, capacity: int, device: int) -> Any:
    """Return an instantiation for the current device, compiled on first use. CuPy keeps compiled code on disk."""
    name = instantiation(kind, width, variant, bits, capacity)
    folder = kernel_sources.folder()
    # CuPy's cache key has the text of the source alone; the digest makes it see a change in an included file.
    options = ("-std=c++17", f"-I{folder}", f"-DGPUSLICE_DIGEST=0x{kernel_sources.digest()}")
    source = (folder / "copy.cu").read_text()
    with _nvrtc(f"kernel {name} for device {device}"):
        module = cupy.RawModule(code=source, options=options, name_expressions=(name,))
        return module.get_function(name).kernel  # this device's own, without a look-up per launch


@contextmanager
def _nvrtc(wanted: str) -> abc.Iterator[None]:
    """Say what was wanted of NVRTC if CuPy fails on the way to it. Its versions fail in different ways."""
    try:
        yield
    except cupy.cuda.compiler.CompileException as error:
        raise RuntimeError(f"CUDA {wanted} does not compile: {error}") from error
    except (ImportError, OSError, RuntimeError, AssertionError) as error:
        raise RuntimeError(
            f"CUDA {wanted} cannot be compiled. NVRTC or a part of it may be missing: pip install 'gpuslice[cuda13]', "
            f"or 'gpuslice[cuda12]' for CUDA 12. CuPy says: {error}"
        ) from error


def _runs_kernels(device: int) -> bool:
    """Return whether a device runs the kernels: CUDA devices of compute capability 7.0 and newer do, ROCm's do not."""
    return not cupy.cuda.runtime.is_hip and _capability(device) >= _LEAST_CAPABILITY


def _by_device(pairs: Pairs) -> dict[int, list[tuple[View, View]]]:
    """Return pairs by the device of their arrays."""
    members: dict[int, list[tuple[View, View]]] = {}
    array = None
    for pair in pairs:
        if pair[0].array is not array:  # the parts of a split share one array
            array = pair[0].array
            group = members.setdefault(array.device.id, [])
        group.append(pair)
    return members


@cache
def _device_count() -> int:
    return int(cupy.cuda.runtime.getDeviceCount())


@cache
def _capability(device: int) -> int:
    return int(cupy.cuda.Device(device).compute_capability)


@cache
def _cuda_version() -> int:
    """Return the newest version, such as 13020, that both the driver and NVRTC have."""
    with _nvrtc("kernels"):
        major, minor = cupy.cuda.nvrtc.getVersion()
    return min(int(cupy.cuda.runtime.driverGetVersion()), int(major) * 1000 + int(minor) * 10)
