"""Functions on blocks, with halos, along whole axes, and reductions: against NumPy, in many layouts."""

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.errors import OverrideError
from numpy_dist.spmd_testing import forbid_gathers, run_simulated, spmd
from tests.functions.harness import PRESENTATIONS

RANKS = (1, 2, 4)
MATRIX = np.random.default_rng(0).random((9, 7))


def on_ranks(function, ranks=RANKS):
    """Run at several numbers of ranks, with arrays in every layout, and without gathering."""

    def run():
        for way, present in PRESENTATIONS.items():
            x = present(MATRIX)
            with nd.config(FALLBACK="error"), forbid_gathers():
                result, expected = function(x)
            found = result.gather() if isinstance(result, nd.DistArray) else result
            np.testing.assert_allclose(found, expected, err_msg=f"{way} at {engine.runtime().size} ranks")

    for n in ranks:
        run_simulated(n, run)


# -- map_blocks ------------------------------------------------------------------------------------------------------


def test_blocks_of_every_layout():
    on_ranks(lambda x: (nd.map_blocks(lambda block: 2 * block, x), 2 * MATRIX))


def test_several_arrays_broadcast_and_scalars_are_handed_on():
    row = np.arange(7.0)
    on_ranks(lambda x: (nd.map_blocks(lambda a, b, c, d: a * b + c - d, x, row, x, 3), MATRIX * row + MATRIX - 3))
    on_ranks(lambda x: (nd.map_blocks(np.multiply, nd.asarray(row), x), MATRIX * row))


def test_lengths_may_change_along_every_axis():
    def rows(x):
        x = x.redistribute(split=0)
        return nd.map_blocks(lambda block: block[block[:, 0] > 0.5][:, ::2], x), MATRIX[MATRIX[:, 0] > 0.5][:, ::2]

    def both(x):
        return nd.map_blocks(lambda block: block.repeat(2, 0).repeat(3, 1), x), MATRIX.repeat(2, 0).repeat(3, 1)

    on_ranks(rows)
    on_ranks(both)


@spmd(1, 2, 4)
def test_the_place_of_a_block():
    x = nd.asarray(MATRIX)

    def indices(block, box):
        return sum(np.ix_(*(np.arange(lo, hi) for lo, hi in box)))

    assert np.array_equal(nd.map_blocks(indices, x).gather(), np.add.outer(np.arange(9), np.arange(7)))


@spmd(1, 3)
def test_blocks_cannot_be_written_to():
    x = nd.asarray(MATRIX)

    def overwrite(block):
        block[...] = 0
        return block

    with pytest.raises(ValueError, match="read-only"):
        nd.map_blocks(overwrite, x)
    assert np.array_equal(x.gather(), MATRIX)


@spmd(1, 2, 4)
def test_ranks_without_elements_are_not_asked_unless_none_has_any():
    lengths = []

    def note(block):
        lengths.append(len(block))
        return block

    nd.map_blocks(note, nd.asarray(np.arange(2.0)))
    assert 0 not in lengths
    made = nd.map_blocks(note, nd.asarray(np.zeros((0, 3), "f4")))
    assert made.shape == (0, 3) and made.dtype == "f4"


@spmd(2, 3)
def test_events_that_are_told_at_once():
    """Ranks tell each other of them: those that have no block, and one whose call fails, too."""

    def fails(block, box):
        if box[0][0] == 0:
            raise ZeroDivisionError("not here")
        return block

    with np.errstate(all="raise"):
        made = nd.map_blocks(lambda block: 2 * block, nd.asarray(np.ones((1, 7)), split=0))
        assert made.shape == (1, 7)
        with pytest.raises(ZeroDivisionError, match="not here"):
            nd.map_blocks(fails, nd.asarray(np.arange(12.0)))
        with pytest.raises(FloatingPointError, match="overflow"):
            nd.map_blocks(np.exp, nd.asarray(np.arange(0.0, 12000.0, 1000)))


@spmd(2, 3)
def test_an_error_on_one_rank_is_raised_on_all():
    x = nd.asarray(np.arange(12.0))

    def fails(block, box):
        if box[0][0]:
            raise ZeroDivisionError("not here")
        return block

    with pytest.raises(ZeroDivisionError, match="not here") as caught:
        nd.map_blocks(fails, x)
    assert "fails in map_blocks on the block of rank 1" in caught.value.__notes__[-1]


@spmd(2, 3)
def test_results_that_make_no_array_are_refused_on_every_rank():
    x = nd.asarray(np.arange(12.0))
    with pytest.raises(OverrideError, match=r"one dtype, and returned\n  rank 0: .*float64\n  rank 1: .*int"):
        nd.map_blocks(lambda block, box: block.astype(int) if box[0][0] else block, x)
    with pytest.raises(OverrideError, match="arrays of 1 axes"):
        nd.map_blocks(np.sum, x)
    with pytest.raises(OverrideError, match="str of Python objects|of Python objects"):
        nd.map_blocks(lambda block: block.astype(object), x)
    y = nd.asarray(MATRIX[:8]).redistribute(split=0)
    with pytest.raises(OverrideError, match="equal lengths along axis 1"):
        nd.map_blocks(lambda block, box: block[:, :2] if box[0][0] else block, y)


# -- map_overlap -----------------------------------------------------------------------------------------------------


def windows(block, below, above):
    """Sums over windows, of a widened array."""
    inner = [n - low - high for n, low, high in zip(block.shape, below, above, strict=True)]
    total = np.zeros(inner, block.dtype)
    for i in range(below[0] + above[0] + 1):
        for j in range(below[1] + above[1] + 1):
            total += block[i : i + inner[0], j : j + inner[1]]
    return total


@pytest.mark.parametrize("boundary", ["symmetric", "reflect", "edge", "wrap", "constant"])
@pytest.mark.parametrize("depth", [(2, 0), {1: (0, 3), -2: (1, 2)}, 12])
def test_halos_of_any_width_and_boundary(depth, boundary):
    pairs = {(2, 0): [(2, 2), (0, 0)], 12: [(12, 12)] * 2}
    width = pairs[depth] if not isinstance(depth, dict) else [(1, 2), (0, 3)]
    more = {"constant_values": 7} if boundary == "constant" else {}
    expected = windows(np.pad(MATRIX, width, mode=boundary, **more), *zip(*width, strict=True))

    def widened(x):
        made = nd.map_overlap(windows, x, depth, boundary, value=7, trim=False, **ends)
        return made, expected

    ends = dict(zip(("below", "above"), zip(*width, strict=True), strict=True))
    on_ranks(widened, ranks=(1, 4))


def test_what_was_added_is_cut_off():
    def gradient(block):
        return np.gradient(block, axis=0)

    on_ranks(lambda x: (nd.map_overlap(gradient, x, (1, 0), "none"), np.gradient(MATRIX, axis=0)))
    on_ranks(lambda x: (nd.map_overlap(lambda block: block + 1, x, 2, ["edge", "wrap"]), MATRIX + 1))


@spmd(1, 2, 4)
def test_only_halos_travel():
    x = nd.zeros((400, 6)).redistribute(split=0)
    engine.flush()
    x.comm.counters.reset()
    nd.map_overlap(lambda block: block, x, {0: 2}, "edge")
    assert x.comm.counters.messages <= 2
    assert x.comm.counters.bytes <= 2 * 2 * 6 * 8 + 1000


@spmd(1, 2)
def test_what_overlap_refuses():
    x = nd.asarray(MATRIX)
    for options, text in [
        ({"depth": -1}, "negative"),
        ({"depth": (1, 2, 3)}, "array of 2 axes"),
        ({"depth": {4: 1}}, "names an axis"),
        ({"depth": 1, "boundary": "mirror"}, "symmetric, reflect, edge"),
        ({"depth": 1, "boundary": ["edge"]}, "one for each axis"),
    ]:
        with pytest.raises(ValueError, match=text):
            nd.map_overlap(lambda block: block, x, **options)
    with pytest.raises(ValueError, match="no elements that could be continued"):
        nd.map_overlap(lambda block: block, nd.zeros((0, 3)), 1)
    with pytest.raises(OverrideError, match="the widened block's shape"):
        nd.map_overlap(lambda block: block[1:], x, 1)


# -- reductions ------------------------------------------------------------------------------------------------------


def test_reductions_over_every_axis():
    total = nd.reduction(np.sum, np.add)
    for axis in (None, 0, 1, -1, (0, 1)):
        on_ranks(lambda x, axis=axis: (total(x, axis), MATRIX.sum(axis)))


def test_results_of_any_kind_are_combined_in_the_order_of_the_ranks():
    text = nd.reduction(lambda block: [block.tolist()], lambda a, b: a + b, lambda parts: sum(parts, []))
    for n in RANKS:
        assert run_simulated(n, lambda: text(nd.arange(10))) == [list(range(10))] * n
    mean = nd.reduction(lambda b: (b.sum(), b.size), lambda a, b: (a[0] + b[0], a[1] + b[1]), lambda r: r[0] / r[1])
    on_ranks(lambda x: (mean(x), MATRIX.mean()))


def test_finish_of_arrays_and_what_reductions_refuse():
    root = nd.reduction(lambda block, axis: (block**2).sum(axis), np.add, np.sqrt)
    on_ranks(lambda x: (root(x, 0), np.sqrt((MATRIX**2).sum(0))))

    def ranks():
        x = nd.asarray(MATRIX)
        with pytest.raises(OverrideError, match="without axis"):
            nd.reduction(lambda block, axis: block, np.add)(x, 0)
        with pytest.raises(ZeroDivisionError):
            nd.reduction(lambda block: 1 / 0, np.add)(x)
        assert nd.reduction(np.size, np.add)(nd.zeros((0, 3))) == 0

    run_simulated(3, ranks)


@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("fails", ["combine", "finish"])
def test_what_one_rank_raises_as_it_combines_every_rank_raises(fails, axis):
    def ranks():
        x = nd.asarray(MATRIX)

        def combine(a, b):
            return a + b if fails != "combine" else lost(a)

        def finish(a):
            return a if fails != "finish" else lost(a)

        def lost(a):
            return {0: a, 2: a}[x.comm.rank]

        with pytest.raises(KeyError) as caught:
            nd.reduction(lambda block, axis=None: block.sum(axis), combine, finish)(x, axis)
        assert [f"{fails} in reduction on the block of rank 1" in note for note in caught.value.__notes__] == [True]
        return x.comm.allgather(x.comm.rank)

    assert run_simulated(3, ranks) == [[0, 1, 2]] * 3


# -- an axis that is whole -------------------------------------------------------------------------------------------


def test_functions_of_whole_rows():
    for axis in (0, 1, -1):
        flipped = nd.axis_local(lambda block, axis: np.cumsum(np.flip(block, axis), axis), axis)
        expected = np.cumsum(np.flip(MATRIX, axis), axis)
        on_ranks(lambda x, flipped=flipped, axis=axis, expected=expected: (flipped(x, axis), expected))


@spmd(2)
def test_one_axis_is_gathered_with_the_warning():
    rank = nd.axis_local(np.sort, 0)
    with pytest.warns(nd.FallbackWarning, match="no other axis that could be cut"):
        assert np.array_equal(rank(-nd.arange(5)).gather(), np.arange(-4, 1))


# -- element-wise ----------------------------------------------------------------------------------------------------


def soft(x, limit):
    if x > limit:
        return limit + (x - limit) / 2
    return x


def digits(x):
    return float(str(float(x))[:3])


def test_scalar_functions_are_compiled_and_fused():
    pytest.importorskip("numba")
    curve = nd.elementwise(soft)

    def run(x):
        before = engine.counters().loops
        made = curve(x + 1, 1.5) * 2
        total = made.sum()
        assert engine.counters().loops <= before + 1  # one pass: the sum, and what it sums
        assert np.isclose(total, 2 * np.vectorize(soft)(MATRIX + 1, 1.5).sum())
        return made, 2 * np.vectorize(soft)(MATRIX + 1, 1.5)

    on_ranks(run, ranks=(1, 3))
    assert np.allclose(curve(MATRIX, 0.5), np.vectorize(soft)(MATRIX, 0.5))


def test_what_numba_cannot_compile_runs_on_blocks():
    first = nd.elementwise(digits)
    on_ranks(lambda x: (first(x), np.vectorize(digits)(MATRIX)), ranks=(1, 4))
    assert np.array_equal(first(MATRIX), np.vectorize(digits)(MATRIX))
    whole = nd.elementwise(lambda block: block[:] + 1, arrays=True)
    on_ranks(lambda x: (whole(x), MATRIX + 1), ranks=(1, 4))
    assert nd.elementwise(digits, dtype="f4")(nd.asarray(MATRIX)).dtype == "f4"


@spmd(1, 2)
def test_ufuncs_stay_what_they_are_and_others_are_refused():
    assert nd.elementwise(np.sin) is np.sin
    with pytest.raises(TypeError, match="not 3"):
        nd.elementwise(3)
    with pytest.raises(TypeError, match="returned NoneType"):
        nd.elementwise(lambda x: print(end=""))(nd.asarray(MATRIX))


@spmd(1, 2, 3)
def test_hand_written_programs():
    """`local`, `layout`, `comm` and `from_local`: a ring of messages."""
    x = nd.arange(12.0)
    comm, mine = x.comm, np.ascontiguousarray(x.local)
    before, after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    ((start, stop),) = x.layout.box(before)
    received = np.empty(stop - start)
    comm.exchange([(after, mine)], [(before, received)])
    shifted = nd.from_local(received)
    assert sorted(shifted.gather()) == list(range(12))
    assert np.array_equal(x.redistribute(split=0).gather(), np.arange(12.0))


def test_shards_that_are_on_a_device():
    """Functions of authors get host arrays also where shards are elsewhere."""

    def ranks():
        x = nd.asarray(MATRIX)
        smooth = nd.map_overlap(lambda block: block + 1, x, 2, "wrap")
        doubled = nd.map_blocks(lambda block: 2 * block, smooth)
        np.testing.assert_allclose(doubled.gather(), 2 * (MATRIX + 1))
        np.testing.assert_allclose(nd.reduction(np.sum, np.add)(x, 0).gather(), MATRIX.sum(0))

    with nd.config(BACKEND="fake"):
        for n in (1, 3):
            run_simulated(n, ranks)
