"""Overrides from outside: what they reach, in which order, what goes wrong in them, and how they go."""

import sys
import textwrap
import types
import warnings

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.dispatch.core import entries, registry
from numpy_dist.errors import OverrideError, OverrideWarning
from numpy_dist.spmd_testing import run_simulated, spmd
from tests.failures import jobs

pytestmark = pytest.mark.usefixtures("tiny_shards")
NoValue = np._NoValue


@pytest.fixture(autouse=True)
def clean():
    """What a test registers is withdrawn."""
    before = {id(rule) for _, rule in registry.outside()}
    yield
    for key, rule in registry.outside():
        if id(rule) not in before:
            registry.remove(key, rule)


def sum_of(answer):
    def sum(a, axis=None, dtype=None, out=None, keepdims=NoValue, initial=NoValue, where=NoValue):
        return answer(a) if callable(answer) else answer

    return sum


def module(name, **contents):
    """A module of another package, with these functions as its own."""
    made = types.ModuleType(name)
    for key, value in contents.items():
        if isinstance(value, types.FunctionType):
            value.__module__, value.__qualname__ = name, key
        setattr(made, key, value)
    return made


# -- what is reached -------------------------------------------------------------------------------------------------


@spmd(1, 3)
def test_numpys_functions_and_the_methods_of_arrays():
    x = nd.arange(6.0)
    with nd.overriding(np.sum, sum_of(42.0)):
        assert np.sum(x) == x.sum() == 42.0
    assert np.sum(x) == 15.0


@pytest.mark.parametrize(
    ("ufunc", "run"),
    [
        (np.add, lambda x: x + 2),
        (np.add, lambda x: 2 + x),
        (np.add, lambda x: np.add(x, 2)),
        (np.add, lambda x: x.__iadd__(2)),
        (np.subtract, lambda x: 2 - x),
        (np.power, lambda x: x**2.5),
        (np.negative, lambda x: -x),
        (np.less, lambda x: x < 2),
        (np.equal, lambda x: x == 2),
        (np.sin, np.sin),
    ],
)
def test_ufuncs_and_the_operators_that_stand_for_them(ufunc, run):
    x = nd.arange(6.0)
    seen = []

    def one(x, /, **keywords):
        seen.append(keywords)
        nd.decline("only looking")

    def two(x1, x2, /, **keywords):
        seen.append(keywords)
        nd.decline("only looking")

    expected = run(x.copy()).gather()
    with nd.overriding(ufunc, one if ufunc.nin == 1 else two):
        found = run(x.copy())
    assert len(seen) == 1 and np.array_equal(found.gather(), expected)
    run(x.copy())
    assert len(seen) == 1


@spmd(1, 2)
def test_methods_of_ufuncs_that_decline_go_on_to_the_house():
    x = nd.arange(6.0)
    seen = []

    def reduce(array, axis=0, dtype=None, out=None, keepdims=False, initial=NoValue, where=True):
        seen.append("reduce")
        nd.decline("only looking")

    def accumulate(array, axis=0, dtype=None, out=None):
        seen.append("accumulate")
        nd.decline("only looking")

    with nd.config(FALLBACK="error"):
        with nd.overriding(np.add.reduce, reduce), nd.overriding(np.add, accumulate, method="accumulate"):
            assert np.add.reduce(x) == 15.0
            assert np.add.accumulate(x).gather()[-1] == 15.0
    assert seen == ["reduce", "accumulate"]


def test_numbas_ufuncs():
    numba = pytest.importorskip("numba")

    @numba.vectorize(["float64(float64)"])
    def twice(x):
        return 2 * x

    x = nd.arange(6.0)

    def thrice(x, /, **keywords):
        return x + x + x

    assert twice(x).gather()[1] == 2.0
    with nd.overriding(twice, thrice):
        assert twice(x).gather()[1] == 3.0

    @numba.guvectorize(["void(float64[:], float64[:])"], "(n)->()")
    def total(x, out):
        out[0] = x.sum()

    def ours(x, /, **keywords):
        return np.sum(x, -1)

    with nd.config(FALLBACK="error"), nd.overriding(total, ours):
        assert np.array_equal(total(np.reshape(x, (2, 3))).gather(), [3.0, 12.0])


def test_functions_of_other_libraries():
    ndimage = pytest.importorskip("scipy.ndimage")
    original = ndimage.gaussian_filter1d

    @nd.implements(original, varies=("radius",))
    def gaussian_filter1d(input, sigma, axis=-1, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0):
        return input + sigma

    try:
        x = nd.arange(6.0)
        assert np.array_equal(ndimage.gaussian_filter1d(x, 2).gather(), np.arange(6.0) + 2)
        plain = np.arange(6.0)
        assert np.array_equal(ndimage.gaussian_filter1d(plain, 2), original(plain, 2))
        with pytest.warns(nd.FallbackWarning, match=r"scipy.ndimage.gaussian_filter1d .*does not know radius"):
            ndimage.gaussian_filter1d(x, 2, radius=3)
        assert nd.overrides(ndimage.gaussian_filter1d)[0].function == "scipy.ndimage.gaussian_filter1d"
    finally:
        nd.withdraw(gaussian_filter1d)
    assert ndimage.gaussian_filter1d is original


def test_entries_stand_in_the_public_modules_of_a_package(monkeypatch):
    def blur(image):
        return image

    def other(image):
        return image

    inner = module("pictures._filters", blur=blur)
    package, public = module("pictures", blur=blur), module("pictures.filters", blur=blur)
    unlike, without = module("pictures.legacy", blur=other), module("pictures.colours")
    private, like = module("pictures.tests._tools", blur=blur), module("pictures_more", blur=blur)
    blur.__module__ = inner.__name__
    for each in (inner, package, public, unlike, without, private, like):
        monkeypatch.setitem(sys.modules, each.__name__, each)
    monkeypatch.setitem(sys.modules, "pictures.missing", None)  # as Python notes what cannot be imported
    assert entries.places(blur) == [(package, "blur"), (inner, "blur"), (public, "blur")]


def test_what_cannot_be_overridden_is_refused():
    for function in (np.random.rand, np.hanning, len):
        with pytest.raises(TypeError, match="cannot be overridden"):
            nd.implements(function, varies=("args", "kwargs"))(lambda *args: None)
    with pytest.raises(TypeError, match="takes the functions"):
        nd.implements()
    with pytest.raises(TypeError, match="neither a function nor a ufunc"):
        nd.implements(3)
    with pytest.raises(TypeError, match="decorates a function, not 3"):
        nd.implements(np.sort)(3)
    with pytest.raises(ValueError, match="unknown kind 'magic'"):
        nd.implements(np.sum, kind="magic")
    with pytest.raises(TypeError, match="when= takes a function"):
        nd.implements(np.sum, when=True)


def test_a_wrong_signature_is_refused_and_nothing_is_left_behind():
    def wrong(x): ...

    with pytest.raises(TypeError) as caught:
        nd.implements(np.cumprod, np.ptp)(wrong)
    assert "(x)" in str(caught.value) and "(a, axis=None, dtype=None, out=None)" in str(caught.value)
    assert not nd.overrides()


# -- functions of the author's own -----------------------------------------------------------------------------------


@nd.dispatchable("x", "y")
def blend(x, y=0.0, weight=0.5):
    """The mean of two arrays."""
    return np.asarray(x) * weight + np.asarray(y) * (1 - weight)


@spmd(1, 2)
def test_a_dispatchable_function_has_a_gathered_default():
    x = nd.arange(6.0)
    plain = np.arange(6.0)
    assert blend.__doc__ == "The mean of two arrays."
    assert np.array_equal(blend(plain, plain), plain)
    with pytest.warns(nd.FallbackWarning, match=r"blend at .*test_overrides.py.* gathers"):
        made = blend(x, plain)
    assert isinstance(made, nd.DistArray) and np.array_equal(made.gather(), plain)
    with nd.config(FALLBACK="error"), pytest.raises(nd.FallbackError, match="blend"):
        blend(0.0, y=x)


def test_only_the_named_parameters_are_looked_at():
    @nd.dispatchable("x")
    def first(x, y):
        return type(y).__name__

    assert first(1, nd.arange(3)) == "DistArray"

    @nd.dispatchable
    def any_of_them(*arrays, scale=1):
        return [type(a).__name__ for a in arrays]

    with nd.config(FALLBACK="silent"):
        assert any_of_them(nd.arange(3), 1) == ["ndarray", "int"]
    with pytest.raises(TypeError, match=r"\(x, y\) has no parameter 'z'"):
        nd.dispatchable("z")(lambda x, y: None)
    with pytest.raises(TypeError, match="MaskedArray, which has rules"):
        first(nd.arange(3), np.ma.masked_array([1]))


@spmd(1, 3)
def test_conditions_declining_and_order():
    x = nd.arange(6.0)
    asked = []

    def declines(x, y=0.0, weight=0.5):
        asked.append("declines")
        nd.decline("not today")

    def answers(x, y=0.0, weight=0.5):
        asked.append("answers")
        return x

    with (
        nd.overriding(blend, answers, priority=-1),
        nd.overriding(blend, declines),
        nd.overriding(blend, answers, when=lambda x, *rest, **more: x.ndim == 2, reason="needs a matrix", priority=1),
    ):
        assert blend(x) is x
        told = str(nd.explain(blend, x))
    assert asked == ["declines", "answers"]
    assert "needs a matrix" in told
    with nd.overriding(blend, declines), pytest.warns(nd.FallbackWarning, match="not today"):
        blend(x)


def test_small_arrays_are_not_handed_over_unless_asked():
    with nd.config(MIN_SHARD_BYTES=10**6):
        x = nd.arange(6.0)
        with nd.overriding(np.cumprod, lambda a, axis=None, dtype=None, out=None: "ours"):
            assert np.cumprod(x)[-1] == 0.0
        with nd.overriding(np.cumprod, lambda a, axis=None, dtype=None, out=None: "ours", replicated=True):
            assert np.cumprod(x) == "ours"


# -- order, clashes, removal -----------------------------------------------------------------------------------------


def test_the_order_is_by_priority_then_the_latest_first():
    for name, priority in (("early", 0), ("low", -1), ("high", 5), ("late", 0)):
        function = sum_of(name)
        function.__qualname__ = name
        nd.implements(np.sum, priority=priority)(function)
    listed = [x.implementation.rpartition(".")[2] for x in nd.overrides(np.sum)]
    assert listed == ["high", "late", "early", "low"]
    assert str(nd.overrides(np.sum)).splitlines()[0].split() == [
        "function", "override", "package", "priority", "condition",
    ]  # fmt: skip


def test_clashes_of_packages_are_reported():
    one, other = module("one.parts", total=sum_of(1.0)), module("other.parts", total=sum_of(2.0))
    nd.implements(np.sum)(one.total)
    with pytest.warns(OverrideWarning, match=r"numpy.sum: other.parts.total \(package other\) is asked, and one"):
        nd.implements(np.sum)(other.total)
    with pytest.raises(ValueError, match="not registered as an override of numpy.prod"):
        nd.withdraw(one.total, np.prod)


def test_what_is_decided_or_asked_in_single_cases_is_no_clash():
    names = ("lower", "first", "again", "higher", "never", "here")
    lower, first, again, higher, never, here = (module("parts", **{name: sum_of(1.0)}) for name in names)
    for made in (lower, higher, never, here):
        (function,) = (value for value in vars(made).values() if isinstance(value, types.FunctionType))
        function.__module__ = "other.parts"
    with warnings.catch_warnings():
        warnings.simplefilter("error", OverrideWarning)
        nd.implements(np.sum, priority=-1)(lower.lower)
        nd.implements(np.sum)(first.first)
        nd.implements(np.sum)(again.again)  # of the same package
        nd.implements(np.sum, priority=1)(higher.higher)
        nd.implements(np.sum, when=lambda a, *rest, **more: False, reason="never")(never.never)
        with nd.overriding(np.sum, here.here):
            assert len(nd.overrides(np.sum)) == 6


def test_what_is_defined_again_takes_the_place_of_the_old_one():
    for answer in (1.0, 2.0):
        nd.implements(np.sum)(module("cells", total=sum_of(answer)).total)
    assert len(nd.overrides(np.sum)) == 1 and np.sum(nd.arange(3.0)) == 2.0


def test_temporary_overrides_concern_their_context_only():
    def ranks():
        x = nd.arange(6.0)
        with nd.overriding(np.sum, sum_of(1.0)):
            nd.zeros(1).comm.barrier()
            assert np.sum(x) == 1.0
            with nd.overriding(np.sum, sum_of(2.0)):
                nd.zeros(1).comm.barrier()
                assert np.sum(x) == 2.0
            assert np.sum(x) == 1.0
        nd.zeros(1).comm.barrier()
        return np.sum(x)

    assert run_simulated(3, ranks) == [15.0] * 3
    assert not nd.overrides()


# -- what goes wrong -------------------------------------------------------------------------------------------------


def wrong_out(a, axis=None, dtype=None, out=None):
    return np.add(a, 0)


@spmd(1, 2)
def test_wrong_results_name_override_package_and_call():
    x = nd.arange(6.0)
    cases = [
        (blend, lambda x, y=0.0, weight=0.5: x.local, {}, (), "returned an ndarray of shape .*from_local"),
        (blend, lambda x, y=0.0, weight=0.5: NotImplemented, {}, (), "decline"),
        (np.sum, sum_of(lambda a: a), {"kind": "reduction"}, (), r"float64\[6\] .*result of shape \(\)"),
        (np.sin, lambda x, /, **keywords: x[:2], {}, (), r"result of shape \(6,\)"),
        (np.sin, lambda x, /, **keywords: "text", {}, (), r"'text', and the call has a result of shape \(6,\)"),
        (blend, lambda x, y=0.0, weight=0.5: x[:2], {"shape": lambda x, *rest: x.shape}, (), r"shape \(6,\)"),
    ]
    for function, override, options, rest, text in cases:
        with nd.overriding(function, override, **options), pytest.raises(OverrideError, match=text) as caught:
            function(x, *rest)
        assert "(package tests)" in str(caught.value) and "test_overrides.py:" in str(caught.value)
        assert "sharded float64[6]" in str(caught.value)
    with nd.overriding(np.cumsum, wrong_out), pytest.raises(OverrideError, match="given as out"):
        np.cumsum(x, out=x.copy())


def test_an_error_bears_a_note_and_keeps_its_type():
    def fails(x, y=0.0, weight=0.5):
        raise ZeroDivisionError("in there")

    with nd.overriding(blend, fails), pytest.raises(ZeroDivisionError, match="in there") as caught:
        blend(nd.arange(6.0), weight=2)
    (note,) = caught.value.__notes__
    assert "fails (package tests) of tests.dispatch.test_overrides.blend" in note
    assert "blend(sharded float64[6], weight=2)" in note


@pytest.mark.parametrize("check", ["off", "on"])
def test_ranks_that_behave_differently_are_told_of_it(check):
    def ranks(override):
        x = nd.arange(6.0)
        with nd.config(CHECK=check), nd.overriding(blend, override):
            with pytest.raises(OverrideError, match="behaves differently on different ranks:\n.*0: .*\n.*1: "):
                blend(x)

    def local_sum(x, y=0.0, weight=0.5):
        return float(x.local.sum())

    def declines_on_one(x, y=0.0, weight=0.5):
        if x.comm.rank:
            nd.decline("rank 1 does not like it")
        return x

    for override in (local_sum, declines_on_one):
        run_simulated(2, ranks, override)


LATER = """
import numpy as np, numpy_dist as nd
nd.config.MIN_SHARD_BYTES = 0
x = nd.arange(10.0)
if {before}:
    print(float(x.sum()))
if x.comm.rank == 0:
    @nd.implements(np.ptp)
    def ptp(a, axis=None, out=None, keepdims=np._NoValue):
        return 1.0
print(np.ptp(x))
"""


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False])
def test_an_override_on_one_rank_only_is_an_error_on_two_real_ranks(tmp_path, before):
    job = jobs.run("mpiexec", textwrap.dedent(LATER.format(before=before)), tmp_path)
    assert job.code != 0 and "DivergenceError" in job.text
    if before:
        assert "rank 0" in job.text and "rank 1" in job.text
    else:
        assert "override of numpy.ptp: rank 0: __main__.ptp (package __main__); rank 1: not set" in job.text
