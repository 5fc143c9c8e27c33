"""out= against sets of addresses: what shares a byte is refused, and what shares none is accepted."""

import itertools

import numpy as np
import pytest

import gpuslice as gs

MEMORY = 600
# Kinds of views: how many axes, how long they are, and how far apart their items may be.
KINDS = {"rows": (2, 4, 40), "deep": (4, 3, 30), "long": (1, 30, 9), "bytes": (3, 4, 8)}


def draw_view(random, memory, kind, dtype):
    """Return a random view of a part of the memory."""
    rank, longest, farthest = KINDS[kind]
    while True:
        shape = [random.randint(1, longest) for _ in range(random.randint(1, rank))]
        unit = random.choice([1, dtype.itemsize])
        strides = [unit * random.randint(-farthest, farthest) for _ in shape]
        low = sum(min(0, stride * (count - 1)) for stride, count in zip(strides, shape, strict=True))
        high = sum(max(0, stride * (count - 1)) for stride, count in zip(strides, shape, strict=True)) + dtype.itemsize
        if high - low <= len(memory):
            break
    start = random.randint(-low, len(memory) - high)
    return np.ndarray(shape, dtype, memory.data, start, strides)


def addresses(array):
    """Return the address of every byte of every item, one by one."""
    start = array.__array_interface__["data"][0]
    return [
        start + sum(i * stride for i, stride in zip(index, array.strides, strict=True)) + byte
        for index in itertools.product(*map(range, array.shape))
        for byte in range(array.dtype.itemsize)
    ]


def draw_columns(random, memory):
    """Return columns of one matrix, of random widths, some of which may begin too early."""
    width, rows = random.randint(4, 30), random.randint(1, 12)
    matrix = memory[: width * rows].reshape(rows, width)
    edges = sorted({0, width, *(random.randint(0, width) for _ in range(6))})
    columns = [matrix[:: random.choice([1, -1]), a:b] for a, b in itertools.pairwise(edges)]
    if random.random() < 0.3:
        columns[-1] = matrix[:, max(0, edges[-2] - 1) : edges[-1]]
    random.shuffle(columns)
    return columns


def test_outs_and_inputs(campaign):
    """Several outputs and an input in one memory. NumPy's max_work is enough for views as small as these."""
    random = campaign.random
    for _ in campaign.rounds(400):
        memory = np.arange(MEMORY, dtype=np.uint8)
        dtype = np.dtype(random.choice(["u1", "u2", "u4", "V3"]))
        if random.random() < 0.3:
            outs = draw_columns(random, memory)
        else:
            kind = random.choice(list(KINDS))
            outs = [draw_view(random, memory, kind, dtype) for _ in range(random.randint(1, 3))]
        inside = random.random() < 0.3
        sources = [np.ones(out.shape, np.uint8).astype(out.dtype) for out in outs]
        if inside:
            kind = random.choice(list(KINDS))
            first = draw_view(random, memory, kind, outs[0].dtype)
            sources[0], outs[0] = first, outs[0] if outs[0].shape == first.shape else np.zeros(first.shape, first.dtype)
        written = [address for out in outs for address in addresses(out)]
        # An input is the whole array that a view was made of.
        read = {address for source in sources for address in addresses(source)}
        apart = len(set(written)) == len(written) and read.isdisjoint(written)
        before, expected = memory.copy(), [source.copy() for source in sources]
        if apart:
            gs.contiguous(sources, out=outs)
            for out, source in zip(outs, expected, strict=True):
                assert out.tobytes() == source.tobytes()
        else:
            with pytest.raises(ValueError, match="overlap"):
                gs.contiguous(sources, out=outs)
            assert memory.tobytes() == before.tobytes()
        campaign.counts["apart" if apart else "overlapping"] += 1
    assert len(campaign.counts) == 2
