"""PyTorch's tensors for the tests: their layouts, and items of every dtype with any bits."""

import numpy as np
import torch

BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
LAYOUTS = {
    "plain": lambda x: x,
    "transposed": lambda x: x.T.contiguous().T,
    "strided": lambda x: torch.stack([x, x], -1)[..., 1],
    "offset": lambda x: torch.cat([x[:1], x])[1:],
}
# The arguments of a slice backward along two axes.
BACK = ([-1, -1], [-99, -99], [0, 1], [-1, -2])


def random_bits(dtype, *shape):
    made = np.random.default_rng(0).integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    if dtype is torch.bool:
        made %= 2
    return torch.from_numpy(made).view(BITS[dtype.itemsize])[..., 0].view(dtype)
