"""Data type routines: questions about metadata, for which nothing is computed or moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.dispatch.core.registry import implements

if TYPE_CHECKING:
    from numpy import _CastingKind

    from numpy_dist.distarray import DistArray


def _dtype_of(x: Any) -> DTypeLike:
    return x.dtype if engine.is_handle(x) else x


@implements(np.result_type, kind="native")
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    # Arrays, not dtypes: NumPy's errors have them in another order.
    return np.result_type(*(np.empty(0, x.dtype) if engine.is_handle(x) else x for x in arrays_and_dtypes))


@implements(np.can_cast, kind="native")
def can_cast(from_: object, to: object, casting: _CastingKind = "safe") -> bool:
    return np.can_cast(_dtype_of(from_), _dtype_of(to), casting)


@implements(np.min_scalar_type, kind="native")
def min_scalar_type(a: DistArray, /) -> np.dtype:
    # It depends on the value of a 0-d array.
    return a.dtype if a.ndim else np.min_scalar_type(engine.item(a))


@implements(np.common_type, kind="native")
def common_type(*arrays: DistArray | np.ndarray) -> type:
    return np.common_type(*(np.empty(0, x.dtype) if engine.is_handle(x) else x for x in arrays))
