"""What the kernels cost: measured on the host, and read from the code compiled for CUDA."""
