"""CUDA kernels as callables of CuPy: compiled by NVRTC on their first use, or before by `compile_all`.

CuPy keeps compiled code on disk, from 14.2 on also that of instantiations, so that a later process only loads it.
"""

import os
import warnings
from collections import abc
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import cupy

from gpuslice.engine.plan import CUDA_32, CUDA_64, Kernel, Layout, all_instantiations, instantiation, kernel_sources

# Parameters of 32,764 bytes need CUDA 12.1, in the driver and in NVRTC; before, a launch took 4,096.
_LARGE_PARAMETERS = 12010
_LEAST_CUPY = (14, 2)  # older versions do not look for instantiations on disk, or do not find them


class Wanted(NamedTuple):
    """An instantiation for a device.

    Attributes
    ----------
    kind, width, variant
        The kernel; see `Kernel`.
    bits : {32, 64}
    capacity : int
        Parts that a launch can hold.
    device : int
    """

    kind: str
    width: int
    variant: int
    bits: int
    capacity: int
    device: int

    @property
    def kernel(self) -> Kernel:
        """The kernel without what an index and a table can hold."""
        return Kernel(self.kind, self.width, self.variant)


@cache
def compiled(kind: str, width: int, variant: int, bits: int, capacity: int, device: int) -> Any:
    """Return an instantiation for the current device, compiled on first use.

    Raises
    ------
    RuntimeError
        It cannot be compiled or loaded.
    """
    name = instantiation(kind, width, variant, bits, capacity)
    described = f"CUDA kernel {name} for device {device}"
    if _is_capturing():
        # To try would make the capture invalid.
        raise RuntimeError(_not_in_a_capture(described))
    _warn_of_old_cupy()
    folder = kernel_sources.folder()
    # CuPy's cache key has the text of the source alone; the digest makes it see a change in an included file.
    options = ("-std=c++17", f"-I{folder}", f"-DGPUSLICE_DIGEST=0x{kernel_sources.digest()}")
    source = (folder / "copy.cu").read_text()
    with _explained(described, device):
        module = cupy.RawModule(code=source, options=options, name_expressions=(name,))
        return module.get_function(name).kernel  # this device's own, without a look-up per launch


def compile_all(wanted: abc.Iterable[Wanted], progress: abc.Callable[[int, int], object] | None = None) -> None:
    """Compile instantiations in several threads: NVRTC does not hold Python's lock, and its own only in parts.

    ``progress`` is called with how many are ready and how many there are.
    """
    wanted = list(wanted)
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        futures = [pool.submit(_compile_on_its_device, one) for one in wanted]
        for done, future in enumerate(as_completed(futures), 1):
            future.result()
            if progress is not None:
                progress(done, len(wanted))
    finally:
        pool.shutdown(cancel_futures=True)


def of_widths(widths: abc.Container[int], device: int) -> list[Wanted]:
    """Return all instantiations for items of some widths that launches on a device can ask for."""
    largest = {layout(bits).index_bits: layout(bits).capacities[-1] for bits in (32, 64)}
    return [Wanted(*one, device) for one in all_instantiations() if one[1] in widths and one[-1] <= largest[one[-2]]]


def layout(bits: int) -> Layout:
    """Return the layout of the parameters of launches with indices of so many bits."""
    whole = {32: CUDA_32, 64: CUDA_64}[bits]
    return whole if cuda_version() >= _LARGE_PARAMETERS else whole.in_small_parameters()


@cache
def cuda_version() -> int:
    """Return the newest version, such as 13020, that both the driver and NVRTC have."""
    with _explained("CUDA kernels", None):
        major, minor = cupy.cuda.nvrtc.getVersion()
    return min(int(cupy.cuda.runtime.driverGetVersion()), int(major) * 1000 + int(minor) * 10)


@cache
def capability(device: int) -> int:
    """Return a device's compute capability, such as 90."""
    return int(cupy.cuda.Device(device).compute_capability)


def _compile_on_its_device(wanted: Wanted) -> None:
    with cupy.cuda.Device(wanted.device):
        compiled(*wanted)


@cache
def _warn_of_old_cupy() -> None:
    """Warn, once in a process, if CuPy forgets compiled kernels."""
    major, minor, *_ = cupy.__version__.split(".")
    if (int(major), int(minor)) < _LEAST_CUPY:
        warnings.warn(
            f"gpuslice needs CuPy {'.'.join(map(str, _LEAST_CUPY))} or newer; got CuPy {cupy.__version__}, which does "
            "not keep compiled kernels: each process compiles them again. pip install 'gpuslice[cuda13]', or "
            "'gpuslice[cuda12]' for CUDA 12",
            RuntimeWarning,
            stacklevel=2,
        )


def _is_capturing() -> bool:
    try:
        return bool(cupy.cuda.get_current_stream().is_capturing())
    except cupy.cuda.runtime.CUDARuntimeError:  # the default stream cannot be asked while another one captures
        return False


@contextmanager
def _explained(wanted: str, device: int | None) -> abc.Iterator[None]:
    """Say what was wanted if CuPy fails to compile or load it, and why. NVRTC's versions fail in different ways."""
    try:
        yield
    except (cupy.cuda.compiler.CompileException, cupy.cuda.driver.CUDADriverError) as error:
        if "STREAM_CAPTURE" in str(error):
            raise RuntimeError(_not_in_a_capture(wanted)) from error
        does = "compile" if isinstance(error, cupy.cuda.compiler.CompileException) else "load"
        raise RuntimeError(f"{wanted} does not {does}: {_unfit(device) or error}") from error
    except (ImportError, OSError, RuntimeError, AssertionError) as error:
        raise RuntimeError(
            f"{wanted} cannot be compiled. NVRTC or a part of it may be missing: pip install 'gpuslice[cuda13]', "
            f"or 'gpuslice[cuda12]' for CUDA 12. CuPy says: {error}"
        ) from error


def _not_in_a_capture(wanted: str) -> str:
    return (
        f"{wanted} is not compiled and loaded yet, which a capture of a CUDA graph forbids. Before the capture, call "
        "gpuslice.warm_up(...) with the function and its arguments"
    )


def _unfit(device: int | None) -> str:
    """Return why this NVRTC cannot compile for a device; an empty text if it can."""
    known = cupy.cuda.nvrtc.getSupportedArchs()
    if device is None or min(known) <= capability(device) <= max(known):
        return ""
    version = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
    older = capability(device) > max(known)
    least, most, has = (f"{number // 10}.{number % 10}" for number in (min(known), max(known), capability(device)))
    return (
        f"NVRTC {version} is too {'old' if older else 'new'} for the device. It compiles for compute capabilities "
        f"{least} to {most}, and the device has {has}. Install {'a newer' if older else 'an older'} one"
    )
