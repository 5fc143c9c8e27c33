"""Results as a Markdown table: shares of the plain copy's rate, a row a case."""

import json
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from bench.cases import CASES
from bench.runners import OURS, ROOF

# A share this much below a peer's is noise.
NOISE = 0.95
_TITLES = {"into": "Outputs allocated before", "fresh": "Fresh outputs"}

# Cases that are about calls.
_SMALL = {case.name for case in CASES if case.size < 1 << 20}
_PAGES = (
    "pages of the system, which it clears first and which takes as long as copying. onnxruntime gives out again what "
    "its arena has freed before. memcpy, by which NumPy copies contiguous bytes, is about a tenth quicker into pages "
    "just cleared, whose lines its ordinary stores find in the caches; into others it is slower by a third. Memory "
    "kept for the next outputs might lift it, and for contiguous ones ordinary stores without prefetches."
)

Cell = dict[str, float]
Table = dict[tuple[str, int], Cell]


def markdown(result: dict[str, Any]) -> str:
    """Give the whole report."""
    parts = [f"# {_subject(result)}", _machine(result), _reading()]
    for mode, title in _TITLES.items():
        parts.append(f"## {title}")
        parts += list(_tables(result, mode))
    parts += [_reasons(result), _absent(result)]
    return "\n\n".join(parts) + "\n"


def as_json(result: dict[str, Any]) -> str:
    """Give a result as JSON with a line a row."""
    head = json.dumps({name: value for name, value in result.items() if name != "rows"}, indent=1)
    rows = ",\n".join(f"  {json.dumps(row)}" for row in result["rows"])
    return f'{head.removesuffix("}").rstrip()},\n "rows": [\n{rows}\n ]\n}}\n'


def seconds_of(result: dict[str, Any], mode: str) -> Table:
    """Give median seconds by (case, width), then runner."""
    table: Table = {}
    for row in result["rows"]:
        if row["mode"] == mode and row["seconds"]:
            table.setdefault((row["case"], row["width"]), {})[row["runner"]] = median(row["seconds"])
    return table


def shares_of(result: dict[str, Any], mode: str) -> Table:
    """Give the share of the plain copy's rate, for as many bytes of output, by (case, width), then runner."""
    return {
        key: {name: cell[ROOF] / seconds for name, seconds in cell.items() if name != ROOF}
        for key, cell in seconds_of(result, mode).items()
        if ROOF in cell
    }


def runners_of(result: dict[str, Any]) -> list[str]:
    """Name the runners that have results, in their order."""
    return list(dict.fromkeys(row["runner"] for row in result["rows"] if row["seconds"] and row["runner"] != ROOF))


def _subject(result: dict[str, Any]) -> str:
    return f"CUDA: {result['gpu']['name']}" if result["device"] == "cuda" else "CPU, one thread"


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
        "Numbers are shares of the rate at which as many contiguous bytes are copied in the same run (1.00: as fast as "
        "that copy), medians of interleaved rounds; microseconds where arrays are small. **Bold** is a gpuslice cell "
        f"below its target (for fresh outputs {NOISE} of NumPy's), _italic_ one below {NOISE} of the best peer's. "
        "onnx.reference gives views, made dense here; one that is dense already costs it nothing."
    )


def _tables(result: dict[str, Any], mode: str) -> Iterator[str]:
    names = runners_of(result)
    shares, seconds = shares_of(result, mode), seconds_of(result, mode)
    large_keys = [key for key in shares if key[0] not in _SMALL]
    small_keys = [key for key in seconds if key[0] in _SMALL]
    if large_keys:
        targets = targets_of(result, mode, shares)
        lines = [_line(key, [_share(shares[key], name, targets.get(key, 0)) for name in names]) for key in large_keys]
        yield _table(("case", "bytes an item", *names), lines)
    if small_keys:
        lines = [_line(key, [_time(seconds[key], name) for name in (ROOF, *names)]) for key in small_keys]
        yield _table(("case, microseconds", "bytes an item", ROOF, *names), lines)


def _line(key: tuple[str, int], cells: Sequence[str]) -> str:
    return f"| {key[0]} | {key[1]} | " + " | ".join(cells) + " |"


def _table(head: Sequence[str], lines: Sequence[str]) -> str:
    return "\n".join([f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1), *lines])


def _share(cell: Cell, name: str, target: float) -> str:
    if name not in cell:
        return "-"
    text = f"{cell[name]:.2f}"
    if name != OURS:
        return text
    if cell[name] < target:
        text = f"**{text}**"
    return f"_{text}_" if is_behind(cell) else text


def targets_of(result: dict[str, Any], mode: str, shares: Table) -> dict[tuple[str, int], float]:
    """Give the targets of a CPU by (case, width); for fresh outputs NumPy's shares less what is noise."""
    if result["device"] != "cpu":
        return {}
    if mode == "fresh":
        return {key: NOISE * cell["NumPy"] for key, cell in shares.items() if "NumPy" in cell}
    return {(case.name, width): share for case in CASES for width, share in (case.targets or {}).items()}


def is_behind(cell: Cell) -> bool:
    """Tell whether a peer is faster by more than noise."""
    return OURS in cell and cell[OURS] < NOISE * max((share for name, share in cell.items() if name != OURS), default=0)


def _reasons(result: dict[str, Any]) -> str:
    """Say of every case with a marked cell what its limit is."""
    marked: dict[str, dict[str, list[str]]] = {mode: {} for mode in _TITLES}
    for mode in _TITLES:
        shares = shares_of(result, mode)
        targets = targets_of(result, mode, shares)
        for key, cell in shares.items():
            if OURS in cell and key[0] not in _SMALL and (cell[OURS] < targets.get(key, 0) or is_behind(cell)):
                marked[mode].setdefault(key[0], []).append(f"{key[1]} B")
    limits = {case.name: case.limit for case in CASES}
    lines = [
        f"- {name} ({', '.join(cells)}): {limits.get(name) or 'no limit is known but the noise between runs.'}"
        for name, cells in marked["into"].items()
    ]
    if marked["fresh"]:
        fresh = "; ".join(f"{name} ({', '.join(cells)})" for name, cells in marked["fresh"].items())
        lines.append(f"- Fresh outputs, {fresh}: {_PAGES}")
    return "## Why marked cells fall short\n\n" + ("\n".join(lines) or "None is marked.")


def _time(cell: Cell, name: str) -> str:
    return f"{cell[name] * 1e6:.1f}" if name in cell else "-"


def _absent(result: dict[str, Any]) -> str:
    notes: dict[str, list[str]] = {}
    for row in result["rows"]:
        if row["note"]:
            notes.setdefault(f"{row['runner']}, {row['note']}", []).append(f"{row['case']} ({row['width']} B)")
    lines = [f"- {note}: {len(cases)} cells, such as {cases[0]}" for note, cases in notes.items()]
    return "## Not measured\n\n" + ("\n".join(lines) or "Nothing.")
