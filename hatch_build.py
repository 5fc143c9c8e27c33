"""Build hook: compiles kernels/ for the host where a C++ compiler is there; without one the wheel is pure Python."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = "gpuslice/_kernels.so"
FLAGS = [
    "-std=c++20",
    "-O2",
    "-fPIC",
    "-shared",
    "-pthread",
    "-fvisibility=hidden",
    "-static-libstdc++",
    "-static-libgcc",
]
# The baseline has the byte shuffles that the kernels are made of; newer sets are chosen when the library is loaded.
BASELINE = {"x86_64": ["-march=x86-64-v2"]}


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
        source = Path(self.root) / "kernels" / "host.cpp"
        chosen = shlex.split(os.environ.get("CXX", ""))
        compilers = [chosen] if chosen else [["g++"], ["c++"], ["clang++"]]
        fresh = library.with_suffix(".new")  # what an editable install has loaded stays until there is better
        for compiler in (words for words in compilers if shutil.which(words[0])):
            # Not every compiler can choose between instruction sets when the library is loaded.
            for extra in ([], ["-DGPUSLICE_ONE_TARGET"]):
                flags = [*FLAGS, *BASELINE.get(platform.machine(), []), *extra]
                command = [*compiler, *flags, str(source), "-o", str(fresh)]
                if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                    fresh.replace(library)
                    return True
        self.app.display_warning("gpuslice: no C++20 compiler; NumPy will copy in place of the kernels")
        return False
