"""Code to bind, as users write it: it does not mention numpy_dist."""

import enum
import functools
from dataclasses import dataclass

import numpy
import numpy as np
import numpy.random as npr
from numpy import arange, linalg
from numpy import zeros as nothing

STEPS = 3
TABLE = np.arange(4)


def ramp(n):
    return np.arange(n) / n


def helper(n):
    return nothing(n) + arange(n) + STEPS


def calls_helper(n):
    return helper(n) * 2


def even(n):
    return np.zeros(1) if n == 0 else odd(n - 1)


def odd(n):
    return even(n - 1)


def inner(n):
    def body(k):
        return np.ones(k)

    return [body(i) for i in range(1, n)] + [(lambda: numpy.full(2, 1))()]


def maker(n):
    base = np.ones(n)

    def add(k):
        return base + np.arange(n) + k

    return add


closure = maker(3)


def imports_inside(n):
    import numpy as inner_np
    import numpy.linalg as la
    from numpy import ones
    from numpy.random import rand

    return inner_np.zeros(n), ones(n), rand, la.norm(ones(4))


def logged(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)

    return wrapper


@logged
def decorated(n):
    return np.zeros(n)


@functools.lru_cache(maxsize=4)
def cached(n):
    return np.zeros(n)


partial = functools.partial(ramp, 4)


def default(n, make=np.zeros, *, other=np.ones):
    return make(n) + other(n)


def begins_with_asarray(x):
    x = np.asarray(x)
    return np.linalg.norm(x) + linalg.norm(x), x


def random(n):
    return npr.rand, np.random.rand


def generator(n):
    for i in range(n):
        yield np.full(2, i)


class Grid:
    scale = 2

    def __init__(self, n):
        self.values = np.zeros(n)

    @classmethod
    def made(cls, n):
        return cls(n)

    @staticmethod
    def line(n):
        return np.ones(n)

    @property
    def doubled(self):
        return self.values * 2 + np.ones(len(self.values))


class Finer(Grid):
    def __init__(self, n):
        super().__init__(2 * n)


@dataclass
class Settings:
    n: int = 3


class Colour(enum.Enum):
    RED = 1

    def values(self):
        return np.zeros(3)


def uses_classes(n):
    assert isinstance(Settings(), Settings) and Colour.RED is Colour(1)
    return Grid.made(n).values, Grid.line(n), Grid(n).doubled, Finer(n).values


def annotated(n: int = 3) -> "np.ndarray":
    """Doc."""
    global COUNT
    COUNT = n
    return np.zeros(COUNT)


annotated.mark = "kept"
