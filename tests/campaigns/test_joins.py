"""concat_from_sequence and split_to_sequence against NumPy, called again and again for arrays at other addresses."""

import numpy as np
import pytest
from helpers import assert_same

import gpuslice as gs

DTYPES = ["u1", "u2", "f4", "c8", "c16", "V3", "U2"]
GAPS = np.dtype({"names": ["a"], "formats": ["u2"], "offsets": [1], "itemsize": 5})


def placed(random, shape, dtype, order, steps):
    """Return an array of random bits that begins anywhere, with axes in an order and steps, between bits of its own."""
    dtype = np.dtype(dtype)
    long = [shape[axis] * abs(steps[axis]) for axis in order]
    size = int(np.prod(long)) * dtype.itemsize
    lead = random.randrange(64)
    memory = np.frombuffer(bytearray(random.randbytes(size + 128)), np.uint8)
    if dtype.kind == "U":
        memory &= np.frombuffer(b"\x7f\0\0\0" * (size // 4 + 32), np.uint8)
        lead -= lead % 4
    array = memory[lead : lead + size].view(dtype).reshape(long).transpose(np.argsort(order))
    array = array[(*(slice(None, None, step) for step in steps), ...)]
    return array[(*(slice(0, count) for count in shape), ...)], memory


def bits(array):
    """Return shape and bits of an array; of a structured one only those of its field."""
    return array.shape, (array["a"] if array.dtype.names else array).tobytes()


def draw_layout(random, rank):
    """Return an order of the axes, and a step along each."""
    order = random.sample(range(rank), rank) if random.random() < 0.3 else list(range(rank))
    steps = [random.choice([1, 1, 1, 1, 2, -1]) if random.random() < 0.5 else 1 for _ in range(rank)]
    return order, steps


@pytest.mark.parametrize("chosen", ["as always", "kernels for all"])
def test_joins_that_are_known(campaign, chosen, request):
    if chosen == "kernels for all":
        request.getfixturevalue("kernels_for_all")
    random = campaign.random
    for _ in campaign.rounds(120):
        rank, new_axis = random.randint(1, 4), random.randint(0, 1)
        axis = random.randint(-rank - new_axis, rank + new_axis - 1)
        longest = {1: 3000, 2: 60, 3: 14, 4: 7}[rank]
        shapes = [[random.randint(0 if random.random() < 0.1 else 1, longest) for _ in range(rank)]] * random.randint(
            1, 5
        )
        if not new_axis:
            shapes = [[*shape] for shape in shapes]
            for shape in shapes:
                shape[axis] = random.choice([shape[axis], 1, 3, random.randint(0, longest)])
        dtype = random.choice([*DTYPES, GAPS])
        layouts = [draw_layout(random, rank) for _ in shapes]
        target_layout = draw_layout(random, rank + new_axis)
        for turn in range(3):
            arrays = [placed(random, shape, dtype, *layout)[0] for shape, layout in zip(shapes, layouts, strict=True)]
            expected = np.ascontiguousarray((np.stack if new_axis else np.concatenate)(arrays, axis=axis))
            seq = arrays if turn else gs.Sequence(arrays)
            fresh = gs.concat_from_sequence(seq, axis=axis, new_axis=new_axis)
            assert fresh.flags.c_contiguous
            assert fresh.dtype == np.dtype(dtype)  # which NumPy packs
            plain = [list(range(rank + new_axis)), [1] * (rank + new_axis)]
            out, memory = placed(random, expected.shape, dtype, *(target_layout if turn == 2 else plain))
            before = memory.copy()
            out[...] = expected
            wanted = memory.copy()
            memory[:] = before
            assert gs.concat_from_sequence(seq, axis=axis, new_axis=new_axis, out=out) is out
            assert_same(memory, wanted)
            assert bits(fresh) == bits(expected)
            campaign.counts["calls"] += 2


@pytest.mark.parametrize("chosen", ["as always", "kernels for all"])
def test_splits_that_are_known(campaign, chosen, request):
    if chosen == "kernels for all":
        request.getfixturevalue("kernels_for_all")
    random = campaign.random
    for _ in campaign.rounds(120):
        rank = random.randint(1, 3)
        shape = [random.randint(1, {1: 200, 2: 30, 3: 14}[rank]) for _ in range(rank)]
        axis = random.randint(-rank, rank - 1)
        keepdims = random.randint(0, 1)
        size = random.choice([None, 1, 2, random.randint(1, shape[axis]), [shape[axis]]])
        dtype, layout = random.choice([*DTYPES, GAPS]), draw_layout(random, rank)
        for turn in range(3):
            x, _ = placed(random, shape, dtype, *layout)
            step = 1 if size is None else shape[axis] if isinstance(size, list) else size
            parts = np.split(x, range(step, shape[axis], step), axis=axis)
            if size is None and not keepdims:
                parts = [part.squeeze(axis) for part in parts]
            outs = [placed(random, part.shape, dtype, range(part.ndim), [1] * part.ndim)[0] for part in parts]
            outs = outs if turn else tuple(outs)
            written = gs.split_to_sequence(x, size, axis=axis, keepdims=keepdims, out=outs)
            fresh = gs.split_to_sequence(x, size, axis=axis, keepdims=keepdims)
            assert len(written) == len(fresh) == len(parts)
            for part, out, given, new in zip(parts, outs, written, fresh, strict=True):
                assert given is out
                assert bits(out) == bits(new) == bits(part)
            campaign.counts["calls"] += 2
