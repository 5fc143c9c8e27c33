"""dynamic_slice and contiguous, and what a trace counts. Each other function has tests in a module of its subject."""

import numpy as np
import pytest
from helpers import assert_same
from libraries import backward_step, library_of, make

import gpuslice as gs
from gpuslice.versions import newest

X = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
BACKWARD = ([-1, -1], [-9, -9], [1, 2], [-1, -2])


def test_dynamic_slice(xp):
    data = make(xp, X)
    assert_same(gs.dynamic_slice(data, [1, 0], [9, -1]), X[1:, :-1].copy(), like=data)
    with pytest.raises(ValueError, match=f"^{newest('DynamicSlice')}: axes must"):
        gs.dynamic_slice(data, [0], [1], [3])


def test_contiguous(xp):
    data, other = make(xp, X), make(xp, np.arange(6.0).reshape(2, 3))
    step = backward_step(xp)
    backward, transposed = gs.contiguous([data[::step, ...], other.T])
    assert_same(backward, np.ascontiguousarray(X[::step]), like=data)
    assert_same(transposed, np.arange(6.0).reshape(2, 3).T.copy(), like=other)
    assert gs.contiguous(()) == ()
    out = make(xp, np.zeros_like(X))
    assert gs.contiguous(data[::step, ...], out=out) is out
    with pytest.raises(TypeError, match=r"^contiguous: views\[1\] must be an array; got int"):
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
    assert {launch.executor for launch in inner.launches} <= library_of(xp).executors
