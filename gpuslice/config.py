"""Versions, executors and devices as text, for a bug report."""

import sys

from gpuslice.devices import list_cuda
from gpuslice.engine import host, host_library
from gpuslice.engine.plan.kernel_sources import is_checkout

_REINSTALL = "install g++ (or set CXX), then run `pip install --force-reinstall --no-cache-dir gpuslice`"
_PACKAGES = (
    "gpuslice",
    "numpy",
    "array-api-compat",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "ml_dtypes",
    "onnx",
    "onnxruntime",
    "array-api-strict",
)


def describe_config() -> str:
    """Return versions, executors and devices as lines of text."""
    import platform  # slow to import, so only here

    python = f"python {platform.python_version()} ({sys.implementation.name})"
    lines = [f"{python}, {platform.system()} {platform.machine()}"]
    lines += [f"{package} {_version(package)}" for package in _PACKAGES]
    lines.append(f"host kernels (NumPy arrays): {_host_kernels()}")
    lines.append(f"CUDA devices: {', '.join(list_cuda()) or 'none'}")
    return "\n".join(lines)


def show_config() -> None:
    """Print versions, executors and devices. Paste the text into a bug report."""
    print(describe_config())


def _host_kernels() -> str:
    reason = host_library.reason()
    if reason:
        return f"not available: {reason}. To build them, {'run `nox -s kernels`' if is_checkout() else _REINSTALL}"
    sets = ", ".join(host_library.instruction_sets())
    return f"compiled for {sets}; {host_library.instruction_set()} is used, with up to {host.threads()} threads"


def _version(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
