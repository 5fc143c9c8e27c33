"""Each array library in short: what its row in libraries.py says of it, against what it does."""

from contextlib import nullcontext

import array_api_compat
import ml_dtypes
import numpy as np
import pytest
from libraries import LIBRARIES, to_numpy

import gpuslice as gs
from gpuslice import libraries
from gpuslice.versions import newest

X = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
SLICES = {
    "forward": ([1, 0], [9, 9], [1, 2], [1, 2]),
    "backward": ([-1, -1], [-9, -9], [1, 2], [-1, -2]),
    "backward, nothing": ([0], [2], [0], [-1]),
}
INDEX = {
    "forward": np.s_[:, 1:, ::2],
    "backward": np.s_[:, ::-1, ::-2],
    "backward, nothing": np.s_[:0],
}

each_library = pytest.mark.parametrize("library", [library.param for library in LIBRARIES])


def assert_items(actual, expected, library):
    """Compare library, dtype, shape and items with a NumPy array."""
    assert array_api_compat.array_namespace(actual) is array_api_compat.array_namespace(library.xp.asarray(0))
    assert to_numpy(actual).dtype == expected.dtype
    assert to_numpy(actual).tolist() == expected.tolist()


def test_the_tables_name_the_same_libraries():
    assert sorted(library.name for library in LIBRARIES) == sorted(libraries._ROWS)


@each_library
@pytest.mark.parametrize("copy", [True, None])
@pytest.mark.parametrize("name", SLICES)
def test_slice(library, name, copy):
    x = library.xp.asarray(X)
    with gs.trace() as t:
        assert_items(gs.slice(x, *SLICES[name], copy=copy), X[INDEX[name]], library)
    assert {launch.executor for launch in t.launches} <= library.executors


@each_library
def test_split_and_concat(library):
    x = library.xp.asarray(X)
    for part, expected in zip(gs.split(x, [1, 0, 2], axis=1), np.split(X, [1, 1], axis=1), strict=True):
        assert_items(part, expected, library)
    for one_block in (False, True):
        parts = gs.split(x, num_outputs=2, axis=2, one_block=one_block)
        assert_items(gs.concat_from_sequence(parts, axis=0), np.concatenate(np.split(X, 2, axis=2)), library)
    rows = gs.split_to_sequence(x, axis=1, keepdims=0)
    assert rows.dtype == "int32"
    assert_items(gs.sequence_at(rows, -1), X[:, -1], library)
    assert_items(gs.concat_from_sequence(rows, axis=-1, new_axis=1), X.transpose(0, 2, 1), library)


@each_library
def test_sequence_length(library):
    """A library without int64, such as JAX by default, counts in the integers that it has, and warns."""
    warns = pytest.warns(UserWarning, match="int64") if "int64" in library.lacks else nullcontext()
    sequence = [library.xp.asarray(X)] * 3
    with warns:
        length = gs.sequence_length(sequence)
    assert (length.shape, int(length)) == ((), 3)
    assert (to_numpy(length).dtype == np.int64) == ("int64" not in library.lacks)


@each_library
@pytest.mark.parametrize(("name", "row"), [("forward", "views"), ("backward", "backward_views")])
def test_views(library, name, row):
    x = library.xp.asarray(X.copy())
    if not getattr(library, row):
        with pytest.raises(
            ValueError, match=f"^{newest('Slice')}: copy=False is not possible: {library.name}.* cannot return"
        ):
            gs.slice(x, *SLICES[name], copy=False)
        return
    view = gs.slice(x, *SLICES[name], copy=False)
    view[...] = library.xp.zeros_like(view)
    assert not to_numpy(x)[INDEX[name]].any()


@each_library
def test_out(library):
    x, out = library.xp.asarray(X), library.xp.zeros((2, 3, 2), dtype=library.xp.int32)
    if library.mutable:
        assert gs.slice(x, *SLICES["backward"], out=out) is out
        assert_items(out, X[INDEX["backward"]], library)
        with pytest.raises(ValueError, match=f"^{newest('Slice')}: out must not overlap an input"):
            gs.slice(x, [0], [9], out=x)
    else:
        with pytest.raises(
            TypeError, match=f"^{newest('Slice')}: out cannot be written: arrays of {library.name}.* are immutable"
        ):
            gs.slice(x, *SLICES["backward"], out=out)
        assert not to_numpy(out).any()


@each_library
def test_dtypes_that_a_library_lacks(library):
    """The library refuses them or, as JAX does, takes others in their place."""
    for name in library.lacks:
        array = np.zeros(1, object if name == "string" else getattr(ml_dtypes, name, name))
        try:
            made = library.xp.asarray(array)
        except (TypeError, ValueError):
            continue
        assert to_numpy(made).dtype != array.dtype
