"""Explanations, call sites, and the catalogue of what NumPy can hand to us."""

import functools

import numpy as np
import pytest
from numpy.testing import overrides

import numpy_dist as nd
from numpy_dist import engine, frames
from numpy_dist.dispatch.core import catalogue, policy, registry, targets
from numpy_dist.dispatch.core.registry import declare, implements
from numpy_dist.parallel import spectra
from numpy_dist.spmd_testing import spmd

pytestmark = pytest.mark.usefixtures("tiny_shards")


@spmd(1, 2)
def test_nothing_is_run_or_communicated():
    x = nd.asarray(np.arange(6.0))
    engine.flush()
    before = engine.runtime().comm.counters.collectives, engine.counters().statements
    for function in (np.sum, np.linalg.svd, np.add, np.add.at, np.reshape):
        str(nd.explain(function, x))
    assert (engine.runtime().comm.counters.collectives, engine.counters().statements) == before


def test_the_engine():
    x = nd.asarray(np.arange(6.0))
    found = nd.explain(np.add, x, [1] * 6)
    assert (found.kind, found.rule, found.gathered_bytes) == ("elementwise", "the engine", 0)
    assert nd.explain(np.add.reduce, x).kind == "reduction"
    assert "not the engine: it is not associative" in str(nd.explain(np.subtract.reduce, x))
    assert "not the engine: arrays of dtype object" in str(nd.explain(np.add, x, np.array([None] * 6)))


def test_what_one_process_leaves_to_numpy():
    explanation = nd.explain(np.partition, nd.zeros(100_000), 2)
    assert explanation.kind == "composed" and "leaves it to NumPy" in str(explanation)
    few, many = np.zeros(10), nd.zeros(100_000)
    assert "leaves it to NumPy" in str(nd.explain(np.searchsorted, many, few))
    assert "leaves it to NumPy" not in str(nd.explain(np.searchsorted, many, many))
    assert "leaves it to NumPy" in str(nd.explain(np.repeat, many, few))
    assert "leaves it to NumPy" not in str(nd.explain(np.repeat, many, 2))


def test_rules(table):
    x = nd.asarray(np.arange(6.0))

    @implements(np.unwrap, kind="parallel", when=lambda p, **rest: p.ndim == 2, reason="needs a 2-D array")
    def unwrap(p, discont=None, axis=-1, *, period=6.283185307179586): ...

    flat, square = nd.explain(np.unwrap, x), nd.explain(np.unwrap, np.reshape(x, (2, 3)))
    assert flat.kind == "gathered" and flat.gathered_bytes == 48
    assert "not the parallel rule" in str(flat) and "needs a 2-D array" in str(flat)
    assert "1 sharded array would be gathered, and NumPy run on rank 0; FALLBACK is 'warn'" in str(flat)
    assert square.kind == "parallel" and square.rule.endswith("unwrap") and square.gathered_bytes == 0


def test_after_a_rule_that_is_off_the_next_one_is_asked(table):
    @implements(np.unwrap, kind="parallel")
    def unwrap(p, discont=None, axis=-1, *, period=6.283185307179586): ...

    @implements(np.unwrap, kind="composed")
    def unwrap_by_others(p, discont=None, axis=-1, *, period=6.283185307179586): ...

    first, second = table[np.unwrap].rules
    first.why_off = lambda: "off today"
    told = nd.explain(np.unwrap, nd.asarray(np.arange(6.0)))
    assert (told.kind, told.rule) == (second.kind, second.described)
    assert f"not the {first.kind} rule {first.described}: off today" in str(told)


def test_declared_and_refused(table):
    x = nd.asarray(np.arange(6.0))
    declare(np.unwrap, kind="gathered", reason="phases are global", source=__name__)
    declare(np.interp, kind="refused", reason="not today", source=__name__)
    assert "phases are global" in repr(nd.explain(np.unwrap, x))
    assert nd.explain(np.interp, x, [1], [1]).kind == "refused"


def test_callbacks_outputs_and_others(table):
    x = nd.asarray(np.arange(6.0))
    declare(np.apply_along_axis, kind="gathered", reason="its function wants all", source=__name__)
    assert "run on every rank" in str(nd.explain(np.apply_along_axis, lambda v: v, 0, x))
    assert nd.explain(np.hypot.accumulate, x, out=nd.empty((6,))).gathered_bytes in (0, 48)
    assert nd.explain(np.sum, np.ma.masked_array([1])).kind == "foreign"
    with nd.config(MIN_SHARD_BYTES=1 << 20):
        assert nd.explain(np.linalg.svd, nd.asarray(np.eye(2))).kind == "replicated"
    assert "no argument is a DistArray" in str(nd.explain(np.linalg.svd, np.eye(2)))


_MATRIX_CALLS = [
    (np.linalg.svd, {}),
    (np.linalg.svd, {"compute_uv": False}),
    (np.linalg.eigh, {}),
    (np.linalg.qr, {}),
    (np.linalg.inv, {}),
    (np.linalg.det, {}),
    (np.linalg.cond, {}),
    (np.linalg.pinv, {}),
    (np.linalg.matrix_rank, {}),
]


@pytest.mark.slow
@spmd(1, 2, 3)
@pytest.mark.parametrize("policy_of_fallback", ["silent", "error"])
@pytest.mark.parametrize("least", [0, 1 << 10, 1 << 14])
def test_what_is_said_of_matrices_is_what_happens(least, policy_of_fallback):
    """An explanation and the report of the call that it explains name the same bytes."""
    matrix = np.eye(40) + np.arange(40.0)
    with nd.config(MIN_SHARD_BYTES=least, FALLBACK=policy_of_fallback):
        for kind in (float, np.float32):
            x = nd.asarray(matrix.astype(kind), split=0)
            for function, options in _MATRIX_CALLS:
                policy.forget()
                told = nd.explain(function, x, **options)
                if told.kind == "gathered" and policy_of_fallback == "error":
                    with pytest.raises(nd.FallbackError):
                        function(x, **options)
                    continue
                function(x, **options)
                found = {(line.how, line.bytes) for line in nd.report()}
                said = {("gathered", told.gathered_bytes), ("replicated", told.replicated_bytes)}
                assert found == {(how, nbytes) for how, nbytes in said if nbytes}, (function, str(told))


@pytest.mark.slow
@spmd(1, 2, 3)
def test_matrices_that_are_large_come_to_no_rank(monkeypatch):
    monkeypatch.setattr(spectra, "SMALL", 50)  # more than that are on all ranks
    calls = [(np.linalg.cond, ()), (np.linalg.svdvals, ()), (np.linalg.norm, (2,)), (np.linalg.matrix_rank, ())]
    for rows, columns in ((40, 40), (60, 60), (56, 60), (3000, 30)):
        x, b = nd.asarray(np.eye(rows, columns), split=0), nd.asarray(np.ones(rows), split=0)
        for function, more in (*calls, (np.linalg.lstsq, (b,))):
            policy.forget()
            told = nd.explain(function, x, *more)
            assert told.kind in ("parallel", "composed") and not told.replicated_bytes
            with nd.config(FALLBACK="error"):
                function(x, *more)
            assert nd.report() == []


@spmd(2)
def test_what_comes_to_every_rank():
    x, points = nd.arange(60.0), nd.arange(20.0)
    found = nd.explain(np.searchsorted, x, points)
    assert (found.kind, found.replicated_bytes) == ("parallel", 160) and "160 bytes to every rank" in str(found)
    assert nd.explain(np.interp, x, points, points).replicated_bytes == 320
    large = nd.asarray(np.eye(40))
    assert str(nd.explain(np.linalg.eig, large)).startswith("numpy.linalg.eig: gathered, 12.5 KiB to one rank\n")
    assert nd.explain(np.linalg.svd, large).kind == "parallel"
    with nd.config(MIN_SHARD_BYTES=1 << 14):
        assert "12.5 KiB to every rank" in str(nd.explain(np.linalg.svd, large))
    stacks = nd.explain(np.linalg.svd, nd.asarray(np.zeros((4, 3, 3))))
    assert stacks.kind == "parallel" and "redistributed" in str(stacks)


# -- call sites ------------------------------------------------------------------------------------------------------


def test_the_site_is_the_users_line():
    site = frames.call_site()
    assert site.filename == __file__
    with open(__file__) as file:
        assert "frames.call_site()" in file.read().splitlines()[site.line - 1]
    assert str(site) == f"{__file__}:{site.line}"


def test_numpys_frames_are_passed_over():
    found = []

    class Probe:
        def __array_function__(self, func, types, args, kwargs):
            return None

    np.apply_along_axis(lambda row: found.append(frames.call_site()) or 0, 0, np.zeros((2, 1)))
    inside = {"__name__": "numpy.somewhere", "frames": frames}
    exec(compile("def ask(): return frames.call_site()", "numpy/somewhere.py", "exec"), inside)
    assert functools.partial(inside["ask"])().filename == __file__
    assert found[0].filename == __file__


def test_conformance_cases_count_as_users():
    inside = {"__name__": "numpy_dist.conformance.cases", "frames": frames}
    exec(compile("def ask(): return frames.call_site()", "cases.py", "exec"), inside)
    assert inside["ask"]().filename == "cases.py"


# -- the catalogue ---------------------------------------------------------------------------------------------------


def test_everything_overridable_has_a_kind():
    functions, ufuncs = catalogue.overridable_functions(), catalogue.overridable_ufuncs()
    assert overrides.get_overridable_numpy_array_functions() <= set(functions)
    assert overrides.get_overridable_numpy_ufuncs() == set(ufuncs)
    assert len(functions) >= 320 and len(ufuncs) >= 120 and {np.sum, np.linalg.svd, np.empty, np.ones} <= set(functions)
    assert len(set(map(id, functions))) == len(functions)
    assert {catalogue.kind_of(target) for target in (*functions, *ufuncs)} <= set(registry.KINDS)
    assert functions == catalogue.overridable_functions()


def test_kinds():
    assert catalogue.kind_of(np.hypot) == "elementwise"
    assert catalogue.kind_of(np.hypot.at) == "parallel"
    assert catalogue.kind_of(np.hypot, "reduce") == "parallel"
    assert catalogue.kind_of(np.add, "reduce") == "reduction"
    assert catalogue.kind_of(np.reshape) == "structural"
    assert catalogue.kind_of(np.polydiv) == "gathered"


def test_every_rule_belongs_to_something_overridable():
    """A record that NumPy never asks for is a mistake (an undecorated function, or one that no protocol reaches)."""
    registry.load()
    known = {*catalogue.overridable_functions(), *catalogue.overridable_ufuncs(), np.ufunc}
    strays = []
    for key, record in registry.TABLE.items():
        target = key[0] if isinstance(key, tuple) else key
        if target not in known and any(rule.source.startswith(registry.HOUSE) for rule in record.rules):
            strays.append(record.name)
    assert strays == []


def test_functions_that_return_views_have_structural_rules():
    for function in targets.VIEW_FUNCTIONS:
        assert registry.lookup(function) is not None, registry.name_of(function)
