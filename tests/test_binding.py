"""`distribute` binds a copy of the user's code to our namespace, and leaves the original alone."""

from __future__ import annotations

import types

import numpy as np
import pytest

import numpy_dist as nd

from . import binding_examples as examples


def is_ours(x):
    return isinstance(x, nd.DistArray)


@pytest.mark.parametrize(
    "name", ["ramp", "helper", "calls_helper", "closure", "decorated", "cached", "default", "annotated"]
)
def test_functions(name):
    original = getattr(examples, name)
    bound = nd.distribute(original)
    assert is_ours(bound(4))
    assert type(original(4)) is np.ndarray
    np.testing.assert_array_equal(bound(4).gather(), original(4))


def test_what_a_copy_keeps():
    bound = nd.distribute(examples.annotated)
    assert (
        bound.__doc__ == "Doc."
        and bound.mark == "kept"
        and bound.__annotations__
        and bound.__module__ == examples.__name__
    )
    examples.COUNT = 0
    bound(2)
    assert examples.COUNT == 0
    assert nd.distribute(examples.cached).cache_parameters()["maxsize"] == 4


def test_recursion_inner_functions_and_generators():
    assert is_ours(nd.distribute(examples.even)(4))
    assert all(map(is_ours, nd.distribute(examples.inner)(4)))
    assert all(map(is_ours, nd.distribute(examples.generator)(3)))
    assert is_ours(nd.distribute(examples.partial)())
    assert is_ours(nd.distribute(lambda: np.zeros(3))())


def test_imports_inside_of_functions():
    zeros, ones, rand, norm = nd.distribute(examples.imports_inside)(3)
    assert is_ours(zeros) and is_ours(ones) and rand is nd.random.rand and norm == 2
    zeros, _, rand, _ = examples.imports_inside(3)
    assert type(zeros) is np.ndarray and rand is np.random.rand


def test_code_that_begins_with_asarray():
    norm, x = nd.distribute(examples.begins_with_asarray)(np.arange(3.0))
    assert is_ours(x) and norm == 2 * np.sqrt(5)
    y = nd.arange(10**5)
    assert nd.distribute(examples.begins_with_asarray)(y)[1] is y


def test_random():
    assert nd.distribute(examples.random)(1) == (nd.random.rand, nd.random.rand)


def test_classes():
    assert all(map(is_ours, nd.distribute(examples.uses_classes)(3)))
    grid = nd.distribute(examples.Grid)
    assert is_ours(grid(3).values) and issubclass(grid, examples.Grid) and grid.scale == 2
    assert type(examples.Grid(3).values) is np.ndarray


def test_methods_of_objects():
    grid = examples.Grid(3)
    bound = nd.distribute(grid.__init__)
    bound(2)
    assert is_ours(grid.values)


def test_modules():
    bound = nd.distribute(examples)
    assert isinstance(bound, types.ModuleType) and bound is not examples and bound.__name__ == examples.__name__
    assert bound.np is nd and bound.numpy is nd and bound.npr is nd.random and bound.nothing is nd.zeros
    assert is_ours(bound.calls_helper(3)) and is_ours(bound.Grid(2).values) and is_ours(bound.closure(1))
    assert bound.Settings is examples.Settings and bound.Colour is examples.Colour
    bound.STEPS = 100
    assert bound.helper(2).tolist() == [100, 101] and examples.STEPS == 3
    assert examples.np is np and type(examples.ramp(3)) is np.ndarray


def test_what_cannot_be_bound():
    for thing in (3, len, np.sin, "code", None):
        with pytest.raises(TypeError, match="distribute takes"):
            nd.distribute(thing)


def test_other_libraries_keep_their_numpy():
    from numpy.polynomial import polynomial

    def body():
        return polynomial.polyvander(np.zeros(3), 2)

    assert polynomial.polyvander.__globals__["np"] is np
    nd.distribute(body)()
    assert polynomial.polyvander.__globals__["np"] is np
