"""A process that compiles is left to end by itself; the launcher ends everything else that a job leaves behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

from numpy_dist.backends import jobs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks at processes in /proc"),
]

SCRIPT = """
import subprocess
import numpy as np
import numpy_dist
from numpy_dist import engine

x = numpy_dist.asarray(np.ones(100_000))
if x.comm.rank == 0:
    compiler = engine.runtime().backend.compiler
    text = "import time\\ntime.sleep(1000)\\n"
    compiler.request(text)
    while compiler._begun is None:
        compiler.address(text)
    other = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    print(compiler._child.pid, other.pid, flush=True)
x.comm.barrier()
"""


def _alive(pid):
    return jobs.started(pid) not in ("?", "ended")


@pytest.mark.parametrize("after", [60, 0])
def test_only_what_compiles_outlives_a_job(tmp_path, after):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {name: value for name, value in os.environ.items() if name not in jobs.VARIABLES}
    environment |= {"NUMPY_DIST_CACHE_DIR": str(tmp_path / "cache"), "NUMPY_DIST_COMPILE_AFTER": str(after)}
    environment |= {"NUMPY_DIST_NUM_THREADS": "1"}  # no kernel but the script's own
    words = [sys.executable, "-m", "numpy_dist", "run", "-n", "2", str(script)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    compiles, other = map(int, done.stdout.split())
    end = time.monotonic() + 20
    while _alive(other) or (not after and _alive(compiles)):  # a killed process of a busy machine may take its time
        assert time.monotonic() < end
        time.sleep(0.05)
    assert _alive(compiles) == (after > 0)
    if after:  # tests/backends/compiled/test_outliving.py waits for its end
        os.kill(compiles, signal.SIGKILL)
