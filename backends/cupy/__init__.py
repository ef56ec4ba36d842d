"""Shards in the memory of a CUDA device, by way of CuPy. docs/gpu.md tells what of it is proven."""
