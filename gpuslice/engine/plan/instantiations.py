"""The CUDA kernels by their names in C++, as NVRTC is asked for them."""

from collections.abc import Iterator

from gpuslice.engine.plan.kernel_sources import CHANNEL_KINDS, KERNELS, MAX_CHANNELS
from gpuslice.engine.plan.layout import CUDA_32, CUDA_64


def instantiation(kind: str, width: int, variant: int, bits: int, capacity: int) -> str:
    """Return the name of an instantiation of kernels/copy.cu."""
    index = {32: "unsigned", 64: "unsigned long long"}[bits]
    return f"gpuslice::{kind}<{index}, {capacity}, {width}, {variant}>"


def all_instantiations() -> Iterator[tuple[str, int, int, int, int]]:
    """Yield the arguments of `instantiation` for everything that launches on CUDA can ask for."""
    for kind, width, variant in KERNELS:
        for layout in (CUDA_32, CUDA_64):
            entries = range(2, MAX_CHANNELS + 1) if kind in CHANNEL_KINDS else layout.capacities
            for capacity in sorted({layout.capacity(count) for count in entries}):
                yield kind, width, variant, layout.index_bits, capacity
