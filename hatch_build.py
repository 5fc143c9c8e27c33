"""Build hook: compiles kernels/ for the host where a C++ compiler is there; without one the wheel is pure Python."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = "gpuslice/_kernels.so"
FLAGS = [
    "-std=c++20",
    "-O2",
    "-fPIC",
    "-pthread",
    "-fvisibility=hidden",
]
LINK = ["-shared", "-static-libstdc++", "-static-libgcc"]
# Instruction sets by the namespace that their kernels are put in; host.cpp chooses when it runs. The lowest has the
# byte shuffles that the kernels are made of.
SETS = {"x86_64": {"gpuslice_v2": "-march=x86-64-v2", "gpuslice_v3": "-march=x86-64-v3"}}


class CustomBuildHook(BuildHookInterface):
    """Put the compiled library into wheels, and beside the sources of an editable install."""

    def initialize(self, version, build_data):
        """Compile, and say that the wheel is for this platform if that went well."""
        library = Path(self.root) / LIBRARY
        if self.target_name != "wheel" or not self.compile(library):
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        if version != "editable":
            build_data["force_include"][str(library)] = LIBRARY

    def compile(self, library):
        """Compile the library; False where that can't be done."""
        if sys.platform != "linux":
            return False
        chosen = shlex.split(os.environ.get("CXX", ""))
        compilers = [chosen] if chosen else [["g++"], ["c++"], ["clang++"]]
        fresh = library.with_suffix(".new")  # what an editable install has loaded stays until there is better
        sets = SETS.get(platform.machine(), {})
        for compiler in (words for words in compilers if shutil.which(words[0])):
            # Not every compiler knows the sets by name, or how to ask a processor for them.
            for wanted in (sets, {}) if sets else ({},):
                if self.build(compiler, wanted, fresh):
                    fresh.replace(library)
                    return True
        self.app.display_warning("gpuslice: no C++20 compiler; NumPy will copy in place of the kernels")
        return False

    def build(self, compiler, sets, library):
        """Compile the kernels for each set, at once, and link them; False where that failed."""
        kernels = Path(self.root) / "kernels"
        command = [*compiler, *FLAGS]
        with tempfile.TemporaryDirectory() as folder:
            jobs = {f"{folder}/{name}.o": [f"-Dgpuslice={name}", march] for name, march in sets.items()} or {
                f"{folder}/kernels.o": []
            }
            running = [
                subprocess.Popen(
                    [*command, *flags, "-c", str(kernels / "host_kernels.cpp"), "-o", made],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                for made, flags in jobs.items()
            ]
            codes = [process.wait() for process in running]
            if any(codes):
                return False
            define = ["-DGPUSLICE_SETS"] if sets else []
            link = [*command, *define, *LINK, str(kernels / "host.cpp"), *jobs, "-o", str(library)]
            return subprocess.run(link, capture_output=True, check=False).returncode == 0
