"""Gathered NumPy: one rank runs it, and result, error, warnings and in-place targets are NumPy's on all ranks."""

import inspect
import io
import pickle
import re
import warnings

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.dispatch.core import fallback, outcome, targets
from numpy_dist.dispatch.core.catalogue import overridable_functions, overridable_ufuncs
from numpy_dist.errors import FallbackError, FallbackWarning, GatherError
from numpy_dist.spmd_testing import run_simulated, spmd

pytestmark = pytest.mark.usefixtures("tiny_shards")

DATA = np.arange(12.0).reshape(3, 4)
WHY = "a test asks for it"


def silently(function, *args, **kwargs):
    """The fallback on any function, whether it has rules or not."""
    with nd.config(FALLBACK="silent"):
        return fallback.call(function, args, kwargs, WHY)


def values(x):
    """Results without our arrays."""
    if isinstance(x, nd.DistArray):
        return x.gather()
    if isinstance(x, tuple | list):
        return [values(item) for item in x]
    return {key: values(item) for key, item in x.items()} if isinstance(x, dict) else x


# -- results ---------------------------------------------------------------------------------------------------------


@spmd(1, 3)
def test_arrays_and_scalars():
    x = nd.asarray(DATA)
    made = silently(np.cumsum, x, axis=1)
    assert isinstance(made, nd.DistArray) and engine.is_sharded(made)
    assert np.array_equal(made.gather(), DATA.cumsum(1))
    values = silently(np.linalg.eigvals, x[:, :3])
    assert np.array_equal(values.gather(), np.linalg.eigvals(DATA[:, :3]))
    assert silently(np.ndim, x) == 2 and silently(np.array2string, x) == np.array2string(DATA)
    zero_d = silently(np.asarray, x[0, :1].reshape(()))
    assert isinstance(zero_d, nd.DistArray) and zero_d.shape == ()
    assert silently(np.result_type, x, np.float32) == np.float64


@spmd(1, 3)
def test_ufuncs_without_results_write_into_their_operands():
    inplace_add = pytest.importorskip("numpy._core._operand_flag_tests").inplace_add
    assert inplace_add.nout == 0
    x, plain = nd.asarray(np.arange(16).reshape(4, 4)), np.arange(16).reshape(4, 4)
    with pytest.warns(FallbackWarning, match="no results"):
        inplace_add(x[:-1, :-1], nd.asarray(np.arange(9).reshape(3, 3)))
    inplace_add(plain[:-1, :-1], np.arange(9).reshape(3, 3))
    assert np.array_equal(x.gather(), plain)


@spmd(1, 3)
def test_small_results_are_replicated_and_large_ones_sharded():
    x = nd.asarray(DATA)
    with nd.config(MIN_SHARD_BYTES=64):
        small, large = silently(np.cumsum, x[0]), silently(np.cumsum, x)
    assert not engine.is_sharded(small) and engine.is_sharded(large)
    assert np.array_equal(small.gather(), DATA[0].cumsum())


@spmd(1, 3)
def test_named_tuples_lists_and_dicts():
    x = nd.asarray(DATA)
    made = silently(np.linalg.svd, x)
    assert type(made) is type(np.linalg.svd(DATA))
    assert np.allclose(made.U.gather() @ np.diag(made.S.gather()) @ made.Vh.gather()[:3], DATA)
    assert type(silently(np.linalg.slogdet, x[:, :3])).__name__ == "SlogdetResult"


def containers(a, nested):
    """A function of arrays in containers."""
    return {"sum": a + nested["b"][0], "pair": (nested["b"][1][0], None), "list": [a.shape]}


@spmd(1, 3)
def test_nested_containers_are_walked():
    x = nd.asarray(DATA)
    made = silently(containers, x, {"b": [x * 2, (x + 1,)]})
    assert np.array_equal(made["sum"].gather(), DATA * 3)
    assert np.array_equal(made["pair"][0].gather(), DATA + 1) and made["pair"][1] is None
    assert made["list"] == [(3, 4)]
    blocks = silently(np.block, [[x, x], [x, x]])
    assert np.array_equal(blocks.gather(), np.block([[DATA, DATA], [DATA, DATA]]))


@spmd(1, 3)
def test_memory_order_is_kept():
    x = nd.asarray(DATA)
    seen = silently(_orders, x.T, x, x[:, ::2].T)
    assert seen == [(False, True), (True, False), (False, True)]
    made = silently(np.sort_complex, x.T)
    assert made.flags.f_contiguous == np.sort_complex(DATA.T).flags.f_contiguous
    cube = np.arange(24.0).reshape(2, 3, 4)
    back = silently(_copy_k, nd.asarray(cube).transpose(1, 2, 0))
    assert back.strides == cube.transpose(1, 2, 0).strides and np.array_equal(back.gather(), cube.transpose(1, 2, 0))


def _orders(*arrays):
    return [(a.flags.c_contiguous, a.flags.f_contiguous) for a in arrays]


def _copy_k(a):
    return np.array(a, order="K")


@spmd(1, 3)
def test_dtypes_that_cannot_be_cut():
    x = nd.asarray(np.array([1, 2, 3]))
    as_objects = silently(np.ndarray.astype, x, object)
    assert as_objects.dtype == object and as_objects.gather().tolist() == [1, 2, 3]
    variable = silently(np.ndarray.astype, x, np.dtypes.StringDType())
    assert variable.gather().tolist() == ["1", "2", "3"]


@spmd(1, 3)
def test_an_argument_that_comes_back_is_the_same_object():
    x, square = nd.asarray(DATA), nd.asarray(np.eye(3))
    assert silently(np.asanyarray, x) is x
    assert silently(np.linalg.matrix_power, square, 1) is square


@spmd(3)
def test_one_rank_runs_it():
    x = nd.asarray(DATA)
    ran = []
    assert silently(_note, x, _Note(ran)) == 66.0
    assert engine.runtime().comm.allgather(len(ran)) == [1, 0, 0]


class _Note:
    def __init__(self, ran):
        self.ran = ran


def _note(a, note):
    note.ran.append(1)
    return float(a.sum())


@spmd(1, 3)
def test_callbacks_run_on_every_rank():
    x = nd.asarray(DATA)
    calls = []

    def largest(row):
        calls.append(type(row))
        return row.max()

    with pytest.warns(FallbackWarning, match="numpy.apply_along_axis.*on every rank"):
        made = fallback.call(np.apply_along_axis, (largest, 1, x), {}, WHY)
    assert np.array_equal(made.gather(), DATA.max(1))
    assert set(calls) == {np.ndarray} and set(engine.runtime().comm.allgather(len(calls))) == {3}
    pieces = silently(np.piecewise, x, [x < 5, x >= 5], [lambda v: -v, lambda v: v + 100])
    assert np.array_equal(pieces.gather(), np.where(DATA < 5, -DATA, DATA + 100))
    dtype_is_no_callback = silently(np.cumsum, x, dtype=np.float32)
    assert dtype_is_no_callback.dtype == np.float32


@spmd(3)
def test_a_callback_may_communicate():
    x = nd.asarray(DATA)
    made = silently(np.apply_along_axis, lambda row: row + engine.runtime().comm.allgather(1)[0], 1, x)
    assert np.array_equal(made.gather(), DATA + 1)


# -- replicated arguments --------------------------------------------------------------------------------------------


@spmd(1, 3)
def test_replicated_arguments_are_computed_by_every_rank_without_a_warning():
    with nd.config(MIN_SHARD_BYTES=1 << 20, FALLBACK="error"):
        x = nd.asarray(DATA)
        made = fallback.call(np.cumsum, (x,), {}, WHY)
        assert isinstance(made, nd.DistArray) and not engine.is_sharded(made)
        assert np.array_equal(made.gather(), DATA.cumsum())
        out = nd.asarray(np.zeros(12))
        assert fallback.call(np.cumsum, (x,), {"out": out}, WHY) is out and out.gather()[-1] == 66
        view = fallback.call(np.squeeze, (x[:1],), {}, WHY)
        view[...] = 50.0
        assert np.array_equal(x[0].gather(), [50.0] * 4)
        mine = np.zeros(12)
        assert fallback.call(np.cumsum, (x,), {"out": mine}, WHY) is mine
    with nd.config(MIN_SHARD_BYTES=200):
        x = nd.asarray(DATA)
        assert not engine.is_sharded(x)
        large = fallback.call(np.repeat, (x, 4), {}, WHY)
        assert engine.is_sharded(large) and np.array_equal(large.gather(), np.repeat(DATA, 4))


@spmd(1, 3)
def test_files_are_written_by_one_rank(tmp_path):
    path = tmp_path / "array.npy"
    for threshold in (0, 1 << 20):
        with nd.config(MIN_SHARD_BYTES=threshold):
            x = nd.asarray(DATA)
            before = engine.runtime().comm.allgather(path.exists())
            silently(np.save, path, x)
            assert path.exists() and np.array_equal(np.load(path), DATA) and len(set(before)) == 1
            engine.runtime().comm.barrier()
            path.unlink(missing_ok=True)
            engine.runtime().comm.barrier()
            with pytest.raises(FileNotFoundError):
                silently(np.save, tmp_path / "none" / "x.npy", x)


@spmd(1, 3)
def test_files_in_memory_are_written_by_every_rank():
    for threshold in (0, 1 << 20):
        with nd.config(MIN_SHARD_BYTES=threshold):
            file, text = io.BytesIO(), io.StringIO()
            silently(np.save, file, nd.asarray(DATA))
            silently(np.savetxt, text, nd.asarray(DATA))
            file.seek(0)
            text.seek(0)
            assert np.array_equal(np.load(file), DATA) and np.array_equal(np.loadtxt(text), DATA)


def test_warnings_of_replicated_arguments_are_numpys():
    with nd.config(MIN_SHARD_BYTES=1 << 20):
        x = nd.asarray(np.array([1.0, -1.0]))
        with pytest.warns(RuntimeWarning, match="invalid value") as caught:
            fallback.call(_logarithm, (x,), {}, WHY)
        assert caught[0].filename == __file__
        with pytest.raises(ZeroDivisionError), pytest.warns(UserWarning, match="before"):
            fallback.call(_warn_and_raise, (x,), {}, WHY)


def _logarithm(a):
    return np.log(a)


def _warn_and_raise(a):
    warnings.warn("before", stacklevel=1)
    raise ZeroDivisionError


# -- in-place targets ------------------------------------------------------------------------------------------------


def _in_place(data):
    """Calls that write into their arguments."""
    yield "copyto", lambda a: np.copyto(a, 7.0, where=a > 5)
    yield "copyto from a view of itself", lambda a: np.copyto(a[:, 1:], a[:, :-1])
    yield "put", lambda a: np.put(a, [0, 5, -1], [1.0, 2.0, 3.0])
    yield "put by name", lambda a: np.put(ind=[0], v=9.0, a=a)
    yield "place", lambda a: np.place(a, a > 3, [0.5, 0.25])
    yield "putmask", lambda a: np.putmask(a, a > 3, [-1.0, -2.0])
    yield "fill_diagonal", lambda a: np.fill_diagonal(a, 8.0)
    yield "put_along_axis", lambda a: np.put_along_axis(a, np.array([[1], [0], [2]]), 99.0, axis=1)
    yield "at", lambda a: np.subtract.at(a, ([0, 0, 1], [1, 1, 2]), 2.0)
    yield "nan_to_num", lambda a: np.nan_to_num(a, False, 0.0)
    yield "a transposed target", lambda a: np.put(a.T, [1, 2], [70.0, 80.0])
    yield "a strided target", lambda a: np.place(a[::2, 1::2], a[::2, 1::2] > 0, [1.5])
    yield "setitem", lambda a: np.ndarray.__setitem__(a, 1, 3.0) if isinstance(a, np.ndarray) else a.__setitem__(1, 3.0)


@pytest.mark.parametrize("label", [label for label, _ in _in_place(DATA)])
@spmd(1, 3)
def test_in_place_functions_write_back(label):
    call = dict(_in_place(DATA))[label]
    expected = DATA.copy()
    expected[2, 3] = np.nan
    x = nd.asarray(expected)
    theirs = call(expected)
    with nd.config(FALLBACK="silent"):
        ours = call(x)
    assert np.array_equal(x.gather(), expected, equal_nan=True)
    assert (ours is None) == (theirs is None)
    assert ours is None or ours is x or not np.shares_memory(theirs, expected)


@spmd(1, 3)
def test_out_is_written_and_returned():
    x = nd.asarray(DATA)
    out = nd.zeros((3, 4))
    assert silently(np.cumsum, x, 1, None, out) is out and np.array_equal(out.gather(), DATA.cumsum(1))
    assert silently(np.cumprod, x, axis=0, out=out) is out and np.array_equal(out.gather(), DATA.cumprod(0))
    view = out.T[::2]
    assert silently(np.cumsum, x[:, ::2].T, axis=1, out=view) is view
    expected = DATA.cumprod(0)
    expected[:, ::2] = DATA[:, ::2].cumsum(0)
    assert np.array_equal(out.gather(), expected)
    mine = np.zeros(12)
    assert silently(np.cumsum, x, out=mine) is mine and mine[-1] == 66.0
    with nd.config(MIN_SHARD_BYTES=1 << 20):
        small = nd.asarray(np.zeros(12))
    assert silently(np.cumsum, x, out=small) is small and np.array_equal(small.gather(), DATA.cumsum())
    two = silently(np.frexp, x, out=(out, None))
    assert two[0] is out and np.array_equal(two[1].gather(), np.frexp(DATA)[1])
    assert silently(np.cumsum, out[0], out=out[0]).gather().tolist() == out[0].gather().tolist()


@spmd(1, 3)
def test_old_values_of_an_output_are_gathered_only_if_they_matter():
    x, out = nd.asarray(DATA), nd.asarray(DATA * 10)
    counters = engine.counters()
    counters.reset()
    silently(np.cumsum, x, axis=0, out=out)
    assert counters.gathered_bytes in (0, DATA.nbytes)
    out[...] = DATA * 10
    silently(np.hypot, x, x, out=out, where=x > 5)
    assert np.array_equal(out.gather(), np.hypot(DATA, DATA, out=DATA * 10, where=DATA > 5))


@spmd(1, 3)
def test_read_only_targets():
    frozen = nd.asarray(DATA)
    frozen.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        silently(np.put, frozen, [0], [1.0])
    with pytest.raises(ValueError, match="read-only"):
        silently(np.cumsum, frozen, axis=0, out=frozen)


@spmd(3)
def test_an_error_leaves_the_targets_alike_on_all_ranks():
    mine = np.zeros(3)
    with pytest.raises(ArithmeticError):
        with nd.config(FALLBACK="silent"):
            fallback.call(_write_and_raise, (nd.asarray(DATA),), {"out": mine}, WHY)
    assert mine.tolist() == [0, 0, 0]


def _write_and_raise(a, out=None):
    out[0] = 1
    raise ArithmeticError


# -- errors and warnings ---------------------------------------------------------------------------------------------


class AwkwardError(ValueError):
    """It cannot be unpickled from its arguments."""

    def __init__(self, code, *, text):
        super().__init__(f"{code}: {text}")
        self.code = code


def _raise(a, which):
    if which == "awkward":
        raise AwkwardError(7, text="odd")
    if which == "local":

        class LocalError(ValueError): ...

        raise LocalError("of this place")
    if which == "numpy":
        np.add(np.array(["a"]), a)
    if which == "memory":
        np.empty(10**15)
    np.linalg.inv(np.zeros((2, 2)))


@pytest.mark.parametrize("which", ["awkward", "numpy", "memory", "linalg"])
@spmd(1, 3)
def test_errors_are_the_same_on_every_rank(which):
    x = nd.asarray(DATA)
    with pytest.raises(Exception) as theirs:
        _raise(DATA, which)
    with pytest.raises(type(theirs.value)) as ours:
        silently(_raise, x, which)
    assert str(ours.value) == str(theirs.value) and type(ours.value) is type(theirs.value)
    if which == "awkward":
        assert ours.value.code == 7


@spmd(3)
def test_an_error_of_no_known_class():
    with pytest.raises((ValueError, RuntimeError), match="of this place"):
        silently(_raise, nd.asarray(DATA), "local")


@spmd(3)
def test_a_result_that_cannot_travel_is_an_error_on_every_rank():
    with pytest.raises(TypeError, match="generator.*cannot be sent to the other ranks"):
        silently(_generator, nd.asarray(DATA))


def _generator(a):
    return (row for row in a)


@spmd(1, 3)
def test_numpys_warnings_are_issued_at_the_users_line():
    x = nd.asarray(np.ones((3, 1)))
    with pytest.warns() as caught:
        made = fallback.call(np.cov, (x,), {}, WHY)
    kinds = [str(w.message) for w in caught if w.category is RuntimeWarning]
    with pytest.warns(RuntimeWarning) as theirs:
        expected = np.cov(np.ones((3, 1)))
    assert kinds == [str(w.message) for w in theirs]
    assert {w.filename for w in caught} == {__file__}
    assert np.array_equal(made.gather(), expected, equal_nan=True)


@spmd(1, 3)
def test_warnings_as_errors_and_ignored_ones():
    x = nd.asarray(np.array([-1.0, 1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="invalid value"):
            silently(_logarithm, x)
        warnings.simplefilter("ignore")
        assert np.isnan(fallback.call(_logarithm, (x,), {}, WHY).gather()[0])
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError):
        silently(_logarithm, x)
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        silently(_logarithm, x)


def test_warnings_that_were_shown_stay_shown():
    """The recorder must not make Python forget what it has shown (`catch_warnings` does)."""
    shown = []
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *rest, **options: shown.append(str(message))
        x = nd.asarray(np.array([-1.0, 1.0]))
        for _ in range(3):
            warnings.warn("mine", UserWarning, stacklevel=1)
            silently(_logarithm, x)
    assert shown == ["mine", "invalid value encountered in log"]


@spmd(2)
def test_an_array_that_is_hidden_in_an_object_is_an_error_and_no_hang():
    x = nd.asarray(DATA)
    with pytest.raises(RuntimeError, match="cannot look into"):
        silently(_read_hidden, x, _Note(x))


def _read_hidden(a, holder):
    return holder.ran.gather()


# -- policy ----------------------------------------------------------------------------------------------------------


@spmd(1, 3)
def test_one_warning_for_each_function_and_call_site():
    fallback.forget()
    x = nd.asarray(DATA)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            fallback.call(np.cumsum, (x,), {}, WHY), fallback.call(np.cumprod, (x,), {}, WHY)
            fallback.call(np.cumsum, (x,), {}, WHY)
    assert len(caught) == 3
    first = caught[0]
    assert first.category is FallbackWarning and first.filename == __file__
    with open(__file__) as file:
        assert "np.cumprod" in file.read().splitlines()[first.lineno - 1]
    assert f"numpy.cumsum at {__file__}:{first.lineno} gathers 96 bytes" in str(first.message)
    assert WHY in str(first.message)
    account = {(entry.function, entry.site.line): entry for entry in fallback.gathered()}
    assert account["numpy.cumsum", first.lineno].count == 3
    assert account["numpy.cumsum", first.lineno].bytes == 3 * 96


@spmd(1, 2)
def test_error_policy_raises_before_communicating():
    x = nd.asarray(DATA)
    engine.flush()
    comm = engine.runtime().comm
    before = comm.counters.collectives
    text = f"numpy.cumsum at {__file__}:[0-9]+ gathers 96 bytes.*FALLBACK is 'error'"
    with nd.config(FALLBACK="error"), pytest.raises(FallbackError, match=text):
        fallback.call(np.cumsum, (x,), {}, WHY)
    assert comm.counters.collectives == before


@spmd(1, 3)
def test_the_memory_budget():
    x = nd.asarray(DATA)
    with nd.config(MEMORY_BUDGET=95, FALLBACK="silent"):
        with pytest.raises(GatherError) as caught:
            fallback.call(np.cumsum, (x,), {}, WHY)
    text = str(caught.value)
    assert "numpy.cumsum" in text and __file__ in text and " 96 bytes" in text and " 95 bytes" in text
    with nd.config(MEMORY_BUDGET=96):
        silently(np.cumsum, x)


@spmd(1, 2)
def test_the_warning_as_an_error_is_raised_each_time():
    x = nd.asarray(DATA)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error", FallbackWarning)
            with pytest.raises(FallbackWarning):
                fallback.call(np.cumsum, (x,), {}, WHY)


@spmd(1, 2)
def test_array_conversion_is_announced():
    x = nd.asarray(DATA)
    with pytest.warns(FallbackWarning, match="numpy.asarray.*x.gather.*distribute"):
        assert np.array_equal(np.asarray(x), DATA)
    with nd.config(FALLBACK="error"), pytest.raises(FallbackError):
        np.asarray(x)


def test_every_rank_warns():
    def program():
        with nd.config(MIN_SHARD_BYTES=0), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fallback.call(np.cumsum, (nd.asarray(DATA),), {}, WHY)
        return len(caught)

    assert run_simulated(3, program) == [1, 1, 1]


# -- functions that return views -------------------------------------------------------------------------------------


@spmd(1, 2)
def test_functions_that_return_views_are_never_gathered():
    x = nd.asarray(DATA)
    for function in targets.VIEW_FUNCTIONS:
        with pytest.raises(RuntimeError, match="internal error.*must never run on gathered copies"):
            fallback.call(function, (x,), {}, WHY)


@spmd(1, 3)
def test_single_cases_of_views_are_views():
    from numpy.lib import recfunctions

    square = np.arange(9.0).reshape(3, 3)
    for view in (lambda a: a, lambda a: a.T, lambda a: a[::-1, ::2][:2, :2], lambda a: a[:, 1:].T):
        x, data = nd.asarray(square), square.copy()
        mine, theirs = silently(np.einsum, "ij->ji", view(x)), np.einsum("ij->ji", view(data))
        assert np.array_equal(mine.gather(), theirs) and mine.strides == theirs.strides
        mine[0] = theirs[0] = 70.0
        assert np.array_equal(x.gather(), data)
    x, data = nd.asarray(square), square.copy()
    silently(np.einsum, "ii->i", x)[...] = np.einsum("ii->i", data)[...] = [50.0, 60.0, 70.0]
    assert np.array_equal(x.gather(), data)
    pairs = np.zeros(4, [("a", "f8"), ("b", "f8")])
    x = nd.asarray(pairs)
    silently(recfunctions.structured_to_unstructured, x)[1:, 1] = 3.0
    recfunctions.structured_to_unstructured(pairs)[1:, 1] = 3.0
    assert np.array_equal(x.gather(), pairs)


def _trials(data):
    yield from ((), (0,), (1,), (data,), ((0,), (1,)), (None,), (-1, 0), (2,))


def _arrays(result):
    if isinstance(result, np.ndarray):
        yield result
    elif isinstance(result, list | tuple):
        for item in result:
            yield from _arrays(item)


# They convert: with an array of ours as `like=` only, or by a rule that is no gather. The last ones are single cases
# (`einsum("ii->i", x)`, `diff(x, n=0)`), in which the fallback restores the view.
NO_VIEW_FUNCTIONS = {
    "array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "astype", "frombuffer", "require",
    "diff", "einsum", "merge_arrays", "nan_to_num", "repack_fields", "stack_arrays", "structured_to_unstructured",
    "unstructured_to_structured",
}  # fmt: skip
WRITE_FILES = {"save", "savez", "savez_compressed", "savetxt", "load", "loadtxt", "genfromtxt", "fromfile", "memmap"}


def test_the_list_of_functions_that_return_views_is_complete():
    """NumPy itself is asked: no function outside of the lists returns memory of its argument."""
    found = set()
    for function in overridable_functions():
        if function in targets.VIEW_FUNCTIONS or function.__name__ in WRITE_FILES | NO_VIEW_FUNCTIONS:
            continue
        for shape, kind in (((3, 4), "f8"), ((3, 3), "c16"), ((6,), "i8"), ((2,), [("a", "f8"), ("b", "f8")])):
            for extra in _trials(np.zeros(shape, kind)):
                a = np.zeros(shape, kind)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        result = function(a, *extra)
                    except Exception:  # most calls make no sense
                        continue
                if any(r is not a and r.size and np.may_share_memory(r, a) for r in _arrays(result)):
                    found.add(function.__name__)
    assert found == set()


def test_in_place_tables_name_the_right_parameters():
    for function, name in targets.IN_PLACE.items():
        if name != "self":
            try:
                first = next(iter(inspect.signature(function).parameters))
            except ValueError:  # written in C; before NumPy 2.4 only the documentation tells
                first = re.match(r"\s*\w+\(\s*(\w+)", function.__doc__).group(1)
            assert first == name


def test_out_by_position():
    assert targets.outputs(np.cumsum, (1, 2, 3, "out"), {}) == ["out"]
    assert targets.outputs(np.dot, (1, 2, "out"), {}) == ["out"]
    assert targets.outputs(np.concatenate, ((1, 2), 0, "out"), {}) == ["out"]
    assert targets.outputs(np.is_busday, (1, 2, 3, 4, "out"), {}) == ["out"]
    assert targets.outputs(np.busday_count, (1, 2, 3, 4, 5, "out"), {}) == ["out"]
    assert targets.outputs(np.busday_offset, (1, 2, 3, 4, 5, 6, "out"), {}) == ["out"]
    assert targets.outputs(np.add, (1, 2), {"out": ("a", None)}) == ["a"]
    assert targets.outputs(np.cumsum, (1,), {"out": None}) == []


def test_portable_outcomes():
    before = outcome.Outcome(tree=outcome.Value(3), warnings=[(UserWarning, UserWarning("a"))])
    made = outcome.load(outcome.dump(before, "f"))
    assert made.tree.value == 3 and str(made.warnings[0][1]) == "a"
    assert pickle.loads(pickle.dumps(outcome.Replicated(DATA))).array.tolist() == DATA.tolist()


def test_ufuncs_that_numpy_has_are_known():
    assert len(overridable_ufuncs()) >= 100


def test_what_is_written_by_the_only_process():
    """In place, and into outputs; what else is an ndarray is left to the fallback, which says so."""
    x, target, out = nd.arange(6.0), np.zeros(6), np.zeros(6)
    assert fallback.alone(np.put, (x, [1, 4], [7.0, -1.0]), {}) is None
    expected = np.array([0.0, 7.0, 2.0, 3.0, -1.0, 5.0])
    assert np.array_equal(x.gather(), expected)
    assert fallback.alone(np.copyto, (target, x), {}) is fallback.SLOW and not target.any()
    assert fallback.alone(np.cumsum, (x,), {"out": out}) is out and np.array_equal(out, expected.cumsum())
    other = nd.zeros(6)
    assert fallback.alone(np.cumsum, (x,), {"out": other}) is other and np.array_equal(other.gather(), out)
