"""The phases of eigenvectors and singular vectors, which a matrix leaves open: a rule that any number of ranks keeps.

Of each vector the first element that is not small is made positive. Which one that is does not depend on rounding,
unless its size is `_LARGE` times that of the largest to the last digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_CHUNK = 64  # vectors that are looked at together
_LARGE = 0.57  # no ratio that elements of common matrices' vectors have


def phases_of(vectors: Any) -> Any:
    """By what each of some columns is to be multiplied: signs, or complex numbers of size one.

    Parameters
    ----------
    vectors : ndarray or array of a device, (m, n)
        Finite; columns of zeros stay as they are.
    """
    made = [np.ones(0, vectors.dtype)]
    for start in range(0, vectors.shape[1] if len(vectors) else 0, _CHUNK):
        some = vectors[:, start : start + _CHUNK]
        sizes = np.abs(some)
        first = np.argmax(sizes >= _LARGE * sizes.max(axis=0), axis=0)[None]
        size = np.take_along_axis(sizes, first, 0)
        phases = np.where(size > 0, np.take_along_axis(some, first, 0).conj(), 1) / np.where(size > 0, size, 1)
        made.append(phases[0].astype(vectors.dtype, copy=False))
    return np.concatenate(made[1:] or made)


def normalize_singular(left: Any, right: Any, count: int) -> None:
    """Give pairs of singular vectors the phases with which the right ones keep to the rule, in place.

    Parameters
    ----------
    left : array, (m, at least count)
    right : array, (at least count, n)
        Right singular vectors, conjugated, as rows.
    count : int
        Of pairs; vectors beyond them stay as they are.
    """
    phases = phases_of(right[:count].conj().T)
    left[:, :count] *= phases
    right[:count] *= phases.conj()[:, None]
