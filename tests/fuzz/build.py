"""Compile the kernels for the fuzz under sanitizers: the CUDA executor emulated, and the host executor.

What was compiled is kept in .cache/fuzz/ of the checkout, by a digest of sources, options and compiler, so that the
next time costs nothing.
"""

import functools
import hashlib
import os
import platform
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from gpuslice.engine.plan import kernel_sources

HERE = Path(__file__).resolve().parent
EMULATED = HERE.parent / "cuda_on_cpu" / "device"
CACHE = HERE.parents[1] / ".cache" / "fuzz"
DAYS_KEPT = 14
THREADS = 32  # of a block: fewer than on a device, which is quicker and reaches the edges of smaller tiles
KINDS = (
    "rows",
    "planes",
    "interleaved",
    "rearranged",
    "tiles",
    "pixel_tiles",
    "pixel_rows",
    "unstacked",
    "stacked",
)  # as in shared.h
# By the bits of an index, a small capacity of the tables and the largest.
CAPACITIES = {bits: (sizes[1], sizes[-1]) for bits, sizes in kernel_sources.CUDA_CAPACITIES.items()}
# Without optimization, what takes long, compiling under sanitizers, takes a third of the time.
COMPILE = ["g++", "-std=c++20", "-O0", "-g1", "-fPIC", "-pthread", "-w"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
SANITIZE_QUICKLY = ["-fsanitize=address"]


def build(kernels=None, kinds=KINDS, *, every=False):
    """Return the folder of the libraries for a folder of kernels.

    Unless all kinds of kernels are wanted, only what a mutant needs is compiled: 32-bit indices, small tables, no host
    executor, no sanitizer of undefined behaviour. ``every`` adds tables of one part and those of middle size, and large
    tables for all kernels: all that a launch can ask for. This takes three times as long.
    """
    kernels = kernels or kernel_sources.folder()
    quick = tuple(kinds) != KINDS
    sanitize = SANITIZE_QUICKLY if quick else SANITIZE
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        libraries = {"emulate": emulated(pool, kernels, kinds, sanitize, every)}
        for name in [] if quick else instruction_sets():
            options = [*sanitize, f"-march={name}", "-DGPUSLICE_INLINE=inline"]
            files = [kernels / "host_kernels.cpp", kernels / "host.cpp"]
            libraries[f"host-{name}"] = [pool.submit(compiled, file, [kernels], options) for file in files]
        objects = {name: [future.result() for future in futures] for name, futures in libraries.items()}
    folder = CACHE / digest(*sorted(objects.items()))
    if not folder.exists():
        forget_old()
    for name, parts in objects.items():
        if not (folder / f"{name}.so").exists():
            folder.mkdir(parents=True, exist_ok=True)
            make(folder / f"{name}.so", ["-shared", *sanitize, *map(str, parts)])
        os.utime(folder / f"{name}.so")
    return folder


def emulated(pool, kernels, kinds, sanitize, every):
    """Compile the objects of the CUDA executor."""
    wanted = sum(1 << KINDS.index(kind) for kind in kinds)
    options = [*sanitize, f"-DTHREADS={THREADS}", f"-DGPUSLICE_THREADS={THREADS}"]
    yield pool.submit(compiled, EMULATED / "block.cpp", [EMULATED], [*sanitize, "-O2"])
    yield pool.submit(compiled, HERE / "emulate.cpp", [EMULATED, HERE], [*options, "-O2"])
    capacities = kernel_sources.CUDA_CAPACITIES if every else CAPACITIES
    for bits in capacities if tuple(kinds) == KINDS else [32]:
        for capacity in capacities[bits] if tuple(kinds) == KINDS else capacities[bits][:1]:
            defines = [f"-DINDEX_BITS={bits}", f"-DCAPACITY={capacity}", f"-DKINDS={wanted}", f"-DEVERY={int(every)}"]
            yield pool.submit(compiled, HERE / "kernels.cpp", [kernels, EMULATED, HERE], [*options, *defines])


def compiled(source, includes, options):
    """Return the object of a source, compiled unless it is in the cache."""
    headers = [path for folder in includes for path in sorted(folder.iterdir()) if path.suffix in (".h", ".cu", ".cuh")]
    key = digest(options, *[(path.name, path.read_bytes()) for path in [source, *headers]])
    made = CACHE / "objects" / f"{source.stem}-{key}.o"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        make(made, ["-c", *options, *[f"-I{folder}" for folder in includes], str(source)])
    os.utime(made)
    return made


def make(target, arguments):
    """Run the compiler; the target appears at once, whole, or not at all."""
    fresh = target.with_suffix(f".{os.getpid()}-{threading.get_ident()}{target.suffix}")
    command = [*COMPILE, *arguments, "-o", str(fresh)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the kernels do not compile:\n{done.stderr[:3000]}")
    fresh.replace(target)


def digest(*parts):
    """Return a name for what is made of these parts by this compiler."""
    return hashlib.sha256(repr((compiler(), COMPILE, parts)).encode()).hexdigest()[:16]


@functools.cache
def compiler():
    """Return what the compiler says that it is."""
    return subprocess.check_output(["g++", "--version"], text=True).splitlines()[0] + platform.machine()


@functools.cache
def instruction_sets():
    """Return the instruction sets of this processor that the host executor is compiled for."""
    processor = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or not processor.exists():
        return []
    return ["x86-64-v2", *["x86-64-v3"] * ("avx2" in processor.read_text())]


def forget_old():
    """Remove what was not used for some time, and the folders of libraries that are empty then."""
    oldest = time.time() - DAYS_KEPT * 24 * 3600
    for path in list(CACHE.rglob("*.*")):
        with suppress(OSError):  # another build renames its files meanwhile, and only an empty folder can be removed
            if path.is_file() and path.stat().st_mtime < oldest:
                path.unlink()
                if path.suffix == ".so":
                    path.parent.rmdir()


def sanitized():
    """Return the environment in which Python can load the libraries; None if the compiler has no sanitizers."""
    names = ("libasan.so", "libubsan.so")
    paths = [subprocess.check_output(["g++", f"-print-file-name={name}"], text=True).strip() for name in names]
    if not all(Path(path).is_absolute() for path in paths):
        return None
    return os.environ | {"LD_PRELOAD": ":".join(paths), "ASAN_OPTIONS": "detect_leaks=0"}
