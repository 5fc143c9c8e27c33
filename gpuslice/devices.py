"""Devices by name, for models and the command line: CPU means NumPy, CUDA means CuPy."""

from collections import abc
from typing import Any

import numpy as np

from gpuslice.sequence import Sequence

NAMES = ("CPU", "CUDA")


def is_available(device: str) -> bool:
    """Return whether a device is available: "CPU" always, "CUDA" if CuPy finds one."""
    return device == "CPU" or (device == "CUDA" and bool(list_cuda()))


def list_cuda() -> list[str]:
    """Return the names of the CUDA devices; an empty list without CuPy or a driver."""
    try:
        from gpuslice.engine import cuda
    except ImportError:
        return []
    return cuda.devices()


def check(device: str) -> None:
    """Raise an error if a device is not available.

    Raises
    ------
    ValueError
        The name is unknown, or there is no such device.
    """
    if device not in NAMES:
        raise ValueError(f"device must be one of {', '.join(NAMES)}; got {device!r}")
    if not is_available(device):
        raise ValueError("device CUDA needs an NVIDIA GPU, its driver and CuPy: pip install 'gpuslice[cuda13]'")


def place(value: Any, device: str) -> Any:
    """Return a value with its NumPy arrays, alone or in a sequence, copied to a device. Other arrays are unchanged."""
    if device == "CPU" or value is None:
        return value
    from gpuslice.engine import cuda

    if isinstance(value, np.ndarray):
        return cuda.from_host(value)
    if isinstance(value, (Sequence, list, tuple)):
        placed = [place(item, device) for item in value]
        return Sequence(placed, value.dtype) if isinstance(value, Sequence) else placed
    return value


def to_host(values: abc.Iterable[Any]) -> list[Any]:
    """Return values with the arrays of a device, alone or in sequences, copied to NumPy."""
    values = list(values)
    if not list_cuda():
        return values
    from gpuslice.engine import cuda

    return [
        Sequence([cuda.to_host(item) for item in value], value.dtype)
        if isinstance(value, Sequence)
        else cuda.to_host(value)
        for value in values
    ]


def synchronize(device: str) -> None:
    """Wait until a device has finished all its work."""
    if device == "CUDA":
        from gpuslice.engine import cuda

        cuda.synchronize()
