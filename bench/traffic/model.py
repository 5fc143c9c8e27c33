"""Plan a case as for a GPU, run some blocks of each launch, and sum up what they ask of memory."""

import ctypes
import mmap
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

import numpy as np

from bench.cases import DTYPES, Case
from bench.traffic.build import Key
from gpuslice.engine.packing import CUDA_32, CUDA_64, Packed, index_bits, pack
from gpuslice.engine.plan import Part, plan

# Where CuPy's pool begins its arrays.
ALIGNMENT = 512
SECTOR = 32
# Bytes of a request in which each of 32 threads moves 16.
REQUEST = 512
_NORESERVE = 0x4000  # Linux's MAP_NORESERVE, which Python does not name


class _Views(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("low", "high", "width", "parts", "rank")] + [
        (name, ctypes.c_void_p) for name in ("source", "target", "shape", "strides")
    ]


class _Counts(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            *("bytes", "wanted", "loaded", "load_requests", "load_requested"),
            *("stored", "store_requests", "store_requested", "missed"),
        )
    ]


@dataclass(frozen=True)
class Traffic:
    """What a cell's blocks ask of memory; table.py says what each number means.

    Attributes
    ----------
    case : str
    width : int
    kernels : list of str
    keys : list of Key
    blocks, counted : int
        Of all launches, and how many of them were run.
    load, load_used, load_per_request, load_requests : float
    store, store_per_request, store_requests : float
    """

    case: str
    width: int
    kernels: list[str]
    keys: list[Key]
    blocks: int
    counted: int
    load: float
    load_used: float
    load_per_request: float
    load_requests: float
    store: float
    store_per_request: float
    store_requests: float


class Cell:
    """A case at a width, planned; its arrays are address space that is hardly touched.

    Parameters
    ----------
    case : Case
    width : int
        Bytes of an item.
    ahead : int
        Bytes from a multiple of ALIGNMENT to each target.
    """

    def __init__(self, case: Case, width: int, ahead: int = 0) -> None:
        self.case, self.width = case, width
        shape = case.shape(case.size // width, width)
        views = case.parts(case.view(np.broadcast_to(np.zeros((), DTYPES[width]), shape)))
        sizes = [np.prod(shape) * width, *(view.size * width + ahead for view in views)]
        starts = np.cumsum([0, *(-(-int(size) // ALIGNMENT) * ALIGNMENT for size in sizes)]).tolist()
        self.memory = mmap.mmap(-1, max(starts[-1], 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
        source = np.ndarray(shape, DTYPES[width], self.memory)
        self.low = _address(source)
        self.high = self.low + starts[-1]
        self.parts = [
            Part(_address(view), view.strides, self.low + start + ahead, _contiguous(view.shape, width), view.shape)
            for view, start in zip(case.parts(case.view(source)), starts[1:-1], strict=True)
        ]
        launches, left = plan(self.parts, width)
        if left:
            raise ValueError(f"{case.name}: no kernel takes all of it")
        self.launches = [one for launch in launches for one in _packed(launch)]

    @property
    def keys(self) -> list[Key]:
        """The kernels that it needs."""
        return [
            (one.launch.kind, one.launch.width, one.launch.variant, one.index_bits, one.capacity)
            for one in self.launches
        ]

    def count(self, library: ctypes.CDLL, keys: Sequence[Key], most: int) -> Traffic:
        """Run at most so many blocks a launch, and give the sums as if all had run."""
        sums, counted = np.zeros(len(_Counts._fields_)), 0
        for key, packed in zip(self.keys, self.launches, strict=True):
            chosen = _chosen(packed.blocks, most)
            counts = self._run(library, keys.index(key), packed, chosen)
            sums += np.array([getattr(counts, name) for name, _ in _Counts._fields_]) * packed.blocks / len(chosen)
            counted += len(chosen)
        return self._traffic(dict(zip([name for name, _ in _Counts._fields_], sums, strict=True)), counted)

    def _run(self, library: ctypes.CDLL, kernel: int, packed: Packed, chosen: list[int]) -> _Counts:
        parts, rank = self.parts, len(self.parts[0].shape)
        tables = [
            np.array(numbers, dtype)
            for numbers, dtype in (
                ([part.source for part in parts], np.uint64),
                ([part.target for part in parts], np.uint64),
                (list(chain.from_iterable(part.shape for part in parts)), np.int64),
                (list(chain.from_iterable(part.source_strides for part in parts)), np.int64),
            )
        ]
        pointers = [table.ctypes.data for table in tables]
        views = _Views(self.low, self.high, self.width, len(parts), rank, *pointers)
        counts = _Counts()
        parameters = packed.fill([part.source for part in parts], [part.target for part in parts])
        blocks = (ctypes.c_uint * len(chosen))(*chosen)
        library.count_traffic(kernel, parameters, blocks, len(chosen), ctypes.byref(views), ctypes.byref(counts))
        if counts.missed or not counts.bytes:
            raise RuntimeError(f"{self.case.name}, {self.width} B: {counts.missed} sectors were wanted and not loaded")
        return counts

    def _traffic(self, sums: dict[str, float], counted: int) -> Traffic:
        numbers = {
            "load": sums["wanted"] / sums["loaded"],
            "load_used": sums["bytes"] / SECTOR / sums["loaded"],
            "load_per_request": sums["load_requested"] / sums["load_requests"],
            "load_requests": sums["load_requests"] / (sums["bytes"] / REQUEST),
            "store": sums["bytes"] / SECTOR / sums["stored"],
            "store_per_request": sums["store_requested"] / sums["store_requests"],
            "store_requests": sums["store_requests"] / (sums["bytes"] / REQUEST),
        }
        kernels = list(dict.fromkeys(one.launch.name for one in self.launches))
        blocks = sum(one.blocks for one in self.launches)
        rounded = {name: round(float(value), 3) for name, value in numbers.items()}
        return Traffic(self.case.name, self.width, kernels, self.keys, blocks, counted, **rounded)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _contiguous(shape: tuple[int, ...], width: int) -> tuple[int, ...]:
    return tuple(prod(shape[k + 1 :]) * width for k in range(len(shape)))


def _packed(launch) -> list[Packed]:
    """Pack as gpuslice/engine/cuda.py does."""
    return pack(launch, CUDA_32 if index_bits(launch) == 32 else CUDA_64)


def _chosen(blocks: int, most: int) -> list[int]:
    """Draw one of each of as many equal spans, so that no pattern of the grid is met in step."""
    if blocks <= most:
        return list(range(blocks))
    draw = random.Random(0)
    return [draw.randrange(blocks * i // most, blocks * (i + 1) // most) for i in range(most)]
