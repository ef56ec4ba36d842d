"""The element-wise pattern for functions that are no ufuncs: NumPy's own function on each rank's elements.

Needs and communicates what a stack of elements does (`stacks`). For authors' functions of elements, which are compiled
where they can be, there is `numpy_dist.elementwise`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Arguments, Function, Keywords
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.patterns.stacks import on_stacks

_PARTITIONS = (np.strings.partition, np.strings.rpartition)


# What older versions of NumPy do not tell about functions written in C.
_C_PARAMETERS: dict[Callable[..., object], list[str]] = {
    np.busday_count: ["begindates", "enddates", "weekmask", "holidays", "busdaycal", "out"],
    np.busday_offset: ["dates", "offsets", "roll", "weekmask", "holidays", "busdaycal", "out"],
    np.is_busday: ["dates", "weekmask", "holidays", "busdaycal", "out"],
}


def _is_array(value: object) -> bool:
    return engine.is_handle(value) or isinstance(value, np.ndarray | list | tuple)


def _refuse(function: Callable[..., object], args: Arguments, kwargs: Keywords) -> None:
    """Raise NumPy's error for arrays that hold no texts: it names dtypes that cannot be sent to other ranks."""
    first = args[0] if args and engine.is_handle(args[0]) else None
    if function.__module__ == "numpy.strings" and first is not None and first.dtype.kind not in "SUT":
        function(*(np.zeros(1, x.dtype) if engine.is_handle(x) else x for x in args), **kwargs)


@functools.cache
def _has_width_of_texts() -> bool:
    """Whether NumPy cuts what replaces a part of texts, given as a list, to their width: before 2.5.5 it does."""
    return np.strings.replace(np.array("a"), "a", "bb") == "b"


def _alike(value: object, texts: object) -> object:
    """What is sought or put in its place: NumPy takes a list for an array of the texts' kind."""
    if hasattr(value, "dtype"):
        return value
    dtype = texts.dtype if hasattr(texts, "dtype") else np.asanyarray(texts).dtype
    return np.asanyarray(value).astype(dtype if dtype.char == "T" or _has_width_of_texts() else dtype.char)


def elementwise(module: str, function: Function, order: str, plain: tuple[str, ...] = ()) -> None:
    """Registration of a function that treats all elements of its array arguments alike.

    The widths of its results may follow from all values: the widest rank's is everybody's.

    Parameters
    ----------
    module : str
        In whose name it is registered (``__name__``).
    function : callable
    order : {"K", "C"}
        The memory order of NumPy's results.
    plain : tuple of str
        Parameters that are no arrays although they may be lists.
    """
    if not hasattr(function, "__wrapped__") and function.__module__ != "numpy":
        return  # older versions of NumPy do not ask us
    try:
        signature: inspect.Signature | None = inspect.signature(function)
    except ValueError:  # C code of versions before 2.4
        signature = None

    def implementation(*args: object, **kwargs: object) -> object:
        if kwargs.get("out") is not None:
            decline("an output")
        places: list[int | str] = [k for k, value in enumerate(args) if _is_array(value)]
        places += [name for name, value in kwargs.items() if _is_array(value) and name not in plain]
        names = list(signature.parameters) if signature is not None else _C_PARAMETERS.get(function, [])
        if names[-1:] == ["out"] and len(args) == len(names) and args[-1] is not None:
            decline("an output")
        places = [k for k in places if not (isinstance(k, int) and k < len(names) and names[k] in plain)]

        _refuse(function, args, kwargs)
        if function in _PARTITIONS and len(places) > 1:
            decline("several separators, whose widths all elements share")

        def local(*blocks: np.ndarray) -> object:
            position, named = list(args), dict(kwargs)
            for place, block in zip(places, blocks, strict=True):
                if isinstance(place, int):
                    position[place] = block
                else:
                    named[place] = block
            return function(*position, **named)

        given = [args[place] if isinstance(place, int) else kwargs[place] for place in places]
        if function is np.strings.replace:
            texts = args[0] if args else kwargs["a"]
            sought = (1, 2, "old", "new")
            given = [_alike(x, texts) if place in sought else x for place, x in zip(places, given, strict=True)]
        return on_stacks(local, given, name=function.__name__, order=order)

    implementation.__name__ = implementation.__qualname__ = function.__name__
    if signature is not None:
        implementation.__signature__ = signature  # type: ignore[attr-defined]
    implements(function, kind="elementwise", source=module)(implementation)
