"""``python -m bench``: time gpuslice beside others; ``sizes``, ``images``, ``models``, ``compare``, or ``tune``."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from bench import options


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark, or another command."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["sizes"]:  # which sets the number of threads itself
        from bench.sizes import main as sizes

        sizes(options.size_parser().parse_args(words[1:]))
        return
    os.environ.setdefault("GPUSLICE_NUM_THREADS", "1")
    if words[:1] == ["compare"]:
        from bench.compare import main as compare

        compare(options.compare_parser().parse_args(words[1:]))
    elif words[:1] in (["tune"], ["models"]):
        command = import_module(f"bench.{words[0]}")
        parser = argparse.ArgumentParser(prog=f"python -m bench {words[0]}", description=command.__doc__)
        command.add_options(parser)
        command.main(parser.parse_args(words[1:]))
    elif words[:1] == ["images"]:
        _run_images(options.image_parser().parse_args(words[1:]))
    else:
        given = options.run_parser().parse_args(words)
        for device in ("cpu", "cuda") if given.device == "all" else (given.device,):
            _run(given, device)


def _run(given: argparse.Namespace, device: str) -> None:
    from bench import report, run
    from bench.cases import CASES
    from bench.chart import draw

    result = _measured(given, device, CASES)
    stem = run.save(given, result, given.name or device, report.markdown(result))
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
    from bench import numbers, run

    found = run.timed(given, run.cells_of(given, cases), run.runners_of(given, device))
    cells = [one for cell, rows in found for one in numbers.cells(cell.case, cell.width, rows)]
    return run.result_of(given, device) | {"cells": cells}


if __name__ == "__main__":
    main()
