"""`numpy-dist conformance` as a product: the command, its report, authors' cases, adapters for other arrays."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from numpy_dist.conformance import adapter, command, coverage, report, selection, suite, topics, variants
from numpy_dist.conformance.arguments import a, of
from numpy_dist.conformance.case import Case, Topic
from numpy_dist.conformance.checking.oracle import check

WRONG = """
import numpy as np
from numpy_dist.conformance.arguments import a
from numpy_dist.conformance.case import Topic

def fails(x):
    if type(x) is not np.ndarray and x.comm.rank == x.comm.size - 1:
        raise RuntimeError("only here")
    return np.trace(x)

TOPIC = Topic("Somebody's overrides")
TOPIC.case(np.flip, a(6, 5), via=lambda x: np.flip(x) + (type(x) is not np.ndarray))
TOPIC.case(np.trace, a(6, 5), via=fails)
"""


def run(tmp_path, *arguments, seconds=120):
    """Exit code and output of the command, run in a folder."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NUMPY_DIST_", "PMI", "MPI", "OMPI"))}
    environment["PYTHONPATH"] = str(tmp_path)
    words = [sys.executable, "-m", "numpy_dist", "conformance", *arguments]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=seconds)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_a_run_and_its_report(tmp_path):
    code, output = run(tmp_path, "--ranks", "1,2", "--functions", "sort,linalg.trace", "--report", "report.html")
    assert code == 0, output
    assert "2 ranks: " in output and "0 problems" in output
    page = (tmp_path / "report.html").read_text()
    assert "numpy.sort<" in page and "numpy.linalg.trace" in page and "2 ranks" in page and "Known differences" in page


@pytest.mark.slow
def test_cases_of_authors_and_what_differs(tmp_path):
    (tmp_path / "theirs.py").write_text(WRONG)
    code, output = run(
        tmp_path, "--ranks", "2", "--load", "theirs", "--functions", "flip,trace", "--report", "report.html"
    )
    assert code == 1, output
    assert "30 of 30 values of result differ" in output and "RuntimeError('only here')" in output
    assert "; 2 problems" in output and "class='n bad'" in (tmp_path / "report.html").read_text()


@pytest.mark.slow
def test_what_cannot_be_run(tmp_path):
    code, output = run(tmp_path, "--functions", "nonsense")
    assert code == 2 and "no function has this name" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--nonsense", "unrecognized arguments"),
        ("--functions sort,nonsense", "no function has this name, or no topic contains this text: nonsense"),
        ("--area nonsense", "no function has this name, or no topic contains this text: nonsense"),
        ("--area sorting --functions trace", "no function has this name, or no topic contains this text: trace"),
        ("--ranks 0", "argument --ranks: '0' is not a number from 1 on"),
        ("--ranks 1,x", "argument --ranks: 'x' is not a number from 1 on"),
        ("--layouts 0", "argument --layouts: '0' is not a number from 1 on"),
        ("--backend nonsense", "argument --backend: BACKEND='nonsense' is not allowed; BACKEND is one of auto,"),
        ("--report no/such/folder.html", "argument --report: [Errno 2]"),
        ("--at-least 85", "--at-least is about --share and --numpy"),
        ("--load no_such_module", "--load or --adapter: No module named 'no_such_module'"),
        ("--adapter no_such_module:X", "--load or --adapter: No module named 'no_such_module'"),
        ("--adapter numpy_dist", "--load or --adapter: 'numpy_dist' is not module:Class"),
        ("--adapter numpy:ndarray", "--load or --adapter: 'numpy:ndarray' is not module:Class"),
    ],
)
def test_options_that_mean_nothing(words, message, capsys):
    with pytest.raises(SystemExit) as raised:
        command.main(words.split())
    assert raised.value.code == 2 and message in capsys.readouterr().err


def test_share(capsys):
    assert command.main(["--share"]) == 0
    native, functions, native_targets, targets = coverage.share()
    assert f"{native} of {functions} functions" in capsys.readouterr().out
    assert 0 < native <= functions and 0 < native_targets <= targets
    assert command.main(["--share", "--at-least", "101"]) == 1


def test_names():
    assert selection.is_meant("numpy.linalg.norm", ["norm"]) and selection.is_meant(
        "numpy.linalg.norm", ["linalg.norm"]
    )
    assert selection.is_meant("numpy.add (ufunc)", ["add"]) and not selection.is_meant("numpy.nanmax", ["max"])
    assert [label for _, label, _ in selection.choose(functions=["numpy.sort"])] == ["numpy.sort"]
    assert {title for title, _, _ in selection.choose(areas=["sorting"])} == {"Sorting, searching, and counting"}


def test_every_function_has_its_topic_in_the_manual():
    titles = selection.topic_of()
    for function in coverage.functions():
        assert topics.title_of(function) == titles[function], suite.label(function)
    names = [name for text in topics._BY_NAME.values() for name in text.split()]
    assert len(set(names)) == len(names)
    assert titles[np.sort] == "Sorting, searching, and counting" and titles[np.median] == "Statistics"
    assert titles[np.add.reduce] == "Universal functions" and titles[np.ndarray.sort] == "The array object"


def test_variants_differ_from_their_case_and_from_each_other():
    case = Case(np.sum, (a(6, 5), 1))
    found = list(variants.variants([case]))
    assert len(found) > 20 and len({str(c) for c in found}) == len(found) and str(case) not in map(str, found)
    assert {c.args[0].shape for c in found} >= {(), (0, 5), (6, 0), (1, 1), (13, 11)}
    assert len({c.number for c in found}) == len(found)
    assert list(variants.variants([Case(np.sum, (of([1, 2]),))]))[0].args[0].shape == (2,)  # its values are given
    assert list(variants.variants([Case(np.eye, (3,))])) == []


def test_report_of_runs_that_ended_early():
    row = {"topic": "T", "function": "f<", "kind": "native", "reason": "", "cases": 2, "passed": 1, "known": 0}
    page = report.html({1: [row | {"problems": ["wrong & bad"]}], 2: []}, "share", [("g", "because")], "Title")
    assert "f&lt;" in page and "wrong &amp; bad" in page and "not run" in page and "because" in page


class Boxed(np.lib.mixins.NDArrayOperatorsMixin):
    """Arrays of somebody else: a box around an ndarray, which implements both protocols."""

    def __init__(self, values):
        self.values = values

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return boxed(getattr(ufunc, method)(*map(plain, inputs), **{k: plain(v) for k, v in kwargs.items()}))

    def __array_function__(self, function, types, args, kwargs):
        if function is np.flip:
            return boxed(args[0].values)  # wrong
        return boxed(function(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()}))

    def __getitem__(self, key):
        return boxed(self.values[key])

    def __setitem__(self, key, value):
        self.values[key] = plain(value)

    ndim = property(lambda self: self.values.ndim)
    shape = property(lambda self: self.values.shape)
    dtype = property(lambda self: self.values.dtype)
    flags = property(lambda self: self.values.flags)
    T = property(lambda self: boxed(self.values.T))


def plain(x):
    if isinstance(x, tuple | list):
        return type(x)(map(plain, x))
    return x.values if isinstance(x, Boxed) else x


def boxed(x):
    return Boxed(x) if isinstance(x, np.ndarray) else x


class Boxes(adapter.Adapter):
    def distribute(self, base, generator):
        return Boxed(base.copy()), "boxed"

    def is_array(self, x):
        return isinstance(x, Boxed)

    def gather(self, x):
        return x.values.copy()


def test_arrays_of_another_library():
    with adapter.use(Boxes()):
        for case in (
            Case(np.add, (a(6, 5), a(5))),
            Case(np.sort, (a(6, 5),)),
            Case(np.concatenate, ([a(2), a(3)],)),
            Case(np.transpose, (a(2, 3),)),
            Case(np.add, (a(3), a(4))),
        ):
            assert check(case) == [], case
        assert "values of result differ" in check(Case(np.flip, (a(6, values="distinct"),)))[0]
    assert type(adapter.current()).__name__ == "DistArrays"
    with pytest.raises(NotImplementedError, match="has no distribute"):
        adapter.Adapter().gather(None)


def test_topics_can_be_added(monkeypatch):
    before = suite.groups()
    monkeypatch.setattr(suite, "_added", [])
    topic = Topic("One more")
    topic.case(test_topics_can_be_added, a(3), via=lambda x: x + 1)
    suite.add(topic)
    try:
        assert set(suite.groups()) - set(before) and suite.topics()[-1] is topic
    finally:
        suite._added.clear()
        for cached in (suite.topics, suite.cases_by_function, suite.groups):
            cached.cache_clear()
