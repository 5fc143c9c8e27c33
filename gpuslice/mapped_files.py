"""Which files are mapped where in memory, on Linux. Two mappings of one file are the same memory at two addresses."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpuslice.libraries import Array

_MAPS = Path("/proc/self/maps")
_SHARED = re.compile(r"^\S+ \S{3}s ", re.MULTILINE)


class Mapping(NamedTuple):
    """A range of addresses.

    Attributes
    ----------
    start, end : int
        The first address and the one after the last.
    is_shared : bool
        Whether what is written there reaches the file.
    offset : int
        The place of ``start`` in the file.
    file : str
        Device and inode; empty if it is no file.
    """

    start: int
    end: int
    is_shared: bool
    offset: int
    file: str


def is_foreign(array: Array) -> bool:
    """Return whether memory of a NumPy array belongs to something else than NumPy, such as a file's mapping."""
    owner = array
    while isinstance(owner, (np.ndarray, memoryview)):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return isinstance(array, np.ndarray) and owner is not None and not isinstance(owner, (bytes, bytearray))


def mappings() -> list[Mapping]:
    """Return what is mapped now; nothing if no file is mapped to be written, or on other systems than Linux."""
    try:
        text = _MAPS.read_text(errors="replace")
    except OSError:
        return []
    return list(map(_mapping, text.splitlines())) if _SHARED.search(text) else []


def _mapping(line: str) -> Mapping:
    """Read a line such as ``7f00-7f10 rw-s 00001000 08:01 123 /name``."""
    addresses, flags, offset, device, inode = line.split(maxsplit=5)[:5]
    start, end = (int(word, 16) for word in addresses.split("-"))
    return Mapping(start, end, flags[3] == "s", int(offset, 16), "" if inode == "0" else f"{device} {inode}")
