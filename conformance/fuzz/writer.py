"""Writer of random programs: NumPy runs each statement as it is written, and the next one knows shapes and values."""

from __future__ import annotations

import contextlib
import math
import random
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from numpy_dist.conformance.arguments import VIEWS
from numpy_dist.conformance.fuzz.interpreter import as_ndarray, namespace, variables
from numpy_dist.conformance.fuzz.program import CHECKPOINT

__all__ = ["ORDERS", "Writer", "distinct", "exact", "has_nan", "ordered"]

T = TypeVar("T")
DTYPES = {"f8": 8, "i8": 4, "i4": 2, "f4": 3, "?": 2, "c16": 2, "i1": 1, "u1": 1, "f2": 1, "u4": 1, "c8": 1, "u8": 1}
OTHERS = {"M8[D]": 2, "m8[s]": 2, "U3": 2, "S2": 1, "x:f8,n:i4": 2, "x:>f8,n:i1,m:i4": 2, ">f8": 1, ">i4": 1, "g": 1}
VALUES = {"whole": 6, "mixed": 2, "special": 2, "nans": 1, "ones": 1, "zeros": 1, "distinct": 1, "bits": 1}
# Of zeros of either sign they take the one or the other, as vectors or the rest of them come upon it.
_EXTREME = re.compile(r"maximum|minimum|fmax|fmin|clip|ptp|\b(?:nan|a)?(?:max|min)\(")
# BLAS leaves out zeros among single factors, also where they meet what is not finite.
ORDERS = re.compile("sort|unique|union|intersect|setxor|setdiff|partition|median|percentile|quantile")
_DEVIATION = re.compile(r"\b(?:nan)?(?:std|var)\b")
_SEARCH = re.compile("digitize|searchsorted")
_SEARCHED = re.compile(r"np\.searchsorted\((v\d+),|(v\d+)\.searchsorted\(")
_OPERATION = re.compile(r"(v\d+) = ((?!.*out=).* [-+*/%&|^<>=]+ .*)")
_LARGE = 1 << 14  # elements, of which NumPy may put results into the memory of operands
_ASSIGNMENT = re.compile(r"(\w+\[.*\]) = (.*)")
_UPDATE = re.compile(r"\.at\((v\d+)")
# NumPy takes memory for large numbers that it never touches, or subtracts a length from them as often as that goes.
_WITHOUT_END = re.compile("bincount|wrap")
_PRODUCT = re.compile(r"np\.(dot|tensordot|inner)\b")
KEPT_ERRORS = 3  # of a program


def exact(*values: object, products: bool = False) -> bool:
    """Whether sums of these values, of any number of them in any order, are exact; or sums of their products."""
    return all(_exact(np.asarray(x), products) for x in values)


def _exact(x: np.ndarray, products: bool) -> bool:
    if x.dtype.kind in "biumM":
        return True
    if x.dtype.kind == "c":
        return _exact(x.real, products) and _exact(x.imag, products)
    if x.dtype.kind != "f":
        return False
    given, x = x.dtype, x[~np.isnan(x)].astype("f8")
    if not np.isfinite(x).all() or np.abs(x).max(initial=0) > 500 or (x * 4 != np.rint(x * 4)).any():
        return False
    most = 500 if not products or given.itemsize > 2 else 100  # half precision has 11 bits, products are of sixteenths
    return not x.size or float(np.abs(x).max()) * (float(np.abs(x).max()) if products else 1) * x.size < most


class _Derived(np.ndarray):
    """An array whose memory NumPy keeps while it is an operand."""


class Writer:
    """The statements so far, and NumPy's values of all names.

    Parameters
    ----------
    seed : int
    big : bool
        Whether arrays are large enough for kernels on several tiles, and for shards at default settings.
    """

    def __init__(self, seed: int, big: bool = False) -> None:
        self.draw = random.Random(seed)
        self.big = big
        self.most = 400_000 if big else 1500
        self.names = _fresh_names()
        self.statements: list[str] = []
        self.errors = 0
        self.number = 0
        self.shapes = [self._shape() for _ in range(2)]
        self.dtypes = self.some(DTYPES if self.chance(0.8) else DTYPES | OTHERS, 3)

    # -- drawing

    def chance(self, probability: float) -> bool:
        """True as often as that."""
        return self.draw.random() < probability

    def one(self, options: Iterable[T]) -> T:
        """One of several."""
        return self.draw.choice(list(options))

    def some(self, weights: dict[str, int], count: int) -> list[str]:
        """Keys, drawn with weights."""
        return self.draw.choices(list(weights), list(weights.values()), k=count)

    def upto(self, most: int) -> int:
        """A number from 0 to `most`."""
        return self.draw.randint(0, max(most, 0))

    def _shape(self) -> tuple[int, ...]:
        if self.big:
            return self.one([(40_000,), (210, 190), (33, 40, 31)])
        axes = self.one([0, 1, 1, 2, 2, 2, 2, 3, 3])
        return tuple(self.one([0, 1, 2, 3, 4, 5, 6, 7, 8, 12]) if axes < 3 else self.upto(5) for _ in range(axes))

    # -- names

    def fresh(self) -> str:
        """A name that is not bound yet."""
        self.number += 1
        return f"v{self.number}"

    def arrays(self, wanted: Callable[[np.ndarray], object] = lambda x: True) -> list[str]:
        """Names of arrays that are as `wanted`; objects are left alone."""
        return [
            name
            for name in variables(self.names)
            if type(self.names[name]) is np.ndarray and self.names[name].dtype.kind != "O" and wanted(self.names[name])
        ]

    def value(self, text: str) -> Any:
        """NumPy's value of an expression."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return eval(text, self.names)

    def pick(self, wanted: Callable[[np.ndarray], object] = lambda x: True) -> str | None:
        """The name of an array that is as wanted, later ones more often; None where there is none."""
        found = self.arrays(wanted)
        if not found:
            return None
        return found[-1 - min(self.upto(len(found) - 1), self.upto(len(found) - 1))]

    # -- statements

    def add(self, text: str) -> bool:
        """Write a statement, unless NumPy refuses it (some refusals are kept), or makes something too large."""
        before, contents = dict(self.names), self._contents()
        if _WITHOUT_END.search(text) and (
            re.search(r"\bspecial\b", text) or any(map(_is_large, map(before.get, _names_in(text))))
        ):
            return False
        try:
            with warnings.catch_warnings(record=True) as told, np.errstate(all="warn"):
                warnings.simplefilter("always")
                exec(compile(text, "<statement>", "exec"), self.names)
        except (MemoryError, RecursionError, SyntaxError):
            return self._dropped(before, contents)
        except Exception:
            if self.errors >= KEPT_ERRORS or not self.chance(0.12):
                return self._dropped(before, contents)
            self.names = before
            self.errors += 1
        # What a number becomes that an integer cannot hold depends on which of its loops NumPy takes.
        cast = "invalid value encountered in " + ("" if "unsafe" in text else "cast")
        undefined = any(str(warning.message).startswith(cast) for warning in told)
        # The sign of a NaN is that of one of two operands, whichever comes first.
        if _SEARCH.search(text):  # in what is in no order what is found depends on what else is looked for
            undefined |= any(map(has_nan, map(before.get, _names_in(text))))
            undefined |= not all(ascending(before.get(one or other)) for one, other in _SEARCHED.findall(text))
        if ORDERS.search(text):  # NumPy's vector code misplaces some of them where many are alike (seen in 2.4)
            undefined |= "'f2'" in text or any(map(_is_half, map(before.get, _names_in(text))))
        if "copysign" in text:
            undefined |= bool(told) or any(map(has_nan, map(before.get, _names_in(text))))
        if _EXTREME.search(text):
            undefined |= "'special'" in text or not all(map(ordered, map(before.get, _names_in(text))))
        for name in _UPDATE.findall(text):  # NumPy writes by index into what is read-only
            undefined |= isinstance(x := before.get(name), np.ndarray) and not x.flags.writeable
        undefined |= self._shows_bits_of_nan()
        if (found := _ASSIGNMENT.fullmatch(text)) is not None:
            undefined |= self._misreads_overlap(*found.groups())
        if (bound := _OPERATION.fullmatch(text)) is not None:
            undefined |= self._lies_as_a_temporary(*bound.groups())
        if _PRODUCT.search(text):
            undefined |= _has_a_single_factor(list(map(before.get, _names_in(text))))
        if undefined or any(self._unfit(self.names[name]) for name in variables(self.names)):
            return self._dropped(before, contents)
        self.statements.append(text)
        return True

    def _misreads_overlap(self, target: str, source: str) -> bool:
        """Whether NumPy may overwrite what it has still to read: it copies vectors without a look at strides."""
        with contextlib.suppress(Exception):
            into, read = (eval(text, self.names) for text in (target, source))
            vectors = isinstance(read, np.ndarray) and read.ndim == 1 == into.ndim
            return vectors and read.strides != into.strides and np.may_share_memory(into, read)
        return False

    def _lies_as_a_temporary(self, name: str, expression: str) -> bool:
        """Whether NumPy has put a large result into the memory of an operand that nobody else had, in that one's order.

        It does so for no derived class.
        """
        made = self.names.get(name)
        if not isinstance(made, np.ndarray) or made.size < _LARGE or made.ndim < 2:
            return False
        kept = {key: x.view(_Derived) if type(x) is np.ndarray else x for key, x in self.names.items()}
        with contextlib.suppress(Exception), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = eval(expression, kept)
            flags, others = made.flags, found.flags
            return (flags.c_contiguous, flags.f_contiguous) != (others.c_contiguous, others.f_contiguous)
        return False

    def _shows_bits_of_nan(self) -> bool:
        """Whether an array of another type sees the memory of a NaN: which of several it is, nobody defines."""
        arrays = [self.names[name].real for name in self.arrays()]
        nans = [x for x in arrays if has_nan(x)]
        return any(x.dtype != y.dtype and np.may_share_memory(x, y) for x in nans for y in arrays)

    def _contents(self) -> dict[str, tuple]:
        """What each array holds, and how it lies."""
        arrays = {name: x for name in variables(self.names) if isinstance(x := self.names[name], np.ndarray)}
        return {name: (x.shape, x.strides, x.flags.writeable, x.tobytes()) for name, x in arrays.items()}

    def _dropped(self, before: dict[str, object], contents: dict[str, tuple]) -> bool:
        """Undo a statement that is not written; False."""
        self.names = before
        if self._contents() != contents:  # it has written into arrays
            self.begin_again()
        return False

    def begin_again(self) -> None:
        """Run the statements so far once more, for the values that all names have after them."""
        self.names = _fresh_names()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for text in self.statements:
                with contextlib.suppress(Exception):
                    exec(compile(text, "<statement>", "exec"), self.names)

    def _unfit(self, value: object) -> bool:
        """Whether a value is too large, or a record: NumPy's is a view of its array, ours a value of its own."""
        return _size(value) > self.most or isinstance(value, np.void)

    def bind(self, text: str) -> str | None:
        """Bind an expression to a new name, which is returned if that went well."""
        name = self.fresh()
        return name if self.add(f"{name} = {text}") and name in self.names else None

    def seal(self, text: str, ulps: float = 256) -> bool:
        """Compare an expression whose value may be rounded otherwise, at once: nothing else depends on it.

        None where numbers are so large that another order of the terms decides whether they overflow, nor where what
        is left of them is rounding: the deviation of numbers that are all alike.
        """
        if any(_overflows(self.names.get(name)) for name in _names_in(text)):
            return False
        if _DEVIATION.search(text) and self._is_rounding(text):
            return False
        return self.add(f"check({text}, {ulps * self._coarseness(text):g})")

    def _is_rounding(self, text: str) -> bool:
        """Whether some deviations are as small as their rounding, or nearly so."""
        arrays = [x for name in _names_in(text) if isinstance(x := self.names.get(name), np.ndarray)]
        largest = max((float(np.abs(x).max(initial=0)) for x in arrays if x.dtype.kind in "iufc"), default=0.0)
        with np.errstate(all="ignore"), contextlib.suppress(Exception):  # NumPy's error will be compared
            sizes = np.abs(self.value(text))
            return bool(np.any((np.sqrt(sizes) if "var" in text else sizes) <= 1e-3 * largest))
        return False

    def _coarseness(self, text: str) -> float:
        """The spacing of the coarsest numbers that a statement mentions, in spacings of the finest."""
        dtypes = [self.names[name].dtype for name in _names_in(text) if isinstance(self.names.get(name), np.ndarray)]
        dtypes += map(np.dtype, re.findall(r"dtype='(\w+)'", text))
        spacings = [float(np.finfo(dtype).eps) for dtype in dtypes if dtype.kind in "fc"]
        return max(spacings, default=1.0) / min(spacings, default=1.0)

    def bind_if_exact(self, text: str, *operands: str, products: bool = False, ulps: float = 256) -> bool:
        """Bind an expression that sums (or multiplies) operands if that is exact; else compare it at once."""
        if exact(*map(self.value, operands), products=products):
            return self.bind(text) is not None
        return self.seal(text, ulps)

    def checkpoint(self) -> None:
        """Compare every live array."""
        self.statements.append(CHECKPOINT)

    # -- expressions

    def description(self, shape: Sequence[int] | None = None, dtype: str | None = None) -> str:
        """A new array as an expression."""
        shape = tuple(self.one(self.shapes) if shape is None else shape)
        dtype = self.one(self.dtypes) if dtype is None else dtype
        values = self.some(VALUES, 1)[0]
        np_dtype = np.dtype([tuple(f.split(":")) for f in dtype.split(",")]) if ":" in dtype else np.dtype(dtype)
        if np_dtype.kind in "SUV" or values in ("nans", "distinct") and np_dtype.kind in "mMb":
            values = "mixed"
        if values == "nans" and np_dtype.kind not in "fc" or self.big and values == "mixed":
            values = "whole"
        if values == "bits" and np_dtype.kind == "f":
            values = "whole"
        words = [*map(str, shape), f"dtype={_dtype_text(dtype)}", f"values={values!r}"]
        if self.chance(0.2):
            words.append(f"view={self.one(list(VIEWS)[1:])!r}")
        return f"array(a({', '.join(words)}), {self.upto(99)})"

    def key(self, shape: Sequence[int], fancy: bool = False) -> str:
        """An index of an array of this shape, as text without brackets."""
        words: list[str] = []
        for extent in shape[: self.one([len(shape), self.upto(len(shape))])]:
            words.append(self._part(extent))
        if self.chance(0.15) and len(words) < len(shape) and "..." not in words:
            words.insert(self.upto(len(words)), "...")
        if self.chance(0.12):
            words.insert(self.upto(len(words)), "None")
        if fancy and shape:
            at = self.upto(len(words) - 1) if words else 0
            words[at : at + 1] = [self._list(shape[min(at, len(shape) - 1)])]
        return ", ".join(words) or "..."

    def _part(self, extent: int) -> str:
        if extent and self.chance(0.2):
            return str(self.draw.randint(-extent, extent - 1 + self.chance(0.05)))
        start, stop = (str(self.draw.randint(-extent, extent)) if self.chance(0.6) else "" for _ in range(2))
        if self.chance(0.5):
            start, stop = str(self.one([1, 0, "", 2])), str(self.one([-1, "", extent]))
        step = f":{self.one([-1, 2, -2, 3, 1])}" if self.chance(0.35) else ""
        return f"{start}:{stop}{step}"

    def _list(self, extent: int) -> str:
        count = self.upto(min(extent, 5) + 1)
        if self.chance(0.3):
            mask = [self.chance(0.5) for _ in range(extent)]
            return f"np.array({mask}, bool)" if extent <= 12 else f"np.arange({extent}) % 3 == 0"
        numbers = [self.draw.randint(-extent, extent - 1) for _ in range(count)] if extent else []
        text = f"np.array({numbers}, int)" if self.chance(0.5) or not numbers else str(numbers)
        return f"array(of({numbers}, 'i8'), {self.upto(99)})" if numbers and self.chance(0.3) else text

    def scalar(self, kind: str) -> str:
        """A scalar that goes with arrays of a kind."""
        numbers = ["2", "3", "-1", "0.5", "True", "np.float32(1.5)", "np.int8(3)", "-2.0", "0", "1"]
        odd = ["300", "-0.0", "np.nan", "1e300", "np.uint8(200)", "2j", "np.inf", "np.array(2)", "np.float16(0.1)"]
        by_kind = {
            "M": ["np.datetime64('1970-03-01')", "np.timedelta64(3, 'D')", "np.datetime64('NaT')"],
            "m": ["np.timedelta64(3, 's')", "2", "np.timedelta64('NaT')"],
            "U": ["'elm'", "'a'", "''", "'a long text'"],
            "S": ["b'a'", "b''", "b'long'"],
            "V": ["(1.5, 2)", "(0, 0)"],
        }
        return self.one(by_kind.get(kind, numbers if self.chance(0.85) else odd))

    def mate(self, name: str) -> str:
        """An operand that can be broadcast with an array: another, a part of it, or a scalar."""
        x = self.names[name]
        same = self.arrays(lambda y: y.shape == x.shape)
        options = [self.one(same), self.one(same), name, self.scalar(x.dtype.kind)]
        if x.ndim:
            options += [f"{name}[::-1]", f"{name}[:1]", f"{self.one(same)}[..., ::-1]"]
            options += [f"{name}[0]"] if x.shape[0] else []
        if x.ndim == 2 and x.shape[0] == x.shape[1]:
            options.append(f"{self.one(same)}.T")
        if self.chance(0.05):
            options = self.arrays()
        return self.one(options)


def _fresh_names() -> dict[str, Any]:
    """What a program finds when it begins."""
    return namespace(as_ndarray) | {"check": _ignore, "checkpoint": _ignore}


def _ignore(*args: object) -> None:
    """What `check` is while programs are written."""


def _overflows(x: object) -> bool:
    """Whether sums or squares of finite elements may be infinite, or parts of complex ones not be defined."""
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fc":
        return False
    if x.dtype.kind == "c" and not np.isfinite(x).all():
        return True
    with np.errstate(all="ignore"):
        largest = float(np.abs(x[np.isfinite(x)]).max(initial=0))
    return largest > math.sqrt(np.finfo(x.dtype).max) / max(x.size, 1)


def ordered(x: object) -> bool:
    """Whether there are no negative zeros: which of equal elements come first, or stay, is not told otherwise."""
    if not isinstance(x, np.ndarray):
        return True
    if x.dtype.kind == "c":
        return ordered(x.real) and ordered(x.imag)
    return x.dtype.kind != "f" or not ((x == 0) & np.signbit(x)).any()


def distinct(x: object) -> bool:
    """Whether no two elements of an array are alike, as NaN are among each other."""
    return not isinstance(x, np.ndarray) or len(np.unique(x)) == x.size


def ascending(x: object) -> bool:
    """Whether elements are in the order in which they can be searched."""
    return not isinstance(x, np.ndarray) or x.ndim != 1 or x.dtype.kind == "V" or bool((x[:-1] <= x[1:]).all())


def _is_large(x: object) -> bool:
    """Whether an array has numbers beyond a million, of either sign."""
    if not isinstance(x, np.ndarray | np.generic) or x.dtype.kind not in "iu":
        return False
    return bool(np.any((np.asarray(x) > 10**6) | (np.asarray(x) < -(10**6))))


def _is_half(x: object) -> bool:
    """Whether an array has numbers of half precision."""
    return bool(isinstance(x, np.ndarray | np.generic) and x.dtype.char == "e")


def has_nan(x: object) -> bool:
    """Whether an array or a number has an element that is not a number."""
    return isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "fc" and bool(np.isnan(x).any())


def _has_a_single_factor(operands: Sequence[object]) -> bool:
    """Whether operands of a product may be one element, and others not finite; literals may be either."""
    arrays = [x for x in operands if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]
    single = len(operands) < 2 or any(isinstance(x, np.ndarray | np.generic) and x.size == 1 for x in operands)
    return single and any(not np.isfinite(x).all() for x in arrays)


def _names_in(text: str) -> list[str]:
    """The variables that a statement mentions."""
    return re.findall(r"\bv\d+", text)


def _size(value: object) -> int:
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    return value.size if isinstance(value, np.ndarray) else 0


def _dtype_text(dtype: str) -> str:
    if ":" not in dtype:
        return repr(dtype)
    return f"np.dtype({[tuple(field.split(':')) for field in dtype.split(',')]})"
