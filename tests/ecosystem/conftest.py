"""Small arrays are really sharded, nothing may be gathered unless a test says so, and the plug-ins are on."""

import pytest

import numpy_dist as nd


@pytest.fixture(autouse=True)
def strict(request):
    """Everything native; a module may name the plug-ins that it needs."""
    for library in getattr(request.module, "NEEDS", ()):
        pytest.importorskip(library)
    plugins = getattr(request.module, "PLUGINS", "own")
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error", PLUGINS=plugins):
        yield
