"""Compile the kernels for the fuzz: the CUDA executor emulated, and the host executor, both under sanitizers.

python tests/fuzz/build.py FOLDER [--kernels FOLDER] [--few]
"""

import argparse
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
KERNELS = HERE.parent.parent / "kernels"
EMULATED = HERE.parent / "cuda_on_cpu" / "device"
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wno-unknown-pragmas"]
# Each is a library of its own: sanitizers and functions chosen at load time don't go together.
PROCESSOR = Path("/proc/cpuinfo")  # Linux's; tests elsewhere import this too
SETS = ["x86-64-v2", *["x86-64-v3"] * (PROCESSOR.exists() and "avx2" in PROCESSOR.read_text())]
COMMON = ["g++", "-std=c++20", "-O1", "-g1", "-fPIC", "-shared", "-pthread", *SANITIZED]


def build(folder, kernels=KERNELS, *, few=False):
    """Compile into a folder, all at once. ``few`` leaves out 64-bit indices, large tables and the host executor."""
    commands = [
        [
            *COMMON,
            "-DGPUSLICE_THREADS=32",
            *(["-DEMULATE_FEW"] * few),
            f"-I{EMULATED}",
            f"-I{kernels}",
            str(HERE / "emulate.cpp"),
            str(EMULATED / "block.cpp"),
            "-o",
            f"{folder}/emulate.so",
        ]
    ]
    sources = [f"{kernels}/host.cpp", f"{kernels}/host_kernels.cpp"]
    for name in [] if few else SETS:
        options = [f"-march={name}", "-DGPUSLICE_INLINE=inline"]
        commands.append([*COMMON, *options, *sources, "-o", f"{folder}/host-{name}.so"])
    running = [subprocess.Popen(command) for command in commands]
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit("the kernels do not compile")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--kernels", default=KERNELS)
    parser.add_argument("--few", action="store_true")
    given = parser.parse_args()
    Path(given.folder).mkdir(parents=True, exist_ok=True)
    build(given.folder, given.kernels, few=given.few)
