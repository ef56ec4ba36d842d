"""The pure part: any cuts give NumPy's samples and NumPy's state after the call."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numpy_dist.random import draws, split
from numpy_dist.random.streams import stream_of
from tests.random.harness import even_cuts, generate, same_state

DOUBLE, SINGLE = np.dtype("f8"), np.dtype("f4")
KINDS = [np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.MT19937]


def randint(high: int, dtype: str) -> draws.Draw:
    kind = np.dtype(dtype)
    return draws.randint(0, high, kind, lambda front, n: front.randint(0, high, n, kind))


GENERATOR = {
    "random f8": draws.random(DOUBLE),
    "random f4": draws.random(SINGLE),
    "uniform": draws.uniform(np.random.Generator, -1.0, 3.0),
    "standard_normal f8": draws.standard_normal(DOUBLE),
    "standard_normal f4": draws.standard_normal(SINGLE),
    "normal": draws.normal(2.0, 3.0),
    "standard_exponential f8": draws.standard_exponential(DOUBLE, "zig"),
    "standard_exponential f4": draws.standard_exponential(SINGLE, "zig"),
    "standard_exponential inv": draws.standard_exponential(DOUBLE, "inv"),
    "exponential": draws.exponential(3.0),
}
for dtype, highs in {
    "?": (0, 1),
    "i1": (0, 99, 127),
    "u1": (5, 254, 255),
    "i2": (999, 2**15 - 1),
    "u2": (40000, 65535),
    "i4": (999, 2**30 + 5),
    "u4": (3 << 30, 2**32 - 1),
    "i8": (999, 2**32 - 1, 3 << 60),
    "u8": (2**63 + 5, 2**64 - 1),
}.items():
    for high in highs:
        GENERATOR[f"integers {dtype} {high}"] = draws.integers(0, high, np.dtype(dtype), True)

LEGACY = {
    "random_sample": draws.legacy_random(),
    "uniform": draws.uniform(np.random.RandomState, -1.0, 3.0),
    "standard_normal": draws.legacy_normal(),
    "normal": draws.legacy_normal(2.0, 3.0),
    "randint bool": randint(2, "?"),
    "randint u1": randint(200, "u1"),
    "randint u1 full": randint(256, "u1"),
    "randint i2": randint(1000, "i2"),
    "randint i4": randint(77, "i4"),
    "randint i8": randint(1000, "i8"),
    "randint i8 power of two": randint(1024, "i8"),
    "randint i8 wide": randint(2**40, "i8"),
    "randint u8 wide": randint(2**63 + 5, "u8"),
}


def check(draw: draws.Draw, front: draws.Front, bit_generator: np.random.BitGenerator, cuts: list[int]) -> None:
    before = split.state_of(front)
    pieces, state = generate(draw, bit_generator, cuts)
    assert same_state(split.state_of(front), before)
    expected = draw.make(front, cuts[-1])
    for piece, start, stop in zip(pieces, cuts, cuts[1:], strict=False):
        assert piece.dtype == expected.dtype
        assert np.array_equal(piece, expected[start:stop])
    after = split.state_of(front)
    assert same_state(state, {key: after[key] for key in state})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", GENERATOR)
def test_generator(name, kind):
    for before, pieces in ((0, 3), (1, 7)):
        bit_generator = kind(7)
        generator = np.random.Generator(bit_generator)
        generator.random(before, dtype=np.float32)
        check(GENERATOR[name], generator, bit_generator, even_cuts(6007, pieces))


@pytest.mark.parametrize("name", LEGACY)
def test_legacy(name):
    state = np.random.RandomState(7)
    state.random_sample(5)
    for total, pieces in ((20001, 2), (6002, 5)):
        check(LEGACY[name], state, state._bit_generator, even_cuts(total, pieces))
        state.standard_normal(total % 2)  # hold no normal back


@pytest.mark.parametrize("pieces", [1, 2, 3, 5, 8, 13, 27, 40, 64])
@pytest.mark.parametrize("name", ["random f4", "standard_normal f8", "standard_normal f4", "integers i4 999",
                                  "integers u4 3221225472", "integers u1 5", "integers ? 1"])  # fmt: skip
def test_up_to_64_pieces(name, pieces):
    generator = np.random.default_rng(pieces)
    check(GENERATOR[name], generator, generator.bit_generator, even_cuts(64 * 200 + pieces, pieces))


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    name=st.sampled_from(sorted(GENERATOR)),
    kind=st.sampled_from(KINDS[:3]),
    cuts=st.lists(st.integers(0, 3000), min_size=1, max_size=9),
    before=st.integers(0, 5),
    seed=st.integers(0, 10**6),
)
def test_any_cuts(name, kind, cuts, before, seed):
    bit_generator = kind(seed)
    generator = np.random.Generator(bit_generator)
    generator.integers(0, 1 << 32, size=before, dtype=np.uint32)
    check(GENERATOR[name], generator, bit_generator, [0, *sorted(cuts), 3001])


def test_segments_fit_and_margins_suffice():
    draw, total, pieces = GENERATOR["standard_normal f8"], 2_000_000, 4
    stream, cuts = stream_of(np.random.PCG64(3), draw.unit), even_cuts(total, pieces)
    raw = split.raw_cuts(draw, cuts)
    place = np.empty(total // pieces)
    parsed = [split.speculate(draw, stream, a, b, place) for a, b in zip(raw, raw[1:], strict=False)]
    anchors = split.resolve([one.summary for one in parsed])
    assert len(anchors) == pieces + 1
    # A rank makes little more than its share.
    assert all(0 <= cut - anchor.sample < 5000 for cut, anchor in zip(cuts, anchors, strict=True))


@pytest.mark.parametrize("name", ["standard_normal f8", "integers u4 3221225472", "integers u1 5"])
def test_a_margin_that_does_not_suffice(monkeypatch, name):
    monkeypatch.setattr(split, "margin", lambda draw, units: -int(0.05 * units))
    generator = np.random.default_rng(1)
    check(GENERATOR[name], generator, generator.bit_generator, even_cuts(5000, 4))


@pytest.mark.parametrize("name", ["standard_normal f8", "integers u4 3221225472", "integers u1 5"])
def test_a_parse_that_is_wrong(monkeypatch, name):
    resolve = split.resolve

    def broken(summaries):
        return resolve([*summaries[:1], summaries[1]._replace(begin=summaries[1].begin + 1), *summaries[2:]])

    monkeypatch.setattr(split, "resolve", broken)
    generator = np.random.default_rng(1)
    check(GENERATOR[name], generator, generator.bit_generator, even_cuts(5000, 4))


def test_a_wrong_parse_of_pairs(monkeypatch):
    monkeypatch.setattr(split, "resolve", lambda summaries: [split.Anchor(0, 0)])
    state = np.random.RandomState(1)
    check(LEGACY["standard_normal"], state, state._bit_generator, [0, 1001, 2000, 3001])


@pytest.mark.parametrize("name", [name for name in GENERATOR if GENERATOR[name].accepted is not None])
def test_accepted_parts_are_numpys(name):
    draw = GENERATOR[name]
    count = split.accepted_in(draw, np.random.default_rng(2).integers(0, 1 << 32, 64, np.uint32))
    generator = np.random.default_rng(2)
    stream = stream_of(generator.bit_generator, "half")
    origin = generator.bit_generator.state
    draw.make(generator, count)
    assert stream.between(origin, generator.bit_generator.state, 64) <= 64
    generator = np.random.default_rng(2)
    draw.make(generator, count + 1)
    assert stream.between(origin, generator.bit_generator.state, 64) > 64
