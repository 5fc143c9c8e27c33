"""Random plans through the emulated CUDA kernels and the host kernels, against NumPy, byte for byte.

    python tests/fuzz/fuzz.py --seed 1 --count 1000

Targets are poisoned before, and compared whole after.
"""

import argparse
import ctypes
import itertools
import json
import mmap
import os
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
from draw import Draw

from gpuslice.engine.plan import (
    CUDA_TUNING,
    HOST_64,
    HOST_TUNING,
    Kernel,
    Layout,
    Part,
    all_instantiations,
    index_bits,
    pack,
    plan,
)
from gpuslice.engine.plan.kernel_sources import CUDA_CAPACITIES, KERNELS, kernel_number

POISON = 0xA5
NORESERVE = 0x4000  # Linux's MAP_NORESERVE, which Python does not name


class Fuzz:
    """Random plans on the kernels of a folder; ``only`` leaves out other kinds of kernels, and the host executor."""

    def __init__(self, folder, seed, only=()):
        self.only = only
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
        self.draw = Draw(self.cuda, seed, only)
        self.random = self.draw.random
        self.counts = Counter()
        self.kernels = set()
        self.instantiations = set()

    def check(self, itemsize, views, targets, kernel=None, bits=None, capacity=None):
        """Copy the views by both executors and compare every byte with what NumPy's assignment does.

        ``kernel`` says which one the plan must choose, ``bits`` and ``capacity`` how wide the index
        of the CUDA executor is and how many parts its tables hold.
        """
        written = [
            memory.view(offset, view.shape, strides, itemsize)
            for view, (memory, offset, strides) in zip(views, targets, strict=True)
        ]
        poison(targets)
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
        for executor in (
            (partial(self.run_cuda, bits=bits, capacity=capacity), self.run_host) if self.hosts else (self.run_cuda,)
        ):
            poison(targets)
            for launch in launches:
                executor(launch, parts)
            for i, ((memory, _, _), bytes_) in enumerate(zip(targets, expected, strict=True)):
                if (memory.bytes != bytes_).any():
                    which = "the host" if executor == self.run_host else "CUDA"
                    raise SystemExit(f"{which} differs in part {i} of {parts}, itemsize {itemsize}: {launches}")

    def run_cuda(self, launch, parts, bits=None, capacity=None):
        """Run a launch on the emulated device, with tables of a capacity or of the smallest that holds it.

        The tables are of those capacities that were compiled.
        """
        if bits is None:
            bits = 32 if index_bits(launch) == 32 and (self.only or self.random.random() < 0.7) else 64
        number = kernel_number(launch.kernel)
        capacities = self.capacities(launch.kernel, bits) if capacity is None else (capacity,)
        if not capacities:
            raise SystemExit(f"the emulator has no {launch.name} for {bits} bits")
        self.counts[launch.kind] += 1
        self.kernels.add(launch.name)
        for packed in pack(launch, Layout(bits, capacities), self.draw.tuning(CUDA_TUNING)):
            self.counts[f"{bits} bits, tables of {packed.capacity}"] += 1
            self.instantiations.add((number, bits, packed.capacity))
            parameters = packed.fill([part.source for part in parts], [part.target for part in parts])
            seed = self.random.randrange(2**31)
            self.cuda.emulate(bits, packed.capacity, packed.kernel_number, parameters, packed.blocks, seed)

    def capacities(self, kernel, bits):
        """Return how many parts the tables of a kernel hold, of those that were compiled."""
        return tuple(size for size in CUDA_CAPACITIES[bits] if self.cuda.has_kernel(bits, size, kernel_number(kernel)))

    def run_host(self, launch, parts):
        """Run a launch on the host executor, for an instruction set of this processor."""
        stream = may_stream(launch, parts) and self.random.random() < 0.5
        for packed in pack(launch, HOST_64, self.draw.tuning(HOST_TUNING), stream=stream):
            parameters = packed.fill([part.source for part in parts], [part.target for part in parts])
            threads = 3 if self.random.random() < 0.01 else 1  # a thread costs much under the sanitizer
            host = self.random.choice(self.hosts)
            if host.gpuslice_copy(packed.kernel_number, parameters, packed.blocks, threads):
                raise SystemExit(f"the host library has no {launch.name}")

    def once(self):
        """Try three random plans of the same sources."""
        itemsize = self.draw.itemsize()
        memory, views, axis = self.draw.sources(itemsize)
        for _ in range(3):
            self.check(itemsize, views, self.draw.targets(views, itemsize, axis))
        del memory

    def each_kernel(self):
        """Try every kernel of the list, with 32-bit and 64-bit indices and with tables of each size."""
        for kernel, bits in itertools.product(KERNELS, (32, 64)):
            for capacity in self.capacities(kernel, bits):
                memory, views, targets = self.draw.source_for(kernel)
                self.check(kernel.width, views, targets, kernel, bits, capacity)
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
                bits = self.draw.numbers.integers(0, 256, rows.size * itemsize, np.uint8)
                rows[...] = bits.view(f"V{itemsize}").reshape(rows.shape)
                for view in (rows[::sign], rows[:, ::-1], rows[:, :: sign * 3], rows.T):
                    self.check(itemsize, [view], self.draw.targets([view], itemsize))
                    self.counts["sparse"] += 1


def poison(targets):
    """Fill the memory of targets with a byte that the sources hold by chance only."""
    for memory, _, _ in targets:
        memory.bytes[:] = POISON


def may_stream(launch, parts):
    """Return whether the kernel may store past the caches: it expects some targets to be aligned to vectors."""
    if launch.kind in ("planes", "pixel_tiles", "unstacked", "stacked"):
        return True
    places = [parts[i].target + launch.target_offset for i in launch.parts[: launch.part_count]]
    if launch.kind == "tiles":
        return not any(place % 16 for place in (*places, *(axis.target for axis in launch.axes[:-1])))
    return launch.kind == "rows" or len({place % 16 for place in places}) == 1


def address(array):
    """Return the address of an array's first item."""
    return array.__array_interface__["data"][0]


def main():
    parser = argparse.ArgumentParser(description="Run random plans through the kernels and compare with NumPy.")
    parser.add_argument(
        "--folder", help="of the libraries; else they are built, and Python starts again under sanitizers"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000, help="how many plans")
    parser.add_argument("--only", nargs="+", default=[], metavar="rows", help="for libraries of these kinds of kernels")
    parser.add_argument("--every", action="store_true", help="compile and run all that a launch on CUDA can ask for")
    given = parser.parse_args()
    if given.folder is None:
        from build import build, sanitized

        command = [sys.executable, __file__, "--folder", str(build(every=given.every)), *sys.argv[1:]]
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
    if given.every:
        all_numbers = {(kernel_number(Kernel(*one[:3])), *one[3:]) for one in all_instantiations()}
        if fuzz.instantiations != all_numbers:
            raise SystemExit(f"not run, or not known: {fuzz.instantiations ^ all_numbers}")
    print(json.dumps(result | {"instantiations": len(fuzz.instantiations), "kernels": sorted(fuzz.kernels)}))


if __name__ == "__main__":
    main()
