"""A pytest plugin, on each rank: rebinds the test modules, and writes down how each test went.

The file that ``--numpy-tests`` names says in JSON what to do (`Assignment`). Rank 0 writes a line when a test begins
and another when it has ended, so that a run that dies tells in which test.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from numpy_dist.conformance import adapter as adapters
from numpy_dist.conformance.numpy_tests.left_out import reason_of
from numpy_dist.conformance.numpy_tests.rebinding import Rebinding, modules_of
from numpy_dist.conformance.rank_options import adapter_named
from numpy_dist.spmd_plugin import inner_key
from numpy_dist.spmd_testing import watchdog


class Assignment(NamedTuple):
    """What an inner pytest is to do.

    Attributes
    ----------
    file : str
        The tests' module, as `files.key_of` names it.
    adapter : str or None
        ``module:Class``.
    results : str
        A file to which lines of JSON are appended.
    folder : str
        For temporary files.
    done : list of str
        Tests that are not to be run (again).
    seconds : float
        The time limit of a test.
    """

    file: str
    adapter: str | None
    results: str
    folder: str
    done: list[str]
    seconds: float


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("numpy_dist").addoption("--numpy-tests", metavar="FILE", help="what to do, in JSON")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--numpy-tests")
    if path is None:
        return
    assignment = Assignment(**json.loads(Path(path).read_text()))
    under_test = ExitStack()
    under_test.enter_context(adapter_named(assignment.adapter))
    config.add_cleanup(under_test.close)
    config.pluginmanager.register(Run(config, assignment), "numpy-tests-run")


class Run:
    """pytest's hooks of a rank that runs NumPy's tests."""

    def __init__(self, config: pytest.Config, assignment: Assignment) -> None:
        self._assignment, self._adapter = assignment, adapters.current()
        self._rebinding = Rebinding(self._adapter)
        self._several = inner_key in config.stash
        rank = self._adapter.comm.rank
        self._results = open(assignment.results if rank == 0 else os.devnull, "a", buffering=1)  # noqa: SIM115
        self._outcomes: dict[str, tuple[str, str]] = {}
        self._real_stderr = os.dup(2)
        config.option.basetemp = str(Path(assignment.folder) / f"rank{rank}")
        np.random.seed(0)  # classes of tests draw numbers as they are imported

    @pytest.fixture
    def tmp_path(self, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """A folder of this rank's: the tests write files by Python, too, which ranks must not do to the same one."""
        return tmp_path_factory.mktemp(re.sub(r"\W", "_", request.node.name)[:30])

    def identity(self, nodeid: str) -> str:
        """A test's name, wherever NumPy is installed."""
        return f"{self._assignment.file}::{nodeid.partition('::')[2]}"

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        for module in modules_of(items):
            self._rebinding.rebind(module)
        done = set(self._assignment.done)
        chosen: list[pytest.Item] = []
        others: list[pytest.Item] = []
        for item in items:
            name = self.identity(item.nodeid)
            reason = reason_of(name, item)
            if name not in done and reason:
                self._write(test=name, outcome="left out", message=reason)
            (others if name in done or reason else chosen).append(item)
        config.hook.pytest_deselected(items=others)
        items[:] = chosen

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        name, self._since = self.identity(item.nodeid), time.monotonic()
        self._write(begun=name)
        self._rebinding.seed(name)
        random.seed(name)
        np.random.seed(0)
        limit: AbstractContextManager[object] = nullcontext()
        if not self._several:  # several ranks have a limit of their own (`spmd_plugin`)
            limit = watchdog(self._assignment.seconds, item.nodeid, self._real_stderr)
        with limit, self._adapter.foreign_tests():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        result = yield
        self._adapter.finish()
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = self.identity(report.nodeid)
        if report.when == "call" or report.outcome != "passed":
            before = self._outcomes.get(name, ("", ""))
            if before[0] != "failed":
                self._outcomes[name] = report.outcome, _last_line(report) if report.outcome == "failed" else ""
        if report.when == "teardown":
            outcome, message = self._outcomes.pop(name, ("skipped", ""))
            self._write(test=name, outcome=outcome, message=message, seconds=round(time.monotonic() - self._since, 3))

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        # 5: nothing was left to run.
        self._write(end=exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, 5), status=int(exitstatus))

    def _write(self, **line: object) -> None:
        self._results.write(json.dumps(line) + "\n")


def _last_line(report: pytest.TestReport) -> str:
    """What an error says, in one line, with the place where it was raised."""
    text = report.longreprtext
    lines = [line[2:].strip() for line in text.splitlines() if line.startswith("E ")]
    return " | ".join(lines[:3])[:400] or (text.strip().splitlines() or [""])[-1][:400]
