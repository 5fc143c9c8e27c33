"""Time two commits of gpuslice in one run, alternately and never both at once."""

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from bench.case import SMALL
from bench.cases import CASES
from bench.machine import commit, processor
from bench.measure import quartiles
from bench.numbers import TITLES, line, table
from bench.progress import progress
from bench.sides import EXTRAS, Side, git, install

_MEBIBYTES, _ROUNDS = 64, 20
_QUICK_MEBIBYTES, _QUICK_WIDTHS, _QUICK_ROUNDS = 16, (1, 4), 10
_SMALL_BYTES = 1 << 14
# A cell is outside the noise if its ratio differs from 1 by more than this and both quartiles are on that side of 1.
_NOISE = 0.03
# Cells outside the noise are measured again, and so are those whose ratio differs from 1 by more than this.
_FAR = 0.05
_RERUNS = 2


@dataclass
class Pair:
    """A cell of the table in one mode, timed on both sides.

    Attributes
    ----------
    case : str
    width, size : int
        Bytes per item, and of the source.
    mode : {"into", "fresh"}
    seconds : tuple of two lists
        A number per round, of the base and of the head.
    runs : list of list of float
        Per run, the ratio of each round: base by head. More than 1 means that the head is faster.
    """

    case: str
    width: int
    size: int
    mode: str
    seconds: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    runs: list[list[float]] = field(default_factory=list)

    @property
    def quartiles(self) -> list[float]:
        """The lower quartile, the median and the upper quartile of all ratios."""
        return quartiles([ratio for run in self.runs for ratio in run])

    @property
    def side(self) -> int:
        """1 if the head was faster in every run by more than the noise, -1 if slower, else 0."""
        sides = set()
        for run in self.runs:
            low, middle, high = quartiles(run)
            sides.add(int(low > 1 and middle > 1 + _NOISE) - int(high < 1 and middle < 1 - _NOISE))
        return sides.pop() if len(sides) == 1 else 0


def measure(sides: Sequence[Side], cell: dict[str, Any], rounds: int) -> tuple[list[Pair], set[str]]:
    """Time a cell on both sides alternately; return a pair per mode, and why there are no more."""
    pairs: dict[int, Pair] = {}
    notes = set()
    # The side that allocates its arrays last gets other pages and is up to 2 % faster. Each is last in half the rounds.
    for first in (0, 1):
        prepared = {side: sides[side].ask(**cell) for side in (first, 1 - first)}
        for row, answers in enumerate(zip(prepared[0], prepared[1], strict=True)):
            mode, count = answers[0]["mode"], min(answer["count"] for answer in answers)
            notes |= {
                f"{cell['case']}, {TITLES[mode].lower()}: {answer['note']}" for answer in answers if answer["note"]
            }
            if count:
                pair = pairs.setdefault(row, Pair(**cell, mode=mode))
                for turn in range(-(-rounds // 2)):
                    for side in (0, 1) if turn % 2 else (1, 0):
                        pair.seconds[side].append(sides[side].ask(row=row, count=count))
    for pair in pairs.values():
        pair.runs.append([base / head for base, head in zip(*pair.seconds, strict=True)])
    return list(pairs.values()), notes


def measure_all(folders: Sequence[Path], cells: Sequence[dict[str, Any]], rounds: int) -> tuple[list[Pair], set[str]]:
    """Time all cells, and those that differ again in new processes."""
    began = time.perf_counter()
    pairs, notes = [], set()
    with ExitStack() as stack:
        sides = _start(folders, stack)
        for number, cell in enumerate(cells, 1):
            progress(number, len(cells), f"{cell['case']}, {cell['width']} B", began)
            found, why = measure(sides, cell, rounds)
            pairs += found
            notes |= why
    for _ in range(_RERUNS):
        again = [pair for pair in pairs if pair.side or abs(pair.quartiles[1] - 1) > _FAR]
        with ExitStack() as stack:
            sides = _start(folders, stack) if again else []
            for number, pair in enumerate(again, 1):
                progress(number, len(again), f"again: {pair.case}, {pair.width} B", began)
                found, _ = measure(sides, {"case": pair.case, "width": pair.width, "size": pair.size}, rounds)
                (more,) = [one for one in found if one.mode == pair.mode]
                pair.runs += more.runs
                for old, new in zip(pair.seconds, more.seconds, strict=True):
                    old.extend(new)
    return pairs, notes


def _start(folders: Sequence[Path], stack: ExitStack) -> list[Side]:
    sides = [Side(folder) for folder in folders]
    for side in sides:
        stack.callback(side.close)
    return sides


def cells_of(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the cells that the options choose: the table of cases, and calls that it lacks."""
    large = (given.mebibytes or (_QUICK_MEBIBYTES if given.quick else _MEBIBYTES)) << 20
    widths = given.width or (_QUICK_WIDTHS if given.quick else None)
    found = [(case.name, width, min(case.size, large)) for case in CASES for width in case.widths]
    found += [(case.name, 4, _SMALL_BYTES) for case in CASES if case.chain or (case.joins and not case.recipe)]
    found += [(name, 4, size) for name in EXTRAS for size in (large, _SMALL_BYTES)]
    cells = [
        {"case": name, "width": width, "size": size}
        for name, width, size in found
        if (not given.case or any(text in name for text in given.case)) and (not widths or width in widths)
    ]
    if not cells:
        raise SystemExit("bench: no case has such a name and width")
    return cells


def main(given: argparse.Namespace) -> None:
    """Install both commits, measure, and write the report."""
    began = time.perf_counter()
    rounds = given.rounds or (_QUICK_ROUNDS if given.quick else _ROUNDS)
    cells = cells_of(given)
    names = [git("rev-parse", "--short", revision).strip() for revision in (given.base, given.head) if revision]
    names += [] if given.head else [f"the working tree ({commit()})"]
    print(f"installing {names[0]} and {names[1]}, then {len(cells)} cells", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        revisions = {"base": given.base, "head": given.head}
        folders = [install(revision, Path(folder, side)) for side, revision in revisions.items()]
        compiled = [any(one.rglob("gpuslice/*.so")) for one in folders]
        if compiled[0] != compiled[1]:
            raise SystemExit(f"bench: only {names[compiled.index(True)]} has compiled kernels")
        installed = time.perf_counter()
        pairs, notes = measure_all(folders, cells, rounds)
    about = (
        f"{time.strftime('%Y-%m-%d')}, {processor()}, Python {platform.python_version()}, one thread. "
        f"Base: {names[0]}. Head: {names[1]}. Kernels: {'compiled' if compiled[0] else 'not compiled'}. "
        f"{rounds} rounds. Installing took {installed - began:.0f} s, "
        f"measuring {time.perf_counter() - installed:.0f} s."
    )
    given.output.mkdir(parents=True, exist_ok=True)
    path = given.output / f"compare-{time.strftime('%Y-%m-%d')}.md"
    path.write_text(report(about, pairs, notes))
    print(f"{summary(pairs)}\n\n{outside(pairs)}\n\nEvery cell: {path}")


def report(about: str, pairs: Sequence[Pair], notes: set[str]) -> str:
    """Return the whole report."""
    reading = (
        "A ratio is the time of the base divided by the time of the head. Above 1 the head is faster. The two are "
        "timed alternately, each in a process of its own. Each ratio is the median of the rounds; the quartiles are in "
        "brackets."
    )
    lines = []
    for pair in pairs:
        times = [f"{1e6 * median(seconds):.1f}" for seconds in pair.seconds]
        low, middle, high = pair.quartiles
        cells = [pair.case, pair.width, pair.size, TITLES[pair.mode], *times]
        lines.append(line([*cells, f"{middle:.3f} [{low:.2f}, {high:.2f}]"]))
    head = ["call", "bytes per item", "bytes", "outputs", "base, microseconds", "head, microseconds", "ratio"]
    absent = "## Not measured\n\n" + ("\n".join(f"- {note}" for note in sorted(notes)) or "All was measured.")
    parts = ["# Two commits", about, reading, "## Summary", summary(pairs), outside(pairs), "## Every cell"]
    return "\n\n".join([*parts, table(head, lines), absent]) + "\n"


def summary(pairs: Sequence[Pair]) -> str:
    """Return a Markdown table of the ratios of large and small calls."""
    groups = {
        f"{size}, {title.lower()}": [
            one for one in pairs if one.mode == mode and (one.size < SMALL) == (size == "small")
        ]
        for size in ("large", "small")
        for mode, title in TITLES.items()
    }
    lines = []
    for name, found in (groups | {"all": list(pairs)}).items():
        if found:
            lows, ratios, highs = zip(*(pair.quartiles for pair in found), strict=True)
            spread = median(high - low for low, high in zip(lows, highs, strict=True))
            numbers = [median(ratios), geometric_mean(ratios), min(ratios), max(ratios), spread]
            lines.append(line([name, len(found), *(f"{number:.3f}" for number in numbers)]))
    head = ["calls", "cells", "median ratio", "geometric mean", "lowest", "highest", "distance of the quartiles"]
    return table(head, lines)


def outside(pairs: Sequence[Pair]) -> str:
    """Return which cells were outside the noise in every run."""
    lines = [
        line(
            [pair.case, pair.width, pair.size, TITLES[pair.mode], ", ".join(f"{median(run):.3f}" for run in pair.runs)]
        )
        for pair in sorted(pairs, key=lambda pair: pair.quartiles[1])
        if pair.side
    ]
    text = (
        f"A cell is outside the noise if its ratio differs from 1 by more than {_NOISE:.0%} and both quartiles are on "
        f"that side of 1. Such cells, and those that differ by more than {_FAR:.0%}, were measured again in new "
        f"processes: {sum(len(pair.runs) > 1 for pair in pairs)} cells. {len(lines)} were outside the noise in every "
        "run"
    )
    head = ["call", "bytes per item", "bytes", "outputs", "ratio of each run"]
    return f"{text}:\n\n{table(head, lines)}" if lines else f"{text}."
