"""The `numpy_dist.conformance` package (see docs/architecture.md)."""

if __name__ != "numpy_dist.conformance":
    raise ImportError("import numpy_dist.conformance, not conformance: the folder is a part of numpy_dist")
