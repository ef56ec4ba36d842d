"""A pytest plugin: everything runs on one rank, and the files marked ``spmd`` also under ``mpiexec -n N``, by itself.

For each N there is one more test, which starts one MPI job: an inner pytest on every rank. There, ranks agree on the
outcome of each test (`InnerRun`), only rank 0 reports, and a time limit prints the stacks of all ranks. A file is
marked by ``pytestmark = pytest.mark.spmd``, or ``pytest.mark.spmd(ranks=(1, 3))`` for other numbers of ranks than 1
and 2; the option ``--ranks`` overrules both, and without a 1 in it these files run in the jobs only.

A conftest.py takes it in by ``pytest_plugins = ["numpy_dist.spmd_plugin"]``. Where that file is found only after the
command line was read (``--pyargs``), its options are known with ``-p numpy_dist.spmd_plugin``.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from numpy_dist.argument_types import Function
from numpy_dist.comm import detect, devices, launchers
from numpy_dist.engine import lazily_recorded
from numpy_dist.spmd_testing import Agreement, watchdog

try:
    import hypothesis
except ModuleNotFoundError:  # tests need not have examples made up
    hypothesis = None  # type: ignore[assignment]

SELECTION_VARIABLE = "NUMPY_DIST_TEST_SELECTION"
SPMD_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "NUMPY_DIST_NUM_THREADS": "1",
    "NUMPY_DIST_MIN_SHARD_BYTES": "0",
    "NUMPY_DIST_TIMEOUT": "60",
    "NUMPY_DIST_ADVICE": "off",  # how fast tests are is not what they look at
    # Sets of strings iterate alike on all ranks.
    "PYTHONHASHSEED": "0",
    # Open MPI's launcher refuses the superuser and more ranks than cores unless told.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
DEFAULT_RANKS = (1, 2)
JOB_SECONDS = 3600
TEST_SECONDS = 120.0
LONG_FACTOR = 20
REPORT_LINES = 200
_SUMMARY = "summary of the job"

inner_key = pytest.StashKey["InnerRun"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("spmd", "runs under several MPI ranks")
    group.addoption("--ranks", help="numbers of ranks for the files marked spmd, such as 1,2,3 (default: the files')")
    group.addoption("--spmd-timeout", type=float, help=f"seconds for a test in a job; 0: any (default {TEST_SECONDS})")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "spmd: the file is also run under several MPI ranks")
    config.addinivalue_line("markers", "gpu: needs a CUDA device")
    config.addinivalue_line("markers", "long: many more examples; run where -m long asks for it")
    is_rank = launchers.launched_ranks(os.environ) is not None
    if hypothesis is not None:
        hypothesis.settings.register_profile("shared-cores", deadline=None)
        # On all ranks alike: nothing that depends on time or on a database of earlier failures.
        hypothesis.settings.register_profile(
            "spmd",
            deadline=None,
            derandomize=True,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        hypothesis.settings.load_profile("spmd" if is_rank else "shared-cores")
    if not is_rank:
        return
    inner = InnerRun(config)
    config.stash[inner_key] = inner
    config.pluginmanager.register(inner, "spmd-inner-run")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Fusion also under test: pytest records all warnings of a test, and would have statements executed at once."""
    with lazily_recorded():
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]  # not by keywords: folders are among them
    has_gpu = bool(on_gpu) and devices.usable() > 0
    for item in items:
        # Not by keywords: folders are among them.
        if item.get_closest_marker("long") and "long" not in config.option.markexpr:
            item.add_marker(pytest.mark.skip(reason="long: ask for it with -m long"))
    for item in () if has_gpu else on_gpu:
        item.add_marker(pytest.mark.skip(reason="no CUDA device"))
    if inner_key in config.stash:
        config.stash[inner_key].select(items)
        return
    selected = [item for item in items if item.get_closest_marker("spmd")]
    if selected:
        ranks = {id(item): ranks_of(item) for item in selected}
        jobs = [
            SpmdJob.of(session, [item for item in selected if nranks in ranks[id(item)]], nranks)
            for nranks in sorted({n for counts in ranks.values() for n in counts if n > 1})
        ]
        # Workers of pytest-xdist share what is left while one waits for jobs; last, these would be waited for alone.
        position = 0 if hasattr(config, "workerinput") else len(items)
        items[position:position] = jobs
        elsewhere = {number for number, counts in ranks.items() if 1 not in counts}
        if elsewhere:
            config.hook.pytest_deselected(items=[item for item in items if id(item) in elsewhere])
            items[:] = [item for item in items if id(item) not in elsewhere]


def ranks_of(item: pytest.Item) -> tuple[int, ...]:
    """The numbers of ranks at which a test marked spmd is to run."""
    option = item.config.getoption("--ranks", None)
    if option is not None:
        return tuple(int(text) for text in option.split(",") if text.strip())
    marker = item.get_closest_marker("spmd")
    return tuple(marker.kwargs.get("ranks", DEFAULT_RANKS)) if marker is not None else (1,)


def _identity(item: pytest.Item) -> str:
    """Names a test alike in the outer and the inner runs, wherever they were started."""
    return f"{item.path}::{item.nodeid.partition('::')[2]}"


def _test_seconds(config: pytest.Config) -> float:
    option = config.getoption("--spmd-timeout", None)
    return TEST_SECONDS if option is None else float(option)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # By the reports: the jobs may have run in another process (pytest-xdist's).
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    for report in (report for report in reports if getattr(report, "when", "") == "call"):
        for name, text in report.user_properties:
            if name == _SUMMARY:
                terminalreporter.write_line(text)


@pytest.fixture
def tmp_path(tmp_path: Path, pytestconfig: pytest.Config) -> Path:
    """pytest's, but under MPI that of rank 0 on every rank."""
    inner = pytestconfig.stash.get(inner_key, None)
    return tmp_path if inner is None else inner.agreement.exchange(tmp_path)[0]


# -- the outer run ---------------------------------------------------------------------------------------------------


class JobFailed(Exception):
    """The inner run of an MPI job did not succeed; its text is the report."""


class SpmdJob(pytest.Item):
    """All selected tests of the files marked spmd, in one MPI job."""

    tests: list[pytest.Item]
    nranks: int

    @classmethod
    def of(cls, session: pytest.Session, tests: list[pytest.Item], nranks: int) -> SpmdJob:
        job: SpmdJob = cls.from_parent(session, name=f"mpiexec -n {nranks}")
        job.tests, job.nranks = tests, nranks
        return job

    def runtest(self) -> None:
        mpiexec = detect.find_mpiexec()
        if mpiexec is None:
            pytest.skip("there is no mpiexec beside this Python and none on PATH")
        with tempfile.TemporaryDirectory() as folder:
            selection, counts = Path(folder) / "selection.json", Path(folder) / "counts.json"
            content = {"tests": [_identity(test) for test in self.tests], "folder": folder, "counts": str(counts)}
            selection.write_text(json.dumps(content))
            environment = {**os.environ, **SPMD_ENVIRONMENT, SELECTION_VARIABLE: str(selection)}
            code, output = run_job([mpiexec, "-n", str(self.nranks), *self._inner_command()], environment)
            summary = json.loads(counts.read_text()) if counts.exists() else {}
        told = ", ".join(f"{n} {word}" for word, n in sorted(summary.items())) or "no report"
        self.user_properties.append((_SUMMARY, f"{self.nranks} ranks: {told}"))
        if code != 0 or not summary.get("passed", 0) + summary.get("skipped", 0):
            raise JobFailed(f"{self.nranks} ranks: {told}; exit code {code}\n" + _tail(output))

    def _inner_command(self) -> list[str]:
        files = list(dict.fromkeys(str(test.path) for test in self.tests))
        options = ["-q", "--no-header", "--tb=short", "--color=no", "-rfE", "-p", "no:cacheprovider", "-p", __name__]
        options += [f"--rootdir={self.config.rootpath}", f"--spmd-timeout={_test_seconds(self.config)}"]
        if self.config.inipath is not None:
            options += ["-c", str(self.config.inipath)]
        if self.config.option.markexpr:
            options += ["-m", self.config.option.markexpr]
        if self.config.pluginmanager.hasplugin("xdist"):
            options += ["-n", "0"]  # whatever PYTEST_ADDOPTS says: the ranks are the workers
        if self.config.option.maxfail:
            options += [f"--maxfail={self.config.option.maxfail}"]
        return [sys.executable, "-m", "pytest", *options, *files]

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> Any:
        if isinstance(excinfo.value, JobFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.config.rootpath, None, self.name


def run_job(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Run an MPI job; its exit code and output. Nothing of it survives."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=JOB_SECONDS)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return process.returncode, output.decode(errors="replace")


def _tail(text: str) -> str:
    lines = text.rstrip().splitlines()
    left_out = len(lines) - REPORT_LINES
    return "\n".join([f"({left_out} lines left out)", *lines[-REPORT_LINES:]] if left_out > 0 else lines)


# -- the inner runs --------------------------------------------------------------------------------------------------


class RankFailure(AssertionError):
    """Raised on every rank where at least one has failed."""


class InnerRun:
    """pytest's hooks on each rank of an MPI job."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.agreement = Agreement()
        self._real_stderr = os.dup(2)
        text = os.environ.get(SELECTION_VARIABLE)
        self._selection: dict[str, Any] = {} if text is None else json.loads(Path(text).read_text())
        if self._selection:
            # Each rank has a folder of its own; the fixture tmp_path gives all of them that of rank 0.
            config.option.basetemp = str(Path(self._selection["folder"]) / f"rank{self.agreement.rank}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if self.agreement.rank != 0 and reporter is not None:
            reporter._tw._file = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process

    def select(self, items: list[pytest.Item]) -> None:
        """Keep the tests that the outer run has selected; all ranks must have found the same ones."""
        if self._selection:
            wanted = set(self._selection["tests"])
            items[:] = [item for item in items if _identity(item) in wanted]
        found = self.agreement.exchange([_identity(item) for item in items])
        if any(other != found[0] for other in found):
            pytest.exit("the ranks have collected different tests", returncode=3)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._agree_on_examples(item)
        seconds = _test_seconds(self.config) * (LONG_FACTOR if item.get_closest_marker("long") else 1)
        with watchdog(seconds, item.nodeid, self._real_stderr):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        error = call.excinfo.value if call.excinfo is not None else None
        if isinstance(error, (pytest.skip.Exception, RankFailure)):
            # Raised on all ranks alike; nobody is left waiting.
            error = None
        outcomes, texts = self.agreement.settle(report.outcome, error, report.longreprtext or repr(error))
        others = {rank: text for rank, text in texts.items() if rank != self.agreement.rank}
        if "failed" in outcomes and others:
            report.longrepr = _describe(texts)
        elif not texts and len(set(outcomes)) > 1:
            report.longrepr = "\n".join(f"rank {rank}: {outcome}" for rank, outcome in enumerate(outcomes))
        if len(set(outcomes)) > 1:
            report.outcome = "failed"
            report.__dict__.pop("wasxfail", None)
        return report

    def _agree_on_examples(self, item: pytest.Item) -> None:
        """Let the ranks agree after each example of a hypothesis test, so that they all try the same next one."""
        handle = getattr(getattr(item, "obj", None), "hypothesis", None)
        if handle is not None and not hasattr(handle.inner_test, "agreed"):
            handle.inner_test = self._agreed(handle.inner_test)

    def _agreed(self, inner_test: Function) -> Function:
        @functools.wraps(inner_test)
        def run(*args: object, **kwargs: object) -> object:
            result, error, outcome, text = None, None, "passed", ""
            try:
                result = inner_test(*args, **kwargs)
            except BaseException as raised:
                error, outcome, text = raised, "failed", traceback.format_exc()
                if type(raised).__module__.startswith("hypothesis") or isinstance(raised, pytest.skip.Exception):
                    outcome = type(raised).__name__
            outcomes, texts = self.agreement.settle(outcome, error if outcome == "failed" else None, text)
            if len(set(outcomes)) > 1 or "failed" in outcomes:
                # From one line on all ranks, whoever failed: to hypothesis it is then the same failure everywhere.
                raise RankFailure(_describe(texts) if texts else f"the ranks differ: {outcomes}")
            if error is not None:
                raise error
            return result

        run.agreed = True  # type: ignore[attr-defined]
        return run

    def pytest_sessionfinish(self) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if self.agreement.rank == 0 and self._selection and reporter is not None:
            counts = {word: len(reports) for word, reports in reporter.stats.items() if word and word != "warnings"}
            Path(self._selection["counts"]).write_text(json.dumps(counts))


def _describe(texts: dict[int, str]) -> str:
    """The failures of several ranks; those that have the same text come once."""
    by_text: dict[str, list[int]] = {}
    for rank, text in texts.items():
        by_text.setdefault(text, []).append(rank)
    return "\n".join(f"[rank {', '.join(map(str, ranks))}]\n{text}" for text, ranks in by_text.items())
