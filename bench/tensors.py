"""PyTorch: flip, contiguous, copy_ and split_with_sizes_copy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.cases import Case
from bench.runner import Call, Unsupported, outputs_like


def into(case: Case, x: Any) -> Call:
    """``copy_`` of a view, or split_with_sizes_copy, to tensors allocated before."""
    import torch

    view, flips = _view(case, x)
    if flips:
        raise Unsupported("torch.flip has no out=")
    outs = [_tensor(out) for out in outputs_like(case, x)]
    if case.split is None:
        return lambda: [outs[0].copy_(view)]
    sizes = case.split(view.shape[case.axis])

    def call() -> Sequence[Any]:
        torch.split_with_sizes_copy(view, sizes, case.axis, out=outs)
        return outs

    return call


def fresh(case: Case, x: Any) -> Call:
    """Flip, clone or split_with_sizes_copy; a split of something flipped takes both."""
    import torch

    view, flips = _view(case, x)
    if case.split is None:
        return lambda: [torch.flip(view, flips) if flips else view.clone(memory_format=torch.contiguous_format)]
    sizes = case.split(view.shape[case.axis])
    return lambda: torch.split_with_sizes_copy(torch.flip(view, flips) if flips else view, sizes, case.axis)


def _tensor(array: Any) -> Any:
    import torch

    torch.set_num_threads(1)
    return torch.from_numpy(array) if isinstance(array, np.ndarray) else torch.from_dlpack(array)


def _view(case: Case, x: Any) -> tuple[Any, list[int]]:
    """Give a view with steps forward only, which is all that tensors have, and the axes to flip."""
    index, flips = [], []
    for axis, one in enumerate(case.index):
        start, _, step = one.indices(x.shape[axis])
        if step < 0:
            count = len(range(*one.indices(x.shape[axis])))
            one = slice(start + (count - 1) * step, start + 1, -step)
            flips.append(axis)
        index.append(one)
    view = _tensor(x)[tuple(index)]
    if case.transposed:
        view, flips = view.permute(*reversed(range(view.ndim))), [view.ndim - 1 - axis for axis in flips]
    return view, flips
