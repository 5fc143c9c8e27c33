"""What ``copy=`` and ``out=`` ask for: fresh arrays, views, or the caller's arrays written in place."""

from collections import abc

import numpy as np

from gpuslice import engine
from gpuslice.engine import Consecutive, Lazy
from gpuslice.errors import describe, is_compiling
from gpuslice.libraries import NUMPY, Array, bridge_of, device_of, library_of, plain_array
from gpuslice.overlap import overlapping, repeats_an_item


def deliver(
    views: abc.Sequence[Lazy],
    copy: bool | None,
    out: abc.Sequence[Array] | None = None,
    *,
    one_block: bool = False,
    is_one: bool = False,
) -> abc.Sequence[Array]:
    """Return one array per view, following ``copy=``, ``out=`` and ``one_block=``.

    Parameters
    ----------
    is_one : bool
        Whether the caller gave an array as ``out``, not a list of them. Messages name it so.

    Raises
    ------
    ValueError
        ``copy`` is not True, False or None. ``copy=False``, but the library has no such view. ``out`` or ``one_block``
        with ``copy`` other than True, or with each other. An array of ``out`` has another shape or device, is
        read-only, or overlaps an input, another array of ``out`` or itself.
    TypeError
        An array of ``out`` has another library or dtype, or is immutable.
    RuntimeError
        With ``out``, a tensor of PyTorch requires grad and the grad mode is on.
    MemoryError
        The results cannot be allocated.
    """
    if one_block is not True and one_block is not False:
        raise ValueError(f"one_block must be True, False or None; got {describe(one_block)}")
    if copy is True and out is None and not one_block:
        return engine.dense(views)
    if copy is not True and copy is not False and copy is not None:
        raise ValueError(f"copy must be True, False or None; got {describe(copy)}")
    if out is None and not one_block:
        return _as_views(views, copy)
    if copy is not True:
        raise ValueError(f"{'one_block' if out is None else 'out'} needs copy=True; got copy={copy}")
    if out is None:
        return engine.dense_in_one_block(views)
    if one_block:
        raise ValueError("one_block allocates the outputs itself; it cannot be combined with out")
    targets = _checked_outs(views, out, is_one)
    written = tuple(out)  # now, so that after the copy nothing can fail
    engine.copy_into(views, targets)
    return written


def deliver_one(view: Lazy, copy: bool | None, out: Array | None = None) -> Array:
    """Return one array, following ``copy=`` and ``out=``; see `deliver`."""
    return deliver([view], copy, None if out is None else [out], is_one=True)[0]


def _as_views(views: abc.Sequence[Lazy], copy: bool | None) -> list[Array]:
    if copy is False and not all(map(engine.gives_views, views)):
        raise ValueError(f"copy=False is not possible: {views[0].library.name} cannot return this result as a view")
    return [engine.indexed(view) for view in views]


def _checked_outs(views: abc.Sequence[Lazy], outs: abc.Sequence[Array], is_one: bool) -> list[Array]:
    """Return the arrays to write, those of subclasses as plain ones; raise an error if one does not fit."""
    if not isinstance(outs, (list, tuple)):
        raise TypeError(f"out must be a list or tuple of arrays, one per output; got {describe(outs)}")
    if len(outs) != len(views):
        raise ValueError(f"out must hold {len(views)} arrays, one per output; got {len(outs)}")
    wanted: abc.Iterable[tuple[Lazy, tuple[int, ...]]]
    if isinstance(views, Consecutive):
        inputs = [views.view.array]
        wanted = ((views.view, shape) for shape in views.shapes())
    else:
        inputs = [array for view in views for array in view.sources]
        if len(inputs) > 1 and not is_compiling():  # torch.compile does not know tensors by their identity
            inputs = list({id(array): array for array in inputs}.values())
        if inputs and _are_usual_tensors(views, inputs, outs):
            return list(outs)
        wanted = ((view, view.shape) for view in views)
    checked = [
        out if _fits(view, shape, out) else _checked_out(view, shape, out, _name(i, is_one))
        for i, ((view, shape), out) in enumerate(zip(wanted, outs, strict=True))
    ]
    pair = overlapping(inputs, checked)
    if pair is not None:
        number, other = pair
        raise ValueError(
            f"{_name(number, is_one)} must not overlap {'an input' if other is None else _name(other, is_one)}"
        )
    return checked


def _are_usual_tensors(views: abc.Sequence[Lazy], inputs: abc.Sequence[Array], outs: abc.Sequence[Array]) -> bool:
    """Return whether outputs are tensors that need no closer look."""
    bridge = bridge_of(inputs[0])
    kinds = None if bridge is None else bridge.kinds(inputs)
    if bridge is None or kinds is None or len({(array.dtype, array.device) for array in inputs}) > 1:
        return False
    return bridge.takes(inputs, outs, (view.shape for view in views))


def _name(number: int, is_one: bool) -> str:
    """Return what messages call an output."""
    return "out" if is_one else f"out[{number}]"


def _fits(view: Lazy, shape: tuple[int, ...], out: Array) -> bool:
    """Return whether an output surely fits, which is seen quickly for most."""
    return (
        type(out) is np.ndarray
        and view.library is NUMPY
        and out.dtype == view.dtype
        and out.shape == shape
        and out.flags.writeable
        and out.flags.c_contiguous
    )


def _checked_out(view: Lazy, shape: tuple[int, ...], out: Array, name: str) -> Array:
    library = library_of(out, name)
    if library is not view.library:
        raise TypeError(f"{name} must be an array of {view.library.name}; got one of {library.name}")
    if not library.mutable:
        raise TypeError(f"{name} cannot be written: gpuslice makes new arrays of {library.name}, and writes to none")
    if isinstance(out, np.generic) or (isinstance(out, np.ndarray) and not out.flags.writeable):
        raise ValueError(f"{name} must be writable; got a read-only array")
    out = plain_array(out)
    if out.dtype != view.dtype:
        raise TypeError(f"{name} must have dtype {view.dtype}; got {out.dtype}")
    if tuple(out.shape) != shape:
        raise ValueError(f"{name} must have shape {shape}; got {tuple(out.shape)}")
    if device_of(out) != view.device:
        raise ValueError(f"{name} must be on device {view.device}; got {device_of(out)}")
    if library.bridge is not None:
        library.bridge.check_out(view.array, out)
    if repeats_an_item(out):
        raise ValueError(f"{name} must not overlap itself; got an array in which two items share memory")
    return out
