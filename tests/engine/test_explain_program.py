"""Listings of the array program: what they say is what happens."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.engine.events.notation import coordinate
from numpy_dist.settings import config

from .random_programs import fresh, perform, random_program
from .test_random_programs import ShardSide


def _counted() -> dict[str, int]:
    rt = engine.runtime()
    return {**vars(rt.counters), **vars(rt.comm.counters)}


def _stencil(grid: Any) -> None:
    center = grid[1:-1, 1:-1]
    average = grid[:-2, 1:-1] + grid[2:, 1:-1]
    center[:] = 0.5 * average


def _code(listing: Any) -> list[str]:
    """The lines of code of a listing, without their sites."""
    return [line.split("  # ")[0].strip() for line in str(listing).splitlines() if "  # " in line]


def _on_ranks(ranks: int, function: Any, *args: Any, **settings: Any) -> list[Any]:
    with config(MIN_SHARD_BYTES=0, **settings):
        return run_simulated(ranks, function, *args)


def _list_few_buffers() -> str:
    x = numpy_dist.asarray(np.arange(1.0, 7.0))
    with numpy_dist.explain_program() as listing:
        y = 2 * x + 1
        total = float(((y - 3) / x).sum())
        (5 * y - total).gather()
    return str(listing)


# -- what is said ----------------------------------------------------------------------------------------------------


def _list_stencil(steps: int) -> str:
    grid = numpy_dist.asarray(np.zeros((40, 40)), split=0)
    with numpy_dist.explain_program() as listing:
        for _ in range(steps):
            _stencil(grid)
    return str(listing)


def test_results_that_are_contracted_take_no_name_of_a_buffer():
    [told] = _on_ranks(1, _list_few_buffers, BACKEND="numpy")
    assert re.findall(r"^  (b\d+) .* (\d+) bytes$", told, re.MULTILINE) == [
        ("b0", "48"),
        ("b1", "48"),
        ("b2", "8"),
        ("b3", "48"),
    ]


def _list_temporaries() -> str:
    x = numpy_dist.asarray(np.zeros(20))
    held = x + 1
    twice = (held * 2)[::-1] + x  # reads what nobody holds, in another loop
    told = str(numpy_dist.explain_program())
    assert held.shape == twice.shape
    return told


def test_temporaries_that_are_stored_are_told():
    [told] = _on_ranks(1, _list_temporaries, BACKEND="numpy")
    assert "\n      b2[i] = b1[i] * 2  # " in told
    assert re.findall(r"^  stores +(.*)", told, re.MULTILINE) == [
        "b2: nobody holds it any more, but other statements use it"
    ]


def test_the_stencil_reads_like_its_source():
    first, second = _on_ranks(2, _list_stencil, 3, BACKEND="numpy")
    assert first.splitlines()[0] == "Array program, executed, on rank 0 of 2"
    loops = first.split("\n\n")[2:-1]
    assert len(loops) == 2 and loops[1].startswith("loop 2, 2 times:")
    line = _stencil.__code__.co_firstlineno
    body = [re.sub(r"\s+# \S*(test_explain_program\.py:\d+)$", r" # \1", text) for text in loops[1].splitlines()]
    assert body == [
        "loop 2, 2 times:",
        "  for i in 0:19, j in 0:38 (of 38 x 38):",
        f"      t0 = b0[i, j+1] + b0[i+2, j+1] # test_explain_program.py:{line + 2}",
        f"      t1 = 0.5 * t0 # test_explain_program.py:{line + 3}",
        f"      b0'[i+1, j+1] = t1 # test_explain_program.py:{line + 3}",
        "  reads     b0 6,384 bytes",
        "  writes    b0 5,776 bytes",
        "  contracts t0 to t1: never stored",
        "  versions  b0' takes the place of b0; nothing copied",
        "  halo      of b0: sends 304 bytes to rank 1; receives 304 bytes from rank 1",
        "  by        numpy: BACKEND is 'numpy'",
    ]
    assert "6,720 bytes copied, to carry over cells" in loops[0]
    assert "b0  float64 shape (40, 40) on mesh (2,): axis 0 cut at 0|20|40; here [0:20, 0:40] with margins 0+1" in first
    # The other rank says the same but for its own part.
    local = str.maketrans("", "", "0123456789,+:")
    assert [text.translate(local) for text in first.split("\n\n")[2].splitlines()[2:8]] == [
        text.translate(local) for text in second.split("\n\n")[2].splitlines()[2:8]
    ]


def _list_views() -> list[str]:
    x = numpy_dist.asarray(np.zeros(24) * 1j)
    y = numpy_dist.asarray(np.zeros((4, 6)))
    f = numpy_dist.asarray(np.zeros((4, 6), order="F"))
    results = [
        np.sqrt(x[::-1].real),
        x.imag + 1,
        y[::2, 1] * 2.0,
        -y.T,
        y + y[0],
        np.maximum(f[1:], 0),
        y.reshape(-1)[3:] % 2,
        y.sum(axis=0),
        y.max(axis=1, keepdims=True),
        np.where(y > 1, y, 0.0),
        y.astype(np.float32),
    ]
    assert len(results) == 11
    return _code(numpy_dist.explain_program())


def test_views_are_index_expressions():
    (code,) = _on_ranks(1, _list_views)
    assert [re.sub(r"b\d+", "b", line) for line in code] == [
        "b[i] = sqrt(b[23-i].real)",
        "b[i] = b[i].imag + 1",
        "b[i] = b[2*i, 1] * 2.0",
        "b[i, j] = -b[j, i]",
        "b[i, j] = b[i, j] + b[0, j]",
        "b[j] = add.reduce(b[i, j] over i)",
        "b[i, 0] = maximum.reduce(b[i, j] over j)",
        "t0 = b[i, j] > 1",
        "b[i, j] = where(t0, b[i, j], 0.0)",
        "b[i, j] = float32(b[i, j])",
        "b[i, j] = maximum(b[i+1, j], 0)",
        "b[i] = b.reshape(24)[i+3] % 2",
    ]


@pytest.mark.parametrize(
    ("offset", "steps", "text"),
    [(0, (0, 1), "j"), (3, (1,), "i+3"), (9, (-1,), "9-i"), (9, (-2, 1), "j+9-2*i"), (0, (), "0"), (4, (0,), "4")],
)
def test_coordinates(offset, steps, text):
    assert coordinate(offset, steps) == text


def _overlapping() -> list[str]:
    x = numpy_dist.asarray(np.arange(100.0))
    kept = x * 2
    with numpy_dist.explain_program() as listing:
        x[1:5] = x[0:4]  # few cells: by way of another array
        np.add(x, 1, out=x, where=kept > 3)
        total = (kept + x).sum()
    assert np.isfinite(total)
    return str(listing).splitlines()


def test_writes_aside_masks_and_reductions():
    (lines,) = _on_ranks(1, _overlapping)
    code = [re.sub(r"\s+# .*", "", line).strip() for line in lines]
    assert "a0[i] = b0[i]" in code
    assert "then b0[i+1] = a0[i]" in code
    assert any(re.fullmatch(r"b0\[i\] = b0\[i\] \+ 1 where t\d", line) for line in code), code
    assert any("add.reduce(" in line and "over i)" in line for line in code)


def _tier(steps: int) -> str:
    x = numpy_dist.asarray(np.zeros(1000))
    with numpy_dist.explain_program() as listing:
        for _ in range(steps):
            x += 1.5
            engine.flush()
    (line,) = [line for line in str(listing).splitlines() if line.startswith("  by ")]
    return line.split(maxsplit=1)[1]


def test_the_tier_is_told():
    assert _on_ranks(1, _tier, 1, BACKEND="numpy") == ["numpy: BACKEND is 'numpy'"]
    assert _on_ranks(1, _tier, 1, BACKEND="null") == ["null: nothing is computed"]
    assert _on_ranks(1, _tier, 1, BACKEND="numba", COMPILE="never") == ["numpy: COMPILE is 'never'"]
    pytest.importorskip("numba")
    assert _on_ranks(1, _tier, 2, BACKEND="numba", COMPILE="first") == ["numba"]


def _fetching() -> str:
    x = numpy_dist.asarray(np.arange(40.0), split=0)
    y = x[::-1] + x
    listing = str(numpy_dist.explain_program())
    y.gather()
    return listing


def test_fetches_name_the_view_and_the_ranks():
    first, middle, last = _on_ranks(3, _fetching)
    sent = "8 bytes to rank 1, 104 bytes to rank 2"
    received = "8 bytes from rank 1, 104 bytes from rank 2"
    assert f"fetch     of b0[i]: sends {sent}; receives {received}" in first
    assert "fetch     of b0[i]: sends 8 bytes to rank 0; receives 8 bytes from rank 0" in middle
    assert "fetch     of b0[i]: sends 104 bytes to rank 0; receives 104 bytes from rank 0" in last


# -- what is said is what happens ------------------------------------------------------------------------------------


def _compare(seed: int) -> int:
    """Run a random program in pieces; each listing of what is pending tells what its execution then counts."""
    side, arrays, compared = ShardSide(), [], 0
    with np.errstate(all="ignore"):
        for number, step in enumerate(random_program(seed)):
            if step[0] == "new":
                arrays.append(engine.from_global(fresh(*step[1:])))
                continue
            perform(arrays, step, side)
            if number % 4 == 3:
                compared += _compare_pending()
        compared += _compare_pending()
    return compared


def _compare_pending() -> int:
    rt = engine.runtime()
    rt.program.run_deferred()
    pending, before = list(rt.program.pending), _counted()
    told = numpy_dist.explain_program().counts
    assert list(rt.program.pending) == pending
    del pending
    assert _counted() == before
    with numpy_dist.explain_program() as listing:
        engine.flush()
    after = _counted()
    assert told.pop("statements") >= 0
    assert {name: after[name] - before[name] for name in told} == told
    assert not any(listing.counts.values())
    return told["loops"]


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_random_programs_count_what_their_listings_tell(ranks):
    compared = 0
    for seed in range(25):
        compared += sum(_on_ranks(ranks, _compare, seed))
    assert compared > 60


def _executed(steps: int, listed: bool) -> tuple[dict[str, int], dict[str, int] | None]:
    grid = numpy_dist.asarray(np.random.default_rng(1).random((40, 40)))
    total = 0.0
    engine.flush()
    engine.runtime().counters.reset()
    engine.runtime().comm.counters.reset()
    listing = None
    if listed:
        with numpy_dist.explain_program() as listing:
            for _ in range(steps):
                _stencil(grid)
            total += float(grid.sum())
            text = str(listing)  # amidst
        assert "executed so far" in text
    else:
        for _ in range(steps):
            _stencil(grid)
        total += float(grid.sum())
        engine.flush()
    return {**_counted(), "sum": total}, listing and listing.counts


@pytest.mark.parametrize("ranks", [1, 4])
def test_a_listing_changes_nothing_and_counts_everything(ranks):
    plain = _on_ranks(ranks, _executed, 5, False)
    listed = _on_ranks(ranks, _executed, 5, True)
    assert [counts for counts, _ in plain] == [counts for counts, _ in listed]
    for counts, told in listed:
        assert told == {name: count for name, count in counts.items() if name != "sum"}


def _one_rank_asks() -> float:
    x = numpy_dist.asarray(np.arange(40.0))
    y = x[1:] + x[:-1]
    if engine.runtime().rank == 1:
        assert "halo" in str(numpy_dist.explain_program())
    return float(y.sum())


def test_one_rank_may_ask_alone():
    assert _on_ranks(3, _one_rank_asks) == [float(np.sum(np.arange(40.0)[1:] + np.arange(40.0)[:-1]))] * 3


def _failing() -> tuple[bool, int]:
    x = numpy_dist.asarray(np.arange(40.0))
    with pytest.raises(ZeroDivisionError), numpy_dist.explain_program() as listing:
        y = x + 1
        raise ZeroDivisionError
    pending = len(engine.runtime().program.pending)
    return engine.runtime().listings == [] and listing.counts["loops"] == 0 and y is not None, pending


def test_a_block_that_fails_executes_nothing_more():
    assert _on_ranks(1, _failing) == [(True, 1)]


def _nested() -> tuple[int, int]:
    x = numpy_dist.asarray(np.arange(40.0))
    with numpy_dist.explain_program() as outer:
        x += 1
        with numpy_dist.explain_program() as inner:
            x *= 2
        with pytest.raises(RuntimeError, match="one block"), inner:
            pass
    return outer.counts["loops"], inner.counts["loops"]


def test_blocks_may_be_nested():
    assert _on_ranks(1, _nested) == [(2, 1)]


def _memory() -> tuple[int, str]:
    x = numpy_dist.asarray(np.zeros(1000))
    with numpy_dist.explain_program() as listing:
        for _ in range(4):
            y = x + 1
            engine.force(y)
            held = engine.runtime().pool.held
            del y
    assert engine.runtime().pool.held < held
    return engine.runtime().pool.held, str(listing)


def test_listings_keep_no_memory_and_use_names_again():
    ((held, text),) = _on_ranks(1, _memory)
    assert held == 8000
    assert "loop 1, 4 times:" in text and "b1[i] = b0[i] + 1" in text and "b2" not in text
