"""What the build leaves in the package: whether such a file is whole, and compiled from the sources that are here."""

import struct
import warnings
from pathlib import Path

from gpuslice.engine.plan import kernel_sources


def check_whole(path: Path) -> None:
    """Raise OSError if the end of a 64-bit ELF file is missing: loading what is left could end the process."""
    with path.open("rb") as file:
        start = file.read(64)
    if start[:5] == b"\x7fELF\x02" and len(start) == 64:
        (sections,) = struct.unpack_from("<Q", start, 40)  # the table of sections is the last thing in the file
        size, count = struct.unpack_from("<2H", start, 58)
        if sections + size * count > path.stat().st_size:
            raise OSError("its end is missing")


def why_other_sources(path: Path, built_from: str) -> str:
    """Return what is wrong with a file by the digest of its sources, and warn of it; empty if these are here."""
    wanted = kernel_sources.digest()
    if built_from == wanted:
        return ""
    text = f"{path} was compiled from other sources ({built_from}) than those of this checkout ({wanted})"
    warnings.warn(f"{text}; it is not used. Run `nox -s kernels`.", RuntimeWarning, stacklevel=3)
    return text
