"""Files of the command line: every element type to the bit, names, modes, reasons, and what an interruption leaves."""

import errno
import os
import pkgutil
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import zipfile
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from helpers import assert_same, items, model, node, tensor_info
from onnx import TensorProto, helper, save

import gpuslice
from gpuslice.cli import main
from gpuslice.cli.copies import regions
from gpuslice.cli.reading import _described, read_array, read_arrays
from gpuslice.cli.writing import write_array, write_arrays
from gpuslice.dtypes import T15, T16, dtype_name
from gpuslice.engine.views import View, index_of

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
SLICE = ["op", "Slice-13", "data=x.npy", "starts=0", "ends=1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder but for x.npy, as the current one."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    return tmp_path


def left(folder):
    """List the temporary files in a folder."""
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def refused(capsys, words, message, code=2):
    """Check that a command prints one line that begins so and nothing else, and that it returns a code."""
    assert main(words) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"gpuslice: {message}")
    assert captured.err.count("\n") == 1


# Every element type of ONNX, as an array that a file can hold.
TYPES = {number: name for name, number in TensorProto.DataType.items() if number != TensorProto.UNDEFINED}


def filled(number):
    """Return an array of a type: all bits random; text where NumPy has fixed-width strings."""
    dtype = helper.tensor_dtype_to_np_dtype(number)
    if dtype.kind == "O":
        return np.array([["a", "é", ""], ["\0b", "日本", "x" * 9]])
    if dtype.kind == "b":
        return np.array([[True, False, True], [False, False, True]])
    return items(2, 3, dtype=dtype)


@pytest.mark.parametrize("number", TYPES, ids=TYPES.get)
def test_every_element_type_goes_to_a_file_and_back(folder, number):
    array = filled(number)
    name = dtype_name(array.dtype)
    for given in (array, array[:0], array[1, 1:2].reshape(()), array.T):
        write_array("y.npy", given)
        assert_same(read_array("y.npy", name), given.copy())
        write_arrays("y.npz", {"a": given, "b/../c": array})
        for read, expected in zip(read_arrays("y.npz", name), (given, array), strict=True):
            assert_same(read, expected.copy())
    np.save("numpy.npy", array)  # NumPy names some of these types in its own way
    assert_same(read_array("numpy.npy", name), array)


@pytest.mark.parametrize("number", TYPES, ids=TYPES.get)
def test_every_element_type_goes_through_the_commands(folder, number):
    array = filled(number)
    name = dtype_name(array.dtype)
    write_array("in.npy", array)
    save(model([node("Identity", ["x"])], [tensor_info("x", None, number)], [tensor_info("y", None, number)]), "m.onnx")
    assert main(["run", "m.onnx", "-i", "x=in.npy", "-o", "y.npz"]) == 0
    (result,) = read_arrays("y.npz", name)
    assert_same(result, array)
    if name in T16:
        assert main(["op", "Slice-13", f"data:{name}=in.npy", "starts=1", "ends=-9", "steps=-1", "-o", "y.npy"]) == 0
        assert_same(read_array("y.npy", name), array[1::-1].copy())
    if name in T15:
        words = [f"input_sequence:{name}=", f"tensor:{name}=in.npy", "-o", "s.npz"]
        assert main(["op", "SequenceInsert-11", *words]) == 0
        (result,) = read_arrays("s.npz", name)
        assert_same(result, array)


@pytest.fixture
def in_pieces(monkeypatch):
    """Make what is written so little at a time that small results are written as large ones are."""
    monkeypatch.setattr("gpuslice.cli.copies.PIECE", 20)
    monkeypatch.setattr("gpuslice.cli.writing._SMALL", 1)
    monkeypatch.setattr("gpuslice.cli.writing._FLUSHED", 40)
    monkeypatch.setattr("gpuslice.cli.reading._SMALL", 1)


@pytest.mark.parametrize("reserve", ["space", "no function", "an error", "no map", "no map to read"])
@pytest.mark.parametrize("number", TYPES, ids=TYPES.get)
def test_every_element_type_goes_through_maps_in_pieces(folder, in_pieces, monkeypatch, number, reserve):
    array = filled(number)
    name = dtype_name(array.dtype)

    def fail(*arguments, **options):
        raise OSError(errno.EOPNOTSUPP if reserve == "an error" else errno.ENOMEM, "no")

    if reserve == "no function":
        monkeypatch.delattr(os, "posix_fallocate")
    elif reserve == "an error":
        monkeypatch.setattr(os, "posix_fallocate", fail)
    elif reserve == "no map":
        monkeypatch.setattr("gpuslice.cli.writing.mmap", SimpleNamespace(mmap=fail))
    elif reserve == "no map to read":
        monkeypatch.setattr("gpuslice.cli.reading.mmap", SimpleNamespace(mmap=fail, ACCESS_READ=0))
    for given in (array, array[::-1, ::-2], array[1, 1:2].reshape(()), array.T, array[:0]):
        for value in (given, View.of(given)):
            write_array("y.npy", value)
            assert_same(read_array("y.npy", name), given.copy())
            write_arrays("y.npz", {"a": value, "b": array, "c": value})
            for read, expected in zip(read_arrays("y.npz", name), (given, array, given), strict=True):
                assert_same(read, expected.copy())
    assert left(folder) == []


def test_the_regions_of_an_array_are_all_its_items_in_order(monkeypatch):
    for most, shape in product(
        [1, 2, 5, 24, 100], [(), (7,), (2, 3, 4), (1, 24), (24, 1), (4, 0), (0, 4), (2, 2, 2, 3)]
    ):
        monkeypatch.setattr("gpuslice.cli.copies.PIECE", 4 * most)
        array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        parts = [array[index_of(region)].reshape(-1) for region in regions(shape, 4)]
        assert_same(
            np.concatenate([array[:0].reshape(-1) if shape else array.reshape(-1)[:0], *parts]), array.reshape(-1)
        )
        assert max((part.size for part in parts), default=0) <= most


def test_a_map_may_begin_anywhere(folder):
    large = items(3, 1 << 19, dtype=np.float32)
    text = FLOATS % (large.shape,) + " " * 4
    Path("odd.npy").write_bytes(header(text) + large.tobytes())
    assert len(header(text)) % 4
    assert main(["op", "Slice-13", "data=odd.npy", "starts=-1", "ends=-9", "axes=0", "steps=-1", "-o", "y.npy"]) == 0
    assert_same(np.load("y.npy"), large[::-1].copy())
    assert main(["op", "Slice-13", "data=y.npy", "starts=-1", "ends=-9", "axes=0", "steps=-1", "-o", "y.npy"]) == 0
    assert_same(np.load("y.npy"), large)


def test_large_arrays(folder):
    array = items(3 << 20, 1)
    write_arrays("y.npz", {"a": array, "b": array[:, 0][::-2], "c": array[:1]})
    with np.load("y.npz") as results:
        for name, expected in {"a": array, "b": array[::-2, 0].copy(), "c": array[:1]}.items():
            assert_same(results[name], expected)
    assert_same(read_arrays("y.npz")[1], array[::-2, 0].copy())
    write_array("y.npy", array.T)
    assert_same(read_array("y.npy"), array.T)


def test_a_model_without_types_is_told_the_type(folder):
    array = items(2, 3, dtype=ml_dtypes.bfloat16)
    write_array("in.npy", array)
    graph = model([node("Slice", ["x:0", "one", "nine"])], ["x:0"], ["y"], {"one": [1], "nine": [9]})
    for entry in (graph.graph.input[0], graph.graph.output[0]):
        entry.type.tensor_type.elem_type = TensorProto.UNDEFINED
    save(graph, "m.onnx")
    assert main(["run", "m.onnx", "-i", "x:0:bfloat16=in.npy", "-o", "y.npz"]) == 0
    assert_same(read_arrays("y.npz", "bfloat16")[0], array[1:])


LOST = [
    (np.array(["a\0", "b"], object), ValueError, r"text that ends in NUL, .* got 'a\\x00'"),
    (np.array(["\0"], np.dtypes.StringDType()), ValueError, r"got '\\x00'"),
    (np.array([b"a\0\0"], object), ValueError, r"got b'a\\x00\\x00'"),
    (np.array([b"a", "b"], object), TypeError, "all str or all bytes; got bytes"),
    (np.array(["a", None], object), TypeError, "must hold text, .* got NoneType"),
    (np.array([1], object), TypeError, "got int"),
]


@pytest.mark.parametrize(("array", "kind", "message"), LOST, ids=range(len(LOST)))
def test_text_that_a_file_would_lose_is_refused(folder, array, kind, message):
    np.save("y.npy", X)
    with pytest.raises(kind, match=message):
        write_array("y.npy", array)
    with pytest.raises(kind, match=f"output 'a' .*{message}"):
        write_arrays("y.npz", {"a": array})
    assert_same(np.load("y.npy"), X)
    assert left(folder) == []
    assert not (folder / "y.npz").exists()


def test_text_in_objects_becomes_fixed_width(folder):
    for given, expected in [(["a", "bé"], "U2"), ([b"a", b"\xff\0b"], "S3"), ([], "U1")]:
        write_array("y.npy", np.array(given, object))
        assert_same(read_array("y.npy"), np.array(given, expected))


GOOD_NAMES = [
    "/model/Slice_output_0",
    "../../up",
    "a.npy",
    "x" * 250,
    "x" * 65_531,
    "é" * 200,
    "file",
    "a\nb",
    ".",
    "a\\b",
    "a/",
]


def test_names_of_outputs_are_the_keys(folder):
    arrays = {name: np.array(i) for i, name in enumerate(GOOD_NAMES)}
    write_arrays("y.npz", arrays)
    with np.load("y.npz") as results:
        assert results.files == GOOD_NAMES
        assert {name: int(results[name]) for name in results.files} == {name: int(a) for name, a in arrays.items()}
    assert sorted(path.name for path in folder.iterdir()) == ["x.npy", "y.npz"]


BAD_NAMES = [
    (["a", "a.npy"], "an .npz file cannot hold both 'a' and 'a.npy'"),
    (["a.npy.npy", "b", "a.npy"], "an .npz file cannot hold both 'a.npy' and 'a.npy.npy'"),
    (["a\0b"], "an .npz file cannot hold the name 'a\\x00b'"),
    (["x" * 65_532], "an .npz file cannot hold a name of more than 65531 bytes; got 65532 in 'xxx"),
]


@pytest.mark.parametrize(("names", "message"), BAD_NAMES, ids=range(len(BAD_NAMES)))
def test_names_that_an_npz_file_cannot_hold_are_refused_first(folder, capsys, names, message):
    save(model([node("Identity", ["x"], [name]) for name in names], ["x"], names), "m.onnx")
    refused(capsys, ["run", "m.onnx", "-i", "x=none.npy", "-o", "y.npz"], message)
    assert not (folder / "y.npz").exists()


def test_names_that_are_no_text_are_refused(folder):
    with pytest.raises(ValueError, match=r"cannot hold the name '\\ud800', which is no Unicode text"):
        write_arrays("y.npz", {"\ud800": X})


@pytest.mark.parametrize("size", [200, 250, 251])
@pytest.mark.parametrize("letter", ["y", "é"])
def test_long_names_of_files(folder, size, letter):
    name = letter * (size // len(letter.encode())) + ".npy"
    assert main([*SLICE, "-o", name]) == 0
    assert_same(np.load(name), X[:1].copy())


def header(text):
    """Return an .npy file with a header and no items."""
    data = text.encode("latin1") + b"\n"
    return b"\x93NUMPY\1\0" + len(data).to_bytes(2, "little") + data


def npz(*members, **options):
    """Return a writer of an .npz file with members of (name, bytes)."""

    def write(path):
        with zipfile.ZipFile(path, "w", **options) as archive:
            for name, data in members:
                archive.writestr(zipfile.ZipInfo(name), data)

    return write


def npy(array):
    """Return the bytes of an .npy file."""
    write_array("one.npy", array)
    return Path("one.npy").read_bytes()


FLOATS = "{'descr': '<f4', 'fortran_order': False, 'shape': %s}"
DAMAGED = {
    "nothing": (lambda: b"", "not an .npy or .npz file"),
    "cut short": (lambda: npy(X)[:-1], "damaged or cut short: its header promises an array of shape (2, 3, 4) and type float32"),
    "cut in the header": (lambda: npy(X)[:40], "damaged: EOF: reading array header, expected"),
    "more bytes": (lambda: npy(X) + b"\0", "more bytes follow the array"),
    "two arrays": (lambda: npy(X) * 2, "more bytes follow the array"),
    "huge": (lambda: header(FLOATS % "(1000000000000,)"), "damaged or cut short"),
    "beyond 64 bits": (lambda: header(FLOATS % "(1 << 70, )".replace("1 << 70", str(1 << 70))), "damaged or cut short"),
    "a negative shape": (lambda: header(FLOATS % "(-1,)"), "damaged or cut short"),
    "two negative sizes": (lambda: header(FLOATS % "(-1, -1)") + bytes(4), "damaged or cut short"),
    "brackets": (lambda: header("(" * 3000), "damaged: its header cannot be parsed"),
    "signs": (lambda: header("-" * 9000 + "1"), "damaged: its header cannot be parsed"),
    "no header": (lambda: header("'" + "x" * 9000 + "'"), "damaged: Header is not a dictionary: 'xxx"),
    "no type": (lambda: header(FLOATS.replace("<f4", "<f3") % "(1,)"), "damaged: descr is not a valid dtype descriptor: '<f3'"),
    "a long header": (lambda: b"\x93NUMPY\2\0\0\0\1\0" + bytes(1 << 16), "its header has 65536 bytes; at most 10000 are read"),
    "a type of objects": (lambda: header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") + bytes(8), "text must be fixed-width strings"),
    "items that are arrays": (lambda: header("{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (1,)}") + bytes(8), "items that are arrays are not supported"),
    "no characters": (lambda: npy(np.array(["a"]))[:-4] + b"\xff\xff\xff\x7f", "damaged: its text has numbers that are no characters"),
    "a new version": (lambda: b"\x93NUMPY\x09\0" + npy(X)[8:], "not an .npy or .npz file of a known version; its version is 9.0"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_npy_files(folder, capsys, case):
    make, message = DAMAGED[case]
    (folder / "bad.npy").write_bytes(make())
    refused(capsys, ["op", "Slice-13", "data=bad.npy", "starts=0", "ends=1"], f"bad.npy: cannot be read; {message}")
    npz(("a.npy", make()))("bad.npz")
    refused(capsys, ["op", "SequenceLength-11", "input_sequence=bad.npz"], f"bad.npz: cannot be read; a.npy: {message}")


def test_unusual_files_that_are_whole(folder):
    for version in ((1, 0), (2, 0), (3, 0)):
        with Path("v.npy").open("wb") as file:
            np.lib.format.write_array(file, X, version=version)
        assert_same(read_array("v.npy"), X)
    np.save("v.npy", np.asfortranarray(X))
    assert_same(read_array("v.npy").copy(), X)
    np.savez_compressed("v.npz", X, X[0])
    for read, expected in zip(read_arrays("v.npz"), (X, X[0]), strict=True):
        assert_same(read, expected)
    os.mkfifo("pipe")
    with subprocess.Popen("cat x.npy > pipe", shell=True):
        assert_same(read_array("pipe"), X)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(folder, capsys):
    npz(("a.npy", npy(X)), ("a.npy", npy(X[0])))("two.npz")
    refused(
        capsys,
        ["op", "SequenceLength-11", "input_sequence=two.npz"],
        "two.npz: cannot be read; it holds two arrays with the name 'a.npy'",
    )


def test_members_are_read_by_place(folder):
    npz(("a", npy(X)), ("a.npy", npy(X[0])), ("../a.npy", npy(X[1])))("names.npz")
    for read, expected in zip(read_arrays("names.npz"), (X, X[0], X[1]), strict=True):
        assert_same(read, expected)


def limited(limit, size, words):
    """Run a command in a process of its own, whose resource ``limit`` is lowered by ``size`` after the imports."""
    code = "\n".join((
        "import re, resource, sys",
        "from pathlib import Path",
        "import gpuslice.cli.run, gpuslice.cli.op",
        "gpuslice.cli.copies.PIECE = 1 << 20",
        f"label = dict(AS='VmSize', DATA='VmData').get({limit!r})",
        "used = label and int(re.search(rf'{label}:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) << 10",
        f"resource.setrlimit(resource.RLIMIT_{limit}, ((used or 0) + {size}, -1))",
        "raise SystemExit(gpuslice.cli.main(sys.argv[1:]))",
    ))  # fmt: skip
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory work on Linux")
def test_out_of_memory_is_said_with_the_size(folder):
    np.save("large.npy", np.zeros(1 << 26, np.uint8))
    np.savez("large.npz", np.zeros(1 << 26, np.uint8))
    for words, start in [
        (["op", "Slice-13", "data=large.npy", "starts=0", "ends=1"], "large.npy: cannot be read; out of memory: "),
        (["op", "SequenceLength-11", "input_sequence=large.npz"], "large.npz: cannot be read; out of memory: "),
    ]:
        done = limited("AS", 1 << 25, words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"gpuslice: {start}")
        assert "64.0 MiB" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_header_is_not_damaged_because_memory_ran_out(folder, capsys, monkeypatch):
    def fail(*arguments, **options):
        raise MemoryError

    _described.cache_clear()
    monkeypatch.setattr(np.lib.format, "read_array_header_1_0", fail)
    refused(capsys, SLICE, "x.npy: cannot be read; out of memory\n")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory work on Linux")
def test_files_may_be_larger_than_memory(folder):
    """A file without blocks, results of its size and twice that, and memory for half of it."""
    shape = (4, 1 << 18, 2)
    large = np.lib.format.open_memmap("large.npy", mode="w+", dtype=np.float32, shape=shape)
    large[0, 0], large[3, -1], large[2, 12345] = (1, 2), (3, 4), (5, 6)
    bounds = {"starts": [-1], "ends": [-(1 << 31)], "axes": [1], "steps": [-1]}
    nodes = [node("Slice", ["x", *bounds], ["y"]), node("Split", ["x"], ["a", "b"], num_outputs=2)]
    save(model(nodes, ["x"], ["y", "a", "b"], bounds), "m.onnx")
    mirror = ["op", "Slice-13", "data=large.npy", *(f"{name}={values[0]}" for name, values in bounds.items())]
    for words in (
        [*mirror, "-o", "y.npy"],
        mirror,
        ["op", "SequenceConstruct-11", "inputs=large.npy,y.npy", "-o", "s.npz"],
        ["op", "ConcatFromSequence-11", "input_sequence=large.npy,y.npy", "axis=0", "-o", "c.npy"],
        ["run", "m.onnx", "-i", "x=large.npy", "-o", "y.npz"],
    ):
        done = limited("DATA", 1 << 22, words)
        assert (done.returncode, done.stderr) == (0, "")
    mirrored = np.ascontiguousarray(large[:, ::-1])
    assert_same(np.load("y.npy"), mirrored)
    assert_same(np.load("c.npy"), np.concatenate([large, mirrored]))
    for path, expected in (("s.npz", [large, mirrored]), ("y.npz", [mirrored, large[:2], large[2:]])):
        with np.load(path) as results:
            for name, array in zip(results.files, expected, strict=True):
                assert_same(results[name], np.array(array))


@pytest.mark.skipif(sys.platform != "linux", reason="mounts are those of Linux")
def test_a_full_disk_is_found_before_a_map_is_written(folder):
    """On a real file system of 1 MiB: without a reservation the process would end with SIGBUS."""
    np.save("large.npy", np.zeros(1 << 21, np.uint8))
    Path("small").mkdir()
    command = f"{sys.executable} -m gpuslice op Slice-13 data=large.npy starts=0 ends={1 << 31} -o small/y.npy"
    inside = f"mount -t tmpfs -o size=1m none small && {{ cp x.npy small/y.npy; {command}; code=$?; ls -A small; exit $code; }}"
    unshared = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*unshared, "mount -t tmpfs none small"], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    done = subprocess.run([*unshared, inside], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "y.npy\n")
    assert done.stderr == "gpuslice: small/y.npy: cannot be written; No space left on device\n"


@pytest.mark.skipif(sys.platform != "linux", reason="limits of files work on Linux")
@pytest.mark.parametrize("name", ["y.npy", "y.npz"])
def test_a_full_disk_is_said(folder, name):
    np.save("y.npy", np.arange(3))
    for count in (1, 1 << 16):  # in the first bytes, and in the middle
        np.save("large.npy", np.zeros((2, count), np.float64))
        done = limited("FSIZE", 8 * count, ["op", "Slice-13", "data=large.npy", "starts=0", "ends=2", "-o", name])
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"gpuslice: {name}: cannot be written; File too large\n"
        assert left(folder) == []
        assert np.load("y.npy").tolist() == [0, 1, 2]


def test_reasons_are_never_empty(folder, capsys, monkeypatch):
    def failing(error):
        def fail(*arguments, **options):
            raise error

        return fail

    for error, words in [
        (OSError(), "OSError"),
        (OSError("no number"), "no number"),
        (MemoryError(), "out of memory"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ]:
        monkeypatch.setattr(os, "fsync", failing(error))
        refused(capsys, [*SLICE, "-o", "y.npy"], f"y.npy: cannot be written; {words}\n")
        monkeypatch.setattr("gpuslice.cli.op.evaluate", failing(error))
        prefix = "Slice-13: " if isinstance(error, MemoryError) else ""
        refused(capsys, SLICE, f"{prefix}{words}\n")
        monkeypatch.undo()
        monkeypatch.chdir(folder)
    assert left(folder) == []


def test_an_error_of_another_library_names_its_file(folder, capsys, monkeypatch):
    monkeypatch.setattr("gpuslice.cli.op.evaluate", lambda *arguments: Path("none").read_bytes())
    refused(capsys, SLICE, "none: No such file or directory\n")


def test_a_file_without_permission(folder, capsys):
    (folder / "x.npy").chmod(0)
    root = os.geteuid() == 0
    if root:
        folder.chmod(0o755)
        os.seteuid(65534)
    try:
        refused(capsys, SLICE, "x.npy: Permission denied\n")
    finally:
        if root:
            os.seteuid(0)


def mode(path):
    """Return the permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("name", ["y.npy", "y.npz"])
def test_modes(folder, name):
    before = os.umask(0o027)
    try:
        assert main([*SLICE, "-o", name]) == 0
        assert mode(folder / name) == 0o640
        assert os.umask(0o027) == 0o027
        (folder / name).chmod(0o604)
        root = os.geteuid() == 0
        if root:
            os.chown(name, 65534, 65533)
        assert main([*SLICE, "-o", name]) == 0
        assert mode(folder / name) == 0o604
        status = (folder / name).stat()
        assert not root or (status.st_uid, status.st_gid) == (65534, 65533)
    finally:
        os.umask(before)


BAD_TARGETS = [
    ("read-only.npy", "the file is read-only"),
    ("link.npy", "the file is read-only"),
    ("folder.npy", "not a regular file"),
    ("loop.npy", "Too many levels of symbolic links"),
    ("full.npy", "not a regular file"),
    ("none/y.npy", "No such file or directory"),
    ("x.npy/y.npy", "Not a directory"),
    ("y" * 252 + ".npy", "File name too long"),
    ("a\0.npy", "embedded null byte"),
]


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize(("target", "reason"), BAD_TARGETS, ids=[target[:20] for target, _ in BAD_TARGETS])
def test_bad_targets_are_found_before_the_work(folder, capsys, target, reason, suffix):
    (folder / f"read-only{suffix}").write_bytes(b"old")
    (folder / f"read-only{suffix}").chmod(0o444)
    (folder / f"link{suffix}").symlink_to(f"read-only{suffix}")
    (folder / f"folder{suffix}").mkdir()
    (folder / f"loop{suffix}").symlink_to(f"loop{suffix}")
    (folder / f"full{suffix}").symlink_to("/dev/full")
    target = f"{target.removesuffix('.npy')}{suffix}"
    words = (
        ["run", "missing.onnx"] if suffix == ".npz" else ["op", "Slice-13", "data=missing.npy", "starts=0", "ends=1"]
    )
    message = f"{target}: cannot be written; {reason}\n".replace("\0", r"\x00")
    refused(capsys, [*words, "-o", target], message)
    assert left(folder) == []
    assert (folder / f"read-only{suffix}").read_bytes() == b"old"


def test_a_leftover_does_no_harm(folder, monkeypatch):
    (folder / f".{os.getpid()}.y.npy").write_bytes(b"old")
    monkeypatch.setattr(tempfile, "_name_sequence", iter(["used", "used", "fresh"]))
    (folder / ".gpuslice-used").write_bytes(b"old")
    monkeypatch.setattr("gpuslice.cli.op.check_target", lambda path: None)  # it takes names too
    assert main([*SLICE, "-o", "y.npy"]) == 0
    assert_same(np.load("y.npy"), X[:1].copy())
    assert sorted(left(folder)) == sorted([f".{os.getpid()}.y.npy", ".gpuslice-used"])


def test_the_new_file_is_on_the_disk_before_it_replaces_the_old_one(folder, monkeypatch):
    calls, sizes = [], []
    fsync, replace = os.fsync, os.replace

    def synced(number):
        calls.append("fsync")
        sizes.append(os.fstat(number).st_size)
        fsync(number)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda *paths: (calls.append("replace"), replace(*paths)))
    assert main([*SLICE, "-o", "y.npy"]) == 0
    assert calls == ["fsync", "replace"]
    assert sizes == [Path("y.npy").stat().st_size]


# What is called while a command runs, and whether the new file is there after a signal in that call.
MOMENTS = {
    "gpuslice.cli.op.evaluate": False,
    "gpuslice.cli.reading._fill": False,
    "tempfile.mkstemp": False,
    "gpuslice.cli.writing._bytes": False,
    "os.fsync": False,
    "os.replace": True,
    "pathlib.Path.unlink": True,
    "gpuslice.cli.op.run_operator_command": True,
}


# The same for results that are written in pieces.
MOMENTS_IN_PIECES = {
    ".npy": ["gpuslice.cli.reading._mapped", "os.posix_fallocate", "gpuslice.cli.copies.Copies.into", "os.fsync"],
    ".npz": ["gpuslice.cli.copies.Copies.fresh", "zipfile.ZipFile.open", "os.fsync"],
}
INTERRUPTED = [(moment, ".npy", False, replaced) for moment, replaced in MOMENTS.items()]
INTERRUPTED += [(moment, suffix, True, False) for suffix, moments in MOMENTS_IN_PIECES.items() for moment in moments]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize(
    ("moment", "suffix", "pieces", "replaced"), INTERRUPTED, ids=[f"{case[0]}{case[1]}" for case in INTERRUPTED]
)
def test_signals_end_with_one_line_and_leave_no_temporary_file(
    folder, capsys, monkeypatch, request, moment, suffix, pieces, replaced, number
):
    if pieces:
        request.getfixturevalue("in_pieces")
    path = folder / f"y{suffix}"
    path.write_bytes(b"old")
    before = signal.getsignal(number)
    original = pkgutil.resolve_name(moment)

    def interrupted(*arguments, **options):
        result = original(*arguments, **options)
        signal.raise_signal(number)
        return result

    monkeypatch.setattr(moment, interrupted)
    refused(capsys, [*SLICE, "-o", path.name], f"stopped by {number.name}\n", 128 + number)
    monkeypatch.undo()
    if replaced:
        assert_same(np.load(path), X[:1].copy())
    else:
        assert path.read_bytes() == b"old"
    assert left(folder) == []
    assert signal.getsignal(number) is before


# A signal at the first import of NumPy, which comes before any module of the package can do anything.
EARLY = """
import builtins, signal
imported = builtins.__import__

def interrupted(name, *rest):
    if name == "numpy":
        builtins.__import__ = imported
        signal.raise_signal({number})
    return imported(name, *rest)

builtins.__import__ = interrupted
"""
COMMANDS = {
    "module": ["-m", "gpuslice"],
    "script": ["-c", "from _gpuslice_command import main; raise SystemExit(main())"],
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("command", COMMANDS)
def test_signals_during_the_imports_end_with_one_line(folder, command, number):
    Path("early").mkdir()
    Path("early/sitecustomize.py").write_text(EARLY.format(number=int(number)))
    path = os.pathsep.join(
        ["early", *filter(None, [os.environ.get("PYTHONPATH"), str(Path(gpuslice.__file__).parents[1])])]
    )
    words = [sys.executable, *COMMANDS[command], *SLICE, "-o", "y.npy"]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", f"gpuslice: stopped by {number.name}\n")
    assert left(folder) == []
    assert not (folder / "y.npy").exists()


def test_signals_that_are_ignored_stay_so(folder):
    code = "import signal; from _gpuslice_command import main; main(); print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    done = subprocess.run(
        [sys.executable, "-c", code, *SLICE, "-o", "y.npy"],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_an_import_of_the_library_leaves_signals_alone(folder):
    code = "import signal, gpuslice.cli; print(signal.getsignal(2) is signal.default_int_handler, signal.getsignal(15) is signal.SIG_DFL)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "True True\n"


def test_a_programs_own_handlers_stay(folder, monkeypatch):
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        monkeypatch.setattr(os, "fsync", lambda number: signal.raise_signal(signal.SIGTERM))
        assert main([*SLICE, "-o", "y.npy"]) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    assert received == [signal.SIGTERM]


def process(words, **options):
    """Run a command in a process of its own; words may be bytes."""
    return subprocess.run([sys.executable, "-m", "gpuslice", *words], capture_output=True, check=False, **options)


def test_any_encoding_of_the_terminal(folder):
    np.save("t.npy", np.array(["é日\udc80"]))
    words = ["op", "Slice-13", "data=t.npy", "starts=0", "ends=1"]
    for encoding, shown in [
        ("ascii", r"\xe9\u65e5\udc80"),
        ("latin-1", r"é\u65e5\udc80"),
        ("utf-8", r"é日\udc80"),
        ("utf-16", r"é日\udc80"),
        ("cp037", r"é\u65e5\udc80"),
    ]:
        done = process(words, env={**os.environ, "PYTHONIOENCODING": encoding})
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.decode(encoding) == f"output: (1) string\n['{shown}']\n"


def test_words_that_are_no_utf_8(folder, capsys):
    odd = "\udcff"  # what Python makes of the byte 0xff
    Path(f"{odd}.npy").write_bytes(Path("x.npy").read_bytes())
    assert main(["op", "Slice-13", f"data={odd}.npy", "starts=0", "ends=1", "-o", f"{odd}{odd}.npy"]) == 0
    assert b"\xff\xff.npy" in [os.fsencode(path.name) for path in folder.iterdir()]
    save(model([node("Identity", ["x"])], ["x"], ["y"]), "m.onnx")
    Path(f"{odd}.onnx").write_bytes(Path("m.onnx").read_bytes())
    assert main(["run", f"{odd}.onnx", "-i", f"x={odd}.npy", "-o", f"{odd}.npz"]) == 0
    assert capsys.readouterr().out.endswith(" ms -> \\udcff.npz\n")
    for words, message in [
        ([odd], "argument command: invalid choice: "),
        (["op", odd], r"\udcff: must be an operator with its version"),
        (["op", "Slice-13", f"{odd}={odd}"], "Slice-13: there is no input or attribute "),
        (["op", "Slice-13", f"data=none{odd}", "starts=0", "ends=1"], r"none\udcff: No such file or directory"),
        (["op", "Slice-13", "data=x.npy", f"starts={odd}"], "Slice-13: starts must be INT,INT,... or FILE.npy; got "),
        (["op", "Slice-13", "data=x.npy", "starts=\ud800"], "Slice-13: starts must be INT,INT,... or FILE.npy; got "),
        (["op", "Slice-13", "data=x.npy", "starts=0", "ends=1", "-o", "\ud800.npy"], r"\ud800.npy: cannot be written; 'utf-8' codec can't encode"),
        (["op", "Slice-13", "data=\ud800.npy", "starts=0", "ends=1"], r"\ud800.npy: cannot be read; 'utf-8' codec can't encode"),
        (["run", f"none{odd}", "-o", "z.npz"], r"none\udcff: No such file or directory"),
        (["run", "m.onnx", "-i", f"{odd}=x.npy", "-o", "z.npz"], "the model has no input "),
        (["op", "Slice-13", "data=a\x1b[31m\nb", "starts=0", "ends=1"], r"a\x1b[31m b: No such file or directory"),
    ]:  # fmt: skip
        refused(capsys, words, message)
    done = process([b"op", b"Slice-13", b"data=\xff\xff.npy", b"starts=0", b"ends=1", b"-o", b"\xff\xff\xff.npy"])
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = process([b"op", b"Slice-13", b"\xff\xfe", b"--\xff"])
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"gpuslice: unknown arguments: --\\udcff")


PRINTING = [["info"], ["--help"], [*SLICE]]


@pytest.mark.parametrize("words", PRINTING, ids=[words[0] for words in PRINTING])
def test_standard_output_that_takes_nothing(folder, words):
    command = [sys.executable, "-m", "gpuslice", *words]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
        assert done.stderr == b"gpuslice: standard output: cannot be written; No space left on device\n"
        assert done.returncode == 2
        done = subprocess.run([*command, "x=y", "z"], stdout=full, stderr=full, check=False)
        assert done.returncode == 2


def test_closed_streams(folder):
    for words, code in [([*SLICE], 0), (["walk"], 2)]:
        command = f'"{sys.executable}" -m gpuslice {" ".join(words)}'
        for closed in (">&-", "2>&-", ">&- 2>&-"):
            done = subprocess.run(f"{command} {closed}", shell=True, capture_output=True, text=True, check=False)
            assert done.returncode == code
            assert "Traceback" not in done.stdout + done.stderr
