"""A model of the CUDA kernels' memory traffic: the addresses of planned launches, counted on a CPU.

    python -m bench.traffic [--case TEXT] [--width N] [--output DIR]

Blocks of each launch run on the emulated device of tests/cuda_on_cpu/, and every access to global memory is put down.
Nothing here ran on a GPU.
"""
