"""Compile kernels/ for the host: what the build hook of a wheel and ``nox -s kernels`` have in common.

    python gpuslice/engine/host_build.py    compiles in place, in a checkout

This makes two files: the library of the kernels, and the extension module for known calls. The second needs the headers
of Python and NumPy, too. Both callers load this file by its path, before gpuslice can be imported, so it imports the
standard library only.
"""

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import abc
from pathlib import Path
from types import ModuleType

_FLAGS = ["-std=c++20", "-O2", "-fPIC", "-pthread", "-fvisibility=hidden"]
_LINK = ["-shared", "-static-libstdc++", "-static-libgcc"]
# Options of the instruction sets that one library holds, by processor. kernels/host.cpp chooses one when it is loaded;
# the lowest has the byte shuffles that the kernels are made of.
_SETS = {"x86_64": ["-march=x86-64-v3", "-march=x86-64-v2"]}
_ERROR_LINES = 12

# The language features that the kernels need, so that what does not compile after this is the kernels' own error.
_PROBE = """
#include <cstddef>
#include <thread>
#include <utility>
struct Pair { int a, b; };
template <Pair P> constexpr int sum = P.a + P.b;
typedef unsigned char Vector __attribute__((vector_size(16)));
template <int... I> Vector reversed(Vector v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (15 - I)...);
}
extern "C" int probe(Vector* v) {
  *v = reversed(*v, std::make_integer_sequence<int, 16>{});
  std::thread([] {}).join();
  return sum<Pair{1, 2}>;
}
"""
_PROBE_SET = """
extern "C" int probe() { return __builtin_cpu_supports("x86-64-v2") && __builtin_cpu_supports("x86-64-v3"); }
"""


def _load_sources() -> ModuleType:
    """Load plan/kernel_sources.py by its path: importing gpuslice needs NumPy."""
    path = Path(__file__).parent / "plan" / "kernel_sources.py"
    spec = importlib.util.spec_from_file_location("gpuslice_kernel_sources", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


_SOURCES = _load_sources()
LIBRARY: str = _SOURCES.LIBRARY
REASON: str = _SOURCES.REASON
CALLS: str = _SOURCES.CALLS


class NoCompiler(Exception):
    """There is no C++ compiler that can compile the kernels; the message says why."""


class NoHeaders(Exception):
    """The headers that an extension module needs are not here; the message says which."""


class KernelsDoNotCompile(Exception):
    """There is a compiler, and it refuses the kernels; the message has its first lines."""


def reason_of(error: Exception) -> str:
    """Return an error of this module as one line, which `gpuslice info` shows."""
    first = str(error).splitlines()[0]
    return f"they did not compile: {first}" if isinstance(error, KernelsDoNotCompile) else first


def compile_library(kernels: Path, library: Path) -> None:
    """Compile the kernels of a folder into a library. If that fails, no library is left there, not even an older one.

    Raises
    ------
    NoCompiler
        Neither ``CXX`` nor g++, c++ or clang++ compiles a small C++20 program.
    KernelsDoNotCompile
    """
    library.unlink(missing_ok=True)
    compiler = find_compiler()
    digest = _SOURCES.digest_of(kernels)
    with tempfile.TemporaryDirectory() as scratch:
        sets = _supported_sets(compiler, Path(scratch))
        objects = [f"{scratch}/kernels-{i}.o" for i in range(len(sets))]
        _run_all(
            [
                [*compiler, *options, "-c", str(kernels / "host_kernels.cpp"), "-o", made]
                for options, made in zip(sets, objects, strict=True)
            ]
        )
        define = [f'-DGPUSLICE_DIGEST="{digest}"', *["-DGPUSLICE_SETS"] * (len(sets) > 1)]
        fresh = f"{scratch}/{LIBRARY}"
        source = str(kernels / "host.cpp")
        _run_all([[*compiler, *define, *_LINK, source, *objects, *_words("LDFLAGS"), "-o", fresh]])
        shutil.copy(fresh, library.with_suffix(".new"))
    library.with_suffix(".new").replace(library)  # at once: a process that has the old one loaded keeps it


def compile_calls(kernels: Path, module: Path) -> None:
    """Compile the extension module for known calls. If that fails, no module is left there, not even an older one.

    Raises
    ------
    NoCompiler
    NoHeaders
        There are no headers of Python or NumPy, or this Python has no stable ABI: it is not CPython, or has no GIL.
    KernelsDoNotCompile
    """
    module.unlink(missing_ok=True)
    compiler = find_compiler()
    headers = [f"-I{folder}" for folder in _header_folders()]
    define = f'-DGPUSLICE_DIGEST="{_SOURCES.digest_of(kernels)}"'
    fresh = module.with_suffix(".new")
    _run_all([[*compiler, define, *headers, *_LINK, str(kernels / "calls.cpp"), *_words("LDFLAGS"), "-o", str(fresh)]])
    fresh.replace(module)


def _header_folders() -> list[Path]:
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise NoHeaders("this Python has no stable ABI")
    python = Path(sysconfig.get_path("include"))
    if not (python / "Python.h").is_file():
        raise NoHeaders(f"the headers of Python are not in {python}")
    numpy = importlib.util.find_spec("numpy")
    folders = list(numpy.submodule_search_locations or ()) if numpy is not None else []
    includes = [Path(folder) / "_core/include" for folder in folders]
    found = [folder for folder in includes if (folder / "numpy/arrayobject.h").is_file()]
    if not found:
        raise NoHeaders("the headers of NumPy 2 are not installed")
    return [python, found[0]]


def find_compiler() -> list[str]:
    """Return the command of a C++20 compiler with its options: ``CXX``, else g++, c++ or clang++.

    Raises
    ------
    NoCompiler
    """
    if sys.platform != "linux":
        raise NoCompiler(f"the kernels are compiled on Linux only, not on {sys.platform}")
    chosen = _words("CXX")
    tried = []
    for words in [chosen] if chosen else [["g++"], ["c++"], ["clang++"]]:
        if shutil.which(words[0]) is None:
            tried.append(f"{words[0]} is not found")
            continue
        compiler = [*words, *_FLAGS, *_words("CXXFLAGS")]
        with tempfile.TemporaryDirectory() as scratch:
            failed = _probe(compiler, _PROBE, Path(scratch))
        if failed is None:
            return compiler
        tried.append(f"{shlex.join(words)} does not compile a small C++20 program: {failed}")
    raise NoCompiler("no C++20 compiler: " + "; ".join(tried))


def _supported_sets(compiler: abc.Sequence[str], scratch: Path) -> list[list[str]]:
    """Return the options of each instruction set; one without options if the compiler does not know the sets."""
    sets = [[option] for option in _SETS.get(platform.machine(), [])]
    if sets and all(_probe([*compiler, *options], _PROBE_SET, scratch) is None for options in sets):
        return sets
    return [[]]


def _probe(command: abc.Sequence[str], text: str, scratch: Path) -> str | None:
    """Return the first line of a compiler's complaint about a small library; None if it makes it."""
    source = scratch / "probe.cpp"
    source.write_text(text)
    made = [*command, *_LINK, str(source), *_words("LDFLAGS"), "-o", str(scratch / "probe.so")]
    done = subprocess.run(made, capture_output=True, text=True, errors="replace", check=False)
    return None if done.returncode == 0 else _first_lines(done.stderr, 1)


def _run_all(commands: abc.Sequence[abc.Sequence[str]]) -> None:
    """Run commands at the same time."""
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") for command in commands]
    outputs = [process.communicate()[1] for process in running]
    for process, output in zip(running, outputs, strict=True):
        if process.returncode:
            command = shlex.join(map(str, process.args))  # type: ignore[arg-type]
            raise KernelsDoNotCompile(f"{_first_lines(output, _ERROR_LINES)}\n  by: {command}")


def _first_lines(output: str, count: int) -> str:
    """Return the first error of a compiler and the lines behind it."""
    lines = output.strip().splitlines() or ["the compiler failed and said nothing"]
    first = next((i for i, line in enumerate(lines) if "error" in line), 0)
    return "\n".join(lines[first : first + count])


def _words(variable: str) -> list[str]:
    return shlex.split(os.environ.get(variable, ""))


def main() -> int:
    """Compile both files of a checkout in place, and print what went wrong."""
    package = Path(__file__).resolve().parents[1]
    try:
        compile_library(_SOURCES.folder(), package / LIBRARY)
        compile_calls(_SOURCES.folder(), package / CALLS)
    except NoHeaders as error:
        print(f"known calls stay in Python: {error}", file=sys.stderr)
    except (NoCompiler, KernelsDoNotCompile) as error:
        (package / REASON).write_text(f"{reason_of(error)}\n")
        print(error, file=sys.stderr)
        return 1
    (package / REASON).unlink(missing_ok=True)
    print(*[f"compiled {made}" for made in (package / LIBRARY, package / CALLS) if made.exists()], sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
