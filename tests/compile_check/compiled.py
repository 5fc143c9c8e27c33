"""Compile instantiations of the CUDA kernels in several processes, and read from the machine code what each became."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache

from in_flight import VECTOR, in_flight
from nvrtc import Nvrtc, disassembled, package_file
from sass import Instruction

from gpuslice.engine.plan import Kernel, all_instantiations, instantiation
from gpuslice.engine.plan.kernel_sources import PIXEL_CHANNELS, STACK_KINDS

# By version of CUDA. 13.0 and 13.2 are one package, so noxfile.py installs the older into a folder of its own.
LIBRARIES = {
    "13.2": "nvidia/cu13/lib/libnvrtc.so.13",
    "13.0": "nvrtc-13.0/nvidia/cu13/lib/libnvrtc.so.13",
    "12.9": "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
}
NVDISASM = "nvidia/cu13/bin/nvdisasm"
CHUNK = 16  # instantiations per program: they share the work on the headers, and progress is shown
PIXEL_KINDS = ("planes", "interleaved", "rearranged")
MOST_REGISTERS = 64  # more would leave room for fewer threads on a multiprocessor

Key = tuple[str, int, int, int, int]  # kind, width, variant, bits of the index, capacity
_PTXAS = re.compile(
    r"Compiling entry function '(\w+)'.*?"
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads.*?"
    r"Used (\d+) registers",
    re.DOTALL,
)


@dataclass(frozen=True)
class Compiled:
    """What one instantiation became on one architecture; the numbers are None if it did not compile.

    Attributes
    ----------
    cuda : str
        Version of the CUDA whose NVRTC compiled it.
    arch, kind, width, variant, index_bits, capacity
        What was compiled.
    registers, stack, spill_stores, spill_loads : int or None
        Registers per thread, and bytes, as ptxas reports them.
    load_bits, store_bits : int or None
        The widest load from global memory, and the widest store past the caches, which whole vectors take.
    aligned, misaligned : int or None
        Bytes that a thread loads before it waits for the first of them; see in_flight.py.
    error : str or None
        Why it did not compile.
    """

    cuda: str
    arch: str
    kind: str
    width: int
    variant: int
    index_bits: int
    capacity: int
    registers: int | None = None
    stack: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    load_bits: int | None = None
    store_bits: int | None = None
    aligned: int | None = None
    misaligned: int | None = None
    error: str | None = None

    @property
    def name(self) -> tuple[str, str, Key]:
        """What was compiled, by which CUDA and for which architecture."""
        return self.cuda, self.arch, (self.kind, self.width, self.variant, self.index_bits, self.capacity)

    def broken(self) -> str | None:
        """Return what is not as it should be."""
        if self.error is not None:
            return self.error
        if self.stack or self.spill_stores or self.spill_loads:
            return f"{self.stack} bytes of stack, {self.spill_stores} stored and {self.spill_loads} loaded for spills"
        if (self.registers or 0) > MOST_REGISTERS:
            return f"{self.registers} registers, more than {MOST_REGISTERS}"
        loads_vectors = not _gathers(self.kind, self.variant)
        wanted = 128 if loads_vectors else 8 * self.width  # gathers load items
        if (self.load_bits or 0) < wanted or self.store_bits != 128:
            return f"loads {self.load_bits} bits at most and stores {self.store_bits}, not {wanted} and 128"
        least = least_in_flight(self.kind, self.width, self.variant)
        if (self.aligned or 0) < least[0] or (self.misaligned or 0) < least[1]:
            return f"{self.aligned} bytes in flight, misaligned {self.misaligned}, not {least[0]} and {least[1]}"
        return None


def least_in_flight(kind: str, width: int, variant: int) -> tuple[int, int]:
    """Return how many bytes a thread must have under way, of an aligned source and of one that is not.

    Tiles load misaligned rows item by item, tiles of pixels and stacks load all rows alike, and gathers load single items.
    """
    if kind in ("tiles", "pixel_tiles", *STACK_KINDS):
        return 64, 0
    if _gathers(kind, variant):
        return 32 if width == 1 else 48 if kind == "pixel_rows" else 64, 0
    # Several sources take so many registers that one of them may wait for the others.
    vectors = 3 if abs(variant) == 3 or kind == "interleaved" else 4
    return vectors * VECTOR, 0 if width == VECTOR else vectors * VECTOR


def _gathers(kind: str, variant: int) -> bool:
    return kind in ("rows", "pixel_rows") and variant == 0


def keys(*, quick: bool = False) -> list[Key]:
    """Return all instantiations; if quick, one per kind, width and index, with the last variant and largest table."""
    found = list(all_instantiations())
    return list({(key[0], key[1], key[3]): key for key in found}.values()) if quick else found


def compiled(wanted: Sequence[tuple[str, str, Key]], processes: int) -> Iterator[list[Compiled]]:
    """Compile keys, each by a version of CUDA for an architecture; yield the results in chunks."""
    jobs: dict[tuple[str, str], list[Key]] = {}
    for cuda, arch, key in wanted:
        jobs.setdefault((cuda, arch), []).append(key)
    tasks = [(*job, keys[i : i + CHUNK]) for job, keys in jobs.items() for i in range(0, len(keys), CHUNK)]
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(_chunk, tasks)


@cache
def _nvrtc(cuda: str) -> Nvrtc:
    return Nvrtc(package_file(LIBRARIES[cuda]))


def _chunk(task: tuple[str, str, Sequence[Key]]) -> list[Compiled]:
    cuda, arch, keys = task
    try:
        cubin, log, lowered = _nvrtc(cuda).compile([instantiation(*key) for key in keys], arch)
    except ValueError as error:
        if len(keys) > 1:  # find out which one it is
            return [result for key in keys for result in _chunk((cuda, arch, [key]))]
        return [Compiled(cuda, arch, *keys[0], error=str(error))]
    used, codes = usage(log), dict(disassembled(cubin, package_file(NVDISASM)))
    names = [lowered[instantiation(*key)] for key in keys]
    return [
        Compiled(cuda, arch, *key, **used[name], **accesses(codes[name]), **flight(codes[name], key[0], key[2]))
        for key, name in zip(keys, names, strict=True)
    ]


def usage(log: str) -> dict[str, dict[str, int]]:
    """Return registers, stack and spills by the name of the function, from the log of ptxas."""
    names = ("stack", "spill_stores", "spill_loads", "registers")
    return {name: dict(zip(names, map(int, rest), strict=True)) for name, *rest in _PTXAS.findall(log)}


def accesses(code: Sequence[Instruction]) -> dict[str, int]:
    """Return the bits of the widest load from global memory and of the widest store past the caches."""
    loads = [one.bits for one in code if one.loads]
    # The kernels store whole vectors by __stcs, which is .EF in machine code, and nothing else.
    stores = [one.bits for one in code if one.opcode.startswith("STG") and ".EF" in one.opcode]
    return {"load_bits": max(loads, default=0), "store_bits": max(stores, default=0)}


def flight(code: Sequence[Instruction], kind: str, variant: int) -> dict[str, int]:
    """Return the bytes in flight of a kernel."""
    channels = Kernel(kind, 0, variant).channels if kind in PIXEL_KINDS else (abs(variant),)
    read = {"pixel_tiles": 0, "unstacked": 0, "stacked": 0, "pixel_rows": PIXEL_CHANNELS * variant}.get(
        kind, sum(channels)
    )
    aligned, misaligned = in_flight(code, read, len(channels) if kind == "interleaved" else 1)
    return {"aligned": aligned, "misaligned": misaligned}
