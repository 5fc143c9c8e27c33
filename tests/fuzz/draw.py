"""Draw random plans: source views and target views in memory of exactly the bytes that they span.

The address sanitizer thus sees any access beside them.
"""

import ctypes
import random
from math import prod

import numpy as np

from gpuslice.engine.plan import Tuning
from gpuslice.engine.plan.kernel_sources import is_listed

ITEMSIZES = [1, 1, 1, 2, 2, 4, 4, 8, 16, 3, 5, 6, 12, 24, 48]
# Around every vector and tile boundary.
EDGES = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257]
# Forms of the sources of a plan, and the forms that give kinds of kernels which are rare otherwise.
FORMS = [
    "one",
    "one",
    "split",
    "split",
    "many",
    "channels",
    "joined",
    "mixed",
    "transposed",
    "pixels",
    "thinned",
    "long",
    "stacks",
]
FORMS_FOR = {
    "tiles": ["transposed"],
    "planes": ["channels"],
    "interleaved": ["joined"],
    "pixel_tiles": ["pixels"],
    "pixel_rows": ["thinned"],
    "unstacked": ["stacks"],
    "stacked": ["stacks"],
}
# How many items of a pixel each array of the form "joined" has.
JOINED = [(1, 1), (1, 1, 1), (1, 1, 1, 1), (3, 1), (1, 3), (2, 1), (2, 2), (1, 1, 1, 1, 1)]
# How many arrays a plan of the form "stacks" has: around the vectors and tiles of each width.
STACKED = [2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 129, 257, 300]
MANY = 5
LARGEST_SPAN = 1 << 20


class Memory:
    """Bytes with nothing usable before or after them."""

    def __init__(self, library, size):
        self.library, self.size = library, size
        self.address = library.exact_alloc(max(1, size))
        self.bytes = np.frombuffer((ctypes.c_ubyte * max(1, size)).from_address(self.address), np.uint8)[:size]

    def __del__(self):
        self.library.exact_free(self.address)

    def view(self, offset, shape, strides, itemsize):
        """View part of the memory as items of so many bytes."""
        return np.ndarray(shape, f"V{itemsize}", self.bytes, offset if prod(shape) else 0, strides)


class Draw:
    """Random sources, targets and tuning from one seed, the same for every run; ``kinds`` are the kernels to reach."""

    def __init__(self, library, seed, kinds=()):
        self.library = library
        self.forms = [form for kind in kinds for form in FORMS_FOR.get(kind, FORMS)] or FORMS
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def memory(self, size):
        """Allocate memory and fill it with random bytes."""
        memory = Memory(self.library, size)
        memory.bytes[:] = self.numbers.integers(0, 256, size, np.uint8)
        return memory

    def itemsize(self):
        """Draw the bytes per item."""
        return self.random.choice(ITEMSIZES)

    def shape(self, most):
        """Draw a shape of at most ``most`` items; sizes may be zero."""
        rank = self.random.randrange(1, 7)
        edges = EDGES if self.random.random() < 0.5 else EDGES[:12]
        shape = [self.random.choice(edges) if self.random.random() < 0.97 else 0 for _ in range(rank)]
        while prod(max(1, n) for n in shape) > most:
            shape[self.random.randrange(rank)] = self.random.choice([1, 2, 3])
        return shape

    def layout(self, shape, itemsize):
        """Draw byte strides for a shape, of either sign; return them, the offset of item 0 and the span."""
        order = self.random.sample(range(len(shape)), len(shape)) if self.random.random() < 0.4 else range(len(shape))
        strides, step = [0] * len(shape), itemsize
        for axis in reversed(order):
            gap = self.random.choice([1, 1, 1, 2, 3, 4, 5]) if self.random.random() < 0.5 else 1
            if step * gap * prod(max(1, n) for n in shape) > LARGEST_SPAN:
                gap = 1
            strides[axis] = step * gap * self.random.choice([1, 1, -1])
            step = step * gap * max(1, shape[axis]) + self.random.choice([0, 0, 0, 1, itemsize, 7])
        low = sum(min(0, stride * (n - 1)) for stride, n in zip(strides, shape, strict=True) if n)
        high = sum(max(0, stride * (n - 1)) for stride, n in zip(strides, shape, strict=True) if n)
        return tuple(strides), -low, high - low + itemsize

    def shape_of(self, form, itemsize):
        """Draw the shape of a source."""
        shape = self.shape(6000 if form == "many" and self.random.random() < 0.1 else 2000)
        if form == "transposed":
            shape = [self.random.choice(EDGES[8:]), self.random.choice(EDGES[8:18])]
            shape.insert(self.random.randrange(3), self.random.choice([1, 1, 2]))
        if form == "pixels":
            channels = self.random.choice([2, 3, 3, 3, 3, 4, 5, 6, 7, 9, 24])
            edges = EDGES[8:] if channels * itemsize <= 12 else EDGES[2:14]
            shape = [
                self.random.choice([1, 1, 1, 2]),
                self.random.choice(edges),
                self.random.choice(edges[:9]),
                channels,
            ]
            if self.random.random() < 0.5:
                shape[1:3] = shape[2:0:-1]
        if form == "thinned":
            shape = [
                self.random.choice([1, 2, 3, 5]),
                self.random.choice(EDGES[6:]),
                self.random.choice([3, 3, 3, 4, 5]),
            ]
        if form == "long":  # rows about as long as what a block of 32 threads moves at once
            shape = [self.random.randrange(1, 5), self.random.randrange(1500, 3000) // itemsize]
        if form == "channels":
            rows, columns = self.random.randrange(1, 3), self.random.randrange(1, 4)
            shape = [rows, columns, self.random.choice(EDGES), self.random.randrange(2, 5)]
        return shape

    def layout_of(self, form, shape, itemsize):
        """Draw the strides of a source; return them, the offset of item 0 and the span."""
        strides, offset, span = self.layout(shape, itemsize)
        if form == "transposed":
            strides, offset, span = np.empty(shape, f"V{itemsize}", order="F").strides, 0, prod(shape) * itemsize
        if form == "pixels":  # columns of rows that may have more pixels than are taken
            unit, run, channels = shape[1:]
            pitch = (unit + self.random.choice([0, 0, 1, 5])) * channels
            strides = [run * pitch, channels, pitch, 1]
            steps = [stride * itemsize * self.random.choice([1, 1, -1]) for stride in strides]
            offset = sum((count - 1) * -step for count, step in zip(shape, steps, strict=True) if step < 0)
            span = sum((count - 1) * abs(step) for count, step in zip(shape, steps, strict=True)) + itemsize
            strides = tuple(steps)
        if form == "thinned":
            step, pixel = self.random.choice([2, 2, 3, 4, 7]), shape[2] * itemsize
            pitch = (shape[1] * step + self.random.choice([0, 0, 1, 5])) * pixel
            order, back = self.random.choice([1, 1, -1]), self.random.choice([1, 1, -1])
            strides = (back * pitch, order * step * pixel, itemsize)
            offset = (shape[0] - 1) * pitch * (back < 0) + (shape[1] - 1) * step * pixel * (order < 0)
            span = (shape[0] - 1) * pitch + (shape[1] - 1) * step * pixel + pixel
        if form == "channels":
            order, swap = self.random.choice([1, -1]), self.random.choice([1, -1])
            pixel = shape[3] * itemsize
            strides = (pixel * shape[2] * shape[1], pixel * shape[2], order * pixel, swap * itemsize)
            offset = (shape[2] - 1) * pixel * (order < 0) + (shape[3] - 1) * itemsize * (swap < 0)
            span = prod(shape) * itemsize
        if self.random.random() < 0.1:  # items that are repeated along an axis
            repeated = self.random.randrange(len(shape))
            strides = tuple(0 if axis == repeated else stride for axis, stride in enumerate(strides))
        return strides, offset, span

    def sources(self, itemsize):
        """Draw the sources of parts: one view, the pieces of a split, channels, or views with nothing in common.

        Return their memory, the views, and the axis that is split, if one is.
        """
        form = self.random.choice(self.forms)
        if form == "joined":
            return self.joined(itemsize, self.random.choice(JOINED))
        if form == "stacks":
            return self.stacks(itemsize)
        shape = self.shape_of(form, itemsize)
        strides, offset, span = self.layout_of(form, shape, itemsize)
        lead = self.random.choice([0, self.random.randrange(16)])
        memory = self.memory(lead + span)
        whole = memory.view(lead + offset, shape, strides, itemsize)
        if form == "transposed" and self.random.random() < 0.5:
            whole = whole[::-1] if self.random.random() < 0.5 else whole[:, ::-1, 1:]
        if form == "mixed":
            return memory, [whole, whole[..., ::-1], whole[::-1], whole[..., : shape[-1] // 2]], None
        if form in ("one", "transposed", "long") or (form in ("channels", "pixels") and self.random.random() < 0.5):
            return memory, [whole], None
        if form == "pixels":
            return memory, np.split(whole, self.cuts(shape[0], form), axis=0), 0
        axis = len(shape) - 1 if form == "channels" else self.random.randrange(len(shape))
        return memory, np.split(whole, self.cuts(shape[axis], form), axis=axis), axis

    def stacks(self, itemsize):
        """Draw sources that are the columns of one array, or that become those of the target."""
        count = self.random.choice(STACKED if self.random.random() < 0.7 else STACKED[3:12])
        shape = [self.random.choice([1, 1, 2]), self.random.choice([1, 1, 3]), self.random.choice(EDGES[4:])]
        if count > 64:
            shape[self.random.randrange(2)] = 1
        if self.random.random() < 0.5:
            return self.joined(itemsize, (1,) * count, shape)
        gaps = [self.random.choice([0, 0, 1, 3]), self.random.choice([0, 0, 0, 1, 5])]
        rows = (shape[0], shape[1], shape[2] + gaps[0], count + gaps[1])
        lead = itemsize * self.random.randrange(16) + self.random.choice([0, 0, 0, 1])
        memory = self.memory(lead + prod(rows) * itemsize)
        whole = np.ndarray(rows, f"V{itemsize}", memory.bytes, lead)[:, :, : shape[2], :count]
        whole = whole[tuple(slice(None, None, self.random.choice([1, 1, -1])) for _ in range(3))]
        return memory, np.split(whole, count, axis=3), 3

    def joined(self, itemsize, counts, shape=None):
        """Draw sources of neighbouring items of a target, of one shape but for the last axis and mostly of one form."""
        gaps = self.random.random() < 0.3
        shape = shape or [self.random.randrange(1, 3), self.random.choice([1, 2]), self.random.choice(EDGES)]
        flips = [self.random.choice([1, 1, -1]) for _ in shape]
        rows = [shape[1] + self.random.randrange(3) * gaps, shape[2] + self.random.randrange(5) * gaps]
        sizes = [shape[0] * rows[0] * rows[1] * count * itemsize for count in counts]
        few = len(counts) < MANY  # of many, one would always be unlike the others
        starts, at = [], self.random.choice([0, itemsize, self.random.randrange(16)])
        for size in sizes:
            starts.append(at)
            at += size + itemsize * self.random.randrange(20) + self.random.choice([0, 0, 0, 0, 1 if few else 0])
        memory = self.memory(at)
        views = []
        for start, count in zip(starts, counts, strict=True):
            whole = np.ndarray((shape[0], *rows, count), f"V{itemsize}", memory.bytes, start)
            view = whole[:, : shape[1], : shape[2]]
            odd = few and self.random.random() < 0.05
            views.append(view[tuple(slice(None, None, -flip if odd else flip) for flip in flips)])
        return memory, views, -1

    def cuts(self, dim, form):
        """Draw where to split an axis."""
        if form in ("channels", "many") or dim < 2:
            return list(range(1, dim))
        pieces = self.random.choice([2, 3, 4, 8, self.random.randrange(1, 12)])
        if dim % pieces == 0 and self.random.random() < 0.5:
            return [dim // pieces * i for i in range(1, pieces)]
        return sorted(self.random.randrange(dim + 1) for _ in range(pieces - 1))

    def targets(self, views, itemsize, axis=None):
        """Allocate one target per view: contiguous, or of any strides, or side by side in one array along ``axis``.

        Return the memory, the offset and the strides of each.
        """
        if axis is not None and self.random.random() < (0.8 if axis == -1 else 0.2):
            return self.side_by_side(views, itemsize, axis)
        strided = len(views) == 1 and self.random.random() < 0.25
        targets = []
        for view in views:
            if strided:
                strides, offset, span = self.layout(view.shape, itemsize)
            else:
                strides, offset, span = np.ndarray(view.shape, f"V{itemsize}").strides, 0, view.nbytes
            odd = self.random.randrange(16) * (1 if len(views) < MANY else itemsize)
            lead = self.random.choice([0, 0, 0, 16, itemsize, odd])
            targets.append((Memory(self.library, lead + span), lead + offset, strides))
        return targets

    def side_by_side(self, views, itemsize, axis, *, dense=False):
        """Allocate targets that are one array together, as `targets` returns them."""
        shape = list(views[0].shape)
        shape[axis] = sum(view.shape[axis] for view in views)
        strides, offset, span = self.layout(shape, itemsize)
        if dense or self.random.random() < 0.5:
            strides, offset, span = np.ndarray(shape, f"V{itemsize}").strides, 0, prod(shape) * itemsize
        lead = self.random.choice([0, 0, itemsize, itemsize if dense else self.random.randrange(16)])
        memory = Memory(self.library, lead + span)
        starts = [sum(view.shape[axis] for view in views[:i]) for i in range(len(views))]
        return [(memory, lead + offset + start * strides[axis], strides) for start in starts]

    def tuning(self, usual):
        """Draw how large the tiles are, and which parts take turns."""
        tile_bytes, entry_bytes, shared_bytes = (self.random.choice([48, 256, 4096, 16384, 65536]) for _ in range(3))
        return Tuning(tile_bytes, usual.tile_sides, self.random.choice([64, 512, 4096]), entry_bytes, shared_bytes)

    def source_for(self, kernel):
        """Draw views that a kernel should move, and their targets.

        They begin at an odd item and have odd sizes, so that no two items become one.
        """
        kind, width, variant = kernel
        count, far = self.random.randrange(301, 901, 2), abs(variant)
        if kind == "rows" and not far:
            far = next(step for step in range(self.random.choice([2, 5, 9]), 99) if not is_listed(kind, width, step))
        if kind in ("planes", "interleaved"):
            far = sum(kernel.channels)
        if kind == "pixel_rows" and not far:
            far = self.random.choice([3, 5, 8])
        if kind == "pixel_tiles":
            far = variant or self.random.choice([n for n in (2, 3, 4, 5, 7, 24) if not is_listed(kind, width, n)])
            far = min(far, 64 // width)
        shape = {
            "rows": (count * far,),
            "tiles": (count // 4 * 2 + 1, 67),
            "pixel_tiles": (count // 8 * 2 + 1, 67, far),
            "pixel_rows": (count * far, 3),
            "unstacked": (count, 37),
            "stacked": (count, 37),
        }.get(kind, (count, far))
        memory = self.memory((1 + prod(shape)) * width)
        whole = np.ndarray(shape, f"V{width}", memory.bytes, width)
        cuts = np.cumsum(kernel.channels)[:-1]
        if kind == "interleaved":
            arrays = np.split(whole.reshape(-1), cuts * count)
            views = [array.reshape(count, -1)[:: 1 if variant > 0 else -1] for array in arrays]
            return memory, views, self.side_by_side(views, width, 1, dense=True)
        if kind == "stacked":
            return (
                memory,
                list(whole.reshape(37, count, 1)),
                self.side_by_side([whole[:, :1]] * 37, width, 1, dense=True),
            )
        if kind == "unstacked":
            views = np.split(whole, 37, axis=1)
        elif kind == "planes":
            views = np.split(whole[:: 1 if variant > 0 else -1], cuts, axis=1)
        elif kind == "rows":
            views = [whole[:: far if variant >= 0 else -far]]
        elif kind == "pixel_tiles":
            reversible = far * width <= 16 and self.random.random() < 0.5
            views = [whole.transpose(1, 0, 2)[..., :: -1 if reversible else 1]]
        elif kind == "pixel_rows":
            views = [whole[:: far if variant or self.random.random() < 0.5 else -far]]
        else:
            views = [whole.T if kind == "tiles" else np.flip(whole, 1 if variant > 0 else 0)]
        strides = [np.ndarray(view.shape, view.dtype).strides for view in views]
        return memory, views, [(Memory(self.library, v.nbytes), 0, s) for v, s in zip(views, strides, strict=True)]
