"""out=: what is written, and which arrays are refused before anything is written."""

import mmap
import sys

import numpy as np
import pytest
from helpers import assert_same, items
from libraries import backward_step, make, to_numpy

import gpuslice as gs
from gpuslice import mapped_files
from gpuslice.versions import newest

X = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
BACKWARD = ([-1, -1], [-9, -9], [1, 2], [-1, -2])
# Each function that takes out=, by the prefix of its errors, with arguments for which the result is the whole of x.
INTO = {
    newest("Slice"): lambda x, out: gs.slice(x, [], [], out=out),
    newest("DynamicSlice"): lambda x, out: gs.dynamic_slice(x, [], [], out=out),
    newest("Split"): lambda x, out: gs.split(x, [x.shape[0]], out=[out])[0],
    newest("SequenceAt"): lambda x, out: gs.sequence_at([x[:0, ...], x], 1, out=out),
    newest("SplitToSequence"): lambda x, out: gs.split_to_sequence(x, [x.shape[0]], out=[out])[0],
    newest("ConcatFromSequence"): lambda x, out: gs.concat_from_sequence([x[:1, ...], x[1:, ...]], axis=0, out=out),
    "contiguous": lambda x, out: gs.contiguous(x, out=out),
}
# What messages call the output: that of a function that takes a list has a position.
NAMES = dict.fromkeys(INTO, "out") | dict.fromkeys([newest("Split"), newest("SplitToSequence")], r"out\[0\]")
each_function = pytest.mark.parametrize("prefix", INTO)


def test_out_is_written_and_returned(xp):
    data = make(xp, X)
    big = make(xp, np.zeros((2, 6, 4), np.int32))
    out = big[:, ::2, :: 2 * backward_step(xp)]
    assert gs.slice(data, *BACKWARD, out=out) is out
    assert_same(out, X[:, ::-1, ::-2], like=data)
    outs = [make(xp, np.zeros((2, 1, 4), np.int32)) for _ in range(3)]
    given = gs.split(data, num_outputs=3, axis=1, out=outs)
    assert all(a is b for a, b in zip(given, outs, strict=True))
    for part, expected in zip(outs, np.split(X, 3, axis=1), strict=True):
        assert_same(part, np.ascontiguousarray(expected), like=data)


@each_function
@pytest.mark.parametrize("rows", [3, 30_000])
def test_each_function_writes_out(prefix, rows, xp):
    x = items(rows, 4, dtype="i4")
    data, memory = make(xp, x), make(xp, np.zeros((rows, 9), np.int32))
    # The same call again, which is then known; also into an array that is not contiguous.
    for out in (make(xp, np.zeros_like(x)), make(xp, np.zeros_like(x)), memory[:, 1::2]):
        assert INTO[prefix](data, out) is out
        assert_same(out, x, like=data)
    assert not to_numpy(memory)[:, ::2].any()


BAD_OUT = {
    "shape": (lambda xp, data: xp.zeros((2, 4), dtype=xp.int32), ValueError, r"must have shape \(2, 3\); got \(2, 4\)"),
    "dtype": (lambda xp, data: xp.zeros((2, 3), dtype=xp.int64), TypeError, "must have dtype .*int32; got .*int64"),
    "list": (lambda xp, data: [[0] * 3] * 2, TypeError, "must be an array; got list"),
    "input": (lambda xp, data: data[0, ...][:2, :3], ValueError, "must not overlap an input$"),
    "backward": (lambda xp, data: data[1, ::-1, ::-1][1:3, :3] if backward_step(xp) < 0 else data[1, :2, :3], ValueError, "must not overlap an input$"),
}  # fmt: skip


@each_function
@pytest.mark.parametrize("kind", BAD_OUT)
def test_bad_out_is_refused_and_nothing_written(kind, prefix, xp):
    make_out, error, message = BAD_OUT[kind]
    data = make(xp, X.copy())
    out = make_out(xp, data)
    before = None if kind == "list" else to_numpy(out).copy()
    with pytest.raises(error, match=f"^{prefix}: {NAMES[prefix]} {message}"):
        INTO[prefix](data[:, 0, :3], out)
    assert before is None or (to_numpy(out) == before).all()
    assert (to_numpy(data) == X).all()


def test_out_with_views_is_refused(xp):
    data, out = make(xp, X), make(xp, np.zeros_like(X))
    for copy in (None, False):
        with pytest.raises(ValueError, match=f"^{newest('Slice')}: out needs copy=True"):
            gs.slice(data, [], [], copy=copy, out=out)
        with pytest.raises(ValueError, match=f"^{newest('SequenceAt')}: out needs copy=True"):
            gs.sequence_at([data], 0, copy=copy, out=out)
    assert not to_numpy(out).any()


INTO_TWO = {
    newest("Split"): lambda x, outs: gs.split(x, num_outputs=2, out=outs),
    newest("SplitToSequence"): lambda x, outs: gs.split_to_sequence(x, out=outs),
}


@pytest.mark.parametrize("prefix", INTO_TWO)
def test_outs_are_checked_before_any_is_written(prefix, xp):
    data = make(xp, X)
    good = make(xp, np.zeros((1, 3, 4), np.int32))
    for outs, error, message in [
        ([good], ValueError, "out must hold 2 arrays"),
        ([good, good], ValueError, r"out\[1\] must not overlap out\[0\]$"),
        ([good, data[:1, ...]], ValueError, r"out\[1\] must not overlap an input$"),
        ([good, make(xp, np.zeros((1, 3, 5), np.int32))], ValueError, r"out\[1\] must have shape"),
        ([good, make(xp, np.zeros((1, 3, 4), np.int64))], TypeError, r"out\[1\] must have dtype"),
        ([good, None], TypeError, r"out\[1\] must be an array; got NoneType None$"),
        (good, TypeError, "out must be a list or tuple"),
    ]:
        with pytest.raises(error, match=f"^{prefix}: {message}"):
            INTO_TWO[prefix](data, outs)
        assert not to_numpy(good).any()


@each_function
def test_read_only_out_is_refused(prefix):
    out = np.zeros_like(X)
    out.flags.writeable = False
    with pytest.raises(ValueError, match=f"^{prefix}: {NAMES[prefix]} must be writable"):
        INTO[prefix](X, out)


def test_out_may_overlap_no_array_of_a_sequence():
    memory = np.arange(48)
    other, planes = np.zeros(24, int), memory.reshape(4, 3, 4)
    plane = other[:12].reshape(3, 4)
    for seq, axis, new_axis, out in [
        ([other, memory[:24]], 0, 0, memory),
        ([memory[24:], other], 0, 0, memory),
        ([memory[1::2], memory[::2]], 0, 0, memory[::-1]),
        ([plane, plane, planes[2]], 2, 1, memory[:36].reshape(3, 4, 3)[:, :, ::-1]),
    ]:
        with pytest.raises(ValueError, match=f"^{newest('ConcatFromSequence')}: out must not overlap an input"):
            gs.concat_from_sequence(seq, axis=axis, new_axis=new_axis, out=out)
        assert (memory == np.arange(48)).all()
    # Beside and between the items of the inputs.
    gs.concat_from_sequence([plane, plane, planes[3]], axis=2, new_axis=1, out=memory[:36].reshape(3, 4, 3))
    assert_same(memory[:36].reshape(3, 4, 3), np.stack([plane, plane, planes[3]], axis=2))
    gs.concat_from_sequence([memory[:24:2], memory[24::2]], axis=0, out=memory[1::2])
    assert_same(memory[1::2].copy(), memory[::2].copy())


# Shapes and strides, in items, of arrays in which two items share memory, or not.
SELF_OVERLAPS = [
    ((3, 4), (0, 1)),
    ((3, 4), (1, 1)),
    ((3, 4), (2, 1)),
    ((3, 4), (-1, 1)),
    ((2, 3, 4), (3, 4, 5)),
    ((3, 4), (3, 2)),
]
APART = [
    ((3, 4), (4, 1)),
    ((3, 4), (1, 3)),
    ((3, 4), (-4, 1)),
    ((2, 3), (3, 2)),
    ((1, 4), (0, 1)),
    ((3, 0), (0, 0)),
    ((2, 2, 3), (4, 2, 9)),
    ((2, 3, 4), (3, 4, 6)),
]


@pytest.mark.parametrize(
    ("shape", "strides", "apart"), [(*c, False) for c in SELF_OVERLAPS] + [(*c, True) for c in APART]
)
def test_out_that_overlaps_itself_is_refused(shape, strides, apart):
    memory = np.zeros(100, np.int32)
    out = np.lib.stride_tricks.as_strided(memory[50:], shape, [4 * stride for stride in strides])
    data = np.arange(1, 1 + np.prod(shape), dtype=np.int32).reshape(shape)
    for prefix, call in INTO.items():
        if apart:
            assert_same(call(data, out).copy(), data)
            continue
        message = f"^{prefix}: {NAMES[prefix]} must not overlap itself; got an array in which two items share memory"
        with pytest.raises(ValueError, match=message):
            call(data, out)
        assert not memory.any()


def test_rows_that_share_bytes_of_an_item_overlap():
    out = np.lib.stride_tricks.as_strided(np.zeros(9, np.int32), (3, 2), (6, 4))
    with pytest.raises(ValueError, match="out must not overlap itself"):
        gs.slice(np.ones((3, 2), np.int32), [], [], out=out)


def test_columns_of_one_array_do_not_overlap():
    """Their bounds overlap, and there are too many to compare each with each."""
    x = np.arange(6000).reshape(2, 3000)
    apart = np.zeros_like(x)
    gs.split(x, num_outputs=3000, axis=1, out=[apart[:, i : i + 1] for i in range(3000)])
    assert_same(apart, x)
    for outs in (
        [apart[:, i::1500] for i in range(1500)],
        [apart[:1, ::3], apart[1:, ::3], apart[:, 1::3], apart[:, 2::3]],
    ):
        gs.contiguous([np.full(out.shape, 7) for out in outs], out=outs)
        assert (apart == 7).all()
        apart[...] = 0
    with pytest.raises(ValueError, match=r"out\[1\] must not overlap out\[0\]$"):
        gs.split(x, num_outputs=3000, axis=1, out=[apart[:, max(0, i - 1) : max(1, i)] for i in range(3000)])
    assert not apart.any()


GAPS = {
    "between": {"names": ["a", "c"], "formats": ["f4", "f8"], "offsets": [0, 8], "itemsize": 16},
    "reordered": {"names": ["c", "a"], "formats": ["f8", "f4"], "offsets": [8, 0], "itemsize": 16},
    "behind": {"names": ["a"], "formats": ["u2"], "offsets": [0], "itemsize": 7},
    "before": {"names": ["a"], "formats": ["u2"], "offsets": [5], "itemsize": 7},
    "nested": {
        "names": ["n", "d"],
        "formats": [np.dtype([("x", "u1"), ("y", "f4")], align=True), "u1"],
        "offsets": [0, 9],
    },
    "in an array": [("n", np.dtype([("x", "u1"), ("y", "f4")], align=True), (2, 3)), ("m", "u1")],
    "no field": {"names": [], "formats": [], "itemsize": 8},
}


def assign_fields(target, source):
    """Write the fields alone. NumPy 2.5 writes what lies between the fields of a field, too."""
    if target.dtype.names is None:
        target[...] = source
    for name in target.dtype.names or ():
        assign_fields(target[name], source[name])


@pytest.mark.parametrize("count", [60, 60_000])
@pytest.mark.parametrize("kind", GAPS)
def test_what_lies_between_the_fields_of_out_stays(kind, count):
    """As in ``y[["a", "c"]]``, where other fields of y lie between."""
    dtype = np.dtype(GAPS[kind])
    bits = items(count * dtype.itemsize)
    x = bits.view(dtype).reshape(count // 6, 6)
    calls = [
        (x[::-1], lambda out: gs.slice(x, [-1], [-(1 << 60)], steps=[-1], out=out)),
        (x, lambda out: gs.split(x, [2, 4], axis=1, out=[out[:, :2], out[:, 2:]])),
        (x, lambda out: gs.contiguous([x[::2], x[1::2]], out=[out[::2], out[1::2]])),
        (x, lambda out: gs.split_to_sequence(x, 2, axis=1, out=[out[:, :2], out[:, 2:4], out[:, 4:]])),
        (x, lambda out: gs.concat_from_sequence([x[:, :2], x[:, 2:]], axis=1, out=out)),
        (x, lambda out: gs.concat_from_sequence([*x.T], axis=1, new_axis=1, out=out)),
        (x, lambda out: gs.sequence_at([x], 0, out=out)),
    ]
    for expected, call in calls:
        ours, theirs = ~bits, ~bits
        call(ours.view(dtype).reshape(x.shape))
        assign_fields(theirs.view(dtype).reshape(x.shape), expected)
        assert_same(ours, theirs)


class Odd(np.ndarray):
    """A subclass that says something else of itself than what is true."""

    shape = (2, 3, 1 << 40)
    strides = (0, 0, 1 << 40)

    def __setitem__(self, key, value):
        raise AssertionError("out must be written as a plain array")

    __getitem__ = __setitem__


@each_function
@pytest.mark.parametrize("count", [24, 240_000])
@pytest.mark.parametrize("kind", [np.memmap, np.recarray, Odd], ids=lambda kind: kind.__name__)
def test_out_of_a_subclass_is_written_as_a_plain_array(kind, count, prefix, tmp_path):
    memory = (
        np.zeros(count, np.int32) if kind is not np.memmap else np.memmap(tmp_path / "x", np.int32, "w+", shape=count)
    )
    out = memory.view(kind)
    data = np.arange(1, count + 1, dtype=np.int32)
    written = INTO[prefix](data[::-1], out)
    if prefix == newest("SplitToSequence"):  # a Sequence holds plain arrays
        assert type(written) is np.ndarray
        assert np.shares_memory(written, np.asarray(memory))
    else:
        assert written is out
    assert_same(np.asarray(memory), data[::-1].copy())


def test_memory_of_other_owners_is_no_file(monkeypatch):
    """Reading which files are mapped takes about a millisecond."""
    monkeypatch.setattr(mapped_files, "_MAPS", None)
    data, out = (np.frombuffer(bytearray(12), np.uint8).reshape(3, 4) for _ in range(2))
    assert gs.contiguous(data[:, ::-1], out=out) is out
    assert np.array_equal(out, data[:, ::-1])


def mappings_of_one_file(path):
    """Return a file's content mapped twice."""
    np.save(path, np.arange(3000.0))
    return np.load(path, mmap_mode="r+"), np.load(path, mmap_mode="r+")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/maps tells which file is mapped where")
def test_out_in_another_mapping_of_the_file_of_the_input(tmp_path):
    one, other = mappings_of_one_file(tmp_path / "x.npy")
    private, read_only = np.load(tmp_path / "x.npy", mmap_mode="c"), np.load(tmp_path / "x.npy", mmap_mode="r")
    with (tmp_path / "x.npy").open("r+b") as file:
        buffer = np.frombuffer(mmap.mmap(file.fileno(), 0), offset=128)
    for data, out in [
        (one[::-1], other),
        (read_only[:2000], other[1000:]),
        (private, other),
        (buffer[::-1], other[:]),
        (one, buffer),
    ]:
        with pytest.raises(ValueError, match="out must not overlap an input"):
            gs.contiguous(data, out=out)
        with pytest.raises(ValueError, match="out must not overlap an input"):
            gs.concat_from_sequence([np.zeros(0), data], axis=0, out=out)
    with pytest.raises(ValueError, match=r"out\[2\] must not overlap out\[1\]$"):
        gs.contiguous([np.ones(9)] * 3, out=[np.zeros(9), one[:9], other[5:14]])
    assert_same(np.asarray(one), np.arange(3000.0))
    # The file from its first byte on.
    whole = [np.memmap(tmp_path / "x.npy", np.uint8, "r+") for _ in range(2)]
    before = bytes(whole[0])
    with pytest.raises(ValueError, match="out must not overlap an input"):
        gs.contiguous(whole[0][:8][::-1], out=whole[1][7:15])
    gs.contiguous(whole[0][0:120:6], out=whole[1][3:83:4])
    assert_same(np.asarray(whole[0][3:83:4]), np.frombuffer(before, np.uint8)[0:120:6].copy())
    whole[1][:] = np.frombuffer(before, np.uint8)
    # What a private mapping writes does not reach the file.
    assert_same(np.asarray(gs.contiguous(one[::-1], out=private)), np.arange(3000.0)[::-1].copy())
    gs.contiguous(one[:1000], out=other[2000:])
    gs.contiguous([one[:10], one[10:20]], out=[other[20:30], other[30:40]])
    assert_same(np.asarray(one[2000:]), np.arange(1000.0))
    assert_same(np.asarray(one[20:40]), np.arange(20.0))


def test_out_between_the_items_of_the_input_does_not_overlap():
    buffer = np.arange(20)
    gs.slice(buffer[::2], [-1], [-99], steps=[-1], out=buffer[1::2])
    assert buffer[1::2].tolist() == [18, 16, 14, 12, 10, 8, 6, 4, 2, 0]


def test_arrays_whose_overlap_is_too_hard_to_find_count_as_overlapping():
    """NumPy needs long to find out if these two share an item. Almost none of their memory is ever touched."""
    memory = np.zeros(192_163_377, np.int8)
    as_strided = np.lib.stride_tricks.as_strided
    data = as_strided(memory, (1049, 1049, 1049), (36674, 61119, 85569))
    out = as_strided(memory[64_023_025:], (1049, 1049, 1), (12223, 12224, 1))
    with pytest.raises(ValueError, match="out must not overlap an input"):
        gs.slice(data, [0], [1], [2], out=out)
    assert not memory[64_023_025:].any()


def test_other_device_of_out_is_refused():
    xp = pytest.importorskip("array_api_strict")
    data = xp.asarray(X)
    out = xp.zeros(X.shape, dtype=xp.int32, device=xp.Device("device1"))
    with pytest.raises(ValueError, match="out must be on device .*CPU_DEVICE.*; got .*device1"):
        gs.slice(data, [], [], out=out)
    there = xp.asarray(X, device=xp.Device("device1"))
    assert gs.slice(there, [0], [1]).device == there.device


def test_out_of_another_library_is_refused():
    xp = pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match="out must be an array of array_api_strict; got one of numpy"):
        gs.slice(xp.asarray(X), [], [], out=np.zeros_like(X))
