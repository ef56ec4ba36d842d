"""NumPy's own tests on other arrays: rebinding, left-out tests, crashes and hangs, and the score by a duck array."""

from __future__ import annotations

import types

import numpy as np
import pytest

from numpy_dist.conformance import adapter, command, suite
from numpy_dist.conformance.checking.oracle import check
from numpy_dist.conformance.duck import Duck, Ducks
from numpy_dist.conformance.numpy_tests import files, left_out, score
from numpy_dist.conformance.numpy_tests.rebinding import Rebinding
from numpy_dist.conformance.numpy_tests.runs import NumPyOutcome
from tests.conformance.test_command import run

FOREIGN = """
import os
import signal
import sys
import time

import numpy as np
import pytest
from numpy import arange
from numpy.testing import assert_equal

DRAWN = np.random.random(3)

def is_distributed():
    return type(arange(3)).__name__ == "DistArray"

def test_wrapped():
    assert type(np.zeros(3)) is not np.ndarray and type(np.random.rand(3)) is not np.ndarray

@pytest.mark.parametrize("n", [0, 1, 7])
def test_agrees(n):
    assert_equal(np.cumsum(arange(n)), [sum(range(k + 1)) for k in range(n)])

def test_differs():
    assert not is_distributed(), "as it is meant to"

def test_is_an_ndarray():
    assert isinstance(np.ones(3), np.ndarray)

def test_counts_references():
    assert sys.getrefcount(np) == 0

def test_ranks_have_drawn_alike():
    comm = getattr(arange(3), "comm", None)
    assert comm is None or len(set(comm.allgather(DRAWN.tobytes()))) == 1

def test_crashes():
    if is_distributed():
        os.kill(os.getpid(), signal.SIGSEGV)

def test_hangs():
    while is_distributed() and arange(3).comm.rank == arange(3).comm.size - 1:
        time.sleep(0.1)
    assert arange(4).sum() == 6

def test_after_it():
    assert np.ones((3, 4)).sum() == 12
"""


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_run_of_a_file(tmp_path, ranks):
    (tmp_path / "foreign_tests.py").write_text(FOREIGN)
    words = ["--numpy", "--files", "foreign_tests", "--results", "kept", "--test-seconds", "15"]
    code, output = run(tmp_path, *words, "--ranks", str(ranks), seconds=600)
    assert code == 1, output
    assert "foreign_tests::test_differs: failed: AssertionError: as it is meant to" in output
    assert "foreign_tests::test_crashes: crashed" in output and "Segmentation fault" in output
    assert "foreign_tests::test_hangs: hung" in output and "in test_hangs" in output
    # All but the two that are left out, or that no duck passes, and the three above.
    assert output.splitlines()[-len(left_out.FILES) - 1].split()[1:] == "10 1 9 6 66.7 0 2".split(), output
    words = ["--numpy", "--files", "foreign_tests", "--tests", "agrees or crashes", "--ranks", str(ranks)]
    again, output = run(tmp_path, *words, "--at-least", "60", seconds=600)
    assert again == 1 and "crashed" in output, "crashes count, whatever the score"


@pytest.mark.slow
def test_a_part_of_a_file(tmp_path):
    (tmp_path / "foreign_tests.py").write_text(FOREIGN)
    words = ["--numpy", "--files", "foreign_tests", "--tests", "agrees or after_it", "--ranks", "2"]
    code, output = run(tmp_path, *words)
    assert code == 0 and "100.0" in output, output


def test_what_a_test_module_sees():
    rebinding = Rebinding(Ducks())
    module = types.ModuleType("some_tests")
    module.np, module.array, module.assert_equal = np, np.array, np.testing.assert_equal
    module.assert_raises, module.sort = np.testing.assert_raises, np.sort
    rebinding.rebind(module)
    made = module.array([3, 1, 2])
    assert type(made) is Duck and type(module.np.array(made)) is Duck and module.np.array(made) is not made
    assert module.np.asarray(made) is made and type(module.np.meshgrid(made)[0]) is Duck
    assert module.np.sort is np.sort and type(module.sort(made)) is Duck
    assert type(module.np.random.rand(3)) is Duck and module.np.linalg is np.linalg
    rows = module.np.zeros((20, 2)) + module.np.array([[row] for row in range(20)])
    module.np.random.shuffle(rows)
    assert sorted(rows.values[:, 1].tolist()) == list(range(20)), "rows are swapped, not views of them"
    module.assert_equal([made, made[0]], [[3, 1, 2], 3])
    module.np.testing.assert_array_equal(made, made.values)
    module.assert_raises(IndexError, lambda x: type(x) is Duck and x[5], made)
    with pytest.raises(AssertionError):
        module.assert_equal(made, [3, 1, 1])


def test_the_duck_agrees_with_numpy():
    functions = (np.sort, np.add, np.concatenate, np.linalg.svd, np.where, np.copyto, np.split, np.einsum)
    with adapter.use(Ducks()):
        for function in functions:
            for case in suite.cases_by_function()[function]:
                assert not check(case, "0"), case


def test_a_duck_is_seen_as_ducks_only():
    duck = Duck(np.arange(4))
    assert type(duck.view("i4")) is Duck and duck.view(dtype="u1").shape == (32,)
    with pytest.raises(TypeError, match="no view as matrix"):
        duck.view(np.matrix)


def test_scores():
    yardstick = {
        "t::a": NumPyOutcome("passed", ""),
        "t::b": NumPyOutcome("passed", ""),
        "t::c": NumPyOutcome("failed", "no ndarray"),
    }
    own = {
        "t::a": NumPyOutcome("passed", ""),
        "t::c": NumPyOutcome("crashed", "SIGSEGV"),
        "t::d": NumPyOutcome("left out", "threads"),
    }
    found = score.score_of(yardstick, own)
    assert found == score.Score(tests=2, left_out=1, duck=2, passed=1, known=0, broken=1) and found.percent == 50
    assert list(score.differing(yardstick, own)) == ["t::b: not run: ", "t::c: crashed: SIGSEGV"]
    assert score.total({"t": found, "u": found}).duck == 4 and score.total({}).percent == 100


def test_the_tables_name_files_of_numpy():
    everything = set(files.every())
    tables = (*left_out.FILES.values(), *left_out.TESTS.values(), *left_out.DIFFERENT.values())
    named = [name.partition("::")[0] for names in tables for name in names.split()]
    assert "_core.test_umath" in everything and set(files.choose([])) < everything
    assert not [name for name in named if name.rpartition(".")[0] not in left_out.FOLDERS]
    assert list(files.choose(["umath", "lib.test_io"])) == ["_core.test_umath", "lib.test_io"]
    with pytest.raises(LookupError):
        list(files.choose(["umath", "nonsense"]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--numpy --files nonsense", "NumPy has no test file of this name, and there is no such module: nonsense"),
        ("--files umath", "--files, --tests and --results are about --numpy"),
    ],
)
def test_options_that_mean_nothing(words, message, capsys):
    with pytest.raises(SystemExit) as raised:
        command.main(words.split())
    assert raised.value.code == 2 and message in capsys.readouterr().err
