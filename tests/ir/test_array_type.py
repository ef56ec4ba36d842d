"""`numpy_dist.ndarray`: what is an instance of it, what derives from it, and what a view of that type is."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pytest

import numpy_dist as nd

LARGE = 100_000


class Named(nd.ndarray):
    """A subclass as NumPy's documentation has it."""

    def __new__(cls, data, name=None):
        made = np.asarray(data).view(cls)
        made.name = name
        return made

    def __array_finalize__(self, obj):
        super().__array_finalize__(obj)
        self.name = getattr(obj, "name", None)


def test_instances():
    whole = nd.arange(float(LARGE))
    for array in (whole, whole[3:8], nd.zeros(3), np.zeros(3), np.ma.array([1])):
        assert isinstance(array, nd.ndarray), type(array)
    for other in (3.0, np.float64(3), [1], "text", None, np.zeros):
        assert not isinstance(other, nd.ndarray), other
    assert issubclass(nd.DistArray, nd.ndarray) and issubclass(np.recarray, nd.ndarray)
    assert not issubclass(int, nd.ndarray)


def test_programs_that_look_at_types():
    @functools.singledispatch
    def kind(x):
        return "other"

    kind.register(nd.ndarray)(lambda x: "array")
    assert [kind(x) for x in (nd.ones(LARGE), np.ones(2), 1)] == ["array", "array", "other"]
    match nd.ones(LARGE):
        case nd.ndarray(shape=shape):
            assert shape == (LARGE,)
        case _:
            pytest.fail("no pattern of that type fits")
    assert pickle.loads(pickle.dumps(nd.ndarray)) is nd.ndarray
    assert isinstance(nd.distribute(lambda: np.ndarray)(), type)
    assert nd.distribute(lambda: isinstance(np.ones(LARGE), np.ndarray))()


def test_subclasses_are_numpys():
    made = Named([1, 2, 3], "n")
    assert Named.__mro__[1] is np.ndarray and type(Named) is type
    assert made.name == made[1:].name == "n" and isinstance(made, nd.ndarray)
    assert type(nd.ndarray((2, 3))) is np.ndarray
    assert nd.ndarray.sum(np.arange(4)) == 6


def test_views_of_that_type():
    whole, theirs = nd.arange(float(LARGE)), np.arange(float(LARGE))
    view = whole.view(nd.ndarray)
    view[0] = 5.0
    assert type(view) is nd.DistArray and whole[0] == 5.0
    assert type(whole.view(type=nd.ndarray)) is nd.DistArray
    plain = theirs.view(nd.ndarray)
    assert repr(plain[:2]) == "array([0., 1.])"
    with nd.config(FALLBACK="error"):
        for made in (whole + plain, plain + whole, np.where(plain > 1, whole, plain)):
            assert type(made) is nd.DistArray
    with pytest.raises(nd.UnsupportedError):
        whole.view(Named)
