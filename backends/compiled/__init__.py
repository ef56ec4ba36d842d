"""Kernels that are generated as source text, compiled in a process of their own, and kept on disk."""
