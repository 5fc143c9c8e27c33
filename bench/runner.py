"""What a runner is: a library on a device that does a case's work."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.cases import Case

# Does the work once; gives the outputs, which are freed after the clock has stopped.
Call = Callable[[], Sequence[Any]]
# Makes the call for a source array that is on the device.
Maker = Callable[[Case, Any], Call]


class Unsupported(Exception):
    """A peer has no way to do this; the message says why."""


@dataclass(frozen=True)
class Runner:
    """A library on a device.

    Attributes
    ----------
    name : str
    device : {"cpu", "cuda"}
    packages : tuple of str
        Modules that must be there.
    into, fresh : callable
        Make the call that writes to arrays allocated before, and the one that allocates its results.
    """

    name: str
    device: str
    packages: tuple[str, ...]
    into: Maker
    fresh: Maker

    def missing(self) -> str | None:
        """Say which packages are not installed, if any."""
        names = [name for name in self.packages if not _has(name)]
        return f"not installed: {', '.join(names)}" if names else None


def _has(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def outputs_like(case: Case, x: Any) -> list[Any]:
    """Allocate the outputs of a case in the library of its source, and touch every page of them."""
    shapes = [part.shape for part in case.parts(case.view(np.broadcast_to(np.uint8(), x.shape)))]
    if isinstance(x, np.ndarray):
        return [np.full(shape, 0, x.dtype) for shape in shapes]
    import cupy

    return [cupy.zeros(shape, x.dtype) for shape in shapes]


def bounds(index: Sequence[slice], shape: Sequence[int], ends: Sequence[int] | None = None) -> tuple[list[int], ...]:
    """Give ONNX's starts, ends, axes and steps for an index; ``ends`` replaces the ends."""
    axes = [axis for axis, one in enumerate(index) if one != slice(None)]
    places = [index[axis].indices(shape[axis]) for axis in axes]
    starts = [start for start, _, _ in places]
    # NumPy says -1 where a backward slice goes down to item 0, which ONNX counts from the end.
    given = [stop if stop >= 0 else -shape[axis] - 1 for axis, (_, stop, _) in zip(axes, places, strict=True)]
    return starts, list(ends or given), axes, [step for _, _, step in places]
