"""Everything runs on one rank, and the files marked ``spmd`` also under ``mpiexec -n N`` (`numpy_dist.spmd_plugin`)."""

import signal

pytest_plugins = ["numpy_dist.spmd_plugin"]

# A shell ignores the interrupt in what it runs in the background, and children inherit that; some tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
