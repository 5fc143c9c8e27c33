"""Write the results: all numbers as JSON, and a summary to read as Markdown."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, fields
from typing import Any

from bench.instantiations.compiled import Compiled

ABOUT = """\
Every instantiation of kernels/copy.cu that a plan can name, as NVRTC compiled it: facts about compiled code. Nothing
here ran on a GPU or says how fast anything is.
"""
COLUMNS = """\
A row for each kernel: the most registers of a thread over table capacities and architectures, with 32-bit and 64-bit
indices; instructions of a thread for 16 bytes stored, the fewest and the most over the same; the widest loads and
stores in bits, of global memory, where they differ the narrowest; the most instructions of all main loops together.

Instructions for 16 bytes are those of the shortest path once around a main loop that passes every load and every store
of a whole vector, divided by the vectors stored: aligned vectors in a view of one axis. Other alignments, more axes
and what is left at the ends of runs take more. "Long" is the loop for vectors that are in one run, whose place is found
once; "short" the one that finds a place for each, and where it can splices a vector of two runs; a kernel with one loop
has the same in both. For tiles the loop is the one that writes; reading into shared memory comes on top. "-": the
compiler left no such loop.
"""


def write_json(results: Sequence[Compiled], about: dict[str, Any]) -> str:
    """Give all numbers, a line each."""
    head = json.dumps({**about, "columns": [field.name for field in fields(Compiled)]}, indent=1)
    lines = ",\n".join(json.dumps(astuple(result), separators=(",", ":")) for result in results)
    return f'{head.removesuffix(chr(10) + "}")},\n "rows": [\n{lines}\n]}}\n'


def write_markdown(results: Sequence[Compiled], about: dict[str, Any]) -> str:
    """Give a table of architectures and one of kernels."""
    facts = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    lines = [f"# Instantiations, {about['date']}", "", ABOUT, f"{facts}; commit {about['commit']}.", ""]
    lines += [*_architectures(results), "", COLUMNS, *_kernels(results)]
    return "\n".join(lines) + "\n"


def _architectures(results: Sequence[Compiled]) -> Iterator[str]:
    yield "| CUDA | architecture | instantiations | compiled | broken | most registers | over 64 registers | spills |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for (cuda, arch), group in _grouped(results, lambda one: (one.cuda, one.arch)).items():
        registers = [one.registers for one in group if one.registers is not None]
        cells = (
            len(group),
            len(registers),
            sum(one.broken() is not None for one in group),
            max(registers, default="-"),
            sum(count > 64 for count in registers),
            sum(bool(one.stack or one.spill_stores or one.spill_loads) for one in group),
        )
        yield f"| {cuda} | {arch} |" + "".join(f" {cell} |" for cell in cells)


def _kernels(results: Sequence[Compiled]) -> Iterator[str]:
    yield "| kernel | registers 32 / 64 | long, 32 | long, 64 | short, 32 | short, 64 | loads | stores | loops |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for (kind, width, variant), group in _grouped(results, lambda one: (one.kind, one.width, one.variant)).items():
        narrow, wide = ([one for one in group if one.index_bits == bits] for bits in (32, 64))
        cells = (
            f"{_most(one.registers for one in narrow)} / {_most(one.registers for one in wide)}",
            _range(one.best for one in narrow),
            _range(one.best for one in wide),
            _range(one.worst for one in narrow),
            _range(one.worst for one in wide),
            min((one.load_bits for one in group if one.load_bits is not None), default="-"),
            min((one.main_store_bits for one in group if one.main_store_bits is not None), default="-"),
            _most(one.loop_instructions for one in group),
        )
        yield f"| {kind}<{width}, {variant}> |" + "".join(f" {cell} |" for cell in cells)


def _grouped(results: Iterable[Compiled], key: Callable[[Compiled], Any]) -> dict[Any, list[Compiled]]:
    groups: dict[Any, list[Compiled]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return groups


def _most(numbers: Iterable[int | None]) -> int | str:
    return max((number for number in numbers if number is not None), default="-")


def _range(numbers: Iterable[float | None]) -> str:
    known = [number for number in numbers if number is not None]
    return f"{min(known):.0f} to {max(known):.0f}" if known else "-"
