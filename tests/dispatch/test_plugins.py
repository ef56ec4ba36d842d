"""Plug-ins: entry points of installed packages, what they may override, and what happens to broken ones."""

import os
import re
import subprocess
import sys
import textwrap
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.comm.divergence import fingerprint
from numpy_dist.dispatch.core.plugins import _owns, permission_of

IMAGES = """
import numpy as np
import numpy_dist as nd

@nd.dispatchable("x")
def own(x):
    return "gathered"

def register():
    @nd.implements(own)
    def own_of_shards(x):
        return "own"

    @nd.implements(np.cumsum)
    def cumsum(a, axis=None, dtype=None, out=None):
        return "theirs"
"""


def install(folder, name, code, group="numpy_dist.overrides", value=None):
    """What pip leaves behind of a package with one module and one entry point."""
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (info / "top_level.txt").write_text(name)
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {value or name + ':register'}\n")


def run(folder, code, **environment):
    before = "import warnings\nimport numpy as np, numpy_dist as nd\nnd.config.MIN_SHARD_BYTES = 0\n"
    done = subprocess.run(
        [sys.executable, "-c", before + textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(folder), "NUMPY_DIST_FALLBACK": "silent", **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


ASK = """
import images
x = nd.arange(4.0)
print(images.own(x), type(np.cumsum(x)).__name__)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "printed"),
    [("own", "own DistArray"), ("all", "own str"), ("images", "own str"), ("none", "gathered DistArray"),
     ("-images", "gathered DistArray"), ("all,-images", "gathered DistArray"), ("none,images", "own str")],
)  # fmt: skip
def test_installing_changes_functions_of_the_own_package_only(tmp_path, setting, printed):
    install(tmp_path, "images", IMAGES)
    assert run(tmp_path, ASK, NUMPY_DIST_PLUGINS=setting).strip() == printed


def test_a_name_that_no_plugin_has_is_told():
    with pytest.warns(nd.OverrideWarning, match="PLUGINS names 'scippy', and there is no such plug-in"):
        with nd.config(PLUGINS="own,scippy,-nothing"):
            pass


def test_permissions():
    assert [permission_of("a", s) for s in ("own", "all", "none", "a", "-a", "none,a", "all,-a", "b")] == [
        "own", "all", "none", "all", "none", "all", "none", "own",
    ]  # fmt: skip


def test_what_a_package_owns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of its modules, and ufuncs that these have, but not those that they have imported from NumPy."""
    images, parts, more = (types.ModuleType(name) for name in ("images", "images.parts", "images_more"))
    for module in (images, parts, more):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    own, inner, foreign = (np.frompyfunc(abs, 1, 1) for _ in range(3))
    vars(images).update(own=own, sqrt=np.sqrt, isalpha=np.strings.isalpha)
    vars(parts).update(compiled=types.SimpleNamespace(ufunc=inner))  # as Numba's
    vars(more).update(foreign=foreign)
    blur = types.FunctionType((lambda a: a).__code__, {"__name__": "images.parts"})
    spread = types.FunctionType((lambda a: a).__code__, {"__name__": "images_more"})
    images.spread = spread
    for key in (own, inner, (own, "reduce"), blur):
        assert _owns("images", key)
    for key in (foreign, np.sqrt, (np.sqrt, "reduce"), np.strings.isalpha, np.add, np.sum, spread):
        assert not _owns("images", key)
    assert _owns("numpy", np.sqrt) and _owns("numpy", np.sum)


def test_it_can_be_switched_while_the_program_runs(tmp_path):
    install(tmp_path, "images", IMAGES)
    text = run(
        tmp_path,
        """
        x = nd.arange(4.0)
        with nd.config(PLUGINS="images"):
            print(np.cumsum(x))
            print(nd.plugins())
        print(type(np.cumsum(x)).__name__)
        print(nd.explain(np.cumsum, x))
        print(nd.overrides(np.cumsum))
        """,
    )
    assert text.startswith("theirs\n") and "\nDistArray\nnumpy.cumsum: parallel by " in text
    assert "\nimages (images 1.5, images:register): on\n" in text
    assert "\nscipy (numpy_dist itself, numpy_dist.interop.scipy_functions:register): off\n" in text
    assert "(package images 1.5): the plug-in images does not own the function; PLUGINS=images enables it" in text
    assert "images 1.5 (plug-in images)" in text and "[off: " in text


def test_functions_of_other_libraries_stay_as_they_are_until_it_is_enabled(tmp_path):
    pytest.importorskip("scipy")
    install(
        tmp_path,
        "filters",
        """
import numpy_dist as nd, scipy.ndimage

@nd.implements(scipy.ndimage.laplace, varies=("axes",))
def laplace(input, output=None, mode="reflect", cval=0.0):
    return "theirs"
""",
        value="filters",
    )
    text = run(
        tmp_path,
        """
        import scipy.ndimage
        original = scipy.ndimage.laplace
        x = nd.arange(4.0)
        np.cumsum(x)
        print(scipy.ndimage.laplace is original)
        nd.config.PLUGINS = "filters"
        print(scipy.ndimage.laplace(x), original is scipy.ndimage.laplace)
        nd.config.PLUGINS = "own"
        print(type(scipy.ndimage.laplace(x)).__name__)
        """,
    )
    assert text.split() == ["True", "theirs", "False", "DistArray"]


@pytest.mark.slow
def test_a_broken_one_is_named_and_the_others_work(tmp_path):
    install(tmp_path, "images", IMAGES)
    install(tmp_path, "broken", IMAGES + "\n    1 / 0\n")
    text = run(tmp_path, ASK + "print(nd.plugins())\n", NUMPY_DIST_PLUGINS="all")
    assert "own str" in text
    assert "OverrideWarning: the plug-in 'broken' of broken 1.5 (broken:register) cannot be loaded: Zero" in text
    assert "broken (broken 1.5, broken:register): broken: ZeroDivisionError: division by zero" in text
    assert run(tmp_path, ASK, NUMPY_DIST_PLUGINS="all,-broken").strip() == "own str"


@pytest.mark.slow
def test_a_function_that_another_version_has_otherwise_is_left_out(tmp_path):
    other = "    @nd.implements(np.cumprod)\n    def cumprod(a, axis=None, sort=None):\n        return 'theirs'\n"
    install(tmp_path, "images", f"{IMAGES}\n{other}")
    text = run(tmp_path, ASK + "print(type(np.cumprod(x)).__name__)\n", NUMPY_DIST_PLUGINS="all")
    assert text.startswith("own str\nDistArray\n")
    assert "OverrideWarning: the plug-in 'images' leaves a function out: " in text
    assert "images.register.<locals>.cumprod cannot implement numpy.cumprod: their signatures differ" in text
    assert "cannot be loaded" not in text


def test_they_are_loaded_in_the_order_of_their_names_and_lazily(tmp_path):
    for name in ("zebra", "apple", "mango"):
        install(tmp_path, name, f"print('{name}')\n", value=name)
    text = run(tmp_path, "print('made', nd.arange(3.0).shape)\nnp.cumsum(nd.arange(3.0))\n")
    assert text.split() == ["made", "(3,)", "apple", "mango", "zebra"]


PAGE = Path(__file__).resolve().parents[2] / "docs/backends.md"
(BACKEND,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_a_backend_of_another_package(tmp_path):
    """That of the page for authors of backends."""
    install(tmp_path, "loud", BACKEND, "numpy_dist.backends", "loud")
    text = run(tmp_path, "print((nd.ones(3) + 1).gather())\n", NUMPY_DIST_BACKEND="loud")
    assert text == "loop over (3,) with 2 steps\n[2. 2. 2.]\n"
    install(tmp_path, "bad", "1 / 0\n", "numpy_dist.backends", "bad")
    code = """
    try:
        with nd.config(BACKEND="bad"):
            nd.ones(3)
    except ValueError as error:
        print(error)
    """
    told = run(tmp_path, code)
    assert "BACKEND='bad': the plug-in of bad 1.5 (bad) cannot be loaded: ZeroDivisionError" in told


def test_ranks_with_different_plugins_or_overrides_must_not_go_on():
    for part in ("plug-ins", "override of numpy.sum", "setting PLUGINS"):
        found = fingerprint.compare([{part: "a=a:register"}, {part: ""}, {part: "a=a:register"}])
        assert found.deciding and not found.numbers
        assert found.text == f"  {part}: rank 0, 2: a=a:register; rank 1: "
    assert fingerprint.compare([{"NumPy": "2.3"}, {"NumPy": "2.4"}]).numbers


def test_a_gather_by_a_library_names_the_plugin_that_is_off():
    ndimage = pytest.importorskip("scipy.ndimage")
    with nd.config(MIN_SHARD_BYTES=0, AT_ONCE=0), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        x = nd.arange(100.0).reshape(10, 10)
        ndimage.white_tophat(x, 3)
        np.asarray(x)
    texts = [str(warning.message) for warning in told]
    assert ["the plug-in 'scipy', which is off" in text for text in texts] == [True] * (len(texts) - 1) + [False]
    assert len(texts) > 1


@pytest.mark.parametrize("by", ["setting", "environment"])
def test_single_functions_may_be_imported_before_there_is_an_array(by: str) -> None:
    code = """
    import numpy_dist as nd
    {}
    from scipy.linalg import qr
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
        print(type(qr(nd.eye(5))[0]).__name__)
    """
    code = textwrap.dedent(code).format("nd.config.PLUGINS = 'scipy'" if by == "setting" else "")
    environ = os.environ | ({"NUMPY_DIST_PLUGINS": "scipy"} if by == "environment" else {})
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, timeout=120, text=True)
    assert done.stdout.strip() == "DistArray", done.stderr
