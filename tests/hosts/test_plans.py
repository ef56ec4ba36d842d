"""Plans beside jobs on two hosts: memory, messages, bytes and collectives of each rank are as planned."""

from __future__ import annotations

import json

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.scaling.machine import MachineSpeeds
from numpy_dist.scaling.simulation import plan_rank
from numpy_dist.settings import config
from tests.hosts.conftest import HostJobs
from tests.scaling.test_simulation import reductions, stencil

pytestmark = pytest.mark.slow

SCRIPT = """
import json
from numpy_dist import engine
from tests.scaling.real_runs import taken
from tests.scaling.test_simulation import reductions, stencil
from tests.hosts.test_plans import gathers

comm = engine.runtime().comm
assert len(set(comm.nodes)) == 2, comm.nodes
comm.counters.reset()
print(json.dumps(comm.allgather(taken({name}))))
"""


def gathers() -> float:
    """Whole arrays on every rank, which cross the network once for a node, and a mesh whose columns are nodes."""
    square = nd.zeros((240, 240))
    square[1:-1, 1:-1] = square[:-2, 1:-1] + square[1:-1, 2:]
    return float(np.sum((square + 1.0).gather())) + float(nd.arange(40_000.0).gather()[-1])


@pytest.mark.parametrize("program", [stencil, reductions, gathers])
def test_ranks_on_two_hosts_do_as_planned(jobs: HostJobs, program) -> None:
    jobs.environment["NUMPY_DIST_AT_ONCE"] = "0"
    code, output, errors = jobs.run("a", "-n 4 --hosts a,b", SCRIPT.replace("{name}", program.__name__))
    assert code == 0, errors
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0, BACKEND="numpy"):
        broadcasts: dict[int, list] = {}
        nodes = MachineSpeeds(ranks_per_machine=2).nodes(4)
        planned = [plan_rank(program, rank, 4, broadcasts, nodes=nodes) for rank in range(4)]
    names = "peak", "messages", "bytes", "collectives"
    assert [{name: getattr(rank, name) for name in names} for rank in planned] == json.loads(output)
