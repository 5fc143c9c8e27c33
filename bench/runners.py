"""Who does the work of a case: gpuslice, NumPy, CuPy and the plain copy; other libraries are in peers.py."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import gpuslice as gs
from bench import image_peers, peers
from bench.case import Case
from bench.peers import Call

# Makes the call for a source array on the device, or raises NotImplementedError if the library has no way to do it.
Maker = Callable[[Case, Any], Call]


@dataclass(frozen=True)
class Runner:
    """A library on a device.

    Attributes
    ----------
    name : str
    device : {"cpu", "cuda"}
    packages : tuple of str
        Modules that it imports.
    into, fresh : callable
        Make the call that writes to existing arrays, and the one that allocates its outputs.
    images : bool, optional
        Whether it is timed for images only, or for all except images. Default: for all cases.
    """

    name: str
    device: str
    packages: tuple[str, ...]
    into: Maker
    fresh: Maker
    images: bool | None = None

    def times(self, case: Case) -> bool:
        """Return whether it is timed for a case."""
        return self.images is None or self.images == bool(case.recipe)

    def missing(self) -> str:
        """Return which packages are not installed, as text; empty if all are."""
        names = [name for name in self.packages if not _can_import(name)]
        return f"not installed: {', '.join(names)}" if names else ""


def _can_import(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def gpuslice_into(case: Case, x: Any) -> Call:
    """Gpuslice with ``out=``."""
    if case.chain:
        raise NotImplementedError("a graph allocates its outputs")
    return _gpuslice(case, x, peers.outputs_like(case, x))


def gpuslice_fresh(case: Case, x: Any) -> Call:
    """Gpuslice, which allocates its outputs."""
    if not case.chain:
        return _gpuslice(case, x, None)
    from gpuslice.onnx import Graph

    graph = Graph(peers.model_of(case, x))
    return lambda: list(graph.run({"x": x}).values())


def _gpuslice(case: Case, x: Any, outs: list[Any] | None) -> Call:
    view, out = case.view(x), None if outs is None else outs[0]
    if case.joins:
        inputs, new_axis = case.inputs(x), int(not case.keeps_axis)
        # Without out=, also versions can be timed that did not have it.
        written = {} if outs is None else {"out": out}
        return lambda: [gs.concat_from_sequence(inputs, axis=case.axis, new_axis=new_axis, **written)]
    if not case.keeps_axis:
        written = {} if outs is None else {"out": outs}
        return lambda: gs.split_to_sequence(view, axis=case.axis, keepdims=0, **written)
    if case.split:
        sizes = case.split(view.shape[case.axis])
        return lambda: gs.split(view, sizes, axis=case.axis, out=outs)
    if case.axes or not case.index:
        return lambda: [gs.contiguous(view, out=out)]
    bounds = case.bounds(x.shape)
    return lambda: [gs.slice(x, *bounds, out=out)]


def numpy_into(case: Case, x: Any) -> Call:
    """``np.copyto`` per part."""
    return _each_part(case, x, np.copyto)


def cupy_into(case: Case, x: Any) -> Call:
    """CuPy's assignment per part."""
    return _each_part(case, x, lambda out, part: out.__setitem__(..., part))


def _each_part(case: Case, x: Any, copy: Callable[[Any, Any], object]) -> Call:
    view, outs = case.view(x), peers.outputs_like(case, x)
    if case.joins:
        join = _joiner(case, x)
        return lambda: [join(out=outs[0])]
    places = case.places(view.shape)

    def call() -> Sequence[Any]:
        for out, place in zip(outs, places, strict=True):
            copy(out, view[place])
        return outs

    return call


def _joiner(case: Case, x: Any) -> Callable[..., Any]:
    """Return NumPy's or CuPy's function that joins the inputs of a case."""
    xp: Any = np
    if not isinstance(x, np.ndarray):
        import cupy as xp
    inputs = case.inputs(x)
    return partial(xp.concatenate if case.keeps_axis else xp.stack, inputs, axis=case.axis)


def copies(case: Case, x: Any) -> Call:
    """NumPy's or CuPy's ``copy()`` per part, or what joins them."""
    if case.joins:
        join = _joiner(case, x)
        return lambda: [join()]
    view = case.view(x)
    places = case.places(view.shape)
    return lambda: [view[place].copy(order="C") for place in places]


def plain_into(case: Case, x: Any) -> Call:
    """Copy as many contiguous bytes to an existing array: ``np.copyto``, or the driver's copy on a device."""
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


def plain_fresh(case: Case, x: Any) -> Call:
    """Copy as many contiguous bytes by ``x.copy()``."""
    source = case.view(x).copy(order="C")
    return lambda: [source.copy()]


PLAIN, OURS = "copy", "gpuslice"

RUNNERS = [
    Runner(PLAIN, "cpu", (), plain_into, plain_fresh),
    Runner(OURS, "cpu", (), gpuslice_into, gpuslice_fresh),
    Runner("NumPy", "cpu", (), numpy_into, copies),
    Runner("PyTorch", "cpu", ("torch",), peers.torch_into, peers.torch_fresh),
    Runner("onnxruntime", "cpu", ("onnx", "onnxruntime"), peers.runtime_into, peers.runtime_fresh, False),
    Runner("onnx.reference", "cpu", ("onnx",), peers.reference_into, peers.reference_fresh, False),
    Runner("OpenCV", "cpu", ("cv2",), image_peers.opencv_into, image_peers.opencv_fresh, True),
    Runner("Pillow", "cpu", ("PIL",), image_peers.pillow_into, image_peers.pillow_fresh, True),
    Runner(PLAIN, "cuda", ("cupy",), plain_into, plain_fresh),
    Runner(OURS, "cuda", ("cupy",), gpuslice_into, gpuslice_fresh),
    Runner("CuPy", "cuda", ("cupy",), cupy_into, copies),
    Runner("PyTorch", "cuda", ("cupy", "torch"), peers.torch_into, peers.torch_fresh),
    Runner("onnxruntime", "cuda", ("cupy", "onnx", "onnxruntime"), peers.runtime_into, peers.runtime_fresh, False),
]
