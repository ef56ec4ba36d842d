"""Jobs whose hosts come from a scheduler: its variables as it sets them, and a stand-in for Slurm's `srun`.

No scheduler is here. What is tested is that MPICH's launcher and `numpy-dist run` find the hosts by what such a job
has: PBS's file of nodes, and Slurm's variables with an `srun` that starts a command on each node of a list.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from numpy_dist.cli import library
from tests.hosts.conftest import HostJobs

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import socket
import numpy as np
import numpy_dist as nd
from numpy_dist import engine
x = nd.arange(4000.0)
center = x[1:-1] * 2 - x[:-2] - x[2:]
comm = engine.runtime().comm
where = comm.allgather(socket.gethostname())
if comm.rank == 0:
    print(*where, comm.nodes, float(x.sum()) == 3999 * 2000, flush=True)
else:
    float(x.sum())
assert not center.any()
"""
EXPECTED = "a a b b (0, 0, 1, 1) True"

# As Hydra calls it: srun [--nodelist a,b] -N 2 -n 2 --input none COMMAND...; each node has a number.
SRUN = f"""#!{sys.executable}
import os, subprocess, sys
words, nodes = sys.argv[1:], os.environ["SLURM_JOB_NODELIST"].split(",")
while words[0].startswith("-"):
    name, value, *words = words
    if name == "--nodelist":
        nodes = value.split(",")
    elif name == "-N":
        nodes = nodes[: int(value)]
shell = os.path.join(os.environ["HOME"], "shell")
started = [
    subprocess.Popen([shell, node, "env", f"SLURM_NODEID={{number}}", *words], stdin=subprocess.DEVNULL)
    for number, node in enumerate(nodes)
]
sys.exit(max([process.wait() for process in started]))
"""


@pytest.fixture
def mpiexec() -> str:
    return library.matching_launcher(library.find_library(), library.find_launchers()).path


def batch(jobs: HostJobs, lines: str, variables: dict[str, str]) -> str:
    """Run a scheduler's script on the first host of a job; what it prints."""
    (jobs.folder / "script.py").write_text(SCRIPT)
    (jobs.folder / "job.sh").write_text(lines)
    environment = {name: value for name, value in jobs.environment.items() if not name.startswith("HYDRA_")}
    process = jobs.network["a"].start(["sh", "-e", "job.sh"], jobs.folder, environment | variables)
    jobs._started.append(process)
    code, output, errors = jobs.end(process)
    assert code == 0, errors
    return output.strip()


def of_pbs(jobs: HostJobs) -> dict[str, str]:
    """The variables of PBS, for two ranks on each of two nodes."""
    nodes = jobs.folder / "nodes"
    nodes.write_text("a\na\nb\nb\n")
    variables = {"PBS_NODEFILE": str(nodes), "PBS_O_WORKDIR": str(jobs.folder), "PBS_JOBID": "7.server", "PBS_NP": "4"}
    # Sites without PBS's own way to start processes: MPICH's launcher takes ssh.
    return variables | {name: value for name, value in jobs.environment.items() if name.startswith("HYDRA_")}


def of_slurm(jobs: HostJobs) -> dict[str, str]:
    """The variables of Slurm, for two ranks on each of two nodes, and a path to the stand-in for `srun`."""
    srun = jobs.folder / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(SRUN)
    srun.chmod(0o755)
    return {
        "PATH": f"{srun.parent}:{jobs.environment['PATH']}",
        **{"SLURM_JOB_ID": "7", "SLURM_JOBID": "7", "SLURM_NODELIST": "a,b", "SLURM_JOB_NODELIST": "a,b"},
        **{"SLURM_NNODES": "2", "SLURM_JOB_NUM_NODES": "2", "SLURM_NTASKS": "4", "SLURM_TASKS_PER_NODE": "2(x2)"},
    }


@pytest.mark.parametrize("way", ["mpiexec -n 4 -f $PBS_NODEFILE {python}", "{python} -m numpy_dist run -n 4"])
def test_pbs(jobs: HostJobs, mpiexec: str, way: str) -> None:
    command = way.format(python=shlex.quote(sys.executable)).replace("mpiexec", shlex.quote(mpiexec), 1)
    assert batch(jobs, f"cd $PBS_O_WORKDIR\n{command} script.py\n", of_pbs(jobs)) == EXPECTED


@pytest.mark.parametrize("way", ["mpiexec -n 4 {python}", "{python} -m numpy_dist run -n 4"])
def test_slurm(jobs: HostJobs, mpiexec: str, way: str) -> None:
    command = way.format(python=shlex.quote(sys.executable)).replace("mpiexec", shlex.quote(mpiexec), 1)
    assert batch(jobs, f"{command} script.py\n", of_slurm(jobs)) == EXPECTED


@pytest.mark.parametrize("variables", [of_pbs, of_slurm])
def test_the_scaling_benchmark(jobs: HostJobs, variables: Callable[[HostJobs], dict[str, str]]) -> None:
    """One command finds out how many tasks there are, and adds figures of all numbers of ranks to a file."""
    found, figures = variables(jobs), jobs.folder / "figures.jsonl"
    found["PATH"] = f"{os.path.dirname(sys.executable)}:{found.get('PATH', jobs.environment['PATH'])}"
    found |= {"PBS_O_WORKDIR": str(ROOT)} if "PBS_JOBID" in found else {"SLURM_SUBMIT_DIR": str(ROOT)}
    found |= {"FIGURES": str(figures), "SCALING_SIZE": "0.002"}
    told = batch(jobs, f"exec bash {ROOT / 'benchmarks' / 'scaling.sh'}\n", found)
    made = [json.loads(line) for line in figures.read_text().splitlines()]
    assert {each["ranks"] for each in made} == {1, 2, 4} and {"weak", "strong"} == {each["scaling"] for each in made}
    programs = {each["program"] for each in made}
    assert len(programs) == 6 and all(name in told for name in programs)


@pytest.mark.parametrize("order", ["mpi", "node"])
def test_ranks_that_are_dealt_out_one_by_one(jobs: HostJobs, mpiexec: str, order: str) -> None:
    """As by Slurm's --distribution=cyclic. Rank 0's setting counts, where the environments of hosts differ."""
    (jobs.folder / "script.py").write_text(f"""
import os
os.environ["NUMPY_DIST_RANK_ORDER"] = {order!r} if os.environ["PMI_RANK"] == "0" else "mpi"
{SCRIPT}
places = comm.allgather((os.environ["WORLD"], comm.rank, comm.node_rank))
if comm.rank == 0:
    print(places)
""".replace("import socket", "os.environ['WORLD'] = os.environ['PMI_RANK']\nimport socket"))
    jobs.environment["NUMPY_DIST_ADVICE"] = "on"
    words = [mpiexec, "-n", "4", "-ppn", "1", "-hosts", "a,b", sys.executable, "script.py"]
    process = jobs.network["a"].start(words, jobs.folder, jobs.environment)
    jobs._started.append(process)
    code, output, errors = jobs.end(process)
    assert code == 0, errors
    told = "set NUMPY_DIST_RANK_ORDER=node"
    if order == "mpi":
        assert output.splitlines()[0] == "a b a b (0, 1, 0, 1) True" and errors.count(told) == 1
    else:
        assert output.splitlines()[0] == EXPECTED and told not in errors
        assert output.splitlines()[1] == "[('0', 0, 0), ('2', 1, 1), ('1', 2, 0), ('3', 3, 1)]"
