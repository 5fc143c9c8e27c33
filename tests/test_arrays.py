"""Which arrays are accepted: every kind of NumPy array, and nothing that is not an array."""

import numpy as np
import pytest
from helpers import assert_same

import gpuslice as gs
from gpuslice.versions import newest

X = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
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
def test_what_is_not_an_array_is_refused(data):
    with pytest.raises(TypeError, match=rf"^{newest('Slice')}: data must (be an array|not be a masked array)"):
        gs.slice(data, [0], [1])
