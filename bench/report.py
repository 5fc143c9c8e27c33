"""Results as JSON and as Markdown tables: speeds relative to a plain copy, a row per case and width."""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from statistics import geometric_mean
from typing import Any

from bench import limits
from bench.cases import CASES, Case
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
    """Return the geometric mean per group and runner, for groups that gpuslice has results in."""
    groups: dict[str, dict[str, list[float]]] = {}
    group_of = {case.name: case.group for case in CASES}
    for (name, _), cell in table.items():
        for runner, value in cell.items():
            groups.setdefault(group_of[name], {}).setdefault(runner, []).append(value)
    return {
        group: {runner: geometric_mean(values) for runner, values in found.items()}
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


def progress(number: int, count: int, text: str, began: float) -> None:
    """Show on stderr how far a run is: a line that is overwritten, or now and then one for a log."""
    seconds = time.perf_counter() - began
    if sys.stderr.isatty():
        done = 30 * number // count
        bar = f"[{'#' * done}{'.' * (30 - done)}] {number}/{count} {seconds:4.0f} s"
        print(f"\r{bar}  {text:<50}", end="\n" if number == count else "", file=sys.stderr)
    elif number % 10 == 0 or number == count:
        print(f"{number}/{count} {seconds:.0f} s  {text}", file=sys.stderr)


def summary(result: dict[str, Any]) -> str:
    """Return a short Markdown table per mode for large arrays, and one for small ones."""
    parts = []
    for make, what in [
        (speeds_of, "large arrays: speed relative to a plain copy of as many bytes (1.00 is as fast, more is faster)"),
        (times_of, "small arrays: microseconds per call (less is faster)"),
    ]:
        for mode, title in TITLES.items():
            groups = by_group(make(result, mode))
            names = [name for name in runners_of([make(result, mode)]) if name != VIEWS]
            lines = [line([group, *(_number(cell, name) for name in names)]) for group, cell in groups.items()]
            if lines:
                parts += [f"{title}, {what}:", table(["access", *names], lines)]
    return "\n\n".join(parts)


def markdown(result: dict[str, Any]) -> str:
    """Return the whole report."""
    subject = f"CUDA: {result['gpu']['name']}" if result["device"] == "cuda" else "CPU, one thread"
    parts = [f"# {subject}", _machine(result), "## Summary", summary(result), "## Every case", _reading()]
    for mode, title in TITLES.items():
        parts.append(f"### {title}")
        parts += list(_tables(result, mode))
    parts += [_reasons(result), _absent(result)]
    return "\n\n".join(parts) + "\n"


def _machine(result: dict[str, Any]) -> str:
    about = result["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    gpu = f" {result['gpu']}." if "gpu" in result else ""
    return (
        f"{about['date']}, commit {about['commit'] or 'unknown'}, {about['processor']}, Python {about['python']}, "
        f"{packages}. Host kernels: {about['kernels']}.{gpu}"
    )


def _reading() -> str:
    return (
        "Large arrays: speed relative to a plain copy of as many bytes in the same run. 1.00 is as fast as that copy. "
        "Small arrays: microseconds per call. Each number is a median of rounds in which all libraries take turns. "
        f"**Bold**: gpuslice is below its target (for new outputs: below {NOISE} of NumPy). _Italic_: gpuslice is "
        f"below {NOISE} of the fastest other library. {VIEWS} returns views, which are made dense here; a view that is "
        "already dense costs it nothing."
    )


def _tables(result: dict[str, Any], mode: str) -> Iterator[str]:
    speeds, times = speeds_of(result, mode), times_of(result, mode)
    targets = targets_of(result, mode, speeds)
    for found, what in [(speeds, "case"), (times, "case, microseconds")]:
        names = runners_of([found])
        lines = []
        for key, cell in found.items():
            numbers = [_number(cell, name) for name in names]
            if found is speeds and OURS in cell:
                numbers[names.index(OURS)] = _marked(cell, targets.get(key, 0))
            lines.append(line([*key, *numbers]))
        if lines:
            yield table([what, "bytes per item", *names], lines)


def _number(cell: Numbers, name: str) -> str:
    return f"{cell[name]:.2f}" if name in cell else "-"


def _marked(cell: Numbers, target: float) -> str:
    text = _number(cell, OURS)
    if cell[OURS] < target:
        text = f"**{text}**"
    return f"_{text}_" if is_behind(cell) else text


def targets_of(result: dict[str, Any], mode: str, speeds: Table) -> dict[Key, float]:
    """Return the targets on a CPU by (case, width); for new outputs they are NumPy's speeds less the noise."""
    if result["device"] != "cpu":
        return {}
    if mode == "fresh":
        return {key: NOISE * cell["NumPy"] for key, cell in speeds.items() if "NumPy" in cell}
    return {(case.name, width): least for case in CASES for width, least in (case.targets or {}).items()}


def is_behind(cell: Numbers) -> bool:
    """Return whether another library is faster by more than the noise."""
    return cell[OURS] < NOISE * max((speed for name, speed in cell.items() if name != OURS), default=0)


def _reasons(result: dict[str, Any]) -> str:
    """Say what limits each case that has a marked cell."""
    marked: dict[str, dict[str, list[str]]] = {mode: {} for mode in MODES}
    for mode in MODES:
        speeds = speeds_of(result, mode)
        targets = targets_of(result, mode, speeds)
        for key, cell in speeds.items():
            if OURS in cell and (cell[OURS] < targets.get(key, 0) or is_behind(cell)):
                marked[mode].setdefault(key[0], []).append(f"{key[1]} B")
    reasons = {case.name: case.limit for case in CASES}
    lines = [
        f"- {name} ({', '.join(widths)}): {reasons.get(name) or 'no reason is known yet.'}"
        for name, widths in marked["into"].items()
    ]
    if marked["fresh"]:
        fresh = "; ".join(f"{name} ({', '.join(widths)})" for name, widths in marked["fresh"].items())
        lines.append(f"- New outputs, {fresh}: {limits.PAGES}")
    return "## Why marked cells fall short\n\n" + ("\n".join(lines) or "No cell is marked.")


def _absent(result: dict[str, Any]) -> str:
    notes: dict[str, list[str]] = {}
    for cell in result["cells"]:
        for runner, note in cell["notes"].items():
            notes.setdefault(f"{runner}: {note}", []).append(f"{cell['case']} ({cell['width']} B)")
    lines = [f"- {note}: {len(names)} cells, such as {names[0]}" for note, names in notes.items()]
    return "## Not measured\n\n" + ("\n".join(lines) or "All was measured.")
