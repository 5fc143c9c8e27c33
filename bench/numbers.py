"""The numbers of a result: medians and speeds by case, width and library; and rows of Markdown tables."""

import json
from collections.abc import Iterable, Iterator, Sequence
from statistics import geometric_mean
from typing import Any

from bench.case import Case
from bench.cases import CASES
from bench.measure import MODES, Timed, quartiles
from bench.runners import OURS, PLAIN

# A speed below this share of another one is outside the noise.
NOISE = 0.95
TITLES = {"into": "Existing outputs", "fresh": "New outputs"}
_SMALL_CASES = {case.name for case in CASES if case.small}
# Its results are views of the input, which cost nothing; so it is not comparable.
VIEWS = "onnx.reference"
HOST_BOUND = "the host took longer to make the calls than the device to run them"

Key = tuple[str, int]
Numbers = dict[str, float]
Table = dict[Key, Numbers]


def cells(case: Case, width: int, rows: Sequence[Timed]) -> Iterator[dict[str, Any]]:
    """Yield what one cell of the table becomes in a result: quartiles of the seconds, and notes, by runner."""
    for mode in MODES:
        found = [row for row in rows if row.mode == mode]
        timed = [row for row in found if row.calls and not row.host_bound]
        seconds = {row.runner: [_short(value) for value in quartiles(row.seconds)] for row in timed}
        notes = {row.runner: row.note or HOST_BOUND for row in found if row.note or row.host_bound}
        yield {"case": case.name, "width": width, "mode": mode, "seconds": seconds, "notes": notes}


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def as_json(result: dict[str, Any]) -> str:
    """Return a result as JSON, with a line per cell."""
    head = json.dumps({name: value for name, value in result.items() if name != "cells"}, indent=1)
    lines = ",\n".join(f"  {json.dumps(cell)}" for cell in result["cells"])
    return f'{head.removesuffix("}").rstrip()},\n "cells": [\n{lines}\n ]\n}}\n'


def seconds_of(result: dict[str, Any], mode: str) -> Table:
    """Return the median seconds by (case, width), then runner."""
    return {
        (cell["case"], cell["width"]): {name: times[1] for name, times in cell["seconds"].items()}
        for cell in result["cells"]
        if cell["mode"] == mode
    }


def speeds_of(result: dict[str, Any], mode: str) -> Table:
    """Return the speed relative to the plain copy, by (case, width) of the large cases, then runner."""
    return {
        key: {name: cell[PLAIN] / seconds for name, seconds in cell.items() if name != PLAIN}
        for key, cell in seconds_of(result, mode).items()
        if PLAIN in cell and key[0] not in _SMALL_CASES
    }


def times_of(result: dict[str, Any], mode: str) -> Table:
    """Return the microseconds per call, by (case, width) of the small cases, then runner."""
    return {
        key: {name: 1e6 * seconds for name, seconds in cell.items()}
        for key, cell in seconds_of(result, mode).items()
        if key[0] in _SMALL_CASES
    }


def by_group(table: Table) -> dict[str, Numbers]:
    """Return the geometric mean per group and runner, for groups that gpuslice has results in.

    A runner has a mean if it has results for at least half of the group.
    """
    groups: dict[str, dict[str, list[float]]] = {}
    group_of = {case.name: case.group for case in CASES}
    for (name, _), cell in table.items():
        for runner, value in cell.items():
            groups.setdefault(group_of[name], {}).setdefault(runner, []).append(value)
    return {
        group: {
            runner: geometric_mean(values) for runner, values in found.items() if 2 * len(values) >= len(found[OURS])
        }
        for group, found in groups.items()
        if OURS in found
    }


def runners_of(tables: Iterable[Table]) -> list[str]:
    """Return the runners that have results, in their order."""
    return list(dict.fromkeys(name for table in tables for cell in table.values() for name in cell))


def line(cells: Iterable[Any]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def table(head: Sequence[str], lines: Iterable[str]) -> str:
    """Return a Markdown table whose columns after the first hold numbers."""
    return "\n".join([line(head), "|---|" + "---:|" * (len(head) - 1), *lines])


def is_behind(cell: Numbers) -> bool:
    """Return whether another library is faster by more than the noise."""
    return cell[OURS] < NOISE * max((speed for name, speed in cell.items() if name != OURS), default=0)
