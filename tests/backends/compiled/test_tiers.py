"""Which tier runs a loop: the interpreter or a kernel, and why."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from numpy_dist.backends.axes import in_memory_order
from numpy_dist.backends.base import Loop, ReduceStep, Step, Temp, make_backend
from numpy_dist.backends.compiled import backend as backends
from numpy_dist.backends.compiled.backend import Compiled
from numpy_dist.backends.compiled.compiler import CompileError, Compiler
from numpy_dist.backends.compiled.form import lower
from numpy_dist.backends.compiled.source import generate
from numpy_dist.backends.graph import Unsupported
from numpy_dist.ir.ops import COPY, SELECT, op_of
from numpy_dist.settings import config

from .loops import KINDS

UFUNCS = {u for u in vars(np).values() if isinstance(u, np.ufunc) and u.signature is None}

# All reasons for which a loop over bool, integers, float32, float64 or complex elements has no kernel.
REASONS = {
    r"integer powers, which may raise an exception": "a negative exponent is an error, which kernels cannot raise",
    r"elements of dtype float16": "NumPy's results for (u)int8 and bool; no processor computes with them",
    r"minima and maxima of floats with where=": "of 0 and -0 NumPy takes one or the other, depending on the mask",
    r"a ufunc with such options": "options that are not about dtypes",
    r"a result that nobody uses": "it is computed for its events only; the optimiser would leave it out",
    r"reductions along axes with others between them": "they have no tree",
    r"reductions along several sets of axes": "several trees",
    r"results in place of operands beside reductions of rows": "rows would have to be kept until the block is done",
    r"a Python int that its operand's dtype can not hold": "its comparison is known without looking at the elements",
    r"a Python float that its operand's dtype can not hold": "the conversion overflows, which is to be reported",
    r"too many intermediate results": "they would not fit the cache",
}


def _reason(shape: tuple[int, ...], *steps: Step | ReduceStep) -> str | None:
    """Why a loop has no kernel; None if it has one."""
    try:
        generate(lower(in_memory_order(Loop(shape, steps, lambda label, kind: None))).form)
    except Unsupported as reason:
        return str(reason)
    return None


def _expected(reason: str) -> bool:
    return any(re.fullmatch(pattern, reason) for pattern in REASONS)


def _places(kind: str) -> list[np.ndarray]:
    return [np.ones(10, kind), np.ones(20, kind)[::2], np.ones(10, kind)[::-1], np.broadcast_to(np.ones((), kind), 10)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_element_wise_operation_has_a_kernel(kind: str) -> None:
    without = {}
    for ufunc in UFUNCS:
        try:
            dtypes = ufunc.resolve_dtypes((*(np.dtype(kind),) * ufunc.nin, *(None,) * ufunc.nout))[ufunc.nin :]
        except TypeError:  # UFuncTypeError: no loop for this dtype
            continue
        for x in _places(kind):
            outs = tuple(np.empty(10, d) for d in dtypes)
            reason = _reason((10,), Step(op_of(ufunc), (x,) * ufunc.nin, outs))
            if reason is not None:
                without[ufunc.__name__] = reason
    assert all(map(_expected, without.values())), without
    if kind in "fdFD":
        assert not without
    elif kind in "?bB":
        assert set(without.values()) <= {"elements of dtype float16", "integer powers, which may raise an exception"}
    else:
        assert set(without) == {"power"}, without


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_copies_and_choices_have_a_kernel(source: str, target: str) -> None:
    mask, out = np.ones(10, bool), np.empty(10, target)
    for x in _places(source):
        for step in (
            Step(COPY, (x,), (out,)),
            Step(COPY, (x,), (out,), mask),
            Step(SELECT, (mask, x, out[::-1].copy()), (out,)),
        ):
            assert _reason((10,), step) is None


@pytest.mark.parametrize("kind", KINDS)
def test_reductions_along_axes_that_follow_each_other_have_a_kernel(kind: str) -> None:
    x = np.ones((4, 5, 6), kind)
    for axes in ((2,), (1, 2), (0, 1, 2), (0,), (1,), (0, 1)):
        partial = np.empty([1 if a in axes else n for a, n in enumerate(x.shape)], kind)
        for ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logical_or):
            if ufunc is np.logical_or and kind != "?":
                continue
            for mask in (None, np.ones(x.shape, bool)):
                assert _reason(x.shape, ReduceStep(op_of(ufunc), x, partial, axes, mask)) is None


def _witnesses() -> dict[str, str | None]:
    """For each reason a loop that has it."""
    x, u, mask, out = np.ones((4, 5)), np.ones((4, 5), "u1"), np.ones((4, 5), bool), np.empty((4, 5))
    ints, temp = np.ones((4, 5), int), Temp(0, x.dtype)
    many: list[Step] = []
    for k in range(60):
        many.append(Step(op_of(np.sin), (x,), (Temp(k, x.dtype),)))
    many += [Step(op_of(np.cos), (Temp(k, x.dtype),), (np.empty((4, 5)),)) for k in range(60)]
    loops: list[tuple[Any, ...]] = [
        (Step(op_of(np.power), (ints, ints), (ints.copy(),)),),
        (Step(op_of(np.sin), (u,), (np.empty((4, 5), "e"),)),),
        (Step(op_of(np.fmin), (x, x), (out,), mask),),
        (Step(op_of(np.add), (x, x), (out,), None, {"subok": False}),),
        (Step(op_of(np.sqrt), (x,), (temp,)), Step(op_of(np.add), (x, x), (out,))),
        (ReduceStep(op_of(np.add), x[None].repeat(2, 0), np.empty((1, 4, 1)), (0, 2)),),
        (ReduceStep(op_of(np.add), x, np.empty((1, 5)), (0,)), ReduceStep(op_of(np.add), x, np.empty((4, 1)), (1,))),
        (Step(op_of(np.add), (x, x), (x,)), ReduceStep(op_of(np.add), x, np.empty((1, 5)), (0,))),
        (Step(op_of(np.less), (u, 300), (mask,)),),
        (Step(op_of(np.multiply), (x.astype("f"), 1e300), (x.astype("f"),)),),
        tuple(many),
    ]
    shapes = [(2, 4, 5) if isinstance(s, ReduceStep) and s.source.ndim == 3 else (4, 5) for s, *_ in loops]
    return dict(zip(REASONS, (_reason(shape, *s) for shape, s in zip(shapes, loops, strict=True)), strict=True))


@pytest.mark.parametrize("pattern,reason", _witnesses().items(), ids=str)
def test_every_reason_occurs(pattern: str, reason: str | None) -> None:
    assert reason is not None and re.fullmatch(pattern, reason)


def test_a_loop_without_kernel_is_interpreted_and_counted(backend: Compiled) -> None:
    x, out = np.arange(50), np.full(50, -1)
    for _ in range(3):
        backend.run(Loop((50,), [Step(op_of(np.power), (x, x % 3), (out,))], lambda label, kind: None))
    assert np.array_equal(out, x ** (x % 3))
    assert backend.counts == {"numba": 0, "numpy": 3}
    assert backend.reasons == {"integer powers, which may raise an exception": 3}


@pytest.mark.slow
@pytest.mark.parametrize("kind,unfit", [("u1", 300), ("f4", 1e300)])
def test_a_scalar_that_does_not_fit_is_forgotten(backend: Compiled, kind: str, unfit: float) -> None:
    x, out, memo = np.arange(50).astype(kind), np.zeros(50, bool), {}
    expected = [(unfit, "numpy"), (3, "numba"), (unfit, "numpy"), (type(unfit)(5), "numba")]
    assert backend.tier(memo) == "not run yet"
    for scalar, tier in expected:
        before = backend.counts[tier]
        backend.run(Loop((50,), [Step(op_of(np.less), (x, scalar), (out,))], lambda label, kind: None, memo=memo))
        with np.errstate(all="ignore"):
            assert np.array_equal(out, x < scalar)
        assert backend.counts[tier] == before + 1
        assert backend.tier(memo) == "numba" or "can not hold" in backend.tier(memo)
    assert backend.tier(memo) == "numba"


def _loop(n: int = 300_000, memo: dict | None = None, factor: float = 2.0) -> tuple[Loop, np.ndarray, np.ndarray]:
    x, out = np.linspace(0, 1, n), np.empty(n)
    temp = Temp(0, x.dtype)
    steps = [Step(op_of(np.exp), (x,), (temp,)), Step(op_of(np.multiply), (temp, factor), (out,))]
    return Loop((n,), steps, lambda label, kind: None, memo={} if memo is None else memo), out, np.exp(x) * factor


def test_a_form_knows_neither_extents_nor_scalars_nor_memory(backend: Compiled) -> None:
    for n, factor in ((100, 2.0), (3000, 3.0), (20_000, 4.0)):
        loop, out, expected = _loop(n, None, factor)
        backend.run(loop)
        assert np.array_equal(out, expected)
    assert len(backend._tiers) == 1
    assert backend.counts == {"numba": 3, "numpy": 0}


@pytest.mark.slow
@pytest.mark.parametrize("remembered", [True, False])
def test_auto_interprets_first_and_compiles_what_takes_long(tmp_path: Path, remembered: bool) -> None:
    compiler = Compiler(str(tmp_path), 1 << 24)
    made = Compiled(compiler, 1, "auto")
    memo: dict = {}
    loop, out, expected = _loop()
    text = None
    end = time.monotonic() + 300
    while not made.counts["numba"]:
        assert time.monotonic() < end
        loop, out, expected = _loop(memo=memo if remembered else None)
        made.run(loop)
        assert np.array_equal(out, expected)
        (tier,) = made._tiers.values()
        assert tier.kernel is not None
        text = tier.kernel.text
        assert tier.requested == (tier.seconds >= backends.ASK_SECONDS)
    assert text is not None and tier.requested and made.counts["numpy"] > 0
    assert made.reasons == {}
    interpreted = made.counts["numpy"]
    for _ in range(3):
        made.run(_loop(memo=memo if remembered else None)[0])
    assert made.counts["numpy"] == interpreted  # from now on always
    compiler.close()


@pytest.mark.parametrize("run_seconds,asked", [(1e-5, False), (1e-3, True)])
def test_auto_compiles_what_takes_time_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run_seconds: float, asked: bool
) -> None:
    compiler = Compiler(str(tmp_path), 1 << 24)
    requests: list[str] = []
    monkeypatch.setattr(compiler, "request", lambda text, gain: requests.append(text))
    clock = itertools.count()  # is looked at before and after each run
    monkeypatch.setattr(backends, "time", SimpleNamespace(perf_counter=lambda: next(clock) * run_seconds))
    made = Compiled(compiler, 1, "auto")
    for _ in range(20):
        made.run(_loop(10)[0])
    assert made.counts == {"numba": 0, "numpy": 20}
    assert bool(requests) == asked
    assert compiler._child is None and list(tmp_path.iterdir()) == []


def test_auto_uses_at_once_what_is_there(kernel_cache: str, kernels: Compiler) -> None:
    first = Compiled(kernels, 1, "first")
    first.run(_loop(100)[0])
    compiler = Compiler(kernel_cache, 1 << 30)
    made = Compiled(compiler, 1, "auto")
    made.run(_loop(100)[0])
    assert made.counts == {"numba": 1, "numpy": 0}
    assert compiler._child is None


def test_never_compiles_nor_looks(kernels: Compiler, tmp_path: Path) -> None:
    compiler = Compiler(str(tmp_path / "cache"), 1 << 24)
    made = Compiled(compiler, 1, "never")
    for _ in range(5):
        loop, out, expected = _loop()
        assert made.run(loop) is None
        assert np.array_equal(out, expected)
    assert made.counts == {"numba": 0, "numpy": 5}
    assert not (tmp_path / "cache").exists()


def test_a_kernel_that_cannot_be_compiled_is_interpreted(monkeypatch, tmp_path: Path) -> None:
    compiler = Compiler(str(tmp_path), 1 << 24)

    def refuse(text: str) -> int:
        raise CompileError("no registers left")

    monkeypatch.setattr(compiler, "request", lambda text, gain=0.0: None)
    monkeypatch.setattr(compiler, "compile", refuse)
    made = Compiled(compiler, 1, "first")
    for _ in range(2):
        loop, out, expected = _loop(100)
        made.run(loop)
        assert np.array_equal(out, expected)
    assert made.counts == {"numba": 0, "numpy": 2}
    assert made.reasons == {"not compiled: no registers left": 2}


def test_a_cache_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("this is no folder")
    directory = str(tmp_path / "file" / "cache")
    with config(CACHE_DIR=directory, COMPILE="first", NUM_THREADS=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first, second = make_backend("numba"), make_backend("numba")
        for made in (first, second, first):
            for n in (100, 200):
                loop, out, expected = _loop(n)
                made.run(loop)
                assert np.array_equal(out, expected)
        assert isinstance(first, Compiled) and first.counts == {"numba": 4, "numpy": 0}
        first.compiler.close()
    assert [w.category for w in caught] == [RuntimeWarning]
    assert "compiled kernels cannot be kept in CACHE_DIR" in str(caught[0].message)
    assert directory in str(caught[0].message)


_SCRIPT = """
import sys
import numpy as np
import numpy_dist
from numpy_dist import engine

x = numpy_dist.asarray(np.linspace(0, 1, 5000))
for _ in range(3):
    x = np.sqrt(x * 2 + 1)
total = float(x.sum())
backend = engine.runtime().backend
print(backend.counts["numba"], backend.counts["numpy"], backend.compiler._child is not None, repr(total))
print(*sorted({"numba", *(f"numpy_dist.backends.compiled.{name}" for name in ("child", "worker"))} & set(sys.modules)))
"""


def _run_script(directory: Path, compile_when: str) -> list[str]:
    settings = {"CACHE_DIR": str(directory), "COMPILE": compile_when, "MIN_SHARD_BYTES": "0", "NUM_THREADS": "1"}
    environment = os.environ | {f"NUMPY_DIST_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-W", "error", "-c", _SCRIPT]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    cold = _run_script(tmp_path, "first")
    kernels, interpreted, child, total = cold[0].split()
    assert int(kernels) > 0 and (interpreted, child) == ("0", "True")
    assert cold[1] == "numpy_dist.backends.compiled.child"  # Numba is imported by the child only
    for when in ("first", "auto"):
        warm = _run_script(tmp_path, when)
        assert warm[0].split() == [kernels, "0", "False", total]
        assert warm[1] == ""
    never = _run_script(tmp_path, "never")
    assert never[0].split() == ["0", kernels, "False", total]
