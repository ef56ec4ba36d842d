"""``import numpy_dist as np``: NumPy's names, with creation and random of our own."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import numpy_dist as nd

OWN = {
    "arange", "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "copy", "empty", "empty_like",
    "eye", "frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring", "full", "full_like", "genfromtxt",
    "geomspace", "identity", "indices", "linspace", "loadtxt", "logspace", "mgrid", "ones", "ones_like", "random",
    "require", "tri", "zeros", "zeros_like",
}  # fmt: skip


def test_every_public_name_of_numpy_is_there():
    for name in np.__all__:
        if name not in OWN and not name.startswith("_"):
            assert getattr(nd, name) is getattr(np, name), name
    for name in OWN:
        assert getattr(nd, name) is not getattr(np, name), name
    assert {n for n in np.__all__ if n[0] != "_"} <= set(dir(nd)) and {"DistArray", "distribute", "config"} <= set(
        dir(nd)
    )
    assert nd.linalg is np.linalg and nd.pi == np.pi


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
