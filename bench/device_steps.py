"""Commands with a limit of time, whose output is on disk as soon as it is printed; a Python that sees some wheels."""

import contextlib
import os
import signal
import site
import subprocess
import sys
import time
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

Command = tuple[str, ...]
TIMED_OUT = 124
_GRACE = 3  # seconds between SIGTERM and SIGKILL


@dataclass
class Outcome:
    """How commands ended.

    Attributes
    ----------
    code : int or None
        The first exit code other than 0; 124 if they took too long; None if they were not run.
    seconds : float
    last : str
        The last line that they printed.
    """

    code: int | None
    seconds: float
    last: str

    @property
    def failed(self) -> bool:
        """Whether something was run and went wrong."""
        return self.code not in (0, None)

    @property
    def what(self) -> str:
        """The outcome in words."""
        return {0: "passed", None: "not run", TIMED_OUT: "stopped: too long"}.get(self.code, f"failed ({self.code})")


def run(commands: Sequence[Command], file: Path, seconds: float, folder: Path) -> Outcome:
    """Run commands at the same time, each in a process group of its own, and add what they print to a file.

    Groups that run for longer are killed, so that no child of them is left.
    """
    if seconds < 1:
        return Outcome(None, 0, "no time was left")
    began = time.monotonic()
    with file.open("a") as output:
        output.writelines(f"$ {' '.join(command)}\n" for command in commands)
        output.flush()
        processes = [
            subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            for command in commands
        ]
    try:
        codes = [_wait(process, began + seconds) for process in processes]
    finally:
        _end(processes)
    return Outcome(next(filter(None, codes), 0), time.monotonic() - began, last_line(file))


def last_line(file: Path) -> str:
    """Return the last line of a file that is not empty, cut to what a table can show."""
    lines = [line.strip() for line in file.read_text(errors="replace").splitlines() if line.strip()]
    return (lines[-1] if lines else "")[:160].replace("|", "/").replace("`", "'")


def environment_with(wheels: Path, work: Path) -> str:
    """Return a Python that sees the packages of this one and those of a folder of wheels.

    It is a virtual environment, not a folder in PYTHONPATH: cuda-pathfinder, which CuPy asks for NVRTC, looks into
    site-packages only.
    """
    venv.EnvBuilder(system_site_packages=True, with_pip=False, symlinks=True).create(work / "python")
    python = str(work / "python" / "bin" / "python")
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.check_output([python, "-c", ask], text=True).strip())
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
    if sys.prefix != sys.base_prefix:  # this Python is a virtual environment itself, and a new one is not based on it
        lines = [f"import site; site.addsitedir({path!r})" for path in site.getsitepackages([sys.prefix])]
        lines.append(f"import site; site.PREFIXES.append({sys.prefix!r})")
        (packages / "outer.pth").write_text("\n".join(lines))
    return python


def _wait(process: "subprocess.Popen[bytes]", until: float) -> int:
    try:
        return process.wait(max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return TIMED_OUT


def _end(processes: "Sequence[subprocess.Popen[bytes]]") -> None:
    """End what is left of the process groups, first politely, and all of them in the same time."""
    for process in processes:
        _signal(process, signal.SIGTERM)
    until = time.monotonic() + _GRACE
    while time.monotonic() < until and any(_lives(process) for process in processes):
        time.sleep(0.05)
    for process in processes:
        _signal(process, signal.SIGKILL)
        process.wait()


def _signal(process: "subprocess.Popen[bytes]", number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _lives(process: "subprocess.Popen[bytes]") -> bool:
    """Return whether a process of the group is left."""
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True
