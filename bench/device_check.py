"""The steps of device_check.sh, each with a limit and a file of its own, and a summary after each of them.

Until the wheels are installed nothing but Python's library may be imported here. No step needs another's result.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.device_benchmark import run_benchmark
from bench.device_steps import Command, Outcome, environment_with, run

_ROOT = Path(__file__).parent.parent
_PROCESSES = 8
_FUZZ = ("tests/fuzz/on_device.py",)
# Warnings are not errors here: those of other packages and of this machine would hide the results.
_PYTEST = (
    "-m",
    "pytest",
    "-m",
    "gpu",
    "-q",
    "-W",
    "default",
    "-p",
    "no:cacheprovider",
    "--continue-on-collection-errors",
)
# Not those that ran before, nor files without gpu tests that need onnxruntime, which would be errors without it.
_LEFT_OUT = ("test_cuda.py", "fuzz", "cuda_on_cpu", "models", "test_bench_models.py")
_OTHERS = (*(f"--ignore=tests/{name}" for name in _LEFT_OUT), "tests")
_SANITIZERS = ("memcheck", "racecheck")
_COUNTERS = ("SpeedOfLight", "MemoryWorkloadAnalysis", "Occupancy", "WarpStateStats")


@dataclass
class Step:
    """A step of the check.

    Attributes
    ----------
    name : str
    file : str
        What its commands print goes there, as they print it.
    seconds : int
        At most.
    commands : list of list of Command
        One after the other; those in one list at the same time.
    """

    name: str
    file: str
    seconds: int
    commands: list[list[Command]] = field(default_factory=list)


class Check:
    """The steps for what the options ask for.

    Parameters
    ----------
    given : argparse.Namespace
    python : str
        It sees the wheels.
    """

    def __init__(self, given: argparse.Namespace, python: str) -> None:
        self._given = given
        # On the emulation of tests/cuda_on_cpu/, a program runs inside of one that loads it.
        self._head = (python,) if given.emulation is None else (python, "-m", "cuda_on_cpu.load", str(given.emulation))
        self._pytest = (python, *_PYTEST)
        self._benchmark = ["--mebibytes", str(given.mebibytes)]
        if given.emulation is not None:
            self._pytest += (f"--cuda-on-cpu={given.emulation}",)
            self._benchmark += ["--least", "0"]
        self._until = time.monotonic() + 60 * given.minutes - 10
        self._lines: list[str] = []
        self._tables: list[str] = []
        self.failed = False

    def steps(self) -> Iterator[Step]:
        """Yield the steps in the order of their worth."""
        rounds = str(max(2, self._given.rounds // 2))
        fuzz = [(*self._head, *_FUZZ, "--count", rounds, "--seed", bits, "--index-bits", bits) for bits in ("32", "64")]
        fill = [(*self._head, "-m", "bench.device_kernels", f"{i}/{_PROCESSES}") for i in range(_PROCESSES)]
        smi = shutil.which("nvidia-smi")
        yield Step(
            "versions", "versions.txt", 30, [[(*self._head, "-m", "bench.device_versions")], [(smi,)] if smi else []]
        )
        yield Step("kernel cache", "kernel_cache.txt", 75, [fill])
        yield Step(
            "test_cuda and fuzz", "tests.txt", 90, [[(*self._pytest, "tests/test_cuda.py")], *([one] for one in fuzz)]
        )
        yield Step("benchmark", "benchmark.jsonl", 110)
        yield Step("counters", "counters.txt", 30, self._counters())
        yield Step("sanitizers", "sanitizers.txt", 120, list(self._sanitized()))
        yield Step("other tests", "other_tests.txt", 120, [[(*self._pytest, *_OTHERS)]])

    def run(self) -> None:
        """Run all steps; write the summary after each."""
        for step in self.steps():
            began = time.monotonic()
            outcomes = list(self._outcomes(step))
            self.failed |= any(outcome.failed for outcome in outcomes)
            seconds = time.monotonic() - began
            self._lines += [f"| {step.name} | {one.what} | {one.seconds:.0f} s | `{one.last}` |" for one in outcomes]
            print(
                f"{step.name}: {', '.join(one.what for one in outcomes)}, {seconds:.0f} s", file=sys.stderr, flush=True
            )
            self._write_summary()

    def _outcomes(self, step: Step) -> Iterator[Outcome]:
        file, until = self._given.output / step.file, min(self._until, time.monotonic() + step.seconds)
        file.write_text("")
        if step.name == "benchmark":
            outcome, table = run_benchmark(self._head, file, until, self._benchmark)
            self._tables = [table]
            yield outcome
            return
        wanted = [commands for commands in step.commands if commands]
        if not wanted:
            yield Outcome(None, 0, "its program is not on this machine")
        for left, commands in zip(range(len(wanted), 0, -1), wanted, strict=True):
            # Each may take an equal share of the time that is left.
            share = (until - time.monotonic()) / left if step.name == "sanitizers" else until - time.monotonic()
            yield run(commands, file, share, _ROOT)

    def _counters(self) -> list[list[Command]]:
        found = _found("ncu")
        sections = [word for name in _COUNTERS for word in ("--section", name)]
        profiled = ("--target-processes", "all", "--kernel-name-base", "demangled", "--kernel-name", "regex:gpuslice")
        once = ("-m", "bench.device_rows", "--once", *self._benchmark)
        return [[(found, *profiled, *sections, *self._head, *once)]] if found else []

    def _sanitized(self) -> Iterator[list[Command]]:
        found = _found("compute-sanitizer")
        # CuPy's pool would hide a write past an array's end, in another array of the same block.
        fuzz = (*self._head, *_FUZZ, "--no-pool", "--count", "100000", "--seconds", "40")
        for tool in _SANITIZERS if found else ():
            yield [(found, "--tool", tool, "--target-processes", "all", "--error-exitcode", "9", *fuzz)]

    def _write_summary(self) -> None:
        title = (
            "# Check of a device" if self._given.emulation is None else "# Rehearsal on an emulated device: no GPU ran"
        )
        head = [title, "", "| step | result | time | last line |", "|---|---|---:|---|"]
        text = "\n".join([*head, *self._lines, "", *self._tables])
        (self._given.output / "summary.md").write_text(f"{text.rstrip()}\n")


def _found(program: str) -> str | None:
    return shutil.which(program) or shutil.which(f"/usr/local/cuda/bin/{program}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="device_check.sh", description="Check and time gpuslice on a CUDA device.")
    parser.add_argument("--output", type=Path, required=True, help="folder for the files, which are at most 8")
    parser.add_argument("--wheels", type=Path, help="folder of wheels that this machine lacks")
    parser.add_argument("--minutes", type=float, default=8, help="how long it may take in all")
    parser.add_argument("--mebibytes", type=float, default=512, help="the size of the benchmark's sources")
    parser.add_argument("--rounds", type=int, default=300, help="how many random arrays the fuzz tries")
    parser.add_argument(
        "--emulation", type=Path, help="rehearse on what tests/cuda_on_cpu/build.py made in this folder"
    )
    return parser


def main() -> int:
    """Run the check; return 1 if something failed."""
    given = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that what runs is killed
    given.output = given.output.resolve()
    given.output.mkdir(parents=True, exist_ok=True)
    if given.emulation is not None:
        given.emulation = given.emulation.resolve()
        os.environ["PYTHONPATH"] += f"{os.pathsep}{_ROOT / 'tests'}"
    with tempfile.TemporaryDirectory() as work:
        python = environment_with(given.wheels, Path(work)) if given.wheels else sys.executable
        check = Check(given, python)
        check.run()
    return int(check.failed)


if __name__ == "__main__":
    sys.exit(main())
