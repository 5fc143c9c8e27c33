"""Slices and splits of a concatenation, which read its parts without a copy of the whole."""

import numpy as np
import pytest
from helpers import assert_same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from libraries import make, to_numpy

from gpuslice.dtypes import dtype_name
from gpuslice.engine import Joined, View, copying, dense
from gpuslice.lazy.sequences import concat_from_sequence, split_to_sequence
from gpuslice.lazy.slicing import slice_10, split_13
from gpuslice.sequence import Sequence

PROPERTY = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def concatenated(tensors, axis, stack=0):
    """Return a concatenation that is not copied yet."""
    sequence = Sequence.of_items(tensors, dtype_name(tensors[0].dtype))
    return concat_from_sequence(sequence, axis=axis, new_axis=stack)[0]


@st.composite
def steps(draw):
    """Return random operations: their names and the numbers that they need."""
    kinds = st.sampled_from(["slice", "concat", "stack", "split", "rows"])
    return draw(st.lists(st.tuples(kinds, st.lists(st.integers(-7, 7), min_size=6, max_size=6)), max_size=5))


def apply(kind, numbers, lazy, array):
    """Return what an operation makes of a lazy tensor, and of an array by NumPy."""
    rank = array.ndim
    if kind in ("concat", "stack"):
        axis = numbers[0] % (rank + (kind == "stack")) if rank or kind == "stack" else None
        if axis is None:
            return lazy, array
        stack = int(kind == "stack")
        joined = concatenated([lazy, lazy, lazy][: 1 + numbers[1] % 3], axis, stack)
        return joined, (np.stack if stack else np.concatenate)([array] * (1 + numbers[1] % 3), axis=axis)
    if not rank:
        return lazy, array
    axis = numbers[0] % rank
    before = (slice(None),) * axis
    if kind == "slice":
        start, step = numbers[1] % (array.shape[axis] + 1), numbers[2] or 1
        end = numbers[3] % (array.shape[axis] + 1)
        if step < 0:
            start, end = min(start, array.shape[axis] - 1), end - 1
            taken = slice(start, None if end < 0 else end, step) if array.shape[axis] else slice(0, 0)
            end = end if end >= 0 else -(1 << 60)
        else:
            taken = slice(start, end, step)
        return slice_10(lazy, [start], [end], [axis], [step])[0], array[(*before, taken)]
    if kind == "split":
        size = numbers[1] % (array.shape[axis] + 1)
        sizes = [size, 0, array.shape[axis] - size]
        which = numbers[2] % 3
        return split_13(lazy, sizes, outputs=3, axis=axis)[which], np.split(array, np.cumsum(sizes)[:-1], axis)[which]
    if not array.shape[axis]:
        return lazy, array
    which = numbers[1] % array.shape[axis]
    return split_to_sequence(lazy, axis=axis, keepdims=0)[0][which], array[(*before, which, ...)]


@PROPERTY
@given(shape=st.lists(st.integers(0, 4), min_size=1, max_size=3), script=steps())
def test_any_chain_of_operations(shape, script, xp):
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    lazy = View.of(make(xp, array))
    for kind, numbers in script:
        lazy, array = apply(kind, numbers, lazy, array)
        assert lazy.shape == array.shape
    assert_same(
        dense([lazy])[0], np.ascontiguousarray(array).reshape(array.shape), like=make(xp, np.zeros(1, np.int32))
    )


def test_a_slice_of_a_concatenation_copies_its_own_items_only(monkeypatch):
    whole = concatenated([np.arange(100), np.arange(50), np.arange(70)], 0)
    monkeypatch.setattr(copying, "dense", None)  # nothing may be copied on the way
    for start in range(0, 220, 20):
        part = slice_10(whole, [start], [start + 30])[0]
        pieces = [part] if isinstance(part, View) else part.parts
        assert sum(piece.shape[0] for piece in pieces) == part.shape[0] == min(30, 220 - start)


def test_a_value_of_many_parts_that_many_read_is_copied_once():
    parts = [np.full((1, 300), i, np.int16) for i in range(300)]
    whole = concatenated(parts, 0)
    columns = split_13(whole, None, outputs=300, axis=1)
    assert whole.is_cut_up
    assert len({id(column.array) for column in columns if isinstance(column, View)}) == 1
    for column, expected in zip(dense(columns), np.split(np.concatenate(parts), 300, axis=1), strict=True):
        assert_same(column, expected.copy())


@pytest.mark.parametrize("dtypes", [("<i4", ">i4"), ("U1", "U3"), ("U2", "O")])
def test_pieces_have_the_dtype_of_the_whole(dtypes):
    arrays = [np.array([1, 2]).astype(dtype) for dtype in dtypes]
    whole = concatenated(arrays, 0)
    expected = np.concatenate([array.astype(whole.dtype) for array in arrays])
    for lazy, part in [
        (slice_10(whole, [0], [1])[0], expected[:1]),
        (slice_10(whole, [3], [0], None, [-1])[0], expected[3:0:-1]),
        (split_to_sequence(whole, axis=0, keepdims=0)[0][3], expected[3, ...]),
        (slice_10(whole, [4], [9])[0], expected[:0]),
    ]:
        assert lazy.dtype == whole.dtype
        assert_same(dense([lazy])[0], part.copy())


def test_views_of_numpy_arrays_are_made_if_they_are_wanted():
    joined = Joined.of_numpy([np.zeros((2, 3)), np.ones((1, 3))], 0)
    assert (joined.shape, joined.count, joined.device) == ((3, 3), 2, "cpu")
    assert [part.shape for part in joined.parts] == [(2, 3), (1, 3)]
    assert to_numpy(joined.array).shape == (2, 3)


@pytest.mark.parametrize("step", ["append", "append and reverse", "double"])
def test_a_value_that_grows_in_many_steps(step):
    """As in an unrolled loop: neither recursion nor the number of pieces grows with the steps."""
    lazy, array = View.of(np.arange(4)), np.arange(4)
    for i in range(15 if step == "double" else 1500):
        more = (lazy, array) if step == "double" else (View.of(np.array([i])), np.array([i]))
        lazy, array = concatenated([lazy, more[0]], 0), np.concatenate([array, more[1]])
        if step == "append and reverse":
            lazy, array = slice_10(lazy, [-1], [-(1 << 60)], None, [-1])[0], array[::-1]
        assert isinstance(lazy, View) or (lazy.depth <= 9 and lazy.views <= 2048)
    assert_same(dense([lazy])[0], np.ascontiguousarray(array))
