"""What crosses the network between two hosts: collectives go node by node, and meshes keep neighbours on one."""

from __future__ import annotations

import json

import pytest

from tests.hosts.conftest import HostJobs

pytestmark = pytest.mark.slow

SCRIPT = """
import json, os, sys
import numpy as np
import numpy_dist as nd
from numpy_dist import engine

comm = engine.runtime().comm
SIZE = 1 << 20


def crossed(act):
    # Bytes that this host has sent while all ranks did this, for rank 0: of both hosts.
    act()  # what a first call sets up is not counted, and has arrived before the count begins
    comm.barrier()
    def sent():
        with open("/proc/self/net/dev") as file:
            line = next(line for line in file if "eth0:" in line)
        return int(line.split(":")[1].split()[8])
    before = sent()
    comm.barrier()
    act()
    comm.barrier()
    told = comm.allgather(sent() - before)
    return told[0], told[-1]


part = np.full(SIZE // 8, comm.rank, float)
found = {
    "nothing": crossed(lambda: None),
    "broadcast": crossed(lambda: comm.bcast(part, 0)),
    "allgather": crossed(lambda: comm.allgather(part)),
    "small allgather": crossed(lambda: comm.allgather(comm.rank)),
}
x = nd.asarray(np.arange(SIZE, dtype=float))
found["gather"] = crossed(lambda: x.gather())
found["gather to 0"] = crossed(lambda: x.gather(0))
found["sum"] = crossed(lambda: float((x + 1).sum()))
np.testing.assert_array_equal(x.gather(), np.arange(SIZE, dtype=float))
plain = np.arange(600 * 700.0).reshape(600, 700)
y = nd.asarray(plain)
for view in (lambda z: z.T, lambda z: z[::-1, ::3], lambda z: z[5:]):
    made, expected = view(y).gather(), view(plain).copy("K")
    assert made.strides == expected.strides
    np.testing.assert_array_equal(made, expected)
grid = nd.zeros((240, 240)).layout.mesh.shape
if comm.rank == 0:
    print(json.dumps([comm.nodes, grid, found]))
"""
MIB = 1 << 20
SMALL = 100_000  # what barriers, small objects and headers take, at most; TCP may send some bytes again


def test_arrays_cross_the_network_once_for_a_node(jobs: HostJobs) -> None:
    """Each host has half of an array of 8 MiB; parts of an allgather have 1 MiB each."""
    code, output, errors = jobs.run("a", "-n 8 --hosts a,b", SCRIPT)
    assert code == 0, errors
    nodes, grid, found = json.loads(output)
    assert nodes == [0, 0, 0, 0, 1, 1, 1, 1] and grid == [4, 2]
    assert max(found["nothing"] + found["small allgather"] + found["sum"]) < SMALL
    # MPI itself has a broadcast cross once.
    first, second = found["broadcast"]
    assert MIB <= first < 1.5 * MIB and second < SMALL
    for crossed in found["gather"]:
        assert 4 * MIB <= crossed < 5 * MIB
    first, second = found["gather to 0"]
    assert first < SMALL and 4 * MIB <= second < 5 * MIB


def test_a_job_in_which_each_node_has_one_rank(jobs: HostJobs) -> None:
    script = """
import numpy as np
import numpy_dist as nd

x = nd.asarray(np.arange(100_000.0))
np.testing.assert_array_equal(x[::2].gather(), np.arange(100_000.0)[::2])
print(x.comm.nodes)
"""
    code, output, errors = jobs.run("a", "-n 2 --hosts a,b", script)
    assert (code, output) == (0, "(0, 1)\n"), errors
