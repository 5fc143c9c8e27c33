"""Build what CuPy needs to run on a CPU into a folder: python tests/cuda_on_cpu/build.py FOLDER.

The folder gets the driver (libcuda.so.1), the compiler (libnvrtc.so.13) and CuPy's runtime module, rebuilt from CuPy's
own source distribution so that it calls that driver. What is built already, of the same sources and versions, stays.
"""

import argparse
import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
CUPY = "14.2.0"
# Packages, and how their versions begin.
PINNED = {"cupy-cuda13x": CUPY, "nvidia-cuda-runtime": "13.2.", "nvidia-cuda-crt": "13.2."}
BUILDING = {"cython": "3.1.", "setuptools": ""}
DRIVER, COMPILER = "libcuda.so.1", "libnvrtc.so.13"
RUNTIME = "cupy_backends/cuda/api/runtime"
# As CuPy's own build calls Cython for CUDA 13.2.
CYTHON_ENVIRONMENT = {
    "CUPY_USE_CUDA_PYTHON": "False",
    "CUPY_CUFFT_STATIC": "False",
    "CUPY_CUDA_VERSION": "13020",
    "CUPY_HIP_VERSION": "0",
}


class Unfit(Exception):
    """What is missing on this machine. The message says it."""


def check(pins):
    """Raise Unfit unless these packages are installed in these versions."""
    for package, version in pins.items():
        try:
            installed = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            installed = "none"
        if installed == "none" or not installed.startswith(version):
            raise Unfit(f"{package} {version}* is needed; installed is {installed}")


def fingerprint():
    """Return what a build depends on, as text; raise Unfit if a build cannot be made or used here."""
    if (sys.platform, platform.machine(), sys.implementation.name) != ("linux", "x86_64", "cpython"):
        raise Unfit("CuPy runs on a CPU with CPython on x86-64 Linux only")
    if not shutil.which("g++"):
        raise Unfit("g++ is needed")
    check(PINNED)
    gcc = subprocess.check_output(["g++", "-dumpfullversion"], text=True).strip()
    parts = sorted(path for path in HERE.rglob("*") if path.suffix in (".h", ".cpp") or path.name == "build.py")
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in parts)).hexdigest()[:16]
    return f"CuPy {CUPY} for {suffix()} by g++ {gcc} from {HERE} {digest}"


def suffix():
    """Return the suffix of extension modules of this Python."""
    return sysconfig.get_config_var("EXT_SUFFIX")


def is_built(folder):
    """Return whether a folder holds a build of these sources; raise Unfit if it cannot be made or used here."""
    needed, stamp = fingerprint(), folder / "stamp"
    return stamp.is_file() and stamp.read_text() == needed


def build(folder):
    """Build everything, unless it is there."""
    if is_built(folder):
        return
    check(BUILDING)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stamp").unlink(missing_ok=True)
    headers = importlib.metadata.distribution("nvidia-cuda-runtime").locate_file("nvidia/cu13/include")
    write_stubs(Path(headers), folder)
    includes = [f"-I{HERE}/device", "-isystem", headers]
    cython = [sys.executable, "-m", "cython", "-3", "--cplus", *cython_options(), f"{RUNTIME}.pyx"]
    with ThreadPoolExecutor() as pool:
        driver = pool.submit(
            run, [*gxx(DRIVER), *includes, *sources("device"), *sources("driver"), "stubs.cpp"], folder
        )
        compiler = pool.submit(run, [*gxx(COMPILER), *includes, *names(), *sources("compiler")], folder)
        source = fetch(folder)
        run(cython, source)
        driver.result(), compiler.result()
    includes = [f"-I{folder}/include", f"-I{sysconfig.get_paths()['include']}", "-Icupy_backends", "-isystem", headers]
    run([*gxx(folder / f"runtime{suffix()}"), "-O0", *includes, f"{RUNTIME}.cpp", folder / DRIVER], source)
    (folder / "stamp").write_text(fingerprint())


def gxx(target):
    """Return the first words of a command that makes a shared library, which other libraries find by its name."""
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared", "-pthread", "-w", f"-Wl,-soname,{Path(target).name}"]
    return ["g++", *flags, "-o", target]


def sources(part):
    """Return the sources of a part."""
    return sorted((HERE / part).glob("*.cpp"))


def names():
    """Return macros for the compiler: where its headers are, and the name of the build, which CuPy's cache of kernels uses."""
    return [f'-DHEADERS="{HERE}/device"', f'-DBUILD="{fingerprint()}"']


def cython_options():
    """Return options with the constants that CuPy's sources need."""
    return [word for name, value in CYTHON_ENVIRONMENT.items() for word in ("-E", f"{name}={value}")]


def write_stubs(headers, folder):
    """Write entry points that fail, one for each of the CUDA runtime's that the driver does not have."""
    text = (headers / "cuda_runtime_api.h").read_text()
    names = {name for name in re.findall(r"CUDARTAPI\s+(cuda[A-Z]\w*)\s*\(", text) if not name.endswith("_ptsz")}
    profiler = ["cudaProfilerStart", "cudaProfilerStop"]
    stub = '__attribute__((weak)) int {0}() {{ return cuda_on_cpu_missing("{0}"); }}\n'
    lines = [stub.format(name) for name in sorted({*names, *profiler})]
    (folder / "stubs.cpp").write_text('extern "C" {\nint cuda_on_cpu_missing(const char*);\n' + "".join(lines) + "}\n")
    # CuPy's sources include this header, and the packages do not have it.
    (folder / "include").mkdir(exist_ok=True)
    declarations = "".join(f'extern "C" cudaError_t {name}(void);\n' for name in profiler)
    (folder / "include" / "cuda_profiler_api.h").write_text(f"#include <cuda_runtime_api.h>\n{declarations}")


def fetch(folder):
    """Download and unpack CuPy's source distribution; return its folder."""
    archive = folder / f"cupy-{CUPY}.tar.gz"
    if not archive.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        kind = ["--no-binary", "cupy", "--no-build-isolation", "--dest", folder]
        # Without a CUDA toolkit, CuPy's metadata can be read only with this.
        environment = os.environ | {"CUPY_INSTALL_USE_STUB": "1"}
        run([*pip, *kind, f"cupy=={CUPY}"], folder, env=environment)
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / f"cupy-{CUPY}"


def run(command, folder, **more):
    """Run a command in a folder; show its output if it fails."""
    done = subprocess.run(
        list(map(str, command)), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nthe build failed")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    try:
        build(parser.parse_args().folder.resolve())
    except Unfit as unfit:
        raise SystemExit(f"cannot build: {unfit}") from None
