"""Generated CUDA kernels, built by the host's compiler, against NumPy: every operation, type and shape of a loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from numpy_dist.backends.base import Loop, Step
from numpy_dist.backends.cuda.runner import run
from numpy_dist.backends.interpreter import Interpreter
from numpy_dist.backends.memory import HOST
from numpy_dist.backends.operations import row_of
from numpy_dist.ir.ops import op_of

from . import samples
from .on_host import COMPILER, kernels_of, launcher

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here")

# What NumPy computes with other roundings than the table (its vector loops contract products): ulps of the result.
ULPS = 8

# Operations that have no kernel, by the type of their inputs.
WITHOUT = {
    **{kind: ["reciprocal", "power", "nextafter"] for kind in "?b"}, "B": ["reciprocal", "nextafter"],
    **{kind: ["reciprocal", "power"] for kind in "hil"}, **{kind: ["reciprocal"] for kind in "HIL"},
    "e": ["floor_divide", "remainder", "divmod", "nextafter"],
    "F": ["sign", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin",
          "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "rint", "power", "float_power"],
}  # fmt: skip
WITHOUT["D"] = WITHOUT["F"]


def same(got: np.ndarray, wanted: np.ndarray, exact: bool) -> np.ndarray:
    """Where two results agree: the same values and NaN, with signs of zero; or within some units in the last place."""
    if got.dtype.kind == "c":
        return same(got.real, wanted.real, exact) & same(got.imag, wanted.imag, exact)
    if got.dtype.kind != "f":
        return got == wanted
    equal = (got == wanted) & (np.signbit(got) == np.signbit(wanted)) | (np.isnan(got) & np.isnan(wanted))
    if exact:
        return equal
    with np.errstate(all="ignore"):
        near = np.abs(got.astype("g") - wanted.astype("g")) <= ULPS * np.spacing(np.abs(wanted)).astype("g")
    return equal | near


@pytest.fixture(scope="module")
def launch(tmp_path_factory):
    """All kernels of this file, compiled at once."""
    loops = [samples.on_one_type(kind)[0] for kind in samples.KINDS]
    loops += [samples.casts(kind)[0] for kind in samples.KINDS]
    loops += [loop for loop, _ in samples.shapes().values()]
    loops += [loop for kind in samples.KINDS for loop in samples.reductions(kind)[0]]
    folder: Path = tmp_path_factory.mktemp("cuda")
    return launcher(folder, kernels_of(loops))


@pytest.mark.parametrize("kind", samples.KINDS)
def test_operations(kind, launch):
    loop, outputs, without, inputs = samples.on_one_type(kind)
    assert without == WITHOUT.get(kind, [])
    run(loop, HOST, np.ndarray, launch)
    wrong = []
    for name, found in outputs.items():
        ufunc = getattr(np, name)
        with np.errstate(all="ignore"):
            results = ufunc(*inputs[: ufunc.nin])
        for got, wanted in zip(found, results if isinstance(results, tuple) else (results,), strict=True):
            assert got.dtype == wanted.dtype
            exact = not row_of(ufunc).inexact and kind not in "FD"
            if name in ("maximum", "minimum", "fmax", "fmin"):  # which of two zeros it is depends on NumPy's loops
                got, wanted = got + 0 if kind not in "?" else got, wanted + 0 if kind not in "?" else wanted
            agree = same(got, wanted, exact)
            if not agree.all():
                k = np.flatnonzero(~agree)
                wrong.append((name, len(k), [a[k[:3]] for a in inputs[: ufunc.nin]], got[k[:3]], wanted[k[:3]]))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("kind", samples.KINDS)
def test_casts(kind, launch):
    loop, pairs = samples.casts(kind)
    run(loop, HOST, np.ndarray, launch)
    for x, out in pairs:
        wanted = np.empty_like(out)
        with np.errstate(all="ignore"):
            np.copyto(wanted, x.real if x.dtype.kind == "c" and out.dtype.kind in "iuf" else x, casting="unsafe")
        agree = same(out, wanted, True)
        assert agree.all(), (out.dtype, x[~agree][:5], out[~agree][:5], wanted[~agree][:5])


@pytest.mark.parametrize("name", list(samples.shapes()))
def test_shapes(name, launch):
    loop, found = samples.shapes()[name]
    run(loop, HOST, np.ndarray, launch)
    again, wanted = samples.shapes()[name]
    Interpreter().run(again)
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("kind", samples.KINDS)
def test_reductions(kind, launch):
    loops, results = samples.reductions(kind)
    assert len(loops) >= 8 or kind in "FD"
    for loop, (name, got, wanted) in zip(loops, results, strict=True):
        run(loop, HOST, np.ndarray, launch)
        assert got.dtype == wanted.dtype
        if got.dtype.kind in "fc":
            np.testing.assert_allclose(got, wanted, rtol=1e-5 if kind in "fF" else 1e-13, err_msg=name)
        else:
            assert np.array_equal(got, wanted), name


def test_sums_do_not_depend_on_the_grid(launch):
    """The tree depends on the shape only; the grid may be smaller than what there is to do."""
    loop, (_, partial, _) = samples.shapes()["reduced: rows"]
    run(loop, HOST, np.ndarray, launch)
    whole = partial.copy()
    partial[...] = 0
    run(loop, HOST, np.ndarray, lambda kernel, words, grid: launch(kernel, words, (min(grid[0], 5), 1)))
    assert np.array_equal(partial, whole)


def test_one_source_for_all_extents_scalars_and_memory():
    def texts(n: int, scalar: float) -> set[str]:
        x, out = np.ones((n, 8))[:, ::2], np.empty((n, 4))
        return set(kernels_of([Loop(out.shape, [Step(op_of(np.add), (x, scalar), (out,))], samples.ignore)]))

    assert texts(5, 1.0) == texts(70, -3.0)
