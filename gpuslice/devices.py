"""Devices by name, for models and the command line: CPU means NumPy, CUDA means CuPy, CUDA:1 its second device."""

import re
from collections import abc
from typing import Any

import numpy as np

from gpuslice.errors import describe
from gpuslice.sequence import Sequence

NAMES = ("CPU", "CUDA")

_NAME = re.compile(r"(CPU|CUDA)(?::([0-9]{1,9}))?")


def is_available(device: object) -> bool:
    """Return whether a device is available: "CPU" and "CPU:0" always, "CUDA" and "CUDA:N" if CuPy finds it."""
    found = _NAME.fullmatch(device) if isinstance(device, str) else None
    return found is not None and int(found[2] or 0) < _count(found[1])


def list_cuda() -> list[str]:
    """Return the names of the CUDA devices; an empty list without CuPy or a driver."""
    try:
        from gpuslice.engine import cuda
    except ImportError:
        return []
    return cuda.devices()


def check(device: object) -> None:
    """Raise an error if a device is not available.

    Raises
    ------
    ValueError
        The name is unknown, or there is no such device.
    """
    found = _NAME.fullmatch(device) if isinstance(device, str) else None
    if found is None:
        raise ValueError(
            f"device must be one of {', '.join(NAMES)}, or with a number as in CUDA:1; got {describe(device)}"
        )
    count = _count(found[1])
    if not count:
        raise ValueError(f"device {device} needs an NVIDIA GPU, its driver and CuPy: pip install 'gpuslice[cuda13]'")
    if int(found[2] or 0) >= count:
        raise ValueError(f"device must be in {found[1]}:0 to {found[1]}:{count - 1}; got {describe(device)}")


def place(value: Any, device: str) -> Any:
    """Return a value with its NumPy arrays, alone or in a sequence, copied to a device.

    Other arrays are unchanged. So are those of an element type that CuPy does not have, such as text.
    """
    if _is_cpu(device) or value is None:
        return value
    from gpuslice.engine import cuda

    if isinstance(value, np.ndarray):
        try:
            return cuda.from_host(value, _number(device))
        except ValueError:  # Unsupported dtype
            return value
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
    if not _is_cpu(device):
        from gpuslice.engine import cuda

        cuda.synchronize(_number(device))


def _is_cpu(device: str) -> bool:
    return device.startswith("CPU")


def _number(device: str) -> int | None:
    """Return the number in a device's name; None, the current device, if it has none."""
    number = device.partition(":")[2]
    return int(number) if number else None


def _count(kind: str) -> int:
    return 1 if kind == "CPU" else len(list_cuda())
