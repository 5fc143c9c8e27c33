"""Load CuPy on what build.py built: call load(folder) before CuPy is imported."""

import ctypes
import importlib.util
import os
import runpy
import sys
from pathlib import Path

from cuda_on_cpu.build import COMPILER, DRIVER, suffix

RUNTIME = "cupy_backends.cuda.api.runtime"


class Finder:
    """Finds the rebuilt runtime module of CuPy."""

    def __init__(self, folder):
        self.path = folder / f"runtime{suffix()}"

    def find_spec(self, name, path=None, target=None):
        """Return the rebuilt module; None for other names."""
        return importlib.util.spec_from_file_location(name, self.path) if name == RUNTIME else None


def load(folder):
    """Make CuPy run on the CPU in this process; return the driver."""
    if "cupy" in sys.modules:
        raise RuntimeError("CuPy was imported too early")
    os.environ["CUPY_ACCELERATORS"] = ""  # they bring code for GPUs
    os.environ.setdefault("CUPY_CACHE_DIR", str(folder / "kernels"))
    # CuPy loads both by name, and gets those that are loaded already.
    driver, _ = (ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL) for name in (DRIVER, COMPILER))
    driver.cuda_on_cpu_description.restype = ctypes.c_char_p
    sys.meta_path.insert(0, Finder(folder))
    import cupy

    if not cupy.cuda.is_available():
        raise RuntimeError("CuPy does not see the emulated device")
    if driver.cuda_on_cpu_guards():
        cupy.cuda.set_allocator(allocate)
    return driver


def allocate(size):
    """Allocate memory for one array, without CuPy's pool; raise its OutOfMemoryError if there is none left."""
    from cupy.cuda import memory, runtime

    try:
        return memory.MemoryPointer(memory.Memory(size), 0)
    except runtime.CUDARuntimeError as error:
        if "cudaErrorMemoryAllocation" not in str(error):
            raise
        free, total = runtime.memGetInfo()
        raise memory.OutOfMemoryError(size, total - free) from error


def main():
    """Run a program on the emulation: ``python -m cuda_on_cpu.load FOLDER (-m MODULE | FILE) ARGUMENTS``."""
    _, folder, *words = sys.argv
    load(Path(folder))
    is_module = words[0] == "-m"
    sys.argv = words[is_module:]
    if is_module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(words[0]).parent)  # as Python itself does for a file
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
