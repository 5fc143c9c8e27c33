"""How to copy: from shapes and byte strides to launches of kernels. Integers only; the executors add addresses.

A part is one view and its target. `plan` puts parts that can share a launch together, makes their axes as few as
possible, and chooses the kernel by the inner axes. `pack` divides a launch into tiles and writes its parameters as the
kernels read them.
"""

from gpuslice.engine.plan.channels import PIXEL_BYTES
from gpuslice.engine.plan.instantiations import all_instantiations, instantiation
from gpuslice.engine.plan.kernel_sources import (
    CUDA_THREADS,
    KERNELS,
    MAX_CHANNELS,
    MAX_RANK,
    PIXEL_CHANNELS,
    VECTOR_BYTES,
    Kernel,
)
from gpuslice.engine.plan.layout import CUDA_32, CUDA_64, HOST_64, Layout, index_bits
from gpuslice.engine.plan.packing import PackedLaunch, pack
from gpuslice.engine.plan.parts import LaunchPlan, Part
from gpuslice.engine.plan.planner import plan
from gpuslice.engine.plan.stacks import are_apart
from gpuslice.engine.plan.tuning import CUDA as CUDA_TUNING
from gpuslice.engine.plan.tuning import HOST as HOST_TUNING
from gpuslice.engine.plan.tuning import Tuning

__all__ = [
    "CUDA_32",
    "CUDA_64",
    "CUDA_THREADS",
    "CUDA_TUNING",
    "HOST_64",
    "HOST_TUNING",
    "KERNELS",
    "MAX_CHANNELS",
    "MAX_RANK",
    "PIXEL_BYTES",
    "PIXEL_CHANNELS",
    "VECTOR_BYTES",
    "Kernel",
    "LaunchPlan",
    "Layout",
    "PackedLaunch",
    "Part",
    "Tuning",
    "all_instantiations",
    "are_apart",
    "index_bits",
    "instantiation",
    "pack",
    "plan",
]
