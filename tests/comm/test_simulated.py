"""Simulated ranks: one at a time, deadlocks found, failures named, and each with its own process-wide state."""

from __future__ import annotations

import contextvars
import os
import random
import threading
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from numpy_dist.comm import detect, process_state
from numpy_dist.comm.detect import get_communicator
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.errors import DivergenceError, RankError
from numpy_dist.settings import config


def wait_for(rank: int) -> None:
    get_communicator().exchange([], [(rank, np.zeros(1))])


def test_results_come_in_rank_order() -> None:
    def function(base: int, *, factor: int) -> int:
        return base + factor * get_communicator().rank

    assert run_simulated(3, function, 100, factor=2) == [100, 102, 104]
    with pytest.raises(ValueError, match="at least 1"):
        run_simulated(0, function)


def test_one_rank_runs_at_a_time_and_in_the_same_order_each_time() -> None:
    def trace() -> list[tuple[int, str]]:
        events: list[tuple[int, str]] = []
        running: list[int] = []

        def function() -> None:
            comm = get_communicator()
            for step in range(4):
                running.append(comm.rank)
                time.sleep(0.0005)
                assert running == [comm.rank]
                events.append((comm.rank, f"step {step}"))
                running.clear()
                if step == 2:
                    comm.exchange(
                        [((comm.rank + 2) % comm.size, np.ones(3))], [((comm.rank - 2) % comm.size, np.zeros(3))]
                    )
                else:
                    comm.barrier()

        run_simulated(5, function)
        return events

    first = trace()
    assert first == trace()
    assert [rank for rank, _ in first[:5]] == [0, 1, 2, 3, 4]


def test_a_deadlock_names_where_every_rank_waits() -> None:
    errors = {}

    def function() -> None:
        comm = get_communicator()
        try:
            if comm.rank == 1:
                comm.barrier()
            wait_for((comm.rank + 1) % 3)
        except RuntimeError as error:
            errors[comm.rank] = str(error)
            raise

    with pytest.raises(RuntimeError, match="deadlock: every rank waits"):
        run_simulated(3, function)
    line = function.__code__.co_firstlineno + 4
    assert sorted(errors) == [0, 1, 2]
    assert len(set(errors.values())) == 1
    lines = errors[0].splitlines()
    assert "rank 0: messages with ranks [1]" in lines[1] and f"{__file__}:" in lines[1] and "in wait_for" in lines[1]
    assert "rank 1: barrier" in lines[2] and "in function" in lines[2]
    assert "rank 2: messages with ranks [0]" in lines[3]
    assert lines[4:7] == [
        "The first difference is in operation 1:",
        "  rank 0, 2: nothing so far",
        f"  rank 1: comm.barrier, at {__file__}:{line} in function",
    ]


def test_a_program_that_relies_on_buffering_deadlocks() -> None:
    def function() -> None:
        comm = get_communicator()
        other = 1 - comm.rank
        comm.exchange([(other, np.zeros(1))], [])
        comm.exchange([], [(other, np.zeros(1))])

    with pytest.raises(RuntimeError, match="deadlock"):
        run_simulated(2, function)


def test_the_first_rank_that_failed_by_itself_is_shown() -> None:
    seen = {}

    def function() -> None:
        comm = get_communicator()
        if comm.rank >= 2:
            raise KeyError(comm.rank)
        try:
            comm.allgather(1)
        except RankError as error:
            seen[comm.rank] = (error.rank, str(error))
            raise

    with pytest.raises(KeyError, match="2") as caught:
        run_simulated(4, function)
    assert seen[0][0] == 2 and "rank 2 has ended (KeyError: 2)" in seen[0][1] and __file__ in seen[0][1]
    assert "simulated rank 2" in caught.value.__notes__[0]


def test_a_rank_that_ends_early_is_named() -> None:
    def early() -> str:
        comm = get_communicator()
        if comm.rank == 1:
            return "left"
        comm.barrier()
        return "stayed"

    with pytest.raises(RankError, match="rank 1 has ended .it ran to its end.") as caught:
        run_simulated(3, early)
    assert caught.value.rank == 1

    def independent() -> int:
        comm = get_communicator()
        if comm.rank > 0:
            comm.exchange([(3 - comm.rank, np.zeros(1))], [(3 - comm.rank, np.zeros(1))])
        return comm.rank

    assert run_simulated(3, independent) == [0, 1, 2]


def test_a_message_of_the_wrong_size() -> None:
    def function() -> None:
        comm = get_communicator()
        if comm.rank == 0:
            comm.exchange([(1, np.zeros(2))], [])
        else:
            comm.exchange([], [(0, np.zeros(3))])

    with pytest.raises(RuntimeError, match="rank 1 expected 24 bytes from rank 0 and got 16"):
        run_simulated(2, function)


def test_different_collectives_are_a_divergence() -> None:
    def function() -> None:
        comm = get_communicator()
        if comm.rank == 0:
            comm.barrier()
        else:
            comm.allgather(1)

    with pytest.raises(DivergenceError, match=r"(?s)rank 0: comm\.barrier.*rank 1: comm\.allgather"):
        run_simulated(2, function)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, MemoryError])
def test_any_exception_comes_out(kind: type[BaseException]) -> None:
    def function() -> None:
        if get_communicator().rank == 1:
            raise kind(3)
        get_communicator().barrier()

    with pytest.raises(kind):
        run_simulated(2, function)
    assert threading.active_count() < 50


def test_each_rank_has_its_own_warning_filters() -> None:
    before = list(warnings.filters)

    def function() -> list[str]:
        comm = get_communicator()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always" if comm.rank != 1 else "ignore")
            comm.barrier()
            warnings.warn(f"from rank {comm.rank}", stacklevel=1)
            comm.barrier()
        comm.barrier()
        warnings.simplefilter("error" if comm.rank == 0 else "ignore")
        comm.barrier()
        try:
            warnings.warn("second", stacklevel=1)
        except UserWarning:
            return ["raised"]
        return [str(entry.message) for entry in caught]

    assert run_simulated(3, function) == [["raised"], [], ["from rank 2"]]
    assert warnings.filters == before


def test_every_rank_shows_a_warning_of_one_line() -> None:
    def function() -> int:
        comm = get_communicator()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            comm.barrier()
            warnings.warn("the same line on all ranks", stacklevel=1)
            comm.barrier()
        return len(caught)

    assert run_simulated(3, function) == [1, 1, 1]


def test_each_rank_has_its_own_random_state() -> None:
    np.random.seed(1)
    random.seed(1)

    def function(switch: bool) -> list[float]:
        comm = get_communicator()
        drawn = [np.random.rand(), random.random()]
        if comm.rank == 1:
            np.random.seed(5)
        if switch:
            comm.barrier()
        return [*drawn, np.random.rand(), random.random()]

    expected = run_simulated(1, function, False)[0]
    results = run_simulated(3, function, True)
    assert results[0] == results[2] == expected
    assert results[1][:2] == expected[:2] and results[1][2] != expected[2]
    assert [np.random.rand(), random.random()] == expected[:2]


def _exchange_bits() -> None:
    np.random.set_bit_generator(np.random.MT19937(7))


DRAWS = {
    "nothing": lambda: None,
    "a number": lambda: (np.random.rand(), random.random()),
    "the other of two normal numbers": lambda: (np.random.randn(), random.gauss(0, 1)),
    "the state": lambda: (np.random.seed(3), random.seed(3)),
    "binomial numbers": lambda: np.random.binomial(10, 0.3),  # whose constants are kept, and are no state
    "another generator of the bits": _exchange_bits,
}


@pytest.fixture
def same_bits() -> Iterator[None]:
    """NumPy's global generator goes on with the bits that it had."""
    bits = np.random.get_bit_generator()
    yield
    np.random.set_bit_generator(bits)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))
@pytest.mark.usefixtures("same_bits")
def test_whatever_a_rank_draws_is_its_own(
    draw: Callable[[], object], known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where switches cannot tell from the generators' memory what has been drawn, and copy states each time."""
    if not known:
        monkeypatch.setattr(process_state, "_numpy_memory", lambda: None)
        monkeypatch.setattr(process_state, "_python_memory", lambda: None)

    def numbers() -> list[float]:
        return [np.random.randn(), random.gauss(0, 1), np.random.rand(), random.random()]

    def function(draws: bool, switches: bool) -> list[float]:
        drawn = [np.random.randn(), random.gauss(0, 1)]  # each leaves another one
        for _ in range(2 if switches else 0):
            get_communicator().barrier()
        if draws:
            draw()
        for _ in range(2 if switches else 0):
            get_communicator().barrier()
        return drawn + numbers()

    np.random.seed(1)
    random.seed(1)
    alone = {draws: run_simulated(1, function, draws, False)[0] for draws in (False, True)}
    assert run_simulated(3, lambda: function(get_communicator().rank == 1, True)) == [
        *(alone[False], alone[True], alone[False])
    ]
    assert [np.random.randn(), random.gauss(0, 1), *numbers()] == alone[False]


def test_states_are_copied_where_something_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    read, written = [], []
    get, put = np.random.get_state, np.random.set_state
    monkeypatch.setattr(np.random, "get_state", lambda legacy: read.append(0) or get(legacy=legacy))
    monkeypatch.setattr(np.random, "set_state", lambda state: written.append(0) or put(state))

    def function(draws: bool) -> None:
        for _ in range(10):
            get_communicator().barrier()
            if draws:
                np.random.rand()

    run_simulated(2, function, False)
    assert (len(read), len(written)) == (1, 0)
    run_simulated(2, function, True)
    assert len(read) > 10 and len(written) > 10


def test_errstate_and_settings_belong_to_a_rank() -> None:
    def function() -> tuple[str, int]:
        comm = get_communicator()
        with np.errstate(divide="raise" if comm.rank else "ignore"), config(NUM_THREADS=comm.rank):
            comm.barrier()
            result = np.geterr()["divide"], config.NUM_THREADS
            comm.barrier()
        return result

    assert run_simulated(2, function) == [("ignore", 0), ("raise", 1)]
    with config(NUM_THREADS=77):
        assert run_simulated(2, lambda: config.NUM_THREADS) == [77, 77]


def test_variables_of_a_rank_are_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "_rank_local", list(detect._rank_local))
    local = detect.rank_local(contextvars.ContextVar("local", default=None))
    other = contextvars.ContextVar("other", default=None)
    local.set("outer")
    other.set("outer")
    assert run_simulated(2, lambda: (local.get(), other.get())) == [(None, "outer")] * 2
    assert local.get() == "outer"
    assert get_communicator().name != "simulated"


def test_an_interrupt_ends_the_run() -> None:
    def function() -> None:
        comm = get_communicator()
        if comm.rank == 1:
            os.kill(os.getpid(), 2)
            time.sleep(0.2)
        comm.barrier()
        comm.barrier()

    with pytest.raises(KeyboardInterrupt):
        run_simulated(3, function)
    end = time.monotonic() + 60
    while [t for t in threading.enumerate() if t.name.startswith("simulated rank")]:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_simulated_ranks_in_a_simulated_rank() -> None:
    def inner() -> int:
        return sum(get_communicator().allgather(1))

    def outer() -> list[int]:
        comm = get_communicator()
        comm.barrier()
        result = [*run_simulated(2, inner), comm.rank]
        comm.barrier()
        return result

    assert run_simulated(2, outer) == [[2, 2, 0], [2, 2, 1]]
