"""What is installed and what runs what, in one paste for a bug report."""

import platform
import sys
from importlib import metadata

from gpuslice.devices import list_cuda

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
    """Give versions, executors and devices as lines of text."""
    python = f"python {platform.python_version()} ({sys.implementation.name})"
    lines = [f"{python}, {platform.system()} {platform.machine()}"]
    lines += [f"{package} {_version(package)}" for package in _PACKAGES]
    lines.append("executors: generic (Array API assignment, every library)")
    lines.append(f"CUDA devices: {', '.join(list_cuda()) or 'none'}")
    return "\n".join(lines)


def show_config() -> None:
    """Print versions, executors and devices: what to paste into a bug report."""
    print(describe_config())


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
