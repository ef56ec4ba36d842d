"""Functions and methods of arrays at hand: NumPy's, where their results have the engine's bits (`distarray.same_bits`).

The class `AtHand` looks a function up in `ROUTES`, which are kept here as rules come and go.
"""

from __future__ import annotations

import functools
import inspect
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from numpy_dist.argument_types import Function, Keywords
from numpy_dist.backends.summation import CHUNK
from numpy_dist.dispatch.core import outcome, registry
from numpy_dist.dispatch.core.operands import rebuild
from numpy_dist.distarray.array import DistArray
from numpy_dist.distarray.at_hand import (
    COMPOSED,
    DONE,
    METHODS,
    NUMBERS,
    PASSED,
    ROUTES,
    WRITERS,
    AtHand,
    NotAtHand,
    assign,
    casts,
    converts,
    elements,
    is_ours,
    key_of,
    new_memory,
    product,
    real_of,
    vector_product,
    view_at_hand,
    writeable,
)
from numpy_dist.distarray.same_bits import EVENTS, NEW, SHORT, TOLD, VIEWS
from numpy_dist.engine.data import watch, windows
from numpy_dist.engine.data.folds import mean_of
from numpy_dist.engine.data.totals import reduced
from numpy_dist.engine.data.windows import FREE, KINDS, hand_over, near
from numpy_dist.parallel.ordered import is_numpys

if TYPE_CHECKING:
    from numpy_dist.dispatch.core.keys import Key

_ndarray = np.ndarray
_rules = registry.TABLE

# -- reductions ------------------------------------------------------------------------------------------------------

_FOLDS: dict[Any, np.ufunc] = {
    np.sum: np.add,
    np.mean: np.add,
    np.max: np.maximum,
    np.amax: np.maximum,
    np.min: np.minimum,
    np.amin: np.minimum,
    np.any: np.logical_or,
    np.all: np.logical_and,
}


_OF_SAME_DTYPE = frozenset((np.sum, np.mean, np.max, np.amax, np.min, np.amin))
"""Those whose results have the dtype of the elements, where these are floats."""


def _folded(
    function: Function,
    x: AtHand,
    axis: Any = None,
    *,
    keepdims: object = False,
    initial: object = np._NoValue,
    **others: object,
) -> object:
    """An array at hand that is reduced, as the summation tree has it (`backends.summation`); None for other calls."""
    real = x._real
    if others or type(keepdims) is not bool or not x._window.readable or not real.size or not is_ours(function):
        return None
    if function is np.mean and real.dtype.char not in "fdFD":
        return None
    if windows.eager and not windows.permits(real.nbytes):
        return None
    made = reduced(_FOLDS[function], real, axis, keepdims)
    if made is None:
        return None
    if function is np.mean:
        made = mean_of(made, real.size)
    if initial is not np._NoValue:
        if type(made) is _ndarray or not made or function not in _EXTREMES or type(initial) not in (int, float):
            return None  # of zeros of both signs it depends which is met first
        made = _EXTREMES[function](made, made.dtype.type(initial))
    if type(made) is _ndarray:
        return near(made)
    windows.asked_for(real.nbytes)
    return made


_EXTREMES = {function: ufunc for function, ufunc in _FOLDS.items() if ufunc in (np.maximum, np.minimum)}


def _folding(name: str, function: Function) -> Function:
    general = getattr(DistArray, name)

    @functools.wraps(general, updated=())
    def method(self: AtHand, *args: object, **kwargs: object) -> object:
        made = None if len(args) > 1 else _folded(function, self, *args, **kwargs)
        return general(hand_over(self), *args, **kwargs) if made is None else made

    return method


# -- functions -------------------------------------------------------------------------------------------------------

_VECTORS = (np.inner, np.vdot)
_PARTS: dict[Function, str] = {np.real: "real", np.imag: "imag"}
_SILENT = frozenset((*VIEWS, *TOLD))  # which compute nothing
_FLATTENING = frozenset((np.ravel, np.reshape))
_SHORT = frozenset(SHORT)
_WRITTEN = ("out", "overwrite_input")
"""Parameters by which a function writes to its arguments: the engine's."""
_MOST_GROWN = 16
"""How many times larger than an argument a result of `outer` is at the most, to be NumPy's."""


def _position_of_written(function: Function) -> int:
    """How many positional arguments a function has before the first that lets it write to its arguments."""
    if function is np.nan_to_num:
        return 1  # `copy`
    return {np.concatenate: 2}.get(function, _position_of(_WRITTEN, function))


def _position_of(wanted: tuple[str, ...], function: Function) -> int:
    """How many positional arguments a function has before the first with one of these names; many if it has none."""
    try:
        names = list(inspect.signature(function).parameters)
    except ValueError:  # some are not Python's, in some versions
        names = []
    return min([names.index(name) for name in wanted if name in names], default=1 << 30)


def _is_of_others(function: Function, values: list[Any], kwargs: Keywords) -> bool:
    """Whether the dtype that a call asks for is none of `KINDS`: NumPy would tell the events of a result in vain."""
    position = _DTYPE_AT[function]
    dtype = values[position] if position < len(values) else kwargs.get("dtype")
    return dtype is not None and np.dtype(dtype).char not in KINDS


def _by_numpy(function: Function, args: tuple, kwargs: Keywords, call: Function | None = None) -> object:
    """What NumPy's function makes of elements that are at hand; None where they are not, or it is much.

    `call` is what is called in place of the function: a method that does the same.
    """
    given: list[tuple[DistArray | np.ndarray, np.ndarray]] = []
    if len(args) > _BEFORE_WRITTEN[function]:
        return None
    out = kwargs.get("out")
    if out is not None:
        kwargs = {name: x for name, x in kwargs.items() if name != "out"}
    try:
        values = [x if type(x) in PASSED else real_of(x, given) for x in args]
        if kwargs:
            if kwargs.get("overwrite_input") is not None or function is np.nan_to_num:
                return None
            kwargs = {name: real_of(x, given) for name, x in kwargs.items()}
    except NotAtHand:
        return None
    if function is np.outer and np.size(values[0]) * np.size(values[1]) * _MOST_GROWN >= windows.limit:
        return None
    if _is_of_others(function, values, kwargs):
        return None
    if function in _SHORT and ("where" in kwargs or not all(_is_short(real) for _, real in given)):
        return None
    if function not in _SILENT and any(_descends(real) for _, real in given):
        return None
    if out is not None:
        target = _output(out, given)
        if target is None:
            return None
        kwargs["out"] = target
    name = EVENTS.get(function) if "dtype" not in kwargs else None  # casts are told as such
    call = function if call is None else call
    if name is not None:
        made = watch.watched(call, name, *values, **kwargs)
    elif function in _SILENT:
        made = call(*values, **kwargs)
    else:
        with outcome.Retold():
            made = call(*values, **kwargs)
    if out is not None:
        return out
    if isinstance(made, np.generic):
        return made
    found = _as_result(made, given)
    if (
        function in _FLATTENING
        and type(found) is AtHand
        and made.dtype.kind == "c"
        and found._window is FREE
        and given[0][1].ndim > 1
    ):
        return None  # whose parts would lie in rows
    return found


def _output(out: object, given: list[tuple[DistArray | np.ndarray, np.ndarray]]) -> np.ndarray | None:
    """The elements of an output of the operands' dtype that is none of them, or one as a whole; None for others."""
    target = writeable(out[0] if type(out) is tuple and len(out) == 1 else out)
    if target is None or not target.flags.c_contiguous or target.dtype.char not in KINDS:
        return None
    for x, real in given:
        if real.dtype.kind in "fc" and real.dtype is not target.dtype:
            return None
        if x is not out and np.may_share_memory(real, target):
            return None
    return target


def _is_short(real: np.ndarray) -> bool:
    """Whether the summation tree of elements is one chunk, as NumPy's is."""
    return real.ndim == 1 and len(real) <= CHUNK and real.strides[0] > 0


def _descends(real: np.ndarray) -> bool:
    """Whether NumPy takes another way for products of complex elements (`distarray.at_hand`)."""
    return real.dtype.kind == "c" and min(real.strides, default=0) < 0


def _as_result(made: Any, given: list[tuple[DistArray | np.ndarray, np.ndarray]]) -> object:
    """NumPy's result with arrays at hand in place of ndarrays; None where there is none for one of them."""
    kind = type(made)
    if kind is not _ndarray:
        if kind is not tuple and kind is not list and not hasattr(kind, "_make"):
            return made
        items = [_as_result(item, given) for item in made]
        return None if any(item is None for item in items) else rebuild(kind, items)
    if made.nbytes >= windows.limit or made.dtype.char not in KINDS or not made.flags.writeable:
        return None
    base = made.base
    for x, real in given:
        if made is real:
            return x
        if base is not None and (base is real or base is real.base):
            if type(x) is not AtHand:
                return None
            window = x._window
            if window is FREE:
                window = windows.family(x)
            return None if window is None else view_at_hand(x, made, window)
    return new_memory(made)


def _sorting(args: tuple, kwargs: Keywords) -> object:
    """`argsort`, which takes what is equal in its order, as the engine does."""
    if len(args) == 1 and not kwargs and type(args[0]) is AtHand and args[0]._real.ndim == 1:
        kwargs = {"kind": "stable"}
    return _by_numpy(np.argsort, args, kwargs)


def _computed_by(function: Function) -> Function:
    """How a function is called: ``(args, kwargs)``; it gives None where the engine has to."""
    if function is np.dot:
        return product
    if function is np.einsum:
        return _einsum
    if function in _VECTORS:
        return functools.partial(vector_product, function)
    if function in _PARTS:
        return functools.partial(_part, _PARTS[function])
    if function is np.argsort:
        return _sorting
    if function in _FOLDS:
        return functools.partial(_reduction, function)
    return functools.partial(_by_numpy, function)


def _part(name: str, args: tuple, kwargs: Keywords) -> object:
    """`numpy.real` and `numpy.imag` of an array at hand, which are attributes; None for others."""
    return getattr(args[0], name) if len(args) == 1 and type(args[0]) is AtHand and not kwargs else None


def _reduction(function: Function, args: tuple, kwargs: Keywords) -> object:
    """`sum`, `max` and the like of an array at hand, along an axis or all; None for others."""
    if not 0 < len(args) <= 2 or type(args[0]) is not AtHand:
        return None
    if kwargs.get("out") is None:
        return _folded(function, *args, **kwargs)
    target = writeable(kwargs["out"])
    if target is None or function not in _OF_SAME_DTYPE or target.dtype is not args[0]._real.dtype:
        return None
    if target.dtype.char not in "fdlLFD":  # of others, sums have another one
        return None
    made = _folded(function, *args, **{name: x for name, x in kwargs.items() if name != "out"})
    values = made._real if type(made) is AtHand else np.asarray(made)
    if made is None or values.shape != target.shape or values.dtype is not target.dtype:
        return None
    target[...] = values
    return kwargs["out"]


def _method(name: str, function: Function) -> Function:
    """A method of ndarray that does what a function does which is computed at once."""
    general, call = getattr(DistArray, name), getattr(np.ndarray, name)
    stable = function is np.argsort

    @functools.wraps(general, updated=())
    def method(self: AtHand, *args: object, **kwargs: object) -> object:
        if not registry.loaded:
            registry.load()
        if function in ROUTES:
            if stable:
                made = _sorting((self, *args), kwargs)
            else:
                made = _by_numpy(function, (self, *args), kwargs, call)
            if made is not None:
                return made
        return general(hand_over(self), *args, **kwargs)

    return method


def _shaping(name: str, function: Function) -> Function:
    """A method whose result is a view where it can be, and that takes integers."""
    by_numpy, call = _method(name, function), getattr(np.ndarray, name)

    @functools.wraps(by_numpy, updated=())
    def method(self: AtHand, *args: object, **kwargs: object) -> object:
        window, real = self._window, self._real
        if kwargs or not window.readable or real.dtype.kind == "c" or function not in ROUTES:
            return by_numpy(self, *args, **kwargs)
        if not _ARE_EXTENTS(map(type, args)) and not (len(args) == 1 and type(args[0]) is tuple):
            return by_numpy(self, *args, **kwargs)
        made, whole = call(real, *args), real if real.base is None else real.base
        if made is real or (made.base is not whole and made.base is not real):
            return by_numpy(self, *args, **kwargs)  # new memory
        if window is FREE:
            window = windows.family(self)  # type: ignore[assignment]
        return by_numpy(self, *args, **kwargs) if window is None else view_at_hand(self, made, window)

    return method


def _composed_method(name: str, function: Function) -> Function:
    """A method that the house composes of other functions, each of which may be at once."""
    general = getattr(DistArray, name)

    @functools.wraps(general, updated=())
    def method(self: AtHand, *args: object, **kwargs: object) -> object:
        if kwargs.keys() - {"axis", "keepdims", "ddof"} or len(args) > 1:
            return general(hand_over(self), *args, **kwargs)
        return self.__array_function__(function, (AtHand,), (self, *args), kwargs)

    return method


def _sort(self: AtHand, axis: object = -1, kind: object = None, order: object = None, *, stable: object = None) -> None:
    """Sort in place (as ndarray.sort)."""
    if order is None and type(axis) is int and (route := ROUTES.get(np.sort)) is not None:
        made = route((self,), {"axis": axis, "kind": kind, "stable": stable})
        if made is not None and assign(self, Ellipsis, made):
            return
    cast(Any, DistArray).sort(hand_over(self), axis, kind, order, stable=stable)


def _partition(self: AtHand, kth: object, axis: Any = -1, kind: str = "introselect", order: object = None) -> None:
    """Put elements in place around those of a rank (as ndarray.partition)."""
    if order is None and type(axis) is int and (route := ROUTES.get(np.partition)) is not None:
        made = route((self, kth), {"axis": axis, "kind": kind})
        if made is not None and assign(self, Ellipsis, made):
            return
    cast(Any, DistArray).partition(hand_over(self), kth, axis, kind, order)


# -- sums of products ------------------------------------------------------------------------------------------------


class _Pair(NamedTuple):
    """A sum of the products of two arrays, each of which has each label once.

    Attributes
    ----------
    left, right, output : str
        Their labels, and those of the result.
    common, rows, columns, gone : str
        Labels of both that are kept, of one of them, and of both that are summed over.
    """

    left: str
    right: str
    output: str
    common: str
    rows: str
    columns: str
    gone: str


@lru_cache(maxsize=1024)
def _pair_of(subscripts: str) -> _Pair | None:
    """What subscripts of `numpy.einsum` say of two arrays; None of others, and where one is summed by itself."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    left, comma, right = inputs.partition(",")
    if not comma or not left.isalpha() or not right.isalpha() or not subscripts.isascii():
        return None
    if not arrow:
        output = "".join(sorted({*left} ^ {*right}))
    common = [name for name in left if name in right]
    kept, gone = ("".join(n for n in common if (n in output) is there) for there in (True, False))
    rows, columns = ("".join(n for n in one if n not in other) for one, other in ((left, right), (right, left)))
    once = all(len({*names}) == len(names) for names in (left, right, output))
    if not once or {*output} != {*kept, *rows, *columns} or (gone and kept and rows + columns):
        return None
    return _Pair(left, right, output, kept, rows, columns, gone)


def _einsum(args: tuple, kwargs: Keywords) -> object:
    """`numpy.einsum` of two arrays, as the engine computes it: as one sum of products, or one product of matrices."""
    if kwargs or len(args) != 3 or type(args[0]) is not str or (pair := _pair_of(args[0])) is None:
        return None
    x, y = (elements(one, type(one)) for one in args[1:])
    if x is None or y is None or x.dtype is not y.dtype or x.dtype.char not in "fdl":
        return None
    left, right, output, common, rows, columns, gone = pair
    sizes = dict(zip(left, x.shape, strict=False)) | dict(zip(right, y.shape, strict=False))
    lengths = x.shape + y.shape
    if tuple(sizes.get(name) for name in left + right) != lengths or min(lengths, default=0) < 2:
        return None  # NumPy's error, or extents of 1 and 0
    if prod(sizes[name] for name in common + rows + columns + gone) * x.itemsize >= windows.limit:
        return None
    if len(output) > 1 and not (output == common + rows + columns and x.flags.c_contiguous and y.flags.c_contiguous):
        return None  # the result has an order of its own in memory
    x, y = _lined_up(left, x, common + rows + gone), _lined_up(right, y, common + gone + columns)
    with np.errstate(all="ignore"):  # as NumPy, which does not look at what it meets
        if gone and rows + columns:
            inner = prod(sizes[name] for name in gone)
            made: Any = np.matmul(x.reshape(-1, inner), y.reshape(inner, -1))
            made = made.reshape([sizes[name] for name in output])
        elif gone:
            made = reduced(np.add, x * y, tuple(range(len(common), x.ndim)), False)
        else:
            made = x[(..., *(None,) * len(columns))] * y[(*(slice(None),) * len(common), *(None,) * len(rows))]
            made = made + made.dtype.type(0) if made.dtype.kind == "f" else made  # no zero is negative
    return near(made) if type(made) is _ndarray else made


def _lined_up(names: str, x: np.ndarray, wanted: str) -> np.ndarray:
    """An array with its axes in this order."""
    return x if names == wanted else x.transpose([names.index(name) for name in wanted])


# -- functions that write --------------------------------------------------------------------------------------------

_VALUES_AT: dict[Function, tuple[int, str]] = {
    np.copyto: (1, "src"),
    np.fill_diagonal: (1, "val"),
    np.place: (2, "vals"),
    np.put: (2, "v"),
    np.putmask: (2, "values"),
}
"""Functions that write values to their first argument and compute nothing: where these stand, and their name."""


def _write(function: Function, args: tuple, kwargs: Keywords) -> bool:
    """Write values to an array at hand; False if nothing was done: the engine has to."""
    position, name = _VALUES_AT[function]
    if not args or type(args[0]) is not AtHand or kwargs.get("casting", "same_kind") != "same_kind":
        return False
    target, window = args[0]._real, args[0]._window
    given: list[tuple[DistArray | np.ndarray, np.ndarray]] = []
    try:
        values = [real_of(x, given) for x in args[1:]]
        options = {key: real_of(x, given) for key, x in kwargs.items()}
    except NotAtHand:
        return False
    by_position = len(args) > position
    if not by_position and name not in options:
        return False
    place: Any = position - 1 if by_position else name
    box: Any = values if by_position else options
    written, kind = box[place], type(box[place])
    if kind in NUMBERS:
        if not converts(kind, target.dtype.char):
            return False
    elif kind is not _ndarray or not casts(written.dtype, target.dtype):
        return False
    elif np.may_share_memory(written, target):  # NumPy might write what it has yet to read
        box[place] = written.copy()
    if function is np.put and not target.flags.c_contiguous:
        return False
    if not (window.writeable or (window.readable and windows.may_be_written(window))):
        return False
    function(target, *values, **options)
    return True


# -- methods of ufuncs -------------------------------------------------------------------------------------------------

_ORDERED = (np.maximum, np.minimum, np.fmax, np.fmin)
"""Ufuncs whose running values are the same whoever compares first."""


def _accumulate(ufunc: np.ufunc, inputs: tuple, kwargs: Keywords) -> object:
    """Running extremes of a vector."""
    if ufunc not in _ORDERED or kwargs or len(inputs) != 1 or type(inputs[0]) is not AtHand:
        return None
    x = inputs[0]
    if not x._window.readable or x._real.ndim != 1 or x._real.dtype.kind == "c":
        return None
    return near(watch.applied(ufunc.accumulate, "accumulate", (x._real,)))


def _outer(ufunc: np.ufunc, inputs: tuple, kwargs: Keywords) -> object:
    """A ufunc of all pairs of elements: by broadcasting."""
    if kwargs or len(inputs) != 2 or type(inputs[0]) is not AtHand or type(inputs[1]) is not AtHand:
        return None
    a, b = inputs
    return ufunc(a[(..., *(None,) * b._real.ndim)], b)


def _at(ufunc: np.ufunc, inputs: tuple, kwargs: Keywords) -> object:
    """Elements that are updated by index, in the order of the index."""
    if kwargs or len(inputs) not in (2, 3):
        return None
    target, key = writeable(inputs[0]), key_of(inputs[1])
    given: list[tuple[DistArray | np.ndarray, np.ndarray]] = []
    try:
        values = [real_of(x, given) for x in inputs[2:]]
    except NotAtHand:
        return None
    if target is None or key is None or target.dtype.char not in KINDS:
        return None
    arrays = [x for x in (*values, *(key if type(key) is tuple else (key,))) if type(x) is _ndarray]
    if any(np.may_share_memory(x, target) for x in arrays):
        return None
    with outcome.Retold():
        ufunc.at(target, key, *values)
    return DONE


def _reduceat(ufunc: np.ufunc, inputs: tuple, kwargs: Keywords) -> object:
    """Segments that are reduced."""
    if kwargs or len(inputs) not in (2, 3) or type(inputs[0]) is not AtHand or ufunc.nout > 1:
        return None
    try:
        values = [real_of(x, []) for x in inputs]
    except NotAtHand:
        return None
    if not is_numpys(ufunc, values[0].dtype):
        return None
    with outcome.Retold():
        return near(ufunc.reduceat(*values))


METHODS.update(accumulate=_accumulate, outer=_outer, at=_at, reduceat=_reduceat)

# -- who computes what -------------------------------------------------------------------------------------------------

_METHODS: dict[str, Function] = {
    "astype": np.astype,
    "flatten": np.ravel,
    "prod": np.prod,
    "trace": np.trace,
    "argpartition": np.argpartition,
    **{name: getattr(np, name) for name in ("argmax", "argmin", "argsort", "clip", "cumprod", "cumsum")},
    **{name: getattr(np, name) for name in ("nonzero", "ravel", "reshape", "round", "searchsorted", "squeeze")},
    **{name: getattr(np, name) for name in ("swapaxes", "take", "transpose")},
}
"""Methods of ndarray, and the functions whose rules they follow."""
_SHAPING = frozenset(("ravel", "reshape", "squeeze", "swapaxes", "transpose"))
_ARE_EXTENTS = frozenset([int]).issuperset
_HOUSE: dict[Key, Function] = {
    function: _computed_by(function)
    for function in (np.dot, np.einsum, *_VECTORS, *_PARTS, *_FOLDS, *VIEWS, *TOLD, *NEW, *SHORT)
}
_BEFORE_WRITTEN = {function: _position_of_written(function) for function in _HOUSE}
_DTYPE_AT = {function: _position_of(("dtype",), function) for function in _HOUSE}


_FINDING = frozenset(("composed", "structural"))
"""Kinds of rules whose functions are made of others, and of views."""


def _find_routes() -> None:
    """Sort the functions by who computes them, once all rules of the house are known."""
    for function in list(_rules):
        _route_function(function)


def _route_function(key: Key) -> None:
    """Let a function be computed at once, unless somebody else has rules for it."""
    record = _rules.get(key)
    ours = record is not None and record.rules[0].house
    if ours and key in _HOUSE:
        ROUTES[key] = _HOUSE[key]
    else:
        ROUTES.pop(key, None)
    if ours and key in _VALUES_AT:
        WRITERS[key] = functools.partial(_write, key)
    else:
        WRITERS.pop(key, None)
    if ours and record is not None and record.kind in _FINDING and not isinstance(key, tuple):
        COMPOSED.add(key)
    else:
        COMPOSED.discard(key)


def _define() -> None:
    for name in ("sum", "mean", "max", "min", "any", "all"):
        setattr(AtHand, name, _folding(name, getattr(np, name)))
    for name, function in _METHODS.items():
        setattr(AtHand, name, (_shaping if name in _SHAPING else _method)(name, function))
    AtHand.sort = _sort  # type: ignore[method-assign, assignment]
    AtHand.partition = _partition  # type: ignore[method-assign, assignment]
    for name in ("std", "var"):
        setattr(AtHand, name, _composed_method(name, getattr(np, name)))


_define()
registry.LOADED.append(_find_routes)
if registry.loaded:
    _find_routes()
registry.CHANGED.append(_route_function)
