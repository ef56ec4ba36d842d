"""What the tests of other libraries share."""

import numpy as np

import numpy_dist as nd

VALUES = np.random.default_rng(0).random((12, 9))


def same(function, values=VALUES, **tolerance):
    """A function gives for a distributed array what it gives for NumPy's, distributed where that is an array."""
    expected = function(values.copy())
    found = function(nd.asarray(values))
    assert isinstance(found, nd.DistArray) == isinstance(expected, np.ndarray)
    plain = found.gather() if isinstance(found, nd.DistArray) else found
    assert np.asarray(plain).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(plain, expected, **{"atol": 1e-12, **tolerance})
