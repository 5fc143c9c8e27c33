"""The operators as Python functions: each makes views by `gpuslice.lazy` and returns arrays as its caller asks."""
