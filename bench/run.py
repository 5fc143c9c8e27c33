"""A run on cells: which the options choose, what is said beforehand, and the times."""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.case import LARGE, Case
from bench.estimate import in_words, seconds_of
from bench.machine import threads
from bench.measure import MOST_TIMES, CudaClock, HostClock, Timed, measure
from bench.numbers import as_json
from bench.progress import progress
from bench.runners import OURS, PLAIN, RUNNERS, Runner

QUICK_SIZE, QUICK_WIDTHS, QUICK_ROUNDS = 12 << 20, (1, 4), 3
_ROUNDS = 5


class Cell(NamedTuple):
    """A case for items of some bytes, and how many threads each library may use."""

    case: Case
    width: int
    threads: int

    def __str__(self) -> str:
        return f"{self.case.name}, {self.width} B"


def size_of(given: argparse.Namespace) -> int:
    """Return the bytes of the large sources."""
    return given.mebibytes << 20 if given.mebibytes else QUICK_SIZE if given.quick else LARGE


def cells_of(given: argparse.Namespace, cases: Sequence[Case]) -> list[Cell]:
    """Return the cells that the options choose, at the size that they choose."""
    size = size_of(given)
    return [Cell(case.of_size(size), width, threads()) for case, width in chosen(given, cases)]


def chosen(given: argparse.Namespace, cases: Sequence[Case]) -> list[tuple[Case, int]]:
    """Return the cases that the options choose, each with each width that they choose."""
    widths = given.width or (QUICK_WIDTHS if given.quick else None)
    cases = [case for case in cases if not given.case or any(text in case.name for text in given.case)]
    found = [(case, width) for case in cases for width in case.widths if not widths or width in widths]
    if not found:
        raise SystemExit("bench: no case has such a name and width")
    return found


def runners_of(given: argparse.Namespace, device: str) -> list[Runner]:
    """Return the runners on a device that the options choose."""
    runners = [one for one in RUNNERS if one.device == device]
    if given.peer:
        peers = {one.name.lower(): one.name for one in RUNNERS if one.name not in (PLAIN, OURS)}
        for name in given.peer:
            if name not in peers:
                raise SystemExit(f"bench: --peer must be one of {', '.join(sorted(peers.values()))}; got {name}")
        runners = [one for one in runners if one.name in (PLAIN, OURS) or one.name.lower() in given.peer]
    return runners


def timed(
    given: argparse.Namespace, cells: Sequence[Cell], runners: Sequence[Runner]
) -> Iterator[tuple[Cell, list[Timed]]]:
    """Say how long it takes, then yield each cell with its times. A quick run has more rounds of small arrays only."""
    rounds = given.rounds or (QUICK_ROUNDS if given.quick else _ROUNDS)
    device = runners[0].device
    clock = HostClock() if device == "cpu" else CudaClock()
    if device == "cpu":
        seconds = seconds_of([(cell.case, cell.width) for cell in cells], runners, rounds)
        print(f"{in_words(seconds)}: {len(cells)} cells x {rounds} rounds", file=sys.stderr, flush=True)
    began = time.perf_counter()
    for number, cell in enumerate(cells, 1):
        progress(number, len(cells), f"{device}: {cell}", began)
        os.environ["GPUSLICE_NUM_THREADS"] = str(cell.threads)
        most = 1 if given.quick and not cell.case.small else MOST_TIMES
        yield cell, measure(cell.case, cell.width, runners, clock, rounds, most)


def save(given: argparse.Namespace, result: dict[str, Any], name: str, text: str) -> Path:
    """Write a result and its report to the folder of the results; return their path without the suffix."""
    given.output.mkdir(parents=True, exist_ok=True)
    stem = given.output / f"{name}-{result['machine']['date']}"
    Path(f"{stem}.json").write_text(as_json(result))
    Path(f"{stem}.md").write_text(text)
    return stem


def result_of(given: argparse.Namespace, device: str) -> dict[str, Any]:
    """Return a result without cells: what it is measured on."""
    from bench.machine import gpu, machine

    result: dict[str, Any] = {"device": device, "machine": machine(), "quick": given.quick, "size": size_of(given)}
    return result | ({"gpu": gpu()} if device == "cuda" else {})
