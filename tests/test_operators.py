"""slice, split and contiguous: copies and views, out=, kinds of arrays and of arguments, and what is refused."""

import numpy as np
import pytest
from arrays import assert_same, to_numpy

import gpuslice as gs


def make(xp, array):
    """Hand a NumPy array to a library."""
    return array if xp is np else xp.asarray(array)


def shares(xp, left, right):
    """Tell whether two arrays share memory, by writing to one."""
    left[...] = xp.zeros_like(left)
    return not to_numpy(right).any()


X = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
BACKWARD = ([-1, -1], [-9, -9], [1, 2], [-1, -2])


def test_copy_true_is_fresh_and_dense(xp):
    data = make(xp, X.copy(order="F"))
    result = gs.slice(data, *BACKWARD)
    assert_same(result, np.ascontiguousarray(X[:, ::-1, ::-2]), like=data)
    assert not shares(xp, result, data[:, ::-1, ::-2])
    if xp is np:
        assert result.flags.c_contiguous
        assert result.flags.owndata
        assert result.flags.writeable


@pytest.mark.parametrize("copy", [None, False])
def test_copy_none_and_false_give_views(copy, xp):
    data = make(xp, X.copy())
    result = gs.slice(data, *BACKWARD, copy=copy)
    assert_same(result, X[:, ::-1, ::-2], like=data)
    assert shares(xp, result, data[:, ::-1, ::-2])
    data = make(xp, X.copy())
    parts = gs.split(data, [1, 2], axis=1, copy=copy)
    assert all(shares(xp, part, data[:, at, ...]) for part, at in zip(parts, (slice(0, 1), slice(1, 3)), strict=True))


def test_copy_must_be_one_of_three():
    with pytest.raises(ValueError, match="Slice-13: copy must be True, False or None; got 1"):
        gs.slice(X, [0], [1], copy=1)


def test_whole_arrays_are_copied_too(xp):
    data = make(xp, X.copy())
    for result in (gs.slice(data, [], []), gs.contiguous(data), gs.sequence_at([data], 0), gs.split(data, [2])[0]):
        assert_same(result, X, like=data)
        assert not shares(xp, result, data)


def test_out_is_written_and_returned(xp):
    data = make(xp, X)
    big = make(xp, np.zeros((2, 6, 4), np.int32))
    out = big[:, ::2, ::-2]
    assert gs.slice(data, *BACKWARD, out=out) is out
    assert_same(out, X[:, ::-1, ::-2], like=data)
    outs = [make(xp, np.zeros((2, 1, 4), np.int32)) for _ in range(3)]
    given = gs.split(data, num_outputs=3, axis=1, out=outs)
    assert all(a is b for a, b in zip(given, outs, strict=True))
    for part, expected in zip(outs, np.split(X, 3, axis=1), strict=True):
        assert_same(part, np.ascontiguousarray(expected), like=data)


BAD_OUT = {
    "shape": (lambda xp, data: xp.zeros((2, 4), dtype=xp.int32), ValueError, r"out must have shape \(2, 3\); got \(2, 4\)"),
    "dtype": (lambda xp, data: xp.zeros((2, 3), dtype=xp.int64), TypeError, "out must have dtype .*int32; got .*int64"),
    "list": (lambda xp, data: [[0] * 3] * 2, TypeError, "out must be an array; got list"),
    "input": (lambda xp, data: data[0, ...][:2, :3], ValueError, "out must not overlap an input"),
    "backward": (lambda xp, data: data[1, ::-1, ::-1][1:3, :3], ValueError, "out must not overlap an input"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_OUT)
def test_bad_out_is_refused_and_nothing_written(kind, xp):
    make_out, error, message = BAD_OUT[kind]
    data = make(xp, X.copy())
    out = make_out(xp, data)
    before = None if kind == "list" else to_numpy(out).copy()
    with pytest.raises(error, match=f"^Slice-13: {message}"):
        gs.slice(data[:, 0, :], [0, 0], [2, 3], out=out)
    assert before is None or (to_numpy(out) == before).all()
    assert (to_numpy(data) == X).all()


def test_out_with_views_is_refused(xp):
    data, out = make(xp, X), make(xp, np.zeros_like(X))
    for copy in (None, False):
        with pytest.raises(ValueError, match="Slice-13: out needs copy=True"):
            gs.slice(data, [], [], copy=copy, out=out)
    assert not to_numpy(out).any()


def test_outs_are_checked_before_any_is_written(xp):
    data = make(xp, X)
    good = make(xp, np.zeros((1, 3, 4), np.int32))
    for outs, error, message in [
        ([good], ValueError, "out must hold 2 arrays"),
        ([good, good], ValueError, "overlap each other"),
        ([good, make(xp, np.zeros((1, 3, 5), np.int32))], ValueError, "out must have shape"),
        (good, TypeError, "out must be a list or tuple"),
    ]:
        with pytest.raises(error, match=f"^Split-18: .*{message}"):
            gs.split(data, num_outputs=2, out=outs)
        assert not to_numpy(good).any()


def test_read_only_out_is_refused():
    out = np.zeros_like(X)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out must be writable"):
        gs.slice(X, [], [], out=out)


def test_out_with_items_in_several_places_is_refused():
    out = np.lib.stride_tricks.as_strided(np.zeros(4, np.int32), X.shape, (0, 0, 4))
    with pytest.raises(ValueError, match="out must not hold one item in several places"):
        gs.slice(X, [], [], out=out)


def test_out_between_the_items_of_the_input_is_no_overlap():
    buffer = np.arange(20)
    gs.slice(buffer[::2], [-1], [-99], steps=[-1], out=buffer[1::2])
    assert buffer[1::2].tolist() == [18, 16, 14, 12, 10, 8, 6, 4, 2, 0]


def test_one_block(xp):
    data = make(xp, X)
    with gs.trace() as t:
        parts = gs.split(data, [1, 0, 2, 1], axis=2, one_block=True)
    assert len(t.allocations) == 1
    for part, expected in zip(parts, np.split(X, [1, 1, 3], axis=2), strict=True):
        assert_same(part, np.ascontiguousarray(expected), like=data)
    parts[0][...] = xp.zeros_like(parts[0])
    assert to_numpy(parts[2]).all()
    with pytest.raises(ValueError, match="one_block needs copy=True"):
        gs.split(data, [2], one_block=True, copy=None)
    with pytest.raises(ValueError, match="one_block allocates the outputs itself"):
        gs.split(data, [2], one_block=True, out=[make(xp, X.copy())])


def test_contiguous(xp):
    data, other = make(xp, X), make(xp, np.arange(6.0).reshape(2, 3))
    backward, transposed = gs.contiguous([data[::-1, ...], xp.permute_dims(other, (1, 0))])
    assert_same(backward, np.ascontiguousarray(X[::-1]), like=data)
    assert_same(transposed, np.arange(6.0).reshape(2, 3).T.copy(), like=other)
    assert gs.contiguous(()) == ()
    out = make(xp, np.zeros_like(X))
    assert gs.contiguous(data[::-1, ...], out=out) is out
    with pytest.raises(TypeError, match=r"^contiguous: views must be an array; got int"):
        gs.contiguous([data, 3])


def test_trace_counts(xp):
    data = make(xp, X)
    with gs.trace() as outer, gs.trace() as inner:
        gs.slice(data, *BACKWARD)
        gs.split(data, [0, 2])
        gs.slice(data, [0], [0])
        gs.slice(data, [0], [1], copy=None)
    assert outer.launches == inner.launches
    assert [(launch.bytes_read, launch.bytes_written) for launch in inner.launches] == [(48, 48), (96, 96)]
    assert inner.allocations == [48, 0, 96, 0]
    executors = {"numpy": {"host", "numpy"}, "cupy": {"cuda"}}.get(xp.__name__, {"generic"})
    assert {launch.executor for launch in inner.launches} <= executors


ARRAYS = {
    "0-d": np.array(7.0),
    "zero-size": np.zeros((0, 3), np.int8),
    "big-endian": np.arange(6, dtype=">f4").reshape(2, 3),
    "fixed-width text": np.array([["a", "bcd"], ["é", ""]]),
    "StringDType": np.array([["a", "bcd"], ["é", ""]], dtype=np.dtypes.StringDType()),
    "bytes": np.array([b"a", b"bcd"]),
    "objects": np.array([["a", None], [1.5, "b"]], dtype=object),
    "3-byte items": np.arange(12, dtype=np.uint8).view("V3"),
    "structured": np.array([(1, "x"), (2, "y")], dtype=[("n", "i4"), ("s", "U1")]),
    "structured with references": np.array([(1, [2]), (2, "y")], dtype=[("n", "i4"), ("s", "O")]),
    "datetimes": np.array(["2026-01-01", "NaT"], dtype="M8[D]"),
    "long double": np.arange(3, dtype=np.longdouble),
    "NaN and -0": np.array([np.nan, -0.0, np.inf], np.float16),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_every_kind_of_numpy_array(kind):
    array = ARRAYS[kind]
    axes = range(array.ndim)
    result = gs.slice(array, [-1] * array.ndim, [-99] * array.ndim, axes, [-1] * array.ndim)
    expected = array[(slice(None, None, -1),) * array.ndim + (...,)].copy()
    assert_same(result, expected)
    assert result.flags.c_contiguous
    assert not np.shares_memory(result, array)
    out = np.empty_like(result)
    assert_same(gs.slice(array, [-1] * array.ndim, [-99] * array.ndim, axes, [-1] * array.ndim, out=out), expected)
    if array.ndim and len(array):
        assert_same(gs.concat_from_sequence(gs.split_to_sequence(array), axis=0), array.copy())


def test_an_object_that_is_a_list_stays_one():
    array = np.empty((), dtype=object)
    array[()] = [1, 2]
    assert gs.slice(array, [], [])[()] == [1, 2]


def test_memory_map_gives_an_ndarray(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for copy in (True, None):
        result = gs.slice(mapped, [-1], [-9], steps=[-1], copy=copy)
        assert type(result) is np.ndarray
        assert (result == X[::-1]).all()


def test_numpy_scalars_are_0_d_arrays():
    assert_same(gs.slice(np.float32(3), [], []), np.array(3, np.float32))


BAD_DATA = [[1, 2], 3.5, None, "text", np.ma.masked_array([1, 2], [True, False])]


@pytest.mark.parametrize("data", BAD_DATA, ids=lambda data: type(data).__name__)
def test_what_is_no_array_is_refused(data):
    with pytest.raises(TypeError, match=r"^Slice-13: data must (be an array|not be a masked array)"):
        gs.slice(data, [0], [1])


INDEX_KINDS = [
    [0, 2],
    (0, 2),
    range(0, 4, 2),
    np.array([0, 2], np.uint8),
    np.array([0, 2], ">i8"),
    [np.int64(0), np.array(2)],
]


@pytest.mark.parametrize("starts", INDEX_KINDS, ids=lambda kind: type(kind).__name__)
def test_bounds_may_be_any_sequence_of_ints(starts, xp):
    data = make(xp, X)
    assert_same(gs.slice(data, starts, [2**80, 2**80]), X[0:, 2:].copy(), like=data)


def test_bounds_may_be_arrays_of_another_library(xp):
    bounds = [xp.asarray(values, dtype=xp.int32) for values in ([0, 2], [9, 9], [0, 1], [1, 1])]
    assert_same(gs.slice(X, *bounds), X[:, 2:].copy())
    sizes = xp.asarray([1, 2], dtype=xp.int64)
    assert [part.shape for part in gs.split(X, sizes, axis=1)] == [(2, 1, 4), (2, 2, 4)]


BAD_BOUNDS = [
    (3, TypeError, "starts must be a sequence of ints or a 1-D integer array; got int 3"),
    ("01", TypeError, "starts must be a sequence of ints"),
    (b"\x00", TypeError, "starts must be a sequence of ints"),
    ({0}, TypeError, "starts must be a sequence of ints"),
    (None, TypeError, "starts must be a sequence of ints"),
    ([True], TypeError, "starts must hold ints; got bool True"),
    ([np.bool_(True)], TypeError, "starts must hold ints"),
    ([1.0], TypeError, "starts must hold ints; got float 1.0"),
    (["1"], TypeError, "starts must hold ints"),
    (np.array([True]), TypeError, "starts must have an integer dtype; got bool"),
    (np.array([1.0]), TypeError, "starts must have an integer dtype; got float64"),
    (np.array(1), ValueError, r"starts must be 1-D; got shape \(\)"),
    (np.array([[1]]), ValueError, r"starts must be 1-D; got shape \(1, 1\)"),
]


@pytest.mark.parametrize(("starts", "error", "message"), BAD_BOUNDS, ids=[repr(bad[0])[:20] for bad in BAD_BOUNDS])
def test_bad_bounds(starts, error, message):
    with pytest.raises(error, match=f"^Slice-13: {message}"):
        gs.slice(X, starts, [1])


BAD_SPLITS = [
    ({}, ValueError, "exactly one of split and num_outputs must be given; got neither"),
    ({"split": [2], "num_outputs": 1}, ValueError, "exactly one .*; got both"),
    ({"split": []}, ValueError, "split must add up"),
    ({"num_outputs": 0}, ValueError, "num_outputs must be at least 1"),
    ({"num_outputs": True}, TypeError, "num_outputs must be an int"),
    ({"num_outputs": 1, "axis": 3}, ValueError, r"axis must be in \[-3, 2\] for rank 3; got 3"),
    ({"num_outputs": 1, "axis": 1.0}, TypeError, "axis must be an int; got float 1.0"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD_SPLITS, ids=[str(bad[0]) for bad in BAD_SPLITS])
def test_bad_splits(arguments, error, message, xp):
    with pytest.raises(error, match=f"^Split-18: {message}"):
        gs.split(make(xp, X), **arguments)


def test_split_of_nothing_needs_a_part():
    with pytest.raises(ValueError, match="split must have at least one value"):
        gs.split(np.zeros(0), [])


def test_dynamic_slice(xp):
    data = make(xp, X)
    assert_same(gs.dynamic_slice(data, [1, 0], [9, -1]), X[1:, :-1].copy(), like=data)
    with pytest.raises(ValueError, match="^DynamicSlice-1: axes must"):
        gs.dynamic_slice(data, [0], [1], [3])


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
