"""The `numpy-dist` command: `run` starts a job, `info` says what this machine offers, `cache` what is kept."""
