"""Random slices and splits of random arrays against an oracle in plain Python, element by element."""

import numpy as np
import pytest
from helpers import LAYOUTS, assert_same, pick
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from libraries import make

import gpuslice as gs

pytestmark = pytest.mark.usefixtures("kernels_for_all")

PROPERTY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
DTYPES = ["bool", "int8", "int16", "float32", "float64", "complex64", "complex128"]


def numbers(shape, dtype):
    """Return an array whose items differ as far as the dtype allows."""
    items = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
    if dtype.startswith("complex"):
        items = items * (1 + 2j)
    return np.asarray(items % 2 if dtype == "bool" else items).astype(dtype)


def bounds():
    return st.integers(-9, 9) | st.sampled_from([-(2**63), -(2**31), 2**31 - 1, 2**63 - 1])


@st.composite
def slices(draw):
    """Return a random shape and the arguments of a valid slice of it."""
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    axes = draw(st.lists(st.sampled_from(range(len(shape))), unique=True)) if shape else []
    each = {"min_size": len(axes), "max_size": len(axes)}
    starts, ends = draw(st.lists(bounds(), **each)), draw(st.lists(bounds(), **each))
    steps = draw(st.lists(bounds().filter(bool), **each))
    return tuple(shape), starts, ends, [axis - draw(st.sampled_from([0, len(shape)])) for axis in axes], steps


def walk(dim, start, end, step):
    """Return the positions that a slice of an axis takes, by the text of Slice-13."""
    start, end = start + dim * (start < 0), end + dim * (end < 0)
    low, high = (0, dim) if step > 0 else (0, dim - 1)
    start = min(max(start, low), high)
    end = min(max(end, 0 if step > 0 else -1), high)
    taken = []
    while dim and (start < end if step > 0 else start > end):
        taken.append(start)
        start += step
    return taken


@PROPERTY
@given(case=slices(), dtype=st.sampled_from(DTYPES), layout=st.sampled_from(sorted(LAYOUTS)))
def test_slice(case, dtype, layout, xp):
    shape, starts, ends, axes, steps = case
    array = LAYOUTS[layout](numbers(shape, dtype))
    taken = [list(range(dim)) for dim in shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        taken[axis] = walk(shape[axis], start, end, step)
    data = make(xp, array)
    assert_same(gs.slice(data, starts, ends, axes, steps), pick(array, taken), like=data)
    assert_same(gs.slice(data, starts, ends, axes, steps, copy=None), pick(array, taken), like=data)


@PROPERTY
@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=6),
    others=st.lists(st.integers(0, 3), max_size=3),
    data=st.data(),
)
def test_split(sizes, others, data, xp):
    axis = data.draw(st.integers(0, len(others)))
    shape = (*others[:axis], sum(sizes), *others[axis:])
    array = numbers(shape, "int16")
    given_array = make(xp, array)
    one_block = data.draw(st.booleans())
    parts = gs.split(given_array, sizes, axis=axis - data.draw(st.sampled_from([0, len(shape)])), one_block=one_block)
    start = 0
    for part, size in zip(parts, sizes, strict=True):
        taken = [range(dim) for dim in shape]
        taken[axis] = range(start, start + size)
        assert_same(part, pick(array, taken), like=given_array)
        start += size


@PROPERTY
@given(sizes=st.lists(st.integers(0, 3), min_size=1, max_size=5), rank=st.integers(1, 3), data=st.data())
def test_concat_undoes_split_to_sequence(sizes, rank, data, xp):
    axis = data.draw(st.integers(0, rank - 1))
    shape = [2] * rank
    shape[axis] = sum(sizes)
    array = numbers(shape, "float32")
    given_array = make(xp, array)
    assert_same(
        gs.concat_from_sequence(gs.split_to_sequence(given_array, sizes, axis=axis), axis=axis), array, given_array
    )
    if shape[axis]:
        items = gs.split_to_sequence(given_array, axis=axis, keepdims=0)
        assert_same(gs.concat_from_sequence(items, axis=axis - rank, new_axis=1), array, like=given_array)


# Whole vectors too, alone and as several items.
SIZES = ["u1", "u2", "f4", "f8", "c16", "V3", "V6", "V32"]


@st.composite
def views(draw):
    """Return a view of an array of up to 10 axes, two of which may be long: in any order, thinned and reversed."""
    shape = draw(st.lists(st.integers(1, 3), max_size=8)) + draw(st.lists(st.integers(1, 40), max_size=2))
    steps = [draw(st.sampled_from([1, 1, 2, 3, 4, -1, -2, -3])) for _ in shape]
    dtype = np.dtype(draw(st.sampled_from(SIZES)))
    whole = [count * abs(step) for count, step in zip(shape, steps, strict=True)]
    while np.prod(whole) * dtype.itemsize > 1 << 18:
        whole[int(np.argmax(whole))] = 1
    order = draw(st.permutations(range(len(shape))))
    array = np.resize(np.arange(65_521, dtype=np.uint16), int(np.prod(whole)) * dtype.itemsize // 2 + 1).view(np.uint8)
    array = array[: int(np.prod(whole)) * dtype.itemsize].view(dtype).reshape(whole)
    return array[tuple(slice(None, None, step) for step in steps)].transpose(order)


@settings(PROPERTY, max_examples=300)
@given(view=views(), data=st.data())
def test_any_view_and_its_parts(view, data):
    for _ in range(2):
        assert_same(gs.contiguous(view), np.ascontiguousarray(view).reshape(view.shape))
    if view.ndim:
        axis, count = data.draw(st.integers(0, view.ndim - 1)), data.draw(st.integers(1, 4))
        count = min(count, view.shape[axis])
        expected = np.array_split(view, count, axis)
        order = data.draw(st.sampled_from("CF"))
        outs = [np.empty(part.shape, part.dtype, order) for part in expected]
        parts = gs.split(view, [part.shape[axis] for part in expected], axis=axis, out=outs)
        for part, right in zip(parts, expected, strict=True):
            assert part.tobytes() == right.tobytes()
        assert_same(gs.concat_from_sequence(expected, axis=axis), np.ascontiguousarray(view))
