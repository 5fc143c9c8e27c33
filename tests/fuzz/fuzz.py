"""Random plans through the emulated CUDA kernels and the host kernels, against NumPy, byte for byte.

    python tests/fuzz/fuzz.py --seed 1 --count 1000

Sources and targets are allocations of exactly the bytes their views span, so that the address sanitizer sees any access
beside them; targets are poisoned before, and compared whole after.
"""

import argparse
import ctypes
import json
import mmap
import os
import random
import sys
import time
from collections import Counter
from functools import partial
from math import prod
from pathlib import Path

import numpy as np

from gpuslice.engine.plan import CUDA_TUNING, HOST_64, HOST_TUNING, Layout, Part, Tuning, index_bits, pack, plan
from gpuslice.engine.plan.sources import CUDA_CAPACITIES, KERNELS, is_listed, kernel_number

ITEMSIZES = [1, 1, 1, 2, 2, 4, 4, 8, 16, 3, 5, 6, 12, 24, 48]
# Around every vector and tile boundary.
EDGES = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257]
# Forms of the sources of a plan, and the forms that give kinds of kernels which are rare otherwise.
FORMS = ["one", "one", "split", "split", "many", "channels", "mixed", "transposed", "long"]
FORMS_FOR = {"tiles": ["transposed"], "planes": ["channels"]}
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
    """Random plans on the kernels of a folder; ``only`` leaves out other kinds of kernels, and the host executor."""

    def __init__(self, folder, seed, only=()):
        self.only = only
        self.forms = [form for kind in only for form in FORMS_FOR.get(kind, FORMS)] or FORMS
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.cuda = ctypes.CDLL(str(Path(folder) / "emulate.so"))
        self.cuda.exact_alloc.restype = ctypes.c_void_p
        self.cuda.exact_alloc.argtypes = [ctypes.c_size_t]
        self.cuda.exact_free.argtypes = [ctypes.c_void_p]
        self.cuda.has_kernel.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint]
        self.cuda.emulate.argtypes = [*self.cuda.has_kernel.argtypes, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint]
        self.cuda.emulate.restype = None
        self.hosts = [ctypes.CDLL(str(path)) for path in sorted(Path(folder).glob("host*.so"))]
        for host in self.hosts:
            host.gpuslice_copy.argtypes = [ctypes.c_uint, ctypes.c_char_p, ctypes.c_ulonglong, ctypes.c_int]
        self.counts = Counter()
        self.kernels = set()

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

    def view(self, memory, offset, shape, strides, itemsize):
        """View part of a memory as items of so many bytes."""
        return np.ndarray(shape, f"V{itemsize}", memory.bytes, offset if prod(shape) else 0, strides)

    def parts(self, itemsize):
        """Draw the sources of parts: one view, the pieces of a split, channels, or views with nothing in common."""
        form = self.random.choice(self.forms)
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
        """Allocate one target per view: contiguous, or of any strides, or side by side in one array along ``axis``."""
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

    def check(self, itemsize, views, targets, kernel=None, bits=None):
        """Copy the views by both executors and compare every byte with what NumPy's assignment does.

        ``kernel`` says which one the plan must choose, ``bits`` how wide the index of the CUDA executor is.
        """
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
        if self.only and any(launch.kind not in self.only or index_bits(launch) == 64 for launch in launches):
            return
        if kernel is not None and [launch.kernel for launch in launches] != [kernel]:
            raise SystemExit(f"{kernel.name} is not what the plan chose: {launches}")
        for executor in (partial(self.run_cuda, bits=bits), self.run_host) if self.hosts else (self.run_cuda,):
            for memory, _, _ in targets:
                memory.bytes[:] = POISON
            for launch in launches:
                executor(launch, parts)
            for i, ((memory, _, _), bytes_) in enumerate(zip(targets, expected, strict=True)):
                if (memory.bytes != bytes_).any():
                    which = "the host" if executor == self.run_host else "CUDA"
                    raise SystemExit(f"{which} differs in part {i} of {parts}, itemsize {itemsize}: {launches}")

    def run_cuda(self, launch, parts, bits=None):
        """Run a launch on the emulated device, with tables of the smallest capacity that was compiled and holds it."""
        if bits is None:
            bits = 32 if index_bits(launch) == 32 and (self.only or self.random.random() < 0.7) else 64
        number = kernel_number(launch.kernel)
        capacities = tuple(size for size in CUDA_CAPACITIES[bits] if self.cuda.has_kernel(bits, size, number))
        if not capacities:
            raise SystemExit(f"the emulator has no {launch.name} for {bits} bits")
        self.counts[launch.kind] += 1
        self.kernels.add(launch.name)
        for packed in pack(launch, Layout(bits, capacities), self.tuning(CUDA_TUNING)):
            self.counts[f"{bits} bits, tables of {packed.capacity}"] += 1
            parameters = packed.fill([part.source for part in parts], [part.target for part in parts])
            seed = self.random.randrange(2**31)
            self.cuda.emulate(bits, packed.capacity, packed.kernel_number, parameters, packed.blocks, seed)

    def run_host(self, launch, parts):
        """Run a launch on the host executor, for an instruction set of this processor."""
        stream = may_stream(launch, parts) and self.random.random() < 0.5
        for packed in pack(launch, HOST_64, self.tuning(HOST_TUNING), stream=stream):
            parameters = packed.fill([part.source for part in parts], [part.target for part in parts])
            threads = 3 if self.random.random() < 0.01 else 1  # a thread costs much under the sanitizer
            host = self.random.choice(self.hosts)
            if host.gpuslice_copy(packed.kernel_number, parameters, packed.blocks, threads):
                raise SystemExit(f"the host library has no {launch.name}")

    def tuning(self, usual):
        """Draw how large the tiles are, and which parts take turns."""
        tile_bytes, shared_bytes = (self.random.choice([48, 256, 4096, 16384, 65536]) for _ in range(2))
        return Tuning(tile_bytes, usual.tile_sides, self.random.choice([64, 512, 4096]), shared_bytes)

    def once(self):
        """Try three random plans of the same sources."""
        itemsize = self.random.choice(ITEMSIZES)
        memory, views, axis = self.parts(itemsize)
        for _ in range(3):
            self.check(itemsize, views, self.targets(views, itemsize, axis))
        del memory

    def each_kernel(self):
        """Try every kernel of the list, with 32-bit and 64-bit indices."""
        for kernel in KERNELS:
            for bits in (32, 64):
                memory, view = self.view_for(kernel)
                views = np.split(view, abs(kernel.variant), axis=1) if kernel.kind == "planes" else [view]
                targets = [
                    (Memory(self.cuda, view.nbytes), 0, np.ndarray(view.shape, view.dtype).strides) for view in views
                ]
                self.check(kernel.width, views, targets, kernel, bits)
                del memory

    def view_for(self, kernel):
        """Draw a view that the kernel should move; it begins at an odd item and has odd sizes, so that no two become one."""
        kind, width, variant = kernel
        count, far = self.random.randrange(301, 901, 2), abs(variant)
        if kind == "rows" and not far:
            far = next(step for step in range(self.random.choice([2, 5, 9]), 99) if not is_listed(kind, width, step))
        shape = {"rows": (count * far,), "tiles": (count // 4 * 2 + 1, 67)}.get(kind, (count, far))
        memory = Memory(self.cuda, (1 + prod(shape)) * width)
        memory.bytes[:] = self.numbers.integers(0, 256, memory.size, np.uint8)
        whole = np.ndarray(shape, f"V{width}", memory.bytes, width)
        if kind == "rows":
            return memory, whole[:: far if variant >= 0 else -far]
        if kind == "tiles":
            return memory, whole.T
        backward = variant < 0 if kind == "planes" else True
        axis = 1 if kind == "rearranged" and variant > 0 else 0
        return memory, np.flip(whole, axis) if backward else whole

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
    """Return whether the kernel may store past the caches: it expects some targets to be aligned to vectors."""
    places = [parts[i].target + launch.target_offset for i in launch.parts]
    if launch.kind == "tiles":
        return not any(place % 16 for place in (*places, *(axis.target for axis in launch.axes[:-1])))
    return launch.kind == "rows" or len({place % 16 for place in places}) == 1


def address(array):
    """Return the address of an array's first item."""
    return array.__array_interface__["data"][0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--folder", help="of the libraries; else they are built, and Python starts again under sanitizers"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--only", nargs="+", default=[], metavar="rows", help="for libraries of these kinds of kernels")
    given = parser.parse_args()
    if given.folder is None:
        from build import build, sanitized

        command = [sys.executable, __file__, "--folder", str(build()), *sys.argv[1:]]
        os.execve(sys.executable, command, sanitized() or os.environ)
    fuzz, began = Fuzz(given.folder, given.seed, given.only), time.perf_counter()
    if not given.only:
        fuzz.sparse()
        fuzz.each_kernel()
    for i in range(0, given.count, 3):
        try:
            fuzz.once()
        except BaseException:
            print(f"seed {given.seed}, plan {i}", file=sys.stderr)
            raise
    seconds = round(time.perf_counter() - began, 1)
    result = {"seed": given.seed, "plans": given.count, "seconds": seconds, "launches": fuzz.counts}
    print(json.dumps(result | {"kernels": sorted(fuzz.kernels)}))


if __name__ == "__main__":
    main()
