"""Trees: states as JSON, and the same states again."""

from __future__ import annotations

import collections
import dataclasses
import enum
import json
import math
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.checkpoint.tree import decode, encode


@dataclasses.dataclass
class Particle:
    place: Any
    name: str = "x"
    made: int = dataclasses.field(init=False, default=3)


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: Any


@dataclasses.dataclass(frozen=True, slots=True)
class Farther(Point):
    y: Any = None


@dataclasses.dataclass
class Late:
    x: Any
    found: Any = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.twice = [self.x, self.x]


class Derived(Late):
    """Of a dataclass, and none itself."""


@dataclasses.dataclass
class Table(dict):
    name: str = ""


class OtherBits(np.random.PCG64):
    """Of a package that nobody has."""


class Colour(enum.Enum):
    RED = "red"


class Ways(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


Pair = collections.namedtuple("Pair", "left right")
STATES: list[Any] = [
    None,
    True,
    10**40,
    -0.0,
    "Zürich \U0001f600",
    b"\x00\xff",
    bytearray(b"x"),
    1 + 2j,
    [1, [2.5, (3, "a")], {4, 5}, frozenset("a")],
    {"a": 1, 2: "b", (3, None): {}},
    Particle([1], "y"),
    Point((1,)),
    Farther(1, Point(2)),
    1 << 20_000,
    -(1 << 20_000),
    Colour.RED,
    [Ways.READ, Ways.READ | Ways.WRITE, Ways(0)],
    Pair(1, [2]),
    np.float32(2.5),
    np.datetime64("2001-02-03"),
    np.bool_(True),
]


def again(state: Any) -> Any:
    tree, arrays = encode(state)
    return decode(json.loads(json.dumps(tree, sort_keys=True, allow_nan=False)), arrays)


@pytest.mark.parametrize("state", STATES, ids=lambda state: type(state).__name__)
def test_a_state_comes_back(state: Any) -> None:
    found = again(state)
    assert found == state and type(found) is type(state)
    assert type(state) is int or repr(found) == repr(state)  # of which Python may refuse to write the digits


def test_what_methods_of_a_dataclass_have_set_comes_back() -> None:
    state = [Late(1), Derived(2)]
    state[1].found = 3
    state[1].more = {4}
    found = again(state)
    assert [type(each) for each in found] == [Late, Derived]
    assert vars(found[0]) == {"x": 1, "twice": [1, 1]} and not hasattr(found[0], "found")
    assert vars(found[1]) == {"x": 2, "found": 3, "twice": [2, 2], "more": {4}}


def test_numbers_that_json_does_not_have() -> None:
    found = again([math.inf, -math.inf, math.nan, complex(math.nan, -math.inf)])
    assert repr(found) == "[inf, -inf, nan, (nan-infj)]"


def test_an_array_that_is_there_twice_is_one_array() -> None:
    x = np.arange(3)
    found = again({"a": x, "b": [x], "c": x.copy()})
    assert found["a"] is found["b"][0] and found["c"] is not found["a"]
    assert len(encode([x, x, nd.asarray(x)])[1]) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.random.default_rng(3),
        lambda: np.random.Generator(np.random.MT19937(3)),
        lambda: np.random.Generator(np.random.Philox(3)),
        lambda: np.random.Generator(np.random.SFC64([1, 2])),
        lambda: np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(np.arange(4)))),
        lambda: np.random.RandomState(3),
        lambda: np.random.RandomState(np.random.PCG64(3)),
        lambda: nd.random.RandomState(np.random.Philox(3)),
        lambda: nd.random.default_rng(3),
        lambda: nd.random.RandomState(3),
    ],
)
def test_generators_go_on(make: Any) -> None:
    generator = make()
    generator.normal(size=5)
    found = again(generator)
    assert type(found) is type(generator)
    ours, theirs = (nd.asarray(drawing.normal(size=7)).gather() for drawing in (found, generator))
    np.testing.assert_array_equal(ours, theirs)
    if hasattr(generator, "spawn"):
        generator.spawn(2)
        found = again(generator)
        assert found.spawn(1)[0].integers(1 << 60) == generator.spawn(1)[0].integers(1 << 60)


def test_what_draws_from_the_same_bits_does_so_again() -> None:
    generator, other = np.random.default_rng(3), np.random.default_rng(3)
    bits = generator.bit_generator
    state = [generator, bits, [generator, other], np.random.Generator(bits), np.random.Philox(4)]
    found = again(state)
    assert found[0] is found[2][0] and found[0].bit_generator is found[1] is found[3].bit_generator
    assert found[2][1].bit_generator is not found[1]
    for ours, theirs in ((found[0], generator), (found[3], generator), (found[2][1], other)):
        assert ours.random() == theirs.random()
    assert found[4].random_raw() == state[4].random_raw() and again(bits).random_raw() == bits.random_raw()


def test_classes_that_would_not_be_found_again() -> None:
    @dataclasses.dataclass
    class Local:
        x: int

    local = collections.namedtuple("Nowhere", "x")
    for state in (Local(1), local(1), enum.Enum("Nothing", "A").A):
        with pytest.raises(TypeError, match=r"^state is a .*could not be restored"):
            encode(state)
    with pytest.raises(TypeError, match=r"^state is a builtins\.type"):
        encode(Particle)


def test_bits_that_would_not_be_found_again() -> None:
    class Local(np.random.Generator):
        pass

    bits = np.random.PCG64(3)
    for state, reason in (
        (Local(bits), "could not be restored"),
        (np.random.Generator(OtherBits(3)), r"draws from a .*:OtherBits"),
        (
            [np.random.Generator(bits), np.random.RandomState(bits)],
            r"state\[1\] and what came before it",
        ),
        ([np.random.RandomState(bits), bits], r"state\[1\] and what came before it draw from the same bits"),
    ):
        with pytest.raises(TypeError, match=reason):
            encode(state)


def test_what_has_no_end_is_named() -> None:
    endless: list[Any] = [1]
    endless.append({"a": (endless,)})
    with pytest.raises(TypeError, match=r"^state\[1\]\['a'\]\[0\] lies within itself"):
        encode(endless)
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(TypeError, match="nested too deeply"):
        encode(deep)
    twice = [1]
    assert again([twice, [twice], twice]) == [[1], [[1]], [1]]


class Other:
    """Of no kind that can be saved."""


@pytest.mark.parametrize(
    ("state", "place"),
    [
        ([1, Other()], "state[1] is a"),
        ({"a": Particle(lambda: 1)}, "state['a'].place is a"),
        ({Other(): 1}, "state's keys is a"),
        ([np.array([None])], "state[0] is an array of object"),
        ([np.ma.array([1])], "state[0] is a"),
        ([collections.OrderedDict()], "state[0] is a"),
        ([collections.defaultdict(list)], "state[0] is a collections.defaultdict"),
        ({"a": collections.deque()}, "state['a'] is a collections.deque"),
        (Table("x"), "state is a"),
        ([np.array(["a"], np.dtypes.StringDType())], "state[0] is an array of StringDType"),
        ([np.zeros(2, {"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 0]})], "state[0] is an array of"),
    ],
)
def test_what_cannot_be_saved_is_named(state: Any, place: str) -> None:
    with pytest.raises(TypeError) as caught:
        encode(state)
    assert str(caught.value).startswith(place)


def test_classes_are_not_imported_by_a_file() -> None:
    for name in ("fractions_of_nobody:Thing", f"{__name__}:Nothing", f"{__name__}:STATES"):
        with pytest.raises(ValueError, match="a checkpoint has a"):
            decode({"dataclass": [name, []]}, [])
