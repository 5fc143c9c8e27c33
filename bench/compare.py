"""Two results side by side: two devices, or two commits."""

import json
from pathlib import Path

from bench.report import seconds_of
from bench.runners import OURS


def compare(before: Path, after: Path) -> str:
    """Give a Markdown table of how long gpuslice needs in each, and how many times faster the second is."""
    results = [json.loads(path.read_text()) for path in (before, after)]
    lines = [
        f"{name}: {one['device']}, {one['machine']['processor']}, {one.get('gpu', {}).get('name', 'no GPU')}, "
        f"commit {one['machine']['commit'] or 'unknown'}, {one['machine']['date']}"
        for name, one in zip(("before", "after"), results, strict=True)
    ]
    lines += [
        "",
        "| case | bytes an item | outputs | before, us | after, us | times faster |",
        "|---|---:|---|---:|---:|---:|",
    ]
    for mode in ("into", "fresh"):
        left, right = (seconds_of(one, mode) for one in results)
        for key in (key for key in left if OURS in left[key] and OURS in right.get(key, {})):
            a, b = left[key][OURS], right[key][OURS]
            lines.append(f"| {key[0]} | {key[1]} | {mode} | {a * 1e6:.1f} | {b * 1e6:.1f} | {a / b:.2f} |")
    if len(lines) == 5:
        raise SystemExit("the two have no case in common")
    return "\n".join(lines)
