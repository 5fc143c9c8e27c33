"""How much of a long command is done: a bar on a terminal if tqdm is installed, else a line from time to time."""

import sys
import time
from types import TracebackType
from typing import Any, Self

from gpuslice.cli.text import printable, report

_PATIENCE = 2.0  # seconds; what takes less says nothing
_BETWEEN_LINES = 10.0
_MIB = 1 << 20


class Progress:
    """A context manager that shows on standard error how much is done.

    Parameters
    ----------
    label : str
        What is done, such as "writing y.npy".
    total : int
        Bytes, or the number of things that ``unit`` names.
    unit : str

    Attributes
    ----------
    done, total : int
    """

    def __init__(self, label: str, total: int, unit: str = "B") -> None:
        self._label, self._unit = printable(label), unit
        self.done: int = 0
        self.total: int = total
        self._next = time.monotonic() + _PATIENCE
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()

    def add(self, count: int) -> None:
        """Say that so much more is done."""
        self.done += count
        if self._bar is not None:
            self._bar.update(count)
        elif time.monotonic() >= self._next and self.done < self.total:
            self._bar = _new_bar(self._label, self.done, self.total, self._unit)
            if self._bar is None:
                self._next = time.monotonic() + _BETWEEN_LINES
                report(f"{self._label}: {self._line()}")

    def _line(self) -> str:
        if self._unit != "B":
            return f"{self.done} of {self.total} {self._unit}"
        return f"{self.done / _MIB:.0f} of {self.total / _MIB:.0f} MiB"


def _new_bar(label: str, done: int, total: int, unit: str) -> Any:
    """Return a bar of tqdm; None if standard error is no terminal, or tqdm is not installed."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm  # not before it is needed: a small command should not import it
    except ImportError:
        return None
    is_bytes = unit == "B"
    options = {"unit": unit, "unit_scale": is_bytes, "unit_divisor": 1024, "miniters": 1, "leave": False}
    return tqdm(desc=label, initial=done, total=total, **options)
