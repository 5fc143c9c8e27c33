"""Copies any number of views: to fresh dense arrays, to one allocation, or into arrays of the caller."""

from collections import abc
from functools import cache
from itertools import accumulate
from math import prod
from typing import Protocol

import numpy as np

from gpuslice.dtypes import itemsize
from gpuslice.engine import functional, generic
from gpuslice.engine.choice import are_small, small_numpy_arrays, small_numpy_parts
from gpuslice.engine.consecutive import Consecutive
from gpuslice.engine.fields import field_by_field, has_gaps
from gpuslice.engine.joined import Joined, Lazy
from gpuslice.engine.kernel_executor import BLOCK_ALIGNMENT
from gpuslice.engine.lowering import has_bridges, lower, lower_outs, raised
from gpuslice.engine.memory import TOO_LARGE, raise_too_large
from gpuslice.engine.prepared import prepared_for
from gpuslice.engine.trace import Launch, is_tracing, record_allocation, record_launch
from gpuslice.engine.views import View
from gpuslice.libraries import NUMPY, Array


class Executor(Protocol):
    """What copies between arrays of a library."""

    def copy(self, pairs: abc.Sequence[tuple[View, View]], /) -> None:
        """Copy each source view to its target view, which has the same shape."""


class Maker(Protocol):
    """What makes new arrays for a library whose arrays cannot be written."""

    def dense(self, values: abc.Sequence[Lazy], /) -> list[Array]:
        """Return a new array with the items of each value, which shares no memory with it."""


def dense(values: abc.Sequence[Lazy]) -> list[Array]:
    """Return a fresh C-contiguous copy of each value, in its library, dtype and device.

    Raises
    ------
    MemoryError
        The copies cannot be allocated. Nothing is copied then.
    """
    if has_bridges(values):
        return _through_bridges(values, dense)
    try:
        prepared = prepared_for(values[0].array, values) if values and not is_tracing() else None
        if prepared is not None:
            return prepared.fresh(values[0].array)
        arrays = small_numpy_arrays(values)
        if arrays is not None:
            return _numpy_copies(arrays)
        maker = _one_maker(values)
        if maker is not None:
            return maker.dense(values)
        values = list(values)  # some make their items anew each time they are read
        # Not asarray(copy=True): it keeps Fortran order.
        targets = [_allocate(value) if value.library.mutable else None for value in values]
    except TOO_LARGE as error:
        raise_too_large(values, error)
    _execute(values, targets)
    return targets if all(target is not None for target in targets) else _with_made(values, targets)


def dense_in_one_block(views: abc.Sequence[Lazy]) -> list[Array]:
    """Return what `dense` does for views of one array, but take all results from one allocation."""
    if has_bridges(views):
        return _through_bridges(views, dense_in_one_block)
    if not views or not views[0].library.mutable:
        return dense(views)
    try:
        targets = _allocate_block(views)
    except TOO_LARGE as error:
        raise_too_large(views, error)
    copy_into(views, targets)
    return targets


def copy_into(views: abc.Sequence[Lazy], targets: abc.Sequence[Array]) -> None:
    """Copy each view into its target, an array of its shape, library and device.

    What lies between the fields of a structured target stays as it is. If an error is raised, all targets do.
    """
    if has_bridges(views):
        _copy_through_bridges(views, targets)
        return
    arrays = small_numpy_arrays(views)
    if arrays is None or has_gaps(targets[0].dtype) or not are_small(targets):
        _execute(views, targets, into=True)
        return
    for array, target in zip(list(arrays), targets, strict=True):  # every view comes before the first copy
        target[...] = array
        if is_tracing() and array.size:
            record_launch(Launch("numpy", "copyto", None, None, array.nbytes, target.nbytes, (target.shape,)))


def _through_bridges(
    values: abc.Sequence[Lazy], copies: abc.Callable[[abc.Sequence[Lazy]], list[Array]]
) -> list[Array]:
    """Return what `dense` or another function does for values of which only some can be copied as NumPy's."""
    lowered = lower(values)
    if isinstance(lowered, Consecutive) and lowered.view.library is NUMPY:  # many parts of one array
        part = values[0]
        return [raised(part, copied) for copied in copies(lowered)]
    places = [i for i, low in enumerate(lowered) if low is not None and low.library.executor == "torch_cuda"]
    on_device = [values[i] for i in places]
    results: dict[int, Array] = {}
    if on_device:
        made = _allocate_block(on_device) if copies is dense_in_one_block else list(map(_allocate, on_device))
        _copy_through_bridges(on_device, made)
        results = dict(zip(places, made, strict=True))
    copied = iter(copies([low for i, low in enumerate(lowered) if low is not None and i not in results]))
    for i, (value, low) in enumerate(zip(values, lowered, strict=True)):
        if i not in results:
            results[i] = generic.fresh(value) if low is None else raised(value, next(copied))
    return [results[i] for i in range(len(results))]


def _copy_through_bridges(views: abc.Sequence[Lazy], targets: abc.Sequence[Array]) -> None:
    pairs = lower_outs(views, targets)
    for view, target, pair in zip(views, targets, pairs, strict=True):
        if pair is None:
            generic.assign(view, target)  # first, since the library may refuse
    lowered = [pair for pair in pairs if pair is not None]
    if lowered:
        copy_into(*zip(*lowered, strict=True))
    for view, target, pair in zip(views, targets, pairs, strict=True):
        if pair is not None and view.library.bridge is not None:
            view.library.bridge.were_written([target])


def _execute(values: abc.Sequence[Lazy], targets: abc.Sequence[Array | None], *, into: bool = False) -> None:
    """Copy by the executors of the values' libraries. Values with target None are left out.

    Parameters
    ----------
    into : bool
        Whether the targets are arrays of the caller, which an error leaves as they were.
    """
    pairs: dict[str, list[tuple[View, View]]] = {}
    joined: list[tuple[abc.Sequence[Array], int, Array]] = []
    for value, target in zip(values, targets, strict=True):
        if target is None:
            continue
        if into and type(value) is Joined and value.converts:
            value = View.of(dense([value])[0])  # since a conversion can fail halfway
        by_numpy = type(value) is Joined and not (into and has_gaps(value.dtype))
        parts = small_numpy_parts(value) if by_numpy else None  # type: ignore[arg-type]
        if type(value) is Joined and parts is not None:
            joined.append((parts, value.axis, target))
        else:
            pairs.setdefault(value.library.executor, []).extend(value.pairs(target))
    for name, members in pairs.items():
        _executor(name).copy(list(field_by_field(members)) if into else members)
    for arrays, axis, target in joined:
        np.concatenate(arrays, axis=axis, out=target)
        if is_tracing() and target.size:
            record_launch(Launch("numpy", "concatenate", None, None, target.nbytes, target.nbytes, (target.shape,)))


def _one_maker(values: abc.Sequence[Lazy]) -> Maker | None:
    """Return what makes the results of all values, if they are of one library whose arrays cannot be written."""
    libraries = {value.library for value in ([values.view] if isinstance(values, Consecutive) else values)}
    library = libraries.pop() if len(libraries) == 1 else None
    return None if library is None or library.mutable else _maker(library.executor)


def _with_made(values: abc.Sequence[Lazy], targets: abc.Sequence[Array | None]) -> list[Array]:
    """Return the targets, and in place of None new arrays, made by the executors of the values' libraries."""
    results = list(targets)
    places: dict[str, list[int]] = {}
    for i, (value, target) in enumerate(zip(values, targets, strict=True)):
        if target is None:
            places.setdefault(value.library.executor, []).append(i)
    for name, members in places.items():
        for i, made in zip(members, _maker(name).dense([values[i] for i in members]), strict=True):
            results[i] = made
    return results


@cache
def _maker(name: str) -> Maker:
    """Return an executor for arrays that cannot be written, by its name in the table of libraries."""
    if name == "jax":
        from gpuslice.engine import jax_arrays

        return jax_arrays
    if name == "dask":
        from gpuslice.engine import dask_arrays

        return dask_arrays
    return functional


@cache
def _executor(name: str) -> Executor:
    """Return an executor that writes arrays, by its name in the table of libraries, imported when it is needed."""
    if name == "host":
        from gpuslice.engine.host import HOST_EXECUTOR

        return HOST_EXECUTOR
    if name == "cuda":
        from gpuslice.engine.cuda import CUDA_EXECUTOR

        return CUDA_EXECUTOR
    if name == "torch_cuda":
        from gpuslice.engine import torch_cuda

        return torch_cuda
    return generic


def _numpy_copies(arrays: abc.Iterable[Array]) -> list[Array]:
    copies = [array.copy() for array in arrays]
    if is_tracing():
        for copied in copies:
            record_allocation(copied.nbytes)
            if copied.size:
                record_launch(Launch("numpy", "copy", None, None, copied.nbytes, copied.nbytes, (copied.shape,)))
    return copies


def _allocate(value: Lazy) -> Array:
    target = value.library.empty(value.shape, value.dtype, value.array)
    if is_tracing():
        record_allocation(prod(value.shape) * itemsize(target.dtype))
    return target


def _allocate_block(views: abc.Sequence[Lazy]) -> list[Array]:
    first = views[0]
    size = itemsize(first.dtype)
    unit = max(1, BLOCK_ALIGNMENT // max(1, size))
    ends = list(accumulate(-(-prod(view.shape) // unit) * unit for view in views))
    block = first.library.empty((ends[-1],), first.dtype, first.array)
    if is_tracing():
        record_allocation(ends[-1] * size)
    parts = [
        first.xp.reshape(block[start : start + prod(view.shape)], view.shape)
        for start, view in zip([0, *ends[:-1]], views, strict=True)
    ]
    bridge = first.library.bridge
    return parts if bridge is None else list(map(bridge.without_base, parts))
