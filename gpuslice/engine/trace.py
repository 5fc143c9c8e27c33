"""What the engine did: launches and allocations, collected while a ``with trace()`` block is open."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Launch:
    """One launch, or one assignment of the generic executor.

    Attributes
    ----------
    executor : str
        Who carried it out.
    kernel : str
        Its name there.
    vector_bytes, grid : int or None
        Width of an access in bytes, and blocks; None where the executor has no such thing.
    bytes_read, bytes_written : int
        Each wanted item counted once, times its size.
    """

    executor: str
    kernel: str
    vector_bytes: int | None
    grid: int | None
    bytes_read: int
    bytes_written: int


@dataclass
class Trace:
    """What happened in a ``with trace()`` block.

    Attributes
    ----------
    launches : list of Launch
    allocations : list of int
        Bytes, a piece.
    """

    launches: list[Launch] = field(default_factory=list)
    allocations: list[int] = field(default_factory=list)


_open: ContextVar[tuple[Trace, ...]] = ContextVar("gpuslice_traces", default=())


@contextmanager
def trace() -> Iterator[Trace]:
    """Collect the launches and allocations of this context (thread or task) until the block ends.

    Yields
    ------
    Trace
        Filled as calls are made. Blocks may nest; each sees all that happens inside it.

    Examples
    --------
    >>> import numpy as np, gpuslice as gs
    >>> with gs.trace() as t:
    ...     y = gs.slice(np.arange(6, dtype=np.int8), [-1], [-7], steps=[-2])
    >>> len(t.launches), t.launches[0].bytes_written, t.allocations
    (1, 3, [3])
    """
    collected = Trace()
    token = _open.set((*_open.get(), collected))
    try:
        yield collected
    finally:
        _open.reset(token)


def is_tracing() -> bool:
    """Tell whether anyone listens, so that nothing is counted in vain."""
    return bool(_open.get())


def record_launch(launch: Launch) -> None:
    """Add a launch to every open trace."""
    for collected in _open.get():
        collected.launches.append(launch)


def record_allocation(size: int) -> None:
    """Add an allocation of ``size`` bytes to every open trace."""
    for collected in _open.get():
        collected.allocations.append(size)
