"""The benchmark of the check of a device: after a process that fails it goes on in a new one; a table of the rows."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.device_steps import TIMED_OUT, Command, Outcome, run

_ROOT = Path(__file__).parent.parent
_RUNNERS = ("copy", "gpuslice", "CuPy", "PyTorch")
_MOST_BARREN = 2


def run_benchmark(head: Command, file: Path, until: float, options: Sequence[str]) -> tuple[Outcome, str]:
    """Write the rows of all cells to a file; return the outcome and a table.

    A process that fails is followed by another one, which begins at the next cell.
    """
    began, first, failed, rows = time.monotonic(), 0, 0, list[dict[str, Any]]()
    while True:
        words = ("-m", "bench.device_rows", *options, "--first", str(first))
        outcome = run([(*head, *words)], file, until - time.monotonic(), _ROOT)
        before, rows = len(rows), read_rows(file)
        if outcome.code in (0, None, TIMED_OUT):
            break
        failed += 1
        if failed > _MOST_BARREN and len(rows) == before:  # it cannot even start
            break
        first = max([first, *(row["cell"] for row in rows)]) + 1
    errors, cells = sum("error" in row for row in rows), len({row["cell"] for row in rows})
    last = f"{cells} cells, {len(rows)} rows, {errors} with errors, {failed} processes failed"
    return Outcome(1 if errors or failed else outcome.code, time.monotonic() - began, last), table(rows)


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Return the rows in a file; other lines, and one that was cut off, are left out."""
    found = []
    for line in file.read_text(errors="replace").splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a table in Markdown: the speed of each library relative to the device's own copy of as many bytes."""
    lines = [
        "## Large copies",
        "",
        "Relative to the device's copy of as many bytes to an existing array, whose GB/s (read and written) are in the",
        "third column. *host*: the host needed longer to make the calls than the device to run them, so that it is no",
        "speed of the device.",
        "",
        "| case | bytes | copy, GB/s | outputs | gpuslice | CuPy | PyTorch |",
        "|---|---:|---:|---|---:|---:|---:|",
    ]
    found = {(row["cell"], row["mode"], row["runner"]): row for row in rows if "runner" in row}
    for cell, mode in dict.fromkeys((cell, mode) for cell, mode, _ in found):
        speed = found.get((cell, "into", _RUNNERS[0]), {}).get("gigabytes_per_second")
        any_row = next(row for key, row in found.items() if key[:2] == (cell, mode))
        words = [_relative(found.get((cell, mode, name), {}), speed) for name in _RUNNERS[1:]]
        start = (
            f"| {any_row['case']} | {any_row['width']} | {speed or '-'} | {'existing' if mode == 'into' else 'new'} |"
        )
        lines.append(f"{start} {' | '.join(words)} |")
    return "\n".join(lines)


def _relative(row: dict[str, Any], speed: float | None) -> str:
    if "error" in row:
        return "**error**"
    if not speed or not row.get("gigabytes_per_second"):
        return "-"
    return f"{row['gigabytes_per_second'] / speed:.2f}{' *host*' if row['host_bound'] else ''}"
