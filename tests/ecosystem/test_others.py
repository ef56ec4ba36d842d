"""einops, opt_einsum, autograd, pandas, matplotlib, dask, joblib, CuPy, pickle and copy."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.dispatch.core import policy
from tests.ecosystem.comparing import VALUES, same

pytestmark = pytest.mark.spmd


@pytest.fixture(autouse=True)
def installed(request):
    """Plug-ins of libraries that are not installed stay off."""
    import importlib.util

    there = [name for name in ("einops", "autograd") if importlib.util.find_spec(name)]
    with nd.config(PLUGINS=",".join(there) or "own"):
        yield


def test_einops():
    einops = pytest.importorskip("einops")
    same(lambda x: einops.rearrange(x, "a (b c) -> b a c", b=3))
    same(lambda x: einops.reduce(x, "a b -> b", "mean"))
    same(lambda x: einops.reduce(x, "(a two) b -> a b", "max", two=2))
    same(lambda x: einops.repeat(x, "a b -> a b c", c=2))
    same(lambda x: einops.einsum(x, x, "i j, k j -> i k"))
    api = pytest.importorskip("einops.array_api")
    made = api.rearrange(nd.asarray(VALUES), "a b -> b a")
    assert np.array_equal(made.gather(), VALUES.T)


def test_opt_einsum():
    opt_einsum = pytest.importorskip("opt_einsum")
    same(lambda x: opt_einsum.contract("ij,kj->ik", x, x))
    same(lambda x: opt_einsum.contract("ij,kj,kl->il", x, x, x))


def test_autograd():
    autograd = pytest.importorskip("autograd")
    import autograd.numpy as anp

    def loss(x):
        return anp.sum(anp.tanh(anp.sin(x) ** 2 * 3 - x))

    same(autograd.grad(loss))
    weights = np.arange(9.0)
    same(autograd.grad(lambda x: anp.mean(anp.exp(-x * weights) / anp.sum(x, axis=0))))


def test_reverse_mode_that_calls_numpy():
    """As many small libraries do it: a tape of functions of ``np.*``."""

    def gradient(x):
        tape = []
        y = np.sin(x)
        tape.append(lambda g: g * np.cos(x))
        z = y * y
        tape.append(lambda g: 2 * g * y)
        g = np.ones_like(z)
        for step in reversed(tape):
            g = step(g)
        return g

    same(gradient)


def test_pandas_by_an_explicit_gather_or_with_the_warning():
    pandas = pytest.importorskip("pandas")
    x = nd.asarray(VALUES)
    frame = pandas.DataFrame(x.gather())
    with pytest.raises(nd.FallbackError, match=r"x.gather\(\) does this without a warning"):
        pandas.DataFrame(x)
    with nd.config(FALLBACK="warn"), pytest.warns(nd.FallbackWarning):
        assert pandas.DataFrame(x).equals(frame)
    assert np.array_equal(nd.asarray(frame).gather(), VALUES)


def test_masks_and_keys_of_pandas():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"a": rng.integers(0, 9, 400), "b": rng.random(400)})
    flags, both, keys = (frame["a"] > 4).to_numpy(), frame.to_numpy() > 4, rng.integers(0, 3, 400)

    def stored(place, mask):
        changed = frame.copy()
        (place(changed) if place else changed)[mask] = 0
        return changed

    calls = [
        lambda m, w, k: frame[m],
        lambda m, w, k: frame[w],
        lambda m, w, k: frame["b"][m],
        lambda m, w, k: frame.loc[m, "a"],
        lambda m, w, k: stored(None, m),
        lambda m, w, k: stored(None, w),
        lambda m, w, k: stored(lambda changed: changed.loc, m),
        lambda m, w, k: frame.groupby(k).sum(),
        lambda m, w, k: frame["a"].groupby([k]).max(),
        lambda m, w, k: frame.set_index(k),
    ]
    ours = nd.asarray(flags), nd.asarray(both), nd.asarray(keys)
    with nd.config(FALLBACK="warn"):
        for call in calls:
            policy.forget()
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                found = call(*ours)
            assert [warning.category for warning in said] == [nd.FallbackWarning]
            assert found.equals(call(flags, both, keys)) and said[0].filename == __file__


def test_matplotlib_by_an_explicit_gather_or_with_the_warning():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    x = nd.asarray(VALUES)
    axes = Figure().add_subplot()
    assert axes.imshow(x.gather()).get_array().shape == VALUES.shape
    with nd.config(FALLBACK="warn"), pytest.warns(nd.FallbackWarning):
        axes.pcolormesh(x)
    (line,) = axes.plot(x[0])
    assert np.array_equal(line.get_ydata(), VALUES[0])


def test_dask():
    dask = pytest.importorskip("dask.array")
    chunks = dask.from_array(VALUES, chunks=4)
    whole = nd.asarray(chunks)
    assert np.array_equal(whole.gather(), VALUES)

    def read(block, box):
        """Each rank computes its part only."""
        return chunks[tuple(slice(lo, hi) for lo, hi in box)].compute(scheduler="synchronous")

    parts = nd.map_blocks(read, nd.empty(chunks.shape, chunks.dtype))
    assert np.array_equal(parts.gather(), VALUES)
    back = dask.from_array(parts.gather(), chunks=4)
    assert np.isclose(float(back.sum().compute(scheduler="synchronous")), VALUES.sum())


def test_joblib(tmp_path):
    joblib = pytest.importorskip("joblib")
    x = nd.asarray(VALUES)
    path = tmp_path / f"rank{x.comm.rank}"
    joblib.dump({"x": x}, path)
    assert np.array_equal(joblib.load(path)["x"].gather(), VALUES)
    done = joblib.Parallel(2, "threading")(joblib.delayed(np.sum)(row) for row in x.gather())
    np.testing.assert_allclose(done, VALUES.sum(1))


@pytest.mark.gpu
def test_cupy():
    cupy = pytest.importorskip("cupy")
    if not cupy.is_available():
        pytest.skip("there is no CUDA device")
    x = nd.asarray(VALUES).redistribute(split=0)
    on_device = cupy.asarray(x.local) * 2
    back = nd.from_local(cupy.asnumpy(on_device))
    assert np.array_equal(back.gather(), 2 * VALUES)


def test_pickle_and_copy():
    x = nd.asarray(VALUES)
    again = pickle.loads(pickle.dumps({"x": [x]}))["x"][0]
    assert isinstance(again, nd.DistArray) and again.layout == x.layout and np.array_equal(again.gather(), VALUES)
    for made in (copy.copy(x), copy.deepcopy({"x": x})["x"]):
        made[0] = 0
        assert isinstance(made, nd.DistArray) and np.array_equal(x.gather(), VALUES)


@pytest.mark.parametrize("split", [0, None])
def test_pillow_makes_images(split):
    images = pytest.importorskip("PIL.Image")
    pixels = np.arange(12 * 10 * 3, dtype="u1").reshape(12, 10, 3)
    x = nd.asarray(pixels, split=split) if split is not None else nd.asarray(pixels)
    for part, numpys in ((x, pixels), (x[::2, ::-1] + 1, pixels[::2, ::-1] + 1), (x[..., 0], pixels[..., 0])):
        assert np.array_equal(np.asarray(images.fromarray(part)), numpys)
    assert not hasattr(x, "__array_interface__")  # elsewhere: NumPy would look there for an address


def test_pandas_without_the_plug_in_takes_masks_that_are_ndarrays():
    pandas = pytest.importorskip("pandas")
    x = nd.asarray(np.arange(20.0), split=0)
    frame = pandas.DataFrame({"a": np.arange(20.0)})
    series = frame["a"]
    mask = x > 12
    reads = [lambda: frame[mask], lambda: frame.loc[mask], lambda: series[mask], lambda: series.loc[mask]]
    reads += [lambda: frame.iloc[mask], lambda: series.iloc[mask]]  # would be the elements 0 and 1
    with nd.config(PLUGINS="-pandas"):
        for read in reads:
            with pytest.raises(TypeError, match=r"write frame\[mask.gather\(\)\]"):
                read()
        with pytest.raises(TypeError, match="takes a DistArray of bools for labels"):
            frame.loc[mask, "a"] = 0.0
        for key in (mask, mask[:, None]):
            with pytest.raises(TypeError, match=r"write frame\[mask.gather\(\)\] = value"):
                frame[key] = 0.0
    assert frame["a"].tolist() == list(range(20))
    assert frame[mask.gather()].shape == (7, 1)
    assert np.array_equal(np.asarray(mask.gather()), np.asarray(series > 12))
    with nd.config(FALLBACK="silent"):
        assert series.where(mask).count() == 7
        assert list(pandas.Index(mask)) == list(mask.gather())  # not a search for labels
