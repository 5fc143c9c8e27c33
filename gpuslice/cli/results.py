"""Results of a command: their names in a file, and their rows in a table."""

from collections import abc
from typing import Any

from gpuslice.cli.text import printable
from gpuslice.display import shape_text, shapes_text
from gpuslice.dtypes import dtype_name
from gpuslice.libraries import Array
from gpuslice.sequence import Sequence


def named_arrays(results: abc.Iterable[tuple[str, Any]]) -> dict[str, Array]:
    """Return each array by its name in the file. The tensors of a sequence ``x`` are x_0, x_1, ..."""
    named: dict[str, Array] = {}
    for name, value in results:
        items = {f"{name}_{i}": item for i, item in enumerate(value)} if isinstance(value, Sequence) else {name: value}
        clash = named.keys() & items.keys()
        if clash:
            raise ValueError(f"two outputs would have the name {min(clash)!r} in the file")
        named |= items
    return named


def cells_of(value: Any) -> tuple[str, str, str]:
    """Return shape, dtype and device of a tensor or sequence, as a table shows them."""
    if not isinstance(value, Sequence):
        return shape_text(value.shape), dtype_name(value.dtype), str(value.device)
    devices = dict.fromkeys(str(item.device) for item in value)
    return shapes_text([item.shape for item in value]), value.dtype, " ".join(devices)


def table(rows: abc.Sequence[tuple[str, ...]]) -> str:
    """Return rows as lines with aligned columns."""
    shown = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in shown)
