"""xarray: a DataArray that holds a distributed array stays distributed."""

import numpy as np
import pytest

import numpy_dist as nd
from tests.ecosystem.comparing import VALUES

pytestmark = pytest.mark.spmd
NEEDS = ("xarray",)

CALLS = {
    "arithmetic": lambda d: d * 2 + d**2 - 1,
    "in coordinates": lambda d: d + d.isel(i=0),
    "a ufunc": lambda d: np.sin(d),
    "apply_ufunc": lambda d: __import__("xarray").apply_ufunc(np.hypot, d, d),
    "comparison": lambda d: d > 0.5,
    "sum": lambda d: d.sum("i"),
    "sum of all": lambda d: d.sum(),
    "mean": lambda d: d.mean("j"),
    "std": lambda d: d.std("i"),
    "max": lambda d: d.max("j"),
    "cumsum": lambda d: d.cumsum("i"),
    "where": lambda d: d.where(d > 0.5),
    "where with another": lambda d: d.where(d > 0.5, 0),
    "fillna": lambda d: d.where(d > 0.5).fillna(-1),
    "clip": lambda d: d.clip(0.2, 0.5),
    "rolling": lambda d: d.rolling(i=3).mean(),
    "rolling sum": lambda d: d.rolling(j=2, center=True).sum(),
    "shift": lambda d: d.shift(i=1),
    "roll": lambda d: d.roll(i=2, roll_coords=False),
    "diff": lambda d: d.diff("i"),
    "slices": lambda d: d.isel(i=slice(1, 5), j=slice(None, None, 2)),
    "labels": lambda d: d.sel(i=slice(2, 7)),
    "transpose": lambda d: d.T,
    "stack": lambda d: d.stack(z=("i", "j")),
    "concat": lambda d: __import__("xarray").concat([d, d], "i"),
    "round": lambda d: d.round(1),
}


def wrapped(data):
    import xarray

    return xarray.DataArray(data, dims=("i", "j"), coords={"i": np.arange(12), "j": np.arange(9) * 10.0}, name="values")


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    made, expected = CALLS[name](wrapped(nd.asarray(VALUES))), CALLS[name](wrapped(VALUES))
    assert made.ndim == 0 or isinstance(made.data, nd.DistArray)
    assert made.dims == expected.dims and made.dtype == expected.dtype and set(made.coords) == set(expected.coords)
    found = made.data.gather() if isinstance(made.data, nd.DistArray) else made.data
    np.testing.assert_allclose(found, expected.values, atol=1e-12)


def test_datasets_and_text():
    import xarray

    data = xarray.Dataset({"a": wrapped(nd.asarray(VALUES)), "b": wrapped(nd.asarray(VALUES))})
    total = (data.a + data.b).mean("i")
    assert isinstance(total.data, nd.DistArray)
    np.testing.assert_allclose(total.data.gather(), 2 * VALUES.mean(0))
    assert "array([[0.63696169" in repr(data.a)


def test_values_are_gathered_with_the_warning():
    with nd.config(FALLBACK="warn"), pytest.warns(nd.FallbackWarning):
        assert isinstance(wrapped(nd.asarray(VALUES)).values, np.ndarray)
