"""Bounds, sizes and axes: which kinds of values are accepted, and what the errors say."""

import numpy as np
import pytest
from helpers import assert_same
from libraries import make

import gpuslice as gs
from gpuslice.versions import newest

X = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
INDEX_KINDS = [
    [0, 2],
    (0, 2),
    range(0, 4, 2),
    np.array([0, 2], np.uint8),
    np.array([0, 2], ">i8"),
    [np.int64(0), 2],
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
    with pytest.raises(error, match=f"^{newest('Slice')}: {message}"):
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
    with pytest.raises(error, match=f"^{newest('Split')}: {message}"):
        gs.split(make(xp, X), **arguments)


def test_split_of_nothing_needs_a_part():
    with pytest.raises(ValueError, match="split must have at least one value"):
        gs.split(np.zeros(0), [])
