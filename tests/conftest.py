"""Everything runs on one rank, and the files marked ``spmd`` also under ``mpiexec -n N`` (`numpy_dist.spmd_plugin`)."""

from __future__ import annotations

import os
import signal
import sys
import zlib
from typing import Any

import hypothesis
import numpy as np
import pytest

from numpy_dist.cli import machine
from numpy_dist.comm import launchers
from numpy_dist.dispatch.core import registry
from numpy_dist.engine.executing.prepared import PLANNED
from numpy_dist.engine.planning.grammar import faults
from numpy_dist.engine.runtime import current
from numpy_dist.engine.scheduling.eagerness import Eagerness, lower_limit
from numpy_dist.settings import config

pytest_plugins = ["numpy_dist.spmd_plugin"]

# A shell ignores the interrupt in what it runs in the background, and children inherit that; some tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Else each of hundreds of processes compiles all that it imports, also the tests' assertions, which pytest rewrites.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

config.ADVICE = "off"  # how fast tests are depends on the machine, and warnings are what many look at
os.environ["NUMPY_DIST_ADVICE"] = "off"  # in the jobs that they start, too

registry.load()  # now: modules that are loaded within a test would keep what it has replaced

MOST_WORKERS = 4


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Properties are tried on the same examples in each run, however busy the machine; ``-m long`` draws new ones."""
    if launchers.launched_ranks(os.environ) is None:  # ranks have a profile of their own
        quiet, of_plugin = [hypothesis.HealthCheck.too_slow], hypothesis.settings.get_profile("shared-cores")
        profile = hypothesis.settings(of_plugin, derandomize=True, suppress_health_check=quiet)
        hypothesis.settings.register_profile("reproducible", profile)
        hypothesis.settings.load_profile("reproducible")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """The whole suite leaves out what is slow, and is divided among the cores where pytest-xdist is installed.

    ``-m slow`` runs what is left out, ``-n 0`` all in one process.
    """
    option = config.option
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not option.keyword
    if whole and not option.markexpr:
        option.markexpr = "not slow"
    # This hook is called in workers, too, and in runs of pytest that tests start: they must not start more of them.
    inside = bool(os.environ.get("PYTEST_XDIST_WORKER")) or launchers.launched_ranks(os.environ) is not None
    asked = getattr(option, "numprocesses", 0) is not None or option.dist != "no" or option.usepdb or option.collectonly
    if whole and not inside and not asked and machine.cores() > 1:
        option.numprocesses = min(machine.cores(), MOST_WORKERS)
        option.dist = "worksteal"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Workers must find the same names: said here in one process, too."""
    if named := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"an address in the names of tests: {named}")


def _check_grammar(group: Any, plan: Any, statements: Any, states: Any) -> None:
    found = faults(plan, states, group.rank)
    assert not found, "\n".join([*found, str(plan)])


PLANNED.append(_check_grammar)  # every plan that a test makes


@pytest.fixture(autouse=True)
def same_draws(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test draws the same numbers from its module's generator whichever tests the process has run before."""
    for name in ("rng", "RNG"):
        if isinstance(getattr(request.module, name, None), np.random.Generator):
            seed = zlib.crc32(request.node.name.encode())
            monkeypatch.setattr(request.module, name, np.random.default_rng(seed))


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    """A test begins as a program does: values that other tests of the process have asked for make it no eager one."""
    runtime = current.get()
    if runtime is not None and (seen := runtime.program.eagerness) is not None:
        runtime.program.eagerness = Eagerness(seen.threads)
        lower_limit()


@pytest.fixture(scope="session")
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache of kernels for the whole run, all of its workers: each is compiled once."""
    folder = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        folder = folder.parent
    (folder / "kernels").mkdir(mode=0o700, exist_ok=True)
    return str(folder / "kernels")
