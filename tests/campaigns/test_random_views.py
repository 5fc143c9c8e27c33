"""Random views by the kernels against NumPy: copied whole, apart and together, into outputs of either order."""

import math

import numpy as np
import pytest
from helpers import compiled

import gpuslice as gs

pytestmark = [compiled, pytest.mark.usefixtures("kernels_for_all")]

DTYPES = ["u1", "u2", "f4", "f8", "c16", "V3", "V6", "V12", "V24", "V32", "V48"]
MOST_BYTES = 1 << 20


def random_view(random):
    """Return a view with a long axis or two, in any order, thinned and reversed."""
    shape = [random.choice([1, 2, 3, 4, 5, 8]) for _ in range(random.randint(0, 4))]
    shape += [random.choice([16, 17, 20, 31, 33, 48, 64, 100]) for _ in range(random.randint(1, 2))]
    random.shuffle(shape)
    steps = [random.choice([1, 1, 1, 2, 3, 4, -1, -2, -3]) for _ in shape]
    dtype = np.dtype(random.choice(DTYPES))
    whole = [count * abs(step) for count, step in zip(shape, steps, strict=True)]
    while math.prod(whole) * dtype.itemsize > MOST_BYTES:
        whole[whole.index(max(whole))] = 1
    items = np.random.default_rng(random.randrange(1 << 30)).integers(0, 256, math.prod(whole) * dtype.itemsize, "u1")
    order = random.sample(range(len(shape)), len(shape))
    return items.view(dtype).reshape(whole)[tuple(slice(None, None, step) for step in steps)].transpose(order)


def is_right(results, expected):
    return all(result.tobytes() == array.tobytes() for result, array in zip(results, expected, strict=True))


def test_random_views(campaign):
    random = campaign.random
    for _ in campaign.rounds(300):
        view = random_view(random)
        axis = random.randrange(view.ndim)
        parts = np.array_split(view, random.randint(1, min(5, view.shape[axis])), axis)
        outs = [np.empty(part.shape, part.dtype, random.choice("CF")) for part in parts]
        shown = view.dtype, view.shape, view.strides, axis, len(parts)
        with gs.trace() as t:
            assert is_right([gs.contiguous(view)], [view]), shown
            gs.split(view, [part.shape[axis] for part in parts], axis=axis, out=outs)
            assert is_right(outs, parts), shown
            assert is_right([gs.concat_from_sequence(parts, axis=axis)], [view]), shown
            stacked = gs.concat_from_sequence([view] * len(parts), axis=axis, new_axis=1)
            assert is_right([stacked], [np.stack([view] * len(parts), axis)]), shown
        campaign.counts.update(launch.kernel.partition("<")[0] for launch in t.launches)
    assert {"rows", "pixel_rows", "tiles", "pixel_tiles"} <= set(campaign.counts)
