"""NVRTC and nvdisasm from NVIDIA's Python packages, without CuPy, so that several versions of NVRTC can be used."""

import ctypes
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sass import Instruction

KERNELS = Path(__file__).parents[2] / "kernels"
OPTIONS = ("-std=c++17", f"-I{KERNELS}")  # as gpuslice/engine/cuda.py has them


def package_file(pattern: str) -> Path:
    """Return the path of a file of NVIDIA's packages, such as ``nvidia/cu13/bin/nvdisasm``."""
    for folder in sys.path:
        found = sorted(Path(folder or ".").glob(pattern))
        if found:
            return found[0]
    raise SystemExit(f"no {pattern}: is its package installed? `nox -s instantiations` installs what is needed")


class Nvrtc:
    """A libnvrtc.

    Parameters
    ----------
    path : Path
        Of the library. Its libnvrtc-builtins is in the same folder.
    """

    def __init__(self, path: Path) -> None:
        for builtins in path.parent.glob("libnvrtc-builtins.so.*"):
            ctypes.CDLL(str(builtins))  # NVRTC looks for it by its name alone
        self._library = ctypes.CDLL(str(path))
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def compile(self, names: Sequence[str], arch: str) -> tuple[bytes, str, dict[str, str]]:
        """Compile instantiations of copy.cu.

        Returns
        -------
        cubin : bytes
        log : str
            Of ptxas.
        lowered : dict of str to str
            The names in both, by the names that were given.

        Raises
        ------
        ValueError
            The first error, if it does not compile.
        """
        program = ctypes.c_void_p()
        source = (KERNELS / "copy.cu").read_bytes()
        self._call("nvrtcCreateProgram", ctypes.byref(program), source, b"copy.cu", 0, None, None)
        try:
            for name in names:
                self._call("nvrtcAddNameExpression", program, name.encode())
            options = [option.encode() for option in (f"-arch={arch}", *OPTIONS, "--ptxas-options=-v")]
            status = self._library.nvrtcCompileProgram(
                program, len(options), (ctypes.c_char_p * len(options))(*options)
            )
            log = self._text(program, "ProgramLog").decode().rstrip("\0")
            if status:
                first = next((line for line in log.splitlines() if "error" in line), log)
                raise ValueError(first.replace(f"{KERNELS}/", ""))
            return self._text(program, "CUBIN"), log, {name: self._lowered(program, name) for name in names}
        finally:
            self._call("nvrtcDestroyProgram", ctypes.byref(program))

    def _lowered(self, program: ctypes.c_void_p, name: str) -> str:
        lowered = ctypes.c_char_p()
        self._call("nvrtcGetLoweredName", program, name.encode(), ctypes.byref(lowered))
        return (lowered.value or b"").decode()

    def _text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, text)
        return text.raw

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise OSError(f"{function}: {self._library.nvrtcGetErrorString(status).decode()}")


def disassembled(cubin: bytes, nvdisasm: Path) -> Iterator[tuple[str, list[Instruction]]]:
    """Yield the name of each kernel with its instructions."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([nvdisasm, "--emit-json", file.name], capture_output=True, check=True)
    for function in json.loads(done.stdout)[1]:
        code = function["sass-instructions"]
        yield (
            function["function-name"],
            [Instruction(one["opcode"], one.get("operands", ""), one.get("predicate", "")) for one in code],
        )
