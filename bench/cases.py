"""What is measured: one table of cases; those of images are in images.py."""

from math import isqrt

from bench import limits
from bench.case import ALL, ALL_WIDTHS, BACK, Case
from bench.images import IMAGES


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


def _equal(parts):
    return lambda dim: [dim // parts] * (parts - 1) + [dim - dim // parts * (parts - 1)]


def _uneven(dim):
    return [dim // 2, dim // 7, 1, dim // 5, dim - dim // 2 - dim // 7 - 1 - dim // 5]


def _over(share, widths=ALL_WIDTHS):
    return dict.fromkeys(widths, share)


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
    Case("transposed", "transposed", _square, axes=(1, 0), targets=_over(0.6), limit=limits.TILES),
    Case("transposed", "Fortran order, rows reversed", _square, (BACK,), axes=(1, 0), limit=limits.TILES),
    Case("split into 4 or 5", "split 4 outside", _rows(4096), split=_equal(4), targets=_over(1.1)),
    Case("split into 4 or 5", "split 4 inside", _rows(4096), split=_equal(4), axis=1, targets=_over(1.1)),
    Case("split into 4 or 5", "split 5 uneven, inside", _rows(4096), split=_uneven, axis=1),
    Case("split into many", "split 64 inside, 16 items each", _columns(1024), split=_equal(64), axis=1,
         targets=_SPLIT_64, limit=limits.NARROW),
    Case("split into many", "split 1,000", _first(1000), split=_equal(1000), limit=limits.OBJECTS),
    Case("joined", "4 parts joined inside", _rows(4096), split=_equal(4), axis=1, joins=True),
    *IMAGES,
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
