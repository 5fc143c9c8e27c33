"""Load CuPy on what build.py built: call load(folder) before CuPy is imported."""

import ctypes
import importlib.util
import os
import sys

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
