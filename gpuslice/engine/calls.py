"""The compiled part of known calls: loaded if it was built here, from the sources that are here.

It is an extension module for CPython with the GIL. Where it is missing, what uses it does the same in Python.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

from gpuslice.engine.built_files import check_whole, why_other_sources
from gpuslice.engine.plan import kernel_sources

_Key: TypeAlias = tuple[Any, ...] | None
_Shape: TypeAlias = tuple[int, ...]

_PATH = Path(__file__).resolve().parents[1] / kernel_sources.CALLS


class Launch(Protocol):
    """A launch of the host library that waits for its addresses."""

    def run(self, sources: Sequence[int], targets: Sequence[int], threads: int = 1, /) -> None:
        """Launch, with the addresses of all parts of the plan."""


class Compiled(Protocol):
    """The module `gpuslice._calls`; kernels/calls.cpp. Its arrays are exactly of the class `numpy.ndarray`."""

    digest: str

    def key_of_slice(self, array: Any, starts: Any, ends: Any, axes: Any, steps: Any, /) -> _Key:
        """Return what `known.key_of` does."""

    def key_of_split(self, array: Any, split: Any, axis: Any, number: Any, /) -> _Key:
        """Return what `known.key_of_split` does."""

    def key_of_join(self, arrays: tuple[Any, ...], axis: Any, new_axis: Any, /) -> _Key:
        """Return what `known.key_of_join` does."""

    def takes_one(self, array: Any, out: Any, shape: _Shape, /) -> bool:
        """Return what `known.is_usual` does."""

    def takes(self, arrays: Sequence[Any], outs: Sequence[Any], shapes: Sequence[_Shape], /) -> bool:
        """Return what `known.are_usual` does, for outputs of several arrays."""

    def address_of(self, array: Any, /) -> int:
        """Return the address of an array's first item."""

    def addresses_of(self, arrays: Sequence[Any], /) -> list[int]:
        """Return the address of each array's first item."""

    def alignments_of(self, addresses: Sequence[int], /) -> tuple[int, ...]:
        """Return the position of each address in a vector."""

    def places_of(self, addresses: Sequence[int], near: int, /) -> tuple[int, ...]:
        """Return what `kernel_executor.places_of` does, of few addresses. A distance below ``near`` counts."""

    def shifted(self, offsets: Sequence[int], base: int, /) -> list[int]:
        """Return each offset from the base."""

    def Launch(
        self,
        function: int,
        kernel: int,
        blocks: int,
        size: int,
        head: bytes,
        capacity: int,
        tail: bytes,
        parts: tuple[int, ...],
        offsets: tuple[int, int, int, int],
        /,
    ) -> Launch:
        """Return a launch by the address of the library's function, the bytes that it moves, and a `PackedLaunch`."""


def _load() -> tuple[Compiled | None, str]:
    """Return the module, or None and the reason why it is not used."""
    if sys.implementation.name != "cpython" or "t" in getattr(sys, "abiflags", ""):  # free-threaded
        return None, "this Python has no stable ABI"
    try:
        if _PATH.exists():
            check_whole(_PATH)
        module = cast(Compiled, import_module("gpuslice._calls"))
    except ModuleNotFoundError:
        return None, "the module for them was not built"
    except (ImportError, OSError) as error:
        return None, f"the module for them cannot be loaded: {error}"
    reason = why_other_sources(_PATH, module.digest)
    return (None, reason) if reason else (module, "")


COMPILED, REASON = _load()
