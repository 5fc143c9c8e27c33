"""Devices by name, as models and the command line know them: CPU is NumPy, CUDA is CuPy."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from gpuslice.sequence import Sequence

NAMES = ("CPU", "CUDA")


def is_available(device: str) -> bool:
    """Tell whether a device can be had: "CPU" always, "CUDA" where CuPy finds one."""
    return device == "CPU" or (device == "CUDA" and bool(list_cuda()))


def list_cuda() -> list[str]:
    """Name the CUDA devices; none where CuPy or a driver is missing."""
    try:
        from gpuslice.engine import cuda
    except ImportError:
        return []
    return cuda.devices()


def check(device: str) -> None:
    """Refuse a device that cannot be had.

    Raises
    ------
    ValueError
        An unknown name, or no such device here.
    """
    if device not in NAMES:
        raise ValueError(f"device must be one of {', '.join(NAMES)}; got {device!r}")
    if not is_available(device):
        raise ValueError("device CUDA needs an NVIDIA GPU, its driver and CuPy: pip install 'gpuslice[cuda13]'")


def place(value: Any, device: str) -> Any:
    """Copy NumPy arrays to a device, alone or in a sequence; what is not NumPy's is given as it is."""
    if device == "CPU" or value is None:
        return value
    from gpuslice.engine import cuda

    if isinstance(value, np.ndarray):
        return cuda.from_host(value)
    if isinstance(value, (Sequence, list, tuple)):
        placed = [place(item, device) for item in value]
        return Sequence(placed, value.dtype) if isinstance(value, Sequence) else placed
    return value


def to_host(values: Iterable[Any]) -> list[Any]:
    """Copy arrays of a device to NumPy, alone or in sequences."""
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
    """Wait until a device has done all its work."""
    if device == "CUDA":
        from gpuslice.engine import cuda

        cuda.synchronize()
