"""The roots of unity that transforms of one line multiply by."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from numpy_dist.dispatch.functions.fourier import roots_of_unity

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def _sine_and_cosine(angle: Decimal) -> tuple[Decimal, Decimal]:
    """By their power series."""
    sums, term = [Decimal(0), Decimal(0)], Decimal(1)
    for power in range(60):
        sums[(power + 1) % 2] += term if power % 4 < 2 else -term
        term *= angle / (power + 1)
    return sums[0], sums[1]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 12, 1000, 65_536])
@pytest.mark.parametrize("inverse", [False, True])
def test_roots_are_exact_to_two_units(n: int, inverse: bool) -> None:
    parts = np.unique(np.linspace(-3, 3 * n + 5, 200).astype(int))
    with localcontext() as context:
        context.prec = 50
        for kind, unit in (("D", Decimal(2) ** -53), ("F", Decimal(2) ** -24)):
            roots = roots_of_unity(parts, n, inverse, np.dtype(kind))
            assert roots.dtype == kind
            for part, root in zip(parts.tolist(), roots.tolist(), strict=True):
                across, along = _sine_and_cosine((2 if inverse else -2) * PI * (part % n) / n)
                error = (Decimal(root.real) - along) ** 2 + (Decimal(root.imag) - across) ** 2
                assert error <= (2 * unit) ** 2


def test_quarters_are_exact() -> None:
    assert roots_of_unity(np.arange(4), 4, True, np.dtype("D")).tolist() == [1, 1j, -1, -1j]
