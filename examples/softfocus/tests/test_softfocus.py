"""The filters on distributed arrays against those on NumPy's, at several numbers of ranks in this process."""

import numpy as np
import pytest
import scipy.ndimage
import softfocus

import numpy_dist
from numpy_dist.spmd_testing import forbid_gathers, spmd

IMAGE = np.random.default_rng(0).normal(size=(40, 30))


@pytest.fixture(autouse=True)
def strict():
    """Small arrays are cut, and nothing may be gathered."""
    with numpy_dist.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
        yield


@spmd(1, 2, 3)
def test_filters():
    image = numpy_dist.asarray(IMAGE)
    with forbid_gathers():
        made = [softfocus.local_contrast(image, 2), softfocus.stretch(image), softfocus.shrink(image, 0.5)]
    plain = [softfocus.local_contrast(IMAGE, 2), softfocus.stretch(IMAGE), softfocus.shrink(IMAGE, 0.5)]
    for ours, numpys in zip(made, plain, strict=True):
        np.testing.assert_allclose(ours.gather(), numpys, atol=1e-12)


@spmd(1, 2)
def test_what_is_left_to_the_gathered_default():
    with pytest.raises(numpy_dist.FallbackError, match="width of at least 1"):
        softfocus.local_contrast(numpy_dist.asarray(IMAGE), 0)


@spmd(1, 2)
def test_a_function_of_scipys_only_when_the_plugin_is_on():
    image = numpy_dist.asarray(IMAGE)
    with numpy_dist.config(PLUGINS="softfocus"):
        made = scipy.ndimage.median_filter(image, 5)
    np.testing.assert_array_equal(made.gather(), scipy.ndimage.median_filter(IMAGE, 5))
    with pytest.raises(numpy_dist.FallbackError):
        scipy.ndimage.median_filter(image, 5)
