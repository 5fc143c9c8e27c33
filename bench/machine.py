"""What a result was measured on."""

import os
import platform
import subprocess
import time
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = (
    "gpuslice",
    "numpy",
    "torch",
    "onnxruntime",
    "onnxruntime-gpu",
    "onnx",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "opencv-python-headless",
    "opencv-python",
    "pillow",
)


def machine() -> dict[str, Any]:
    """Return the processor, versions, commit and date."""
    from gpuslice.engine import host_library

    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": processor(),
        "kernels": host_library.instruction_set() or "not built",
        "threads": threads(),
        "python": platform.python_version(),
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
        "commit": commit(),
    }


def threads() -> int:
    """Return how many threads each library may use."""
    return int(os.environ.get("GPUSLICE_NUM_THREADS") or 1)


def all_threads() -> int:
    """Return how many threads "all" are: by the environment, or one per processor that this process may use."""
    given = int(os.environ.get("GPUSLICE_NUM_THREADS") or 0)
    return given or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def in_words(count: int) -> str:
    """Return a number of threads in words."""
    return "one thread" if count == 1 else f"{count} threads"


def processor() -> str:
    """Return the name of the processor, how many there are, and the size of the last cache."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.machine()
    try:
        cache = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text().strip()
    except OSError:
        cache = "unknown"
    return f"{model}, {os.cpu_count()} processors, L3 cache {cache}"


def gpu() -> dict[str, Any]:
    """Return what the CUDA device is."""
    import cupy

    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(cupy.cuda.Device().id)
    return {
        "name": properties["name"].decode(),
        "capability": f"{properties['major']}.{properties['minor']}",
        "memory_bytes": properties["totalGlobalMem"],
        "l2_bytes": properties["l2CacheSize"],
        "driver": runtime.driverGetVersion(),
        "runtime": runtime.runtimeGetVersion(),
    }


def commit() -> str:
    """Return the commit, with a + if files differ from it; empty outside a clone."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
