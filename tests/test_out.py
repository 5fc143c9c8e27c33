"""out=: what is written, and which arrays are refused before anything is written."""

import numpy as np
import pytest
from helpers import assert_same
from libraries import make, to_numpy

import gpuslice as gs
from gpuslice.versions import newest

X = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
BACKWARD = ([-1, -1], [-9, -9], [1, 2], [-1, -2])


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
    with pytest.raises(error, match=f"^{newest('Slice')}: {message}"):
        gs.slice(data[:, 0, :], [0, 0], [2, 3], out=out)
    assert before is None or (to_numpy(out) == before).all()
    assert (to_numpy(data) == X).all()


def test_out_with_views_is_refused(xp):
    data, out = make(xp, X), make(xp, np.zeros_like(X))
    for copy in (None, False):
        with pytest.raises(ValueError, match=f"^{newest('Slice')}: out needs copy=True"):
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
        with pytest.raises(error, match=f"^{newest('Split')}: .*{message}"):
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
