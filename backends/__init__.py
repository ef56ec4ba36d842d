"""The `numpy_dist.backends` package (see docs/architecture.md)."""

if __name__ != "numpy_dist.backends":
    raise ImportError("import numpy_dist.backends, not backends: the folder is a part of numpy_dist")
