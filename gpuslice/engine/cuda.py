"""CUDA through CuPy, whose only importer this is: import it where CUDA is wanted, never at the top of a module.

A launch goes to the current stream of the array's device, with everything it needs by value: nothing is uploaded,
nothing is waited for, nothing is allocated. Once its kernel is compiled, which the first call does, it may be captured
into a CUDA graph.
"""

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from gpuslice.arrays import Array
from gpuslice.engine import generic
from gpuslice.engine.packing import CUDA_32, CUDA_64, Dialect, Packed, index_bits, instantiation, pack
from gpuslice.engine.plan import VECTOR, Launch, Part
from gpuslice.engine.prepare import Pairs, by_itemsize, prepare
from gpuslice.engine.trace import Launch as Record
from gpuslice.engine.trace import is_tracing, record_launch

THREADS = 256
_HERE = Path(__file__).parent
# __grid_constant__, which keeps parameters where they are, needs it.
_LEAST_CAPABILITY = 70
# Parameters of 32,764 bytes need CUDA 12.1, in the driver and in NVRTC; before, a launch took 4,096.
_LARGE_PARAMETERS = 12010


def copy(pairs: Pairs) -> None:
    """Copy each source view to its target view, on the array's device and its current stream, without waiting.

    Raises
    ------
    RuntimeError
        A kernel cannot be compiled; nothing is copied then.
    """
    alike = [pair for pair in pairs if pair[0].array.dtype == pair[1].array.dtype]
    generic.copy([pair for pair in pairs if pair[0].array.dtype != pair[1].array.dtype])
    for size, members in by_itemsize(alike):
        with members[0][0].array.device:
            device = cupy.cuda.runtime.getDevice()
            if not _takes_kernels(device):
                generic.copy(members)
                continue
            packer = _pack if _cuda_version() >= _LARGE_PARAMETERS else _pack_small
            prepared, left = prepare(members, size, _pointer, packer)
            # All kernels before the first launch, so that one that does not compile leaves every target as it was.
            kernels = [_kernel_of(packed, device) for packed, _, _ in prepared]
            generic.copy(left)
            for kernel, (packed, parameters, moved) in zip(kernels, prepared, strict=True):
                kernel((packed.blocks,), (THREADS,), (_by_value(parameters),))
                if is_tracing():
                    record_launch(Record("cuda", packed.launch.name, VECTOR, packed.blocks, moved, moved))


def devices() -> list[str]:
    """Name the CUDA devices that CuPy can use; none where there is no driver."""
    if not cupy.cuda.is_available():
        return []
    count = cupy.cuda.runtime.getDeviceCount()
    return [_name(cupy.cuda.runtime.getDeviceProperties(i)) for i in range(count)]


def from_host(array: Array) -> Array:
    """Copy a NumPy array to the current device."""
    return cupy.asarray(array)


def to_host(array: Array) -> Array:
    """Copy an array of a device to NumPy; others are given as they are."""
    return cupy.asnumpy(array) if isinstance(array, cupy.ndarray) else array


def synchronize() -> None:
    """Wait until the current device has done all its work."""
    cupy.cuda.Device().synchronize()


class _Buffer(threading.local):
    """Parameters of this thread's launch: the driver reads them without Python's lock, and is done on return."""

    def __init__(self) -> None:
        memory = ctypes.create_string_buffer(1 << 15)
        self.bytes = memoryview(memory).cast("B")
        self.pointer = cupy.cuda.function.CPointer(ctypes.addressof(memory))


_buffer = _Buffer() if cupy.__version__.startswith("14.") else None


def _by_value(parameters: bytes) -> Any:
    """Give the argument by which CuPy passes a struct by value.

    CuPy documents a NumPy array of one item, whose address costs more than all the rest of a launch to find. A pointer
    to the bytes is what CuPy 14 makes of it; no other version is trusted to take one.
    """
    if _buffer is None:
        return np.frombuffer(parameters, f"V{len(parameters)}")
    _buffer.bytes[: len(parameters)] = parameters
    return _buffer.pointer


def _kernel_of(packed: Packed, device: int) -> Any:
    launch = packed.launch
    return _kernel(launch.kind, launch.width, launch.variant, packed.index_bits, packed.capacity, device)


@cache
def _kernel(kind: str, width: int, variant: int, bits: int, capacity: int, device: int) -> Any:
    """Compile an instantiation for the current device on first use. CuPy keeps what it compiled on disk."""
    name = instantiation(kind, width, variant, bits, capacity)
    folder = next(path for path in (_HERE.parent / "kernels", _HERE.parent.parent / "kernels") if path.is_dir())
    # CuPy's cache knows the text of the source alone; the digest makes it see a change in what is included.
    digest = sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.cu*")))).hexdigest()[:16]
    options = ("-std=c++17", f"-I{folder}", f"-DGPUSLICE_DIGEST=0x{digest}")
    source = (folder / "copy.cu").read_text()
    with _nvrtc(f"kernel {name} for device {device}"):
        module = cupy.RawModule(code=source, options=options, name_expressions=(name,))
        return module.get_function(name).kernel  # this device's own, without a look-up at each launch


@contextmanager
def _nvrtc(wanted: str) -> Iterator[None]:
    """Say what was wanted of NVRTC where CuPy fails on the way to it, each of its versions in a way of its own."""
    try:
        yield
    except cupy.cuda.compiler.CompileException as error:
        raise RuntimeError(f"CUDA {wanted} does not compile: {error}") from error
    except (ImportError, OSError, RuntimeError, AssertionError) as error:
        raise RuntimeError(
            f"CUDA {wanted} cannot be compiled. NVRTC or a part of it may be missing: pip install 'gpuslice[cuda13]', "
            f"or 'gpuslice[cuda12]' for CUDA 12. CuPy says: {error}"
        ) from error


def _takes_kernels(device: int) -> bool:
    """Tell whether the kernels run on a device: CUDA's of compute capability 7.0 and newer, not ROCm's."""
    return not cupy.cuda.runtime.is_hip and _capability(device) >= _LEAST_CAPABILITY


@cache
def _capability(device: int) -> int:
    return int(cupy.cuda.Device(device).compute_capability)


@cache
def _cuda_version() -> int:
    """Give the version, such as 13020, that both the driver and NVRTC have."""
    with _nvrtc("kernels"):
        major, minor = cupy.cuda.nvrtc.getVersion()
    return min(int(cupy.cuda.runtime.driverGetVersion()), int(major) * 1000 + int(minor) * 10)


def _pointer(array: Array) -> int:
    address: int = array.data.ptr
    return address


def _pack(launch: Launch, parts: Sequence[Part], moved: int) -> list[Packed]:
    return pack(launch, _dialect(launch))


def _pack_small(launch: Launch, parts: Sequence[Part], moved: int) -> list[Packed]:
    return pack(launch, _dialect(launch).in_small_parameters())


def _dialect(launch: Launch) -> Dialect:
    return CUDA_32 if index_bits(launch) == 32 else CUDA_64


def _name(properties: dict[str, Any]) -> str:
    return str(properties["name"].decode())
