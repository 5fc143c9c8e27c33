"""Compile every instantiation of the CUDA kernels by NVRTC, and read from the result what each came to.

    python -m bench.instantiations [--arch sm_90 ...] [--quick] [--output DIR]

No GPU is needed, and nothing here is a measurement of one: these are facts about compiled code.
"""
