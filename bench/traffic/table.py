"""Write the model's numbers: JSON, and a table with definitions and explanations."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.traffic.model import Traffic

ABOUT = """\
A model of what the CUDA kernels ask of memory. Each case of bench/cases.py was planned at its full size as for a GPU,
with sources and targets at multiples of 512 bytes; some blocks of each launch, one drawn from each of as many equal
spans of its grid, ran on the CPU, thread by thread, and every access to global memory was put down. Sums over launches
weigh each by its blocks. Nothing here ran on a GPU or says how fast anything is; caches and shared memory are left out.

Definitions. A sector is 32 aligned bytes. A block's *wanted items* are those that it writes. A *request* is what the 32
consecutive threads of a warp ask at once: the k-th access of each at one place in the code, where the rounds of loops
over a thread's vectors are places of their own. 16 bytes a thread make a full request of 512 bytes, or 16 sectors.

* loads, sectors: sectors of the source that hold a byte of a block's wanted items, divided by the sectors that the
  block loads, each counted once a block. 1 means that nothing is read beside what is wanted.
* loads, bytes: bytes of the wanted items / 32, divided by the sectors that the block loads, each counted once a block.
  1 means that every byte that is read is wanted. This is the efficiency to accept (0.95), but for steps, whose items
  leave bytes between them: for those it is the one before.
* stores, bytes: bytes of the wanted items / 32, divided by the sectors that the block writes to, each counted once a
  block. To accept: 0.99.
* sectors a request: sectors that a request touches, on average. Full requests of neighbouring threads have 16; more
  where a thread takes several vectors side by side (pixels, thinned steps), of which other requests take the rest.
* requests: requests divided by the least that could move the bytes, bytes / 512. 1 is the least.
* instructions: of a thread for 16 bytes stored, in the longest runs and in the shortest, as the newest
  results/instantiations-*.json has them for sm_90 by CUDA 13; a dash where there is none.
"""
LEAST_LOAD, LEAST_STORE = 0.95, 0.99
# More requests than this, of either kind, are worth a word.
MANY_REQUESTS = 1.25

# Why a cell is below what is to accept, or asks often: the beginning of a case's name, widths (none: all), the reason.
_APART = "between the wanted items lie others of the same sectors: none is read that has no wanted item"
_TWO = "runs begin at no multiple of 16 bytes: each vector is cut out of two aligned ones, the second its neighbour's"
_ACROSS = "a vector that ends one run and begins the next is spliced from two, in a request that few threads share"
REASONS: list[tuple[str, tuple[int, ...], str]] = [
    ("step", (), _APART),
    ("step 2", (1, 2), "two vectors are read and thinned into one"),
    ("step -2", (1, 2), "two vectors are read and thinned into one"),
    ("step -3", (1, 2), "three vectors are read and thinned into one"),
    ("step -3", (4, 8), "items are gathered, each in a request of its own"),
    ("step 7", (1, 2, 4, 8), "items are gathered, each in a request of its own"),
    ("step 2", (4, 8), "items are gathered, each in a request of its own"),
    ("step -2", (4, 8), "items are gathered, each in a request of its own"),
    ("crop", (1, 2, 4, 8), _TWO),
    ("crop", (1, 2, 4, 8), _ACROSS),
    ("split 5", (1, 2, 4, 8), _TWO),
    ("split 5", (1, 2, 4, 8), _ACROSS),
    ("graph", (1, 2, 4), _TWO),
    ("graph", (1, 2, 4), _ACROSS),
    ("split 1,000", (1, 2, 4, 8), _TWO),
    ("split 64", (1,), "runs of 16 bytes are half a sector; the next block, of the next part, reads the other half"),
    ("image mirrored", (), _TWO),
    ("image mirrored", (), "16 pixels that lie in two rows go item by item"),
]


def reason(row: Traffic) -> str:
    """Explain a cell that needs it; empty for others."""
    if not needs_reason(row):
        return ""
    found = [
        text for name, widths, text in REASONS if row.case.startswith(name) and (not widths or row.width in widths)
    ]
    return "; ".join(found) or "not explained"


def needs_reason(row: Traffic) -> bool:
    """Tell whether a cell is below what is to accept, or asks often."""
    below = min(row.load, row.load_used) < LEAST_LOAD or row.store < LEAST_STORE
    return below or max(row.load_requests, row.store_requests) > MANY_REQUESTS


def instructions(folder: Path) -> dict[tuple[Any, ...], str]:
    """Read instructions for 16 bytes from the newest table of instantiations, by what `instantiation` takes."""
    paths = sorted(folder.glob("instantiations-*.json"))
    if not paths:
        return {}
    table = json.loads(paths[-1].read_text())
    known = {}
    for values in table["rows"]:
        row = dict(zip(table["columns"], values, strict=True))
        if (row["cuda"], row["arch"]) != ("13", "sm_90") or not row["best_vectors"]:
            continue
        key = tuple(row[name] for name in ("kind", "width", "variant", "index_bits", "capacity"))
        ends = (row["best_instructions"] / row["best_vectors"], row["worst_instructions"] / row["worst_vectors"])
        known[key] = " to ".join(dict.fromkeys(f"{end:.0f}" for end in ends))
    return known


def write_json(rows: Sequence[Traffic], about: dict[str, Any]) -> str:
    """Give all numbers, a line each."""
    head = json.dumps(about, indent=1).removesuffix("\n}")
    lines = ",\n".join(json.dumps(asdict(row), separators=(",", ":")) for row in rows)
    return f'{head},\n "rows": [\n{lines}\n]}}\n'


def write_markdown(rows: Sequence[Traffic], about: dict[str, Any], known: dict[tuple[Any, ...], str]) -> str:
    """Give definitions and a table of all cells, each case's explanation beside it."""
    lines = [f"# Traffic model, {about['date']}", "", ABOUT]
    lines += [
        f"{about['blocks']} blocks a launch at most; commit {about['commit'] or 'unknown'}.",
        "",
        *_table(rows, known),
    ]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Traffic], known: dict[tuple[Any, ...], str]) -> Iterator[str]:
    yield (
        "| case | width | kernels | blocks | loads: sectors | bytes | sectors a request | requests "
        "| stores: bytes | sectors a request | requests | instructions | why |"
    )
    yield "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"
    for row in rows:
        cells = [row.case, row.width, ", ".join(row.kernels), f"{row.blocks:,}", f"{row.load:.3f}"]
        cells += [f"{row.load_used:.3f}", f"{row.load_per_request:.1f}", f"{row.load_requests:.2f}"]
        cells += [f"{row.store:.3f}", f"{row.store_per_request:.1f}", f"{row.store_requests:.2f}"]
        cells += [", ".join(dict.fromkeys(known.get(tuple(key), "-") for key in row.keys)), reason(row)]
        yield "| " + " | ".join(map(str, cells)) + " |"
