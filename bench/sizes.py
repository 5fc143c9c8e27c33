"""Some cases at every size, on one thread and on all: the cells, and the command that writes their table and curves."""

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isqrt, prod
from typing import Any

from bench import numbers, size_report
from bench.case import BACK, Case
from bench.images import IMAGES
from bench.machine import all_threads
from bench.run import Cell, chosen, result_of, runners_of, save, timed
from bench.runners import Runner
from bench.size_chart import draw

SIZES = [64 << power for power in range(0, 24, 2)]  # bytes of the source
_LARGEST_QUICK = 16 << 20
_WIDTHS = (1, 4)
_INSIDE = slice(1, -1)


def _matrix(items: int, _: int) -> tuple[int, int]:
    """Return about 2 to 3, so that the rows are no power of two apart; most arrays of images and models are not."""
    unit = 64 if items >= 1 << 16 else 4
    rows = max(unit, isqrt(items * 2 // 3) // unit * unit)
    return rows, items // rows // unit * unit


def _case(name: str, index: tuple[slice, ...] = (), **rest: Any) -> Case:
    return Case("sizes", name, _matrix, index, widths=_WIDTHS, **rest)


_RECIPES = ("mirror", "apart", "transpose")
CASES = [
    Case("sizes", "slice backward", lambda items, _: (items,), (BACK,), widths=_WIDTHS),
    _case("crop", (_INSIDE, _INSIDE)),
    _case("split 4", split=lambda count: [count // 4] * 4, axis=1),
    _case("transposed", axes=(1, 0)),
    *(replace(case, widths=_WIDTHS) for case in IMAGES if case.channels == 3 and case.recipe in _RECIPES),
]


def main(given: argparse.Namespace) -> None:
    """Time the cells; write sizes-DATE.json, .md and .png."""
    counts = sorted({1, all_threads()})
    os.environ["GPUSLICE_NUM_THREADS"] = str(counts[-1])
    runners = [one for one in runners_of(given, "cpu") if one.name != numbers.VIEWS]
    cells = cells_of(given, counts)
    rows = list(_rows(given, cells, runners))
    result = result_of(given, "cpu") | {"size": max(cell.case.size for cell in cells), "cells": rows}
    stem = save(given, result, "sizes", size_report.markdown(result))
    drawn = not given.no_chart and draw(result, f"{stem}.png")
    print(size_report.summary(result))
    print(f"\nEvery size: {stem}.md{f', picture: {stem}.png' if drawn else ''}")


def cells_of(given: argparse.Namespace, counts: Sequence[int]) -> list[Cell]:
    """Return the cells that the options choose: each case at each size, for each number of threads."""
    largest = given.mebibytes << 20 if given.mebibytes else _LARGEST_QUICK if given.quick else SIZES[-1]
    sized = [
        (replace(case, size=size), width) for case, width in chosen(given, CASES) for size in SIZES if size <= largest
    ]
    return [Cell(case, width, count) for case, width in sized if _fills(case, width) for count in counts]


def _fills(case: Case, width: int) -> bool:
    """Return whether the source has about the size asked for: an image has at most the pixels of a photograph."""
    return 2 * prod(case.shape(case.size // width, width)) * width > case.size


def _rows(given: argparse.Namespace, cells: Sequence[Cell], runners: Sequence[Runner]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a result: those of any result, with the sizes of source and outputs, and the threads."""
    for (case, width, count), rows in timed(given, cells, runners):
        shapes = case.output_shapes(case.shape(case.size // width, width))
        of_size = {"size": case.size, "bytes": sum(map(prod, shapes)) * width, "threads": count}
        for row in numbers.cells(case, width, rows):
            yield row | of_size
