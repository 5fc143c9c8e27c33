"""Results of a command: their names in a file, and their rows in a table."""

from collections import abc
from typing import Any

from gpuslice.dtypes import dtype_name
from gpuslice.libraries import Array
from gpuslice.sequence import Sequence


def split_word(word: str) -> tuple[str, str]:
    """Return name and value of an argument ``NAME=VALUE``."""
    name, equals, value = word.partition("=")
    if not equals:
        raise ValueError(f"arguments must be NAME=VALUE; got {word!r}")
    return name, value


def named_arrays(results: abc.Iterable[tuple[str, Any]]) -> dict[str, Array]:
    """Return each array by its name in the file. The tensors of a sequence ``x`` are x_0, x_1, ..."""
    named: dict[str, Array] = {}
    for name, value in results:
        items = {f"{name}_{i}": item for i, item in enumerate(value)} if isinstance(value, Sequence) else {name: value}
        clash = named.keys() & items.keys()
        if clash:
            raise ValueError(f"two outputs would have the name {sorted(clash)[0]!r} in the file")
        named |= items
    return named


def cells_of(value: Any) -> tuple[str, str, str]:
    """Return shape, dtype and device of a tensor or sequence, as a table shows them."""
    if not isinstance(value, Sequence):
        shape = f"({', '.join(map(str, value.shape))})"
        return shape, dtype_name(value.dtype), str(value.device)
    cells = [cells_of(item) for item in value]
    shapes, places = dict.fromkeys(cell[0] for cell in cells), dict.fromkeys(cell[2] for cell in cells)
    return f"{len(value)} x {' '.join(shapes) or '()'}", value.dtype, " ".join(places)


def table(rows: abc.Sequence[tuple[str, ...]]) -> str:
    """Return rows as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
