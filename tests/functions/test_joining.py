"""Joining, tiling, padding and shifting, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import numpy_dist as nd
from tests.functions.harness import PRESENTATIONS, check

rng = np.random.default_rng(4)
A = rng.standard_normal((6, 8))
B = rng.integers(0, 50, (2, 3, 4))
V = rng.standard_normal(11)
F = V.astype("f4")
FEW = tuple(sorted(PRESENTATIONS)[::3])


@pytest.mark.slow
def test_concatenate():
    check(lambda x, y: np.concatenate([x, y]), A, A[:2])
    check(lambda x, y: np.concatenate([x, y], axis=1), A, A[:, :3], ranks=(2, 7))
    check(lambda x, y: np.concatenate([x, y, x], axis=-1), B, B[:, :, :1], ranks=(3,), ways=FEW)
    check(lambda x, y: np.concatenate([x, y], axis=None), A, V, ranks=(3,), ways=FEW)
    check(lambda x: np.concatenate([x, [1, 2]]), F, ranks=(2,), ways=FEW)
    check(lambda x, y: np.concatenate([x, y]), F, np.arange(3), ranks=(2,), ways=FEW)
    check(lambda x, y: np.concatenate([x, y], dtype="f2", casting="unsafe"), V, F, ranks=(2,), ways=FEW)
    check(lambda x, y, out: np.concatenate([x, y], out=out), V, F, np.zeros(22), ranks=(2,), ways=FEW)
    check(lambda x: np.concatenate([x]), A, ranks=(2,), ways=FEW)
    check(lambda x: np.concatenate(x), A, ranks=(2,), ways=("default", "last"))
    check(lambda x: np.concatenate([x.T, x.T]), A, ranks=(2,), ways=("first",))


def test_what_is_joined_owns_its_memory():
    with nd.config(MIN_SHARD_BYTES=0):
        for matrix in (A, np.asfortranarray(A)):
            ours, theirs = np.stack([nd.asarray(matrix)]), np.stack([matrix])
            assert ours.flags.owndata and theirs.flags.owndata
            assert ours.strides == theirs.strides and ours.base is None


def test_stacks():
    check(lambda x: np.stack([x, -x]), A, ranks=(2, 7))
    check(lambda x: np.stack([x, -x], axis=-1), A, ranks=(3,), ways=FEW)
    check(lambda x, y: np.vstack([x, y]), A, A[0], ranks=(3,), ways=FEW)
    check(lambda x, y: np.hstack([x, y]), A, A[:, :2], ranks=(3,), ways=FEW)
    check(lambda x: np.hstack([x, x, [1.0]]), V, ranks=(3,), ways=FEW)
    check(lambda x: np.dstack([x, x]), A, ranks=(3,), ways=FEW)
    check(lambda x: np.column_stack([x, x, np.arange(11)]), V, ranks=(3,), ways=FEW)
    check(lambda x: np.append(x, [1, 2, 3]), A, ranks=(3,), ways=FEW)
    check(lambda x, y: np.append(x, y, axis=1), A, A, ranks=(3,), ways=FEW)
    check(lambda x: np.block([[x, x[:, :1]], [x[:1], 7 * np.ones((1, 1))]]), A, ranks=(3,), ways=FEW)
    check(lambda x: np.block([x, x]), V, ranks=(2,), ways=FEW)
    check(lambda x: np.block([[[x]], [[x]]]), V, ranks=(2,), ways=FEW)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.concatenate([x, x[:, :3]]),
        lambda x: np.concatenate([x, x[0]]),
        lambda x: np.concatenate([x, x], axis=2),
        lambda x: np.concatenate([x, x], out=np.zeros((3, 3))),
        lambda x: np.concatenate([x, x], dtype=int),
        lambda x: np.concatenate([x, x], dtype=float, out=np.zeros((12, 8))),
        lambda x: np.stack([x, x[0]]),
        lambda x: np.stack([x, x], axis=4),
        lambda x: np.hstack([x, x[:2]]),
        lambda x: np.append(x, [1], axis=0),
        lambda x: np.block([[x, x[0]], x]),
        lambda x: np.block([[x, x[:2]]]),
        lambda x: np.tile(x, 1.5),
        lambda x: np.repeat(x, -1),
    ],
)
def test_joining_errors_are_numpys(call):
    check(call, A, ranks=(2,), ways=("default",))


def test_tiling():
    check(lambda x: np.tile(x, 3), V, ranks=(3,))
    check(lambda x: np.tile(x, (2, 3)), A, ranks=(2, 3), ways=FEW)
    check(lambda x: np.tile(x, (2, 1, 2)), V, ranks=(3,), ways=FEW)
    check(lambda x: np.tile(x, 0), V, ranks=(2,), ways=("default",))
    check(lambda x: np.tile(x[3, ...], ()), V, ranks=(1, 3), ways=("default",))
    check(lambda x: np.resize(x, (3, 9)), V, ranks=(3,), ways=FEW)
    check(lambda x: np.diagflat(x, 1), V, ranks=(3,), ways=FEW)
    check(lambda x: np.repeat(x, 3), A, ranks=(3,), ways=FEW)
    check(lambda x: np.repeat(x, 2, axis=1), A, ranks=(3,), ways=FEW)
    check(lambda x: np.repeat(x, [2], axis=0), B, ranks=(3,), ways=FEW)


@pytest.mark.parametrize("repeats", [-1, np.array([-1]), np.array([2]), np.array([1, 2]), np.array([[1]])])
def test_repeating_none_and_a_single_one(repeats):
    for x in (np.zeros((0, 3)), np.zeros((0, 3)).T, A):
        for axis in (None, 0, -1):
            check(lambda x, n, axis=axis: np.repeat(x, n, axis), x, repeats, ranks=(1, 2), ways=("default",))
    check(lambda x, n: np.repeat(x[3, ...], n, axis=-1), V, repeats, ranks=(1, 2), ways=("default",))


def test_shifting():
    check(lambda x: np.roll(x, 2), A, ranks=(3,), ways=FEW)
    check(lambda x: np.roll(x, -3, axis=1), A, ranks=(2, 3))
    check(lambda x: np.roll(x, (1, 2), axis=(0, 1)), A, ranks=(3,), ways=FEW)
    check(lambda x: np.fft.fftshift(x), A, ranks=(3,), ways=FEW)
    check(lambda x: np.fft.ifftshift(x, axes=0), A, ranks=(3,), ways=FEW)
    check(lambda x: np.roll(x, 1, axis=3), A, ranks=(2,), ways=("default",))
    check(lambda x, shift: np.roll(x, shift, axis=(0, 1)), A, np.array([1, 2]), ranks=(1, 3), ways=FEW, native=False)
    check(lambda x, shift: np.roll(x, shift), A, np.array([[1], [2]]), ranks=(2,), ways=("default",), native=False)
    check(lambda x, y: np.roll(x, np.argmax(y, axis=1)[:2]), A, A, ranks=(2,), ways=("default",), native=False)


def test_triangles():
    check(np.tril, A, ranks=(2, 3), ways=FEW)
    check(lambda x: np.triu(x, 2), B, ranks=(3,), ways=FEW)
    check(lambda x: np.tril(x, -1), V, ranks=(2,), ways=FEW)
    check(lambda x: np.triu(x), A.T, ranks=(3,), ways=FEW)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap", "maximum", "mean"])
def test_padding(mode):
    check(lambda x: np.pad(x, 2, mode=mode), A, ranks=(3,), ways=FEW)
    check(lambda x: np.pad(x, ((1, 0), (0, 3)), mode=mode), A, ranks=(2,), ways=("default",))


def test_padding_values():
    check(lambda x: np.pad(x, 2, constant_values=(1, 5)), V, ranks=(3,), ways=FEW)
    check(lambda x: np.pad(x, 2, mode="nonsense"), V, ranks=(2,), ways=("default",))
    check(lambda x: np.pad(x, 1.5), V, ranks=(2,), ways=("default",))
