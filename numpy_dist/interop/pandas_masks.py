"""The plug-in ``pandas``: distributed arrays as masks, and as keys of groups and rows.

Each is gathered, with the warning. The plug-in is on unless ``PLUGINS`` says otherwise. pandas takes for masks only
ndarrays and its own types, and else looks values up as labels. What is put before is not on the way of labels
(``frame["a"]``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from numpy_dist.argument_types import Function
from numpy_dist.importing import put_before


def take_over(pandas: ModuleType) -> None:
    """Stand before functions of pandas."""
    inner = {name: sys.modules.get(f"pandas.core.{name}") for name in ("common", "indexing", "frame", "series")}
    put_before(inner["common"], "is_bool_indexer", _is_mask)
    for name in ("indexing", "frame", "series"):
        put_before(inner[name], "check_bool_indexer", _with_ndarrays)
    put_before(pandas.DataFrame, "_set_item", _set_item)
    put_before(pandas.DataFrame, "_setitem_frame", _set_item)
    for owner in (pandas.DataFrame, pandas.Series):
        for name in ("groupby", "where", "mask"):
            put_before(owner, name, _with_ndarrays)
    put_before(pandas.DataFrame, "set_index", _with_ndarrays)


def _is_ours(a: object) -> bool:
    from numpy_dist import engine

    return engine.is_handle(a) and _is_on()


def _is_on() -> bool:
    from numpy_dist.dispatch.core.plugins import permission_of
    from numpy_dist.settings import config

    return permission_of("pandas", config.PLUGINS) == "all"


def _is_mask(own: Callable[..., bool], key: Any) -> bool:
    """Whether pandas takes a key for a mask, which `check_bool_indexer` then looks at."""
    return own(key) or (_is_ours(key) and key.dtype.kind == "b")


def _set_item(own: Function, frame: Any, key: object, value: object, *rest: object, **kwargs: object) -> object:
    """``frame[key] = value``, with a mask of one axis or two."""
    import numpy as np

    from numpy_dist import engine

    if engine.is_handle(key):
        if not _is_on():
            raise TypeError("pandas takes only ndarrays for masks: write frame[mask.gather()] = value")
        frame[np.asarray(key)] = value
        return None
    return own(frame, key, value, *rest, **kwargs)


def _with_ndarrays(own: Function, *args: object, **kwargs: object) -> object:
    """What a function makes of ndarrays; `__array__` warns of the gathers."""
    import numpy as np

    def of(a: object) -> object:
        if isinstance(a, list):
            return [of(one) for one in a]
        return np.asarray(a) if _is_ours(a) else a

    return own(*map(of, args), **{name: of(a) for name, a in kwargs.items()})
