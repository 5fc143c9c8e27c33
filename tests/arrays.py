"""Arrays for tests: made for a library, laid out in memory in every way, and compared to the last bit."""

import array_api_compat
import ml_dtypes
import numpy as np

import gpuslice as gs


def to_numpy(array):
    """Copy an array of any library to NumPy."""
    if isinstance(array, np.ndarray):
        return array
    if array_api_compat.is_cupy_array(array):
        return array.get()
    return np.from_dlpack(array)


def assert_same(actual, expected, like=None):
    """Compare dtype, shape and every bit with a NumPy array, and library and device with ``like``."""
    like = expected if like is None else like
    assert type(actual) is type(like)
    assert array_api_compat.device(actual) == array_api_compat.device(like)
    assert actual.dtype == like.dtype
    given = to_numpy(actual)
    assert given.shape == expected.shape
    assert given.dtype == expected.dtype
    if given.dtype.hasobject:
        assert given.tolist() == expected.tolist()
    else:
        assert given.tobytes() == expected.tobytes()


def decode(tensor):
    """Make a NumPy array or a Sequence from a case's tensor; None stays None."""
    if tensor is None:
        return None
    if "seq" in tensor:
        return gs.Sequence([decode(item) for item in tensor["seq"]], tensor["dtype"])
    name, data = tensor["dtype"], tensor["data"]
    if name == "string":
        return np.array(data, dtype=object).reshape(tensor["shape"])
    if name.startswith("complex"):
        data = [complex(*pair) for pair in data]
    elif "float" in name:
        data = [float(item) for item in data]
    return np.array(data, dtype=getattr(ml_dtypes, name, name)).reshape(tensor["shape"])


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


# How the same items may lie in memory.
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
