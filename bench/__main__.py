"""``python -m bench``: time gpuslice beside other libraries, ``compare`` two commits of it, or ``tune`` a choice."""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
# Copies of as many bytes that take as long as checking a library's results, and as timing it for a round.
_CHECKING, _TIMING = 50, 8
QUICK_SIZE, QUICK_WIDTHS, QUICK_ROUNDS = 24 << 20, (1, 4), 3


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark, or the comparison."""
    os.environ.setdefault("GPUSLICE_NUM_THREADS", "1")
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["compare"]:
        from bench.compare import main as compare

        compare(_compare_parser().parse_args(words[1:]))
        return
    if words[:1] == ["tune"]:
        from bench import tune

        parser = argparse.ArgumentParser(prog="python -m bench tune", description=tune.__doc__)
        tune.add_options(parser)
        tune.main(parser.parse_args(words[1:]))
        return
    given = _parser().parse_args(words)
    for device in ("cpu", "cuda") if given.device == "all" else (given.device,):
        _run(given, device)


def chosen(given: argparse.Namespace) -> list[tuple[Any, int]]:
    """Return the cases with their widths that the options choose, at the size that they choose."""
    from bench.cases import CASES

    size = given.mebibytes << 20 if given.mebibytes else QUICK_SIZE if given.quick else None
    widths = given.width or (QUICK_WIDTHS if given.quick else None)
    cases = [case for case in CASES if not given.case or any(text in case.name for text in given.case)]
    cells = [
        (case.of_size(size) if size else case, width)
        for case in cases
        for width in case.widths
        if not widths or width in widths
    ]
    if not cells:
        raise SystemExit("bench: no case has such a name and width")
    return cells


def _run(given: argparse.Namespace, device: str) -> None:
    from bench import report
    from bench.chart import draw
    from bench.machine import gpu, machine

    result: dict[str, Any] = {"device": device, "machine": machine(), "quick": given.quick}
    if device == "cuda":
        result["gpu"] = gpu()
    result["cells"] = list(_cells(given, device))
    given.output.mkdir(parents=True, exist_ok=True)
    stem = given.output / f"{given.name or device}-{result['machine']['date']}"
    Path(f"{stem}.json").write_text(report.as_json(result))
    Path(f"{stem}.md").write_text(report.markdown(result))
    drawn = not given.no_chart and draw(result, f"{stem}.png")
    print(report.summary(result))
    print(f"\nEvery case: {stem}.md{f', chart: {stem}.png' if drawn else ''}")


def _cells(given: argparse.Namespace, device: str) -> Iterator[dict[str, Any]]:
    from bench import report
    from bench.measure import CudaClock, HostClock, measure
    from bench.runners import OURS, PLAIN, RUNNERS

    runners = [one for one in RUNNERS if one.device == device]
    if given.peer:
        runners = [one for one in runners if one.name in (PLAIN, OURS) or one.name.lower() in given.peer]
    cells, rounds = chosen(given), given.rounds or (QUICK_ROUNDS if given.quick else 5)
    if device == "cpu":
        seconds = _estimate(cells, rounds, len(runners))
        text = f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
        print(f"{len(cells)} cells, about {text}", file=sys.stderr)
    clock, began = HostClock() if device == "cpu" else CudaClock(), time.perf_counter()
    for number, (case, width) in enumerate(cells, 1):
        report.progress(number, len(cells), f"{device}: {case.name}, {width} B", began)
        yield from report.cells(case, width, measure(case, width, runners, clock, rounds))


def _estimate(cells: Sequence[tuple[Any, int]], rounds: int, runners: int) -> float:
    """Return about how many seconds a run on the CPU takes, from the time of a copy on this machine."""
    import numpy as np

    source = np.ones(max(case.size for case, _ in cells), np.uint8)
    target, seconds = np.zeros_like(source), []
    for _ in range(3):
        began = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - began)
    large = sum(case.size for case, _ in cells) / source.nbytes
    return min(seconds) * large * runners * (_CHECKING + _TIMING * rounds)


def _common() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--quick", action="store_true", help="smaller arrays, two widths and fewer rounds")
    parser.add_argument("--case", action="append", help="only cases whose name contains this; may be repeated")
    parser.add_argument("--width", action="append", type=int, help="only items of so many bytes; may be repeated")
    parser.add_argument("--rounds", type=int, help="how many times each call is timed, at least")
    parser.add_argument("--mebibytes", type=int, help="largest size of a source")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        parents=[_common()],
        description="Time gpuslice beside other libraries; write a table, a chart and the numbers as JSON.",
        epilog="`python -m bench compare BASE [HEAD]` times two commits of gpuslice; see its --help.",
    )
    parser.add_argument("--device", choices=("cpu", "cuda", "all"), default="cpu", help="by default the CPU")
    parser.add_argument("--peer", action="append", type=str.lower, help="only this other library; may be repeated")
    parser.add_argument("--name", help="first part of the names of the files, before the date; by default the device")
    parser.add_argument("--no-chart", action="store_true", help="draw no chart")
    return parser


def _compare_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench compare",
        parents=[_common()],
        description="Time two commits of gpuslice alternately in one run; write a table, compare-DATE.md.",
    )
    parser.add_argument("base", metavar="BASE", help="the commit to compare with")
    parser.add_argument("head", metavar="HEAD", nargs="?", help="by default the working tree")
    return parser


if __name__ == "__main__":
    main()
