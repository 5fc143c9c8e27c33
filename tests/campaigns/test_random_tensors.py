"""Random tensors of PyTorch, in every dtype and layout, against NumPy's indexing of their bits."""

import math

import numpy as np
import pytest

import gpuslice as gs
from gpuslice.engine import choice

torch = pytest.importorskip("torch", reason="torch is not installed")

DTYPES = [torch.uint8, torch.bool, torch.float8_e5m2, torch.bfloat16, torch.uint16, torch.float32, torch.uint32, torch.int64, torch.uint64, torch.complex64]  # fmt: skip
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def random_tensor(random, most):
    """Return a tensor in a random layout, and its bits in NumPy."""
    dtype = random.choice(DTYPES)
    shape = [random.randint(0, most) for _ in range(random.randint(1, 3))]
    numbers = np.random.default_rng(random.randrange(1 << 30)).integers(0, 2 if dtype is torch.bool else 251, shape)
    made = torch.from_numpy(numbers).to(BITS[dtype.itemsize])
    steps = tuple(slice(None, None, random.choice([1, 1, 2])) for _ in shape)
    bits = made.permute(random.sample(range(len(shape)), len(shape)))[steps]
    return bits.view(dtype), bits.numpy()


def random_slice(random, shape):
    """Return the arguments of a slice, and the index for NumPy that does the same."""
    axes = random.sample(range(len(shape)), random.randint(0, len(shape)))
    starts, ends, steps, index = [], [], [], [slice(None)] * len(shape)
    for axis in axes:
        step = random.choice([-3, -2, -1, -1, 1, 1, 2])
        first, last = sorted((random.randint(0, shape[axis]), random.randint(0, shape[axis])))
        if step < 0:
            starts.append(last)
            ends.append(first - 1 - shape[axis] if first else -(2**63))
            index[axis] = slice(last, first - 1 if first else None, step)
        else:
            starts.append(first)
            ends.append(last)
            index[axis] = slice(first, last, step)
        steps.append(step)
    return (starts, ends, axes, steps), tuple(index)


def same(tensor, bits):
    return tensor.is_contiguous() and np.array_equal(tensor.view(BITS[tensor.element_size()]).numpy(), bits)


@pytest.mark.parametrize("kind", ["as chosen", "kernels", "PyTorch"])
def test_random_tensors(campaign, kind, monkeypatch):
    gs.clear_caches()
    if kind != "as chosen":
        monkeypatch.setattr(choice, "kernels_save", lambda *_: math.inf)
        for name in ("torch_is_faster", "torch_joins_faster"):
            monkeypatch.setattr(choice, name, lambda *_, **__: kind == "PyTorch")
    for _ in campaign.rounds(150):
        tensor, bits = random_tensor(campaign.random, campaign.random.choice([5, 60]))
        arguments, index = random_slice(campaign.random, tensor.shape)
        expected = bits[index]
        result = gs.slice(tensor, *arguments)
        campaign.counts["slices"] += 1
        assert result.dtype == tensor.dtype
        assert same(result, expected), (tensor.shape, tensor.stride(), tensor.dtype, arguments)
        out = torch.empty(expected.shape, dtype=tensor.dtype)
        for _ in range(2):
            assert same(gs.slice(tensor, *arguments, out=out), expected)
            campaign.counts["outputs"] += 1
        axis = campaign.random.randrange(tensor.ndim)
        cut = campaign.random.randint(0, tensor.shape[axis])
        parts = gs.split(tensor, [cut, tensor.shape[axis] - cut], axis=axis)
        assert all(map(same, parts, np.split(bits, [cut], axis)))
        campaign.counts["splits"] += 1
        out = torch.empty(tensor.shape, dtype=tensor.dtype)
        for _ in range(2):
            assert same(gs.concat_from_sequence(parts, axis=axis), bits)
            assert same(gs.concat_from_sequence(parts, axis=axis, out=out), bits)
            pair = [tensor, tensor.view(tensor.dtype)]
            assert same(gs.concat_from_sequence(pair, axis=axis, new_axis=1), np.stack([bits, bits], axis))
            campaign.counts["joins"] += 3
    gs.clear_caches()
