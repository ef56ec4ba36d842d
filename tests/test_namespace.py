"""``import numpy_dist as np``: NumPy's names; what creates arrays creates ours, and everything else is NumPy's own."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.dispatch.core import catalogue
from numpy_dist.spmd_testing import run_simulated

from .distarray.oracle import assert_same, outcome

# Names that are ours, with an expression that shows it. `D` is the namespace.
CREATING = {
    "arange": "D.arange(7)", "array": "D.array([[1, 2], [3, 4]])", "asanyarray": "D.asanyarray([1, 2])",
    "asarray": "D.asarray([1, 2], 'f4')", "ascontiguousarray": "D.ascontiguousarray([[1, 2]])",
    "asfortranarray": "D.asfortranarray([[1, 2], [3, 4]])", "bartlett": "D.bartlett(9)", "blackman": "D.blackman(9)",
    "c_": "D.c_[[1, 2, 3], [4, 5, 6]]", "copy": "D.copy([1, 2])", "diag": "D.diag([1, 2, 3], 1)",
    "diag_indices": "D.diag_indices(4, 3)", "diagflat": "D.diagflat([[1, 2]])", "empty": "D.empty((3, 4)).dtype",
    "empty_like": "D.empty_like([1, 2]).dtype", "eye": "D.eye(4, 5, 1)",
    "from_dlpack": "D.from_dlpack(np.arange(5))", "frombuffer": "D.frombuffer(b'abcd', 'i2')",
    "fromfile": "D.fromfile('raw', 'i2')", "fromfunction": "D.fromfunction(lambda i, j: i - j, (3, 4))",
    "fromiter": "D.fromiter(range(5), float)", "fromregex": "D.fromregex('text', r'(\\d+) (\\d+)', 'i4')",
    "fromstring": "D.fromstring('1 2 3', sep=' ')", "full": "D.full((2, 3), 7)", "full_like": "D.full_like([1, 2], 7)",
    "genfromtxt": "D.genfromtxt('text')", "geomspace": "D.geomspace(1, 8, 4)", "hamming": "D.hamming(9)",
    "hanning": "D.hanning(9)", "identity": "D.identity(3)", "indices": "D.indices((3, 4))",
    "kaiser": "D.kaiser(9, 3.5)",
    "linspace": "D.linspace(0, 1, 5)", "load": "D.load('array.npy')", "loadtxt": "D.loadtxt('text')",
    "logspace": "D.logspace(0, 2, 5)", "mask_indices": "D.mask_indices(3, np.triu, 1)",
    "meshgrid": "D.meshgrid([1, 2, 3], [4, 5])", "mgrid": "D.mgrid[0:5, 0:1:3j]", "ogrid": "D.ogrid[0:5, 0:1:3j]",
    "ones": "D.ones(3)", "ones_like": "D.ones_like([1, 2])", "r_": "D.r_[1:5, 0, [3, 4]]",
    "require": "D.require([1, 2])",
    "tri": "D.tri(3, 4)", "tril": "D.tril([[1, 2], [3, 4]])", "tril_indices": "D.tril_indices(4, 1, 5)",
    "triu": "D.triu([[1, 2], [3, 4]])", "triu_indices": "D.triu_indices(4)", "vander": "D.vander([1, 2, 3])",
    "zeros": "D.zeros((3, 4), order='F')", "zeros_like": "D.zeros_like([1, 2])",
    "fft.fftfreq": "D.fft.fftfreq(9, 0.1)", "fft.rfftfreq": "D.fft.rfftfreq(9)",
}  # fmt: skip
MODULES = {"fft", "random"}
# What NumPy's protocols hand to nobody: tools, and classes of arrays of their own. Every other function is overridable.
TOOLS = set(
    "asarray_chkfinite asmatrix base_repr binary_repr bmat broadcast_shapes datetime_data format_float_positional "
    "format_float_scientific frompyfunc get_include get_printoptions getbufsize geterr geterrcall info isdtype "
    "isfortran isscalar issubdtype iterable mintypecode nested_iters printoptions promote_types row_stack "
    "setbufsize seterr seterrcall show_config show_runtime test trapz typename set_printoptions".split()
)
MORE = {
    "load": ["D.load('arrays.npz')['b']", "D.load('objects.npy', allow_pickle=True)", "D.load('missing.npy')",
             "D.load('array.npy', 'r')", "sorted(D.load('arrays.npz'))", "D.load('empty.npy')", "D.load('pickled')",
             "D.load('fortran.npy')"],
    "r_": ["D.r_['0,2', [1, 2], [3, 4]]", "D.r_[0:1:5j, 3.5]", "D.r_['x', 1]", "D.r_[()]", "D.r_[:3, 'a']"],
    "hanning": ["D.hanning(0)", "D.hanning(1)", "D.hanning('x')", "D.hanning(2.5)"],
    "meshgrid": ["D.meshgrid([1, 2], [3, 4, 5], sparse=True, indexing='ij')", "D.meshgrid([1, 2], copy=False)"],
    "fft.fftfreq": ["D.fft.fftfreq(2.5)", "D.fft.fftfreq(8)"],
    "vander": ["D.vander([1, 2], 4, increasing=True)", "D.vander([1.5, 2], 2)", "D.vander([[1]])", "D.vander([1], 0)"],
    "diag": ["D.diag([[1, 2], [3, 4]])", "D.diag(3)"],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.arange(6, dtype="i2").tofile("raw")
    (tmp_path / "text").write_text("1 2\n3 4\n5 6\n")
    np.save("array.npy", np.arange(12.0).reshape(4, 3))
    np.save("fortran.npy", np.arange(12.0).reshape(4, 3).T)
    np.save("empty.npy", np.zeros((0, 3)))
    np.save("objects.npy", np.array([1, "x"], dtype=object))
    np.savez("arrays.npz", a=np.arange(3), b=np.eye(3))
    (tmp_path / "pickled").write_bytes(pickle.dumps([1, 2]))


@pytest.mark.slow
@pytest.mark.parametrize("name", CREATING)
def test_what_creates_arrays_creates_ours(name, folder):
    for text in [CREATING[name], *MORE.get(name, [])]:

        def evaluate(namespace, text=text):
            return eval(text, {"D": namespace, "np": np})

        def body(evaluate=evaluate, text=text):
            with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                assert_same(outcome(evaluate, [nd])[0], outcome(evaluate, [np])[0], text)

        for ranks in (1, 3):
            run_simulated(ranks, body)
    value = getattr(nd.fft, name[4:]) if name.startswith("fft.") else getattr(nd, name)
    assert value is not getattr(np.fft if name.startswith("fft.") else np, name.split(".")[-1])


def test_large_ones_are_sharded_and_no_rank_makes_the_whole(folder):
    np.save("large.npy", np.arange(10**5))

    def body():
        with nd.config(FALLBACK="error"):
            for text in ("D.hanning(10**5)", "D.fft.fftfreq(10**5)", "D.meshgrid(range(400), range(300))[1]",
                         "D.load('large.npy')", "D.vander(range(400), 300)", "D.r_[0:10**5]",
                         "D.diag(range(300))"):  # fmt: skip
                made = eval(text, {"D": nd})
                assert made.layout.cut_axes and max(made.local.shape) < max(made.shape) or made.ndim > 1, text
                assert made.local.size <= made.size // 2 + 1, text

    run_simulated(2, body)


@pytest.mark.parametrize("sparse", [False, True])
def test_grids_are_copies(sparse):
    points = nd.arange(3.0)
    for made, theirs in zip(
        nd.meshgrid(points, [1.0, 2.0], sparse=sparse), np.meshgrid(range(3), [1.0, 2.0], sparse=sparse), strict=True
    ):
        assert made.flags.writeable and made.strides == theirs.strides
        made += 5
        assert (made.gather() == theirs + 5).all() and (points.gather() == range(3)).all()


def test_every_public_name_of_numpy_is_there():
    for name in np.__all__:
        own = name in CREATING or name in MODULES or name in ("save", "memmap", "ndarray")
        if not own and not name.startswith("_"):
            assert getattr(nd, name) is getattr(np, name), name
    public = {name for name in np.__all__ if name[0] != "_"}
    assert public <= set(dir(nd)) and {"DistArray", "distribute", "config"} <= set(dir(nd))
    assert nd.linalg is np.linalg and nd.pi == np.pi


def test_what_the_namespace_says_of_itself():
    ours, theirs = nd.__array_namespace_info__(), np.__array_namespace_info__()
    assert nd.__array_api_version__ == np.__array_api_version__
    assert ours.default_dtypes() == theirs.default_dtypes() and ours.dtypes().keys() == theirs.dtypes().keys()


def test_every_function_is_overridable_creates_ours_or_is_a_tool():
    # A function that a new NumPy adds fails here, and is named.
    known = {id(f) for f in [*catalogue.overridable_functions(), *catalogue.overridable_ufuncs()]}
    known |= {id(getattr(sys.modules[f.__module__], f.__name__, None)) for f in catalogue.overridable_functions()}
    for prefix, module in (("", np), ("fft.", np.fft), ("linalg.", np.linalg)):
        for name in module.__all__:
            value = getattr(module, name)
            if not callable(value) or isinstance(value, type | np.ufunc) or id(value) in known:
                continue
            assert prefix + name in CREATING or name in TOOLS or name.startswith("_"), prefix + name


@pytest.mark.parametrize("name", ["linalg", "polynomial", "polynomial.chebyshev", "lib.stride_tricks", "ma", "strings"])
def test_submodules_can_be_imported(name):
    original = importlib.import_module(f"numpy.{name}")
    spec = original.__spec__
    assert importlib.import_module(f"numpy_dist.{name}") is original
    assert original.__spec__ is spec and original.__name__ == f"numpy.{name}"
    found = nd
    for part in name.split("."):
        found = getattr(found, part)
    assert found is original


def test_own_modules():
    import numpy_dist.fft
    import numpy_dist.random

    assert nd.fft is numpy_dist.fft and isinstance(nd.fft, types.ModuleType)
    assert nd.fft.fft is np.fft.fft and set(np.fft.__all__) == set(nd.fft.__all__) and "rfft2" in dir(nd.fft)
    assert nd.random is numpy_dist.random
    for name in ("nonsense", "_core", "linalg.nonsense"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(f"numpy_dist.{name}")


def test_names_that_nobody_has():
    with pytest.raises(AttributeError, match="neither numpy_dist nor numpy"):
        nd.nonsense  # noqa: B018
    with pytest.raises(AttributeError):
        nd._private  # noqa: B018


def test_star_import():
    names = {}
    exec("from numpy_dist import *", names)
    assert names["zeros"] is nd.zeros and names["sin"] is np.sin and names["DistArray"] is nd.DistArray


def test_import_is_light():
    code = """
import sys, numpy_dist
heavy = {"numba", "scipy", "mpi4py", "cupy", "numpy_dist.engine", "numpy_dist.random"} & set(sys.modules)
assert not heavy, heavy
x = numpy_dist.zeros(3) + 1
assert not {"numba", "scipy", "cupy"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_saving_is_numpys_unless_the_name_says_another_format(tmp_path):
    data = np.arange(6)
    for name in ("x", "x.npy", "x.npz", "x.dat"):
        nd.save(tmp_path / name, data)
    with open(tmp_path / "open", "wb") as file:
        nd.save(file, data, allow_pickle=False)
    assert sorted(os.listdir(tmp_path)) == ["open", "x.dat.npy", "x.npy", "x.npz.npy"]
    assert (np.load(tmp_path / "open") == data).all() and (np.load(tmp_path / "x.npz.npy") == data).all()
    nd.save(tmp_path / "y.npz", {"a": data, "b": data + 1})
    with np.load(tmp_path / "y.npz") as found:
        assert (found["a"] == data).all() and (found["b"] == data + 1).all()


def test_a_star_leaves_pythons_open():
    names = {}
    exec("from numpy_dist import *", names)
    assert "open" not in names and names["save"] is nd.save and "open" in dir(nd)


FIRST = {
    "open": "nd.open(path)[...]",
    "restore": "checkpoint.restore(folder)",
    "from_dask": "nd.from_dask(dask_array.ones((300, 200)))",
    "fft": "nd.fft.fftfreq(100_000)",
    "map_blocks": "nd.map_blocks(np.sin, np.ones((300, 200)))",
}


@pytest.mark.parametrize("name", FIRST)
def test_the_first_array_of_a_program_is_a_distarray(name: str, tmp_path: Path) -> None:
    pytest.importorskip("dask")
    np.save(tmp_path / "x.npy", np.ones((300, 200)))
    if name == "restore":
        nd.checkpoint.save(tmp_path / "run", nd.ones((300, 200)), step=1)
    imports = {"restore": "from numpy_dist import checkpoint", "from_dask": "import dask.array as dask_array"}
    code = (
        f"import numpy as np, numpy_dist as nd\n{imports.get(name, '')}\n"
        f"path, folder = {str(tmp_path / 'x.npy')!r}, {str(tmp_path / 'run')!r}\n"
        f"made = {FIRST[name]}\nassert isinstance(made, nd.DistArray), type(made)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


class Holder:
    """An object with an array of ours in it."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_objects_that_give_arrays_of_ours():
    held = Holder(nd.arange(100_000))
    made = nd.asarray(held, dtype="f4")
    assert made.dtype == "f4" and made.shape == (100_000,) and type(nd.array(held)) is nd.DistArray
    with pytest.raises(ValueError, match="__array__"):
        nd.asarray(Holder([1, 2]))


class Ragged:
    """An array of another library, which says what is like it."""

    def __array_function__(self, function, types, args, kwargs):
        return function.__name__, args[1:], kwargs


def test_arrays_of_others_make_what_is_like_them():
    assert nd.zeros_like(Ragged(), dtype=int) == ("zeros_like", (), {"dtype": int})
    assert nd.full_like(Ragged(), 3) == ("full_like", (3,), {})
    assert nd.empty_like(Ragged())[0] == "empty_like" and nd.ones_like(a=Ragged())[0] == "ones_like"
