"""The kernels' sources: where they are, their digest, and the facts in kernels/shared.h that Python needs.

The build hook loads this file by its path, before NumPy is installed, so it imports the standard library only.
"""

import re
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

# What the build leaves in the package: the library compiled for the host, or the reason why there is none; and the
# module for known calls, if it can be compiled. Only a Python that has its ABI looks for a file of this name.
LIBRARY = "_kernels.so"
REASON = "_no_kernels.txt"
CALLS = "_calls.abi3.so"

_SUFFIXES = (".cpp", ".cu", ".cuh", ".h")
# What shared.h may hold. The struct has no value here; it says how the entries of the list are read.
_STATEMENT = re.compile(
    r"constexpr int (?P<number>k\w+) = (?P<value>\d+); ?"
    r"|constexpr int (?P<array>k\w+)\[\] = \{(?P<values>[\d, ]+)\}; ?"
    r"|enum Kind \{ ?(?P<kinds>[\w, ]+?) ?\}; ?"
    r"|(?P<struct>struct Kernel \{ Kind kind; int width; int variant; \}; ?)"
    r"|constexpr Kernel kKernels\[\] = \{(?P<kernels>[\w{}, -]+)\}; ?"
)
# Kernels that move an array per channel, or two, together: their tables have an entry for each array.
CHANNEL_KINDS = ("planes", "interleaved")
# The same of many arrays. Both are one part of the geometry, since their arrays move together.
STACK_KINDS = ("unstacked", "stacked")
TOGETHER_KINDS = CHANNEL_KINDS + STACK_KINDS
_KERNEL = re.compile(r" ?\{(k\w+), (\d+), (-?\d+)\},?")


class Kernel(NamedTuple):
    """A kernel of the list in shared.h.

    Attributes
    ----------
    kind : {"rows", "planes", "interleaved", "rearranged", "tiles", "pixel_tiles", "pixel_rows", "unstacked", "stacked"}
    width : int
        Bytes of an item, or of one channel of a pixel.
    variant : int
        rows: the step between items, or 0 for any stride; planes, interleaved and rearranged: the channels, negative if
        pixels go backward, and 31 or 13 for those of two arrays; tiles, unstacked and stacked: 0; pixel_tiles: the
        channels, or 0 for any number of them; pixel_rows: the step between pixels of three channels, or 0 for any
        stride.
    """

    kind: str
    width: int
    variant: int

    @property
    def name(self) -> str:
        """The kernel with its width and variant, such as ``rows<4, -1>``."""
        return f"{self.kind}<{self.width}, {self.variant}>"

    @property
    def channels(self) -> tuple[int, ...]:
        """How many items of a pixel each array has: one array for each channel, or two arrays."""
        number = abs(self.variant)
        return (1,) * number if number < 10 else divmod(number, 10)


class Shared(NamedTuple):
    """The content of shared.h."""

    numbers: dict[str, int]
    arrays: dict[str, tuple[int, ...]]
    kernels: tuple[Kernel, ...]


def folder() -> Path:
    """Return the folder of the sources: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parents[2]
    for path in (package / "kernels", package.parent / "kernels"):
        if (path / "shared.h").is_file():
            return path
    raise FileNotFoundError(f"gpuslice has no kernels/ folder in {package} or beside it; is the installation complete?")


def is_checkout() -> bool:
    """Return whether the package lies in a checkout, where `nox -s kernels` compiles in place."""
    return folder().parent != Path(__file__).resolve().parents[2]


@cache
def digest() -> str:
    """Return a digest of all sources and of how they are compiled, as 16 hexadecimal digits."""
    return digest_of(folder())


def digest_of(path: Path) -> str:
    """Return the digest of the sources in a folder, and of how they are compiled."""
    total = sha256()
    how = Path(__file__).resolve().parents[1] / "host_build.py"
    for file in [*sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES), how]:
        content = file.read_bytes()
        total.update(f"{file.name} {len(content)}\n".encode() + content)
    return total.hexdigest()[:16]


def read_shared(text: str) -> Shared:
    """Return the facts in the text of shared.h.

    Raises
    ------
    ValueError
        The text holds something that Python cannot read as C++ does, or names a kernel twice.
    """
    text = " ".join(re.sub(r"//.*|#pragma once", "", text).split())
    whole = re.fullmatch(r"namespace gpuslice \{ (.*)\}", text)
    if whole is None:
        raise ValueError("kernels/shared.h must hold one namespace gpuslice and nothing else")
    shared, kinds, kernels, at = Shared({}, {}, ()), [""], list[Kernel](), 0
    while at < len(whole[1]):
        found = _STATEMENT.match(whole[1], at)
        if found is None:
            raise ValueError(f"kernels/shared.h: gpuslice cannot read {whole[1][at : at + 60]!r}")
        at = found.end()
        if found["number"]:
            shared.numbers[found["number"]] = int(found["value"])
        elif found["array"]:
            shared.arrays[found["array"]] = tuple(map(int, found["values"].strip(", ").split(",")))
        elif found["kinds"]:
            kinds = found["kinds"].replace(" ", "").split(",")
        elif found["kernels"]:
            kernels += _kernels(found["kernels"], kinds)
    return shared._replace(kernels=tuple(kernels))


def _kernels(text: str, kinds: list[str]) -> list[Kernel]:
    kernels, at = list[Kernel](), 0
    while text[at:].strip():
        found = _KERNEL.match(text, at)
        if found is None or found[1] not in kinds:
            raise ValueError(f"kernels/shared.h: no kernel is {text[at : at + 30].strip()!r}")
        kernel = Kernel(_snake_case(found[1].removeprefix("k")), int(found[2]), int(found[3]))
        if kernel in kernels:
            raise ValueError(f"kernels/shared.h lists {kernel.name} twice")
        kernels.append(kernel)
        at = found.end()
    return kernels


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def kernel_number(kernel: Kernel) -> int:
    """Return the position of a kernel in the list, by which the host library is asked for it.

    Raises
    ------
    LookupError
        There is no such kernel.
    """
    try:
        return _NUMBERS[kernel]
    except KeyError:
        raise LookupError(f"there is no kernel {kernel.name}: kernels/shared.h does not list it") from None


def variant_of(channels: tuple[int, ...]) -> int:
    """Return the variant whose arrays have so many items of a pixel each, or 0 if none can."""
    if max(channels) == 1:
        return len(channels) if len(channels) < 10 else 0
    return 10 * channels[0] + channels[1] if len(channels) == 2 and max(channels) < 10 else 0


def is_listed(kind: str, width: int, variant: int) -> bool:
    """Return whether the list has a kernel."""
    return (kind, width, variant) in _NUMBERS


_SHARED = read_shared((folder() / "shared.h").read_text())
_NUMBERS = {kernel: number for number, kernel in enumerate(_SHARED.kernels)}

KERNELS = _SHARED.kernels
# The most arrays of a launch that belongs to the kinds above. Whether a copy of more could be one does not matter.
MAX_CHANNELS = max(len(kernel.channels) for kernel in KERNELS if kernel.kind in CHANNEL_KINDS)
VECTOR_BYTES = _SHARED.numbers["kVectorBytes"]
LINE_BYTES = _SHARED.numbers["kLineBytes"]
MAX_RANK = _SHARED.numbers["kMaxRank"]
STACK_BYTES = _SHARED.numbers["kStackBytes"]
PIXEL_CHANNELS = _SHARED.numbers["kPixelChannels"]
MOST_PIXEL_CHANNELS = _SHARED.numbers["kMostChannels"]
CUDA_THREADS = _SHARED.numbers["kCudaThreads"]
# By the bits of an index: bytes before the tables of a launch's parameters, and the tables' sizes on CUDA.
HEADER_BYTES = {32: _SHARED.numbers["kHeaderBytes32"], 64: _SHARED.numbers["kHeaderBytes64"]}
CUDA_CAPACITIES = {32: _SHARED.arrays["kCapacities32"], 64: _SHARED.arrays["kCapacities64"]}


class TileSides(NamedTuple):
    """How large the tiles are along the axis on which the source is contiguous, and along that of the target.

    Attributes
    ----------
    of_items : dict of int to (int, int)
        The items of a tile of the tiles kernel, by their width.
    pixel_bytes : (int, int)
        About how many bytes a tile of the pixel_tiles kernels has.
    most_stacked : dict of int to int
        The most sources of a tile of the stacked kernels, by their width.
    """

    of_items: dict[int, tuple[int, int]]
    pixel_bytes: tuple[int, int]
    most_stacked: dict[int, int]

    def of_stack(self, kind: str, width: int, arrays: int) -> tuple[int, int]:
        """Return how many items a tile of so many arrays has; see `stack_sides` of the kernels."""
        unit, run = self.of_items[width]
        most = unit if kind == "unstacked" else self.most_stacked[width]
        side = VECTOR_BYTES // width
        while side < arrays and side < most:
            side *= 2
        other = max(unit * run // side, STACK_BYTES // width)
        return (side, other) if kind == "unstacked" else (other, side)

    def of_pixels(self, width: int, pixel: int) -> tuple[int, int]:
        """Return how many pixels a tile has, by the bytes of a channel and of a pixel; see `pixel_tile_sides`."""
        together = VECTOR_BYTES // width
        unit, run = self.pixel_bytes
        return max(1, unit // (together * pixel)) * together, max(1, run // (LINE_BYTES * pixel)) * LINE_BYTES


def _sides(executor: str) -> TileSides:
    names = ("kWidths", f"k{executor}TileUnits", f"k{executor}TileRuns")
    widths, units, runs = (_SHARED.arrays[name] for name in names)
    of_items = {width: (unit, run) for width, unit, run in zip(widths, units, runs, strict=True)}
    unit, run = (_SHARED.numbers[f"k{executor}Pixel{side}Bytes"] for side in ("Unit", "Run"))
    stacked = (_SHARED.numbers["kHostStackRuns"],) * len(widths) if executor == "Host" else runs
    return TileSides(of_items, (unit, run), dict(zip(widths, stacked, strict=True)))


HOST_TILE_SIDES = _sides("Host")
CUDA_TILE_SIDES = _sides("Cuda")
