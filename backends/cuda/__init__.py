"""From a loop to the source of one CUDA kernel: pure functions, which need neither a device nor CuPy (docs/gpu.md)."""
