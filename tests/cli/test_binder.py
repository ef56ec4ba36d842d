"""`numpy-dist run --bind=auto`: which processors each rank of a machine gets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numpy_dist.cli import binder, launcher
from numpy_dist.cli.launcher import Job

BINDER = [sys.executable, "-I", "-S", str(Path(binder.__file__))]


def machine(folder: Path, nodes: list[str], sockets: dict[int, int], siblings: list[str]) -> Path:
    """A tree such as that of /sys/devices/system."""
    for number, text in enumerate(nodes):
        (folder / f"node/node{number}").mkdir(parents=True)
        (folder / f"node/node{number}/cpulist").write_text(f"{text}\n")
    for cpu, socket in sockets.items():
        (folder / f"cpu/cpu{cpu}/topology").mkdir(parents=True)
        (folder / f"cpu/cpu{cpu}/topology/physical_package_id").write_text(f"{socket}\n")
    for text in siblings:
        for cpu in binder.parsed(text):
            (folder / f"cpu/cpu{cpu}/topology/thread_siblings_list").write_text(f"{text}\n")
    return folder


def test_lists_of_numbers() -> None:
    assert binder.parsed("0-3,8\n") == {0, 1, 2, 3, 8} and binder.parsed("\n") == set()
    assert binder.written({8, 0, 1, 3, 2}) == "0-3,8" and binder.written([5]) == "5"


def test_memory_domains_come_before_sockets(tmp_path: Path) -> None:
    sockets = {cpu: 0 for cpu in range(8)}
    found = binder.domains(set(range(8)), machine(tmp_path, ["0-1,4-5", "2-3,6-7", ""], sockets, ["0,4", "1,5"]))
    assert found == [[{0, 4}, {1, 5}], [{2}, {3}, {6}, {7}]]
    # What is not allowed is nobody's.
    assert binder.domains({1, 2, 5}, tmp_path) == [[{1, 5}], [{2}]]


def test_sockets_where_no_domains_are_told(tmp_path: Path) -> None:
    sockets = {0: 0, 1: 1, 2: 0, 3: 1}
    assert binder.domains({0, 1, 2, 3}, machine(tmp_path, [], sockets, [])) == [[{0}, {2}], [{1}, {3}]]
    assert binder.domains({0, 1}, tmp_path / "nothing") == [[{0}, {1}]]


def test_shares() -> None:
    two = [[{0}, {1}, {2}, {3}], [{4}, {5}, {6}, {7}]]
    assert [binder.share(two, rank, 1) for rank in range(1)] == [set(range(8))]
    assert [binder.share(two, rank, 2) for rank in range(2)] == [{0, 1, 2, 3}, {4, 5, 6, 7}]
    assert [binder.share(two, rank, 4) for rank in range(4)] == [{0, 1}, {2, 3}, {4, 5}, {6, 7}]
    assert [binder.share(two, rank, 3) for rank in range(3)] == [{0, 1}, {2, 3}, {4, 5, 6, 7}]
    threads = [[{0, 4}, {1, 5}]]
    assert [binder.share(threads, rank, 2) for rank in range(2)] == [{0, 4}, {1, 5}]
    assert [binder.share(threads, rank, 3) for rank in range(3)] == [{0, 4}, {0, 4}, {1, 5}]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 40))
def test_shares_cover_the_machine_and_stay_in_domains(sizes: list[int], ranks: int) -> None:
    numbers = iter(range(100))
    cores = [[{next(numbers)} for _ in range(size)] for size in sizes]
    shares = [binder.share(cores, rank, ranks) for rank in range(ranks)]
    whole = [set().union(*domain) for domain in cores]
    assert all(shares) and set().union(*shares) == set().union(*whole)
    if ranks <= len(sizes):
        assert all(own >= domain or not own & domain for own in shares for domain in whole)
    else:
        assert all(any(own <= domain for domain in whole) for own in shares)
        for domain in whole:
            inside = [own for own in shares if own <= domain]
            if len(inside) <= len(domain):
                assert sum(map(len, inside)) == len(domain)  # nobody shares
                assert max(map(len, inside)) - min(map(len, inside)) <= 1


def test_bound_ranks_choose_their_threads_themselves() -> None:
    bound = launcher.job_environment(Job(2, ("a.py",), bind=True, environment={"OMP_NUM_THREADS": "5"}), 8)
    assert "NUMPY_DIST_NUM_THREADS" not in bound and bound["OMP_NUM_THREADS"] == "5"
    assert launcher.job_environment(Job(1, ("a.py",), bind=True, environment={}), 8)["OMP_NUM_THREADS"] == "8"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_a_rank_is_bound_before_its_program_begins() -> None:
    code = "import os; e = os.environ; print(len(os.sched_getaffinity(0)), e['NUMPY_DIST_BOUND'], e['A'], e['B'])"
    command = [*BINDER, "--most=99", "--variables=A,B", "--", sys.executable, "-I", "-S", "-c", code]
    environment = {"MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2", "B": "7"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    allowed = os.sched_getaffinity(0)
    own = binder.share(binder.domains(allowed), 1, 2)
    assert done.stdout.split() == [str(len(own)), binder.written(own), str(len(own)), "7"]
    environment = {"MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "1"}
    done = subprocess.run([*BINDER, "--most=1", *command[len(BINDER) + 1 :]], env={**environment, "B": "7"},
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.split() == [str(len(allowed)), binder.written(allowed), "1", "7"]


def test_ranks_whose_number_is_not_told_stay_free() -> None:
    command = [*BINDER, "--most=9", "--variables=A", "--", sys.executable, "-c", "import os; print('A' in os.environ)"]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n" and "does not number the ranks" in done.stderr
