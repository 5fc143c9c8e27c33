"""CUDA through CuPy, whose only importer this is: import it where CUDA is wanted, never at the top of a module."""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from gpuslice.arrays import Array
from gpuslice.engine import generic
from gpuslice.engine.packing import CUDA_32, CUDA_64, Packed, index_bits, instantiation, pack
from gpuslice.engine.plan import VECTOR, Launch, Part
from gpuslice.engine.prepare import Pairs, by_itemsize, prepare
from gpuslice.engine.trace import Launch as Record
from gpuslice.engine.trace import is_tracing, record_launch

THREADS = 256
_HERE = Path(__file__).parent


def copy(pairs: Pairs) -> None:
    """Copy each source view to its target view, on the array's device and its current stream, without waiting."""
    if cupy.cuda.runtime.is_hip:
        return generic.copy(pairs)  # the kernels are CUDA's
    for size, members in by_itemsize(pairs):
        with members[0][0].array.device:
            prepared, left = prepare(members, size, _pointer, _pack)
            generic.copy(left)
            for packed, parameters, moved in prepared:
                _launch(packed, parameters)
                if is_tracing():
                    record_launch(Record("cuda", packed.launch.name, VECTOR, packed.blocks, moved, moved))
    return None


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


def _launch(packed: Packed, parameters: bytes) -> None:
    launch = packed.launch
    name = instantiation(launch.kind, launch.width, launch.variant, packed.index_bits, packed.capacity)
    kernel = _kernel(name, cupy.cuda.runtime.getDevice())
    # A NumPy array of one item goes by value: nothing is uploaded, and the driver has copied it when this returns.
    kernel((packed.blocks,), (THREADS,), (np.frombuffer(parameters, f"V{len(parameters)}"),))


@cache
def _kernel(name: str, device: int) -> Any:
    """Compile an instantiation for a device on first use. CuPy keeps what it compiled on disk."""
    folder = next(path for path in (_HERE.parent / "kernels", _HERE.parent.parent / "kernels") if path.is_dir())
    # CuPy's cache knows the text of the source alone; the digest makes it see a change in what is included.
    digest = sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.cu*")))).hexdigest()[:16]
    options = ("-std=c++17", f"-I{folder}", f"-DGPUSLICE_DIGEST=0x{digest}")
    source = (folder / "copy.cu").read_text()
    return cupy.RawModule(code=source, options=options, name_expressions=(name,)).get_function(name)


def _pointer(array: Array) -> int:
    address: int = array.data.ptr
    return address


def _pack(launch: Launch, parts: Sequence[Part], moved: int) -> list[Packed]:
    return pack(launch, CUDA_32 if index_bits(launch) == 32 else CUDA_64)


def _name(properties: dict[str, Any]) -> str:
    return str(properties["name"].decode())
