"""The picture of the cases at every size: a panel per case, a curve per library."""

from collections.abc import Sequence
from typing import Any

from bench.drawing import COLOURS, pyplot_or_none, save, where
from bench.image_report import CASE_OF
from bench.runners import OURS, PLAIN
from bench.size_report import Row, in_bytes, medians, rows_of

MODE, THREADS = "fresh", 1  # what every library has
_TICKS = [1 << power for power in range(6, 29, 4)]
_HEIGHT, _REST = 2.9, 1.3  # of a row of panels and of the texts, in inches


def draw(result: dict[str, Any], path: str) -> bool:
    """Write a PNG of new outputs on one thread; return False if matplotlib is not installed."""
    pyplot = pyplot_or_none()
    if pyplot is None:
        return False
    rows = rows_of(result, THREADS, MODE)
    names = sorted({name for row in rows for name in row["seconds"]}, key=list(COLOURS).index)
    grid = _grid(rows)
    figure = pyplot.figure(figsize=(16, _HEIGHT * len(grid) + _REST), layout="constrained")
    panels = figure.subplots(len(grid), max(map(len, grid)), sharey=True, squeeze=False)
    for line, cells in zip(panels, grid, strict=True):
        for panel, cell in zip(line, cells, strict=False):
            _curves(panel, cell, names)
        for panel in line[len(cells) :]:
            panel.set_visible(False)
        width = cells[0][0]["width"]
        line[0].set_ylabel(f"items of {width} byte{'s' * (width > 1)}\nGB/s")
    text = (
        "Speed by size, new outputs: GB of results per second (higher is faster)\n"
        "Left: results of few bytes, where the time of a call counts. Right: of many, where moving the bytes counts."
    )
    save(pyplot, figure, names, f"{text}\n{where(result, THREADS)}", path)
    return True


def _grid(rows: Sequence[Row]) -> list[list[list[Row]]]:
    """Return the rows of each panel: a line of panels per width, first those of arrays, then those of images."""
    lines: dict[tuple[bool, int], dict[str, list[Row]]] = {}
    for row in rows:
        line = lines.setdefault((row["case"] in CASE_OF, row["width"]), {})
        line.setdefault(row["case"], []).append(row)
    return [list(line.values()) for _, line in sorted(lines.items())]


def _curves(panel: Any, rows: Sequence[Row], names: Sequence[str]) -> None:
    """Draw a curve per library: bytes of the results, and how many of them per second."""
    for name in names:
        found = [(row["bytes"], row["bytes"] / medians(row)[name] / 1e9) for row in rows if name in row["seconds"]]
        style: dict[str, Any] = {"linewidth": 2.6, "zorder": 3} if name == OURS else {"linewidth": 1.5}
        if name == PLAIN:
            style["linestyle"] = "--"
        panel.plot(*zip(*found, strict=True) if found else ((), ()), color=COLOURS[name], marker=".", **style)
    case = rows[0]["case"]
    panel.set_title(f"RGB image: {CASE_OF[case].recipe}" if case in CASE_OF else case)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xticks(_TICKS, map(in_bytes, _TICKS))
    panel.tick_params(axis="y", labelleft=True)
    panel.yaxis.set_major_formatter("{x:g}")
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
