"""Everything runs on one rank, and the files marked ``spmd`` also under ``mpiexec -n N`` (`numpy_dist.spmd_plugin`)."""

pytest_plugins = ["numpy_dist.spmd_plugin"]
