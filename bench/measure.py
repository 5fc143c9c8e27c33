"""Time a case: every runner checked first, then interleaved rounds, so that all meet the same machine."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median, quantiles
from typing import Any

import numpy as np

from bench.cases import Case
from bench.clocks import CudaClock, HostClock
from bench.runner import Call, Runner, Unsupported

MODES = ("into", "fresh")


@dataclass
class Row:
    """What one runner needed for one case.

    Attributes
    ----------
    group, case, runner, device : str
    width : int
        Bytes of an item.
    size : int
        Bytes of the outputs.
    mode : {"into", "fresh"}
        Whether outputs were allocated before.
    seconds : list of float
        One a round.
    note : str
        Why there are none.
    """

    group: str
    case: str
    width: int
    size: int
    runner: str
    device: str
    mode: str
    seconds: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def median(self) -> float:
        """The median, in seconds."""
        return median(self.seconds)

    def as_json(self) -> dict[str, Any]:
        """Give all fields, with median and quartiles."""
        quartiles = quantiles(self.seconds, n=4) if len(self.seconds) > 1 else self.seconds * 3
        shown = {"seconds": self.seconds, "quartiles": quartiles}
        return asdict(self) | {name: [float(f"{value:.4g}") for value in values] for name, values in shown.items()}


def measure(case: Case, width: int, runners: Sequence[Runner], clock: HostClock | CudaClock, rounds: int) -> list[Row]:
    """Time every runner in both modes; those that can't have a row that says why.

    Raises
    ------
    ValueError
        A runner gives other bits than NumPy's view of the source.
    """
    sources = clock.sources(case, width)
    expected = [np.ascontiguousarray(part) for part in case.parts(case.view(_on_host(sources[0])))]
    size = sum(part.nbytes for part in expected)
    rows, timed = [], []
    for runner, mode in ((runner, mode) for runner in runners for mode in MODES):
        row = Row(case.group, case.name, width, size, runner.name, runner.device, mode)
        rows.append(row)
        calls = _calls(row, runner, case, sources, expected)
        if calls:
            timed.append((row, calls, clock.count(calls)))
    for turn in range(rounds):
        for row, calls, count in _rotated(timed, turn):
            row.seconds.append(clock.sample(calls, count))
    return rows


def _calls(row: Row, runner: Runner, case: Case, sources: Sequence[Any], expected: Sequence[np.ndarray]) -> list[Call]:
    row.note = runner.missing() or ""
    if row.note:
        return []
    try:
        calls = [getattr(runner, row.mode)(case, source) for source in sources]
        results = [call() for call in calls]
    except Unsupported as error:
        row.note = str(error)
        return []
    except Exception as error:  # a peer that cannot is a row that says so
        row.note = f"{type(error).__name__}: {str(error).splitlines()[0][:160]}" if str(error) else type(error).__name__
        return []
    if runner.name != "copy":
        for outputs in results:
            _check(runner, case, outputs, expected)
    return calls


def _check(runner: Runner, case: Case, outputs: Sequence[Any], expected: Sequence[np.ndarray]) -> None:
    """Compare every bit."""
    given = [_on_host(output) for output in outputs]
    if len(given) != len(expected) or not all(map(_same_bits, given, expected)):
        raise ValueError(f"{runner.name} gives wrong results for {case.name}")


def _same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    bits = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (left, right)]
    return np.array_equal(*bits)


def _on_host(output: Any) -> np.ndarray:
    for name in ("get", "cpu"):  # CuPy, PyTorch
        if hasattr(output, name) and not isinstance(output, np.ndarray):
            output = getattr(output, name)()
    return np.asarray(output)


def _rotated(timed: Sequence[Any], turn: int) -> Iterator[Any]:
    start = turn % max(1, len(timed))
    yield from timed[start:]
    yield from timed[:start]
