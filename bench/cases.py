"""What is measured: one table of cases. A case is a view of an array, or the parts of that view."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import isqrt, prod
from typing import Any

import numpy as np

from bench import limits

ALL_WIDTHS = (1, 2, 4, 8, 16)
# A dtype per width that every library knows. Copying depends only on the width.
DTYPES = {1: "uint8", 2: "float16", 4: "float32", 8: "float64", 16: "complex128"}
LARGE = 128 << 20
SMALL = 1 << 20

ALL = slice(None)
BACK = slice(None, None, -1)

Index = tuple[slice, ...]
Bounds = tuple[list[int], list[int], list[int], list[int]]


@dataclass(frozen=True)
class Case:
    """A view of an array, or the parts of that view.

    Attributes
    ----------
    group : str
        The kind of access: a row of the summary and a group of bars in the chart.
    name : str
    shape : callable
        Returns the shape of the source from its number of items and the bytes per item.
    index : tuple of slice
        What is taken, per axis.
    transposed : bool
        Whether the order of the axes is reversed after `index`.
    split : callable, optional
        Returns the sizes of the parts from the length of the split axis.
    axis : int
        The axis that is split.
    widths : tuple of int
        Bytes per item.
    size : int
        Bytes of the source.
    chain : tuple of Index
        The slices of a graph that takes `index` in several nodes, with a Split after them.
    targets : dict of int to float
        The lowest speed on a CPU that we accept, by bytes per item, as a multiple of the plain copy's speed.
    limit : str
        What limits the speed on a CPU, and what might help.
    ends : tuple of int, optional
        The ends that the model has, if they differ from those of `index`.
    """

    group: str
    name: str
    shape: Callable[[int, int], tuple[int, ...]]
    index: Index = ()
    transposed: bool = False
    split: Callable[[int], list[int]] | None = None
    axis: int = 0
    widths: tuple[int, ...] = ALL_WIDTHS
    size: int = LARGE
    chain: tuple[Index, ...] = ()
    targets: dict[int, float] | None = None
    limit: str = ""
    ends: tuple[int, ...] | None = None

    @property
    def small(self) -> bool:
        """Whether the time of a call matters, not the speed of copying."""
        return self.size < SMALL

    def source(self, width: int) -> np.ndarray:
        """Return the source array, filled with random bits."""
        shape = self.shape(self.size // width, width)
        count = prod(shape) * width
        words = np.random.default_rng(0).integers(0, 1 << 64, -(-count // 8), np.uint64)
        bits = words.view(np.uint8)[:count]
        if width in (2, 16):  # no NaN, so that a library's result can be compared as numbers
            bits &= 0x3F
        return bits.view(DTYPES[width]).reshape(shape)

    def view(self, array: Any) -> Any:
        """Return the view of an array of any library that indexes as NumPy does."""
        view = array[self.index] if self.index else array
        return view.T if self.transposed else view

    def parts(self, view: Any) -> list[Any]:
        """Return the parts of the view; only the view if it is not split."""
        return [view[place] for place in self.places(view.shape)]

    def places(self, shape: Sequence[int]) -> list[Index]:
        """Return the index of each part in a view of a shape."""
        if self.split is None:
            return [()]
        ends = list(accumulate(self.split(shape[self.axis])))
        lead = (ALL,) * self.axis
        return [(*lead, slice(a, b)) for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    def output_shapes(self, shape: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the shapes of the outputs for a source of a shape."""
        return [part.shape for part in self.parts(self.view(np.broadcast_to(np.uint8(), shape)))]

    def bounds(self, shape: Sequence[int], index: Index | None = None) -> Bounds:
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


def _flat(items, _):
    return (items,)


def _rows(row_bytes):
    return lambda items, width: (items * width // row_bytes, row_bytes // width)


def _columns(count):
    return lambda items, _: (items // count, count)


def _first(count):
    return lambda items, _: (count, items // count)


def _fixed(*shape):
    return lambda *_: shape


def _square(items, _):
    side = isqrt(items) // 64 * 64
    return (side, side)


def _image(items, _):
    height = isqrt(items // 4)
    return (height, items // height // 3, 3)


def _equal(parts):
    return lambda dim: [dim // parts] * (parts - 1) + [dim - dim // parts * (parts - 1)]


def _uneven(dim):
    return [dim // 2, dim // 7, 1, dim // 5, dim - dim // 2 - dim // 7 - 1 - dim // 5]


def _over(share, widths=ALL_WIDTHS):
    return dict.fromkeys(widths, share)


_BYTES = (1,)
_SPEECH = -(2**63) + 1
_REVERSED_ROWS = (
    ("64 B", 1 << 6, None),
    ("256 B", 1 << 8, _over(0.85)),
    ("1 KB", 1 << 10, _over(1.0)),
    ("4 KB", 1 << 12, _over(1.0)),
    ("64 KB", 1 << 16, _over(1.0)),
)
_SPLIT_64 = _over(0.7, (1, 2)) | _over(0.8, (4, 8, 16))

CASES = [
    Case("contiguous", "contiguous", _flat, targets=_over(1.2)),
    Case("reversed", "reversed 1-D", _flat, (BACK,), targets=_over(1.2)),
    *(
        Case("reversed rows", f"reversed rows of {name}", _rows(size), (ALL, BACK), targets=targets)
        for name, size, targets in _REVERSED_ROWS
    ),
    Case("reversed outer axis", "reversed outer axis", _rows(4096), (BACK,), targets=_over(1.2)),
    Case("reversed", "reversed both axes", _rows(4096), (BACK, BACK), targets=_over(1.2)),
    Case("steps 2, 3, 7", "step 2", _flat, (slice(None, None, 2),), targets=_over(0.6)),
    Case("steps 2, 3, 7", "step -2", _flat, (slice(None, None, -2),), targets=_over(0.6)),
    Case("steps 2, 3, 7", "step -3", _flat, (slice(None, None, -3),)),
    Case("steps 2, 3, 7", "step 7", _flat, (slice(None, None, 7),), limit=limits.SEVENTH),
    Case("crop", "crop, odd offsets", _rows(4096), (slice(3, -1), slice(1, -2)), targets=_over(1.1)),
    Case("transposed", "transposed", _square, transposed=True, targets=_over(0.6), limit=limits.TILES),
    Case("transposed", "Fortran order, rows reversed", _square, (BACK,), transposed=True, limit=limits.TILES),
    Case("split into 4 or 5", "split 4 outside", _rows(4096), split=_equal(4), targets=_over(1.1)),
    Case("split into 4 or 5", "split 4 inside", _rows(4096), split=_equal(4), axis=1, targets=_over(1.1)),
    Case("split into 4 or 5", "split 5 uneven, inside", _rows(4096), split=_uneven, axis=1),
    Case("split into many", "split 64 inside, 16 items each", _columns(1024), split=_equal(64), axis=1,
         targets=_SPLIT_64, limit=limits.NARROW),
    Case("split into many", "split 1,000", _first(1000), split=_equal(1000), limit=limits.OBJECTS),
    Case("RGB image", "image to planes", _image, split=_equal(3), axis=2,
         widths=_BYTES, targets=_over(1.1, _BYTES), limit=limits.THREE),
    Case("RGB image", "image, channels reversed", _image, (ALL, ALL, BACK), widths=_BYTES, targets=_over(1.1, _BYTES)),
    Case("RGB image", "image mirrored", _image, (ALL, BACK), widths=_BYTES, targets=_over(1.1, _BYTES)),
    Case("graph of 3 nodes", "graph: Slice, Slice, Split 3", _rows(4096), (slice(1, None), BACK),
         split=_equal(3), axis=1, chain=((slice(1, None),), (ALL, BACK))),
    Case("slices of a model", "speech: LSTM gates", _fixed(512, 128), (slice(128, 384),), widths=(4,), size=1 << 18),
    Case("slices of a model", "speech: half of an STFT", _fixed(1, 258, 4), (ALL, slice(129, None)),
         widths=(4,), size=1 << 13),
    Case("slices of a model", "speech: pads reversed", _fixed(4, 2), (BACK,), widths=(8,), size=64, ends=(_SPEECH,)),
    *(
        Case("slice, 64 B to 4 KB", f"tiny reversed rows, {size} B", _first(2), (ALL, BACK), widths=(1, 4), size=size)
        for size in (64, 256, 1024, 4096)
    ),
    *(
        Case("split in 4, 64 B to 4 KB", f"tiny split 4, {size} B", _columns(4), split=_equal(4), axis=1,
             widths=(1, 4), size=size)
        for size in (64, 1024, 4096)
    ),
]  # fmt: skip
