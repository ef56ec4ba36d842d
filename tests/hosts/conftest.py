"""Hosts to run on, and jobs on them; skipped where there can be none (`namespaces`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from numpy_dist.cli import library, processes
from numpy_dist.errors import LauncherError
from tests.hosts.namespaces import SHELL, Host, Network, reason_against, signal_inside, wait_for

PATIENCE = 120.0  # seconds for a whole job, on a busy machine


class HostJobs:
    """Jobs that are started on one of the hosts of a network."""

    def __init__(self, network: Network, folder: Path, environment: dict[str, str]) -> None:
        self.network, self.folder, self.environment = network, folder, environment
        self._started: list[subprocess.Popen[str]] = []

    def start(self, host: str, options: str, script: str | Sequence[str]) -> subprocess.Popen[str]:
        """Start `numpy-dist run` on a host; a script is given as text, or as a command."""
        words = list(script) if not isinstance(script, str) else ["script.py"]
        if isinstance(script, str):
            (self.folder / "script.py").write_text(script)
        command = [sys.executable, "-m", "numpy_dist", "run", *options.split(), *words]
        self._started.append(self.network[host].start(command, self.folder, self.environment))
        return self._started[-1]

    def end(self, process: subprocess.Popen[str], text: str = "") -> tuple[int, str, str]:
        """Exit code, output and errors of a job that ends by itself; of it, nothing is left on any host."""
        found = self.end_leaving(process, text)
        assert {host.name: host.files() for host in self._hosts() if host.files()} == {}
        return found

    def end_leaving(self, process: subprocess.Popen[str], text: str = "") -> tuple[int, str, str]:
        """As `end`, for a job that may leave files."""
        try:
            output, errors = process.communicate(text, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            running = self.processes()
            self.stop()
            pytest.fail(f"the job hangs; there were {running}\n{process.communicate()}")
        try:
            wait_for(lambda: not any(self.processes().values()))
        except TimeoutError:
            pytest.fail(f"the job has left processes behind: {self.processes()}\n{output}\n{errors}")
        return process.returncode, output, errors

    def run(self, host: str, options: str, script: str | Sequence[str], text: str = "") -> tuple[int, str, str]:
        """Start a job, and wait for its end."""
        return self.end(self.start(host, options, script), text)

    def processes(self) -> dict[str, dict[int, str]]:
        """What runs on the hosts that are there."""
        return {host.name: host.processes() for host in self._hosts()}

    def stop(self) -> None:
        """Kill what runs on the hosts."""
        for process in self._started:
            if process.poll() is None:
                signal_inside(process, 9)
        for found in self.processes().values():
            processes.send(found, 9)

    def _hosts(self) -> list[Host]:
        return [host for host in self.network.hosts.values() if host.process.poll() is None]


@pytest.fixture(scope="session")
def allowed() -> None:
    """For tests that need hosts."""
    if (reason := reason_against()) is not None:
        pytest.skip(reason)
    try:
        launcher = library.matching_launcher(library.find_library(), library.find_launchers())
    except LauncherError as problem:
        pytest.skip(str(problem))
    if launcher.family != "mpich":
        pytest.skip("the stand-in for ssh is given to MPICH's launcher")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all hosts see."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="session")
def network(allowed: None, shared: Path) -> Iterator[Network]:
    """A host to log in to, and three to run on."""
    with Network({"login": "login", "a": "a", "b": "b", "c": "c"}, shared) as network:
        yield network


@pytest.fixture(scope="session")
def twins(allowed: None, shared: Path) -> Iterator[Network]:
    """As `network`, but the two to run on call themselves the same."""
    with Network({"login": "login", "x": "node", "y": "node"}, shared) as network:
        yield network


@pytest.fixture
def fragile(allowed: None, shared: Path) -> Iterator[Network]:
    """As `network`, for a test whose hosts vanish."""
    with Network({"login": "login", "a": "a", "b": "b"}, shared) as network:
        yield network


@pytest.fixture
def environment(shared: Path) -> dict[str, str]:
    """Of the user that starts jobs: MPICH's launcher takes `shell.py` for ssh."""
    shell = shared / "shell"
    shell.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {SHELL} "$@"\n')
    shell.chmod(0o755)
    return {
        "PATH": os.defpath,
        "HOME": str(shared),
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": str(shell),
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "NUMPY_DIST_MIN_SHARD_BYTES": "0",
        "NUMPY_DIST_COMPILE": "never",
        "NUMPY_DIST_ADVICE": "off",
        "UCX_LOG_LEVEL": "error",
    }


@pytest.fixture
def jobs(network: Network, shared: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[HostJobs]:
    """Jobs on the hosts of `network`."""
    yield from jobs_on(network, shared, environment, tmp_path.name)


def jobs_on(network: Network, shared: Path, environment: dict[str, str], name: str) -> Iterator[HostJobs]:
    """Jobs in a folder of their own, ended after a test."""
    folder = shared / name
    folder.mkdir()
    jobs = HostJobs(network, folder, environment)
    yield jobs
    jobs.stop()


@pytest.fixture
def twin_jobs(twins: Network, shared: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[HostJobs]:
    """Jobs on the hosts of `twins`."""
    yield from jobs_on(twins, shared, environment, tmp_path.name)


@pytest.fixture
def fragile_jobs(fragile: Network, shared: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[HostJobs]:
    """Jobs on the hosts of `fragile`."""
    yield from jobs_on(fragile, shared, environment, tmp_path.name)
