"""The benchmark of the check of a device: ``python -m bench.device_rows`` prints one line of JSON per row.

A row is a case, a width, whether outputs exist before the call, and a library. Results are compared on the device, with
those of CuPy's own copies. A row that fails says why, and the next one follows.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import isqrt
from typing import Any

from bench.case import Case
from bench.cases import CASES
from bench.measure import MODES, CudaClock, quartiles
from bench.runners import OURS, PLAIN, RUNNERS, Runner

NAMES = (
    "contiguous",
    "reversed 1-D",
    "reversed rows of 64 B",
    "reversed rows of 1 KB",
    "step 2",
    "step -3",
    "crop, odd offsets",
    "transposed",
    "split 4 inside",
    "split 5 uneven, inside",
    "split 64 inside, 16 items each",
    "64 columns apart",
    "64 columns together",
    "apart, 3 channels",
    "together, 3 channels",
    "mirror, 3 channels",
    "rotate 90, 3 channels",
    "thumbnail by steps, 3 channels",
    "split 1,000",  # takes the longest, and is limited by the host
)
WIDTHS = (1, 4)
# Kernels that performance counters are wanted of.
PROFILED = (
    ("reversed 1-D", 1),
    ("step 2", 1),
    ("crop, odd offsets", 1),
    ("transposed", 1),
    ("apart, 3 channels", 1),
    ("transposed", 4),
)
_WANTED = (PLAIN, OURS, "CuPy", "PyTorch")
_MOST_CALLS = 50
_SAMPLES = 5
_BROKEN = 3  # exit code: after an illegal access a process can do nothing on the device any more


def cells(size: int) -> list[tuple[Case, int]]:
    """Return the cases with their widths, whose sources have so many bytes, images too."""
    by_name = {case.name: case for case in CASES}
    columns = replace(
        by_name["split 64 inside, 16 items each"],
        name="64 columns apart",
        shape=lambda items, _: (items // 64, 64),
        split=lambda count: [1] * count,
        keeps_axis=False,
    )
    by_name |= {case.name: case for case in (columns, replace(columns, name="64 columns together", joins=True))}
    found = [(replace(by_name[name], size=size), width) for name, width in product(NAMES, WIDTHS)]
    return [(replace(case, shape=_image(case.channels)) if case.channels else case, width) for case, width in found]


def _image(channels: int) -> Callable[[int, int], tuple[int, ...]]:
    """Return what gives the shape of a square image, of an even number of rows and columns."""

    def shape(items: int, _: int) -> tuple[int, ...]:
        side = isqrt(items // channels) // 2 * 2
        return (side, side, channels)

    return shape


def rows(case: Case, width: int, clock: CudaClock, least: float) -> Iterator[dict[str, Any]]:
    """Yield a row per library and mode: times and speed, or why there are none.

    A sample takes at least ``least`` seconds on the device, if that is not more than a few calls.
    """
    import cupy

    runners = [one for name in _WANTED for one in RUNNERS if one.device == "cuda" and one.name == name]
    source = source_on_device(case, width)
    expected = [cupy.ascontiguousarray(output) for output in case.outputs(source)]
    for runner, mode in product(runners, MODES):
        row = {"case": case.name, "width": width, "mode": mode, "runner": runner.name}
        try:
            yield row | _timed(runner, mode, case, source, expected, clock, least)
        except NotImplementedError as error:
            yield row | {"note": str(error)}
        except Exception as error:
            yield row | {"error": f"{type(error).__name__}: {error}".split("\n")[0][:300]}
            cupy.cuda.Device().synchronize()  # fails if the device is lost to this process


def source_on_device(case: Case, width: int) -> Any:
    """Return the source array, filled with numbers that do not repeat."""
    import cupy

    shape = case.shape(case.size // width, width)
    count = 1
    for length in shape:
        count *= length
    words = cupy.arange(-(-count * width // 8), dtype=cupy.uint64)
    words *= cupy.uint64(0x9E3779B97F4A7C15)
    words ^= words >> cupy.uint64(29)
    return words.view(cupy.uint8)[: count * width].view(case.dtype(width)).reshape(shape)


def _timed(
    runner: Runner, mode: str, case: Case, source: Any, expected: Sequence[Any], clock: CudaClock, least: float
) -> dict[str, Any]:
    if missing := runner.missing():
        raise NotImplementedError(missing)
    call = getattr(runner, mode)(case, source)
    if runner.name != PLAIN and not _same_bits(call(), expected):
        return {"error": "wrong result"}
    clock.sample([call], 1)
    count = int(min(_MOST_CALLS, max(3, least / max(clock.sample([call], 1), 1e-6))))
    samples, host = [], []
    for _ in range(_SAMPLES):
        samples.append(clock.sample([call], count))
        host.append(clock.host_seconds / count)
    low, middle, high = quartiles(samples)
    moved = 2 * sum(part.nbytes for part in expected)  # read and written
    return {
        "seconds": [float(f"{value:.4g}") for value in (low, middle, high)],
        "gigabytes_per_second": float(f"{moved / max(middle, 1e-9) / 1e9:.4g}"),
        "host_microseconds": round(1e6 * quartiles(host)[1], 1),
        "host_bound": clock.host_bound,
        "calls": count,
    }


def _same_bits(outputs: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Compare on the device, and wait once."""
    import cupy

    if len(outputs) != len(expected):
        return False
    differs = cupy.zeros((), bool)
    for output, right in zip(outputs, expected, strict=True):
        given = output if isinstance(output, cupy.ndarray) else cupy.from_dlpack(output)
        if given.shape != right.shape or given.dtype != right.dtype or not given.flags.c_contiguous:
            return False
        differs |= (_bits(given) != _bits(right)).any()
    return not bool(differs)


def _bits(array: Any) -> Any:
    return array.reshape(-1).view("u1" if array.itemsize == 1 else f"u{min(8, array.itemsize)}")


def run_once(size: int) -> None:
    """Call gpuslice once for each of a few kernels: for a profiler."""
    (runner,) = (one for one in RUNNERS if one.device == "cuda" and one.name == OURS)
    for case, width in cells(size):
        if (case.name, width) in PROFILED:
            runner.into(case, source_on_device(case, width))()


def main() -> int:
    """Print the rows of all cells from the first one on; return 3 if the device is lost to this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=float, default=512, help="size of a source")
    parser.add_argument("--least", type=float, default=5e-3, help="seconds that a sample takes on the device")
    parser.add_argument("--first", type=int, default=0, help="number of the first cell")
    parser.add_argument("--once", action="store_true", help="call a few kernels once, and print nothing")
    given = parser.parse_args()
    size = int(given.mebibytes * 2**20)
    if given.once:
        run_once(size)
        return 0
    clock = CudaClock()
    for number, (case, width) in enumerate(cells(size)):
        if number < given.first:
            continue
        began = time.perf_counter()
        try:
            for row in rows(case, width, clock, given.least):
                print(json.dumps({"cell": number, **row}), flush=True)
        except Exception as error:
            text = f"{type(error).__name__}: {error}".split("\n")[0][:300]
            print(json.dumps({"cell": number, "case": case.name, "width": width, "error": text}), flush=True)
            return _BROKEN
        print(f"cell {number}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
