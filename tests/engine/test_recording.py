"""What is recorded of a statement; statements that are replayed from a plan are the same, and do what NumPy does."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.engine.events.sites import resolve
from numpy_dist.ir.statements import NO_OPTIONS, Elementwise, Ref

pytestmark = pytest.mark.spmd


@pytest.fixture
def grid():
    return numpy_dist.asarray(np.arange(120.0).reshape(12, 10), split=0)


@pytest.fixture
def recorded(monkeypatch):
    """Everything that is recorded from now on."""
    seen: list = []
    program = engine.runtime().program
    append = program.append

    def noting(statement, now=False, depth=1):
        append(statement, now, depth + 1)
        seen.append(statement)

    monkeypatch.setattr(program, "append", noting)
    return seen


def _twice(recorded, statement) -> tuple:
    """The statements that two calls record: planned by the first at the latest, replayed by the second."""
    statement()
    first = list(recorded)
    recorded.clear()
    statement()
    second = list(recorded)
    recorded.clear()
    assert len(first) == len(second) == 1
    assert second[0].options is NO_OPTIONS  # which only a replayed statement has
    return first[0], second[0]


STATEMENTS = {
    "binary": lambda x: x + x,
    "scalar": lambda x: 2.5 * x,
    "numpy's scalar": lambda x: x * np.float32(2),
    "unary": lambda x: -x,
    "ufunc": lambda x: np.sqrt(x),
    "out": lambda x: np.add(x, x, out=x),
    "in place": lambda x: x.__iadd__(x),
    "in place, scalar": lambda x: x.__imul__(1.0),
    "setitem": lambda x: x.__setitem__(slice(1, None), x[:-1]),
    "setitem, scalar": lambda x: x.__setitem__(slice(2, None), 7),
    "setitem, row": lambda x: x.__setitem__(3, 1.0),
    "setitem, view": lambda x: x.__setitem__((slice(1, -1), slice(1, -1)), x[2:, 1:-1]),
    "views": lambda x: x[1:-1] + x[2:],
    "order": lambda x: x.T + x.T,
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_replayed_statement_equals_the_first(grid, recorded, name):
    first, second = _twice(recorded, lambda: STATEMENTS[name](grid))
    assert first is not second
    assert first.form is not None and first.form == second.form
    for field in ("op", "creates", "where", "options", "space"):
        assert getattr(first, field) == getattr(second, field)
    assert len(first.inputs) == len(second.inputs)
    for a, b in zip((*first.inputs, *first.outputs), (*second.inputs, *second.outputs), strict=True):
        assert type(a) is type(b)
        assert type(a) is not Ref or a.view is b.view
    made, again = first.outputs[0].storage, second.outputs[0].storage
    assert (made is again) == (not first.creates[0])
    for field in ("shape", "dtype", "layout", "nbytes", "axes"):
        assert getattr(made, field) == getattr(again, field)
    assert second.serial > first.serial
    assert resolve(second.site).filename == __file__


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_replayed_statement_computes_what_numpy_does(grid, name):
    for _ in range(2):
        mine, numpys = grid.copy(), grid.gather()
        result, expected = STATEMENTS[name](mine), STATEMENTS[name](numpys)
        assert np.array_equal(mine.gather(), numpys)
        if expected is not None:
            assert result.dtype == expected.dtype
            assert result.strides == expected.strides
            assert np.array_equal(result.gather(), expected)


def test_forms_tell_statements_apart(grid, recorded):
    other = numpy_dist.asarray(np.ones((12, 10), np.float32), split=0)
    wide = numpy_dist.asarray(np.ones((12, 10)), split=1)
    mask = grid > 3
    recorded.clear()
    results = [
        grid + grid,
        grid * grid,
        grid + 1.0,
        grid + 1,
        grid + np.float32(1),
        grid[1:] + grid[:-1],
        grid[1:] + grid[1:],
        grid + other,
        wide + wide,
        np.add(grid, grid, out=grid),
        np.add(grid, grid, out=grid, where=mask),
        np.add(grid, grid, dtype=np.complex128),
    ]
    assert len(results) == len(recorded)
    assert len({statement.form for statement in recorded}) == len(recorded)
    assert None not in {statement.form for statement in recorded}


def test_scalars_and_storages_are_not_part_of_a_form(grid, recorded):
    other = grid.copy()
    recorded.clear()
    results = [grid + 1.0, other + 2.0, grid + 3.0]
    assert len(results) == 3
    assert len({statement.form for statement in recorded}) == 1


def test_equal_reductions_have_one_form(grid, recorded):
    results = [grid.sum(axis=0), grid.copy().sum(axis=0), grid.sum(axis=1), grid.max(axis=0)]
    assert len(results) == 4
    forms = [statement.form for statement in recorded if not isinstance(statement, Elementwise)]
    assert forms[0] == forms[1]
    assert len(set(forms)) == 3


def test_a_call_site_is_one_object(grid, recorded):
    for _ in range(3):
        grid + grid
    grid + grid
    sites = [statement.site for statement in recorded]
    assert sites[0] is sites[1] is sites[2]
    assert sites[3] is not sites[0]
    assert resolve(sites[3]).line == resolve(sites[0]).line + 1
    assert resolve(sites[0]).module == __name__


def test_slices_that_numpy_refuses_are_refused_after_equal_ones(grid):
    assert grid[1:3].shape == (2, 10)
    assert grid[1:3, 0:2].shape == (2, 2)
    assert grid[1].shape == (10,)
    for index in (slice(1.0, 3), (slice(1, 3), slice(0.0, 2))):
        with pytest.raises(TypeError, match="slice indices must be integers"):
            grid[index]
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        grid[::0]
    assert grid[True].shape == (1, 12, 10)  # a mask, although True == 1
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 12"):
        grid[12]
    with pytest.raises(IndexError, match="too many indices"):
        grid[1:3, 1:3, 1:3]


def test_indices_that_look_alike_are_told_apart():
    values = np.arange(6 * 6 * 6 * 2).reshape(6, 6, 6, 2)
    x = numpy_dist.asarray(values, split=0)
    for index in (slice(0, 5, 1), (0, 5, 1), (slice(0, 5, 1),), 0, (0,), -6, (slice(None), 3), (Ellipsis, 1)):
        for _ in range(2):
            assert x[index].shape == values[index].shape
            assert np.array_equal(x[index].gather(), values[index])


def test_slices_follow_the_flags_of_their_array(grid):
    assert grid[1:].flags.writeable
    grid.flags.writeable = False
    assert not grid[1:].flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        grid[1:] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        grid += 1.0
    grid.flags.writeable = True
    grid[1:] = 0.0
    assert grid[1:].flags.writeable
    assert np.array_equal(grid.gather()[1:], np.zeros((11, 10)))


def test_read_only_views_do_not_spoil_equal_writeable_ones():
    x = numpy_dist.asarray(np.ones((8, 6)), split=0)
    x.flags.writeable = False
    part = x[2:5]
    assert (part + 1).flags.writeable
    x.flags.writeable = True
    again = x[2:5]
    again += 1.0
    again[:] = again * 2
    assert np.array_equal(x.gather()[2:5], np.full((3, 6), 4.0))
    assert not part.flags.writeable


def test_a_result_is_writeable_though_its_plan_read_what_is_not():
    x = numpy_dist.asarray(np.ones((8, 6)), split=0)
    wide = np.broadcast_to(x[:1], (8, 6))
    for _ in range(2):
        z = wide + wide
        z[2:] += 1.0
        assert z.flags.writeable
        assert np.array_equal(z.gather()[1:3], np.array([[2.0] * 6, [3.0] * 6]))


def test_complex_values_warn_each_time_they_are_assigned():
    x, y = numpy_dist.asarray(np.ones(40), split=0), numpy_dist.asarray(np.full(40, 2j), split=0)
    for _ in range(2):
        with pytest.warns(np.exceptions.ComplexWarning):
            x[:] = y
    assert np.array_equal(x.gather(), np.zeros(40))


def test_integers_out_of_range_are_refused_after_others():
    x = numpy_dist.asarray(np.ones(40, np.int8), split=0)
    for value in (1, 2):
        assert (x + value).dtype == np.int8
        x[3:] = value
    with pytest.raises(OverflowError):
        x + 1000
    with pytest.raises(OverflowError):
        x[3:] = 1000


def test_the_error_state_is_asked_for_each_statement(recorded):
    x = numpy_dist.asarray(np.ones(40), split=0)
    x / x
    with np.errstate(divide="ignore"):
        x / x
    x / x
    assert [statement.errstate["divide"] for statement in recorded] == ["warn", "ignore", "warn"]


def test_filters_that_raise_are_noticed_however_they_are_set():
    x = numpy_dist.asarray(np.zeros(40), split=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x / x
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            x / x
        warnings.resetwarnings()
        warnings.filterwarnings("ignore", append=True)
        x / x
        engine.flush()
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("error", append=True)
        with pytest.raises(RuntimeWarning):
            x / x


def _helper(x):
    return x + x


def _other_helper(x):
    return _helper(x)


def test_a_helper_has_a_call_site_for_each_place_that_calls_it(grid, recorded):
    for _ in range(3):
        _helper(grid)
        _helper(grid)
        _other_helper(grid)
    sites = [statement.site for statement in recorded]
    assert sites[:3] == sites[3:6] == sites[6:]
    assert len(set(sites)) == 3
    assert len({resolve(site) for site in sites}) == 1


@pytest.mark.spmd(ranks=(1,))
def test_an_ndarray_is_updated_in_the_memory_of_the_only_rank() -> None:
    with numpy_dist.config(MIN_SHARD_BYTES=0, AT_ONCE=1, FALLBACK="silent"):
        values = np.arange(1.0, 61.0).reshape(6, 10)
        x = numpy_dist.asarray(values)
        x *= 2.0  # is pending, and comes first
        plain = np.ones((6, 10))
        plain += x
        recorded = engine.runtime().program.recorded
        plain -= x[2:3]
        plain = np.divide(plain, x, out=plain)
        assert engine.runtime().program.recorded == recorded
        np.testing.assert_array_equal(plain, (1 + 2 * values - 2 * values[2:3]) / (2 * values))
        with pytest.raises(ValueError, match="could not be broadcast together"):
            plain += x[:3]
        with pytest.raises(TypeError, match="Cannot cast ufunc"):
            np.add(plain, x, out=np.zeros((6, 10), int))
        x[...] = 0
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide") as caught:
            plain /= x
        assert [warning.filename for warning in caught] == [__file__]
