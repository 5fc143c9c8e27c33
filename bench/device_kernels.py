"""Compile a share of all CUDA kernels into CuPy's cache: ``python -m bench.device_kernels 0/8``.

NVRTC compiles one kernel at a time in a process, nearly, so the check of a device runs several processes.
"""

import sys
import time


def main(share: str) -> None:
    """Compile every ``count``-th kernel, from the ``first``-th on."""
    from gpuslice.engine import cuda_kernels

    first, count = map(int, share.split("/"))
    began, mine = time.perf_counter(), cuda_kernels.of_widths((1, 2, 4, 8, 16), 0)[first::count]
    for wanted in mine:
        cuda_kernels.compiled(*wanted)
    print(f"share {share}: {len(mine)} kernels, {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
