"""Whether arrays share memory, from their addresses alone: no memory is read, which may be a device's."""

from collections import abc

import numpy as np
from numpy.lib.array_utils import byte_bounds

from gpuslice.dtypes import itemsize
from gpuslice.libraries import Array, address_of_numpy, library_of

# np.shares_memory is exact, and its time may grow exponentially. Past this much work, two strided arrays whose bounds
# overlap count as overlapping.
_MOST_WORK = 10_000


def check_disjoint(inputs: abc.Sequence[Array], outs: abc.Sequence[Array]) -> None:
    """Raise ValueError if an array of ``outs`` shares memory with an input or with another one of ``outs``."""
    if not _bounds_are_disjoint([*inputs, *outs]) and _any_overlap(inputs, outs):
        raise ValueError("out must not overlap an input, and its arrays must not overlap each other")


def _bounds_are_disjoint(arrays: abc.Sequence[Array]) -> bool:
    """Return whether no array begins before another ends."""
    end = 0
    for bounds in sorted([_bounds(array) for array in arrays if 0 not in array.shape]):
        if bounds[0] < end:
            return False
        end = bounds[1]
    return True


def _any_overlap(inputs: abc.Sequence[Array], outs: abc.Sequence[Array]) -> bool:
    """Return whether any out shares an address with another out or with an input."""
    marked = [(array, False) for array in inputs] + [(array, True) for array in outs]
    spans = [(*_bounds(array), writes, array) for array, writes in marked if 0 not in array.shape]
    # A sweep over the addresses: only arrays whose bounds overlap are compared.
    open_spans: list[tuple[int, int, bool, Array]] = []
    for span in sorted(spans, key=lambda span: span[:2]):
        open_spans = [other for other in open_spans if other[1] > span[0]]
        if any((span[2] or other[2]) and _share_items(span[3], other[3]) for other in open_spans):
            return True
        open_spans.append(span)
    return False


def _bounds(array: Array) -> tuple[int, int]:
    """Return the first address of an array and the one after its last."""
    if isinstance(array, np.ndarray) and array.flags.c_contiguous:
        start = address_of_numpy(array)
        return start, start + array.nbytes
    return byte_bounds(_same_addresses(array))


def _share_items(left: Array, right: Array) -> bool:
    """Return whether two arrays share memory, or may share it if the answer takes too long."""
    try:
        return np.shares_memory(_same_addresses(left), _same_addresses(right), max_work=_MOST_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


class _Addresses:
    """Tells NumPy where the items of an array are."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> None:
        interface = {"version": 3, "typestr": f"|V{itemsize}", "data": (address, True)}
        self.__array_interface__ = interface | {"shape": shape, "strides": strides}


def _same_addresses(array: Array) -> Array:
    """Return a NumPy array with the addresses of an array. (CuPy's own shares_memory sorts them on the device.)"""
    if isinstance(array, np.ndarray):
        return array
    library = library_of(array, "out")
    if library.address is None or library.strides is None:
        return np.from_dlpack(array)
    place = _Addresses(library.address(array), tuple(array.shape), library.strides(array), itemsize(array.dtype))
    return np.asarray(place)
