"""What one call of NumPy takes from the raw sequence, for the distributions that are split among the ranks.

A call makes its samples by *tokens*: the draws between two moments at which nothing but the bit generator's state
matters. Mostly one token is one sample; the legacy polar method makes two samples at a time, and small integers are cut
out of one draw of 32 bits (a buffer that lives as long as the call). Three kinds follow:

fixed
    Each token takes the same number of units: where a sample comes from is known beforehand.
variable
    Rejection: a token takes at least one unit. Where the n-th token begins is known only by making the others, but two
    parses that started differently meet soon, as nearly all tokens are as short as can be.
filtered
    8 and 16 bit integers with rejection: each part of a 32-bit draw is taken or not for itself, so that the accepted
    ones among the given draws can be counted; the buffer forbids to stop and go on in the middle of a draw.

The values are always made by NumPy's own methods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from numpy_dist.argument_types import Keywords

#: Samples made in one go where NumPy cannot write into a given array; they stay in the cache. A multiple of 32.
CHUNK = 1 << 15

Front = Any  # numpy.random.Generator or numpy.random.RandomState


@dataclass(frozen=True)
class Draw:
    """One call's way through the raw sequence.

    Attributes
    ----------
    dtype : numpy.dtype
        Of the samples.
    front : type
        ``numpy.random.Generator`` or ``numpy.random.RandomState``.
    make : callable
        ``make(front, n)`` is NumPy's own call for `n` samples.
    into : callable or None
        ``into(front, out)`` does the same in place, where NumPy can.
    unit : {"wide", "half", "pair"}
        What is counted, see `streams.stream_of`.
    samples : int
        Samples for each token.
    units, variance : float
        Mean and variance of the units that one token takes; variance 0 means that they are fixed. They decide how
        even the shares are, never what comes out.
    accepted : ndarray of bool or None
        For the filtered kind: which values of a part of a draw are taken.
    bounds : (float, float) or None
        For doubles ``low + span * x`` of one draw of 64 bits each, of which `x` has the upper 53: low and span.
    """

    dtype: np.dtype
    front: type
    make: Callable[[Front, int], np.ndarray]
    unit: str
    into: Callable[[Front, np.ndarray], object] | None = None
    samples: int = 1
    units: float = 1.0
    variance: float = 0.0
    accepted: np.ndarray | None = None
    bounds: tuple[float, float] | None = None

    @property
    def kind(self) -> str:
        """``fixed``, ``variable`` or ``filtered``."""
        return "filtered" if self.accepted is not None else "variable" if self.variance else "fixed"

    def fill(self, front: Front, out: np.ndarray) -> None:
        """The next ``len(out)`` samples of `front`, which is at the beginning of a token, into a 1-d array."""
        if self.into is not None:
            self.into(front, out)
        elif self.kind == "filtered" or len(out) <= CHUNK:
            out[:] = self.make(front, len(out))
        else:
            for start in range(0, len(out), CHUNK):
                part = out[start : start + CHUNK]
                part[:] = self.make(front, len(part))

    def skip(self, front: Front, count: int) -> None:
        """Make and forget `count` samples (of a kind that is not filtered)."""
        scratch = np.empty(min(count, CHUNK), self.dtype)
        while count > 0:
            self.fill(front, scratch[:count])
            count -= CHUNK


def random(dtype: np.dtype) -> Draw:
    """``Generator.random``."""
    return Draw(
        dtype,
        np.random.Generator,
        lambda front, n: front.random(n, dtype),
        unit="wide" if dtype.itemsize == 8 else "half",
        into=lambda front, out: front.random(dtype=dtype, out=out),
        bounds=(0.0, 1.0) if dtype.itemsize == 8 else None,
    )


def uniform(front: type, low: float, high: float) -> Draw:
    """``uniform`` of either front; the legacy ``random_sample`` is `legacy_random`."""
    double, bounds = np.dtype(np.float64), (float(low), float(high) - float(low))
    return Draw(double, front, lambda front, n: front.uniform(low, high, n), unit="wide", bounds=bounds)


def legacy_random() -> Draw:
    """``RandomState.random_sample``."""
    return Draw(np.dtype(np.float64), np.random.RandomState, lambda front, n: front.random_sample(n), unit="wide")


# Mean and variance of the draws for a sample of the ziggurat methods, from 6e7 samples of PCG64(11).
_NORMAL: Keywords = {"units": 1.02206, "variance": 0.0364}
_EXPONENTIAL: Keywords = {"units": 1.03358, "variance": 0.0561}


def standard_normal(dtype: np.dtype) -> Draw:
    """``Generator.standard_normal``: a ziggurat, 1.022 draws a sample."""
    return Draw(
        dtype,
        np.random.Generator,
        lambda front, n: front.standard_normal(n, dtype),
        unit="wide" if dtype.itemsize == 8 else "half",
        into=lambda front, out: front.standard_normal(dtype=dtype, out=out),
        **_NORMAL,
    )


def normal(loc: float, scale: float) -> Draw:
    """``Generator.normal``."""
    double = np.dtype(np.float64)
    return Draw(double, np.random.Generator, lambda front, n: front.normal(loc, scale, n), unit="wide", **_NORMAL)


def standard_exponential(dtype: np.dtype, method: str) -> Draw:
    """``Generator.standard_exponential``: a ziggurat, or the inverse (any `method` but "zig", as in NumPy)."""
    return Draw(
        dtype,
        np.random.Generator,
        lambda front, n: front.standard_exponential(n, dtype, method),
        unit="wide" if dtype.itemsize == 8 else "half",
        into=lambda front, out: front.standard_exponential(dtype=dtype, method=method, out=out),
        **(_EXPONENTIAL if method == "zig" else {}),
    )


def exponential(scale: float) -> Draw:
    """``Generator.exponential``."""
    double = np.dtype(np.float64)
    return Draw(double, np.random.Generator, lambda front, n: front.exponential(scale, n), unit="wide", **_EXPONENTIAL)


def legacy_normal(loc: float | None = None, scale: float | None = None) -> Draw:
    """``RandomState.normal``, or ``standard_normal`` without parameters: Marsaglia's polar method, pairs of samples.

    The sample that the state may hold back from an earlier call is the caller's affair.
    """
    return Draw(
        np.dtype(np.float64),
        np.random.RandomState,
        (lambda front, n: front.standard_normal(n)) if loc is None else (lambda front, n: front.normal(loc, scale, n)),
        unit="pair",
        samples=2,
        units=4 / np.pi,
        variance=(1 - np.pi / 4) / (np.pi / 4) ** 2,
    )


def integers(low: int, high: int, dtype: np.dtype, endpoint: bool) -> Draw:
    """``Generator.integers`` with scalar bounds, which NumPy has accepted: Lemire's method."""
    span = high - low - (not endpoint)

    def make(front: Front, n: int) -> np.ndarray:
        return front.integers(low, high, n, dtype, endpoint)

    return _bounded(np.random.Generator, make, dtype, span, masked=False)


def randint(low: int, high: int, dtype: np.dtype, make: Callable[[Front, int], np.ndarray]) -> Draw:
    """``RandomState.randint`` with scalar bounds, which NumPy has accepted: rejection under a mask."""
    return _bounded(np.random.RandomState, make, dtype, high - low - 1, masked=True)


def _bounded(front: type, make: Callable[[Front, int], np.ndarray], dtype: np.dtype, span: int, masked: bool) -> Draw:
    """Integers from 0 to `span` inclusive, whatever is added to them."""
    bits = 1 if dtype.kind == "b" else 8 * dtype.itemsize
    if span == 0:
        return Draw(dtype, front, make, "half", units=0.0)
    if bits == 1:
        return Draw(dtype, front, make, "half", samples=32)
    # 64-bit integers of a small range are made of 32 bits each.
    bits = 32 if bits == 64 and span < 1 << 32 else bits
    unit = "wide" if bits == 64 else "half"
    full = 1 << bits
    if masked:
        rejected = 1 - (span + 1) / (1 << span.bit_length())
    else:
        rejected = full % (span + 1) / full
    samples = max(1, 32 // bits)
    if not rejected:
        return Draw(dtype, front, make, unit, samples=samples)
    mean, variance = 1 / (1 - rejected), rejected / (1 - rejected) ** 2
    if samples == 1:
        return Draw(dtype, front, make, unit, units=mean, variance=variance)
    values = np.arange(full)
    if masked:
        accepted = (values & ((1 << span.bit_length()) - 1)) <= span
    else:
        accepted = values * (span + 1) % full >= full % (span + 1)
    return Draw(dtype, front, make, "half", units=mean / samples, variance=variance / samples**2, accepted=accepted)
