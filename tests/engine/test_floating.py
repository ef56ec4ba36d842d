"""Floating-point events are reported as NumPy reports them, at the user's line, on every rank."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.engine.events import reporting
from numpy_dist.layout.layout import Copies, Cut, Layout
from numpy_dist.layout.mesh import Mesh

pytestmark = pytest.mark.spmd


def _values() -> np.ndarray:
    values = np.ones(40)
    values[37] = 0.0  # in the last rank's shard only
    return values


def _caught(function) -> list:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [w for w in caught if issubclass(w.category, RuntimeWarning)]


def test_a_warning_names_the_recorded_line():
    x = numpy_dist.asarray(_values())

    def work():
        y = 1 / x
        z = y + 1
        z.gather()

    found = _caught(work)
    assert [str(w.message) for w in found] == ["divide by zero encountered in divide"]
    assert found[0].filename == __file__
    assert found[0].lineno == work.__code__.co_firstlineno + 1


def test_errstate_is_that_of_the_statement():
    x = numpy_dist.asarray(_values())

    def work():
        with np.errstate(all="ignore"):
            y = 1 / x
        y.gather()

    assert _caught(work) == []


def test_raise_raises_at_once_on_every_rank():
    x = numpy_dist.asarray(_values())
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
        1 / x
    assert np.array_equal((x + 1).gather(), _values() + 1)


def test_an_error_leaves_outputs_written_that_the_statement_itself_cannot_write():
    x = numpy_dist.asarray(np.full((8, 8), 1e200)).redistribute(mesh=(1, engine.runtime().size))
    flat = x.reshape(-1)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow encountered in multiply"):
        np.multiply(flat, flat, out=flat)
    assert np.array_equal(x.gather(), np.full((8, 8), np.inf))
    by_rows = numpy_dist.asarray(np.zeros((8, 8))).redistribute(split=0)
    by_columns = numpy_dist.asarray(np.zeros((8, 8))).redistribute(split=1)
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError, match="invalid value encountered in divmod"):
        np.divmod(x, x, out=(by_rows, by_columns))
    expected = np.full((8, 8), np.nan)
    assert np.array_equal(by_rows.gather(), expected, equal_nan=True)
    assert np.array_equal(by_columns.gather(), expected, equal_nan=True)


def test_call_calls():
    x = numpy_dist.asarray(_values())
    seen = []
    with np.errstate(divide="call", call=lambda kind, flag: seen.append((kind, flag))):
        1 / x
    expected = []
    with np.errstate(divide="call", call=lambda kind, flag: expected.append((kind, flag))):
        1 / _values()
    assert seen == expected


def test_call_is_given_all_that_a_statement_met():
    values = np.array([1e300, 1e-300] * 30)

    def seen(x):
        seen = []
        with np.errstate(all="call", call=lambda kind, flag: seen.append((kind, flag))):
            x * values
            x * 1e300
        return seen

    assert seen(numpy_dist.asarray(values)) == seen(values) == [("overflow", 6), ("underflow", 6), ("overflow", 2)]


@pytest.mark.parametrize("how", ["call", "log"])
def test_nothing_to_call_or_to_write_to(how):
    def said(x):
        with np.errstate(all=how, call=None), pytest.raises(NameError) as raised:
            1 / x
        return str(raised.value)

    assert said(numpy_dist.asarray(_values())) == said(_values())


def test_warnings_that_are_errors_are_raised_by_the_call():
    x = numpy_dist.asarray(_values())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="divide by zero"):
            1 / x


@pytest.mark.parametrize(
    "work", [lambda x: np.sqrt(x - 2), lambda x: np.log(x), lambda x: np.exp(x * 1000), lambda x: x // 0]
)
def test_messages_are_numpys(work):
    expected = [str(w.message) for w in _caught(lambda: work(_values()))]
    x = numpy_dist.asarray(_values())
    assert [str(w.message) for w in _caught(lambda: work(x).gather())] == expected


def test_integers_to_negative_powers_raise_on_every_rank():
    values = np.arange(30)
    exponents = np.ones(30, int)
    exponents[-1] = -1
    x, y = numpy_dist.asarray(values), numpy_dist.asarray(exponents)
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
        x**y
    assert np.array_equal((x + y).gather(), values + exponents)
    assert engine.counters().gathers >= 0


def test_a_reduction_raises_too():
    values = np.ones(40)
    values[37], values[38] = np.inf, -np.inf
    x = numpy_dist.asarray(values)
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError, match="invalid value encountered in reduce"):
        np.add.reduce(x)


def _flush() -> None:
    """Execute what is pending, and tell of its events."""
    engine.flush()
    engine.runtime().events.tell()


def test_filters_are_those_of_the_statement():
    x = numpy_dist.asarray(_values())
    with warnings.catch_warnings(record=True) as outside, engine.lazily_recorded():
        warnings.simplefilter("always")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ignored = 1 / x
        told = 2 / x
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert len(engine.runtime().program.pending) == 2
            told.gather()
        ignored.gather()
    assert [w.lineno for w in outside] == [_line_of("told = 2 / x")]


def _line_of(text: str) -> int:
    with open(__file__) as file:
        return next(number for number, line in enumerate(file, 1) if line.strip() == text)


def test_ignored_events_raise_nothing_where_warnings_are_errors():
    x = numpy_dist.asarray(_values())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = 1 / x
        assert float(y[37]) == np.inf


def test_a_recorder_can_be_read_after_the_statement():
    x = numpy_dist.asarray(_values())
    y = x - 1
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        np.log(x)
        assert [str(w.message) for w in told] == ["divide by zero encountered in log"]
        np.sqrt(y)
        assert len(told) == 2
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
        1 / x


def test_nothing_runs_at_once_where_a_recorder_will_hear_of_nothing():
    x = numpy_dist.asarray(_values())
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("ignore")
        y = 1 / x
        assert len(engine.runtime().program.pending) == 1
    assert float(y[0]) == 1


def test_statements_under_test_stay_pending():
    x = numpy_dist.asarray(_values())
    y = x + 1
    assert len(engine.runtime().program.pending) == 1
    assert float(y[37]) == 1


def test_a_recorder_that_is_read_late_gets_its_own_warnings():
    x = numpy_dist.asarray(_values())
    with warnings.catch_warnings(record=True) as told, engine.lazily_recorded():
        warnings.simplefilter("always")
        y = 1 / x
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        assert float(y[37]) == np.inf
    assert ([str(w.message) for w in told], others) == (["divide by zero encountered in divide"], [])


@pytest.mark.parametrize(
    "filters",
    [
        {"message": "divide by zero"},
        {"message": ".*encountered in divide"},
        {"category": RuntimeWarning},
        {"module": __name__.replace(".", r"\.")},
    ],
    ids=str,
)
def test_filters_that_make_errors_raise_in_the_call(filters):
    x = numpy_dist.asarray(_values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", **filters)
        with pytest.raises(RuntimeWarning, match="divide by zero encountered in divide"):
            1 / x
        y = np.sqrt(x)  # other statements go on
    assert np.array_equal(y.gather(), np.sqrt(_values()))


def test_filters_that_concern_others_leave_statements_pending():
    x = numpy_dist.asarray(_values())
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        y = x + 1
        assert len(engine.runtime().program.pending) == 1
    assert float(y[0]) == 2


def test_a_reduction_whose_warning_is_an_error_leaves_the_ranks_together():
    values = np.ones(40)
    values[37], values[38] = np.inf, -np.inf
    x = numpy_dist.asarray(values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = x[:30] + 1
        with pytest.raises(RuntimeWarning, match="invalid value encountered in reduce"):
            x.sum()
    assert float(y.sum()) == 60
    assert float(x[:37].sum()) == 37


def test_complex_numbers_cast_to_real_ones_raise_before_anything_is_computed():
    values = np.arange(12) * (1 + 1j)
    x, out = numpy_dist.asarray(values), numpy_dist.asarray(np.zeros(12, int))
    calls = [
        lambda: np.add(x, x, out=out, casting="unsafe"),
        lambda: np.add(x, x, dtype=float, casting="unsafe"),
        lambda: np.sum(x, dtype=float),
        lambda: x.astype(float),
        lambda: np.concatenate([x, x], dtype=float, casting="unsafe"),
    ]
    for call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(np.exceptions.ComplexWarning, match="discards the imaginary part"):
                call()
    assert np.array_equal(out.gather(), np.zeros(12, int))
    found = _caught(lambda: [np.asarray(engine.gather(call())) for call in calls if call is not calls[2]])
    assert {w.filename for w in found} == {__file__}
    assert np.array_equal(out.gather(), 2 * np.arange(12))


def test_results_that_nobody_reads_have_events():
    x = numpy_dist.asarray(_values())

    def work() -> None:
        1 / x
        np.log(x)
        _flush()

    with warnings.catch_warnings(record=True) as found, engine.lazily_recorded():
        warnings.simplefilter("always")
        work()
    assert [str(w.message) for w in found] == [f"divide by zero encountered in {name}" for name in ("divide", "log")]


def test_a_line_warns_once_by_default():
    x = numpy_dist.asarray(_values())

    def work(x) -> list:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("default")
            for _ in range(3):
                1 / x
            1 / x
        return [w.lineno for w in found]

    assert work(x) == work(_values())
    assert len(work(x)) == 2


def test_a_function_that_shows_warnings_is_that_of_the_statement(monkeypatch):
    x = numpy_dist.asarray(_values())
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        shown = []
        monkeypatch.setattr(warnings, "showwarning", lambda message, *rest: shown.append(str(message)))
        y = 1 / x
        assert not shown
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert float(y[0]) == 1
        _flush()
    assert shown == ["divide by zero encountered in divide"]


def test_shapes_are_refused_before_casts_warn() -> None:
    with numpy_dist.config(MIN_SHARD_BYTES=0):
        x, out = numpy_dist.asarray(np.zeros(0, complex)), numpy_dist.asarray(np.zeros(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="operands could not be broadcast together"):
            np.minimum(x, x, out=out, casting="unsafe")


def test_fill_tells_events_at_the_users_line():
    def said(x):
        return [(str(w.message), w.filename, w.lineno) for w in _caught(lambda: x.fill(1e39))]

    with numpy_dist.config(MIN_SHARD_BYTES=1000):
        assert said(numpy_dist.asarray(np.zeros(5, "f4"))) == said(np.zeros(5, "f4")) != []


def test_the_cast_of_a_product_that_one_rank_has_is_told_to_all() -> None:
    numbers = np.full(9, 300.0, np.float16)
    layout = Layout((9,), Mesh((1, engine.runtime().size)), (Cut(0, (0, 9)), Copies()))

    def work() -> None:
        with numpy_dist.config(MIN_SHARD_BYTES=1 << 18):
            np.dot(engine.from_global(numbers, layout), engine.replicated(numbers))
        engine.runtime().events.tell()

    assert [str(w.message) for w in _caught(work)] == ["overflow encountered in dot"]


def test_filters_that_change_again_and_again_are_not_all_kept(monkeypatch):
    monkeypatch.setattr(reporting, "MOST_FILTERS", 4)
    events = reporting.EventReports(engine.runtime())
    with warnings.catch_warnings():
        for number in range(12):
            warnings.filterwarnings("ignore", message=f"no message says {number}")
            events.look()
            assert list(events._numbered) == list(range(max(0, number - 2), number + 2))
