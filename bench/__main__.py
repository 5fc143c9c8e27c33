"""``python -m bench``: time gpuslice beside others; ``images``, ``models``, ``compare`` two commits, or ``tune``."""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PICTURE = Path(__file__).parent.parent / "docs" / "images.png"
# Copies of as many bytes that take as long as checking a library's results, and as timing it for a round.
_CHECKING, _TIMING = 50, 8
_IMAGES = 1.5  # times as long: other libraries move the bytes of many of these cases one by one
QUICK_SIZE, QUICK_WIDTHS, QUICK_ROUNDS = 24 << 20, (1, 4), 3


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark, or the comparison."""
    os.environ.setdefault("GPUSLICE_NUM_THREADS", "1")
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["compare"]:
        from bench.compare import main as compare

        compare(_compare_parser().parse_args(words[1:]))
        return
    if words[:1] in (["tune"], ["models"]):
        command = import_module(f"bench.{words[0]}")
        parser = argparse.ArgumentParser(prog=f"python -m bench {words[0]}", description=command.__doc__)
        command.add_options(parser)
        command.main(parser.parse_args(words[1:]))
        return
    if words[:1] == ["images"]:
        _run_images(_image_parser().parse_args(words[1:]))
        return
    given = _parser().parse_args(words)
    for device in ("cpu", "cuda") if given.device == "all" else (given.device,):
        _run(given, device)


def chosen(given: argparse.Namespace, cases: Sequence[Any]) -> list[tuple[Any, int]]:
    """Return the cases with their widths that the options choose, at the size that they choose."""
    widths = given.width or (QUICK_WIDTHS if given.quick else None)
    cases = [case for case in cases if not given.case or any(text in case.name for text in given.case)]
    cells = [
        (case.of_size(_size(given)), width) for case in cases for width in case.widths if not widths or width in widths
    ]
    if not cells:
        raise SystemExit("bench: no case has such a name and width")
    return cells


def _size(given: argparse.Namespace) -> int:
    """Return the bytes of the large sources."""
    from bench.case import LARGE

    return given.mebibytes << 20 if given.mebibytes else QUICK_SIZE if given.quick else LARGE


def _run(given: argparse.Namespace, device: str) -> None:
    from bench import numbers, report
    from bench.cases import CASES
    from bench.chart import draw

    result = _measured(given, device, CASES)
    given.output.mkdir(parents=True, exist_ok=True)
    stem = given.output / f"{given.name or device}-{result['machine']['date']}"
    Path(f"{stem}.json").write_text(numbers.as_json(result))
    Path(f"{stem}.md").write_text(report.markdown(result))
    drawn = not given.no_chart and draw(result, f"{stem}.png")
    print(report.summary(result))
    print(f"\nEvery case: {stem}.md{f', chart: {stem}.png' if drawn else ''}")


def _run_images(given: argparse.Namespace) -> None:
    from bench import numbers, report
    from bench.chart import draw_images
    from bench.images import IMAGES

    result = _measured(given, "cpu", IMAGES)
    text = report.images(result)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(text)
    path = given.output.with_suffix(".json")
    path.write_text(numbers.as_json(result))
    drawn = not given.no_chart and draw_images(result, str(given.picture))
    print(f"{text}\nThe numbers: {path}{f', picture: {given.picture}' if drawn else ''}")


def _measured(given: argparse.Namespace, device: str, cases: Sequence[Any]) -> dict[str, Any]:
    """Measure the cases that the options choose, and return the result."""
    from bench.machine import gpu, machine

    result: dict[str, Any] = {"device": device, "machine": machine(), "quick": given.quick, "size": _size(given)}
    if device == "cuda":
        result["gpu"] = gpu()
    result["cells"] = list(_cells(given, device, chosen(given, cases)))
    return result


def _cells(given: argparse.Namespace, device: str, cells: Sequence[tuple[Any, int]]) -> Iterator[dict[str, Any]]:
    from bench import numbers
    from bench.measure import CudaClock, HostClock, measure
    from bench.progress import progress
    from bench.runners import OURS, PLAIN, RUNNERS

    runners = [one for one in RUNNERS if one.device == device]
    if given.peer:
        runners = [one for one in runners if one.name in (PLAIN, OURS) or one.name.lower() in given.peer]
    rounds = given.rounds or (QUICK_ROUNDS if given.quick else 5)
    if device == "cpu":
        seconds = _estimate(cells, rounds, runners)
        text = f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
        print(f"{len(cells)} cells, about {text}", file=sys.stderr)
    clock, began = HostClock() if device == "cpu" else CudaClock(), time.perf_counter()
    for number, (case, width) in enumerate(cells, 1):
        progress(number, len(cells), f"{device}: {case.name}, {width} B", began)
        yield from numbers.cells(case, width, measure(case, width, runners, clock, rounds))


def _estimate(cells: Sequence[tuple[Any, int]], rounds: int, runners: Sequence[Any]) -> float:
    """Return about how many seconds a run on the CPU takes, from the time of a copy on this machine."""
    import numpy as np

    sizes = [prod(case.shape(case.size // width, width)) * width for case, width in cells]
    source = np.ones(max(sizes), np.uint8)
    target, seconds = np.zeros_like(source), []
    for _ in range(3):
        began = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - began)
    times = [sum(runner.times(case) for runner in runners) * (_IMAGES if case.recipe else 1) for case, _ in cells]
    work = sum(size * count for size, count in zip(sizes, times, strict=True)) / source.nbytes
    return min(seconds) * work * (_CHECKING + _TIMING * rounds)


def _common() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--quick", action="store_true", help="smaller arrays, two widths and fewer rounds")
    parser.add_argument("--case", action="append", help="only cases whose name contains this; may be repeated")
    parser.add_argument("--width", action="append", type=int, help="only items of so many bytes; may be repeated")
    parser.add_argument("--rounds", type=int, help="how many times each call is timed, at least")
    parser.add_argument("--mebibytes", type=int, help="largest size of a source")
    return parser


def _compared() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--peer", action="append", type=str.lower, help="only this other library; may be repeated")
    parser.add_argument("--no-chart", action="store_true", help="draw no chart")
    return parser


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        parents=[_common(), _compared()],
        description="Time gpuslice beside other libraries; write a table, a chart and the numbers as JSON.",
        epilog="`python -m bench images --output FILE` times the cases of images only, `python -m bench compare BASE "
        "[HEAD]` two commits of gpuslice; see their --help.",
    )
    _add_folder(parser)
    parser.add_argument("--device", choices=("cpu", "cuda", "all"), default="cpu", help="by default the CPU")
    parser.add_argument("--name", help="first part of the names of the files, before the date; by default the device")
    return parser


def _image_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench images",
        parents=[_common(), _compared()],
        description="Time gpuslice beside other libraries on images; print a table, and draw a picture of the bytes.",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", required=True, help="a Markdown file for the table")
    parser.add_argument("--picture", type=Path, metavar="FILE", default=PICTURE, help="by default docs/images.png")
    return parser


def _compare_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench compare",
        parents=[_common()],
        description="Time two commits of gpuslice alternately in one run; write a table, compare-DATE.md.",
    )
    _add_folder(parser)
    parser.add_argument("base", metavar="BASE", help="the commit to compare with")
    parser.add_argument("head", metavar="HEAD", nargs="?", help="by default the working tree")
    return parser


if __name__ == "__main__":
    main()
