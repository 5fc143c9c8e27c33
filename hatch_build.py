"""Build hook: compiles kernels/ for the host and puts the library, and the module for known calls, into the wheel.

The environment variable GPUSLICE_KERNELS says what to do:

auto (default)
    Compile if there is a C++20 compiler. If there is none, the wheel is pure Python and says why in ``gpuslice info``.
    If there is one and the kernels do not compile, the build fails. Without the headers of Python or NumPy the wheel
    has no module for known calls, which are slower then.
require
    Fail without a compiler or without those headers, too.
off
    Do not compile. What an editable install has already stays, and is used if its sources are the same.
"""

import importlib.util
import os
import sysconfig
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODES = ("auto", "require", "off")


class CustomBuildHook(BuildHookInterface):
    """Put the compiled library into wheels, and into the package of an editable install."""

    scratch = None

    def initialize(self, version, build_data):
        """Compile, or leave the reason why not."""
        if self.target_name != "wheel":
            return
        build = load(Path(self.root) / "gpuslice/engine/host_build.py")
        folder = Path(self.root) / "gpuslice"
        if version != "editable":
            self.scratch = tempfile.TemporaryDirectory()
            folder = Path(self.scratch.name)
        reason = self.compile(build, folder)
        if reason:
            (folder / build.REASON).write_text(f"{reason}\n")
            self.app.display_warning(f"gpuslice: {reason}; NumPy will copy in place of the kernels")
        else:
            (folder / build.REASON).unlink(missing_ok=True)
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        if version != "editable":
            for made in folder.iterdir():
                build_data["force_include"][str(made)] = f"gpuslice/{made.name}"

    def finalize(self, version, build_data, artifact_path):
        """Remove what the wheel has now."""
        if self.scratch is not None:
            self.scratch.cleanup()

    def compile(self, build, folder):
        """Compile the library and the module, and return why there is no library; empty if there is one."""
        mode = os.environ.get("GPUSLICE_KERNELS", "auto")
        if mode not in MODES:
            raise SystemExit(f"GPUSLICE_KERNELS must be one of {', '.join(MODES)}; got {mode!r}")
        if mode == "off":
            return "they were not built, since GPUSLICE_KERNELS was off"
        kernels = Path(self.root) / "kernels"
        try:
            build.compile_library(kernels, folder / build.LIBRARY)
            build.compile_calls(kernels, folder / build.CALLS)
        except build.NoHeaders as error:
            if mode == "require":
                raise SystemExit(f"GPUSLICE_KERNELS=require, but {error}") from error
            self.app.display_warning(f"gpuslice: {error}; known calls stay in Python")
        except build.NoCompiler as error:
            if mode == "require":
                raise SystemExit(f"GPUSLICE_KERNELS=require, but {error}") from error
            return build.reason_of(error)
        except build.KernelsDoNotCompile as error:
            (folder / build.REASON).write_text(f"{build.reason_of(error)}\n")
            raise SystemExit(f"the kernels do not compile:\n{error}") from error
        return ""


def load(path):
    """Load a module by its path: importing gpuslice needs NumPy."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
