"""Ranks of other programs, with as many operations, statements and messages of the same sizes: never a wrong value."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.comm.detect import get_communicator
from numpy_dist.comm.divergence import fingerprint
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.errors import DivergenceError, DivergenceWarning, RankError
from numpy_dist.ir.statements import ProgramForm
from numpy_dist.layout.marks import mark_of
from numpy_dist.settings import config
from tests.comm.test_unlike_ranks import run

PAIR = "y, z = (nd.asarray(np.full((6, 4), v)) for v in (1.0, 2.0))\n"
DRAWN = "g = nd.random.default_rng(5)\ny, z = g.random((6, 4)), g.random((6, 4))\n"
OTHERS = {
    "another reduction": "v = x.max() if rank == 0 else x.min()",
    "a reduction on one rank": "if rank == 0: told.append(x.max())\ntold.append(x.sum())",
    "another column": "v = x[:, rank].mean()",
    "another row": "v = (x[0] if rank == 0 else x[1]).sum()",
    "own rows": "v = sum(x[i].sum() for i in range(rank, 6, size))",
    "another element": "v = x[0, rank]",
    "a gather of another row": "v = x[rank].gather()",
    "a gather to one rank of another row": "v = x[rank].gather(root=0)",
    "another function": "v = np.sort(x, axis=None) if rank else np.unique(x)",
    "the same function of another column": "v = np.sort(x[:, rank])",
    "another operation that fetches": "v = (x + x[::-1] if rank else x - x[::-1]).local",
    "another halo": "v = (x[1:] + x[:-1] if rank else x[1:] * x[:-1]).local",
    "messages and a collective": "v = (x + x[::-1]).local if rank else x.comm.allgather(1)",
    "a mask on one rank": "if rank == 0: x[x > 3]\nv = x.sum()",
    "a barrier and a broadcast": "v = x.comm.barrier() if rank else x.comm.bcast(1)",
    "a broadcast of another rank": "v = x.comm.bcast(rank, root=min(rank, 1))",
    "another dtype": "v = x.sum(dtype='f4' if rank else 'f8')",
    "another scalar": "v = (x * (rank + 1)).sum()",
    "another mask": "v = x[x > rank].shape",
    "another value": "x[0] = float(rank)\nv = x.sum()",
    "another row that is written": "x[rank] = 7.0\nv = x.sum()",
    "another array": "y = x + 1\nv = (x if rank else y).sum()",
    "another array for a function": "y, z = x + 1, x + 2\nv = np.sort(y if rank else z, axis=None)[0]",
    "another array of one line": f"{PAIR}v = (y if rank else z).sum()",
    "another array of the next line": "y = nd.asarray(np.ones(6))\nz = nd.asarray(np.ones(6))\nv = (y, z)[rank > 0][0]",
    "another array that is gathered": f"{PAIR}v = (y if rank else z).gather()[0, 0]",
    "another array that was drawn": f"{DRAWN}v = (y if rank else z).sum()",
    "arrays in another order": "y, z = x + 1, x + 2\nv = (y - z if rank else z - y).sum()",
    "other indices": "v = x[np.arange(3) + rank].sum()",
    "other indices for a function": "v = np.take(x, [rank], axis=0).sum()",
    "other places that are written": "np.put(x, [rank], 3.0)\nv = x.sum()",
    "other values for a method": "np.add.at(x, np.arange(3), 1.0 + rank)\nv = x.sum()",
    "another quantile": "v = np.percentile(x, 25 + rank)",
    "other bins": "v = np.histogram(x, bins=10 + rank)",
    "another row of a product": "v = np.dot(x[0], x[1 + rank])",
    "another degree": "v = np.linalg.matrix_power(x[:4], 2 + rank)[0, 0]",
    "another mask of a reduction": "v = x.sum(where=np.arange(4.0) > rank)",
    "another beginning of a reduction": "v = x.sum(initial=1.0 + rank)",
    "another plain operand": "v = (x * (np.arange(4) + rank)).sum()",
    "other plain values": "x[0] = np.arange(4.0) + rank\nv = x.sum()",
    "another range": "v = nd.arange(rank, 24.0 + rank).sum()",
    "another interval": "v = nd.linspace(0, 1 + rank, 24).sum()",
    "another diagonal": "v = nd.eye(6, k=rank).sum()",
    "another triangle": "v = nd.tri(6, k=rank).sum()",
    "another grid": "v = nd.mgrid[rank : 6 + rank, 0:4].sum()",
    "another text": "v = np.searchsorted(np.arange(9.0), x, side=('left', 'right')[rank % 2]).sum()",
    "another method": "v = np.percentile(x, 33, axis=1, method=('lower', 'higher')[rank % 2]).sum()",
    "another long text": "v = np.strings.count(x.astype('U4'), 'a' * 99 + 'bc'[rank % 2]).sum()",
    "another date": "d = nd.asarray(np.arange(24).view('M8[h]'))\nd[[0, 23]] = np.datetime64(rank, 'h')\nv = d.max()",
    "another keyword": "v = np.interp(x, [2.0, 9.0], [0.0, 1.0], **({'left': 7} if rank else {'right': 7})).sum()",
    "another function along an axis": "v = np.apply_along_axis((np.min, np.max)[rank % 2], 1, x).sum()",
    "other code": "f = (lambda v: v.sum() * 2) if rank else (lambda v: v.sum())\nv = np.apply_along_axis(f, 1, x)[0]",
    "no value": "v = np.fft.fft(x, axis=1, norm=None if rank else 'ortho').sum()",
    "another width": "v = np.strings.zfill(x.astype('U4'), 5 + rank).size\nx.comm.barrier()\ntold.append(0)",
    "another texts' repetition": "v = np.strings.multiply(x.astype('U4'), 1 + rank)[0]",
    "another mask of values": "v = np.where(np.arange(24).reshape(6, 4) > rank, x, -1).sum()",
    "another long mask": "v = np.where(np.arange(24_000) % 2 == rank, nd.asarray(np.ones(24_000)), -1).sum()",
    "other values to be close to": "np.isclose(x, np.arange(24.0).reshape(6, 4) + rank).all()",
    "other values to be left out": "np.setdiff1d(x.astype(int), [rank])[0]",
    "another number of degrees": "x.std(ddof=rank)\nx.comm.barrier()\ntold.append(0)",
    "its own part": "if rank == 0: told.append(0) if x.local is None else None\nv = x.sum()",
    "a draw on one rank": "g = nd.random.default_rng(5)\nif rank == 0: g.random()\nv = g.random((6, 4)).sum()",
    "an old draw": "nd.random.seed(5)\nif rank: nd.random.rand()\nv = nd.random.normal(size=(6, 4)).sum()",
}
WRITERS = {
    "save": "np.save(file, x)",
    "savez": "np.savez(file, x)",
    "savetxt": "np.savetxt(file, x)",
    "tobytes": "x.tobytes()",
}
THEN = {"a reduction": "v = x.sum()", "a sort": "v = np.sort(x, axis=0).local", "a barrier": "x.comm.barrier()"}


def errors_of(source: str, ranks: int) -> dict[int, Exception]:
    """The errors of the ranks; none that raises has got a value before."""
    code = compile(textwrap.dedent(source), "script.py", "exec")
    errors: dict[int, Exception] = {}

    def body() -> None:
        x = nd.asarray(np.arange(24.0).reshape(6, 4))
        rank, told = x.comm.rank, list[Any]()
        file = Path("/dev/null").open("wb")  # noqa: SIM115
        names = {"np": np, "nd": nd, "x": x, "rank": rank, "size": x.comm.size, "told": told, "file": file}
        try:
            exec(code, {**names, "__name__": "__main__"})
        except Exception as error:
            errors[rank] = error
            assert not told
        finally:
            file.close()

    with config(MIN_SHARD_BYTES=0, FALLBACK="silent"):
        run_simulated(ranks, body)
    return errors


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("what", sorted(OTHERS))
def test_other_programs_are_errors_that_name_both_sides(what: str, ranks: int) -> None:
    errors = errors_of(OTHERS[what], ranks)
    assert errors if ranks > 2 else sorted(errors) == [0, 1], errors
    for error in errors.values():  # a rank may have done all that it had to do, and the others wait for it
        assert isinstance(error, DivergenceError if ranks == 2 else DivergenceError | RankError), errors
        text = str(error)
        assert text.count("  rank ") >= 2 and text.count("script.py:") >= 2, text


@pytest.mark.parametrize("then", sorted(THEN))
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("writer", sorted(WRITERS))
def test_a_file_that_one_rank_writes(writer: str, rank: int, then: str) -> None:
    errors = errors_of(f"if rank == {rank}: {WRITERS[writer]}\n{THEN[then]}", 2)
    assert sorted(errors) == [0, 1] and {type(e) for e in errors.values()} == {DivergenceError}, errors
    text = str(errors[0])
    assert "script.py:1" in text and "script.py:2" in text
    assert "every rank calls it" in text or "NumPy arrays (`x.gather()`" in text or "different branches" in text


def test_the_message_says_how_a_rank_gets_its_own_rows() -> None:
    text = str(errors_of(OTHERS["another column"], 2)[1])
    assert "of [:, 0] of an array of shape (6, 4)" in text and "of [:, 1] of" in text
    assert "`x.local`" in text and "`x.gather()`" in text


def test_the_message_says_which_number_or_array_is_another() -> None:
    text = str(errors_of(OTHERS["another scalar"], 2)[1])
    assert "script.py:1 in <module>, with 1\n" in text and ", with 2\n" in text and "A number differs" in text
    text = str(errors_of(OTHERS["another array"], 2)[1])
    assert "with the array of statement 1" in text and "with different arrays" in text
    for source in ("v = x[:4].sum(axis=rank)[0]", "v = x.sum(axis=rank)[0]"):
        text = str(errors_of(source, 2)[1])
        assert "A number differs" in text and (", with axis 1\n" in text or "-> float64[6], at" in text), text
    for write in ("(y if rank else z)[:] = 5", "np.sin(x, out=y if rank else z)", "w = (y, z)[rank]\nw += 1"):
        for then in ("v = x.sum()", "v = z.sum()"):
            text = str(errors_of(f"y, z = x + 1, x + 2\n{write}\n{then}", 2)[1])
            assert all(f" the array of statement {k} as target\n" in text for k in (1, 2)), text
            assert "with different arrays" in text, text
    text = str(errors_of(OTHERS["other indices for a function"], 2)[0])
    assert "numpy.take, at script.py:1" in text and "with 0\n" in text and "`index = x.comm.bcast(index)`" in text
    text = str(errors_of(OTHERS["a draw on one rank"], 2)[0])
    assert text.count("random, at script.py:3") == 2 and "draw on every rank" in text


def test_an_array_of_one_rank_that_nobody_uses_is_no_difference() -> None:
    source = "if rank == 0: y = nd.asarray(np.ones(100))\nz = nd.asarray(np.ones(50))\nv = z.sum()"
    assert not errors_of(source, 2)


def test_arrays_that_one_rank_makes_at_a_line_of_its_own_rename_no_others() -> None:
    lines = ["y = nd.asarray(np.ones(50))", "if rank == 0: w = [nd.asarray(np.ones(50)) for _ in range(3)]"]
    lines += ["z = nd.asarray(np.zeros(50))", "v = y.sum() + z.sum()"]
    assert not errors_of("\n".join(lines), 2)


def test_the_message_says_which_array_that_came_in() -> None:
    text = str(errors_of(OTHERS["another array of one line"], 2)[1])
    assert "the array that came in before operation 1, number 1 at its line" in text and "number 2 at its line" in text


def test_values_are_not_compared_where_ranks_may_compute_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded() -> dict[str, str]:
        return {"BLAS": str(get_communicator().rank)}

    monkeypatch.setattr(fingerprint, "PARTS", [*fingerprint.PARTS, rounded])
    step = "x *= 1.0 + rank * 2e-16\nx.comm.barrier()\n"
    source = f"{step}{step}x[x > 3 + 1e-15 * rank]"
    with pytest.warns(DivergenceWarning, match="not alike"):
        assert not errors_of(source, 2)
    monkeypatch.undo()
    assert errors_of(source, 2)


@pytest.mark.parametrize(
    "source",
    [
        "np.savetxt(('/dev/null', '/dev//null')[rank], x)",
        "np.apply_along_axis(lambda v: v * 2, 1, x)",
        "np.apply_along_axis(functools.partial(np.add, 1), 1, x)",
        "np.ndim(x) if rank else (np.shape(x), np.size(x), np.ndim(x))",
        "[np.reshape(x, -1), np.squeeze(x), x.T][rank]",
        "np.strings.upper(x.astype('U4')), np.isclose(x, np.ones((6, 4))), x.std(ddof=1), np.mean(x, axis=0)",
        "np.interp(x, [2.0, 9.0], [0.0, 1.0], **({'left': 7, 'right': 1} if rank else {'right': 1, 'left': 7}))",
    ],
)
def test_calls_that_are_alike_or_not_compared(source: str) -> None:
    assert not errors_of(f"import functools\n{source}\nv = x.sum()", 2)


def test_what_functions_call_in_turn_may_have_arguments_of_one_rank() -> None:
    source = """
    def f(block):
        return np.take(nd.asarray(np.arange(100.0)), [rank, rank + 1]).local.sum() * np.ones_like(block)
    v = np.apply_along_axis(f, 1, x)
    """
    assert not errors_of(source, 2)


@pytest.mark.parametrize(
    "call",
    [
        "np.argmax(x, axis=0, out=memory(4, int))",
        "np.sum(x, axis=0, out=memory(4))",
        "np.add(x, x, memory((6, 4)))",
        "np.modf(x, out=(memory((6, 4)), memory((6, 4))))",
        "np.median(x, axis=0, out=memory(4))",
        "np.cumsum(x, out=memory(24))",
        "np.take(x, [1, 2], axis=0, out=memory((2, 4)))",
        "np.dot(x, x[0], out=memory(6))",
        "np.maximum.accumulate(x, axis=0, out=memory((6, 4)))",
        "np.copyto(memory((6, 4)), x)",
        "x.std(0, None, memory(4))",
        "memory(4).__setitem__([0, 1], x[0, :2])",
        "np.einsum('ij->i', x, out=memory(6))",
        "np.compress([True], x, axis=0, out=memory((1, 4)))",
    ],
)
def test_what_is_written_to_may_hold_anything_before(call: str) -> None:
    source = "memory = lambda shape, dtype=float: np.full(shape, 3 + rank, dtype)\n"
    assert not errors_of(f"{source}{call}\nv = x.sum()", 2)


def test_objects_that_are_indices_are_not_compared_by_their_addresses() -> None:
    class Place:
        def __index__(self) -> int:
            return 2

    def body() -> None:
        x = nd.asarray(np.arange(24.0).reshape(6, 4))
        with config(MIN_SHARD_BYTES=0, FALLBACK="silent"):
            found = np.delete(x + 0, slice(Place(), None, 2), axis=0)  # each rank has a place of its own
            assert np.array_equal(found.gather(), np.delete(np.arange(24.0).reshape(6, 4), slice(2, None, 2), axis=0))

    run_simulated(2, body)


def test_long_arguments_are_compared_in_part() -> None:
    assert errors_of("v = np.take(x, np.arange(100_000) % (5 - rank), axis=0).shape", 2)
    assert errors_of("v = np.take(x, [k % (5 - rank) for k in range(5_000)], axis=0).shape", 2)


def test_a_mark_does_not_depend_on_when_it_is_asked() -> None:
    def body(often: bool) -> int:
        x = nd.asarray(np.arange(24.0).reshape(6, 4))
        journal = get_communicator().checks.journal  # type: ignore[union-attr]
        for k in range(4):
            x = x * 0.5 + x[:, ::-1]
            if often:
                journal.mark()
            if k == 2:
                engine.flush()
        return journal.mark()

    with config(MIN_SHARD_BYTES=0):
        marks = {mark for often in (False, True) for mark in run_simulated(2, body, often)}
    assert len(marks) == 1


def test_marks_are_made_of_values() -> None:
    def body() -> list[int]:
        x = nd.asarray(np.arange(24.0).reshape(6, 4), split=0)
        makers: list[Callable[[], Any]] = [
            lambda: x + 1,
            lambda: x + 1.0,
            lambda: x - 1,
            lambda: x[1:] + 1,
            lambda: x[:-1] + 1,
            lambda: x + np.float32(1),
            lambda: x.sum(axis=0),
            lambda: x.sum(axis=1),
            lambda: x.max(axis=0),
        ]
        kept, forms = [], list[ProgramForm]()
        for make in makers:
            kept.append(make())
            forms.append(engine.runtime().program.pending[-1].form)
        return [form.mark for form in forms]

    with config(MIN_SHARD_BYTES=0):
        first, second = run_simulated(2, body)
    assert first == second and len(set(first)) == len(first)
    assert mark_of(1, "a") == mark_of(1, "a") != mark_of(1, "b") and 0 <= mark_of() < 1 << 64


ON_REAL_RANKS = {
    "if rank == 0: print('<', x.max(), '>')\nprint('<', x.sum(), '>')": "maximum.reduce",
    "v = x[:, rank].mean()\nprint('<', v, '>')": "add.reduce",
    "v = x[rank].gather()\nprint('<', v[0], '>')": "gather",
    "y = x + x[::-1, ::-1] if rank else x - x[::-1, ::-1]\nprint('<', y.local[0, 0], '>')": "subtract",
    "if rank == 0: np.save(open('/dev/null', 'wb'), x)\nprint('<', x.sum(), '>')": "numpy.save",
    "v = (x * (rank + 1)).sum()\nprint('<', v, '>')": "with 2",
    "v = x[np.arange(3) + rank].sum()\nprint('<', v, '>')": "x[...], at ",
    "if rank == 1: np.savez(open('/dev/null', 'wb'), x)\nx.comm.barrier()": "numpy.savez",
}


@pytest.mark.slow
@pytest.mark.parametrize("source", ON_REAL_RANKS, ids=range(len(ON_REAL_RANKS)))
def test_other_programs_on_real_ranks(source: str, tmp_path: Path) -> None:
    script = "x = numpy_dist.asarray(np.random.default_rng(0).random((200, 300)))\nrank = x.comm.rank\n" + source
    job = run(script, tmp_path)
    assert job.code != 0 and "<" not in job.output, job
    assert "DivergenceError" in job.errors and ON_REAL_RANKS[source] in job.errors, job.errors
    assert "rank 0: " in job.errors and "rank 1: " in job.errors, job.errors


def test_types_of_equal_dtypes_have_one_mark() -> None:
    def body() -> bool:
        x = nd.asarray(np.arange(6, dtype="u8"), split=0)
        made = x + (np.uint64(1) if get_communicator().rank else np.ulonglong(1))  # type: ignore[union-attr]
        return bool(made.sum() == 21)  # which compares marks

    with config(MIN_SHARD_BYTES=0):
        assert run_simulated(2, body) == [True, True]
