"""One side of a comparison: a commit installed in a folder, and a process that runs its calls a sample at a time.

The process reads a question in JSON per line and writes the answer. ``{"case": ..., "width": ..., "size": ...}``
prepares a cell and returns its rows; ``{"row": ..., "count": ...}`` returns the seconds per call. It uses only the
public API, so that commits with different internals can be compared.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import gpuslice as gs
from bench.case import Case
from bench.cases import CASES
from bench.measure import HostClock, Timed, prepare
from bench.peers import Call
from bench.runners import OURS, RUNNERS, Runner

_ROOT = Path(__file__).parent.parent
# Seconds of a sample at least; calls of microseconds are repeated.
_LEAST = 2e-3
_RUNNERS = [one for one in RUNNERS if one.name == OURS and one.device == "cpu"]


def run_node(case: Case, x: Any) -> Call:
    """``run_node`` of a Slice-13."""
    from onnx import helper

    from gpuslice import onnx

    node = helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"])
    inputs = [x, *(np.asarray(one) for one in case.bounds(x.shape))]
    return lambda: onnx.run_node(node, inputs, opset=13)


# Calls that the table of cases lacks, each with the case whose source it takes.
EXTRAS: dict[str, tuple[str, Callable[[Case, Any], Call]]] = {
    "run_node: Slice-13": ("reversed 1-D", run_node),
}


def git(*arguments: str) -> str:
    """Return what git prints for this repository."""
    done = subprocess.run(["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"bench: {done.stderr.strip()}")
    return done.stdout


def install(revision: str | None, folder: Path) -> Path:
    """Install a commit, or the working tree, into a folder.

    Its own build compiles the kernels.

    Returns
    -------
    Path
        The folder to import from.
    """
    sources, target = folder / "sources", folder / "installed"
    sources.mkdir(parents=True)
    if revision is None:
        for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
            if (_ROOT / name).is_file():  # listed too if it was deleted
                (sources / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(_ROOT / name, sources / name)
    else:
        git("archive", "--format=tar", f"--output={folder / 'sources.tar'}", revision)
        with tarfile.open(folder / "sources.tar") as archive:
            archive.extractall(sources, filter="data")
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--target", str(target)]
    options += ["--no-build-isolation"] if find_spec("hatchling") else []
    command = [sys.executable, "-m", "pip", "install", *options, str(sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"bench: {revision or 'the working tree'} could not be installed:\n{done.stderr}")
    return target


class Side:
    """A process that imports gpuslice from a folder.

    Parameters
    ----------
    folder : Path
        What `install` returned.
    """

    def __init__(self, folder: Path) -> None:
        path = [str(folder), str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "bench.sides"],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        found = self._answer()
        if not Path(found).is_relative_to(folder):
            raise SystemExit(f"bench: {found} was imported, not gpuslice in {folder}")

    def ask(self, **question: Any) -> Any:
        """Send a question and return the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(question)}\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        text = self._process.stdout.readline()
        if not text:
            raise SystemExit("bench: a process of the comparison failed; its error is above")
        return json.loads(text)


def prepared(clock: HostClock, name: str, width: int, size: int) -> list[Timed]:
    """Return what is timed of a cell, with its results checked."""
    source, make = EXTRAS.get(name, (name, None))
    case = next(case for case in CASES if case.name == source).of_size(size)
    if make is None:
        return prepare(case, width, _RUNNERS, clock)
    return prepare(case, width, [Runner(OURS, "cpu", (), _no_out, make)], clock)


def _no_out(case: Case, x: Any) -> Call:
    raise NotImplementedError("has no out=")


def main() -> None:
    """Print which gpuslice this is, then answer questions until stdin ends."""
    print(json.dumps(gs.__file__), flush=True)
    clock, rows = HostClock(_LEAST), []
    for text in sys.stdin:
        question = json.loads(text)
        if "case" in question:
            rows.clear()  # frees the arrays of the cell before
            rows += prepared(clock, question["case"], question["width"], question["size"])
            answer: Any = [{"mode": row.mode, "count": row.count, "note": row.note} for row in rows]
        else:
            answer = clock.sample(rows[question["row"]].calls, question["count"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
