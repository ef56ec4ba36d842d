"""Operators of DistArray have NumPy's outcome."""

from __future__ import annotations

import operator
from decimal import Decimal

import numpy as np
import pytest

import numpy_dist as nd

from .oracle import check

rng = np.random.default_rng(1)
F8 = rng.normal(size=(5, 7))
I8 = rng.integers(-5, 6, (5, 7))
U1 = rng.integers(0, 200, 7).astype("u1")
F4 = rng.normal(size=(5, 1)).astype("f4")
BOOL = rng.random((5, 7)) > 0.5
C16 = F8 + 1j * F8[::-1]
ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    divmod,
    operator.pow,
]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.slow
@pytest.mark.parametrize("f", [*ARITHMETIC, *COMPARISONS])
def test_arithmetic_with_arrays_and_scalars(f):
    for other in (F8.T.copy().T, F4, 2, 2.5, np.float32(3), U1):
        check(f, F8, other, ranks=(2,))
        check(lambda a, b: f(b, a), F8, other, ranks=(2,), replicated=False)
    check(f, F4, 0.1)
    check(f, U1, 3, ranks=(3,))
    check(f, F8, [1, 2, 3, 4, 5, 6, 7], ranks=(3,))
    check(lambda a: f([1, 2, 3, 4, 5, 6, 7], a), F8, ranks=(3,))


@pytest.mark.parametrize("f", [*BITS, operator.add, operator.floordiv, operator.mod, *COMPARISONS])
def test_integers_and_bools(f):
    check(f, I8, abs(I8) % 8, ranks=(2,))
    check(f, I8, 3, ranks=(2,))
    check(lambda a: f(3, a), abs(I8) % 8, ranks=(2,))
    check(f, BOOL, BOOL[::-1].copy(), ranks=(2,))
    check(f, U1, 3, ranks=(1,))
    check(f, U1, 300, ranks=(1,))


def test_ndarrays_on_the_left():
    for f in (operator.add, operator.lt, operator.eq, operator.matmul):
        check(lambda a, f=f: f(np.ones((7, 5)), a), I8 if f is operator.matmul else F8.T, ranks=(1, 2))
    check(lambda a: np.float64(2) * a, F8)
    check(lambda a: np.int8(2) - a, F4)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
def test_in_place(name):
    f = getattr(operator, f"i{name}")
    check(f, F8, abs(I8) + 1, ranks=(2,))
    check(f, F8, 2, ranks=(2,))
    check(f, I8, 2, ranks=(2,))
    check(f, I8, 2.5, ranks=(2,))  # errors: casts
    check(f, F8, np.ones((3, 5, 7)), ranks=(2,))  # errors: shapes
    check(lambda a: f(a[1:, ::2], 3), F8, ranks=(3,))
    check(lambda a: f(a, [1, 2, 3, 4, 5, 6, 7]), F8, ranks=(3,))


def test_in_place_returns_the_same_object_and_writes_through_views():
    def body(a):
        before, view = a, a[1:]
        a += 1
        a **= 2
        view *= 2
        assert a is before
        return view

    check(body, F8)


def test_in_place_on_ndarray():
    def body(a):
        plain = np.ones((5, 7))
        same = plain
        plain += a
        assert plain is same and type(plain) is np.ndarray
        return float(plain[2, 3])

    check(body, F8, fallback="silent")


@pytest.mark.parametrize("f", [operator.neg, operator.pos, abs, operator.invert])
@pytest.mark.parametrize("a", [F8, I8, U1, BOOL, C16], ids=["f8", "i8", "u1", "bool", "c16"])
def test_unary(f, a):
    check(f, a, ranks=(2,))


@pytest.mark.parametrize("exponent", [2, -1, 0.5, 2.0, 3, 0, -1.0, True, np.float64(2), np.int64(2)])
@pytest.mark.parametrize("a", [F8, F4, I8, U1, BOOL, C16], ids=["f8", "f4", "i8", "u1", "bool", "c16"])
def test_powers(a, exponent):
    check(operator.pow, a, exponent, ranks=(2,))
    check(operator.ipow, a, exponent, ranks=(1,), replicated=False)
    if a is not I8:
        check(lambda a: exponent**a, abs(a), ranks=(1,), replicated=False)


def test_comparison_with_things_that_are_no_numbers():
    for f in (operator.eq, operator.ne):
        for other in (None, "abc", np.array(["a"] * 7), object, Decimal(1)):
            check(lambda a, f=f, other=other: f(a, other), F8, fallback="silent")
            if not isinstance(other, np.ndarray):  # then NumPy itself makes an ndarray
                check(lambda a, f=f, other=other: f(other, a), F8, fallback="silent", ranks=(2,))
    check(lambda a: a < "abc", F8, fallback="silent", ranks=(1, 2))


def test_structured_comparison():
    a = np.zeros(5, [("x", "i4"), ("y", "f8")])
    a["x"][2] = 1
    check(lambda a, b: (a == b, a != b), a, a[::-1].copy(), fallback="silent")


def test_shape_errors_are_numpys():
    check(operator.add, F8, np.ones(3))
    check(operator.matmul, F8, np.ones((3, 2)), ranks=(2,))


def test_matmul():
    check(operator.matmul, I8, I8.T.copy())
    check(operator.matmul, I8, np.arange(7))
    check(lambda a: np.arange(5) @ a, I8)
    check(lambda a: a @ [1] * 7, I8)

    def in_place(a, b):
        a @= b
        return a

    check(in_place, I8, np.arange(49).reshape(7, 7), ranks=(1, 2))


def test_foreign_types_decide():
    class Left:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "mine"

        def __iadd__(self, other):
            return "mine"

    class Right:
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            return ufunc.__name__, method, inputs[0] is self

    class Prior:
        __array_priority__ = 10

        def __radd__(self, other):
            return "prior"

    check(lambda a: (a + Left(), a + Right(), Right() * a, a * Right(), np.add(Right(), a), a + Prior()), F8)
    check(lambda a: a + object(), F8, ranks=())


def test_matmul_of_foreign_types():
    class Dispatching:
        def __array_ufunc__(self, ufunc, method, *inputs):
            return ufunc.__name__, method, inputs[0] is self

    check(lambda a: a @ Dispatching(), F8)
    check(lambda a: Dispatching() @ a, F8)
    check(lambda a: a @ a.flat, I8[0], fallback="silent")


def test_in_place_foreign_types_do_not_decide():
    class Refuses:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "not asked"

        __rmatmul__ = __radd__

    class Takes(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, out, axes=None):
            plain = (x.view(np.ndarray) if x is self else x for x in inputs)
            out[0][...] = getattr(ufunc, method)(*plain) + (100 if axes is None else len(axes))
            return out[0]

    class Leaves(np.ndarray):
        __array_priority__ = 1e6

    def apply(f, a, other):
        kept = a[:]
        made = f(a, other)
        return made is a, made, kept

    for f, values in ((operator.iadd, np.arange(7.0)), (operator.imatmul, np.eye(7) * 2)):
        for other in (Refuses(), values.view(Takes), values.view(Leaves), np.ma.array(values)):
            check(lambda a, f=f, other=other: apply(f, a, other), F8, ranks=(1, 2))


def test_types_mix():
    x = nd.asarray(np.arange(3))
    assert type(np.arange(3) + x) is nd.DistArray
    assert type(x[0] + x) is nd.DistArray
    assert type(x.sum() * 2) is np.int64
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
