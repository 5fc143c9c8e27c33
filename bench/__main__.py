"""Time the library beside its peers; ``python -m bench --help``."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
# Of the sources, at most, in a quick run; the largest caches of hosts hold less.
QUICK_SIZE = 64 << 20


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark, or compare two results."""
    given = _parser().parse_args(arguments)
    if given.command == "compare":
        from bench.compare import compare

        try:
            print(compare(given.before, given.after))
        except (OSError, ValueError, KeyError) as error:
            raise SystemExit(f"bench: cannot compare: {error}") from error
        return
    os.environ.setdefault("GPUSLICE_NUM_THREADS", "1")
    devices = ("cpu", "cuda") if given.device == "all" else (given.device,)
    for device in devices:
        _run(given, device)


def _run(given: argparse.Namespace, device: str) -> None:
    from bench import report
    from bench.machine import gpu, machine

    rows = [row.as_json() for row in _rows(given, device)]
    result: dict[str, Any] = {"device": device, "machine": machine(), "quick": given.quick, "rows": rows}
    if device == "cuda":
        result["gpu"] = gpu()
    given.output.mkdir(parents=True, exist_ok=True)
    stem = given.output / f"{given.name or device}-{result['machine']['date']}"
    Path(f"{stem}.json").write_text(report.as_json(result))
    Path(f"{stem}.md").write_text(report.markdown(result))
    print(f"{stem}.json and .md", file=sys.stderr)
    if not given.no_chart:
        from bench.chart import draw

        draw(result, f"{stem}.png")


def _rows(given: argparse.Namespace, device: str):
    from bench.cases import CASES
    from bench.clocks import clock_of
    from bench.measure import measure
    from bench.runners import OURS, ROOF, RUNNERS

    runners = [one for one in RUNNERS if one.device == device]
    if given.peer:
        runners = [one for one in runners if one.name in (ROOF, OURS) or one.name.lower() in given.peer]
    size = given.mebibytes << 20 if given.mebibytes else (QUICK_SIZE if given.quick else None)
    chosen = [case for case in CASES if not given.case or any(text in case.name for text in given.case)]
    if not chosen:
        raise SystemExit(f"bench: no case has {' or '.join(map(repr, given.case))} in its name")
    cells = [(case, width) for case in chosen for width in case.widths if not given.width or width in given.width]
    clock, began = clock_of(device), time.perf_counter()
    for number, (case, width) in enumerate(cells, 1):
        _progress(number, len(cells), f"{device}: {case.name}, {width} B", time.perf_counter() - began)
        small = case.of_size(size) if size else case
        yield from measure(small, width, runners, clock, given.rounds or (3 if given.quick else 9))
    print(file=sys.stderr)


def _progress(number: int, count: int, text: str, seconds: float) -> None:
    if not sys.stderr.isatty():
        if number % 10 == 0 or number == count:
            print(f"{number}/{count} {seconds:.0f} s  {text}", file=sys.stderr)
        return
    done = 30 * number // count
    print(f"\r[{'#' * done}{'.' * (30 - done)}] {number}/{count} {seconds:4.0f} s  {text:<50}", end="", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Time gpuslice beside its peers.")
    parser.add_argument("--device", choices=("cpu", "cuda", "all"), default="cpu")
    parser.add_argument("--quick", action="store_true", help="smaller arrays and fewer rounds")
    parser.add_argument("--case", action="append", help="cases whose name has this text; may be given again")
    parser.add_argument("--peer", action="append", type=str.lower, help="only these peers, such as numpy")
    parser.add_argument("--width", action="append", type=int, help="only items of so many bytes")
    parser.add_argument("--mebibytes", type=int, help="of the large sources; 128 unless told")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for JSON, Markdown and PNG")
    parser.add_argument("--name", help="of the files, which end in the date; the device unless told")
    parser.add_argument("--no-chart", action="store_true")
    commands = parser.add_subparsers(dest="command", metavar="compare")
    compare = commands.add_parser("compare", help="set two results side by side, as ratios")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    return parser


if __name__ == "__main__":
    main()
