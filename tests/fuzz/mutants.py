"""Errors put into the kernels that the fuzz must find, each described by a function or statement of a file.

A mutant names what it changes by its place in the code, not by its text, so that the code may be reworded.
"""

import re
from pathlib import Path

# What is wrong in the mutant: the file, the kinds of kernels that show it, and the change.
MUTANTS = {
    "a tile is not cut at its part's end": (
        "geometry.cuh", ["rows"], lambda text: set_value(text, "tile_at", "tile.end", "tile.begin + items")
    ),
    "channels are off by one byte": (
        "permute.cuh", ["planes"], lambda text: wrap_return(text, "struct Deinterleave", "from", "({}) ^ 1")
    ),
    "every target counts as aligned": ("cuda_vector.cuh", ["rows"], lambda text: set_body(text, "is_aligned", "return true;")),
    "every load counts as inside its view": ("cuda_batch.cuh", ["rows"], lambda text: set_body(text, "are_readable", "return true;")),
    "every load of pixels counts as inside its view": (
        "cuda_batch.cuh", ["pixel_tiles"], lambda text: set_body(text, "are_readable", "return true;")
    ),
    "rows that are not aligned are shifted too little": (
        "cuda_staging.cuh", ["pixel_tiles", "unstacked"], lambda text: wrap_last_argument(text, "stage_rows", "spliced", "({}) / 2 * 2")
    ),
    "a vector of a column of pixels begins elsewhere": (
        "cuda_pixel_tiles.cuh", ["pixel_tiles"], lambda text: wrap_last_argument(text, "write_columns", "spliced", "({}) & 4")
    ),
    "pixels are taken from the wrong step": (
        "permute.cuh", ["pixel_rows"], lambda text: wrap_return(text, "struct TakePixels", "from", "({}) % 80")
    ),
    "the channels of reversed pixels are rotated": (
        "permute.cuh", ["pixel_tiles"], lambda text: wrap_return(text, "struct PixelColumn", "from", "({}) ^ Reversed")
    ),
    "a batch may end behind its run": ("cuda_walk.cuh", ["rows"], lambda text: drop_first_guard(text, "move_in_run")),
    "two runs are spliced beside where they meet": (
        "cuda_walk.cuh", ["rows"], lambda text: wrap_last_argument(text, "splice_runs", "spliced", "({}) / 2")
    ),
    "a vector of a whole tile is stored in another's place": (
        "cuda_tiles.cuh", ["tiles"], lambda text: set_value(text, "copy_each", "(threadIdx.x + i * kThreads))", "vector[0]")
    ),
    "the barrier is missing": ("cuda_tiles.cuh", ["tiles"], lambda text: set_body(text, "barrier", "")),
}  # fmt: skip


def write_mutant(name, kernels, folder):
    """Copy the kernels to a folder with an error in them, and return the kinds of kernels that show it."""
    file, kinds, change = MUTANTS[name]
    folder.mkdir(parents=True)
    for path in kernels.iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    text = Path(kernels / file).read_text()
    changed = change(text)
    assert changed != text
    (folder / file).write_text(changed)
    return kinds


def body(text, function, after=0):
    """Return where the body of a function begins and ends: what is between the braces of its definition."""
    head = re.compile(rf"\b{re.escape(function)}\((?:[^()]|\([^()]*\))*\)(?: const)? \{{").search(text, after)
    assert head is not None, f"no function {function}"
    return head.end(), closing(text, head.end(), "{}")


def closing(text, start, pair):
    """Return where the bracket closes that was opened before ``start``."""
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] == pair[0]) - (text[at] == pair[1])
        if depth == 0:
            return at
    raise AssertionError("a bracket that never closes")


def set_body(text, function, statements):
    """Replace the body of a function."""
    start, end = body(text, function)
    return f"{text[:start]} {statements} {text[end:]}"


def set_value(text, function, variable, value):
    """Assign something else to a variable."""
    start, end = body(text, function)
    changed, count = re.subn(rf"{re.escape(variable)} = [^;]*;", f"{variable} = {value};", text[start:end])
    assert count == 1, f"{count} assignments to {variable}"
    return text[:start] + changed + text[end:]


def wrap_return(text, after, function, pattern):
    """Return something made of what a function behind some declaration returned."""
    start, end = body(text, function, text.index(after))
    changed, count = re.subn(r"return ([^;]*);", lambda found: f"return {pattern.format(found[1])};", text[start:end])
    assert count == 1, f"{count} returns in {function}"
    return text[:start] + changed + text[end:]


def drop_first_guard(text, function):
    """Remove the first ``if (...) return false;`` of a function."""
    start, end = body(text, function)
    return text[:start] + re.sub(r"if \([^;]*\) return false;", "", text[start:end], count=1) + text[end:]


def wrap_last_argument(text, function, called, pattern):
    """Replace the last argument of the one call of ``called`` in a function by something made of it."""
    start, end = body(text, function)
    assert text.count(f"{called}(", start, end) == 1, f"calls of {called} in {function}"
    first = text.index(f"{called}(", start) + len(called) + 1
    last = closing(text, first, "()")
    comma = text.rindex(",", first, last) + 1
    return f"{text[:comma]} {pattern.format(text[comma:last].strip())}{text[last:]}"
