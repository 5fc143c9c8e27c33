"""The compiled kernels for the host: loaded if they were built here, from the sources that are here."""

import ctypes
import os
import warnings
from pathlib import Path

from gpuslice.engine.built_files import check_whole, why_other_sources
from gpuslice.engine.calls import COMPILED, Launch
from gpuslice.engine.plan import PackedLaunch, kernel_sources

_FORCED = "GPUSLICE_INSTRUCTION_SET"
_PACKAGE = Path(__file__).resolve().parents[1]


class _Unusable(Exception):
    """Why the library is not used."""


def load(path: Path) -> tuple[ctypes.CDLL | None, str]:
    """Return the library at a path, or None and the reason why it is not used."""
    try:
        return _loaded(path), ""
    except _Unusable as error:
        return None, str(error)


def copy(kernel_number: int, parameters: bytes, blocks: int, threads: int) -> None:
    """Run a launch on up to ``threads`` threads, the calling one among them.

    Parameters
    ----------
    kernel_number : int
        The kernel's position in the list of kernels/shared.h.
    parameters : bytes
        As `PackedLaunch.fill` returns them.
    blocks, threads : int

    Raises
    ------
    RuntimeError
        There is no library, or it has no such kernel. Nothing was copied.
    MemoryError
        Nothing was copied.
    """
    if LIBRARY is None:
        raise RuntimeError(f"the host kernels are not available: {reason()}")
    try:
        code = LIBRARY.gpuslice_copy(kernel_number, parameters, blocks, threads)
    except ctypes.ArgumentError as error:  # the arguments have the right types, so this is all that can be wrong
        raise MemoryError("the arguments of a launch cannot be allocated") from error
    if code:
        known = 0 <= kernel_number < len(kernel_sources.KERNELS)
        name = kernel_sources.KERNELS[kernel_number].name if known else f"number {kernel_number}"
        raise RuntimeError(f"the host library has no kernel {name}; error {code}")


def compiled(packed: PackedLaunch, size: int) -> Launch | None:
    """Return a launch of ``size`` bytes as an object that needs only addresses; None if there is no such object."""
    if COMPILED is None or LIBRARY is None:
        return None
    launch, tables = packed.launch, (packed.head, packed.capacity, packed.tail)
    offsets = launch.source_offset, launch.target_offset, launch.channel_source, launch.channel_target
    return COMPILED.Launch(_FUNCTION, packed.kernel_number, packed.blocks, size, *tables, launch.parts, offsets)


def instruction_set() -> str:
    """Return the name of the instruction set in use; empty if there is no library."""
    return LIBRARY.gpuslice_instruction_set().decode() if LIBRARY is not None else ""


def instruction_sets() -> list[str]:
    """Return the names of the instruction sets that were compiled, the best one first."""
    return _compiled_sets(LIBRARY) if LIBRARY is not None else []


def reason() -> str:
    """Return why there are no compiled kernels; empty if there are."""
    return _REASON


def _loaded(path: Path) -> ctypes.CDLL:
    if not path.exists():
        raise _Unusable(_reason_of_the_build(path))
    try:
        check_whole(path)
        library = ctypes.CDLL(str(path))
        _declare(library)
    except (OSError, AttributeError) as error:
        raise _Unusable(f"{path} cannot be loaded: {error}") from error
    reason = why_other_sources(path, library.gpuslice_digest().decode())
    if reason:
        raise _Unusable(reason)
    if not library.gpuslice_instruction_set():
        raise _Unusable(f"the processor has none of the instruction sets {', '.join(_compiled_sets(library))}")
    _use_forced_set(library)
    return library


def _reason_of_the_build(path: Path) -> str:
    """Return what the build hook left in place of a library."""
    try:
        return path.with_name(kernel_sources.REASON).read_text().strip()
    except OSError:
        return "they were not built"


def _declare(library: ctypes.CDLL) -> None:
    """Declare the functions of kernels/host.cpp; AttributeError if one is missing."""
    library.gpuslice_copy.argtypes = [ctypes.c_uint, ctypes.c_char_p, ctypes.c_ulonglong, ctypes.c_int]
    library.gpuslice_copy.restype = ctypes.c_int
    library.gpuslice_instruction_set_at.argtypes = [ctypes.c_uint]
    library.gpuslice_use_instruction_set.argtypes = [ctypes.c_char_p]
    library.gpuslice_use_instruction_set.restype = ctypes.c_int
    for name in ("gpuslice_digest", "gpuslice_instruction_set", "gpuslice_instruction_set_at"):
        getattr(library, name).restype = ctypes.c_char_p


def _compiled_sets(library: ctypes.CDLL) -> list[str]:
    names: list[str] = []
    while (name := library.gpuslice_instruction_set_at(len(names))) is not None:
        names.append(name.decode())
    return names


def _use_forced_set(library: ctypes.CDLL) -> None:
    """Use the instruction set that the environment names, if it was compiled and the processor has it."""
    wanted = os.environ.get(_FORCED, "")
    if wanted and library.gpuslice_use_instruction_set(wanted.encode()):
        used, compiled = library.gpuslice_instruction_set().decode(), ", ".join(_compiled_sets(library))
        text = f"{_FORCED}={wanted} is not available: compiled are {compiled}, and the processor may lack some"
        warnings.warn(f"{text}; {used} is used", RuntimeWarning, stacklevel=2)


LIBRARY, _REASON = load(_PACKAGE / kernel_sources.LIBRARY)
_FUNCTION = (ctypes.cast(LIBRARY.gpuslice_copy, ctypes.c_void_p).value or 0) if LIBRARY is not None else 0
