"""A chart of results: a panel a class of access, a bar a runner."""

from statistics import fmean
from typing import Any

from bench.cases import ALL_WIDTHS, CASES
from bench.report import runners_of, shares_of
from bench.runners import OURS

_COLOURS = {OURS: "#d95f02", "NumPy": "#7570b3", "CuPy": "#7570b3", "PyTorch": "#1b9e77", "onnxruntime": "#66a5d9"}
_COLUMNS = 4


def draw(result: dict[str, Any], path: str) -> None:
    """Write a PNG: share of the plain copy's rate by class and width, outputs allocated before where they can be."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("no chart: matplotlib is not installed (pip install 'gpuslice[bench]')")
        return
    into, fresh = shares_of(result, "into"), shares_of(result, "fresh")
    # A graph allocates its outputs, so there the others are shown with fresh ones too.
    shares = {key: cell if OURS in cell else fresh.get(key, cell) for key, cell in into.items()}
    groups = _groups(shares)
    names = [name for name in runners_of(result) if name in _COLOURS]
    rows = -(-len(groups) // _COLUMNS)
    figure, panels = pyplot.subplots(rows, _COLUMNS, figsize=(4 * _COLUMNS, 3 * rows + 0.8), squeeze=False, sharey=True)
    for panel in panels.flat[len(groups) :]:
        panel.set_visible(False)
    for panel, (group, cases) in zip(panels.flat, groups.items(), strict=False):
        _panel(panel, group, cases, shares, names)
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=_COLOURS[name]) for name in names]
    figure.legend(handles, names, loc="upper right", ncols=len(names), frameon=False, fontsize=12)
    subject = result["gpu"]["name"] if "gpu" in result else f"{result['machine']['processor']}, one thread"
    figure.suptitle(f"Share of a plain copy's rate, by bytes an item (1 = as fast)\n{subject}", x=0.01, ha="left")
    figure.tight_layout(rect=(0, 0, 1, 1))
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def _groups(shares: dict[tuple[str, int], Any]) -> dict[str, list[str]]:
    """Give the cases of each class that were measured, the small ones left out, which are about calls."""
    groups: dict[str, list[str]] = {}
    for case in CASES:
        if case.size >= 1 << 20 and any(key[0] == case.name for key in shares):
            groups.setdefault(case.group, []).append(case.name)
    return groups


def _panel(panel: Any, group: str, cases: list[str], shares: dict[tuple[str, int], Any], names: list[str]) -> None:
    """Draw one class: for each width the mean over its cases."""
    widths = sorted({width for case, width in shares if case in cases})
    for place, name in enumerate(names):
        for i, width in enumerate(widths):
            found = [shares[case, width][name] for case in cases if name in shares.get((case, width), {})]
            if found:
                at = i + (place - (len(names) - 1) / 2) * 0.8 / len(names)
                panel.bar(at, fmean(found), 0.8 / len(names), color=_COLOURS[name])
    panel.axhline(1, color="black", linewidth=0.8)
    panel.set_xlim(-0.6, len(ALL_WIDTHS) - 0.4)
    panel.set_xticks(range(len(widths)), [f"{width} B" for width in widths])
    title = f"{group}, fresh outputs" if group == "graph" else group
    panel.set_title(title if len(cases) == 1 else f"{title} ({len(cases)} cases)", fontsize=11)
    panel.spines[["top", "right"]].set_visible(False)
