"""The one decision "NumPy or kernels": for a few small NumPy arrays NumPy is done before a plan is looked up."""

from collections import abc

from gpuslice.engine.views import Joined, View, index_of
from gpuslice.libraries import NUMPY, Array

SMALL_BYTES = 1 << 15
FEW_VIEWS = 8
# NumPy copies contiguous bytes at the speed of memcpy, so they count less.
_CONTIGUOUS_WEIGHT = 1 / 8


def small_numpy_arrays(views: abc.Sequence[View | Joined]) -> list[Array] | None:
    """Return the views as NumPy arrays if NumPy copies them faster than the kernels do; else None.

    Parameters
    ----------
    views : sequence of View or Joined
        Sources, or targets: both sides of a copy have to pass.
    """
    if len(views) > FEW_VIEWS:
        return None
    arrays = []
    weight = 0.0
    for view in views:
        if view.library is not NUMPY or type(view) is Joined:
            return None
        array = view.array[index_of(view.region)]  # type: ignore[union-attr]
        weight += array.nbytes * _CONTIGUOUS_WEIGHT if array.flags.c_contiguous else array.nbytes
        arrays.append(array)
    return arrays if weight < SMALL_BYTES else None
