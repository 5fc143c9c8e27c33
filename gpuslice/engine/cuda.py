"""CUDA through CuPy, whose only importer this is: import it where CUDA is wanted, never at the top of a module."""

from typing import Any

import cupy

from gpuslice.arrays import Array


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


def _name(properties: dict[str, Any]) -> str:
    return str(properties["name"].decode())


def synchronize() -> None:
    """Wait until the current device has done all its work."""
    cupy.cuda.Device().synchronize()
