"""The report of a run: speeds relative to a plain copy, a row per case and width; images in a table of their own."""

from collections.abc import Iterator
from typing import Any

from bench import image_report, limits
from bench.cases import CASES
from bench.machine import in_words
from bench.measure import MODES
from bench.numbers import (
    NOISE,
    TITLES,
    VIEWS,
    Key,
    Numbers,
    Table,
    by_group,
    is_behind,
    line,
    runners_of,
    speeds_of,
    table,
    times_of,
)
from bench.runners import OURS

_IMAGES = {case.name for case in CASES if case.recipe}


def summary(result: dict[str, Any]) -> str:
    """Return a short Markdown table per mode for large arrays, and one for small ones."""
    parts = []
    for make, what in [
        (speeds_of, "large arrays: speed relative to a plain copy of as many bytes (1.00 is as fast, more is faster)"),
        (times_of, "small arrays: microseconds per call (less is faster)"),
    ]:
        for mode, title in TITLES.items():
            groups = by_group(make(result, mode))
            names = [name for name in runners_of([groups]) if name != VIEWS]
            lines = [line([group, *(_number(cell, name) for name in names)]) for group, cell in groups.items()]
            if lines:
                parts += [f"{title}, {what}:", table(["access", *names], lines)]
    return "\n\n".join(parts)


def markdown(result: dict[str, Any]) -> str:
    """Return the whole report."""
    parts = [f"# {subject(result)}", about(result), "## Summary", summary(result), "## Every case", _reading()]
    for mode, title in TITLES.items():
        parts.append(f"### {title}")
        parts += list(_tables(result, mode))
    if of_images := image_report.section(result):
        parts += ["## Images", of_images]
    parts += [_reasons(result), absent(result)]
    return "\n\n".join(parts) + "\n"


def images(result: dict[str, Any]) -> str:
    """Return the report of a run of images only."""
    quick = " A quick run: small images and few rounds." if result["quick"] else ""
    parts = [f"# Images: {subject(result)}", about(result) + quick, image_report.section(result), absent(result)]
    return "\n\n".join(parts) + "\n"


def subject(result: dict[str, Any]) -> str:
    """Return what a result is of, for titles."""
    return f"CUDA: {result['gpu']['name']}" if "gpu" in result else f"CPU, {in_words(result['machine']['threads'])}"


def about(result: dict[str, Any]) -> str:
    """Return what a result was measured on."""
    machine = result["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    gpu = f" {result['gpu']}." if "gpu" in result else ""
    return (
        f"{machine['date']}, commit {machine['commit'] or 'unknown'}, {machine['processor']}, "
        f"Python {machine['python']}, {packages}. Host kernels: {machine['kernels']}.{gpu}"
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
    speeds = {key: cell for key, cell in speeds.items() if key[0] not in _IMAGES}  # which have a table of their own
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


def absent(result: dict[str, Any]) -> str:
    """Return which libraries have no times, and why."""
    notes: dict[str, list[str]] = {}
    for cell in result["cells"]:
        for runner, note in cell["notes"].items():
            notes.setdefault(f"{runner}: {note}", []).append(f"{cell['case']} ({cell['width']} B)")
    lines = [f"- {note}: {len(names)} cells, such as {names[0]}" for note, names in notes.items()]
    return "## Not measured\n\n" + ("\n".join(lines) or "All was measured.")
