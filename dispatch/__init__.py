"""The `numpy_dist.dispatch` package (see docs/architecture.md)."""

if __name__ != "numpy_dist.dispatch":
    raise ImportError("import numpy_dist.dispatch, not dispatch: the folder is a part of numpy_dist")
