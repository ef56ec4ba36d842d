"""The `numpy_dist.conformance` package (see docs/architecture.md)."""

import sys

if __name__ != "numpy_dist.conformance":
    if "pytest" not in sys.modules:
        raise ImportError("import numpy_dist.conformance, not conformance: the folder is a part of numpy_dist")
    # `pytest conformance` calls the folder by its short name: what it finds there is the package.
    import numpy_dist.conformance

    sys.modules[__name__] = numpy_dist.conformance
