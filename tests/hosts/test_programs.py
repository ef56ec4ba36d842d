"""The examples, and the tests of data and of halos, on two and on three hosts, which are namespaces of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from numpy_dist.conformance import faults
from tests.hosts.conftest import HostJobs

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
HOSTS = {"two hosts": "-n 4 --hosts a,b", "three hosts": "-n 5 --hosts a:2,b:1,c:2"}

# Each example in the same job, as a script with arguments of its own.
EXAMPLES = """
import os, runpy, sys
from numpy_dist import engine
folder, programs = {folder!r}, {programs!r}
sys.path.insert(0, folder)
comm = engine.runtime().comm
for name, arguments in programs.items():
    engine.counters().reset()
    sys.argv = [os.path.join(folder, name), *arguments]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as ended:
        assert not ended.code, (name, ended.code)
hosts = set(comm.allgather(os.uname().nodename))
print("ended", len(programs), "on", len(hosts), "hosts")
"""


@pytest.mark.parametrize("options", HOSTS.values(), ids=HOSTS)
def test_every_example(jobs: HostJobs, options: str) -> None:
    """Each compares itself with plain NumPy, and gathers nothing that it does not say."""
    programs = {name: arguments for name, arguments in faults.ARGUMENTS.items() if faults.available(name)}
    jobs.environment["NUMPY_DIST_FALLBACK"] = "error"
    script = EXAMPLES.format(folder=str(ROOT / "examples"), programs=programs)
    code, output, errors = jobs.run("a", options, script)
    assert code == 0, output + errors
    assert output.splitlines()[-1] == f"ended {len(programs)} on {options.count(',') + 1} hosts"


@pytest.mark.parametrize("options", HOSTS.values(), ids=HOSTS)
@pytest.mark.parametrize("tests", ["tests/engine/test_data.py", "tests/engine/test_halos.py"])
def test_tests_of_arrays(jobs: HostJobs, options: str, tests: str) -> None:
    """The same files as on one machine, all ranks of the job in one run of pytest."""
    words = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"--rootdir={ROOT}", str(ROOT / tests)]
    code, output, errors = jobs.run("a", options, words)
    assert code == 0 and " passed" in output.splitlines()[-1], output + errors
