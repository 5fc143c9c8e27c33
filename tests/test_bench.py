"""The benchmark on small arrays: every installed runner returns NumPy's bits for every case. Nothing is timed."""

import argparse
import json
import re
import subprocess
from importlib.util import find_spec
from itertools import count, pairwise
from math import prod
from pathlib import Path

import pytest

from bench import compare, estimate, image_peers, options, sides, size_report, sizes
from bench.__main__ import main
from bench.cases import CASES
from bench.images import IMAGES
from bench.measure import HostClock, measure
from bench.numbers import by_group, cells, speeds_of
from bench.report import images, markdown, summary
from bench.runners import RUNNERS, Runner

SMALL = 1 << 14
# PyTorch and onnxruntime take long to load.
HERE = [one for one in RUNNERS if one.device == "cpu" and one.name not in ("PyTorch", "onnxruntime")]
BY_NAME = {case.name: case for case in CASES}


class Once(HostClock):
    """Runs a call once and returns the next of the seconds that it was made with."""

    def __init__(self, seconds=None):
        self.seconds = iter(seconds or count(1))
        self.calls = 0

    def count(self, calls):
        return 1

    def sample(self, calls, count):
        calls[0]()
        self.calls += 1
        return float(next(self.seconds))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_runner_gives_the_same_bits(case):
    for width in case.widths:
        clock = Once([1.0] * 100)
        rows = measure(case.of_size(SMALL), width, HERE, clock, rounds=2)
        run = {(row.runner, row.mode) for row in rows if row.seconds}
        assert {("copy", "into"), ("NumPy", "into"), ("gpuslice", "fresh")} <= run
        assert (("onnx.reference", "fresh") in run) == (not case.recipe)
        if case.recipe and find_spec("cv2"):
            assert {("OpenCV", "into"), ("OpenCV", "fresh")} <= run
        elif not case.recipe:
            assert not {row.runner for row in rows} & {"OpenCV", "Pillow"}
        last_first = "CHW" in case.recipe
        assert (("Pillow", "fresh") in run) == bool(case.recipe and width == 1 and not last_first and find_spec("PIL"))
        assert (("gpuslice", "into") in run) == (not case.chain)
        assert clock.calls == 2 * len(run)
        assert all(row.note for row in rows if not row.seconds)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "name", ["reversed 1-D", "split 5 uneven, inside", "graph: Slice, Slice, Split 3", "tiny split 4, 64 B"]
)
def test_runners_on_a_device_give_the_same_bits(name):
    from bench.measure import CudaClock

    if BY_NAME[name].chain:
        pytest.importorskip("onnx")
    runners = [one for one in RUNNERS if one.device == "cuda" and one.name in ("copy", "gpuslice", "CuPy")]
    for size in (1 << 16, 1 << 17):
        rows = measure(BY_NAME[name].of_size(size), 4, runners, CudaClock(), rounds=1)
        assert {row.runner for row in rows if row.seconds} == {"copy", "gpuslice", "CuPy"}
        assert all(row.seconds[0] >= 0 for row in rows if row.seconds)


def test_wrong_results_are_refused():
    case = BY_NAME["reversed 1-D"].of_size(SMALL)
    # The last one is a view, which leaves the work undone.
    for outputs in (
        lambda x: [x],
        lambda x: [x[::-1].copy(), x],
        lambda x: [x[::-1].astype("i1")],
        lambda x: [x[::-1]],
    ):
        wrong = Runner("wrong", "cpu", (), *[lambda _, x, outputs=outputs: lambda: outputs(x)] * 2)
        with pytest.raises(ValueError, match="wrong returns wrong results for reversed 1-D"):
            measure(case, 1, [wrong], Once(), rounds=1)


def refuses(case, x):
    raise NotImplementedError("cannot")


def fails(case, x):
    raise RuntimeError("first line\nsecond line")


def test_a_runner_that_cannot_has_a_note():
    absent = Runner("absent", "cpu", ("no_such_package",), refuses, fails)
    unable = Runner("unable", "cpu", (), refuses, fails)
    rows = measure(CASES[0].of_size(SMALL), 1, [absent, unable], Once(), rounds=1)
    notes = ["not installed: no_such_package"] * 2 + ["cannot", "RuntimeError: first line"]
    assert [row.note for row in rows] == notes
    assert not any(row.seconds for row in rows)


def test_rounds_that_disagree_are_followed_by_more():
    runners = [one for one in HERE if one.name in ("copy", "NumPy")]
    calm = measure(CASES[0].of_size(SMALL), 1, runners, Once([1] * 12), rounds=3)
    assert [len(row.seconds) for row in calm] == [3, 3, 3, 3]
    # The second sample of the third round is of NumPy with new outputs. The plain copy is timed again with it.
    uneven = measure(CASES[0].of_size(SMALL), 1, runners, Once([1] * 8 + [1, 9, 1, 1] + [1] * 6), rounds=3)
    assert [len(row.seconds) for row in uneven] == [3, 6, 3, 6]


@pytest.mark.parametrize("name", ["step -2", "crop, odd offsets", "reversed rows of 64 B"])
def test_bounds_say_to_onnx_what_an_index_says_to_numpy(name):
    from gpuslice import slice as onnx_slice

    case = BY_NAME[name].of_size(SMALL)
    x = case.source(1)
    assert (onnx_slice(x, *case.bounds(x.shape)) == x[case.index]).all()


def test_the_command_writes_what_it_says(tmp_path, capsys):
    options = ["--quick", "--mebibytes", "1", "--rounds", "1", "--width", "4", "--peer", "numpy", "--no-chart"]
    main([*options, "--case", "reversed 1-D", "--case", "speech", "--output", str(tmp_path)])
    (path,) = tmp_path.glob("cpu-*.json")
    result = json.loads(path.read_text())
    assert {name for cell in result["cells"] for name in cell["seconds"]} == {"copy", "gpuslice", "NumPy"}
    assert {cell["mode"] for cell in result["cells"]} == {"into", "fresh"}
    assert {"date", "processor", "packages", "commit"} <= set(result["machine"])
    text = path.with_suffix(".md").read_text()
    assert "| reversed 1-D | 4 |" in text
    assert "| speech: LSTM gates | 4 |" in text
    assert summary(result) in capsys.readouterr().out


@pytest.mark.parametrize("command", [[], ["sizes"], ["images"]])
@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--peer", "Foo"], "--peer must be one of CuPy, NumPy"),
        (["--case", "no such case"], "no case has such a name"),
        (["--rounds", "0"], "--rounds: must be a whole number"),
        (["--mebibytes", "-1"], "--mebibytes: must be a whole number"),
    ],
)
def test_options_without_a_meaning_are_refused_before_anything_is_written(tmp_path, capsys, command, option, message):
    with pytest.raises(SystemExit) as error:
        main([*command, "--quick", *option, "--output", str(tmp_path / "results")])
    assert message in f"{error.value} {capsys.readouterr().err}"
    assert not list(tmp_path.iterdir())


def result_of(seconds):
    """Make a result of reversed 1-D, 1 B, into, from seconds by runner."""
    cell = {"case": "reversed 1-D", "width": 1, "mode": "into", "notes": {}}
    cell["seconds"] = {name: [value] * 3 for name, value in seconds.items()}
    machine = {"date": "", "commit": "", "processor": "", "python": "", "packages": {}, "kernels": "", "threads": 1}
    return {"device": "cpu", "machine": machine, "quick": True, "size": 1 << 20, "cells": [cell]}


def result_of_images(rows):
    """Make a result of images of bytes from (case, mode, seconds by runner)."""
    result = result_of({})
    cells = [{"case": case, "width": 1, "mode": mode, "notes": {}, "seconds": seconds} for case, mode, seconds in rows]
    for cell in cells:
        cell["seconds"] = {name: [value] * 3 for name, value in cell["seconds"].items()}
    return result | {"cells": cells}


IMAGE_ROWS = [
    ("mirror, 3 channels", "into", {"copy": 0.01, "gpuslice": 0.02, "NumPy": 0.6, "OpenCV": 0.03}),
    ("mirror, 3 channels", "fresh", {"copy": 0.02, "gpuslice": 0.04, "NumPy": 0.7, "OpenCV": 0.03, "Pillow": 0.05}),
    ("mirror, 4 channels", "into", {"copy": 0.01, "gpuslice": 0.1234, "NumPy": 1.6, "OpenCV": 0.12}),
]


def test_images_have_a_table_of_their_own():
    text = images(result_of_images(IMAGE_ROWS))
    assert text.startswith("# Images: CPU, one thread\n")
    assert (
        "| image | channels | bytes per channel | outputs | copy | gpuslice | NumPy | OpenCV | Pillow | share |" in text
    )
    for row in [
        "| mirror | 3 | 1 | existing | 10 | 20 | 600 | 30 | - | 1.50 |",
        "| mirror | 3 | 1 | new | 20 | 40 | 700 | 30 | 50 | **0.75** |",
        "| mirror | 4 | 1 | existing | 10 | 123 | 1600 | 120 | - | 0.97 |",
        "| mirror | 1.21 (0.97) | 0.75 (0.75) |",
        "Another library is ahead by more than the noise in 1 of 3 rows.",
    ]:
        assert row in text
    both = result_of({"copy": 1.0, "gpuslice": 0.5})
    both["cells"] += result_of_images(IMAGE_ROWS)["cells"]
    whole = markdown(both)
    assert "| mirror | 3 | 1 | new | 20 | 40 | 700 | 30 | 50 | **0.75** |" in whole
    assert "| mirror, 3 channels | 1 |" not in whole
    assert "## Images" not in markdown(result_of({"copy": 1.0, "gpuslice": 0.5}))


def test_the_picture_of_images_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from bench.chart import draw_images

    assert draw_images(result_of_images(IMAGE_ROWS), str(tmp_path / "images.png"))
    assert (tmp_path / "images.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_for_images_writes_what_it_says(tmp_path, capsys):
    options = ["--quick", "--mebibytes", "1", "--rounds", "1", "--width", "2", "--peer", "numpy", "--no-chart"]
    main(["images", *options, "--case", "apart", "--case", "together", "--output", str(tmp_path / "new" / "table.md")])
    result = json.loads((tmp_path / "new" / "table.json").read_text())
    assert {name for cell in result["cells"] for name in cell["seconds"]} == {"copy", "gpuslice", "NumPy"}
    names = {f"{recipe}, {channels} channels" for recipe in ("apart", "together") for channels in (3, 4)}
    assert {cell["case"] for cell in result["cells"]} == names
    text = (tmp_path / "new" / "table.md").read_text()
    assert "| together | 4 | 2 | new |" in text
    printed = capsys.readouterr()
    assert text in printed.out
    assert re.match(r"about \d+ seconds: 4 cells x 1 rounds\n", printed.err)
    with pytest.raises(SystemExit):
        main(["images", *options])


def test_images_have_the_sizes_that_the_page_says():
    for case in IMAGES:
        for width in case.widths:
            shape = case.shape(case.size // width, width)
            assert prod(shape) * width <= case.size
            if width == 1:
                assert sorted(shape)[1:] == [4000, 6000]


@pytest.mark.parametrize("case", sizes.CASES, ids=lambda case: case.name)
def test_every_runner_gives_the_same_bits_at_every_size(case):
    given = options.size_parser().parse_args(["--mebibytes", "1", "--case", case.name])
    cells = sizes.cells_of(given, [1])
    assert [cell.case.size for cell in cells] == [64, 256, 1024, 4096, 1 << 14, 1 << 16, 1 << 18, 1 << 20] * 2
    for small, width, _ in cells:
        rows = measure(small, width, HERE, Once([1.0] * 100), rounds=1)
        run = {(row.runner, row.mode) for row in rows if row.seconds}
        assert {("copy", "into"), ("NumPy", "into"), ("gpuslice", "into"), ("gpuslice", "fresh")} <= run
        if case.recipe:
            assert (("OpenCV", "into") in run) == bool(find_spec("cv2"))
            assert (("Pillow", "fresh") in run) == bool(width == 1 and find_spec("PIL"))


def test_the_sizes_are_those_that_the_page_says():
    assert (sizes.SIZES[0], sizes.SIZES[-1]) == (64, 256 << 20)
    assert all(4 * small == large for small, large in pairwise(sizes.SIZES))
    for cell in sizes.cells_of(options.size_parser().parse_args([]), [1, 2]):
        source = prod(cell.case.shape(cell.case.size // cell.width, cell.width)) * cell.width
        assert cell.case.size // 2 < source <= cell.case.size
    largest = max(cell.case.size for cell in sizes.cells_of(options.size_parser().parse_args(["--quick"]), [1]))
    assert largest == 16 << 20


def test_the_command_for_sizes_writes_what_it_says(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GPUSLICE_NUM_THREADS", "2")
    options = ["--quick", "--mebibytes", "1", "--rounds", "1", "--width", "4", "--peer", "numpy", "--no-chart"]
    main(["sizes", *options, "--case", "split 4", "--case", "mirror", "--output", str(tmp_path)])
    (path,) = tmp_path.glob("sizes-*.json")
    result = json.loads(path.read_text())
    assert {name for cell in result["cells"] for name in cell["seconds"]} == {"copy", "gpuslice", "NumPy"}
    assert len(result["cells"]) == 2 * 8 * 2 * 2  # cases, sizes, numbers of threads, existing and new outputs
    assert {(cell["threads"], cell["mode"]) for cell in result["cells"]} == {
        (count, mode) for count in (1, 2) for mode in ("into", "fresh")
    }
    assert {cell["bytes"] for cell in result["cells"] if cell["size"] == 64} == {48, 64}
    text = path.with_suffix(".md").read_text()
    for heading in ("### Existing outputs, one thread", "### New outputs, 2 threads"):
        assert heading in text
    assert "| mirror, 3 channels | 4 | 256 KB |" in text
    printed = capsys.readouterr()
    assert "| 1 MB |" in printed.out
    assert re.match(r"about \d+ seconds: 32 cells x 1 rounds\n", printed.err)


def result_of_sizes(*seconds):
    """Make a result of slices backward of 1 B from seconds by runner, at sizes from 64 B on."""
    cells = [
        result_of(times)["cells"][0]
        | {"case": "slice backward", "size": size, "bytes": size, "threads": 1, "mode": mode}
        for mode in ("into", "fresh")
        for size, times in zip(sizes.SIZES, seconds, strict=False)
    ]
    return result_of({}) | {"cells": cells}


SIZE_ROWS = [
    {"copy": 1e-6, "gpuslice": 2e-6, "NumPy": 1e-6, "PyTorch": 4e-6},
    {"copy": 1e-6, "gpuslice": 2e-6, "NumPy": 3e-6},
]


def test_sizes_have_a_table_of_times_and_shares():
    text = size_report.markdown(result_of_sizes(*SIZE_ROWS))
    for row in [
        "| slice backward | 1 | 64 B | 1 | 2 | 1 | 4 | 0.032 | **0.50** |",
        "| slice backward | 1 | 256 B | 1 | 2 | 3 | - | 0.128 | 1.50 |",
        "| 64 B | 0.50 |",
        "| 256 B | 1.50 |",
        "Another library is ahead by more than the noise in 2 of 4 rows.",
    ]:
        assert row in text
    assert [size_report.in_bytes(size) for size in (64, 1 << 12, 256 << 20)] == ["64 B", "4 KB", "256 MB"]


def test_the_picture_of_sizes_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from bench.size_chart import draw

    result = result_of_sizes(*SIZE_ROWS)
    result["cells"] += [cell | {"case": "mirror, 3 channels", "width": 4} for cell in result["cells"]]
    assert draw(result, str(tmp_path / "sizes.png"))
    assert (tmp_path / "sizes.png").read_bytes().startswith(b"\x89PNG")


def test_an_estimate_grows_with_what_is_done(monkeypatch):
    monkeypatch.setattr(estimate, "_probes", lambda size: (1e-10, 4e-10))

    def seconds(size, width=4, runners=HERE, rounds=5):
        return estimate.seconds_of([(BY_NAME["reversed 1-D"].of_size(size), width)], runners, rounds)

    small, large = seconds(64), seconds(64 << 20)
    assert 0 < small < large
    assert large < seconds(64 << 20, rounds=50)
    assert seconds(64 << 20, runners=HERE[:1], rounds=50) < seconds(64 << 20, rounds=50)
    # Not what is not installed.
    assert seconds(64, runners=[*HERE, Runner("absent", "cpu", ("no_such_package",), refuses, fails)]) == small
    assert [estimate.in_words(value) for value in (0.1, 42.3, 850)] == [
        "about 1 seconds", "about 42 seconds", "about 14 minutes",
    ]  # fmt: skip


def test_opencv_that_cannot_write_in_place_has_no_time_of_that(monkeypatch):
    pytest.importorskip("cv2")
    monkeypatch.setitem(image_peers._OPENCV, "mirror", lambda cv2, x, out: cv2.flip(x[0], 1))
    rows = measure(BY_NAME["mirror, 3 channels"].of_size(SMALL), 1, HERE, Once(), rounds=1)
    assert {row.mode: row.note for row in rows if row.runner == "OpenCV"} == {
        "into": "OpenCV allocates these outputs",
        "fresh": "",
    }


def test_cells_below_their_target_or_another_library_are_marked():
    for ours, numpy, cell in [
        (0.5, 1.0, "2.00"),
        (1.0, 2.0, "**1.00**"),
        (0.8, 0.5, "_1.25_"),
        (2.0, 1.0, "_**0.50**_"),
    ]:
        text = markdown(result_of({"copy": 1.0, "gpuslice": ours, "NumPy": numpy}))
        assert f"| reversed 1-D | 1 | {cell} |" in text
        assert ("- reversed 1-D (1 B): " in text) == (cell != "2.00")


def test_the_summary_is_a_geometric_mean():
    result = result_of({"copy": 1.0, "gpuslice": 0.5})
    result["cells"] += result_of({"copy": 1.0, "gpuslice": 0.125})["cells"]
    result["cells"][1]["width"] = 2
    assert by_group(speeds_of(result, "into")) == {"reversed": {"gpuslice": pytest.approx(4)}}
    assert "| reversed | 4.00 |" in summary(result)
    # NumPy has a mean of the group if it has at least half of the numbers.
    result["cells"][0]["seconds"]["NumPy"] = [2.0] * 3
    assert by_group(speeds_of(result, "into"))["reversed"]["NumPy"] == pytest.approx(0.5)
    result["cells"] += [result["cells"][1] | {"width": 4}]
    assert "NumPy" not in by_group(speeds_of(result, "into"))["reversed"]


def test_a_result_holds_quartiles():
    rows = measure(CASES[0].of_size(SMALL), 1, HERE[:1], Once([4, 4, 4, 5, 5, 6]), rounds=3)
    into, fresh = cells(CASES[0], 1, rows)
    assert (into["mode"], into["seconds"]) == ("into", {"copy": [4.5, 5, 5]})
    assert (fresh["mode"], fresh["seconds"]) == ("fresh", {"copy": [4, 4, 5]})


def test_a_time_of_the_host_is_none_of_the_device():
    clock = Once()
    clock.host_bound = True
    rows = measure(CASES[0].of_size(SMALL), 1, HERE[:1], clock, rounds=2)
    assert all(row.host_bound for row in rows)
    for cell in cells(CASES[0], 1, rows):
        assert cell["seconds"] == {}
        assert cell["notes"] == {"copy": "the host took longer to make the calls than the device to run them"}


def test_the_chart_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from bench.chart import draw

    result = result_of({"copy": 1.0, "gpuslice": 0.5, "NumPy": 0.001})
    result["cells"] += [cell | {"mode": "fresh"} for cell in result["cells"]]
    result["cells"] += [cell | {"case": "tiny split 4, 64 B"} for cell in result["cells"]]
    assert draw(result, str(tmp_path / "chart.png"))
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


class Scripted:
    """A side whose times are given, by mode."""

    def __init__(self, seconds):
        self.seconds = seconds

    def ask(self, **question):
        if "case" in question:
            return [{"mode": mode, "count": 1, "note": ""} for mode in ("into", "fresh")]
        return self.seconds[question["row"]]


def test_a_comparison_sees_which_side_is_faster():
    cell = {"case": "reversed 1-D", "width": 1, "size": 1 << 20}
    pairs, notes = compare.measure([Scripted([1.0, 1.0]), Scripted([1.0, 1.25])], cell, rounds=4)
    assert not notes
    assert [pair.quartiles for pair in pairs] == [[1, 1, 1], [0.8, 0.8, 0.8]]
    assert [pair.side for pair in pairs] == [0, -1]
    assert all(len(seconds) == 4 for pair in pairs for seconds in pair.seconds)
    text = compare.report("about", pairs, {"why"})
    assert "| reversed 1-D | 1 | 1048576 | New outputs | 1000000.0 | 1250000.0 | 0.800 [0.80, 0.80] |" in text
    assert "| reversed 1-D | 1 | 1048576 | New outputs | 0.800 |" in compare.outside(pairs)
    assert "- why" in text


def test_a_ratio_within_its_quartiles_is_noise():
    pair = compare.Pair("", 1, 1, "into", runs=[[0.9, 0.9, 1.2, 1.2]])
    assert pair.side == 0
    assert compare.Pair("", 1, 1, "into", runs=[[1.1, 1.2, 1.3]]).side == 1
    assert compare.Pair("", 1, 1, "into", runs=[[1.1, 1.2, 1.3], [0.9, 0.9]]).side == 0


def test_a_side_answers_questions():
    """By the process of a comparison, for the table's cells and for calls that it lacks."""
    import gpuslice

    side = sides.Side(Path(gpuslice.__file__).parent.parent)
    try:
        for name in ("split 4 inside", "4 parts joined inside", "together, 3 channels", *sides.EXTRAS):
            rows = side.ask(case=name, width=4, size=SMALL)
            assert [row["mode"] for row in rows] == ["into", "fresh"]
            assert bool(rows[0]["count"]) == (name not in sides.EXTRAS)
            assert rows[1]["count"]
            assert side.ask(row=1, count=1) > 0
    finally:
        side.close()


def test_extra_calls_are_checked(monkeypatch):
    wrong = {"run_node: Slice-13": ("reversed both axes", lambda case, x: lambda: [x.T])}
    monkeypatch.setattr(sides, "EXTRAS", wrong)
    with pytest.raises(ValueError, match="gpuslice returns wrong results"):
        sides.prepared(Once(), *wrong, 4, SMALL)


def test_a_comparison_installs_what_git_lists(tmp_path, monkeypatch):
    installed = []
    monkeypatch.setattr(sides, "find_spec", lambda name: None)

    def run(command, **options):
        if command[0] == "git":
            return real(command, **options)
        installed.append(Path(command[-1]))
        return subprocess.CompletedProcess(command, 0, "", "")

    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", run)
    if real(["git", "-C", str(sides._ROOT), "rev-parse"], capture_output=True, check=False).returncode:
        pytest.skip("this is no clone")
    for side, revision in (("base", "HEAD"), ("head", None)):
        target = sides.install(revision, tmp_path / side)
        assert target.parent == tmp_path / side
        assert (installed[-1] / "gpuslice" / "__init__.py").exists()
        assert (installed[-1] / "kernels" / "copy.cu").exists()
        assert not list(installed[-1].rglob("*.so"))


def test_the_cells_of_a_comparison():
    given = argparse.Namespace(quick=True, mebibytes=None, width=None, case=["graph", "run_node", "tiny split 4, 64"])
    found = {(cell["case"], cell["width"], cell["size"]) for cell in compare.cells_of(given)}
    graph, node = "graph: Slice, Slice, Split 3", "run_node: Slice-13"
    assert found == {
        *((graph, width, 16 << 20) for width in (1, 4)),
        (graph, 4, SMALL),
        (node, 4, 16 << 20),
        (node, 4, SMALL),
        *(("tiny split 4, 64 B", width, 64) for width in (1, 4)),
    }
    with pytest.raises(SystemExit, match="no case has such a name"):
        compare.cells_of(argparse.Namespace(**vars(given) | {"case": ["nothing"]}))
