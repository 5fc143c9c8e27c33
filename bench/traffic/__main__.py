"""``python -m bench.traffic``: write the model's tables, or show them."""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.cases import CASES, LARGE
from bench.machine import commit
from bench.traffic.build import build
from bench.traffic.model import Cell, Traffic
from bench.traffic.table import instructions, write_json, write_markdown

RESULTS = Path(__file__).parent.parent / "results"
BLOCKS = 64


def count(cells: Sequence[Cell], most: int) -> list[Traffic]:
    """Count what planned cells ask of memory, in at most so many blocks a launch."""
    keys = list(dict.fromkeys(key for cell in cells for key in cell.keys))
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder), keys)
        return [cell.count(library, keys, most) for cell in cells]


def main() -> None:
    """Plan, compile, count and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.traffic", description="Model the CUDA kernels' traffic.")
    parser.add_argument("--case", action="append", help="cases whose name has this text; may be given again")
    parser.add_argument("--width", action="append", type=int, help="only items of so many bytes")
    parser.add_argument(
        "--blocks", type=int, default=BLOCKS, help=f"that run of a launch, at most; {BLOCKS} unless told"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="where to write; else the table is shown")
    given = parser.parse_args()
    chosen = [
        one for one in CASES if one.size == LARGE and (not given.case or any(text in one.name for text in given.case))
    ]
    cells = [Cell(case, width) for case in chosen for width in case.widths if not given.width or width in given.width]
    if not cells:
        parser.error("no large case is like that")
    about = {"date": time.strftime("%Y-%m-%d"), "commit": commit(), "blocks": given.blocks}
    rows = count(cells, given.blocks)
    text = write_markdown(rows, about, instructions(RESULTS))
    if not given.output:
        print(text)
        return
    given.output.mkdir(parents=True, exist_ok=True)
    stem = given.output / f"traffic-{about['date']}"
    Path(f"{stem}.json").write_text(write_json(rows, about))
    Path(f"{stem}.md").write_text(text)
    print(f"{stem}.json and .md", file=sys.stderr)


if __name__ == "__main__":
    main()
