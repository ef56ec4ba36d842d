"""Ranks that do different things are told so: both sides, the first difference, and what to do about it."""

from __future__ import annotations

import gc
import textwrap
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.comm.detect import get_communicator
from numpy_dist.comm.divergence import fingerprint
from numpy_dist.comm.divergence import journal as journal_module
from numpy_dist.comm.divergence.journal import KEPT, packed, unpacked
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.errors import DivergenceError, DivergenceWarning, RankError
from numpy_dist.ir import statements
from numpy_dist.settings import config
from numpy_dist.spmd_testing import inject


@pytest.fixture(autouse=True)
def tiny_arrays() -> Any:
    with config(MIN_SHARD_BYTES=0, FALLBACK="silent"):
        yield


def errors_of(source: str, nranks: int = 2, **settings: Any) -> dict[int, Exception]:
    """The errors of the ranks that run a script; `rank` and `x` (8 ones) are given."""
    code = compile(textwrap.dedent(source), "script.py", "exec")
    errors: dict[int, Exception] = {}

    def body() -> None:
        x = nd.ones(8)
        rank = x.comm.rank
        try:
            exec(code, {"np": np, "nd": nd, "x": x, "rank": rank, "__name__": "__main__"})
        except Exception as error:
            errors[rank] = error

    with config(**settings):
        run_simulated(nranks, body)
    return errors


def text_of(errors: dict[int, Exception], nranks: int = 2) -> str:
    """The one text of a DivergenceError on every rank."""
    assert sorted(errors) == list(range(nranks)), errors
    assert {type(error) for error in errors.values()} == {DivergenceError}, errors
    texts = {str(error) for error in errors.values()}
    assert len(texts) == 1
    return texts.pop()


# -- without CHECK ---------------------------------------------------------------------------------------------------


def test_a_statement_more_on_one_rank_is_found_in_the_next_collective() -> None:
    errors = errors_of(
        """
        if rank == 1:
            x = x + 1
        float(x.sum())
        """,
        nranks=3,
    )
    text = text_of(errors, 3)
    assert "rank 0, 2: add.reduce(float64[8]) -> float64[], at script.py:4" in text
    assert "rank 1: add(float64[8], int) -> float64[8], at script.py:3" in text
    assert "took different branches" in text


def test_gathering_collectives_of_different_kinds_are_not_mixed() -> None:
    errors = errors_of("x.comm.allgather(1) if rank else x.comm.gather(1)")
    text = text_of(errors)
    assert "rank 0: comm.gather" in text and "rank 1: comm.allgather" in text


def test_ranks_may_call_the_same_collective_at_different_lines() -> None:
    source = """
    if rank == 0:
        assert x.comm.allgather(rank) == [0, 1]
    else:
        x.comm.allgather(rank)
    """
    for check in ("off", "on"):
        assert errors_of(source, CHECK=check) == {}


def test_a_rank_that_waits_for_an_ended_one_hears_what_that_one_did_not_do() -> None:
    errors = errors_of("if rank == 0: repr(x)")
    assert list(errors) == [0] and isinstance(errors[0], RankError)
    text = str(errors[0])
    assert "rank 1 has ended (it ran to its end), and rank 0 waits for it in allgather" in text
    assert "rank 0: repr() (allgather), at script.py:1" in text and "rank 1: nothing (it ran to its end)" in text
    assert "Showing a distributed array is collective" in text


def test_a_deadlock_of_different_programs_shows_the_first_difference() -> None:
    errors = errors_of(
        """
        y = x + 1
        if rank == 0:
            (y + y[::-1]).local
        else:
            y.comm.barrier()
        """
    )
    text = text_of(errors)
    assert text.startswith("deadlock: every rank waits\n")
    assert "rank 0: messages with ranks [1], at script.py:4" in text and "rank 1: barrier" in text
    assert "rank 0: add(float64[8], float64[8]) -> float64[8], at script.py:4" in text
    assert "rank 1: comm.barrier, at script.py:6" in text


def test_different_collectives_show_the_first_difference() -> None:
    text = text_of(errors_of("x.comm.allgather(0)\nx.comm.barrier() if rank else x.comm.bcast(1)"))
    assert "rank 0: comm.bcast, at script.py:2" in text and "rank 1: comm.barrier, at script.py:2" in text


def test_a_broadcast_is_not_taken_for_another() -> None:
    errors = errors_of("if rank: x = x + 1\nx.comm.bcast('x' * 1000)", nranks=3)
    text = text_of(errors, 3)
    assert "rank 0: comm.bcast, at script.py:2" in text
    assert "rank 1, 2: add(float64[8], int) -> float64[8], at script.py:1 in <module>" in text


def test_broadcasts_from_different_ranks_are_not_mixed() -> None:
    text = text_of(errors_of("x.comm.bcast(rank, root=rank)"))
    assert "rank 0: comm.bcast, at script.py:1 in <module>, of root 0" in text
    assert "rank 1: comm.bcast, at script.py:1 in <module>, of root 1" in text


def test_nothing_is_put_into_words_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*args: Any) -> None:
        raise AssertionError("words")

    monkeypatch.setattr(journal_module, "_of_statement", forbidden)
    monkeypatch.setattr(journal_module, "_of_call", forbidden)
    monkeypatch.setattr(journal_module.Journal, "_operands", forbidden)
    source = """
    for k in range(300):
        x = x * 0.5 + x[::-1]
    float(x.sum())
    np.cumsum(x).gather()
    """
    assert errors_of(source) == {}
    with pytest.raises(AssertionError, match="words"):
        raise errors_of(source, CHECK="on")[0]


def test_with_check_each_operation_is_put_into_words_once(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []
    original = journal_module._of_statement

    def counted(number: int, *args: Any) -> Any:
        numbers.append(number)
        return original(number, *args)

    monkeypatch.setattr(journal_module, "_of_statement", counted)
    assert errors_of("for k in range(300):\n    x = x * 0.5\n    x.comm.barrier()\nfloat(x.sum())", CHECK="on") == {}
    assert len(numbers) == 2 * len(set(numbers))  # on two ranks


def operations_of_transport(function: Callable[[], Any]) -> tuple[list[str], int]:
    comm = get_communicator()
    before = comm.counters.collectives
    with inject(-1, lambda: None) as called:
        function()
    return called, comm.counters.collectives - before


def test_nothing_is_added_to_what_is_communicated() -> None:
    def body() -> None:
        x = nd.ones(8)
        get_communicator().barrier()  # ranks compare what they are in the first collective
        assert operations_of_transport(lambda: float(x.sum())) == (["_allgather_fixed"], 1)
        assert operations_of_transport(lambda: engine.force(x + 1)) == ([], 0)
        assert operations_of_transport(lambda: engine.force(x + x[::-1])) == (["_start"], 0)

    run_simulated(2, body)


def test_the_ranks_are_compared_once_in_the_first_collective() -> None:
    def body() -> None:
        called, collectives = operations_of_transport(lambda: get_communicator().barrier())
        assert (called, collectives) == (["_allgather_fixed", "_allgather_fixed"], 1)

    run_simulated(2, body)


@pytest.mark.parametrize("call", ["nd.asarray(np.ones(9), root=rank)", "x.gather(root=rank)", "x.comm.gather(1, rank)"])
def test_the_advice_about_different_roots(call: str) -> None:
    text = text_of(errors_of(call))
    assert " root 0\n" in text and " root 1\n" in text and "The ranks named different roots." in text, text


# -- with CHECK ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "shown", "advice"),
    [
        ("x = np.sqrt(x) if rank else np.exp(x)", "sqrt(float64[8]", "different branches"),
        ("y, z = nd.ones(8), nd.ones(8)\nx += y if rank else z", "float64[8]%3)", "different arrays"),
        ("y, z = map(nd.asarray, np.ones((2, 8)))\nx += y if rank else z", "float64[8]#2)", "different arrays"),
        ("y, z = nd.empty(8), nd.empty(8)\ny += z\nx += y if rank else z", "float64[8]~2)", "different arrays"),
        ("y, z = nd.ones(8), nd.ones(8)\n(y if rank else z)[:] = 5", "with the array %3 as target", "different arrays"),
        ("x = x * (rank + 0.5)", ", 0.5) -> float64[8]", "A number differs"),
        ("x = x * np.float32(rank)", "float32", "A number differs"),
        ("x[rank:] = 3", "3.0)) -> float64[8]", "different shapes"),
        ("x = np.sort(x) if rank else np.cumsum(x)", "numpy.sort", "different branches"),
        ("for k in range(2 + rank): x = x + k", "add(float64[8]", "went round a loop"),
        ("x = x.sum(axis=0, keepdims=bool(rank))", "add.reduce(float64[8]", "different"),
        ("x = x.reshape(4, 2)[:2].sum(axis=rank)", "in <module>, with axis 1", "A number differs"),
        ("x = [x[:4] + 1, x[4:] + 1][rank]", "add.reduce(float64[4]", "different arrays"),
    ],
)
def test_differences_are_found_before_anything_is_communicated(source: str, shown: str, advice: str) -> None:
    text = text_of(errors_of(source + "\nfloat(x.sum())", CHECK="on"))
    assert "rank 0: " in text and "rank 1: " in text and "script.py" in text
    assert shown in text and advice in text, text


def test_work_in_another_order_is_taken_for_a_loop_over_a_set() -> None:
    source = """
    for f in ([np.sin, np.cos, np.tan] if rank else [np.tan, np.sin, np.cos]):
        x = f(x)
    float(x.sum())
    """
    for check in ("off", "on"):
        assert "Loop over sorted(...)" in text_of(errors_of(source, CHECK=check))


def test_a_form_that_is_forgotten_between_recording_and_comparing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks may look at a statement before and after its form is forgotten, and must see the same."""

    def body() -> list[str]:
        x = nd.ones(8)
        y = np.hypot(x[3:], 0.25)
        if x.comm.rank == 0:
            monkeypatch.setattr(statements, "_MOST", 0)
            np.hypot(x[2:], 0.25)  # a new form, for which there is no room
            monkeypatch.undo()
        texts = [str(op) for op in y.comm.checks.journal.operations()]
        return [text for text in texts if text.startswith("hypot(float64[5]")]

    found = run_simulated(2, body)
    assert found[0] == found[1] and len(found[0]) == 1, found


def test_programs_of_one_form_pass() -> None:
    source = """
    with np.errstate(all="ignore"):
        for k in range(100):
            x = np.where(x > 2, x - 1, x * 1.5 + x[::-1])
            x[1:-1] = x[2:] - x[:-2]
        y = np.cumsum(np.sort(x))
        assert np.isfinite(float(y.sum() + x.max()))
        x[x > 0] = 0
        str(x)
    """
    assert errors_of(source, nranks=3, CHECK="on") == {}


def test_a_helper_that_is_called_from_different_lines_is_told_by_the_caller() -> None:
    source = """
    def helper(x):
        return x + 1
    if rank:
        x = helper(x)
    else:
        x = helper(x)
    float(x.sum())
    """
    text = text_of(errors_of(source, CHECK="on"))
    assert "called from script.py:7 in <module>" in text and "called from script.py:5 in <module>" in text


# -- the journal -----------------------------------------------------------------------------------------------------


def test_the_journal_is_bounded_and_keeps_no_array_alive() -> None:
    def body() -> None:
        x = nd.zeros(8)
        journal = get_communicator().checks.journal  # type: ignore[union-attr]
        y = x + 1
        storage = weakref.ref(y._storage)
        del y
        for k in range(5 * KEPT):
            x += 1
            if k % 400 == 0:
                float(x.sum())
        engine.flush()
        gc.collect()
        assert storage() is None
        found = journal.operations()
        numbers = [operation.number for operation in found]
        assert KEPT <= len(found) <= 2 * KEPT + 256
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert numbers[-1] + 1 == journal.recorded + journal.calls
        assert unpacked(packed(found)) == found

    run_simulated(2, body)


def test_operations_are_numbered_in_the_order_of_the_program() -> None:
    def body() -> list[str]:
        x = nd.zeros(8)
        x += 1
        get_communicator().barrier()
        x *= 2
        float(x.sum())
        np.negative(x, out=x)
        return [f"{op.number} {op.function}" for op in get_communicator().checks.journal.operations()]  # type: ignore

    expected = ["0 cast", "1 add", "2 comm.barrier", "3 multiply", "4 add.reduce", "5 add.reduce", "6 negative"]
    assert run_simulated(2, body) == [expected] * 2


def test_a_difference_that_nobody_remembers_any_more_is_found_with_check() -> None:
    source = f"""
    if rank:
        x = x + 1
    for k in range({4 * KEPT}):
        x += 1
    float(x.sum())
    """
    text = text_of(errors_of(source))
    assert "(what was before is forgotten)" in text
    assert "script.py:3" in text_of(errors_of(source, CHECK="on"))


# -- ranks under different conditions --------------------------------------------------------------------------------


@pytest.fixture
def different(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives the highest rank another fingerprint."""
    original = fingerprint.local

    def change(**parts: str) -> None:
        def local() -> dict[str, str]:
            comm = get_communicator()
            return original() | (parts if comm.rank == comm.size - 1 else {})

        monkeypatch.setattr(fingerprint, "local", local)

    return change


def test_a_fingerprint_has_what_matters() -> None:
    found = fingerprint.local()
    assert found["NumPy"] == np.__version__ and found["setting CHECK"] == "off" and found["BLAS"] != "unknown"
    assert {"Python", "processor", "CPU features", "plug-ins", "setting MIN_SHARD_BYTES"} <= found.keys()
    assert len(fingerprint.digest(found)) == 16


def test_ranks_that_are_not_alike_are_reported_once_and_numbers_are_rank_0s(different: Callable[..., None]) -> None:
    different(NumPy="1.0", BLAS="reference 3")

    def body() -> tuple[list[Any], list[Any]]:
        x = nd.ones(8)
        rank = x.comm.rank
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            total = float(x.sum())
            own = engine.replicated(np.array(1.5 + rank))
            numbers = [total, float(own), bool(engine.replicated(np.array(rank))), own.item()]
            with config(MIN_SHARD_BYTES="1GiB"):
                numbers += [float(nd.asarray([1.0, rank]).sum()), int(nd.asarray([1, rank])[1])]
        return numbers, caught

    results = run_simulated(3, body)
    assert [numbers for numbers, _ in results] == [[8.0, 1.5, False, 1.5, 1.0, 0]] * 3
    for _, caught in results:
        (warning,) = caught
        assert warning.category is DivergenceWarning and warning.filename == __file__
        assert f"NumPy: rank 0, 1: {np.__version__}; rank 2: 1.0" in str(warning.message)
        assert "BLAS: rank 0, 1:" in str(warning.message) and "processor" not in str(warning.message)


def test_different_settings_that_decide_about_communication_are_an_error() -> None:
    def body() -> None:
        with config(FALLBACK="error" if get_communicator().rank else "silent"):
            nd.ones(8).sum()

    with pytest.raises(
        DivergenceError, match=r"different settings.*:\n  setting FALLBACK: rank 0: silent; rank 1: error\n"
    ):
        run_simulated(2, body)


def test_settings_that_each_rank_may_choose_are_no_difference() -> None:
    def body() -> float:
        with config(NUM_THREADS=1 + get_communicator().rank, CACHE_DIR=f"/tmp/{get_communicator().rank}"):
            return float(nd.ones(8).sum())

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_simulated(2, body) == [8.0, 8.0]


def test_environment_variables_are_compared(monkeypatch: pytest.MonkeyPatch, different: Callable[..., None]) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert fingerprint.local()["environment variable OPENBLAS_CORETYPE"] == "Haswell"
    found = fingerprint.compare([fingerprint.local(), fingerprint.local() | {"CPU features": "AVX2 SSE"}])
    assert found.numbers and not found.deciding
    assert "CPU features: rank 0:" in found.text
    other = {name: value for name, value in fingerprint.local().items() if "CORETYPE" not in name}
    text = fingerprint.compare([fingerprint.local(), other, other]).text
    assert text == "  environment variable OPENBLAS_CORETYPE: rank 0: Haswell; rank 1, 2: not set"
