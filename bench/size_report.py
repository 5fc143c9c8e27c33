"""The table of the cases at every size: microseconds beside other libraries, and a summary by size."""

from collections.abc import Iterator
from statistics import geometric_mean
from typing import Any

from bench.image_report import marked_share, share_of, short
from bench.machine import in_words
from bench.measure import MODES
from bench.numbers import NOISE, TITLES, Numbers, line, table
from bench.report import about, absent
from bench.runners import OURS, PLAIN

Row = dict[str, Any]
_READING = (
    f"Microseconds per call; each is a median of rounds in which all libraries take turns. {PLAIN} is a plain copy of "
    f"as many bytes, by NumPy, on one thread. GB/s is what {OURS} writes. Share is the time of the fastest other "
    f"library divided by that of {OURS}: above 1 {OURS} is the fastest. **Bold**: the share is below {NOISE}, which is "
    "outside the noise. A dash: the library cannot do it. NumPy and Pillow always use one thread."
)


def markdown(result: dict[str, Any]) -> str:
    """Return the whole report."""
    quick = " A quick run: no large arrays." if result["quick"] else ""
    shares = [share for row in result["cells"] if (share := share_of(medians(row)))]
    behind = sum(share < NOISE for share in shares)
    count = f"Another library is ahead by more than the noise in {behind} of {len(shares)} rows."
    parts = [
        "# Speed by size: CPU",
        about(result) + quick,
        "## Summary",
        summary(result),
        "## Every size",
        _READING,
        count,
    ]
    for count, mode in _tables(result):
        parts += [f"### {TITLES[mode]}, {in_words(count)}", _table(rows_of(result, count, mode))]
    return "\n\n".join([*parts, absent(result)]) + "\n"


def summary(result: dict[str, Any]) -> str:
    """Return a table of shares by size for each number of threads, and for existing and new outputs."""
    parts = []
    for count, mode in _tables(result):
        text = f"{TITLES[mode]}, {in_words(count)}: the time of the fastest other library, divided by that of {OURS}"
        parts += [f"{text} (above 1 {OURS} is the fastest):", _shares(rows_of(result, count, mode))]
    return "\n\n".join(parts)


def _shares(rows: list[Row]) -> str:
    """Return the table of shares: a line per size, a column per case, each a mean over the bytes per item."""
    shares: dict[int, dict[str, list[float]]] = {}
    for row in rows:
        if share := share_of(medians(row)):
            shares.setdefault(row["size"], {}).setdefault(row["case"], []).append(share)
    names = list(dict.fromkeys(row["case"] for row in rows))
    lines = []
    for size, found in sorted(shares.items()):
        means = [f"{geometric_mean(found[name]):.2f}" if name in found else "-" for name in names]
        lines.append(line([in_bytes(size), *means]))
    return table(["size", *names], lines)


def _tables(result: dict[str, Any]) -> Iterator[tuple[int, str]]:
    counts = sorted({row["threads"] for row in result["cells"]})
    yield from ((count, mode) for count in counts for mode in MODES)


def rows_of(result: dict[str, Any], count: int, mode: str) -> list[Row]:
    """Return the rows of a result for a number of threads, and existing or new outputs."""
    return [row for row in result["cells"] if (row["threads"], row["mode"]) == (count, mode) and row["seconds"]]


def medians(row: Row) -> Numbers:
    """Return the median seconds by library."""
    return {name: quartiles[1] for name, quartiles in row["seconds"].items()}


def in_bytes(size: int) -> str:
    """Return a power of two bytes in words."""
    unit = max(power for power in (0, 10, 20) if size >= 1 << power)
    return f"{size >> unit} {('B', 'KB', 'MB')[unit // 10]}"


def _table(rows: list[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row["seconds"]))
    lines = []
    for row in rows:
        times = medians(row)
        speed = short(row["bytes"] / times[OURS] / 1e9) if OURS in times else "-"
        each = [short(1e6 * times[name]) if name in times else "-" for name in names]
        lines.append(line([row["case"], row["width"], in_bytes(row["size"]), *each, speed, marked_share(times)]))
    return table(["case", "bytes per item", "size", *names, "GB/s", "share"], lines)
