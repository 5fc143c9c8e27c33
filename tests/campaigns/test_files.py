"""Campaigns on files: damaged ones through the command line, and processes that are killed while they write."""

import io
import re
import signal
import subprocess
import sys
import zipfile

import ml_dtypes
import numpy as np
import pytest

from gpuslice.cli import main
from gpuslice.dtypes import dtype_name

DTYPES = [
    "f4",
    "u1",
    "i8",
    "c16",
    "?",
    "f2",
    ">f4",
    ">i2",
    "U3",
    "S2",
    ">U2",
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e5m2,
]
SHAPES = [(3, 4), (1,), (2, 3, 2), (0, 5), (), (7,), (2, 0)]
WORDS = {
    "shape": ["(3,)", "()", "(-1,)", "(3, 4, 0)", "(True,)", "(1.0,)", "3", "(10**9,)", "(1000000000000,)", "(4, 3)", "(9223372036854775807, 2)"],
    "descr": ["'<f4'", "'|O'", "'<f1'", "'<V3'", "'<U0'", "'>U1'", "('<f4', (2,))", "[('a', '<f4')]", "'|b1'", "'<m8[s]'", "'<i9'", "None", "'|V0'"],
    "fortran_order": ["True", "False", "1", "None"],
}  # fmt: skip


def npy(random, dtype):
    """Return the bytes of an .npy file, as NumPy writes it."""
    shape = random.choice(SHAPES)
    data = random.randbytes(int(np.prod(shape)) * dtype.itemsize)
    if dtype.kind == "U":
        data = b"".join(random.randrange(0x110000).to_bytes(4, "big" if dtype.str[0] == ">" else "little") for _ in range(len(data) // 4))  # fmt: skip
    file = io.BytesIO()
    np.save(file, np.frombuffer(data, dtype).reshape(shape, order=random.choice("CF")))
    return file.getvalue()


def npz(random, dtype):
    """Return the bytes of an .npz file; some have members with one name, and members that are no arrays."""
    file, method = io.BytesIO(), random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    with zipfile.ZipFile(file, "w", method) as archive:
        for i in range(random.randrange(1, 4)):
            name = random.choice([f"arr_{i}.npy"] * 20 + ["arr_0.npy", "a/../b.npy", "text"])
            data = random.choice([npy(random, dtype)] * 20 + [npy(random, np.dtype("i4")), b"text"])
            archive.writestr(name, new_header(random, data) if random.random() < 0.1 else data)
    return file.getvalue()


def new_header(random, data):
    """Return an .npy file with another value of one key in its header, or another key."""
    key = random.choice(list(WORDS))
    head, rest = data[:128], data[128:]
    found = re.search(rb"\{.*\}", head)
    if found is None:
        return data
    changed = re.sub(rf"'{key}': (\(.*?\)|\[.*?\]|'.*?'|\w+)", f"'{random.choice([key] * 9 + ['key'])}': {random.choice(WORDS[key])}", found[0].decode("latin1"))  # fmt: skip
    return head[:10] + changed.encode("latin1").ljust(117)[:117] + b"\n" + rest


def damaged(random, data):
    """Return bytes with a few changes: of bits, bytes and ranges."""
    data = bytearray(data)
    for _ in range(random.choice([0, 0, 1, 1, 2, 5])):
        at = random.randrange(len(data) + 1)
        span = data[at : at + random.choice([1, 4, 30])]
        match random.randrange(6):
            case 0 if at < len(data):
                data[at] ^= 1 << random.randrange(8)
            case 1:
                data[at : at + 1] = random.choice([b"\0", b"\xff", random.randbytes(1), random.randbytes(4)])
            case 2:
                del data[at : at + len(span)]
            case 3:
                data[at:at] = span
            case 4:
                del data[at:]
            case 5:
                other = random.randrange(len(data) + 1)
                data[other : other + len(span)] = span
    return bytes(data)


def expected(path):
    """Return the arrays that numpy.load finds in a file."""
    found = np.load(path, allow_pickle=False)
    if isinstance(found, np.ndarray):
        return [found]
    with found:
        return [found[name] for name in found.files]


def content(arrays):
    """Return what must be the same in two files: types, shapes and all bits."""
    # NumPy makes arrays of strings of length 0 with the length 1.
    return [(array.dtype.str.replace("U0", "U1"), array.shape, array.tobytes()) for array in arrays]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_damaged_files_are_refused_or_read_as_numpy_does(campaign, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    random = campaign.random
    for _ in campaign.rounds(900):
        monkeypatch.setattr("gpuslice.cli.reading._SMALL", random.choice([1, 1 << 20]))  # mapped, or read
        make, suffix = random.choice([(npy, ".npy"), (npz, ".npz")])
        dtype = np.dtype(random.choice(DTYPES))
        original = make(random, dtype)
        if suffix == ".npy" and random.random() < 0.3:
            original = new_header(random, original)
        path, target = tmp_path / f"bad{suffix}", tmp_path / f"out{suffix}"
        path.write_bytes(damaged(random, original))
        target.write_bytes(b"old")
        told = random.choice([f":{dtype_name(dtype)}"] * 9 + ["", ":float32", ":bfloat16", ":float8_e5m2"])
        words = [f"data{told}=bad.npy", "starts=-1", "ends=-99", "steps=-1"]
        command = (
            ["op", "Slice-13", *words]
            if suffix == ".npy"
            else ["op", "SequenceErase-11", f"input_sequence{told}=bad.npz"]
        )
        code = main([*command, "-o", target.name])
        out, err = capsys.readouterr()
        assert out == ""
        assert sorted(tmp_path.iterdir()) == sorted([path, target])
        if code == 0:
            assert err == ""
            arrays = expected(path)
            assert content(expected(target)) == content(arrays[:-1] if suffix == ".npz" else [arrays[0][::-1]])
            campaign.counts[f"{suffix} files read"] += 1
        else:
            assert code == 2
            assert re.fullmatch(r"gpuslice: \S.*\n", err)
            assert len(err) < 1000
            assert target.read_bytes() == b"old"
            campaign.counts[f"{suffix} files refused"] += 1
        path.unlink()
        target.unlink()


WRITER = """
import sys
import gpuslice.cli.op
gpuslice.cli.copies.PIECE, gpuslice.cli.writing._FLUSHED = 1 << 20, 1 << 22  # so that there are many pieces
print("ready", flush=True)
raise SystemExit(gpuslice.cli.main(sys.argv[1:]))
"""
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]


# What is written, and how many arrays with how many items.
WRITTEN = [
    ("op Slice-13 data=large.npy starts=0 ends=1 -o y.npy", 1, 1 << 24),
    ("op Slice-13 data=large.npy starts=0 ends=1 -o y.npz", 1, 1 << 24),
    ("op SplitToSequence-11 input=many.npy -o y.npz", 9999, 1),
]


def held(path):
    """Return the number of arrays in a file, and the items of the last; every byte is read."""
    if path.suffix == ".npz" and path.read_bytes()[:2] == b"PK":
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
    arrays = np.load(path)
    return (1, arrays.size) if isinstance(arrays, np.ndarray) else (len(arrays.files), arrays[arrays.files[-1]].size)


@pytest.mark.skipif(sys.platform != "linux", reason="signals are those of Linux")
def test_a_killed_writer_leaves_the_old_file_or_the_new_one(campaign, tmp_path):
    random = campaign.random
    np.save(tmp_path / "large.npy", np.ones((1, 1 << 24), np.uint8))
    np.save(tmp_path / "many.npy", np.ones((9999, 1), np.uint8))
    for turn in campaign.rounds(6):
        number, (words, *new) = SIGNALS[turn % 3], random.choice(WRITTEN)
        target = tmp_path / words.split()[-1]
        with target.open("wb") as file:
            np.save(file, np.zeros(3))
        command = [sys.executable, "-c", WRITER, *words.split()]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as writer:
            assert writer.stdout.readline() == b"ready\n"
            try:
                writer.wait(random.uniform(0, 0.2 if new[0] > 1 else 0.1))
            except subprocess.TimeoutExpired:
                writer.send_signal(number)
            err = writer.stderr.read().decode()
        found = list(held(target))
        assert found in (new, [1, 3])
        left = [path for path in tmp_path.iterdir() if path.name not in ("large.npy", "many.npy", target.name)]
        if writer.returncode == 128 + number:
            assert err == f"gpuslice: stopped by {number.name}\n"
        else:  # before and after `main`, the signals do what they do to any Python program
            assert writer.returncode in (0, -number)
        assert not left or number == signal.SIGKILL
        for path in [*left, target]:
            path.unlink()
        kept = "the new" if found == new else "the old"
        campaign.counts[f"{number.name}, {kept} file{' and a temporary one' * bool(left)}"] += 1
