"""One backend that compiles at first sight, for all loops of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from numpy_dist.backends.compiled.backend import Compiled
from numpy_dist.backends.compiled.compiler import Compiler


@pytest.fixture(scope="session")
def kernels(kernel_cache: str) -> Iterator[Compiler]:
    """A compiler whose cache the whole session shares."""
    made = Compiler(kernel_cache, 1 << 30)
    yield made
    made.close()


@pytest.fixture
def backend(kernels: Compiler) -> Iterator[Compiled]:
    """Two threads; every loop that can have a kernel gets one at first sight."""
    with np.errstate(all="ignore"):
        made = Compiled(kernels, 2, "first")
        yield made
        made.pool.close()
