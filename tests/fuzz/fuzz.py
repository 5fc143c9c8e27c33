"""Random plans through the emulated CUDA kernels and the host kernels, against NumPy, byte for byte.

    python tests/fuzz/build.py FOLDER && python tests/fuzz/fuzz.py FOLDER --seed 1 --count 1000

Sources and targets are allocations of exactly the bytes their views span, so that the address sanitizer sees any access
beside them; targets are poisoned before, and compared whole after.
"""

import argparse
import ctypes
import json
import mmap
import random
import sys
import time
from collections import Counter
from math import prod
from pathlib import Path

import numpy as np

from gpuslice.engine.packing import CUDA_32, CUDA_64, HOST, Dialect, index_bits, pack
from gpuslice.engine.plan import Part, plan

KINDS = {"rows": 0, "planes": 1, "rearranged": 2, "tiles": 3}
ITEMSIZES = [1, 1, 1, 2, 2, 4, 4, 8, 16, 3, 5, 6, 12, 24, 48]
# Around every vector and tile boundary.
EDGES = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257]
POISON = 0xA5
LARGEST_SPAN = 1 << 20
NORESERVE = 0x4000  # Linux's MAP_NORESERVE, which Python does not name


class Memory:
    """Bytes with nothing usable before or after them."""

    def __init__(self, library, size):
        self.library, self.size = library, size
        self.address = library.exact_alloc(max(1, size))
        self.bytes = np.frombuffer((ctypes.c_ubyte * max(1, size)).from_address(self.address), np.uint8)[:size]

    def __del__(self):
        self.library.exact_free(self.address)


class Fuzz:
    """Random plans on the kernels of a folder."""

    def __init__(self, folder, seed, few=False):
        self.few = few
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.cuda = ctypes.CDLL(str(Path(folder) / "emulate.so"))
        self.cuda.exact_alloc.restype = ctypes.c_void_p
        self.cuda.exact_alloc.argtypes = [ctypes.c_size_t]
        self.cuda.exact_free.argtypes = [ctypes.c_void_p]
        self.cuda.emulate.argtypes = [*[ctypes.c_int] * 5, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint]
        self.hosts = [] if few else [ctypes.CDLL(str(path)) for path in sorted(Path(folder).glob("host*.so"))]
        for host in self.hosts:
            host.gpuslice_copy.argtypes = [*[ctypes.c_int] * 3, ctypes.c_char_p, ctypes.c_ulonglong, ctypes.c_int]
        self.counts = Counter()

    def shape(self, most):
        """Draw a shape of at most ``most`` items, zero sizes included."""
        rank = self.random.randrange(1, 7)
        edges = EDGES if self.random.random() < 0.5 else EDGES[:12]
        shape = [self.random.choice(edges) if self.random.random() < 0.97 else 0 for _ in range(rank)]
        while prod(max(1, n) for n in shape) > most:
            shape[self.random.randrange(rank)] = self.random.choice([1, 2, 3])
        return shape

    def layout(self, shape, itemsize):
        """Draw byte strides for a shape, of either sign, and give them with the offset of item 0 and the span."""
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

    def view(self, memory, offset, shape, strides, itemsize):
        """View part of a memory as items of so many bytes."""
        return np.ndarray(shape, f"V{itemsize}", memory.bytes, offset if prod(shape) else 0, strides)

    def parts(self, itemsize):
        """Draw sources of parts: one view, the pieces of a split, channels, or views that have nothing in common."""
        form = self.random.choice(["one", "one", "split", "split", "many", "channels", "mixed", "transposed", "long"])
        shape = self.shape(6000 if form == "many" and self.random.random() < 0.1 else 2000)
        if form == "transposed":
            shape = [self.random.choice(EDGES[8:]), self.random.choice(EDGES[8:18])]
            shape.insert(self.random.randrange(3), self.random.choice([1, 1, 2]))
        if form == "long":  # rows about as long as what a block of 32 threads moves at once
            shape = [self.random.randrange(1, 5), self.random.randrange(1500, 3000) // itemsize]
        if form == "channels":
            rows, columns = self.random.randrange(1, 3), self.random.randrange(1, 4)
            shape = [rows, columns, self.random.choice(EDGES), self.random.randrange(2, 5)]
        strides, offset, span = self.layout(shape, itemsize)
        if form == "transposed":
            strides, offset, span = np.empty(shape, f"V{itemsize}", order="F").strides, 0, prod(shape) * itemsize
        if form == "channels":
            turn, swap = self.random.choice([1, -1]), self.random.choice([1, -1])
            pixel = shape[3] * itemsize
            strides = (pixel * shape[2] * max(1, shape[1]), pixel * shape[2], turn * pixel, swap * itemsize)[
                -len(shape) :
            ]
            offset = (shape[2] - 1) * pixel * (turn < 0) + (shape[3] - 1) * itemsize * (swap < 0)
            span = prod(shape) * itemsize
        if self.random.random() < 0.1:  # items that are repeated along an axis
            repeated = self.random.randrange(len(shape))
            strides = tuple(0 if axis == repeated else stride for axis, stride in enumerate(strides))
        lead = self.random.choice([0, self.random.randrange(16)])
        memory = Memory(self.cuda, lead + span)
        memory.bytes[:] = self.numbers.integers(0, 256, memory.size, np.uint8)
        whole = self.view(memory, lead + offset, shape, strides, itemsize)
        if form == "transposed" and self.random.random() < 0.5:
            whole = whole[::-1] if self.random.random() < 0.5 else whole[:, ::-1, 1:]
        if form in ("one", "mixed", "transposed", "long") or (form == "channels" and self.random.random() < 0.5):
            axis = None
            views = [whole] if form != "mixed" else [whole, whole[..., ::-1], whole[::-1], whole[..., : shape[-1] // 2]]
        else:
            axis = len(shape) - 1 if form == "channels" else self.random.randrange(len(shape))
            views = np.split(whole, self.cuts(shape[axis], form), axis=axis)
        return memory, views, axis

    def cuts(self, dim, form):
        """Draw where to split an axis."""
        if form in ("channels", "many") or dim < 2:
            return list(range(1, dim))
        pieces = self.random.choice([2, 3, 4, 8, self.random.randrange(1, 12)])
        if dim % pieces == 0 and self.random.random() < 0.5:
            return [dim // pieces * i for i in range(1, pieces)]
        return sorted(self.random.randrange(dim + 1) for _ in range(pieces - 1))

    def targets(self, views, itemsize, axis=None):
        """Allocate a target a view: contiguous, or of any strides, or side by side in one array along ``axis``."""
        if axis is not None and self.random.random() < 0.2:
            shape = list(views[0].shape)
            shape[axis] = sum(view.shape[axis] for view in views)
            strides, offset, span = self.layout(shape, itemsize)
            memory = Memory(self.cuda, span)
            starts = [sum(view.shape[axis] for view in views[:i]) for i in range(len(views))]
            return [(memory, offset + start * strides[axis], strides) for start in starts]
        strided = len(views) == 1 and self.random.random() < 0.25
        targets = []
        for view in views:
            if strided:
                strides, offset, span = self.layout(view.shape, itemsize)
            else:
                strides, offset, span = np.ndarray(view.shape, f"V{itemsize}").strides, 0, view.nbytes
            lead = self.random.choice([0, 0, 0, 16, itemsize, self.random.randrange(16)])
            memory = Memory(self.cuda, lead + span)
            targets.append((memory, lead + offset, strides))
        return targets

    def check(self, itemsize, views, targets):
        """Copy the views by both executors and compare every byte with what NumPy's assignment does."""
        written = [
            self.view(memory, offset, v.shape, strides, itemsize)
            for v, (memory, offset, strides) in zip(views, targets, strict=True)
        ]
        expected = []
        for memory, _, _ in targets:
            memory.bytes[:] = POISON
        for view, target in zip(views, written, strict=True):
            target[...] = view
        expected = [memory.bytes.copy() for memory, _, _ in targets]
        parts = [
            Part(address(v), v.strides, address(t), t.strides, v.shape) for v, t in zip(views, written, strict=True)
        ]
        launches, left = plan(parts, itemsize)
        if left:
            self.counts["too many axes"] += 1
            return
        if self.few and max(map(index_bits, launches), default=32) == 64:
            return
        for executor in (self.run_cuda,) if self.few else (self.run_cuda, self.run_host):
            for memory, _, _ in targets:
                memory.bytes[:] = POISON
            for launch in launches:
                executor(launch, parts)
            for i, ((memory, _, _), bytes_) in enumerate(zip(targets, expected, strict=True)):
                if (memory.bytes != bytes_).any():
                    raise SystemExit(
                        f"{executor.__name__} differs in part {i} of {parts}, itemsize {itemsize}: {launches}"
                    )

    def run_cuda(self, launch, parts):
        narrow = index_bits(launch) == 32 and (self.few or self.random.random() < 0.7)
        dialect = CUDA_32 if narrow else CUDA_64
        capacities = dialect.capacities[1:2] if self.few else dialect.capacities[1::2]
        dialect = self.dialect(dialect.tile_sides, index_bits=dialect.index_bits, capacities=capacities)
        self.counts[launch.kind] += 1
        for packed in pack(launch, dialect):
            parameters = packed.fill([part.source for part in parts], [part.target for part in parts])
            arguments = (dialect.index_bits, packed.capacity, KINDS[launch.kind], launch.width, launch.variant)
            if self.cuda.emulate(*arguments, parameters, packed.blocks, self.random.randrange(2**31)):
                raise SystemExit(f"no kernel for {arguments}")

    def run_host(self, launch, parts):
        stream = may_stream(launch, parts) and self.random.random() < 0.5
        for packed in pack(launch, self.dialect(HOST.tile_sides), stream=stream):
            parameters = packed.fill([part.source for part in parts], [part.target for part in parts])
            threads = 3 if self.random.random() < 0.01 else 1  # a thread costs much under the sanitizer
            host = self.random.choice(self.hosts)
            host.gpuslice_copy(KINDS[launch.kind], launch.width, launch.variant, parameters, packed.blocks, threads)

    def dialect(self, tile_sides, **more):
        """Draw how large the tiles are, and which parts are dealt tile by tile."""
        tile_bytes, shared_bytes = (self.random.choice([48, 256, 4096, 16384, 65536]) for _ in range(2))
        return Dialect(tile_bytes, tile_sides, self.random.choice([64, 512, 4096]), shared_bytes, **more)

    def once(self):
        """Try three random plans of the same sources."""
        itemsize = self.random.choice(ITEMSIZES)
        memory, views, axis = self.parts(itemsize)
        for _ in range(3):
            self.check(itemsize, views, self.targets(views, itemsize, axis))
        del memory

    def sparse(self):
        """Try views that span more than 2**31 and 2**32 bytes of a mapping that is mostly never touched."""
        mapping = mmap.mmap(-1, 5 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)
        whole = np.frombuffer(mapping, np.uint8)
        for span in (2**31 - 64, 2**31 + 64, 2**32 - 64, 2**32 + 64):
            for itemsize, sign in ((1, 1), (4, -1), (16, 1)):
                count = 5
                step = span // (count - 1) // 16 * 16
                rows = np.ndarray((count, 40), f"V{itemsize}", whole, 0, (step, itemsize))
                rows[...] = (
                    self.numbers.integers(0, 256, rows.size * itemsize, np.uint8)
                    .view(f"V{itemsize}")
                    .reshape(rows.shape)
                )
                for view in (rows[::sign], rows[:, ::-1], rows[:, :: sign * 3], rows.T):
                    self.check(itemsize, [view], self.targets([view], itemsize))
                    self.counts["sparse"] += 1


def may_stream(launch, parts):
    """Tell whether the kernel may store past the caches: vectors of the target must be aligned where it expects them."""
    places = [parts[i].target + launch.target_offset for i in launch.parts]
    if launch.kind == "tiles":
        return not any(place % 16 for place in (*places, *(axis.target for axis in launch.axes[:-1])))
    return launch.kind == "rows" or len({place % 16 for place in places}) == 1


def address(array):
    """Give the address of an array's first item."""
    return array.__array_interface__["data"][0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--few", action="store_true", help="for libraries built with --few")
    given = parser.parse_args()
    fuzz, began = Fuzz(given.folder, given.seed, given.few), time.perf_counter()
    fuzz.sparse()
    for i in range(0, given.count, 3):
        try:
            fuzz.once()
        except BaseException:
            print(f"seed {given.seed}, plan {i}", file=sys.stderr)
            raise
    seconds = round(time.perf_counter() - began, 1)
    print(json.dumps({"seed": given.seed, "plans": given.count, "seconds": seconds, "launches": fuzz.counts}))


if __name__ == "__main__":
    main()
