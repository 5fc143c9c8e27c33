"""Charts of results: large arrays as speed relative to a plain copy, small ones and images as time per call."""

from typing import Any

from bench.drawing import COLOURS, pyplot_or_none, save, where
from bench.image_report import CASE_OF
from bench.measure import MODES
from bench.numbers import TITLES, VIEWS, Numbers, by_group, runners_of, seconds_of, speeds_of, times_of
from bench.runners import OURS

_THICK = 0.8  # of the bars of a group together
# An axis ends at most at this multiple of the bar that this share of the bars are shorter than. Longer bars are cut and
# have their number, so that one of them does not squeeze all others.
_SHORTER, _BEYOND = 0.95, 1.5


def draw(result: dict[str, Any], path: str) -> bool:
    """Write a PNG; return False if matplotlib is not installed."""
    pyplot = pyplot_or_none()
    if pyplot is None:
        return False
    large = {mode: by_group(speeds_of(result, mode)) for mode in TITLES}
    small = {mode: by_group(times_of(result, mode)) for mode in TITLES}
    names = [name for name in runners_of([*large.values(), *small.values()]) if name != VIEWS]
    names.sort(key=list(COLOURS).index)
    figure = pyplot.figure(figsize=(16, 9.5), layout="constrained")
    grid = figure.add_gridspec(2, 3)
    at = [grid[:, 0], grid[:, 1], grid[0, 2], grid[1, 2]]
    panels = [figure.add_subplot(place) for place in at]
    for (mode, title), panel in zip(TITLES.items(), panels[:2], strict=True):
        order = list(large["fresh"] | large["into"])
        _bars(panel, large[mode], order, names, _end(large.values()))
        panel.axvline(1, color="black", linewidth=0.8)
        panel.set_title(f"Large arrays, {title.lower()}\n(longer is faster; 1 is a plain copy)")
        panel.set_xlabel("speed relative to a plain copy of as many bytes")
    panels[1].set_yticklabels([])
    for (mode, title), panel in zip(TITLES.items(), panels[2:], strict=True):
        _bars(panel, small[mode], list(small[mode]), names, _end(small.values()))
        panel.set_title(f"Small arrays, {title.lower()}\n(shorter is faster)")
        panel.set_xlabel("microseconds per call")
    save(pyplot, figure, names, f"gpuslice beside other libraries: {where(result)}", path)
    return True


def draw_images(result: dict[str, Any], path: str) -> bool:
    """Write a PNG of the images with the fewest bytes, of 3 channels where there are such; False without matplotlib."""
    pyplot = pyplot_or_none()
    if pyplot is None:
        return False
    width = min(cell["width"] for cell in result["cells"])
    by_mode: dict[str, dict[str, Numbers]] = {}
    for mode in MODES:
        of_recipe = by_mode.setdefault(mode, {})
        for (name, bytes_each), cell in seconds_of(result, mode).items():
            if bytes_each == width and OURS in cell:
                of_recipe.setdefault(CASE_OF[name].recipe, {who: 1e3 * seconds for who, seconds in cell.items()})
    names = sorted(runners_of(by_mode.values()), key=list(COLOURS).index)  # type: ignore[arg-type]
    figure = pyplot.figure(figsize=(15, 11), layout="constrained")
    panels = figure.subplots(1, 2)
    for (mode, title), panel in zip(TITLES.items(), panels, strict=True):
        _bars(panel, by_mode[mode], list(by_mode["fresh"]), names, _end(by_mode.values()))
        panel.set_title(f"{title} (shorter is faster)")
        panel.set_xlabel("milliseconds per image")
    panels[1].set_yticklabels([])
    height, columns = _pixels(result, width)
    text = f"Images of {height} x {columns} pixels, 3 channels (with alpha 4), {width} byte{'s' * (width > 1)} each"
    save(pyplot, figure, names, f"{text}\n{where(result)}", path)
    return True


def _pixels(result: dict[str, Any], width: int) -> tuple[int, ...]:
    """Return height and width of the images in a chart."""
    cell = next(cell for cell in result["cells"] if cell["width"] == width)
    case = CASE_OF[cell["case"]].of_size(result["size"])
    height, columns = sorted(case.shape(case.size // width, width))[-2:]
    return height, columns


def _end(tables: Any) -> float:
    cells = [cell for groups in tables for cell in groups.values()]
    values = sorted(value for cell in cells for name, value in cell.items() if name != VIEWS)
    return min(1.1 * values[-1], _BEYOND * values[int(_SHORTER * (len(values) - 1))]) if values else 1.0


def _bars(panel: Any, groups: dict[str, Numbers], order: list[str], names: list[str], end: float) -> None:
    """Draw a group of bars per kind of access, the first at the top."""
    thick = _THICK / len(names)
    for row, group in enumerate(order):
        cell = groups.get(group, {})
        if not cell:
            panel.text(0.02 * end, row, "a graph allocates its outputs", va="center", fontsize=9, color="gray")
        for place, name in enumerate(name for name in names if name in cell):
            at = row - _THICK / 2 + thick * (place + 0.5)
            panel.barh(at, min(cell[name], end), thick, color=COLOURS[name])
            if name == OURS or cell[name] > end:
                inside = cell[name] > 0.9 * end
                number = f"{cell[name]:.2f}" if cell[name] < 10 else f"{cell[name]:.0f}"
                panel.text(
                    min(cell[name], end) + (-0.01 if inside else 0.01) * end,
                    at,
                    f"{number} →" if cell[name] > end else number,
                    va="center",
                    ha="right" if inside else "left",
                    fontsize=8,
                    color="white" if inside else "black",
                )
    panel.set_xlim(0, end)
    panel.set_ylim(len(order) - 0.5, -0.5)
    panel.set_yticks(range(len(order)), order)
    panel.tick_params(axis="y", length=0)
    panel.spines[["top", "right"]].set_visible(False)
