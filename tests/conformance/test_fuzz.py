"""Random programs do on shards what they do on ndarrays; what differs, crashes or hangs is found and made small."""

from __future__ import annotations

import numpy as np
import pytest

from numpy_dist.conformance import adapter
from numpy_dist.conformance.fuzz.comparison import differences, snapshot
from numpy_dist.conformance.fuzz.grammar import generate
from numpy_dist.conformance.fuzz.interpreter import judge, replay
from numpy_dist.conformance.fuzz.program import RandomProgram, script
from numpy_dist.conformance.fuzz.shrinking import shrink
from numpy_dist.conformance.fuzz.writer import KEPT_ERRORS, Writer
from numpy_dist.settings import config

pytestmark = pytest.mark.spmd(ranks=(3,))

FIRST, COUNT, BLOCK = 1000, 60, 10


@pytest.mark.parametrize(
    "block", [pytest.param(block, marks=pytest.mark.slow if block > 1 else ()) for block in range(COUNT // BLOCK)]
)
def test_random_programs(block: int) -> None:
    with config(FALLBACK="silent"):
        for seed in range(FIRST + block * BLOCK, FIRST + (block + 1) * BLOCK):
            program = generate(seed)
            assert judge(program) is None, script(program, 1, {}, f"seed {seed}")


def test_a_seed_is_one_program() -> None:
    assert generate(17) == generate(17) != generate(18)


def test_a_statement_that_is_not_written_leaves_nothing() -> None:
    writer = Writer(1)
    assert writer.add("v1 = np.zeros(4)") and writer.add("v2 = v1[::-1]")
    writer.errors = KEPT_ERRORS
    assert not writer.add("v1[0] = 5; v1[9] = 6")
    assert not writer.add("v1.shape = 2, 2; v1.fill(3); v1[np.void(1)]")
    assert writer.names["v1"].tolist() == writer.names["v2"].tolist() == [0] * 4
    assert np.shares_memory(writer.names["v1"], writer.names["v2"]) and len(writer.statements) == 2


class Wrong(np.ndarray):
    """An array whose sums of two arrays are too large."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        bare = [x.view(np.ndarray) if isinstance(x, Wrong) else x for x in inputs]
        result = getattr(ufunc, method)(*bare, **options)
        return (result + (ufunc is np.add)).view(Wrong) if isinstance(result, np.ndarray) else result


class WrongArrays(adapter.Adapter):
    """The adapter of `Wrong`."""

    def distribute(self, base, generator):
        return base.copy().view(Wrong), "wrong"

    def is_array(self, x):
        return isinstance(x, Wrong)

    def gather(self, x):
        return np.array(x.view(np.ndarray))


PROGRAM = [
    "v1 = array(a(4), 3)",
    "v2 = v1[1:] * 2",
    "checkpoint()",
    "for k in range(2):\n    v3 = v1[::-1] - v1\n    v4 = np.add(v1, v3, dtype='f8')",
    "del v1",
]


def test_where_a_result_lies_in_the_memory_of_an_operand_is_not_asked() -> None:
    writer = Writer(0, big=True)
    assert writer.add("v1 = array(a(33, 40, 31))") and writer.add("v2 = v1.copy(order='F')")
    assert writer.add("v3 = v2 - v1 > 0") and writer.add("v4 = np.multiply(v2, v2) - v2")
    lies_as = (np.multiply(writer.names["v2"], writer.names["v2"]) - writer.names["v1"]).flags
    assert writer.add("v5 = np.multiply(v2, v2) - v1 > 0") == lies_as.c_contiguous


def test_deviations_that_are_rounding_are_not_asked() -> None:
    writer = Writer(0)
    assert writer.add("v1 = np.sqrt(np.full(6, 7.0))") and writer.add("v2 = np.arange(6.0)")
    writer.errors = KEPT_ERRORS
    assert not writer.seal("np.std(v1, axis=7)")
    assert not writer.seal("np.std(v1)") and not writer.seal("np.var(v1 + 0)") and writer.seal("np.std(v2)")


def test_a_difference_is_found_and_made_small(capsys: pytest.CaptureFixture) -> None:
    with adapter.use(WrongArrays()):
        problem = judge(RandomProgram(tuple(PROGRAM)))
        assert problem is not None and problem.kind == "values" and "v4" in problem.text

        def fails(statements: list[str]) -> bool:
            found = judge(RandomProgram(tuple(statements)))
            return found is not None and found.kind == "values"

        small = shrink(PROGRAM, fails, 60)
        assert replay(small) == 1
    assert len(small) == 2 and "for" not in small[1] and "dtype" not in small[1]
    assert "values, in statement" in capsys.readouterr().out
    compile(script(RandomProgram(tuple(small)), 3, {"A": "b"}, "values"), "script", "exec")


def test_making_a_program_smaller_leaves_its_tolerance() -> None:
    tried = []

    def fails(statements: list[str]) -> bool:
        tried.extend(statements)
        return "cumsum" in statements[-1]

    shrink(["check(np.cumsum(v1 + 1, axis=0), 256)"], fails, 10)
    assert "check(np.cumsum(v1 + 1), 256)" in tried
    assert all(text.endswith(", 256)") for text in tried if text.startswith("check"))


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        (np.array([0.0]), np.array([-0.0]), "values"),
        (np.array([1.0]), np.array([1.0 + 1e-15]), "rounding"),
        (np.arange(3), np.arange(3.0), "dtype"),
        (np.arange(3), np.arange(4), "shape"),
        ([1, 2], (1, 2), "type"),
        (np.broadcast_to(1, (2,)), np.array([1, 1]), "writeable"),
        (ValueError("a"), ValueError("b"), "values"),
        ({"a": 1}, {"a": 2}, "values"),
        (np.datetime64("NaT", "Y"), np.datetime64("1970"), "values"),
    ],
)
def test_what_is_a_difference(ours: object, theirs: object, kind: str) -> None:
    assert [kind] == [found for found, _ in differences(snapshot(ours), snapshot(theirs), 0, "x")][:1]
    assert not list(differences(snapshot(theirs), snapshot(theirs), 0, "x"))


def test_errors_and_warnings_are_compared() -> None:
    with config(MIN_SHARD_BYTES=0):
        statements = ("v1 = array(a(3))", "v1[7]", "v1 + np.ones(2)", "v2 = v1 / 0", "checkpoint()")
        assert judge(RandomProgram(statements)) is None
        only_ours = "type(v1) is np.ndarray or "
        for text, kind in (
            (only_ours + "1 / 0", "error ZeroDivisionError"),
            (only_ours + "warnings.warn('x')", "warnings"),
        ):
            problem = judge(RandomProgram(("v1 = array(a(3))", text)))
            assert problem is not None and problem.kind == kind
        problem = judge(RandomProgram(("v1 = array(a(3))", "if type(v1) is np.ndarray: 1 / 0")))
        assert problem is not None and problem.kind == "no error"
