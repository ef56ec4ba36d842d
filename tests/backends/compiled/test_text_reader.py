"""Numbers read by the kernel: bit for bit what Python reads; what it does not know is left to NumPy."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from numpy_dist.backends.compiled.backend import Compiled

RNG = random.Random(5)


def _any_double() -> str:
    while True:
        (value,) = struct.unpack("d", struct.pack("Q", RNG.getrandbits(64)))
        if value == value and 1e-300 < abs(value) < 1e300:
            return repr(value)


def _between_two() -> str:
    """A number in the middle between two doubles, with all of its digits."""
    middle = (Fraction(RNG.getrandbits(53) | 1 << 52) + Fraction(1, 2)) * Fraction(2) ** RNG.randrange(-8, 8)
    places = 0
    while middle.denominator != 1:
        middle, places = middle * 10, places + 1
    return f"{middle.numerator}e-{places}"


MAKERS: dict[str, Callable[[], str]] = {
    "any double": _any_double,
    "as savetxt writes": lambda: f"{RNG.random():.18e}",
    "fixed point": lambda: f"{RNG.gauss(0, 1) * 10 ** RNG.randrange(-3, 9):.6f}",
    "integers": lambda: str(RNG.getrandbits(RNG.randrange(1, 63)) - (1 << 40)),
    "powers of ten": lambda: f"{RNG.getrandbits(RNG.randrange(1, 64))}e{RNG.randrange(-60, 60)}",
    "many digits": lambda: f"{RNG.getrandbits(70)}.{RNG.getrandbits(70)}",
    "between two doubles": _between_two,
    "few": lambda: RNG.choice(
        "0 -0 0.0 -0.0 0e999 00012 1. +.5 -.25e3 1e22 1e23 1e-22 9007199254740993 9007199254740992e-22 4.35 1E5 1e+05 "
        "0.000000000000000000000000000012345678901234567891 8.5 18014398509481985 2.2250738585072014e-300".split()
    ),
}


def rows(backend: Compiled, text: str, delimiter: str | None = None) -> np.ndarray | None:
    return backend.text_reader.rows(text.encode(), delimiter)


@pytest.mark.parametrize("maker", MAKERS)
def test_numbers_are_pythons(backend: Compiled, maker: str) -> None:
    read = 0
    for _ in range(2000):
        text = MAKERS[maker]()
        found = rows(backend, text)
        if found is not None:
            read += 1
            assert found.shape == (1, 1) and found.tobytes() == np.float64(float(text)).tobytes(), text
    assert read > (0 if maker == "between two doubles" else 1200 if maker == "many digits" else 1990)


@pytest.mark.parametrize(
    "text,delimiter",
    [
        ("1 2\n3 4\n", None),
        ("1 2\r\n3 4\r\n", None),
        ("1 2\n3 4", None),
        ("\n\n1 2\n\n3 4\n\n", None),
        (" 1\t2 \n\t3  4\t\n", None),
        ("1,2\n3,4\n", ","),
        ("1 , 2\n 3,\t4 \n", ","),
        ("1\t2\n3 \t 4\n", "\t"),
        ("1;2\r\n\r\n3;4", ";"),
        ("-1e0 2\n3 4\n", None),
    ],
)
def test_lines(backend: Compiled, text: str, delimiter: str | None) -> None:
    found = rows(backend, text, delimiter)
    expected = np.loadtxt(io.StringIO(text), delimiter=delimiter, ndmin=2)
    assert found is not None and np.array_equal(found, expected) and found.shape == expected.shape


@pytest.mark.parametrize(
    "text,delimiter",
    [
        *((text, None) for text in ("", "\n", " \n1\n", "1 2\n3\n", "1\n2 3\n", "x\n", "1 # c\n", "nan\n")),
        *((text, None) for text in ("1e5x\n", "1\r2\n", "1__0\n", "1_0\n", "0x10\n", "1e400\n", "4e-324\n", "1j\n")),
        *((text, None) for text in ("--1\n", "+\n", "1e\n", "1e+\n", ".\n", "1-2\n", "1.2.3\n", "1\x002\n")),
        *((text, None) for text in ("inf\n", "1\xa02\n", "1,2\n")),
        *((text, ",") for text in ("1,,2\n", "1,2,\n", ",1\n", "1;2\n", "1, \n", "1 2\n", '"1",2\n')),
        *((text, "\t") for text in ("1\t\t2\n", "1\t2\t\n", "1 2\t3\n")),
    ],
)
def test_what_is_left_to_numpy(backend: Compiled, text: str, delimiter: str | None) -> None:
    assert rows(backend, text, delimiter) is None


def test_many_lines(backend: Compiled) -> None:
    table = np.random.default_rng(1).normal(size=(3000, 7)) * 10.0 ** np.arange(-9, 12, 3)
    text = io.StringIO()
    np.savetxt(text, table)
    found = rows(backend, text.getvalue())
    assert found is not None and np.array_equal(found, table)


def test_the_kernel_is_asked_for_by_large_texts_only() -> None:
    from numpy_dist.backends.compiled import text_reader

    asked: list[bool] = []

    def address(source: str, wanted: bool) -> None:
        asked.append(wanted)

    reader = text_reader.KernelTextReader(address)
    assert reader.rows(b"1\n", None) is None
    assert reader.rows(b"1\n" * text_reader.WORTH, None) is None
    assert asked == [False, True]
