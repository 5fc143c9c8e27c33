"""How shapes and tables are shown: in a repr, in a notebook, on a terminal."""

from collections.abc import Iterable, Sequence
from typing import Any

Shape = tuple[Any, ...]  # a length that is not known may be None or NaN

_MOST_SHAPES = 3
MOST_ROWS = 10


def shape_text(shape: Shape) -> str:
    """Return a shape as text. A shape of one axis has no comma: ``(3)``."""
    return f"({', '.join(map(str, shape))})"


def shapes_text(shapes: Sequence[Shape]) -> str:
    """Return how many shapes there are and the first different ones, such as ``4 x (2, 3) (1, 3)``."""
    different = list(dict.fromkeys(shapes))
    words = [shape_text(shape) for shape in different[:_MOST_SHAPES]] + ["..."] * (len(different) > _MOST_SHAPES)
    return f"{len(shapes)} x {' '.join(words) or '()'}"


def html_table(title: str, header: Iterable[str], rows: Iterable[Iterable[object]], more: int) -> str:
    """Return an HTML table. ``more`` is the number of rows that are left out."""
    from html import escape  # slow to import, and wanted in notebooks only

    def row(tag: str, cells: Iterable[object]) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

    body = "".join(row("td", cells) for cells in rows)
    rest = f"<p>{more} more</p>" if more > 0 else ""
    return f"<p>{escape(title)}</p><table><thead>{row('th', header)}</thead><tbody>{body}</tbody></table>{rest}"
