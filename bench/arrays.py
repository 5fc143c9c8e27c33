"""The library itself, NumPy, CuPy, and the plain copy of as many bytes that all are compared with."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuslice as gs
from bench.cases import Case
from bench.runner import Call, Unsupported, bounds, outputs_like


def ours_into(case: Case, x: Any) -> Call:
    """Gpuslice with ``out=``."""
    if case.chain:
        raise Unsupported("a graph allocates its outputs")
    return _ours(case, x, outputs_like(case, x))


def ours_fresh(case: Case, x: Any) -> Call:
    """Gpuslice with results of its own."""
    if not case.chain:
        return _ours(case, x, None)
    from bench.models import model_of
    from gpuslice.onnx import Graph

    graph = Graph(model_of(case, x))
    return lambda: list(graph.run({"x": x}).values())


def _ours(case: Case, x: Any, outs: list[Any] | None) -> Call:
    view, out = case.view(x), None if outs is None else outs[0]
    if case.split:
        sizes = case.split(view.shape[case.axis])
        return lambda: gs.split(view, sizes, axis=case.axis, out=outs)
    if case.transposed or not case.index:
        return lambda: [gs.contiguous(view, out=out)]
    arguments = bounds(case.index, x.shape, case.ends)
    return lambda: [gs.slice(x, *arguments, out=out)]


def numpy_into(case: Case, x: Any) -> Call:
    """np.copyto a part."""
    return _each_part(case, x, np.copyto)


def cupy_into(case: Case, x: Any) -> Call:
    """CuPy's assignment a part."""
    return _each_part(case, x, lambda out, part: out.__setitem__(..., part))


def _each_part(case: Case, x: Any, copy: Callable[[Any, Any], object]) -> Call:
    view, outs = case.view(x), outputs_like(case, x)
    places = case.places(view.shape)

    def call() -> Sequence[Any]:
        for out, place in zip(outs, places, strict=True):
            copy(out, view[place])
        return outs

    return call


def fresh_copies(case: Case, x: Any) -> Call:
    """A copy a part, by NumPy or CuPy."""
    view = case.view(x)
    places = case.places(view.shape)
    return lambda: [view[place].copy(order="C") for place in places]


def roof_into(case: Case, x: Any) -> Call:
    """np.copyto, or the driver's own copy between two places of a device, of as many contiguous bytes."""
    source = case.view(x).copy(order="C")
    if isinstance(source, np.ndarray):
        out = np.full(source.shape, 0, x.dtype)

        def copy_on_host() -> Sequence[Any]:
            np.copyto(out, source)
            return [out]

        return copy_on_host
    import cupy

    target = cupy.zeros_like(source)

    def copy_on_device() -> Sequence[Any]:
        target.data.copy_from_device_async(source.data, source.nbytes, cupy.cuda.get_current_stream())
        return [target]

    return copy_on_device


def roof_fresh(case: Case, x: Any) -> Call:
    """``x.copy()`` of as many contiguous bytes."""
    source = case.view(x).copy(order="C")
    return lambda: [source.copy()]
