"""The table: keys by identity, signatures checked once, rules in order."""

import subprocess
import sys

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.dispatch.core import keys, protocol, registry, signatures
from numpy_dist.dispatch.core.registry import Declined, declare, decline, implements
from numpy_dist.errors import UnsupportedError

NoValue = np._NoValue


def call(function, *args, **kwargs):
    """What the protocol does with a call of `function`."""
    return protocol.array_function(nd.DistArray, function, (nd.DistArray,), args, kwargs)


# -- keys ------------------------------------------------------------------------------------------------------------


def test_names_that_collide_are_different_keys():
    pairs = [(np.trace, np.linalg.trace), (np.cross, np.linalg.cross), (np.sqrt, np.lib.scimath.sqrt)]
    for a, b in pairs:
        assert a.__name__ == b.__name__
        assert keys.key_of(a) != keys.key_of(b)


def test_aliases_are_one_key():
    assert keys.key_of(np.abs) is keys.key_of(np.absolute)
    assert keys.key_of(np.concat) is keys.key_of(np.concatenate)


def test_ufunc_methods_are_keys():
    assert keys.key_of(np.add.at) == (np.add, "at") == keys.key_of(np.add, "at")
    assert keys.key_of(np.add, "__call__") is np.add
    assert keys.key_of(np.add.reduce) != keys.key_of(np.multiply.reduce)


@pytest.mark.parametrize(("target", "method"), [(3, None), (np.sum, "at"), (np.add, "sum"), (len, "reduce")])
def test_what_is_no_key(target, method):
    with pytest.raises(TypeError):
        keys.key_of(target, method)


def test_numba_ufuncs_are_their_inner_ufunc():
    numba = pytest.importorskip("numba")

    @numba.vectorize(["float64(float64)"])
    def twice(x):
        return 2 * x

    assert keys.key_of(twice) is twice.ufunc
    assert keys.key_of(twice, "accumulate") == (twice.ufunc, "accumulate")


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (np.sum, "numpy.sum"),
        (np.linalg.svd, "numpy.linalg.svd"),
        (np.add, "numpy.add"),
        (np.add.at, "numpy.add.at"),
        ((np.add, "at"), "numpy.add.at"),
        (np.ndarray.sort, "numpy.ndarray.sort"),
        (np.char.upper, "numpy.strings.upper"),
        (np.emath.sqrt, "numpy.lib.scimath.sqrt"),
        (len, "len"),
    ],
)
def test_names(target, name):
    assert keys.name_of(target) == name


# -- signatures ------------------------------------------------------------------------------------------------------


def test_the_same_signature_is_accepted(table):
    @implements(np.unwrap)
    def unwrap(p, discont=None, axis=-1, *, period=6.283185307179586):
        return "ours"

    @implements(np.nansum)
    def nansum(a, axis=None, dtype=None, out=None, keepdims=NoValue, initial=NoValue, where=NoValue):
        return "ours"

    assert registry.lookup(np.unwrap).rules[0].function is unwrap


def other_name(p, discont=None, axes=-1, *, period=6.283185307179586): ...
def other_order(p, axis=-1, discont=None, *, period=6.283185307179586): ...
def other_kind(p, discont=None, axis=-1, period=6.283185307179586): ...
def other_default(p, discont=None, axis=0, *, period=6.283185307179586): ...
def missing(p, discont=None, axis=-1): ...
def catch_all(p, *args, **kwargs): ...
def other_type_of_default(p, discont=None, axis=-1.0, *, period=6.283185307179586): ...


@pytest.mark.parametrize(
    "function", [other_name, other_order, other_kind, other_default, missing, catch_all, other_type_of_default]
)
def test_another_signature_is_refused_and_both_are_shown(table, function, monkeypatch):
    monkeypatch.setattr(signatures, "NUMPY_VERSION", signatures.NEWEST_TESTED)
    with pytest.raises(TypeError) as caught:
        implements(np.unwrap)(function)
    assert "discont=None, axis=-1, *, period=" in str(caught.value)
    assert function.__name__ in str(caught.value) and "implementation: (p" in str(caught.value)
    assert np.unwrap not in table


def test_those_of_the_house_are_compared_when_a_rule_is_first_asked(table, monkeypatch):
    read = []
    check = signatures.check
    monkeypatch.setattr(signatures, "check", lambda *args: read.append(args[1]) or check(*args))
    monkeypatch.setattr(signatures, "NUMPY_VERSION", signatures.NEWEST_TESTED)

    @implements(np.unwrap, source=f"{registry.FUNCTIONS}.planted", replicated=True, varies=("period",))
    def unwrap(p, discont=None, axis=-1):
        return "ours"

    assert read == []
    assert call(np.unwrap, [1.0]) == call(np.unwrap, [1.0], axis=0) == "ours"
    assert call(np.unwrap, [1.0], period=3.0)[0] == 1.0
    assert read == [np.unwrap]
    del table[np.unwrap]
    implements(np.unwrap, source=f"{registry.FUNCTIONS}.planted", replicated=True)(other_name)
    assert read == [np.unwrap]
    with pytest.raises(TypeError, match="other_name cannot implement numpy.unwrap"):
        call(np.unwrap, [1.0])


def test_a_sentinel_must_be_numpys_own(table):
    def nanmin(a, axis=None, out=None, keepdims=None, initial=NoValue, where=NoValue): ...

    with pytest.raises(TypeError):
        implements(np.nanmin)(nanmin)


def test_parameters_that_vary_between_versions_must_be_declared(table):
    def unwrap(p, discont=None, axis=-1, *, period=6.283185307179586, newest=None):
        return "ours"

    with pytest.raises(TypeError):
        implements(np.unwrap)(unwrap)
    implements(np.unwrap, varies=("newest",))(unwrap)
    assert call(np.unwrap, [1]) == "ours"


def test_a_parameter_that_ours_lacks_goes_to_the_next_rule(table):
    @implements(np.unwrap, varies=("period",))
    def unwrap(p, discont=None, axis=-1):
        return "ours"

    assert call(np.unwrap, [1.0]) == "ours"
    assert call(np.unwrap, [1.0], period=3.0)[0] == 1.0


def test_a_parameter_that_ours_lacks_can_be_given_by_position(table):
    @implements(np.take, varies=("mode",))
    def take(a, indices, axis=None, out=None):
        return "ours"

    assert call(np.take, [1.0], [0], None, None) == "ours"
    assert call(np.take, [1.0], [5], None, None, "clip")[0] == 1.0
    assert call(np.take, [1.0], [5], mode="clip")[0] == 1.0


def test_a_newer_numpy_may_have_more_parameters(table, monkeypatch):
    monkeypatch.setattr(signatures, "NUMPY_VERSION", (99, 0))

    @implements(np.unwrap)
    def unwrap(p, discont=None, axis=-1):
        return "ours"

    assert call(np.unwrap, [1.0]) == "ours"
    with pytest.raises(TypeError):
        implements(np.unwrap)(other_order)


def test_like_is_not_compared(table):
    @implements(np.tri)
    def tri(N, M=None, k=0, dtype=float):
        return "ours"

    assert np.tri(3, like=nd.asarray([1])) == "ours"


def test_ufunc_methods(table):
    @implements(np.hypot, method="at")
    def at(a, indices, b=None, /):
        return "at"

    @implements(np.ufunc, method="accumulate", replicated=True)
    def accumulate(ufunc, array, axis=0, dtype=None, out=None):
        return f"accumulate {ufunc.__name__}"

    @implements(np.hypot)
    def hypot(x, y, /, **keywords):
        return keywords

    assert np.hypot.at(nd.asarray([1.0]), 0, 2.0) == "at"
    assert np.logaddexp.accumulate(nd.asarray([1.0])) == "accumulate logaddexp"
    target = nd.asarray([1.0])
    assert np.hypot(target, 1.0, target)["out"][0] is target


@pytest.mark.parametrize(
    ("target", "method", "function"),
    [
        (np.hypot, "at", lambda a, indices: None),
        (np.hypot, "reduce", lambda array, axis=None, **keywords: None),
        (np.hypot, "accumulate", lambda array, axis=0, dtype=None: None),
        (np.hypot, None, lambda x, /, **keywords: None),
        (np.hypot, None, lambda x, y, out=None: None),
        (np.matmul, None, lambda x, y, /, *, out=None, where=True, casting="same_kind", order="K", dtype=None: None),
        (np.hypot, "outer", lambda x, y, *, where: None),
    ],
)
def test_other_signatures_of_ufuncs_are_refused(table, target, method, function):
    with pytest.raises(TypeError, match="signatures differ"):
        implements(target, method=method)(function)


# -- rules -----------------------------------------------------------------------------------------------------------


def test_rules_are_asked_in_order(table, monkeypatch):
    monkeypatch.delitem(registry.TABLE, np.linalg.tensorinv)
    monkeypatch.setattr(registry, "HOUSE", __name__)
    asked = []

    @implements(np.linalg.tensorinv, when=lambda *args, **kwargs: False, reason="never")
    def never(a, ind=2):
        asked.append("never")

    @implements(np.linalg.tensorinv, kind="parallel")
    def declines(a, ind=2):
        asked.append("declines")
        decline("it does not like the tensor")

    @implements(np.linalg.tensorinv, kind="composed")
    def last(a, ind=2):
        asked.append("last")
        return 7

    assert call(np.linalg.tensorinv, [[1.0]], 1) == 7
    assert asked == ["declines", "last"]
    assert registry.lookup(np.linalg.tensorinv).kind == "native"


def test_rules_from_elsewhere_go_first_and_the_latest_wins(table):
    for answer in ("first", "second"):
        implements(np.sum)(_sum_that_answers(answer))
    assert np.sum(nd.asarray([1])) == "second"
    rules = registry.lookup(np.sum).rules
    assert [rule.source.startswith(registry.HOUSE) for rule in rules] == [False, False, True]


def _sum_that_answers(answer):
    def sum(a, axis=None, dtype=None, out=None, keepdims=NoValue, initial=NoValue, where=NoValue):
        return answer

    return sum


def test_declined_is_not_seen_by_the_user(table):
    @implements(np.unwrap)
    def unwrap(p, discont=None, axis=-1, *, period=6.283185307179586):
        decline("no")

    assert np.unwrap(nd.asarray([1.0, 9.0])).gather().tolist() == np.unwrap([1.0, 9.0]).tolist()
    with pytest.raises(Declined):
        unwrap([1])


def test_refused(table):
    @implements(np.unwrap, kind="refused", reason="there is no phase here")
    def unwrap(): ...

    declare(np.interp, kind="refused", reason="not today", source=__name__)
    with pytest.raises(UnsupportedError, match="numpy.unwrap.*there is no phase here"):
        np.unwrap(nd.asarray([1.0]))
    with pytest.raises(TypeError, match="not today"):
        np.interp(nd.asarray([1.0]), [1], [1])


def test_declared_as_gathered(table, tiny_shards):
    declare(np.unwrap, kind="gathered", reason="phases are global", source=__name__)
    with pytest.warns(nd.FallbackWarning, match="phases are global"):
        np.unwrap(nd.asarray([1.0, 9.0]))
    with pytest.raises(ValueError):
        declare(np.unwrap, kind="native", reason="", source=__name__)


def test_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match="composed"):
        implements(np.sum, kind="magic")


def test_functions_of_others_can_be_implemented(table):
    def smooth(x, width=3):
        return "theirs"

    @implements(smooth)
    def smooth_ours(x, width=3):
        return "ours"

    assert call(smooth, 1) == "ours"
    with pytest.raises(TypeError):
        implements(smooth)(lambda x: None)


def test_replicated_arguments_are_plain_numpys(table):
    @implements(np.unwrap, replicated=False)
    def unwrap(p, discont=None, axis=-1, *, period=6.283185307179586):
        return "ours"

    x = np.array([1.0, 9.0])
    assert np.array_equal(np.unwrap(nd.asarray(x)).gather(), np.unwrap(x))
    with nd.config(MIN_SHARD_BYTES=0):
        assert np.unwrap(nd.asarray(x)) == "ours"


def test_operations_without_a_function(table, monkeypatch):
    monkeypatch.setattr(registry, "_internal", {})

    @registry.internal("frobnicate")
    def frobnicate():
        return 3

    assert registry.internal_function("frobnicate") is frobnicate


# -- loading ---------------------------------------------------------------------------------------------------------


def run_fresh(code, *options):
    return subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, timeout=60)


def test_the_table_is_loaded_where_docstrings_are_stripped():
    """NumPy's functions in C have their signatures, as far as it tells them, from these."""
    done = run_fresh(
        "import numpy as np, numpy_dist as nd\n"
        "nd.config.MIN_SHARD_BYTES = 0\n"
        "x = nd.asarray([3.0, 1.0])\n"
        "print(np.concatenate([np.sort(x), x]), np.empty_like(x).shape)\n",
        "-OO",
    )
    assert done.stdout == "[1. 3. 3. 1.] (2,)\n", done.stderr


def test_the_table_is_loaded_at_the_first_dispatch_and_not_at_import():
    done = run_fresh(
        "import numpy as np, numpy_dist as nd, sys\n"
        "x = nd.asarray([1.0])\n"
        "from numpy_dist.dispatch.core import registry\n"
        "@nd.implements(np.cumsum)\n"
        "def cumsum(a, axis=None, dtype=None, out=None): return 'ours'\n"
        "nd.config.MIN_SHARD_BYTES = 0; x = nd.asarray([1.0])\n"
        "print(registry.loaded, 'numpy_dist.dispatch.functions.mathematical_sums' in sys.modules)\n"
        "print(np.cumsum(x), registry.loaded, registry.lookup(np.cumsum).rules[0].source)\n"
    )
    assert done.stdout.split("\n")[:2] == ["False False", "ours True __main__"], done.stderr
