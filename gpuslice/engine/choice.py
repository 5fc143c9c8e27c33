"""The one decision "NumPy or kernels". For a few small NumPy arrays a look-up of the plan takes longer than NumPy."""

from collections import abc

from gpuslice.engine.views import Joined, View, index_of
from gpuslice.libraries import NUMPY, Array

SMALL_BYTES = 1 << 15
_FEW_VIEWS = 8
# NumPy copies contiguous bytes at the speed of memcpy, so they count less.
_CONTIGUOUS_WEIGHT = 1 / 8


def small_numpy_arrays(values: abc.Sequence[View | Joined]) -> list[Array] | None:
    """Return the values as NumPy arrays if NumPy copies them faster than the kernels do; else None.

    None for a Joined too: `copy_is_small` looks at its parts.
    """
    if len(values) > _FEW_VIEWS:
        return None
    arrays = []
    for value in values:
        if value.library is not NUMPY or type(value) is Joined:
            return None
        arrays.append(value.array[index_of(value.region)])  # type: ignore[union-attr]
    return arrays if are_small(arrays) else None


def are_small(arrays: abc.Iterable[Array]) -> bool:
    """Return whether NumPy arrays are small enough for NumPy's own copy."""
    weight = 0.0
    for array in arrays:
        weight += array.nbytes * _CONTIGUOUS_WEIGHT if array.flags.c_contiguous else array.nbytes
    return weight < SMALL_BYTES


def copy_is_small(pairs: abc.Sequence[tuple[View, View]]) -> bool:
    """Return whether NumPy copies sources to targets faster than the kernels do: both sides have to be small."""
    sources, targets = zip(*pairs, strict=True)
    return small_numpy_arrays(targets) is not None and small_numpy_arrays(sources) is not None
