"""The check of a device: limits of time, failing steps and processes, wheels, wrong results. Only the last needs a device."""

import argparse
import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import gpuslice as gs
from bench import device_check, device_rows, device_versions
from bench.device_benchmark import read_rows, run_benchmark, table
from bench.device_steps import Outcome, environment_with, run
from bench.runners import OURS, RUNNERS, Runner
from gpuslice.engine.plan import KERNELS

HERE = Path(__file__).parent
# Starts a child that ignores SIGTERM, prints its number, and waits, as a tool does that runs a program under it.
PARENT = """
import subprocess, sys
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
process.stdout.readline()
print(process.pid, flush=True)
process.wait()
"""


def is_running(number):
    """Return whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc for processes")
def test_a_step_that_takes_too_long_ends_with_its_children(tmp_path):
    file = tmp_path / "out.txt"
    outcome = run([(sys.executable, "-c", PARENT)], file, 4, HERE)
    assert (outcome.code, outcome.what, outcome.failed) == (124, "stopped: too long", True)
    number = int(file.read_text().splitlines()[-1])  # what was printed before the end is there
    assert outcome.last == str(number)
    for _ in range(200):
        if not is_running(number):
            break
        time.sleep(0.05)
    assert not is_running(number)


def test_commands_at_the_same_time_share_a_file(tmp_path):
    file = tmp_path / "out.txt"
    commands = [
        (sys.executable, "-c", f"print('number', {i}); raise SystemExit({code})") for i, code in enumerate([0, 3, 0])
    ]
    outcome = run(commands, file, 60, HERE)
    assert (outcome.code, outcome.what) == (3, "failed (3)")
    assert sorted(line for line in file.read_text().splitlines() if not line.startswith(("$", " "))) == [
        "number 0",
        "number 1",
        "number 2",
    ]
    assert run(commands, file, 0, HERE) == Outcome(None, 0, "no time was left")


def test_wheels_are_in_site_packages(tmp_path):
    """Where cuda-pathfinder looks for libraries; the packages of this Python stay."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "lost-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("lost.py", "here = True")
        wheel.writestr("nvidia/cu99/lib/libnvrtc.so.99", "")
        wheel.writestr("lost-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: lost\nVersion: 1.0\n")
    python = environment_with(wheels, tmp_path)
    ask = """
import importlib.metadata, json, pathlib, site, lost, numpy
places = [pathlib.Path(path) for path in site.getsitepackages()]
found = [any((path / name).exists() for path in places) for name in ("nvidia/cu99/lib/libnvrtc.so.99", "numpy")]
print(json.dumps([lost.here, importlib.metadata.version("lost"), numpy.__version__, *found]))
"""
    answer = json.loads(subprocess.check_output([python, "-c", ask], text=True))
    assert answer == [True, "1.0", np.__version__, True, True]


# In place of bench.device_rows: it dies in the cells of argv[1], and the last cell is 5.
ROWS = """
import json, os, sys
first, deadly = int(sys.argv[-1]), json.loads(sys.argv[1])
for cell in range(first, 6):
    row = {"cell": cell, "case": f"case {cell}", "width": 1, "mode": "into", "seconds": [1, 1, 1], "host_bound": cell == 0}
    print(json.dumps(row | {"runner": "copy", "gigabytes_per_second": 4.0}), flush=True)
    if cell in deadly:
        print("a message", json.dumps({"cell": 99})[:4], flush=True)
        os._exit(3)
    print(json.dumps(row | {"runner": "gpuslice", "gigabytes_per_second": 2.0}), flush=True)
"""


@pytest.mark.parametrize(("deadly", "code"), [([], 0), ([1, 2, 4], 1), ([0, 1, 2, 3, 4, 5], 1)])
def test_a_benchmark_goes_on_after_a_process_that_fails(tmp_path, deadly, code):
    file, program = tmp_path / "rows.jsonl", tmp_path / "rows.py"
    program.write_text(ROWS)
    outcome, text = run_benchmark((sys.executable, str(program), json.dumps(deadly)), file, time.monotonic() + 60, [])
    assert outcome.code == code
    rows = read_rows(file)
    assert [row["cell"] for row in rows if row["runner"] == "copy"] == list(range(6))
    assert [row["cell"] for row in rows if row["runner"] == "gpuslice"] == [i for i in range(6) if i not in deadly]
    for cell in range(6):
        shown = "-" if cell in deadly else "0.50 *host*" if cell == 0 else "0.50"
        assert f"| case {cell} | 1 | 4.0 | existing | {shown} | - | - |" in text


def test_a_benchmark_that_cannot_start_ends(tmp_path):
    outcome, text = run_benchmark(
        (sys.executable, "-c", "raise SystemExit(5)"), tmp_path / "rows", time.monotonic() + 60, []
    )
    assert outcome.code == 1
    assert outcome.last.startswith("0 cells, 0 rows, 0 with errors, ")
    assert text == table([])


def test_each_step_leaves_its_file_and_a_summary(tmp_path, monkeypatch):
    """Whatever the steps before it did."""
    given = argparse.Namespace(output=tmp_path, emulation=None, mebibytes=1, rounds=2, minutes=8)
    check = device_check.Check(given, sys.executable)
    seen = []

    def steps():
        for name, code in (("first", 1), ("second", 0)):
            seen.append(sorted(path.name for path in tmp_path.iterdir()))
            command = (sys.executable, "-c", f"print('the', '{name}'); raise SystemExit({code})")
            yield device_check.Step(name, f"{name}.txt", 60, [[command], []])
        seen.append(sorted(path.name for path in tmp_path.iterdir()))
        yield device_check.Step("third", "third.txt", 60)

    monkeypatch.setattr(check, "steps", steps)
    check.run()
    assert seen == [[], ["first.txt", "summary.md"], ["first.txt", "second.txt", "summary.md"]]
    text = (tmp_path / "summary.md").read_text()
    for line in (
        "| first | failed (1) | 0 s | `the first` |",
        "| second | passed | 0 s | `the second` |",
        "| third | not run | 0 s | ",
    ):
        assert line in text
    assert check.failed


def test_there_are_at_most_eight_files():
    given = argparse.Namespace(output=Path(), emulation=None, mebibytes=1, rounds=300, minutes=8)
    steps = list(device_check.Check(given, sys.executable).steps())
    assert len({step.file for step in steps}) == len(steps) <= 7  # and the summary
    words = [word for step in steps for commands in step.commands for command in commands for word in command]
    assert {word for word in words if word.endswith(".py") and "/" in word and not word.startswith("--")} <= {
        str(path.relative_to(HERE.parent)) for path in HERE.rglob("*.py")
    }


def test_the_tests_of_a_device_need_only_pytest():
    """No other package that its machine may lack."""
    lacking = dict.fromkeys(set(device_versions.PACKAGES) - {"pytest"})
    words = ["--collect-only", "-q", "-p", "no:cacheprovider", "tests/test_cuda.py", "tests/fuzz/test_on_device.py"]
    program = f"import sys; sys.modules.update({lacking}); import pytest; raise SystemExit(pytest.main({words}))"
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # among them is hypothesis
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=HERE.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "test_cuda.py::test_every_width_of_item" in done.stdout


@pytest.mark.gpu
def test_rows_of_a_device(monkeypatch):
    """A wrong result, a failure and a library that cannot are rows too. No row ends the others."""
    from bench.measure import CudaClock

    def wrong(case, x):
        return lambda: [x[::-1].copy() if case.joins else x]

    def fails(case, x):
        raise RuntimeError("first line\nsecond line")

    def cannot(case, x):
        raise NotImplementedError("has no out=")

    extra = [Runner("wrong", "cuda", (), wrong, fails), Runner("odd", "cuda", (), cannot, cannot)]
    monkeypatch.setattr(device_rows, "RUNNERS", [*extra, *RUNNERS])
    monkeypatch.setattr(device_rows, "_WANTED", ("copy", "wrong", "odd", "gpuslice", "CuPy"))
    for case, width in device_rows.cells(1 << 16):
        if case.name in ("reversed 1-D", "apart, 3 channels", "together, 3 channels", "transposed"):
            found = {(row["runner"], row["mode"]): row for row in device_rows.rows(case, width, CudaClock(), 0)}
            assert len(found) == 10
            for runner in ("copy", "gpuslice", "CuPy"):
                assert all(found[runner, mode]["seconds"][0] >= 0 for mode in ("into", "fresh"))
                assert {"gigabytes_per_second", "host_microseconds", "host_bound"} < set(found[runner, "into"])
            assert found["wrong", "into"]["error"] == "wrong result"
            assert found["wrong", "fresh"]["error"] == "RuntimeError: first line"
            assert found["odd", "into"]["note"] == "has no out="


@pytest.mark.gpu
def test_the_benchmark_runs_each_kind_of_kernel():
    (runner,) = (one for one in RUNNERS if one.device == "cuda" and one.name == OURS)
    with gs.trace() as t:
        for case, width in device_rows.cells(1 << 16):
            runner.into(case, device_rows.source_on_device(case, width))()
    assert {launch.kernel.partition("<")[0] for launch in t.launches} == {kernel.kind for kernel in KERNELS}


@pytest.mark.gpu
def test_what_a_profiler_runs():

    with gs.trace() as t:
        device_rows.run_once(1 << 16)
    names = [launch.kernel for launch in t.launches]
    assert len(names) == len(device_rows.PROFILED) == 6
    assert set(names) == {"rows<1, -1>", "rows<1, 2>", "rows<1, 1>", "tiles<1, 0>", "planes<1, 3>", "tiles<4, 0>"}
