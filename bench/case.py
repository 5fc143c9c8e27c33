"""A case: what is measured, of an array of a size. A case is a view of an array, the parts of it, or parts joined."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

ALL_WIDTHS = (1, 2, 4, 8, 16)
# A dtype per width that every library knows. Copying depends only on the width.
_DTYPES = {1: "uint8", 2: "float16", 4: "float32", 8: "float64", 16: "complex128"}
# OpenCV and Pillow have images of these.
_IMAGE_DTYPES = {1: "uint8", 2: "uint16", 4: "float32"}
LARGE = 128 << 20
SMALL = 1 << 20

ALL = slice(None)
BACK = slice(None, None, -1)

Index = tuple[slice | int, ...]
Bounds = tuple[list[int], list[int], list[int], list[int]]


@dataclass(frozen=True)
class Case:
    """A view of an array, or the parts of that view; or the view put together from its parts.

    Attributes
    ----------
    group : str
        The kind of access: a row of the summary and a group of bars in the chart.
    name : str
    shape : callable
        Returns the shape of the source from its number of items and the bytes per item.
    index : tuple of slice
        What is taken, per axis.
    axes : tuple of int, optional
        The order of the axes after `index`.
    split : callable, optional
        Returns the sizes of the parts from the length of the split axis.
    axis : int
        The axis that is split.
    keeps_axis : bool
        Whether the parts keep the axis that is split. If not, all sizes are 1.
    joins : bool
        Whether the parts are given, each an array of its own, and the view is wanted.
    widths : tuple of int
        Bytes per item.
    size : int
        Bytes of the source.
    chain : tuple of tuple of slice
        The slices of a graph that takes `index` in several nodes, with a Split after them.
    targets : dict of int to float
        The lowest speed on a CPU that we accept, by bytes per item, as a multiple of the plain copy's speed.
    limit : str
        What limits the speed on a CPU, and what might help.
    ends : tuple of int, optional
        The ends that the model has, if they differ from those of `index`.
    recipe : str
        What is done with an image; empty if the array is none.
    channels : int
        Of an image.
    """

    group: str
    name: str
    shape: Callable[[int, int], tuple[int, ...]]
    index: tuple[slice, ...] = ()
    axes: tuple[int, ...] | None = None
    split: Callable[[int], list[int]] | None = None
    axis: int = 0
    keeps_axis: bool = True
    joins: bool = False
    widths: tuple[int, ...] = ALL_WIDTHS
    size: int = LARGE
    chain: tuple[tuple[slice, ...], ...] = ()
    targets: dict[int, float] | None = None
    limit: str = ""
    ends: tuple[int, ...] | None = None
    recipe: str = ""
    channels: int = 0

    @property
    def small(self) -> bool:
        """Whether the time of a call matters, not the speed of copying."""
        return self.size < SMALL

    def dtype(self, width: int) -> str:
        """Return the dtype of items of so many bytes."""
        return (_IMAGE_DTYPES if self.recipe else _DTYPES)[width]

    def source(self, width: int) -> np.ndarray:
        """Return the source array, filled with random bits."""
        shape = self.shape(self.size // width, width)
        count = prod(shape) * width
        words = np.random.default_rng(0).integers(0, 1 << 64, -(-count // 8), np.uint64)
        bits = words.view(np.uint8)[:count]
        if width in (2, 16):  # no NaN, so that a library's result can be compared as numbers
            bits &= 0x3F
        return bits.view(self.dtype(width)).reshape(shape)

    def view(self, array: Any) -> Any:
        """Return the view of an array of any library that indexes as NumPy does."""
        view = array[self.index] if self.index else array
        return view.transpose(self.axes) if self.axes else view

    def parts(self, view: Any) -> list[Any]:
        """Return the parts of the view; only the view if it is not split."""
        return [view[place] for place in self.places(view.shape)]

    def inputs(self, array: Any) -> list[Any]:
        """Return the arrays that are given, for a source of NumPy or CuPy."""
        return [part.copy(order="C") for part in self.parts(self.view(array))] if self.joins else [array]

    def outputs(self, array: Any) -> list[Any]:
        """Return views of the source that hold what is wanted."""
        view = self.view(array)
        return [view] if self.joins else self.parts(view)

    def places(self, shape: Sequence[int]) -> list[Index]:
        """Return the index of each part in a view of a shape."""
        if self.split is None:
            return [()]
        ends = list(accumulate(self.split(shape[self.axis])))
        lead = (ALL,) * self.axis
        if not self.keeps_axis:
            return [(*lead, position) for position in range(len(ends))]
        return [(*lead, slice(a, b)) for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    def output_shapes(self, shape: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the shapes of the outputs for a source of a shape."""
        return [part.shape for part in self.outputs(np.broadcast_to(np.uint8(), shape))]

    def bounds(self, shape: Sequence[int], index: tuple[slice, ...] | None = None) -> Bounds:
        """Return ONNX's starts, ends, axes and steps for `index`, or for another index of an array of a shape."""
        index = self.index if index is None else index
        axes = [axis for axis, one in enumerate(index) if one != ALL]
        places = [index[axis].indices(shape[axis]) for axis in axes]
        # NumPy's stop of a backward slice down to item 0 is -1, which ONNX would count from the end.
        ends = [stop if stop >= 0 else -shape[axis] - 1 for axis, (_, stop, _) in zip(axes, places, strict=True)]
        return [start for start, _, _ in places], list(self.ends or ends), axes, [step for _, _, step in places]

    def of_size(self, size: int) -> "Case":
        """Return the case with a source of at most so many bytes."""
        return replace(self, size=min(size, self.size))
