"""Who copies NumPy arrays: NumPy or the kernels, where one of them would be much slower."""

import numpy as np
import pytest
from helpers import assert_same, compiled, items

import gpuslice as gs
from gpuslice.engine.host import HOST_EXECUTOR


def image(channels):
    """Make an image whose rows do not fit into the first-level cache, if one item of each is read."""
    return items(300, 320, channels)


SCATTERED = {
    "planes of a transposed image": lambda: image(3).transpose(2, 1, 0),
    "planes of a turned image": lambda: np.moveaxis(np.rot90(image(4)), 2, 0),
}
# The item size and the number of arrays that become the channels of one, and who joins them.
JOINS = [(1, 3, 8, "numpy"), (1, 3, 300, "host"), (4, 2, 16, "numpy"), (4, 4, 300, "host")]


@compiled
@pytest.mark.parametrize("make", SCATTERED.values(), ids=SCATTERED)
def test_numpy_copies_what_is_scattered(make):
    view = make()
    out = np.empty(view.shape, view.dtype)
    for result in (gs.contiguous(view), gs.contiguous(view, out=out)):
        assert_same(result, np.ascontiguousarray(view))
    for given in (None, out):
        with gs.trace() as t:
            gs.contiguous(view, out=given)
        assert [launch.executor for launch in t.launches] == ["numpy"]


@compiled
def test_kernels_copy_tiles():
    with gs.trace() as t:
        gs.contiguous(items(600, 640).T)
    assert [launch.kernel for launch in t.launches] == ["tiles<1, 0>"]


@compiled
@pytest.mark.parametrize(("width", "count", "side", "executor"), JOINS)
def test_numpy_joins_small_planes(width, count, side, executor):
    planes = [items(side, side, dtype=f"u{width}") for _ in range(count)]
    with gs.trace() as t:
        joined = gs.concat_from_sequence(planes, axis=2, new_axis=1)
    assert_same(joined, np.stack(planes, axis=2))
    assert [launch.executor for launch in t.launches] == [executor]


@compiled
@pytest.mark.parametrize(("side", "plans"), [(120, [0, 1, 1]), (1000, [1, 1, 1])])
@pytest.mark.parametrize("given", [False, True])
def test_numpy_makes_the_first_copy_of_a_small_kind(side, plans, given, monkeypatch):
    """A call is often the only one of its kind, and a plan would take longer than the kernels save."""
    counted, plan = [], HOST_EXECUTOR.new_plan
    monkeypatch.setattr(HOST_EXECUTOR, "new_plan", lambda *arguments: counted.append(1) or plan(*arguments))
    gs.clear_caches()
    x = items(side, side, 3)
    for count in plans:
        outs = [np.empty((side, side, 1), x.dtype) for _ in range(3)] if given else None
        parts = gs.split(x[:, ::-1], num_outputs=3, axis=2, out=outs)
        for i, part in enumerate(parts):
            assert_same(part, np.ascontiguousarray(x[:, ::-1, i : i + 1]))
        assert len(counted) == count
