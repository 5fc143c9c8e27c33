"""copy=: fresh arrays, views of the input, and what may share memory with what."""

import numpy as np
import pytest
from helpers import assert_same
from libraries import backward_step, make, to_numpy

import gpuslice as gs
from gpuslice.versions import newest


def shares(xp, left, right):
    """Return whether two arrays share memory, by writing to one."""
    left[...] = xp.zeros_like(left)
    return not to_numpy(right).any()


X = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
FORWARD = ([0, 0], [9, 9], [1, 2], [1, 2])
BACKWARD = ([-1, -1], [-9, -9], [1, 2], [-1, -2])


def test_copy_true_is_fresh_and_dense(xp):
    data = make(xp, X.copy(order="F"))
    result = gs.slice(data, *BACKWARD)
    assert_same(result, np.ascontiguousarray(X[:, ::-1, ::-2]), like=data)
    assert not shares(xp, result, data)
    if xp is np:
        assert result.flags.c_contiguous
        assert result.flags.owndata
        assert result.flags.writeable


@pytest.mark.parametrize("copy", [None, False])
def test_copy_none_and_false_give_views(copy, xp):
    data, step = make(xp, X.copy()), backward_step(xp)
    result = gs.slice(data, *(BACKWARD if step < 0 else FORWARD), copy=copy)
    assert_same(result, X[:, ::step, :: 2 * step], like=data)
    assert shares(xp, result, data[:, ::step, :: 2 * step])
    data = make(xp, X.copy())
    parts = gs.split(data, [1, 2], axis=1, copy=copy)
    assert all(shares(xp, part, data[:, at, ...]) for part, at in zip(parts, (slice(0, 1), slice(1, 3)), strict=True))


def test_copy_must_be_one_of_three():
    with pytest.raises(ValueError, match=f"^{newest('Slice')}: copy must be True, False or None; got int 1"):
        gs.slice(X, [0], [1], copy=1)


def test_whole_arrays_are_copied_too(xp):
    data = make(xp, X.copy())
    for result in (gs.slice(data, [], []), gs.contiguous(data), gs.sequence_at([data], 0), gs.split(data, [2])[0]):
        assert_same(result, X, like=data)
        assert not shares(xp, result, data)


def test_one_block(xp):
    data = make(xp, X)
    with gs.trace() as t:
        parts = gs.split(data, [1, 0, 2, 1], axis=2, one_block=True)
    assert len(t.allocations) == 1
    for part, expected in zip(parts, np.split(X, [1, 1, 3], axis=2), strict=True):
        assert_same(part, np.ascontiguousarray(expected), like=data)
    parts[0][...] = xp.zeros_like(parts[0])
    assert to_numpy(parts[2]).all()
    with pytest.raises(ValueError, match="one_block must be True, False or None; got int 1"):
        gs.split(data, [2], one_block=1)
    with pytest.raises(ValueError, match="one_block needs copy=True"):
        gs.split(data, [2], one_block=True, copy=None)
    with pytest.raises(ValueError, match="one_block allocates the outputs itself"):
        gs.split(data, [2], one_block=True, out=[make(xp, X.copy())])


VECTORS = np.arange(6 * 40 * 12).astype("c16").reshape(6, 40, 12)


@pytest.mark.parametrize("step", range(1, 6))
@pytest.mark.parametrize("planes", range(2, 7))
def test_whole_vectors_of_several_planes(planes, step, kernels_for_all):
    """Those of a plane are not the channels of one pixel, though they are as far apart as there are planes."""
    x = VECTORS[:planes, :, : 2 * step].T[::step]
    for _ in range(2):
        assert_same(gs.contiguous(x), np.ascontiguousarray(x))


@pytest.mark.parametrize("shape", [(2,) * 9, (2,) * 8, (2,) * 12])
@pytest.mark.parametrize("axis", range(8))
def test_a_split_of_more_axes_than_the_kernels_have(shape, axis, kernels_for_all):
    """A kernel of many parts has an axis more, for the parts."""
    order = [4, 3, 8, 5, 2, 1, 7, 0, 6, 10, 9, 11]
    x = np.arange(np.prod(shape)).reshape(shape).transpose([place for place in order if place < len(shape)])
    for _ in range(2):
        for part, expected in zip(gs.split(x, num_outputs=2, axis=axis), np.split(x, 2, axis), strict=True):
            assert_same(part, np.ascontiguousarray(expected))
