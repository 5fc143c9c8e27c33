"""What the engine did: launches and allocations, collected inside a ``with trace()`` block."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from gpuslice.display import MOST_ROWS, Shape, html_table, shapes_text


@dataclass(frozen=True, repr=False)
class Launch:
    """One launch, or one assignment of the generic executor.

    Attributes
    ----------
    executor : str
        What copied: "host", "cuda", "numpy" or "generic".
    kernel : str
        Its name there, such as "rows<4, -1>".
    vector_bytes, grid : int or None
        Bytes of a vector, the widest access of a kernel, and number of blocks; None for "numpy" and "generic".
    bytes_read, bytes_written : int
        The bytes of all copied items. An item that is read several times counts once.
    shapes : tuple of tuple
        The shape of each view that was copied.
    """

    executor: str
    kernel: str
    vector_bytes: int | None
    grid: int | None
    bytes_read: int
    bytes_written: int
    shapes: tuple[Shape, ...] = ()

    def __repr__(self) -> str:
        return f"Launch({self.executor} {self.kernel}, {shapes_text(self.shapes)}, {self.bytes_written} bytes written)"

    def _cells(self) -> tuple[object, ...]:
        """Return the fields as a table shows them."""
        vector_bytes, grid = ("-" if number is None else number for number in (self.vector_bytes, self.grid))
        shapes = shapes_text(self.shapes)
        return self.executor, self.kernel, shapes, vector_bytes, grid, self.bytes_read, self.bytes_written


@dataclass(repr=False)
class Trace:
    """What happened in a ``with trace()`` block.

    Attributes
    ----------
    launches : list of Launch
    allocations : list of int
        Sizes in bytes.
    """

    launches: list[Launch] = field(default_factory=list)
    allocations: list[int] = field(default_factory=list)

    def __repr__(self) -> str:
        shown = [f"    {launch!r}\n" for launch in self.launches[:MOST_ROWS]]
        more = len(self.launches) - len(shown)
        shown += [f"    {more} more\n"] if more > 0 else []
        return f"Trace({self._summary()}" + (f":\n{''.join(shown)})" if shown else ")")

    def _repr_html_(self) -> str:
        header = ("executor", "kernel", "shapes", "vector bytes", "grid", "bytes read", "bytes written")
        rows = [launch._cells() for launch in self.launches[:MOST_ROWS]]
        return html_table(f"Trace: {self._summary()}", header, rows, len(self.launches) - len(rows))

    def _summary(self) -> str:
        launches, allocations = len(self.launches), len(self.allocations)
        return (
            f"{launches} launch{'' if launches == 1 else 'es'}, "
            f"{sum(launch.bytes_written for launch in self.launches)} bytes written, "
            f"{allocations} allocation{'' if allocations == 1 else 's'} of {sum(self.allocations)} bytes"
        )


_open: ContextVar[tuple[Trace, ...]] = ContextVar("gpuslice_traces", default=())


@contextmanager
def trace() -> Iterator[Trace]:
    """Collect the launches and allocations of this context (thread or task) until the block ends.

    Yields
    ------
    Trace
        Filled as calls are made. Blocks can be nested; each sees all that happens inside it.

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
    """Return whether a trace is open in this context."""
    return bool(_open.get())


def record_launch(launch: Launch) -> None:
    """Add a launch to every open trace."""
    for collected in _open.get():
        collected.launches.append(launch)


def record_allocation(size: int) -> None:
    """Add an allocation of ``size`` bytes to every open trace."""
    for collected in _open.get():
        collected.allocations.append(size)
