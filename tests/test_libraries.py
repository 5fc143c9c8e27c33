"""The public functions on every array library: what each gives, bit by bit, and what it cannot do."""

import array_api_compat
import ml_dtypes
import numpy as np
import pytest
from helpers import assert_same
from libraries import LIBRARIES, library_of, to_numpy

import gpuslice as gs
from gpuslice import library_rows
from gpuslice.versions import newest

X = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
DTYPES = (
    *(
        "bool",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
    ),
    *("complex64", "complex128", "bfloat16"),
)
LOW = -(2**63)
SLICES = {
    "forward": ([1, 0], [9, 9], [1, 2], [1, 2]),
    "backward": ([-1, -1], [-9, -9], [1, 2], [-1, -2]),
    "backward, nothing": ([0], [2], [0], [-1]),
    "everything": ([0], [9]),
}
INDEX = {
    "forward": np.s_[:, 1:, ::2],
    "backward": np.s_[:, ::-1, ::-2],
    "backward, nothing": np.s_[:0],
    "everything": np.s_[:],
}


def ints(xp, values):
    """Return int32 values in an array of a library, or in NumPy's if the library's cannot be read."""
    array = np.array(values, np.int32)
    return array if library_of(xp).lazy else xp.asarray(array)


# What is called with an array and its library, and what the same does to a NumPy array: one result or several.
CALLS = {
    **{
        f"slice, {name}": (lambda x, xp, name=name: gs.slice(x, *SLICES[name]), lambda x, name=name: x[INDEX[name]])
        for name in SLICES
    },
    "slice, a view": (lambda x, xp: gs.slice(x, *SLICES["backward"], copy=None), lambda x: x[INDEX["backward"]]),
    "slice, one item": (lambda x, xp: gs.slice(x, [1], [2], [0], [-(2**63)]), lambda x: x[:0]),
    "slice, no axes": (lambda x, xp: gs.slice(xp.reshape(x[:1, :1, :1], ()), [], []), lambda x: x[0, 0, 0]),
    "slice, bounds in arrays": (
        lambda x, xp: gs.slice(x, ints(xp, [-1]), np.array([LOW]), steps=ints(xp, [-1])),
        lambda x: x[::-1],
    ),
    "dynamic_slice": (lambda x, xp: gs.dynamic_slice(x, [1, -2], [2, 9], [0, 1]), lambda x: x[1:, -2:]),
    "split, sizes": (lambda x, xp: gs.split(x, [1, 0, 2], axis=1), lambda x: np.split(x, [1, 1], axis=1)),
    "split, sizes in an array": (
        lambda x, xp: gs.split(x, ints(xp, [1, 2]), axis=1),
        lambda x: np.split(x, [1], axis=1),
    ),
    "split, equal parts": (lambda x, xp: gs.split(x, num_outputs=2, axis=-1), lambda x: np.split(x, 2, axis=2)),
    "split, one part": (lambda x, xp: gs.split(x, num_outputs=1), lambda x: [x]),
    "split, views": (lambda x, xp: gs.split(x, num_outputs=3, axis=1, copy=None), lambda x: np.split(x, 3, axis=1)),
    "split, one block": (lambda x, xp: gs.split(x, [1, 2], axis=1, one_block=True), lambda x: np.split(x, [1], axis=1)),
    "split, many parts": (lambda x, xp: gs.split(xp.reshape(x, (24,)), num_outputs=24), lambda x: np.split(x.reshape(24), 24)),
    "contiguous": (lambda x, xp: gs.contiguous(xp.permute_dims(x, (2, 0, 1))), lambda x: x.transpose(2, 0, 1)),
    "contiguous, several": (lambda x, xp: gs.contiguous([x, x[:, ::2, :]]), lambda x: [x, x[:, ::2]]),
    "split_to_sequence": (lambda x, xp: gs.split_to_sequence(x, axis=2), lambda x: np.split(x, 4, axis=2)),
    "split_to_sequence, no axis": (lambda x, xp: gs.split_to_sequence(x, axis=1, keepdims=0), lambda x: list(x.swapaxes(0, 1))),
    "split_to_sequence, many": (
        lambda x, xp: gs.split_to_sequence(xp.reshape(x, (24,)), keepdims=0),
        lambda x: list(x.reshape(24)),
    ),
    "split_to_sequence, a size": (lambda x, xp: gs.split_to_sequence(x, 2, axis=1), lambda x: np.split(x, [2], axis=1)),
    "split_to_sequence, a size in an array": (
        lambda x, xp: gs.split_to_sequence(x, ints(xp, 2), axis=1),
        lambda x: np.split(x, [2], axis=1),
    ),
    "split_to_sequence, sizes": (lambda x, xp: gs.split_to_sequence(x, [0, 3], axis=1), lambda x: np.split(x, [0], axis=1)),
    "sequence_at": (lambda x, xp: gs.sequence_at([x, x[:1, ...]], -1), lambda x: x[:1]),
    "sequence_at, the same": (lambda x, xp: gs.sequence_at([x], ints(xp, 0)), lambda x: x),
    "sequence_at, a view": (lambda x, xp: gs.sequence_at([x], 0, copy=None), lambda x: x),
    "sequence_construct": (lambda x, xp: gs.sequence_construct(x, x[:1, ...]), lambda x: [x, x[:1]]),
    "sequence_insert": (lambda x, xp: gs.sequence_insert([x], x[:1, ...], 0), lambda x: [x[:1], x]),
    "sequence_insert, into nothing": (
        lambda x, xp: gs.sequence_insert(gs.sequence_empty(x.dtype), x),
        lambda x: [x],
    ),
    "sequence_erase": (lambda x, xp: gs.sequence_erase([x, x[:1, ...]], 0), lambda x: [x[:1]]),
    "concat_from_sequence": (lambda x, xp: gs.concat_from_sequence([x, x[:, :, :1]], axis=2), lambda x: np.concatenate([x, x[:, :, :1]], 2)),
    "concat_from_sequence, one": (lambda x, xp: gs.concat_from_sequence([x], axis=0), lambda x: x),
    "concat_from_sequence, a new axis": (
        lambda x, xp: gs.concat_from_sequence([x, x], axis=-1, new_axis=1),
        lambda x: np.stack([x, x], -1),
    ),
    "concat_from_sequence, one on a new axis": (lambda x, xp: gs.concat_from_sequence([x], axis=0, new_axis=1), lambda x: x[None]),
    "concat_from_sequence of a split": (
        lambda x, xp: gs.concat_from_sequence(gs.split(x, num_outputs=4, axis=2), axis=0),
        lambda x: np.concatenate(np.split(x, 4, 2)),
    ),
}  # fmt: skip
# The calls whose results may be the caller's own arrays.
REFERENCES = (
    "slice, a view",
    "split, views",
    "sequence_at, a view",
    "sequence_construct",
    "sequence_insert",
    "sequence_erase",
)

each_library = pytest.mark.parametrize("library", [library.param for library in LIBRARIES])


def assert_results(results, expected, xp):
    """Compare one array, or each of several, with NumPy's."""
    if not isinstance(expected, list):
        results, expected = [results], [expected]
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        wanted = np.array(wanted, order="C")
        assert_same(result, wanted, like=xp.asarray(wanted))


def test_the_tables_name_the_same_libraries():
    assert set(library_rows.ROWS) <= {library.name for library in LIBRARIES}


@each_library
@pytest.mark.parametrize("name", CALLS)
def test_calls(library, name):
    xp = library.xp
    call, expected = CALLS[name]
    x = xp.asarray(X)
    with gs.trace() as t:
        results = call(x, array_api_compat.array_namespace(x))
        assert_results(results, expected(X), xp)
    assert {launch.executor for launch in t.launches} <= library.executors
    assert_same(x, X, like=xp.asarray(X))
    if not name.startswith(REFERENCES):
        assert all(result is not x for result in (results if isinstance(results, (tuple, gs.Sequence)) else [results]))


@each_library
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_forward_and_backward(library, name):
    xp = library.xp
    if name in library.lacks:
        pytest.skip(f"{library.name} has no {name}")
    bits = np.random.default_rng(0).integers(0, 2 if name == "bool" else 256, 24 * 16, np.uint8)
    array = bits.view(getattr(ml_dtypes, name, name))[:24].reshape(4, 6)
    for index, arguments in ((np.s_[::-1, ::-2], ([-1] * 2, [LOW] * 2, None, [-1, -2])), (np.s_[1:], ([1], [9]))):
        assert_results(gs.slice(xp.asarray(array), *arguments), array[index], xp)


@each_library
def test_other_devices(library):
    """Results are where their inputs are; inputs on several devices make no joined result."""
    xp = library.xp
    for device in library.devices(xp):
        x = xp.asarray(X, device=device)
        for result in (
            gs.slice(x, *SLICES["backward"]),
            *gs.split(x, num_outputs=2),
            gs.concat_from_sequence([x, x], axis=0),
        ):
            assert result.device == device
        assert gs.sequence_length([x]).device == device
        assert to_numpy(gs.slice(x, *SLICES["backward"])).tolist() == X[INDEX["backward"]].tolist()
        out = xp.zeros((2, 3, 2), dtype=xp.int32, device=device)
        assert gs.slice(x, *SLICES["backward"], out=out) is out
        with pytest.raises(ValueError, match="out must be on device"):
            gs.slice(x, *SLICES["backward"], out=xp.zeros((2, 3, 2), dtype=xp.int32))
        with pytest.raises(ValueError, match="must hold arrays of one device"):
            gs.concat_from_sequence([x, xp.asarray(X)], axis=0)
        # Bounds may be anywhere.
        assert_results(gs.slice(xp.asarray(X), xp.asarray([1], device=device), [9]), X[1:], xp)


@each_library
def test_sequence_length(library):
    """A library without int64, such as JAX by default, counts in the largest integers that it has."""
    length = gs.sequence_length([library.xp.asarray(X)] * 3)
    assert (length.shape, int(length)) == ((), 3)
    assert to_numpy(length).dtype == (np.int32 if "int64" in library.lacks else np.int64)


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
        assert_results(out, X[INDEX["backward"]], library.xp)
        with pytest.raises(ValueError, match=f"^{newest('Slice')}: out must not overlap an input"):
            gs.slice(x, [0], [9], out=x)
    else:
        with pytest.raises(
            TypeError, match=f"^{newest('Slice')}: out cannot be written: gpuslice makes new arrays of {library.name}"
        ):
            gs.slice(x, *SLICES["backward"], out=out)
        assert not to_numpy(out).any()


@each_library
def test_two_libraries_are_not_joined(library):
    other = np.zeros((1, 3, 4), np.int32)
    if library.name == "numpy":
        return
    with pytest.raises(TypeError, match=r"seq must hold arrays of one library; got numpy in seq\[0\] and "):
        gs.concat_from_sequence([other, library.xp.asarray(X)], axis=0)
    mixed = gs.contiguous([other, library.xp.asarray(X)])
    assert_results(mixed[0], other, np)
    assert_results(mixed[1], X, library.xp)


@each_library
def test_dtypes_that_a_library_lacks(library):
    """The library refuses them or, as JAX does, takes others in their place."""
    for name in library.lacks:
        array = np.zeros(1, object if name == "string" else getattr(ml_dtypes, name, name))
        try:
            made = library.xp.asarray(array)
        except (TypeError, ValueError, RuntimeError):  # NotImplementedError is one, too
            continue
        assert to_numpy(made).dtype != array.dtype
