"""Build hook: compiles kernels/ for the host where a C++ compiler is there; without one the wheel is pure Python."""

import os
import platform
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
        library.unlink(missing_ok=True)
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
        compilers = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "c++", "clang++"]
        for compiler in filter(shutil.which, compilers):
            # Not every compiler can choose between instruction sets when the library is loaded.
            for extra in ([], ["-DGPUSLICE_ONE_TARGET"]):
                command = [
                    compiler,
                    *FLAGS,
                    *BASELINE.get(platform.machine(), []),
                    *extra,
                    str(source),
                    "-o",
                    str(library),
                ]
                if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                    return True
        self.app.display_warning("gpuslice: no C++20 compiler; NumPy will copy in place of the kernels")
        return False
