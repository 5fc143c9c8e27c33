"""Versions, executors and devices as text, for a bug report."""

import sys
from typing import Any

from gpuslice.devices import list_cuda
from gpuslice.engine import calls, host, host_library
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
    "torch",
    "jax",
    "dask",
)


def read_config() -> dict[str, Any]:
    """Return versions, executors and devices by name, as JSON has them. A package that is not installed is None."""
    import platform  # slow to import, so only here

    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": {package: _version(package) for package in _PACKAGES},
        "host_kernels": {
            "missing_because": host_library.reason() or None,
            "instruction_sets": host_library.instruction_sets(),
            "instruction_set": host_library.instruction_set() or None,
            "threads": host.threads(),
        },
        "known_calls": {"not_compiled_because": calls.REASON or None},
        "cuda_devices": list_cuda(),
    }


def describe_config() -> str:
    """Return versions, executors and devices as lines of text."""
    config = read_config()
    lines = [
        f"python {config['python']} ({config['implementation']}), {config['system']} {config['machine']}",
        *(f"{package} {version or 'not installed'}" for package, version in config["packages"].items()),
        f"host kernels (NumPy arrays): {_described(**config['host_kernels'])}",
        f"known calls: {f'in Python, since {calls.REASON}' if calls.REASON else 'compiled'}",
        f"CUDA devices: {', '.join(config['cuda_devices']) or 'none'}",
    ]
    return "\n".join(lines)


def show_config() -> None:
    """Print versions, executors and devices. Paste the text into a bug report."""
    print(describe_config())


def _described(
    missing_because: str | None, instruction_sets: list[str], instruction_set: str | None, threads: int
) -> str:
    if missing_because:
        remedy = "run `nox -s kernels`" if is_checkout() else _REINSTALL
        return f"not available: {missing_because}. To build them, {remedy}"
    return f"compiled for {', '.join(instruction_sets)}; {instruction_set} is used, with up to {threads} threads"


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
