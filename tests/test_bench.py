"""The benchmark does what it says, in small: every case by every runner that is here gives NumPy's bits. Nothing is timed."""

import json

import numpy as np
import pytest

from bench.__main__ import main
from bench.cases import CASES
from bench.clocks import HostClock
from bench.compare import compare
from bench.measure import measure
from bench.report import markdown
from bench.runner import Runner, bounds
from bench.runners import RUNNERS

SMALL = 1 << 16
HERE = [one for one in RUNNERS if one.device == "cpu" and one.name in ("copy", "gpuslice", "NumPy", "onnx.reference")]


class Once(HostClock):
    """Runs a call once and says how often it has."""

    def __init__(self):
        self.calls = 0

    def count(self, calls):
        return 1

    def sample(self, calls, count):
        calls[0]()
        self.calls += 1
        return float(self.calls)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_runner_gives_the_same_bits(case):
    for width in case.widths:
        clock = Once()
        rows = measure(case.of_size(SMALL), width, HERE, clock, rounds=2)
        run = {(row.runner, row.mode) for row in rows if row.seconds}
        assert {("copy", "into"), ("NumPy", "into"), ("gpuslice", "fresh"), ("onnx.reference", "fresh")} <= run
        assert (("gpuslice", "into") in run) == (not case.chain)
        assert clock.calls == 2 * len(run)
        assert all(row.note for row in rows if not row.seconds)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "name", ["reversed 1-D", "split 5 uneven, inside", "graph: Slice, Slice, Split 3", "tiny split 4, 64 B"]
)
def test_runners_on_a_device_give_the_same_bits(name):
    from bench.clocks import CudaClock

    case = next(case for case in CASES if case.name == name)
    runners = [one for one in RUNNERS if one.device == "cuda" and one.name in ("copy", "gpuslice", "CuPy")]
    for size in (SMALL, 2 * SMALL):
        rows = measure(case.of_size(size), 4, runners, CudaClock(), rounds=1)
        assert {row.runner for row in rows if row.seconds} == {"copy", "gpuslice", "CuPy"}
        assert all(row.seconds[0] >= 0 for row in rows if row.seconds)


def test_a_runner_with_wrong_results_is_refused():
    case = next(case for case in CASES if case.name == "reversed 1-D").of_size(SMALL)
    wrong = Runner("wrong", "cpu", (), lambda _, x: lambda: [x], lambda _, x: lambda: [x])
    with pytest.raises(ValueError, match="wrong gives wrong results for reversed 1-D"):
        measure(case, 1, [wrong], Once(), rounds=1)


def test_a_runner_that_is_not_here_is_a_row_that_says_so():
    absent = Runner("absent", "cpu", ("no_such_package",), None, None)
    rows = measure(CASES[0].of_size(SMALL), 1, [absent], Once(), rounds=1)
    assert [row.note for row in rows] == ["not installed: no_such_package"] * 2


@pytest.mark.parametrize(
    "index", [(slice(None, None, -2),), (slice(3, -1), slice(1, -2)), (slice(None), slice(5, None, -1))]
)
def test_bounds_say_to_onnx_what_an_index_says_to_numpy(index):
    from gpuslice import slice as onnx_slice

    x = np.arange(72).reshape(8, 9)
    assert (onnx_slice(x, *bounds(index, x.shape)) == x[index]).all()


def test_the_command_writes_what_it_says(tmp_path, capsys):
    options = ["--quick", "--mebibytes", "1", "--rounds", "1", "--width", "4", "--peer", "numpy", "--no-chart"]
    main([*options, "--case", "reversed 1-D", "--case", "speech", "--output", str(tmp_path)])
    (path,) = tmp_path.glob("cpu-*.json")
    result = json.loads(path.read_text())
    assert {row["runner"] for row in result["rows"]} == {"copy", "gpuslice", "NumPy"}
    assert all(row["seconds"] for row in result["rows"])
    assert {"date", "processor", "packages", "commit"} <= set(result["machine"])
    table = path.with_suffix(".md").read_text()
    assert "| reversed 1-D | 4 |" in table
    assert "| speech: LSTM gates | 4 |" in table
    for row in result["rows"]:
        row["seconds"] = [second * 2 for second in row["seconds"]]
    (tmp_path / "slower.json").write_text(json.dumps(result))
    lines = compare(path, tmp_path / "slower.json").splitlines()
    assert sum(line.endswith(" 0.50 |") for line in lines) == 6
    capsys.readouterr()


def test_cells_below_their_target_or_a_peer_are_marked():
    def row(runner, seconds):
        return {"group": "reversed", "case": "reversed 1-D", "width": 1, "runner": runner, "mode": "into"} | {
            "seconds": [seconds],
            "note": "",
        }

    machine = {"date": "", "commit": "", "processor": "", "python": "", "packages": {}, "kernels": ""}
    for ours, numpy, cell in [
        (0.5, 1.0, "2.00"),
        (1.0, 2.0, "**1.00**"),
        (0.8, 0.5, "_1.25_"),
        (2.0, 1.0, "_**0.50**_"),
    ]:
        rows = [row("copy", 1.0), row("gpuslice", ours), row("NumPy", numpy)]
        assert f"| reversed 1-D | 1 | {cell} |" in markdown({"device": "cpu", "machine": machine, "rows": rows})
