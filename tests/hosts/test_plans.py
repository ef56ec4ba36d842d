"""Plans beside jobs on two hosts: memory, messages, bytes and collectives of each rank are as planned."""

from __future__ import annotations

import json

import pytest

from numpy_dist.scaling.simulation import plan_rank
from numpy_dist.settings import config
from tests.hosts.conftest import HostJobs
from tests.scaling.test_simulation import reductions, stencil

pytestmark = pytest.mark.slow

SCRIPT = """
import json
from numpy_dist import engine
from tests.scaling.test_simulation import _really, reductions, stencil

comm = engine.runtime().comm
assert len(set(comm.nodes)) == 2, comm.nodes
comm.counters.reset()
print(json.dumps(comm.allgather(_really({name}))))
"""


@pytest.mark.parametrize("program", [stencil, reductions])
def test_ranks_on_two_hosts_do_as_planned(jobs: HostJobs, program) -> None:
    jobs.environment["NUMPY_DIST_AT_ONCE"] = "0"
    code, output, errors = jobs.run("a", "-n 4 --hosts a,b", SCRIPT.replace("{name}", program.__name__))
    assert code == 0, errors
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0, BACKEND="numpy"):
        broadcasts: dict[int, list] = {}
        planned = [plan_rank(program, rank, 4, broadcasts) for rank in range(4)]
    names = "peak", "messages", "bytes", "collectives"
    assert [{name: getattr(rank, name) for name in names} for rank in planned] == json.loads(output)
