"""Matplotlib and seaborn: lines, images and clouds are thinned so that the picture stays, histograms are exact."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.dispatch.core import policy

pytestmark = pytest.mark.spmd
NEEDS = ("matplotlib",)
N = 1_200_007


@pytest.fixture
def axes():
    """Axes of the plug-in; what was said of a line in another test is forgotten."""
    from matplotlib.figure import Figure

    policy.forget()
    return Figure(figsize=(6, 4), dpi=50).add_subplot()


@pytest.fixture
def lower(monkeypatch):
    """Limits that small arrays are over."""
    from numpy_dist.interop import matplotlib_axes

    for name, value in {"LONGEST_LINE": 5000, "FEWEST_BUCKETS": 100, "LARGEST_IMAGE": 50}.items():
        monkeypatch.setattr(matplotlib_axes, name, value)
    return matplotlib_axes


def picture(axes):
    """The pixels of a figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(axes.figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].astype(float)


def wiggly(n):
    """A noisy wave with one peak."""
    rng = np.random.default_rng(1)
    values = np.sin(np.linspace(0, 20, n)) + 0.1 * rng.standard_normal(n)
    values[n // 3] = 5  # a peak of one sample must be seen
    return values


def plain_axes():
    """Axes that are given NumPy's arrays only."""
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 4), dpi=50).add_subplot()


@pytest.mark.slow
def test_a_long_line_looks_the_same_and_says_so_once(axes):
    values, whole = wiggly(N), plain_axes()
    y = nd.asarray(values)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            (line,) = axes.plot(y, color="C0")
    (said,) = [w for w in seen if issubclass(w.category, nd.errors.ThinningWarning)]
    assert said.filename == __file__ and f"of {N:,} points" in str(said.message)
    x, drawn = line.get_data()
    assert len(x) < 20_000 and np.array_equal(drawn, values[x.astype(int)])
    assert drawn.max() == 5 and x[0] == 0 and x[-1] == N - 1
    whole.plot(values, color="C0")
    axes.lines[0].remove()
    different = np.abs(picture(axes) - picture(whole)).max(axis=2) > 64
    assert different.mean() < 0.002


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_lines_with_x_columns_and_gaps(axes, lower, scale):
    from matplotlib.colors import to_rgb

    n = 20_011
    x, y = np.linspace(1, 1e4, n), np.stack([wiggly(n), -wiggly(n)], axis=1)
    y[3000:9000, 1] = np.nan
    axes.set_xscale(scale)
    with pytest.warns(nd.errors.ThinningWarning):
        first, second, third = axes.plot(nd.asarray(x), nd.asarray(y), "--", x, nd.asarray(y[:, 0]), "r")
    for line, values in ((first, y[:, 0]), (second, y[:, 1]), (third, y[:, 0])):
        at = np.searchsorted(x, line.get_xdata())
        assert np.array_equal(line.get_ydata(), values[at], equal_nan=True) and len(at) < n
        assert np.nanmax(line.get_ydata()) == np.nanmax(values) and np.nanmin(line.get_ydata()) == np.nanmin(values)
    assert first.get_linestyle() == "--" and to_rgb(third.get_color()) == (1, 0, 0)
    assert np.isnan(second.get_ydata()).any()
    decade = (first.get_xdata() < 100).sum()
    assert decade > 50 if scale == "log" else decade < 50


def test_markers_are_a_cloud_and_small_lines_are_whole(axes, lower):
    values = wiggly(20_000)
    with pytest.warns(nd.errors.ThinningWarning):
        (cloud,) = axes.plot(nd.asarray(values), ".")
    assert np.array_equal(cloud.get_ydata(), values[::4]) and np.array_equal(cloud.get_xdata(), np.arange(0, 20_000, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (line,) = axes.plot(nd.asarray(values[:100]), nd.asarray(values[100:200]))
    assert np.array_equal(line.get_xdata(), values[:100]) and np.array_equal(line.get_ydata(), values[100:200])
    with pytest.raises(ValueError, match="same first dimension"):
        axes.plot(nd.asarray(values), nd.asarray(values[1:]))


@pytest.mark.parametrize("origin", ["upper", "lower"])
def test_a_large_image_is_block_means_in_the_same_place_and_colours(axes, lower, origin):
    lower.LARGEST_IMAGE = 600
    values = np.add.outer(np.arange(1500.0), np.arange(900.0))
    values[7, 7] = 1e4
    with pytest.warns(nd.errors.ThinningWarning, match="of 3 x 2 elements of an image of 1,500 x 900"):
        image = axes.imshow(nd.asarray(values), origin=origin)
    expected = values.reshape(500, 3, 450, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(image.get_array(), expected)
    whole = plain_axes().imshow(values, origin=origin)
    assert tuple(image.get_extent()) == tuple(whole.get_extent())
    assert image.get_clim() == whole.get_clim() == (0, 1e4)


def test_images_that_blocks_do_not_divide(axes, lower):
    lower.LARGEST_IMAGE = 600
    values = np.arange(1501 * 700).reshape(1501, 700)
    with pytest.warns(nd.errors.ThinningWarning):
        image = axes.imshow(nd.asarray(values), interpolation="nearest", extent=(0, 70, 0, 1501))
    assert np.array_equal(image.get_array(), values[:1500:3, ::2])
    assert tuple(image.get_extent()) == (0, 70, 1, 1501)
    colours = np.random.default_rng(0).integers(0, 256, (1300, 20, 3), dtype=np.uint8)
    with pytest.warns(nd.errors.ThinningWarning):
        image = axes.imshow(nd.asarray(colours))
    assert image.get_array().dtype == np.uint8 and image.get_array().shape == (433, 20, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(axes.imshow(nd.asarray(colours[:40])).get_array(), colours[:40])


def few(gather):
    """`gather` of small arrays only."""

    def refuse(x, *args):
        assert x.size < 50
        return gather(x, *args)

    return refuse


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bins": 7, "range": (-0.5, 0.5), "density": True},
        {"bins": [-1, 0, 0.25, 1], "cumulative": True},
        {"bins": "sturges", "histtype": "step"},
    ],
    ids=str,
)
def test_histograms_are_exact_and_only_counts_are_gathered(axes, options, monkeypatch):
    values = wiggly(3001)
    values[5] = np.nan
    other = values[:2000] / 2
    if isinstance(options.get("bins"), str):  # NumPy's estimators know no NaNs
        values = np.nan_to_num(values)
    expected = plain_axes().hist(values, **options)
    monkeypatch.setattr(nd.DistArray, "gather", few(nd.DistArray.gather))
    count, edges, _ = axes.hist(nd.asarray(values), **options)
    np.testing.assert_allclose(count, expected[0])
    np.testing.assert_allclose(edges, expected[1])
    if not isinstance(options.get("bins"), str):
        expected = plain_axes().hist([values, other], weights=[np.ones(3001, int), abs(other)], **options)
        weights = [nd.ones(3001, int), nd.asarray(abs(other))]
        count, edges, _ = axes.hist([nd.asarray(values), nd.asarray(other)], weights=weights, **options)
        np.testing.assert_allclose(count, expected[0])
        np.testing.assert_allclose(edges, expected[1])


def test_pyplot_has_these_axes_and_the_plug_in_can_be_off():
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    values = wiggly(N)
    try:
        with pytest.warns(nd.errors.ThinningWarning):
            (line,) = pyplot.plot(nd.asarray(values))
        assert len(line.get_ydata()) < N // 10
        off = "the plug-in 'matplotlib', which is off"
        with nd.config(PLUGINS="-matplotlib"), pytest.raises(nd.FallbackError, match=off):
            pyplot.plot(nd.asarray(values))
    finally:
        pyplot.close("all")


@pytest.mark.slow
def test_seaborn_by_an_explicit_gather_or_without():
    seaborn = pytest.importorskip("seaborn")
    from matplotlib.figure import Figure

    values = wiggly(300)
    x = nd.asarray(values)
    with nd.config(PLUGINS="none"), pytest.raises(nd.FallbackError):
        seaborn.histplot(x=x, ax=Figure().add_subplot())
    drawn = seaborn.histplot(x=x, bins=10, ax=Figure().add_subplot())
    counts = [bar.get_height() for bar in drawn.patches]
    assert counts == np.histogram(values, 10)[0].tolist()
    again = seaborn.lineplot(x=np.arange(300), y=x.gather(), ax=Figure().add_subplot())
    assert np.array_equal(again.lines[0].get_ydata(), values)


def test_clouds_are_thinned_and_boxes_are_of_all_elements(axes, lower, monkeypatch):
    values = wiggly(20_001)
    x, y = nd.asarray(np.arange(20_001.0)), nd.asarray(values)
    with pytest.warns(nd.errors.ThinningWarning, match="one of each 5 of the 20,001 elements"):
        cloud = axes.scatter(x, y, c=values, s=3)
    assert np.array_equal(cloud.get_offsets(), np.stack([np.arange(0, 20_001, 5), values[::5]], axis=1))
    assert np.array_equal(cloud.get_array(), values[::5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is read element by element
        drawn = axes.boxplot([y, x[:100]])
    assert drawn["medians"][0].get_ydata()[0] == np.median(values)


def test_histograms_of_columns(axes):
    values = wiggly(3000).reshape(-1, 3)
    expected = plain_axes().hist(values, 5)
    count, edges, _ = axes.hist(nd.asarray(values), 5)
    np.testing.assert_allclose(count, expected[0])
    np.testing.assert_allclose(edges, expected[1])


@pytest.mark.slow
def test_axes_made_before_the_first_array_and_axes_of_other_kinds(lower):
    """Matplotlib may come before numpy_dist; polar axes and those of three dimensions are left alone."""
    script = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "{first}\n"
        "from matplotlib.figure import Figure\n"
        "axes = Figure().add_subplot()\n"
        "{second}\n"
        "y = nd.zeros(2_000_000)\n"
        "assert len(axes.plot(y)[0].get_ydata()) < 20_000\n"
        "assert type(axes).__module__.startswith('matplotlib')\n"
    )
    come, ours = "import matplotlib.axes", "import numpy_dist as nd; assert 'numpy_dist.interop.matplotlib_axes' not in"
    asks = "import importlib.util; importlib.util.find_spec('matplotlib.axes')"
    for first, second in ((come, f"{ours} sys.modules"), (f"{ours} sys.modules\n{asks}", "")):
        if nd.zeros(1).comm.rank == 0:
            environ = {key: value for key, value in os.environ.items() if not key.startswith(("PMI", "MPI", "HYDRA"))}
            command = [sys.executable, "-c", script.format(first=first, second=second)]
            subprocess.run(command, check=True, timeout=60, env=environ)
    from matplotlib.figure import Figure

    values = wiggly(20_001)
    with nd.config(FALLBACK="warn"), pytest.warns(nd.FallbackWarning):
        (line,) = Figure().add_subplot(projection="polar").plot(nd.asarray(values))
    assert len(line.get_ydata()) == 20_001


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"bins": 7, "stat": "density"}, {"binrange": (-0.5, 0.5), "y": True}], ids=str)
def test_seaborn_counts_a_large_array_where_it_lies(lower, options, monkeypatch):
    seaborn = pytest.importorskip("seaborn")
    values = wiggly(20_001)
    name = "y" if options.pop("y", False) else "x"

    def sizes(which):
        drawn = seaborn.histplot(**{name: which}, ax=plain_axes(), **options)
        return [(bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height()) for bar in drawn.patches]

    expected, array = sizes(values), nd.asarray(values)
    monkeypatch.setattr(nd.DistArray, "gather", few_thousand(nd.DistArray.gather))
    np.testing.assert_allclose(sizes(array), expected)


def few_thousand(gather):
    """`gather` of less than the whole."""

    def refuse(x, *args):
        assert x.size < 20_000
        return gather(x, *args)

    return refuse


@pytest.mark.slow
def test_seaborn_draws_a_part_and_says_so(lower):
    seaborn = pytest.importorskip("seaborn")
    values = wiggly(20_001)
    with pytest.warns(nd.errors.ThinningWarning, match="one of each 5 of the 20,001 elements") as said:
        drawn = seaborn.lineplot(x=np.arange(20_001), y=nd.asarray(values), errorbar=None, ax=plain_axes())
    assert said[0].filename == __file__
    assert np.array_equal(drawn.lines[0].get_ydata(), values[::5])
    image = np.add.outer(np.arange(150.0), np.arange(90.0))
    with pytest.warns(nd.errors.ThinningWarning, match="blocks of 3 x 2"):
        drawn = seaborn.heatmap(nd.asarray(image), ax=plain_axes())
    np.testing.assert_allclose(
        drawn.collections[0].get_array().reshape(50, 45), image.reshape(50, 3, 45, 2).mean(axis=(1, 3))
    )
