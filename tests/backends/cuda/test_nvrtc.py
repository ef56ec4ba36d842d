"""Every source of the samples, and of NumPy programs on the fake device, is compiled for sm_90 by NVRTC."""

from __future__ import annotations

import pytest

from numpy_dist.backends.cuda.header import HEADER
from numpy_dist.backends.cuda.source import OPTIONS, DeviceKernel

from . import nvrtc, programs, samples
from .on_host import kernels_of

pytestmark = pytest.mark.skipif(nvrtc.library() is None, reason="pip install 'numpy-dist[cuda-test]'")

FOR = ("--gpu-architecture=sm_90", *OPTIONS)


def compiled(kernels: dict[str, DeviceKernel]) -> bytes:
    """Machine code of some kernels, as one source."""
    code = nvrtc.compile_source(HEADER + "".join(k.text[len(HEADER) :] for k in kernels.values()), FOR)
    assert code[:4] == b"\x7fELF"
    assert all(name.encode() in code for name in kernels)
    return code


# One kind of each sort in the default run.
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in "?bIfD" else pytest.mark.slow) for kind in samples.KINDS]
)
def test_operations_and_reductions(kind):
    loops = [samples.on_one_type(kind, 64)[0], *samples.reductions(kind)[0]]
    compiled(kernels_of(loops))


def test_casts():
    compiled(kernels_of([samples.casts(kind, 8)[0] for kind in samples.KINDS]))


def test_shapes():
    compiled(kernels_of([loop for loop, _ in samples.shapes().values()]))


def test_what_is_wrong_is_told():
    with pytest.raises(ValueError, match="error: identifier"):
        nvrtc.compile_source(HEADER + "ND_KERNEL wrong() { nothing(); }", FOR)


def test_nothing_is_contracted():
    """`a * b + c` is two operations, as NumPy computes it: no fused one is in the code for a device."""
    text = HEADER + "ND_KERNEL f(double* x) { x[0] = x[1] * x[2] + x[3]; }"
    options = ("--gpu-architecture=compute_90",)
    assert b"fma.rn.f64" not in ptx(text, (*options, *OPTIONS))
    assert b"fma.rn.f64" in ptx(text, options)


def ptx(text: str, options: tuple[str, ...]) -> bytes:
    return nvrtc.compile_source(text, options, "PTX")


@pytest.mark.parametrize("ranks", [1, 2])
def test_programs(ranks, monkeypatch):
    kernels, _, _ = programs.collect(ranks, monkeypatch)
    assert len(kernels) >= 8
    compiled(kernels)
