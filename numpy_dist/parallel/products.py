"""Long products, one rank's part at a time, in NumPy's order: from what the ranks before have come to.

Factors must not be regrouped where some product on the way may leave the range of numbers: 1e200 * 1e200 * 1e-200 is
inf, and 1e200 * (1e200 * 1e-200) is not. So a rank finds out, before its turn comes, between which powers of two its
running products stay. Where they stay in range from the value that arrives, one multiplication by the product of the
part is enough; where zero, inf or NaN arrives, signs are; only the rest is multiplied element by element.
"""

from __future__ import annotations

import numpy as np

# Factors are multiplied with their neighbours a piece at a time, which stays in cache.
_PIECE = 1 << 14


def power_range(kind: np.dtype) -> int:
    """The largest n so that numbers between 2**-n and 2**n are normal ones of an inexact dtype, with a margin."""
    limits = np.finfo(kind)
    return int(min(limits.maxexp, -limits.minexp)) - 2


class Factors:
    """One rank's factors.

    Parameters
    ----------
    factors : ndarray, shape (n,)
        Of the dtype in which NumPy multiplies: a float or complex one, but float16.
    grouped : bool
        Whether factors may be regrouped where their products stay in range.
    """

    def __init__(self, factors: np.ndarray, grouped: bool = True) -> None:
        self.factors = factors
        self.real = factors.dtype.kind == "f"
        self.number = self.finite = True
        self.zero = self.negative = False
        made: list[np.ndarray] | None = [] if grouped else None
        self.within = min(power_range(factors.dtype) // 4, 256)
        for start in range(0, len(factors), _PIECE):
            piece = factors[start : start + _PIECE]
            sizes = np.abs(piece) if self.real else np.maximum(np.abs(piece.real), np.abs(piece.imag))
            most, least = sizes.max(), sizes.min()
            self.number, self.finite = self.number and not np.isnan(most), self.finite and bool(np.isfinite(most))
            self.zero |= bool(least == 0)
            if made is not None:
                products = self._grouped(piece, most, least)
                made = None if products is None else [*made, products]
        self.chunks: np.ndarray | None = None
        if made:
            self.chunks = np.concatenate(made)
            running = np.cumsum(np.log2(np.abs(self.chunks)))
            self.low = min(float(running.min()), 0.0) - self.within
            self.high = max(float(running.max()), 0.0) + self.within
        elif self.real:
            self.negative = bool(np.count_nonzero(np.signbit(factors)) % 2)

    def _grouped(self, piece: np.ndarray, most: np.floating, least: np.floating) -> np.ndarray | None:
        """Products of neighbours that lie within 2**-within and 2**within; None if 16 neighbours may not."""
        if not np.isfinite(most) or least == 0:
            return None
        # Up to sqrt(2) lies between a complex number's larger component and its absolute value.
        step = max(abs(float(np.log2(most))), abs(float(np.log2(least)))) + (0 if self.real else 0.5)
        together = 1024 if step == 0 else int(min(self.within / step, 1024))
        if together < 16:
            return None
        for _ in range(together.bit_length() - 1):
            odd = piece[-1:] if len(piece) % 2 else None
            piece = piece[: len(piece) & ~1]
            piece = piece[0::2] * piece[1::2]
            if odd is not None:
                piece = np.append(piece, odd)
        return piece

    def times(self, start: np.inexact) -> np.inexact:
        """The product of `start` and the factors, with NumPy's floating-point events."""
        kind = self.factors.dtype
        if self.chunks is not None and np.isfinite(start) and start != 0:
            power, limit = float(np.log2(np.abs(start))), power_range(kind)
            if -limit < power + self.low and power + self.high < limit:
                return np.multiply.reduce(self.chunks, initial=start)
        if self.real and self._settled(start):
            negative = self.negative if self.chunks is None else np.signbit(np.multiply.reduce(np.sign(self.chunks)))
            return -start if negative else start
        return np.multiply.reduce(self.factors, initial=start)

    def _settled(self, start: np.inexact) -> bool:
        """Whether the factors can change no more of a number than its sign."""
        if np.isinf(start):
            return self.number and not self.zero
        return bool(np.isnan(start)) or (bool(start == 0) and self.finite)
