"""Everything runs on one rank, and the files marked ``spmd`` also under ``mpiexec -n N`` (`numpy_dist.spmd_plugin`)."""

import signal

import pytest

pytest_plugins = ["numpy_dist.spmd_plugin"]

# A shell ignores the interrupt in what it runs in the background, and children inherit that; some tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache of kernels for the whole session: each is compiled once."""
    return str(tmp_path_factory.mktemp("kernels"))
