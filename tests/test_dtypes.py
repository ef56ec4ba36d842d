"""Arrays of every dtype, and of as many dimensions as NumPy has, behave as NumPy's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.spmd_testing import run_simulated

from .distarray.oracle import assert_same, outcome

rng = np.random.default_rng(5)
SHAPE = (6, 5)
WORDS = ["ash", "Birch", "cedar", "elm 7", "", "  fir"]
NUMBERS = "? b B h H i I l L e f d g F D G >i4 >f8".split()
TIMES = "M8[s] M8[D] M8[ns] m8[ms] m8[D]".split()
TEXTS = ["S5", "U7", np.dtypes.StringDType(), np.dtypes.StringDType(na_object=np.nan)]
RECORDS = [np.dtype([("x", "f4"), ("y", "i8", (2,))]), np.dtype([("p", [("a", "i2"), ("b", "f8")]), ("q", "S3")])]
OTHERS = ["O", "V8"]

EVERYWHERE = [
    "a[1:]", "a[::-1, 1]", "a[:0]", "a.T.copy()", "a.T.copy('F')", "a.reshape(-1)", "a[[0, 2]]", "a[a == a[0]]",
    "a == a[::-1]", "a != a[0]", "a.copy()", "a[...]", "np.zeros_like(a)", "np.ones_like(a)", "np.empty_like(a).dtype",
    "a[2, 3]", "a[2, 3, ...]", "repr(a)", "str(a[0])", "np.concatenate([a, a[:1]])", "np.stack([a, a], 1)",
    "np.tile(a, (2, 1))", "np.roll(a, 1)", "np.take(a, [1, 2], axis=0)", "np.repeat(a, 2)", "np.array_split(a, 4)",
    "np.broadcast_to(a, (2, 6, 5))", "np.flip(a)", "np.array_equal(a, a)", "a.astype(a.dtype)", "len(a)", "a.dtype",
    "a.itemsize", "a.conj()", "np.delete(a, 1, 0)", "np.expand_dims(a, 1)", "np.where(a == a[0], a, a[1])",
    "np.full_like(a, a[0, 0])", "a.tobytes() if a.dtype.kind not in 'OT' else 0",
]  # fmt: skip
ORDERED = [
    "np.sort(a)", "np.sort(a, None)", "a.max() if a.dtype.kind not in 'SU' else 0", "np.unique(a)", "a < a[0, 1]",
    "np.searchsorted(np.sort(a, None), a[0])", "np.sort(np.partition(a, 2)[:, :3], 1)", "np.isin(a, a[0])",
    "a.argmin() if a.dtype.kind != 'T' else 0",
]  # fmt: skip
NUMERIC = [
    "a + 0", "a * 2", "a / 2", "-a", "a.sum()", "a.sum(0)", "a.mean(1)", "a.cumsum(1)", "a.any()", "np.nonzero(a)",
    "np.count_nonzero(a)", "a.real", "a.imag", "np.isfinite(a)", "np.add.outer(a[0], a[1])", "np.diff(a)", "a @ a.T",
    "a.astype('f4')", "a.astype('c16')", "a.astype(str)", "a.astype('O')", "a.byteswap()", "a.item(3)", "a.tolist()",
    "np.clip(a, a[0, 0], a[0, 0])", "a.view('u1') if a.dtype != bool else 0", "a % 3", "a // 2", "a ** 2", "a & a",
]  # fmt: skip
TEMPORAL = [
    "a - a[0]", "a.view('i8')", "np.isnat(a)", "np.diff(a)", "a + np.timedelta64(3, 'h')", "a.sum()", "a.mean()",
    "a.astype('i8')", "a.astype('M8[h]')", "a.tolist()", "np.count_nonzero(a)", "a.cumsum(0)", "a.astype(str)", "a * 2",
    "np.add.accumulate(a)", "np.dot(a[0], a[1])",
]  # fmt: skip
TEXTUAL = [
    "np.strings.str_len(a)", "np.char.upper(a)", "a + a", "np.strings.find(a, 'e')", "a.astype(object)", "a.tolist()",
    "np.strings.add(a, a[0])", "np.nonzero(a)", "np.strings.strip(a)",
]  # fmt: skip
RECORDED = [
    "a['x']", "a['y'][:, 1]", "a[['x']]", "a['p']['b']", "a['q'] == b'3'", "np.count_nonzero(a)", "np.nonzero(a)",
    "len(a.tolist()[0][0])", "np.lib.recfunctions.structured_to_unstructured(a['p'])",
]  # fmt: skip
CHANGING = [
    "a.fill(a[1, 1])", "a.__setitem__(slice(None), a[0])", "a.__setitem__((0, 0), a[1, 1])",
    "a.__setitem__(a == a[1, 1], a[0, 0])", "a.__setitem__([0, 1], a[2])", "np.copyto(a, a[::-1])",
    "a[1:].__setitem__(slice(None), a[:-1])",
]  # fmt: skip


def values(dtype):
    dtype = np.dtype(dtype)
    kind = dtype.kind
    if kind in "SUT":
        return rng.choice(WORDS, SHAPE).astype(dtype)
    if dtype.names:
        made = np.empty(SHAPE, dtype)
        for name in dtype.names:
            made[name] = values(dtype[name].base)[(..., *(None,) * len(dtype[name].shape))]
        return made
    if kind == "V":
        return np.arange(30.0).reshape(SHAPE).view(dtype)
    whole = rng.integers(0, 9, SHAPE)
    if kind in "fc":
        return (whole / 4 - (1j if kind == "c" else 1)).astype(dtype)
    return whole.astype("i8" if kind in "mM" else dtype).astype(dtype)


def expressions(dtype):
    kind = np.dtype(dtype).kind
    extra = {"m": TEMPORAL, "M": TEMPORAL, "S": TEXTUAL, "U": TEXTUAL, "T": TEXTUAL, "V": RECORDED}.get(kind, NUMERIC)
    return [*EVERYWHERE, *CHANGING, *extra, *(ORDERED if kind not in "VO" else [])]


def compare(expressions, a, ranks):
    """All expressions in one run: what differs from NumPy, on rank 0."""
    bodies = [eval(f"lambda a: {text}", {"np": np}) for text in expressions]

    def body():
        found = []
        for text, function in zip(expressions, bodies, strict=True):
            with nd.config(MIN_SHARD_BYTES=0, FALLBACK="silent"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs, after = outcome(function, [a.copy()])
                ours, changed = outcome(function, [nd.asarray(a)])
                try:
                    assert_same(ours, theirs, text)
                    assert_same(changed[0], after[0], f"the argument of {text}")
                except Exception as error:
                    found.append(f"{text}: {error!r:.300}")
        return found

    assert run_simulated(ranks, body)[0] == []


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [*NUMBERS, *TIMES, *TEXTS, *RECORDS, *OTHERS], ids=str)
def test_dtype(dtype):
    compare(expressions(dtype), values(dtype), 3)


def test_what_cannot_be_sharded_is_replicated():
    def body():
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            for dtype in ("O", np.dtypes.StringDType()):
                a = nd.asarray(values(dtype))
                assert a.layout is None or a.layout.is_replicated
                assert type(a + a) is nd.DistArray
            a = nd.asarray(values("f8"))
            for make in (
                lambda: a.astype("O"),
                lambda: np.array(a, dtype="O", like=a),
                lambda: np.concatenate([a, a], dtype="O"),
            ):
                with pytest.raises(nd.FallbackError, match="dtype object"):
                    make()
        with nd.config(MIN_SHARD_BYTES=0), pytest.warns(nd.FallbackWarning, match="object"):
            assert (nd.asarray(values("f8")).astype("O") + 1).dtype == "O"

    run_simulated(2, body)


MANY = [
    "a + 1", "a * a[:1]", "a.sum()", "a.sum(axis=tuple(range(30)))", "a.T", "a.reshape(-1)", "a.squeeze()", "a[0]",
    "a[..., 0]", "a[None]", "a.copy()", "np.moveaxis(a, 0, -1)", "np.flip(a)", "np.concatenate([a, a], axis=3)",
    "np.stack([a, a])", "a[a > 3]", "np.sort(a, axis=0)", "np.cumsum(a, axis=-1)", "np.where(a > 2, a, a[:1])",
    "a.argmax()", "a.var(axis=0)", "np.nonzero(a)", "repr(a)", "np.take(a, [0], axis=2)", "np.repeat(a, 2, axis=1)",
    "np.tile(a, 2)", "np.swapaxes(a, 0, 63)", "np.broadcast_to(a, (3, *a.shape))", "a.__setitem__(..., a[::-1])",
    "np.median(a)", "np.add(a, a[..., :1], out=a)", "a == a[:1]",
]  # fmt: skip


@pytest.mark.parametrize("shape", [(4, 1, 3, *(1,) * 58, 2, 1, 5), (*(1,) * 62, 7, 3), (2,) * 6 + (1,) * 58], ids=len)
def test_64_dimensions(shape):
    a = np.arange(np.prod(shape), dtype=float).reshape(shape)
    compare(MANY, a, 2)
