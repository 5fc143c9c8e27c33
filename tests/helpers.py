"""What several test modules use: arrays in every layout, oracles, nodes and models, and exact comparison."""

import ctypes
import itertools
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from libraries import to_numpy

import gpuslice as gs
from gpuslice.engine import host_library
from gpuslice.engine.plan import kernel_sources
from gpuslice.libraries import device_of

PACKAGE = Path(gs.__file__).parent
# Every module of gpuslice and its file.
MODULES = {
    ".".join(("gpuslice", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}
compiled = pytest.mark.skipif(host_library.LIBRARY is None, reason="the host kernels are not built here")
needs_gxx = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("g++") is None, reason="the kernels are compiled on Linux by g++"
)


def assert_same(actual, expected, like=None):
    """Compare dtype, shape and every bit with a NumPy array; and library and device with ``like``, by default it too."""
    like = expected if like is None else like
    assert type(actual) is type(like)
    assert device_of(actual) == device_of(like)
    assert actual.dtype == like.dtype
    given = to_numpy(actual)
    assert given.shape == expected.shape
    assert given.dtype == expected.dtype
    if given.dtype.hasobject:
        assert given.tolist() == expected.tolist()
    else:
        assert given.tobytes() == expected.tobytes()


# Functions of an array of two axes, of any library, that take some of its items and return them as one array; and what
# NumPy returns.
MOVES = {
    "slice": (lambda x: gs.slice(x, [-1, 1], [-99, 99], [1, 0], [-2, 1]), lambda x: x[1:, ::-2]),
    "everything": (lambda x: gs.slice(x, [0], [99]), lambda x: x),
    "split": (lambda x: gs.split(x, [1, x.shape[1] - 1], axis=1)[1], lambda x: x[:, 1:]),
    "contiguous": (lambda x: gs.contiguous(x.T), lambda x: x.T),
    "sequence_at": (lambda x: gs.sequence_at(gs.split_to_sequence(x, 2, axis=1), 0), lambda x: x[:, :2]),
    "join": (
        lambda x: gs.concat_from_sequence(gs.sequence_erase(gs.split_to_sequence(x), 0), axis=0),
        lambda x: x[1:],
    ),
    "stack": (
        lambda x: gs.concat_from_sequence(gs.split_to_sequence(x, axis=1, keepdims=0), axis=0, new_axis=1),
        lambda x: x.T,
    ),
}


def _reversed(array):
    backward = (slice(None, None, -1),) * array.ndim + (...,)
    return array[backward].copy()[backward]


def _offset(array):
    buffer = np.empty(array.size + 1, array.dtype)
    moved = buffer[1:].reshape(array.shape)
    moved[...] = array
    return moved


def _unaligned(array):
    if array.dtype.hasobject:
        return array
    buffer = np.empty(array.nbytes + 1, np.uint8)
    moved = buffer[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def _broadcast(array):
    if array.size and len({item.tobytes() for item in array.reshape(-1)[:, None]}) == 1:
        return np.broadcast_to(array.reshape(-1)[0:1].reshape((1,) * array.ndim), array.shape)
    return array


def _read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


# The ways in which the same items may lie in memory.
LAYOUTS = {
    # Not ascontiguousarray and asfortranarray, which make 0-d arrays 1-D.
    "plain": lambda array: array.copy(order="C"),
    "fortran": lambda array: array.copy(order="F"),
    "reversed": _reversed,
    "offset": _offset,
    "unaligned": _unaligned,
    "broadcast": _broadcast,
    "read-only": _read_only,
}


def items(*shape, dtype="u1"):
    """Return an array of random bits."""
    dtype = np.dtype(dtype)
    numbers = np.random.default_rng(0).integers(0, 256, int(np.prod(shape)) * dtype.itemsize, np.uint8)
    return numbers.view(dtype).reshape(shape)


def pick(array, taken):
    """Return the items at every combination of positions, copied one by one."""
    picked = np.empty([len(positions) for positions in taken], array.dtype)
    for target, source in zip(
        itertools.product(*(range(len(positions)) for positions in taken)), itertools.product(*taken), strict=True
    ):
        picked[target] = array[source]
    return picked


def all_on_device(views):
    """Return the same views on a CUDA device, in one memory, with the same strides, distances and alignment."""
    import cupy

    lows, highs = zip(*map(np.lib.array_utils.byte_bounds, views), strict=True)
    low, high = min(lows), max(highs)
    lead = low % 64
    memory = cupy.empty(lead + high - low, np.uint8)
    memory[lead:] = cupy.asarray(np.frombuffer((ctypes.c_ubyte * (high - low)).from_address(low), np.uint8))
    starts = [memory.data + (lead + view.__array_interface__["data"][0] - low) for view in views]
    return [
        cupy.ndarray(view.shape, view.dtype, start, strides=view.strides)
        for view, start in zip(views, starts, strict=True)
    ]


def on_device(view):
    """Return the same view on a CUDA device, with the same strides and alignment."""
    return all_on_device([view])[0]


MANY = 37  # arrays
JOINED_KINDS = ("interleaved", "stacked")  # kernels whose targets are one array
COUNT = 5001  # odd, so that no two items of a run become one; and enough for the host's kernels


def views_for(kernel):
    """Make views that a kernel should move; see `copied`."""
    kind, width, variant = kernel
    dtype, far = np.dtype(f"V{width}"), abs(variant)
    gathered = next(step for step in range(2, 99) if not kernel_sources.is_listed(kind, width, step))
    items = np.random.default_rng(0).integers(0, 256, width * (COUNT * max(far, gathered) + 1), np.uint8).view(dtype)
    if kind == "rows":
        step = variant or gathered
        return [items[: COUNT * abs(step)][::step][:COUNT]]
    if kind == "tiles":
        return [items[: 75 * 65].reshape(75, 65).T]
    if kind == "pixel_tiles":
        channels = variant or 5
        return [np.resize(items, (75 * 65 * channels,)).reshape(75, 65, channels).transpose(1, 0, 2)]
    if kind == "pixel_rows":
        return [np.resize(items, (COUNT * (variant or 5), 3))[:: variant or 5]]
    if kind in JOINED_KINDS[1:]:
        return list(np.resize(items, (MANY, COUNT, 1)))
    if kind == "unstacked":
        return np.split(np.resize(items, (COUNT, MANY)), MANY, axis=1)
    # They begin at an odd item, so that no items become one.
    each = kernel.channels if kind in ("planes", "interleaved") else (far,)
    if kind == "interleaved":
        arrays = np.split(items[1 : 1 + COUNT * sum(each)], np.cumsum(each)[:-1] * COUNT)
        return [array.reshape(COUNT, -1)[:: 1 if variant > 0 else -1] for array in arrays]
    pixels = items[1 : 1 + COUNT * sum(each)].reshape(COUNT, -1)
    if kind == "planes":
        return np.split(pixels[:: 1 if variant > 0 else -1], np.cumsum(each)[:-1], axis=1)
    return [pixels[:, ::-1] if variant > 0 else pixels[::-1]]


def copied(kernel, views):
    """Copy such views as the kernel should: those for JOINED_KINDS side by side into one array, the others apart."""
    if kernel.kind in JOINED_KINDS:
        return [gs.concat_from_sequence(views, axis=1)]
    return gs.contiguous(views)


def bytes_of_copied(kernel, views):
    """Return the bytes of the arrays that `copied` makes."""
    whole = [np.concatenate(views, axis=1)] if kernel.kind in JOINED_KINDS else views
    return [view.tobytes() for view in whole]


# The functions below import onnx only if a test needs it: the tests of CUDA run without it.
def node(op, inputs, outputs=("y",), **attributes):
    """Return a NodeProto."""
    from onnx import helper

    return helper.make_node(op, inputs, list(outputs), **attributes)


_FLOAT = 1  # of onnx.TensorProto


def tensor_info(name, shape=None, elem_type=_FLOAT):
    """Return the declaration of a tensor, by default of any shape."""
    from onnx import helper

    return helper.make_tensor_value_info(name, elem_type, shape)


def sequence_info(name, shape=None, elem_type=_FLOAT):
    """Return the declaration of a sequence, by default of tensors of any shape."""
    from onnx import helper

    return helper.make_tensor_sequence_value_info(name, elem_type, shape)


def model(nodes, inputs, outputs, constants=None, opset=18):
    """Return a ModelProto. Inputs and outputs are declarations, or names of float32 tensors of any shape."""
    from onnx import helper, numpy_helper

    def info(entry):
        return tensor_info(entry) if isinstance(entry, str) else entry

    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", [info(i) for i in inputs], [info(o) for o in outputs], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def chain():
    """Return a model of Slice, Slice, Identity and Split that mirrors the last axis and crops the first."""
    nodes = [
        node("Slice", ["x", "last", "before", "two", "back"], ["mirror"]),
        node("Slice", ["mirror", "one", "nine"], ["crop"]),
        node("Identity", ["crop"], ["same"]),
        node("Split", ["same"], ["a", "", "c"], axis=1, num_outputs=3),
    ]
    constants = {"last": [-1], "before": [-(2**63)], "two": [2], "back": [-1], "one": [1], "nine": [9]}
    return model(nodes, ["x"], ["a", "c"], constants)
