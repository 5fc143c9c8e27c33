"""Which arrays are accepted: every kind of NumPy array, and nothing that is not an array."""

import re
import types

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


class Liar(np.ndarray):
    """A subclass of which nothing may be asked: it says wrong things, or fails."""

    def __getattribute__(self, name):
        if name == "__class__":  # isinstance asks for it
            return Liar
        raise AssertionError(f"{name} was asked for")

    def __array__(self, *args, **kwargs):
        raise AssertionError("__array__ was called")

    def __getitem__(self, index):
        raise AssertionError("an item was asked for")


def _memory_map(array, folder):
    np.save(folder / "x.npy", array)
    return np.load(folder / "x.npy", mmap_mode="r")


SUBCLASSES = {
    "matrix": lambda array, folder: np.matrix(array),
    "memory map": _memory_map,
    "record array": lambda array, folder: array.view(np.recarray),
    "liar": lambda array, folder: array.view(Liar),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("kind", SUBCLASSES)
@pytest.mark.parametrize("rows", [3, 300])
def test_subclasses_give_plain_arrays_of_the_same_rank(kind, rows, tmp_path):
    array = np.arange(rows * 400).reshape(rows, 400)
    given = SUBCLASSES[kind](array, tmp_path)
    backward = np.ascontiguousarray(array[::-1])
    assert_same(gs.slice(given, [-1], [-(rows + 1)], steps=[-1]), backward)
    view = gs.slice(given, [-1], [-(rows + 1)], steps=[-1], copy=None)
    assert type(view) is np.ndarray
    assert (view == backward).all()
    assert_same(gs.slice(given, [-1], [-(rows + 1)], steps=[-1], out=np.empty_like(array)), backward)
    assert_same(gs.dynamic_slice(given, [1], [2]), array[1:2].copy())
    assert_same(gs.contiguous(given), array)
    assert_same(gs.contiguous([given])[0], array)
    assert_same(gs.split(given, num_outputs=1)[0], array)
    assert_same(gs.split_to_sequence(given, axis=1, keepdims=0)[7], array[:, 7].copy())
    assert_same(gs.sequence_at([given], 0), array)
    assert_same(gs.sequence_insert([], given)[0], array)
    assert_same(gs.concat_from_sequence(gs.sequence_construct(given, given), axis=0), np.concatenate([array] * 2))
    assert_same(gs.concat_from_sequence([given], axis=0, new_axis=1), array[None])


def test_numpy_scalars_are_0_d_arrays():
    class Liar(np.float32):
        def __array__(self, *args, **kwargs):
            raise AssertionError("__array__ was called")

    for scalar in (np.float32(3), Liar(3)):
        assert_same(gs.slice(scalar, [], []), np.array(3, np.float32))


class Wordy:
    """An object that has every attribute it is asked for."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return self


class Foreign:
    """An array that names a namespace, and has a shape and a dtype."""

    shape, dtype = (3,), np.dtype(np.int64)

    def __init__(self, namespace):
        self.namespace = namespace

    def __array_namespace__(self, api_version=None):
        return self.namespace


class Convertible:
    """What NumPy makes an array of, such as a file of zarr or h5py, or a column of pandas."""

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("it was read")


BAD_DATA = {
    "list": ([1, 2], "data must be an array; got list"),
    "float": (3.5, "data must be an array; got float 3.5"),
    "None": (None, "data must be an array; got NoneType None"),
    "text": ("text", "data must be an array; got str 'text'"),
    "long text": ("text" * 99, "data must be an array; got str"),
    "class": (np.float32, "data must be an array; got the class float32"),
    "class of arrays": (np.ndarray, "data must be an array; got the class ndarray"),
    "long name": (type("A" * 999, (), {})(), f"data must be an array; got test_arrays.{'A' * 57}..."),
    "module": (np, "data must be an array; got module"),
    "every attribute": (Wordy(), "data must be an array; got test_arrays.Wordy"),
    "convertible": (Convertible(), "data must be an array; got test_arrays.Convertible; np.asarray(...) gives an array"),
    "no namespace": (Foreign(3), "data must be an array; got Foreign, which has no namespace"),
    "NumPy's namespace": (Foreign(np), "data must be an array; got Foreign, which only says that it is numpy's"),
    "masked": (np.ma.masked_array([1, 2], [True, False]), "data must not be a masked array, since its mask would be lost; got MaskedArray"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_DATA)
def test_what_is_not_an_array_is_refused(kind):
    data, message = BAD_DATA[kind]
    with pytest.raises(TypeError, match=f"^{newest('Slice')}: {re.escape(message)}$"):
        gs.slice(data, [0], [1])


def test_the_package_of_what_is_no_array_is_named():
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    with pytest.raises(
        TypeError, match=r"data must be an array; got zarr\.Array; np\.asarray\(\.\.\.\) gives an array$"
    ):
        gs.slice(zarr.array(np.arange(3)), [0], [1])


class Functional:
    """An array of a library that has no assignment and no devices, and only what the standard has otherwise."""

    def __init__(self, array):
        self._array = array
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __array_namespace__(self, api_version=None):
        return FUNCTIONAL

    def __getitem__(self, index):
        return Functional(self._array[index])


FUNCTIONAL = types.ModuleType("functional")
FUNCTIONAL.empty = lambda shape, *, dtype=None: Functional(np.empty(shape, dtype))
FUNCTIONAL.asarray = lambda value, *, dtype=None, copy=None: Functional(
    np.array(value._array if isinstance(value, Functional) else value, dtype, copy=copy)
)
FUNCTIONAL.concat = lambda arrays, *, axis: Functional(np.concatenate([array._array for array in arrays], axis))
FUNCTIONAL.expand_dims = lambda array, *, axis: Functional(np.expand_dims(array._array, axis))
FUNCTIONAL.int32, FUNCTIONAL.int64 = np.int32, np.int64


def test_a_library_without_assignment_and_devices():
    x = Functional(X)
    for result, expected in (
        (gs.slice(x, [-1], [-99], [1], [-2]), X[:, ::-2]),
        (gs.split(x, [1, 2], axis=1)[1], X[:, 1:]),
        (gs.split(x, num_outputs=3, axis=1, one_block=True)[0], X[:, :1]),
        (gs.contiguous([x])[0], X),
        (gs.split_to_sequence(x, axis=2, keepdims=0)[3], X[..., 3]),
        (gs.concat_from_sequence([x, x], axis=-1, new_axis=1), np.stack([X, X], -1)),
        (gs.sequence_length([x] * 3), np.asarray(3)),
    ):
        assert type(result) is Functional
        assert not np.shares_memory(result._array, X)
        assert_same(np.ascontiguousarray(result._array).reshape(expected.shape), np.array(expected, order="C"))
    with pytest.raises(TypeError, match="out cannot be written: gpuslice makes new arrays of functional"):
        gs.slice(x, [0], [9], out=x)


def test_a_length_that_is_not_known_is_refused():
    x = Functional(X)
    x.shape = (2, None, 4)
    message = r"data must have a known length along axis 1; got shape \(2, None, 4\): give it a known shape$"
    with pytest.raises(ValueError, match=message):
        gs.slice(x, [0], [1])
    with pytest.raises(ValueError, match="input must have a known length along axis 1"):
        gs.split(x, num_outputs=2)
