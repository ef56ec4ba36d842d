"""pytest's hooks for the suite: it runs on one rank, and under ``mpiexec`` at more (`numpy_dist.spmd_plugin`)."""

pytest_plugins = ["numpy_dist.spmd_plugin"]
