"""The array API standard through array-api-compat, and scikit-learn's estimators with it."""

import textwrap

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import standard
from tests.ecosystem.comparing import VALUES
from tests.failures import jobs

NEEDS = ("array_api_compat",)


@pytest.mark.spmd
def test_array_api_compat():
    import array_api_compat as compat

    x = nd.asarray(VALUES)
    xp = compat.array_namespace(x, x + 1)
    assert xp is standard and compat.is_array_api_obj(x)
    assert compat.device(x) == "cpu" and compat.size(x) == x.size
    assert compat.to_device(x, "cpu") is x
    with pytest.raises(TypeError, match="[Mm]ultiple namespaces"):
        compat.array_namespace(x, VALUES)
    centred = (x - xp.mean(x, axis=0)) / xp.std(x, axis=0, correction=1)
    expected = (VALUES - VALUES.mean(0)) / VALUES.std(0, ddof=1)
    np.testing.assert_allclose(centred.gather(), expected, atol=1e-12)


ESTIMATORS = """
import os
os.environ["SCIPY_ARRAY_API"], os.environ["NUMPY_DIST_FALLBACK"] = "1", "error"
import numpy as np, numpy_dist as nd, sklearn
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

nd.config.MIN_SHARD_BYTES = 0
data = np.random.default_rng(0).random((40, 6))
target, classes = data[:, 0] + data[:, 1] ** 2, (data[:, 0] > 0.5).astype(int)
x = nd.asarray(data)
with sklearn.config_context(array_api_dispatch=True):
    for make in (MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler, lambda: PCA(2, svd_solver="full"),
                 lambda: Ridge(solver="svd"), LinearDiscriminantAnalysis):
        y = classes if make is LinearDiscriminantAnalysis else target
        ours, theirs = make().fit(x, nd.asarray(y)), make().fit(data, y)
        run = "transform" if hasattr(ours, "transform") else "predict"
        found, expected = getattr(ours, run)(x), getattr(theirs, run)(data)
        assert isinstance(found, nd.DistArray), type(ours)
        np.testing.assert_allclose(np.abs(found.gather()), np.abs(expected), atol=1e-8)
    for score in (r2_score, mean_squared_error):
        assert np.isclose(score(x[:, 0], x[:, 1]), score(data[:, 0], data[:, 1]))
print("all estimators")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("launcher", "times"), [("python", 1), ("mpiexec", 2)])
def test_estimators(tmp_path, launcher, times):
    pytest.importorskip("sklearn")
    job = jobs.run(launcher, textwrap.dedent(ESTIMATORS), tmp_path)
    assert job.code == 0, job.text
    assert job.text.count("all estimators") == times
