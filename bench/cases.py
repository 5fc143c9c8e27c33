"""What is measured: one table of cases, each a view of an array, or the parts of one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from math import isqrt, prod

import numpy as np

ALL_WIDTHS = (1, 2, 4, 8, 16)
# An item type of each width that every peer knows. Data movement does not care which.
DTYPES = {1: "uint8", 2: "float16", 4: "float32", 8: "float64", 16: "complex128"}
LARGE = 128 << 20

ALL = slice(None)
BACK = slice(None, None, -1)

Index = tuple[slice, ...]


@dataclass(frozen=True)
class Case:
    """A view of an array, or its parts.

    Attributes
    ----------
    group : str
        The class of access, a panel of the chart.
    name : str
    shape : callable
        Gives the source's shape from its number of items and their width in bytes.
    index : tuple of slice
        What is taken, an axis.
    transposed : bool
        Whether the axes are read in the opposite order, after `index`.
    split : callable, optional
        Gives the sizes of the parts from the extent of the axis.
    axis : int
        Which axis is split.
    widths : tuple of int
        Bytes of an item.
    size : int
        Bytes of the source.
    chain : tuple of Index
        Slices by which a graph takes `index` in several nodes; the parts come from a Split after them.
    targets : dict of int to float
        Least share of the copy's rate on a CPU, a width.
    limit : str
        What keeps it from being faster on a CPU, and what might lift that.
    ends : tuple of int, optional
        The model's own ends, where they are other than the slice's.
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

    def source(self, width: int) -> np.ndarray:
        """Make the source array, of random bits."""
        shape = self.shape(self.size // width, width)
        bits = np.random.default_rng(0).integers(0, 256, prod(shape) * width, np.uint8)
        if width in (2, 16):  # no NaN, so that what peers give can be compared as numbers
            bits &= 0x3F
        return bits.view(DTYPES[width]).reshape(shape)

    def view(self, array):
        """Give the view, of an array of any library that has NumPy's indexing."""
        view = array[self.index] if self.index else array
        return view.T if self.transposed else view

    def parts(self, view):
        """Give the parts of the view; one where it is not split."""
        return [view[place] for place in self.places(view.shape)]

    def places(self, shape: tuple[int, ...]) -> list[Index]:
        """Say where the parts of a view of a shape are."""
        if self.split is None:
            return [()]
        ends = list(accumulate(self.split(shape[self.axis])))
        lead = (ALL,) * self.axis
        return [(*lead, slice(a, b)) for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    def sizes(self, width: int) -> list[int]:
        """Give the sizes of the parts."""
        shape = self.view(np.broadcast_to(np.uint8(), self.shape(self.size // width, width))).shape
        return self.split(shape[self.axis])

    def of_size(self, size: int) -> "Case":
        """Give the case with a source of at most so many bytes."""
        return replace(self, size=min(size, self.size))


def _flat(items, _):
    return (items,)


def _rows(row_bytes):
    return lambda items, width: (items * width // row_bytes, row_bytes // width)


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
_TURNED = (
    "a tile reads a cache line or a few from each of many rows and writes a few to each of many others, one after the "
    "other: reading the next tile while this one is written made both slower. Rows that lie a power of two apart share "
    "sets of the caches besides. Turning 32 bytes at a time might lift it."
)
_NARROW = (
    "each row is cut into 64 runs of 1 to 16 vectors for as many targets. A target that does not begin with a cache line "
    "has two lines a tile written in part; of 16-byte runs each vector is a line of its own to read. Tiles that end with "
    "lines of the target might lift it."
)
_OBJECTS = (
    "1,000 parts of 128 KiB: a view, checks and an address are made a part, in Python, 4 to 6 microseconds beside the 13 "
    "that copying the part takes. Addresses computed without an object a part might lift it."
)
_FAR = (
    "of every cache line read a seventh is wanted, so 0.25 to 0.29 is the most that the bytes moved allow, and peers "
    "reach it too."
)
_THREE = (
    "three targets in turns, by stores that fetch each line first. Stores past the caches were half as fast where the "
    "targets agree in the low 12 bits of their addresses. Planes staged and written one after the other might lift it."
)
_SPEECH = -(2**63) + 1

CASES = [
    Case("contiguous", "contiguous", _flat, targets=_over(1.2)),
    Case("reversed", "reversed 1-D", _flat, (BACK,), targets=_over(1.2)),
    *(
        Case("reversed rows", f"reversed rows of {name}", _rows(size), (ALL, BACK), targets=_over(share) if share else None)
        for name, size, share in [("64 B", 64, 0), ("256 B", 256, 0.85), ("1 KB", 1 << 10, 1.0), ("4 KB", 1 << 12, 1.0), ("64 KB", 1 << 16, 1.0)]
    ),
    Case("reversed outside", "reversed outer axis", _rows(4096), (BACK,), targets=_over(1.2)),
    Case("reversed", "reversed both axes", _rows(4096), (BACK, BACK), targets=_over(1.2)),
    Case("steps", "step 2", _flat, (slice(None, None, 2),), targets=_over(0.6)),
    Case("steps", "step -2", _flat, (slice(None, None, -2),), targets=_over(0.6)),
    Case("steps", "step -3", _flat, (slice(None, None, -3),)),
    Case("steps", "step 7", _flat, (slice(None, None, 7),), limit=_FAR),
    Case("crop", "crop, odd offsets", _rows(4096), (slice(3, -1), slice(1, -2)), targets=_over(1.1)),
    Case("transposed", "transposed", _square, transposed=True, targets=_over(0.6), limit=_TURNED),
    Case("transposed", "Fortran order, rows reversed", _square, (BACK,), transposed=True, limit=_TURNED),
    Case("split", "split 4 outside", _rows(4096), split=_equal(4), targets=_over(1.1)),
    Case("split", "split 4 inside", _rows(4096), split=_equal(4), axis=1, targets=_over(1.1)),
    Case("split", "split 5 uneven, inside", _rows(4096), split=_uneven, axis=1),
    Case("many parts", "split 64 inside, 16 items each", lambda items, _: (items // 1024, 1024), split=_equal(64), axis=1, targets=_over(0.7, (1, 2)) | _over(0.8, (4, 8, 16)), limit=_NARROW),
    Case("many parts", "split 1,000", lambda items, _: (1000, items // 1000), split=_equal(1000), limit=_OBJECTS),
    Case("image", "image to planes", _image, split=_equal(3), axis=2, widths=_BYTES, targets=_over(1.1, _BYTES), limit=_THREE),
    Case("image", "image, channels reversed", _image, (ALL, ALL, BACK), widths=_BYTES, targets=_over(1.1, _BYTES)),
    Case("image", "image mirrored", _image, (ALL, BACK), widths=_BYTES, targets=_over(1.1, _BYTES)),
    Case("graph", "graph: Slice, Slice, Split 3", _rows(4096), (slice(1, None), BACK), split=_equal(3), axis=1, chain=((slice(1, None),), (ALL, BACK))),
    Case("speech model", "speech: LSTM gates", lambda *_: (512, 128), (slice(128, 384),), widths=(4,), size=1 << 18),
    Case("speech model", "speech: half of an STFT", lambda *_: (1, 258, 4), (ALL, slice(129, None)), widths=(4,), size=1 << 13),
    Case("speech model", "speech: pads turned round", lambda *_: (4, 2), (BACK,), widths=(8,), size=64, ends=(_SPEECH,)),
    *(
        Case("tiny", f"tiny reversed rows, {size} B", lambda items, _: (2, items // 2), (ALL, BACK), widths=(1, 4), size=size)
        for size in (64, 256, 1024, 4096)
    ),
    *(
        Case("tiny", f"tiny split 4, {size} B", lambda items, _: (items // 4, 4), split=_equal(4), axis=1, widths=(1, 4), size=size)
        for size in (64, 1024, 4096)
    ),
]  # fmt: skip
