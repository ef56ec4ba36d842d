"""The files of MPI and its launcher are removed once all ranks have read them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from numpy_dist.comm.shared_memory import unlink_segments, unlink_topologies
from tests.comm.test_exits import Runner, run  # noqa: F401 - a fixture


def test_names_are_removed_once(tmp_path: Path) -> None:
    segment, other = tmp_path / "mpich_shm_1_0", tmp_path / "other"
    segment.touch()
    other.touch()
    maps = tmp_path / "maps"
    maps.write_text(
        f"7f00-7f01 rw-s 00000000 00:1a 12    {segment}\n7f02-7f03 rw-s 00000000 00:1a 12    {segment}\n"
        f"7f04-7f05 rw-s 00000000 00:1a 13    {other}\n7f06-7f07 rw-p 00000000 00:00 0 \n"
        f"7f08-7f09 rw-s 00000000 00:1a 14    {tmp_path}/mpich_shm_2_0 (deleted)\n"
    )
    prefix = f"{tmp_path}/mpich_shm_"
    assert unlink_segments(maps, prefix) == [str(segment)]
    assert not segment.exists() and other.exists()
    assert unlink_segments(maps, prefix) == []
    assert unlink_segments(tmp_path / "missing", prefix) == []


def test_young_descriptions_of_the_machine_are_removed(tmp_path: Path) -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc")
    names = [tmp_path / name for name in ("hydra_hwloc_xmlfile_new", "hydra_hwloc_xmlfile_old", "other")]
    for name in names:
        name.touch()
    os.utime(names[1], times=(time.time() - 10**6,) * 2)
    assert unlink_topologies(tmp_path) == [str(names[0])]
    assert [name.exists() for name in names] == [False, True, True]


def test_an_aborted_job_leaves_none(run: Runner) -> None:  # noqa: F811
    script = """
        from mpi4py import MPI
        from numpy_dist.comm import shared_memory
        MPI.COMM_WORLD.Barrier()
        def is_young(path):
            try:
                return path.stat().st_mtime >= shared_memory._start_of_process() - 1
            except FileNotFoundError:  # another job's
                return False
        found = list(filter(is_young, shared_memory._TOPOLOGIES[0].glob(shared_memory._TOPOLOGIES[1])))
        comm = get_communicator()
        comm.barrier()
        if comm.rank == 0:
            print([str(path) for path in found if path.exists()])
            comm.abort(3)
    """
    job = run(script, nranks=2, preamble="")
    assert (job.code, job.output) == (3, "[]\n")
