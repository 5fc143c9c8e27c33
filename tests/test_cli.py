"""The command line: runs, files, and one line with exit code 2 for whatever is wrong."""

import json
import os
import re
import subprocess
import sys
import warnings
import zipfile

import ml_dtypes
import numpy as np
import pytest
from helpers import assert_same
from onnx import TensorProto, helper, numpy_helper, save

import gpuslice as gs
from gpuslice.cli import main
from gpuslice.cli.progress import Progress
from gpuslice.engine import host
from gpuslice.versions import VERSIONS

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with files to work on, as the current one."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    np.save("narrow.npy", X[..., :2])
    np.save("half.npy", X[..., :2].astype(ml_dtypes.bfloat16))
    np.save("float.npy", np.array([0.5]))
    np.save("text.npy", np.array(["a", "bcd"]))
    np.save("objects.npy", np.array([[1], None], dtype=object), allow_pickle=True)
    np.savez("rows.npz", a=X[0], b=X[1])
    np.save("empty.npy", X[:0, 0, 0])
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "fake.npz").write_bytes((tmp_path / "x.npy").read_bytes())
    damaged = bytearray((tmp_path / "rows.npz").read_bytes())
    damaged[200] ^= 1
    (tmp_path / "damaged.npz").write_bytes(damaged)
    with zipfile.ZipFile("mixed.npz", "w") as archive:
        archive.write("x.npy", "a.npy")
        archive.writestr("readme.txt", "text")
    (tmp_path / "garbage.npy").write_bytes(b"\x93NUMPY garbage")
    (tmp_path / "garbage.onnx").write_bytes(b"garbage")
    (tmp_path / "empty.onnx").write_bytes(b"")
    save(_model(), "model.onnx")
    lost = _model()
    lost.graph.initializer[0].data_location = TensorProto.EXTERNAL
    lost.graph.initializer[0].external_data.add(key="location", value="none.bin")
    (tmp_path / "lost.onnx").write_bytes(lost.SerializeToString())
    save(_model(helper.make_node("Slice", ["x", "start", "end"], ["longer_0"]), outputs=["longer_0"]), "clash.onnx")
    save(_model(helper.make_node("Relu", ["x"], ["z"], "odd")), "relu.onnx")
    return tmp_path


def _model(*more, outputs=()):
    nodes = [
        helper.make_node("Slice", ["x", "start", "end"], ["y"], "crop"),
        helper.make_node("SequenceInsert", ["seq", "x"], ["longer"]),
        *more,
    ]
    info, any_type = helper.make_tensor_value_info, TensorProto.BFLOAT16
    inputs = [
        info("x", any_type, ["n", 3, 2]),
        helper.make_tensor_sequence_value_info("seq", TensorProto.BFLOAT16, None),
    ]
    inputs[1].type.sequence_type.elem_type.tensor_type.elem_type = TensorProto.FLOAT
    inputs[0].type.tensor_type.elem_type = TensorProto.FLOAT
    outputs = [
        info("y", TensorProto.FLOAT, None),
        helper.make_tensor_sequence_value_info("longer", TensorProto.FLOAT, None),
        *(info(name, TensorProto.FLOAT, None) for name in outputs),
    ]
    constants = [numpy_helper.from_array(np.array(value), name) for name, value in (("start", [1]), ("end", [9]))]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def run(words):
    """Run the command line in this process."""
    return main(words.split())


def test_run_writes_results_and_prints_a_table(folder, capsys):
    assert run("run model.onnx -i x=narrow.npy -i seq=rows.npz -o out.npz") == 0
    with np.load("out.npz") as results:
        assert results.files == ["y", "longer_0", "longer_1", "longer_2"]
        assert_same(results["y"], X[1:, :, :2].copy())
        assert_same(results["longer_2"], X[..., :2].copy())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["node", "operator", "output", "shape", "dtype", "device"]
    assert lines[1].split() == ["crop", "Slice-13", "y", "(1,", "3,", "2)", "float32", "cpu"]
    assert lines[2].startswith("#1    SequenceInsert-11  longer  3 x (3, 4) (2, 3, 2)  float32  cpu")
    assert re.match(r"outputs: ([2-4] launches|1 launch), 168 bytes, \d+\.\d+ ms", lines[-1])
    assert lines[-1].endswith(" ms -> out.npz")
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []


def test_sequences_may_be_listed(folder):
    assert run("run model.onnx -i x=narrow.npy -i seq=x.npy,x.npy -o out.npz --device cpu") == 0
    assert run("run model.onnx -i x=narrow.npy -i seq= -o none.npz") == 0
    with np.load("out.npz") as results, np.load("none.npz") as none:
        assert (len(results.files), len(none.files)) == (4, 2)


OPS = [
    ("op Slice-13 data=x.npy starts=-1,2 ends=-99,5 steps=-1,1 -o y.npy", X[::-1, 2:5]),
    ("op Slice-13 -o y.npy data=x.npy starts=1 ends=2 axes=-1", X[..., 1:2]),
    ("op Slice-1 data=x.npy starts=0,1 ends=1,3 -o y.npy", X[:1, 1:3]),
    ("op SequenceAt-11 input_sequence=x.npy,x.npy position=-1 -o y.npy", X),
    ("op ConcatFromSequence-11 input_sequence=rows.npz axis=0 new_axis=1 -o y.npy", X),
    ("op Slice-13 data=text.npy starts=1 ends=0 steps=-1 -o y.npy", np.array(["bcd"])),
    ("op Slice-13 data=text.npy starts=1 ends=-9 steps=-1 -o y.npy", np.array(["bcd", "a"])),
    ("op SequenceLength-11 input_sequence=rows.npz -o y.npy", np.array(2)),
]


@pytest.mark.parametrize(("words", "expected"), OPS, ids=[words for words, _ in OPS])
def test_op_with_one_output(folder, words, expected):
    assert run(words) == 0
    assert_same(np.load("y.npy"), np.ascontiguousarray(expected).reshape(expected.shape))


SPLITS = [
    ("op Split-18 input=x.npy axis=1 num_outputs=2 -o y.npz", [X[:, :2], X[:, 2:]]),
    ("op Split-13 input=x.npy split=0,2 -o y.npz", [X[:0], X]),
    ("op Split-13 input=x.npy --outputs 2 -o y.npz", [X[:1], X[1:]]),
    ("op Split-2 input=x.npy axis=2 split=1,3 -o y.npz", [X[..., :1], X[..., 1:]]),
    ("op SplitToSequence-11 input=x.npy split=2 axis=1 -o y.npz", [X[:, :2], X[:, 2:]]),
    ("op SplitToSequence-11 input=x.npy split=3, axis=1 -o y.npz", [X]),
    ("op SequenceConstruct-11 inputs=x.npy,x.npy -o y.npz", [X, X]),
    ("op SequenceEmpty-11 dtype=7 -o y.npz", []),
]


@pytest.mark.parametrize(("words", "expected"), SPLITS, ids=[words for words, _ in SPLITS])
def test_op_with_several_outputs(folder, words, expected):
    assert run(words) == 0
    with np.load("y.npz") as results:
        assert results.files == [f"output_{i}" for i in range(len(expected))]
        for name, part in zip(results.files, expected, strict=True):
            assert_same(results[name], part.copy())


def test_outputs_of_split_18(folder, capsys):
    """``--outputs`` is num_outputs there, unless sizes are given."""
    for words in ("--outputs 2", "num_outputs=2", "num_outputs=2 --outputs 2", "split=2,1 --outputs 2"):
        assert run(f"op Split-18 input=x.npy axis=1 {words} -o y.npz") == 0
        with np.load("y.npz") as results:
            assert [results[name].shape for name in results.files] == [(2, 2, 4), (2, 1, 4)]
    for words, message in [
        ("num_outputs=2 --outputs 3", "num_outputs must be the number of the node's outputs, 3; got 2"),
        ("--outputs 0", "outputs must be at least 1; got 0"),
        ("split=2,1 --outputs 3", "split must have"),
    ]:
        assert run(f"op Split-18 input=x.npy axis=1 {words}") == 2
        assert message in capsys.readouterr().err


def test_an_empty_sequence_has_the_type_that_is_given(folder, capsys):
    np.savez("none.npz")
    for empty in ("none.npz", ""):
        assert run(f"op SequenceInsert-11 input_sequence:float32={empty} tensor=x.npy -o y.npz") == 0
        assert run(f"op SequenceInsert-11 input_sequence={empty} tensor=x.npy -o y.npz") == 0
        for dtype, message in [
            ("int64", "tensor must have the type of input_sequence, int64; got float32"),
            ("int4", "input_sequence must have a type in {bool, "),
        ]:
            assert run(f"op SequenceInsert-11 input_sequence:{dtype}={empty} tensor=x.npy") == 2
            assert capsys.readouterr().err.startswith(f"gpuslice: SequenceInsert-11: {message}")


def test_many_outputs_are_printed_like_many_items(folder, capsys):
    np.save("many.npy", np.zeros((1001, 0), np.float32))
    assert run("op SplitToSequence-11 input=many.npy") == 0
    lines = capsys.readouterr().out.splitlines()
    lines.insert(7, "")
    assert lines[1::2] == ["[]", "[]", "[]", "", "[]", "[]", "[]"]
    labels = [f"output_{i}: (1, 0) float32" for i in (0, 1, 2, 998, 999, 1000)]
    assert lines[::2] == [*labels[:3], "... 995 more ...", *labels[3:]]
    assert run("op SplitToSequence-11 input=many.npy split=1000,1 -o y.npz") == 0
    assert run("op Split-18 input=many.npy num_outputs=1000") == 2
    assert run("op Split-13 input=many.npy split=1000,1") == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_a_table_shows_a_few_shapes(folder, capsys):
    for i in range(5):
        np.save(f"{i}.npy", X[:, :i, 0])
    assert run("run model.onnx -i x=narrow.npy -i seq=0.npy,1.npy,1.npy,2.npy,3.npy,x.npy -o out.npz") == 0
    assert "longer  7 x (2, 0) (2, 1) (2, 2) ...  float32" in capsys.readouterr().out


EQUALS = [
    (["x"], "x=a=b.npy", "x", "a=b.npy"),
    (["a=b"], "a=b=x.npy", "a=b", "x.npy"),
    (["a", "a=b"], "a=b=x.npy", "a=b", "x.npy"),
    (["a", "b"], "a=b=x.npy", "a", "b=x.npy"),
    (["a="], "a==x.npy", "a=", "x.npy"),
    (["="], "==a=b.npy", "=", "a=b.npy"),
    (["a:0"], "a:0=x.npy", "a:0", "x.npy"),
    (["a:0"], "a:0:float32=x.npy", "a:0", "x.npy"),
    (["a", "a:0"], "a:0=x.npy", "a:0", "x.npy"),
    (["a=1:0"], "a=1:0:float32=a=b.npy", "a=1:0", "a=b.npy"),
]


@pytest.mark.parametrize(("names", "word", "name", "file"), EQUALS, ids=[str(entry) for entry in EQUALS])
def test_names_of_inputs_may_hold_equals_signs_and_colons(folder, names, word, name, file):
    np.save(file, X)
    nodes = [helper.make_node("Identity", [other], [f"{other}y"]) for other in names]
    infos = [
        [helper.make_tensor_value_info(f"{other}{end}", TensorProto.FLOAT, None) for other in names]
        for end in ("", "y")
    ]
    graph = helper.make_graph(nodes, "g", *infos)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), "m.onnx")
    others = [argument for other in names if other != name for argument in ("-i", f"{other}=x.npy")]
    np.save("x.npy", -X)
    np.save(file, X)
    assert main(["run", "m.onnx", "-i", word, *others, "-o", "y.npz"]) == 0
    with np.load("y.npz") as results:
        assert_same(results[f"{name}y"], X)


def _mixed():
    """A model of two parts with nodes between them that cannot run."""
    nodes = [
        helper.make_node("Slice", ["x", "start", "end"], ["first"], "crop"),
        *(helper.make_node("Relu", ["first" if i == 0 else f"r{i - 1}"], [f"r{i}"], f"relu_{i}") for i in range(40)),
        helper.make_node("Slice", ["r39", "start", "end"], ["mid"]),
        helper.make_node("Slice", ["mid", "start", "end"], ["y"]),
    ]
    infos = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["a", "b", "c"])] for name in ("x", "y")]
    constants = [numpy_helper.from_array(np.array([value]), name) for name, value in (("start", 1), ("end", 9))]
    graph = helper.make_graph(nodes, "g", *infos, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_parts_of_a_model(folder, capsys):
    save(_mixed(), "mixed.onnx")
    assert run("run mixed.onnx --part 1 -i x=x.npy -o one.npz") == 0
    assert run("run mixed.onnx --part 2 -i r39=x.npy -o two.npz") == 0
    assert "crop  Slice-13  first" in capsys.readouterr().out
    with np.load("one.npz") as one, np.load("two.npz") as two:
        assert (one.files, two.files) == (["first"], ["y"])
        assert_same(one["first"], X[1:])
        assert_same(two["y"], X[2:])
    listed = "Parts that can run: 2 (1: nodes 1, from Slice 'crop' with input 'x'; 2: nodes 2, from Slice with output 'mid' with input 'r39')"
    for words, starts in [
        ("", "model has nodes that gpuslice cannot run: Relu: 40 nodes, first 'relu_0'"),
        (" --part 0", "--part must be in [1, 2]; got 0. Parts"),
        (" --part 3", "--part must be in [1, 2]; got 3. Parts"),
    ]:
        assert run(f"run mixed.onnx -i x=x.npy -o none.npz{words}") == 2
        captured = capsys.readouterr()
        assert captured.err.startswith(f"gpuslice: {starts}")
        assert captured.err.endswith(f"{listed}\n")
        assert captured.err.count("\n") == 1
        assert len(captured.err) < 1000
    assert "reference_ops" in run_error(capsys, "run mixed.onnx -o none.npz")
    relu = _mixed()
    del relu.graph.node[-2:], relu.graph.node[0]
    relu.graph.node[0].input[0], relu.graph.output[0].name = "x", "r39"
    save(relu, "relu.onnx")
    assert run_error(capsys, "run relu.onnx --part 1 -o none.npz").endswith(
        "--part must not be given; got 1. No part of the model can run\n"
    )
    assert "input 'r39' was not given" in run_error(capsys, "run mixed.onnx --part 2 -o none.npz")


def run_error(capsys, words):
    """Run a command that is refused, and return what it says."""
    assert run(words) == 2
    return capsys.readouterr().err


def test_op_reads_bfloat16_if_asked(folder):
    assert run("op Slice-13 data:bfloat16=half.npy starts=1 ends=2 -o y.npy") == 0
    assert_same(np.load("y.npy").view(ml_dtypes.bfloat16), X[1:2, :, :2].astype(ml_dtypes.bfloat16))


def test_run_knows_bfloat16_by_the_model(folder):
    model = _model()
    del model.graph.node[1], model.graph.output[1], model.graph.input[1]
    for entry in (model.graph.input[0], model.graph.output[0]):
        entry.type.tensor_type.elem_type = TensorProto.BFLOAT16
    save(model, "half.onnx")
    assert run("run half.onnx -i x=half.npy -o out.npz") == 0
    with np.load("out.npz") as results:
        assert_same(results["y"].view(ml_dtypes.bfloat16), X[1:, :, :2].astype(ml_dtypes.bfloat16))


def test_op_without_a_file_prints(folder, capsys):
    assert run("op Slice-13 data=x.npy starts=0,0 ends=1,1") == 0
    assert capsys.readouterr().out == "output: (1, 1, 4) float32\n[[[0. 1. 2. 3.]]]\n"


def test_info(capsys):
    assert run("info") == 0
    out = capsys.readouterr().out
    gs.show_config()
    assert capsys.readouterr().out == out
    assert f"numpy {np.__version__}" in out
    assert "CUDA devices: " in out


def test_info_as_json(capsys):
    assert run("info --json") == 0
    read = json.loads(capsys.readouterr().out)
    assert read["packages"]["numpy"] == np.__version__
    assert read["host_kernels"]["threads"] == host.threads()
    assert set(read) == {
        "python", "implementation", "system", "machine", "packages", "host_kernels", "known_calls", "cuda_devices",
    }  # fmt: skip


def test_a_warning_is_one_line(monkeypatch, capsys):
    monkeypatch.setenv("GPUSLICE_NUM_THREADS", "abc")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run("info") == 0
    assert (
        capsys.readouterr().err == "gpuslice: GPUSLICE_NUM_THREADS must be a positive int; got 'abc'; it is ignored\n"
    )


def test_version(capsys):
    assert run("--version") == 0
    assert capsys.readouterr() == (f"gpuslice {gs.__version__}\n", "")


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_help_of_an_operator_lists_what_it_takes(capsys, version):
    assert run(f"op {version.name} --help") == 0
    shown, error = capsys.readouterr()
    assert error == ""
    assert f"usage: gpuslice op {version.name} " in shown
    listed = re.findall(r"^  (\w+)=.*?(required|optional)", shown, re.MULTILINE)
    expected = [(entry.name, "optional" if entry.optional else "required") for entry in version.inputs]
    expected += [(entry.name, "required" if entry.required else "optional") for entry in version.attributes]
    assert listed == expected
    types = set(shown.partition("element types:")[2].replace(",", " ").split())
    for entry in version.inputs:
        assert types >= version.types[entry.types]


def test_help_of_op(capsys):
    for words in ("op --help", "op -h"):
        assert run(words) == 0
        assert "SplitToSequence-24" in capsys.readouterr().out
    assert run("op Split data=x --help") == 0
    shown = capsys.readouterr().out
    assert "num_outputs=INT  optional\n" in shown
    assert "[-o FILE] [--outputs N]\n" in shown
    assert run("op Slice-12 --help") == 2
    assert capsys.readouterr() == ("", "gpuslice: Slice-12: Slice has no such version; it has 1, 10, 11, 13\n")


def test_examples_of_the_help_run(folder, capsys):
    assert run("--help") == 0
    examples = re.findall("^  gpuslice (op .*)$", capsys.readouterr().out, re.MULTILINE)
    assert len(examples) == 2
    for words in examples:
        assert run(words) == 0
    assert_same(np.load("y.npy"), X[::-1].copy())


COMPLETED = {
    "gpuslice r": ["run"],
    "gpuslice op Split-1": ["Split-1", "Split-11", "Split-13", "Split-18"],
    "gpuslice op Split-18 ": ["input=", "split=", "axis=", "num_outputs="],
    "gpuslice op Slice-13 data=r": ["rows.npz"],
    "gpuslice op Nothing-1 ": [],
    "gpuslice op Slice-13 data=x.npy -o n": ["narrow.npy"],
    "gpuslice run mod": ["model.onnx"],
    "gpuslice run model.onnx -i x=na": ["narrow.npy"],
    "gpuslice run model.onnx --device c": ["cpu", "cuda"],
}


def test_words_are_completed_in_the_shell(folder):
    pytest.importorskip("argcomplete")
    for line, expected in COMPLETED.items():
        asked = {
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_SHELL": "bash",
            "_ARGCOMPLETE_IFS": "\n",
            "_ARGCOMPLETE_COMP_WORDBREAKS": " \t\n\"'><=;|&(:",
            "_ARGCOMPLETE_STDOUT_FILENAME": "answer",
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
            "COMP_TYPE": "9",
        }
        done = subprocess.run(
            [sys.executable, "-m", "gpuslice"], env=os.environ | asked, capture_output=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        words = (folder / "answer").read_text().splitlines()
        # The last word that can come ends in a space.
        assert [word.rstrip() for word in words if not word.startswith("-")] == expected


BAD = [
    ("op Slice-13 data=x.npy starts=0 ends=1 steps=0", "Slice-13: steps must not be 0; got 0 in steps=[0]"),
    ("op Slice-13 data=x.npy starts=0,0 ends=1,1 axes=1,-2", "Slice-13: axes must name different axes; got axes=[1, -2], which are both axis 1"),
    ("op Slice-13 data=x.npy starts=float.npy ends=1", "Slice-13: starts must have a type in {int32, int64}; got float64"),
    ("op Slice-13 data=x.npy starts=0", "Slice-13: input ends is required and was not given"),
    ("op Slice-13 data=x.npy starts=a ends=1", "Slice-13: starts must be INT,INT,... or FILE.npy; got 'a', and there is no such file"),
    ("op Slice-13 data=x.npy starts=0 ends=[1]", "Slice-13: ends must be INT,INT,... or FILE.npy; got '[1]', and there is no such file"),
    ("op SequenceAt-11 input_sequence=rows.npz position=0.5", "SequenceAt-11: position must be INT or FILE.npy; got '0.5', and there is no such file"),
    ("op SplitToSequence-24 input=x.npy split=none.npy", "SplitToSequence-24: split must be INT or INT,INT,... or FILE.npy; got 'none.npy'"),
    ("op SequenceEmpty-11 dtype=float", "SequenceEmpty-11: dtype must be the number of an ONNX element type, such as 1 for float32; got 'float'"),
    ("op Slice-13 data=x.npy starts=. ends=1", ".: Is a directory"),
    (f"op Slice-13 data=x.npy starts={'9' * 5000} ends=1", "Slice-13: starts must be ints of at most 4300 digits; got '9999"),
    ("op Slice-13 data= starts=0 ends=1", "a file must have a name; got ''"),
    ("op Slice-13 data=none.npy starts=0 ends=1", "none.npy: No such file or directory"),
    ("op Slice-13 data=garbage.npy starts=0 ends=1", "garbage.npy: cannot be read; not an .npy or .npz file"),
    ("op Slice-13 data=objects.npy starts=0 ends=1", "objects.npy: cannot be read; text must be fixed-width strings"),
    ("op Slice-13 data=rows.npz starts=0 ends=1", "rows.npz: cannot be read; an .npz file, which holds arrays by name; an .npy file is expected"),
    ("op Slice-13 data:bfloat16=x.npy starts=0 ends=1", "x.npy: must hold bfloat16; it holds float32"),
    ("op Slice-13 data=half.npy starts=0 ends=1", "Slice-13: data must have a type in {"),
    ("op Slice-13 data=x.npy data=x.npy", "Slice-13: data must be given once; got it twice"),
    ("op Slice-13 foo=1", "Slice-13: there is no input or attribute 'foo'; there are data, starts, ends, axes, steps"),
    ("op Slice-13 data", "arguments must be NAME=VALUE; the names are data, starts, ends, axes, steps; got 'data'"),
    ("run model.onnx -i x.npy -o out.npz", "-i must be NAME=FILE; the inputs of the model are x, seq; got 'x.npy'"),
    ("op Slice-12 data=x.npy", "Slice-12: Slice has no such version; it has 1, 10, 11, 13"),
    ("op Slice data=x.npy", "Slice: must be an operator with its version, such as Slice-13"),
    ("op Split input=x.npy", "Split: must be an operator with its version, such as Split-18"),
    ("op sequenceat-11", "sequenceat-11: not a supported operator; did you mean SequenceAt, such as SequenceAt-11?"),
    ("op Slise-13", "Slise-13: not a supported operator; did you mean Slice, such as Slice-13?"),
    ("op Conv-1 data=x.npy", "Conv: not a supported operator; supported are Slice,"),
    ("op Split-18 input=x.npy", "Split-18: split, num_outputs or --outputs must be given, for the number of outputs"),
    ("op Split-18 input=x.npy axis=0,1 num_outputs=1", "Split-18: axis must be one int; got '0,1'"),
    ("op Split-18 input=x.npy axis=y num_outputs=1", "Split-18: axis must be one int; got 'y'"),
    ("op Split-18 input=x.npy num_outputs=2 -o y.npy", "'y.npy': must be an .npz file, since there are several arrays"),
    ("op SequenceConstruct-11 inputs=x.npy -o y.npy", "'y.npy': must be an .npz file, since there are several arrays"),
    ("op SequenceAt-11 input_sequence=rows.npz position=2", "SequenceAt-11: position must be in [-2, 1] for a sequence of length 2; got 2"),
    ("op Slice-13 data=x.npy starts=0 ends=1 -o none/y.npy", "none/y.npy: cannot be written; No such file or directory"),
    ("op Slice-13 data=x.npy starts=0 ends=1 -o .", "'.': must be an .npz file or an .npy file"),
    ("op Slice-13 data=x.npy starts=0 ends=1 -o folder.npy", "folder.npy: cannot be written; not a regular file"),
    ("op Slice-13 data=x.npy starts:int8=0 ends=1", "Slice-13: starts must be a file if it has an element type; got '0'"),
    ("op Slice-13 data:__name__=half.npy starts=0 ends=1", "half.npy: there is no element type '__name__'; there are bfloat16, bool, "),
    ("op Split-18 input=none.npz num_outputs=2", "none.npz: No such file or directory"),
    ("op Split-18 input=empty.npy num_outputs=99999999999999999999", "Split-18: num_outputs must be at least 1 and at most"),
    ("op SequenceLength-11 input_sequence=mixed.npz", "mixed.npz: cannot be read; readme.txt: not an .npy or .npz file"),
    ("op SequenceLength-11 input_sequence=damaged.npz", "damaged.npz: cannot be read; Bad CRC-32 for file 'a.npy'"),
    ("op SequenceLength-11 input_sequence=fake.npz", "fake.npz: cannot be read; it holds one array; an .npz file is expected"),
    ("run model.onnx -i x=x.npy -i x=x.npy -o out.npz", "input 'x' must be given once; got it twice"),
    ("run model.onnx -i x=x.npy -o out.npy", "'out.npy': must be an .npz file"),
    ("op Slice-13 data=x.npy --fast", "unknown arguments: --fast (see gpuslice op --help)"),
    ("run none.onnx -o out.npz", "none.onnx: No such file or directory"),
    ("run garbage.onnx -o out.npz", "garbage.onnx: not an ONNX model"),
    ("run empty.onnx -o out.npz", "empty.onnx: not an ONNX model, or one without nodes"),
    ("run lost.onnx -o out.npz", "lost.onnx: cannot be read; "),
    ("run clash.onnx -i x=narrow.npy -i seq=x.npy -o out.npz", "two outputs would have the name 'longer_0' in the file"),
    ("run x.npy -o out.npz", "x.npy: not an ONNX model"),
    ("run relu.onnx -o out.npz", "model has nodes that gpuslice cannot run: Relu: 1 node, 'odd'. Supported are"),
    ("run model.onnx -o out.npz", "input 'x', 'seq' were not given"),
    ("run model.onnx -i z=x.npy -o out.npz", "the model has no input 'z'; it has x, seq"),
    ("run model.onnx -i x=x.npy -i seq= -o out.npz", "input 'x' must have shape (n, 3, 2); got (2, 3, 4)"),
    ("run model.onnx -i x=text.npy -i seq= -o out.npz", "text.npy: must hold float32; it holds string"),
    ("run model.onnx", "the following arguments are required: -o/--output (see gpuslice run --help)"),
    ("run model.onnx -o out.npz --device tpu", "argument --device: invalid choice: 'tpu'"),
    ("walk", "argument command: invalid choice: 'walk'"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), BAD, ids=[words[:90] for words, _ in BAD])
def test_what_is_wrong_is_one_line_and_exit_code_2(folder, capsys, words, message):
    before = sorted(path.name for path in folder.iterdir())
    try:
        code = run(words)
    except SystemExit as stop:  # argparse's way out
        code = stop.code
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert captured.err.startswith(f"gpuslice: {message}")
    assert captured.err.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == before


def test_cuda_without_a_gpu_is_one_line(folder, capsys):
    cupy = pytest.importorskip("cupy") if "cupy" in sys.modules else None
    if cupy is not None and cupy.cuda.is_available():
        pytest.skip("there is a GPU")
    assert run("run model.onnx -o out.npz --device cuda") == 2
    assert "device CUDA needs an NVIDIA GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [("warm-up", "device CUDA needs an NVIDIA GPU"), ("warm-up --width x", "argument --width: invalid int value: 'x'")],
)
def test_warm_up_without_cupy_is_one_line(monkeypatch, capsys, words, message):
    monkeypatch.setitem(sys.modules, "cupy", None)
    for module in ("gpuslice.engine.cuda", "gpuslice.engine.cuda_kernels"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.delattr("gpuslice.engine.cuda", raising=False)
    assert run(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"gpuslice: {message}")
    assert captured.err.count("\n") == 1


def test_warm_up_says_what_is_wrong_with_its_arguments(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    for module in ("gpuslice.engine.cuda", "gpuslice.engine.cuda_kernels"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.delattr("gpuslice.engine.cuda", raising=False)
    out = np.zeros(2, np.float32)
    for arguments, named, error, message in [
        (
            (gs.slice, X[0, 0], [0], [2]),
            {"out": out},
            ImportError,
            "needs CuPy and an NVIDIA GPU: pip install 'gpuslice",
        ),
        ((), {}, ImportError, "needs CuPy"),
        ((), {"widths": [3]}, ValueError, "widths must be among 1, 2, 4, 8, 16; got int 3"),
        ((), {"widths": 4}, TypeError, "widths must be an iterable of ints; got int 4"),
        ((), {"widths": ["4"]}, ValueError, "widths must be among 1, 2, 4, 8, 16; got str '4'"),
        ((gs.slice, X), {"widths": [1]}, TypeError, "widths cannot be combined with a call"),
        ((X, [0], [1]), {}, TypeError, "call must be a function of gpuslice, such as gpuslice.slice; got ndarray"),
        ((), {"starts": [0]}, TypeError, r"arguments need a call: warm_up\(function, \*arguments\)"),
    ]:
        with pytest.raises(error, match=f"warm_up:? {message}"):
            gs.warm_up(*arguments, **named)
    assert not out.any()


@pytest.fixture
def impatient(monkeypatch):
    """Show at once how much is done of a command."""
    monkeypatch.setattr("gpuslice.cli.progress._PATIENCE", 0)


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_lines_without_tqdm_or_terminal(impatient, monkeypatch, capsys, terminal):
    monkeypatch.setitem(sys.modules, "tqdm", None if terminal else sys)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with Progress("writing b\n.npy", 3 << 20) as progress:
        progress.add(1 << 20)
        progress.add(1 << 20)  # the next line would come in ten seconds
        progress.add(1 << 20)
    monkeypatch.setattr("gpuslice.cli.progress._BETWEEN_LINES", 0)
    with Progress("warm-up", 3, "kernels") as progress:
        for _ in range(3):
            progress.add(1)
    assert capsys.readouterr() == (
        "",
        "gpuslice: writing b\\n.npy: 1 of 3 MiB\ngpuslice: warm-up: 1 of 3 kernels\ngpuslice: warm-up: 2 of 3 kernels\n",
    )
    monkeypatch.setattr(sys, "stderr", None)
    with Progress("y.npy", 3) as progress:
        progress.add(1)


def test_progress_is_a_bar_on_a_terminal(folder, impatient, monkeypatch, capsys):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("gpuslice.cli.copies.PIECE", 32)
    monkeypatch.setattr("gpuslice.cli.writing._SMALL", 1)
    for suffix in (".npy", ".npz"):
        assert run(f"op Slice-13 data=x.npy starts=0 ends=2 -o y{suffix}") == 0
        captured = capsys.readouterr()
        assert captured.out == ""
        assert re.search(rf"\rwriting y\{suffix}: +33%.*32\.0/96\.0 ", captured.err)
        assert captured.err.endswith("\r")  # nothing of the bar is left


def test_a_quick_command_shows_no_progress(folder, capsys):
    for terminal in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys.stderr, "isatty", lambda: terminal)  # noqa: B023
            assert run("op Slice-13 data=x.npy starts=0 ends=2 -o y.npy") == 0
    assert capsys.readouterr() == ("", "")


def test_warm_up_shows_its_progress(impatient, monkeypatch, capsys):
    monkeypatch.setattr("gpuslice.cli.progress._BETWEEN_LINES", 0)
    monkeypatch.setattr("gpuslice.devices.check", lambda device: None)
    monkeypatch.setattr("gpuslice.cli.warm_up.warm_up", lambda widths, progress: [progress(i, 3) for i in range(4)])
    assert run("warm-up") == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("3 kernels are compiled, ")
    assert (
        captured.err
        == "gpuslice: warm-up: 0 of 3 kernels\ngpuslice: warm-up: 1 of 3 kernels\ngpuslice: warm-up: 2 of 3 kernels\n"
    )


def test_links_are_followed(folder):
    np.save("real.npy", np.arange(3))
    (folder / "link.npy").symlink_to("real.npy")
    assert run("op Slice-13 data=x.npy starts=0 ends=1 -o link.npy") == 0
    assert (folder / "link.npy").is_symlink()
    assert_same(np.load("real.npy"), X[:1].copy())


def test_it_runs_as_a_module(folder):
    command = [sys.executable, "-m", "gpuslice", "op", "Slice-13", "data=x.npy", "starts=0", "ends=1", "steps=0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gpuslice: Slice-13: steps must not be 0; got 0 in steps=[0]\n"
