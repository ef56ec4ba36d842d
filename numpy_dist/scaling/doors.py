"""Doors: the ways by which values of arrays go to Python, where they may steer a program.

A value goes to Python as what a method of an array returns: a conversion (``float(x)``, ``if x:``, ``range(x)``), an
operator (``x @ y``, ``v in x``), an element (``x[3]``, ``x.item()``, iteration), a method (``x.any()``), or one of
NumPy's functions, which NumPy hands to `__array_function__` and `__array_ufunc__` (``np.vdot``, ``np.linalg.norm``,
``np.allclose``); and as what ``np.asarray(x)`` gathers. While a program is planned all of these are doors: a small run,
which computes, notes what goes through them, by the user's line and in order; in a plan, which computes nothing, the
same goes through them again.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.distarray import DistArray
from numpy_dist.engine.data.gather import gather
from numpy_dist.engine.memory.handle import is_handle
from numpy_dist.frames import UserLine, is_internal

if TYPE_CHECKING:
    from numpy_dist.engine.memory.handle import Handle
    from numpy_dist.scaling.expected import ExpectedValues

MOST_NOTED = 4096
"""Elements of an array, or of a list, up to which its values are noted."""
MOST_ASSUMED = 10_000
"""Values that a line gets though nobody has computed them: a loop that they steer may never end."""

# Those that give metadata, and those that look at the frame which calls them, and would not know it behind a door.
_NO_DOORS = frozenset("__init__ __len__ __reduce__ __setstate__ __dlpack_device__ __array__ __setitem__".split())
_OF_METADATA = frozenset(
    "ndim shape size iscomplexobj isrealobj can_cast result_type min_scalar_type common_type may_share_memory "
    "shares_memory".split()
)
_READS = frozenset("__getitem__ __iter__ gather tolist item".split())  # a loop may read as many as there are
_SELECTING = frozenset("__getitem__ nonzero flatnonzero argwhere extract".split())
_REAL = (int, float, np.integer, np.floating)
_NUMBERS = (bool, int, float, complex, np.number, np.bool_, np.datetime64, np.timedelta64)


class SelectedPart(NamedTuple):
    """How much of a mask is true by which a small run has selected elements."""

    part: float


Values = Mapping[UserLine, Sequence[object]]
"""By line, what each call has brought there, in order: a number, a small array, a list of such, or a share.

None stands for what is not kept, so that calls in the small run and in the plan belong together."""


class EndlessLoop(RuntimeError):
    """A line has asked for so many values that nobody has computed that its loop may never end."""

    def __init__(self, line: UserLine) -> None:
        super().__init__(
            f"{line}: {MOST_ASSUMED:,} values that nobody has computed went to Python here, and the loop may "
            "never end with them. Give the script fewer steps, or the plan other values: --value X, or "
            "--values 'ARGUMENTS OF A SMALL RUN'"
        )


class Doors:
    """The doors of one rank's program.

    Parameters
    ----------
    here : callable
        The user's line.

    Attributes
    ----------
    inside : bool
        Whether a method of an array is running: what that asks for does not go to the user.
    """

    def __init__(self, here: Callable[[], UserLine]) -> None:
        self.inside = False
        self._here = here

    @contextmanager
    def opened(self) -> Iterator[None]:
        """A block in which the methods of arrays are doors."""
        before = {name: DistArray.__dict__.get(name) for name in (*_methods(), "local")}
        part: Any = before["local"]
        try:
            for name in _methods():
                setattr(DistArray, name, self._door(name, getattr(DistArray, name)))
            DistArray.local = property(lambda x: self._local(part.fget, x))  # type: ignore[assignment]
            engine.gather = self._gathered  # type: ignore[assignment]
            yield
        finally:
            engine.gather = gather
            for name, method in before.items():
                if method is None:
                    delattr(DistArray, name)
                else:
                    setattr(DistArray, name, method)

    def _door(self, name: str, method: Function) -> Function:
        @functools.wraps(method)
        def door(*args: Any, **kwargs: object) -> object:
            before = self.inside
            if before and is_internal(sys._getframe(1)):  # not the user's, as one that NumPy calls back is
                return method(*args, **kwargs)
            word, given = name, args
            if name == "__array_function__":
                word, given = args[1].__name__, args[3]
            mask = _mask(word, given)
            self.inside = True
            try:
                with nullcontext() if mask is None else self.selecting(mask):
                    result = method(*args, **kwargs)
            finally:
                self.inside = before
            if name == "__iter__":
                return self._elements(args[0], result)
            if word in _OF_METADATA or result is NotImplemented:
                return result
            if mask is not None:
                first = result[0] if isinstance(result, tuple) else result
                self.selected(first.shape[0] / max(mask.size, 1))
            return self._passed(result, word, self.is_known((args, kwargs)))

        return door

    def _gathered(self, x: object, *args: Any) -> Any:
        """`engine.gather`, by which ``np.asarray(x)`` comes to its values."""
        values, asking = gather(x, *args), sys._getframe(1)
        of_user = not self.inside or (asking.f_back is not None and not is_internal(asking.f_back))
        if asking.f_code is not DistArray.__array__.__code__ or not of_user:
            return values
        return self._passed(values, "__array__", self.is_known(x))

    def _local(self, read: Function, x: object) -> object:
        """``x.local``, by which a program comes to what this rank has."""
        before = self.inside
        if before and is_internal(sys._getframe(2)):
            return read(x)
        self.inside = True
        try:
            values = read(x)
        finally:
            self.inside = before
        return self.local(values, x)

    def _elements(self, x: Any, elements: Iterator[object]) -> Iterator[object]:
        """The elements of an array as a program goes through them, which may end before their last."""
        few, begun, known = x.size <= MOST_NOTED, self.begin(), self.is_known(x)
        while True:
            before, self.inside = self.inside, True
            try:
                value = next(elements)
            except StopIteration:
                return
            finally:
                self.inside = before
            if is_handle(value) and not known:
                self.made(value)
            yield self.element(value, begun, known) if few and isinstance(value, _NUMBERS) else value

    def _passed(self, result: Any, word: str, known: bool) -> object:
        """What the user gets in the place of a result."""
        several = isinstance(result, list | tuple)
        for each in result if several else (result,):
            if is_handle(each) and not known:
                self.made(each)
        if isinstance(result, (*_NUMBERS, np.ndarray)) or word == "gather":  # of which a rank may get nothing
            return self.value(result, word, known)
        return self.value(result, word, known) if several and not (result and all(map(is_handle, result))) else result

    # -- what becomes of values: a small run and a plan do this --------------------------------------------------------

    def value(self, result: object, word: str, known: bool) -> Any:
        """A call has brought numbers, or an array, to Python."""
        raise NotImplementedError

    def local(self, part: np.ndarray, x: object) -> np.ndarray:
        """A program gets this rank's part of an array, in the array's memory."""
        raise NotImplementedError

    def begin(self) -> Any:
        """A program begins to go through the elements of an array."""
        raise NotImplementedError

    def element(self, value: Any, begun: Any, known: bool) -> Any:
        """It has come to the next number."""
        raise NotImplementedError

    def selecting(self, mask: Handle) -> AbstractContextManager[None]:
        """A block in which elements are selected by a mask."""
        return nullcontext()

    def selected(self, part: float) -> None:
        """So much of a mask was true."""

    def is_known(self, given: object) -> bool:
        """Whether what is given has its values though nothing is computed."""
        return False

    def made(self, x: object) -> None:
        """An array was made of what is not known."""


class NotingDoors(Doors):
    """The doors of a small run, at which values are noted.

    Attributes
    ----------
    values : Values
    """

    def __init__(self, here: Callable[[], UserLine]) -> None:
        super().__init__(here)
        self.values: dict[UserLine, list[object]] = {}

    def value(self, result: object, word: str, known: bool) -> Any:
        """As in `Doors`."""
        self._note(_kept(result))
        return result

    def local(self, part: np.ndarray, x: object) -> np.ndarray:
        """As in `Doors`."""
        self._note(_kept(part))
        return part

    def begin(self) -> list[object]:
        """As in `Doors`."""
        return self._note([])

    def element(self, value: Any, begun: list[object], known: bool) -> Any:
        """As in `Doors`."""
        begun.append(value)
        return value

    def selected(self, part: float) -> None:
        """As in `Doors`."""
        self._note(SelectedPart(part))

    def _note(self, value: object) -> Any:
        self.values.setdefault(self._here(), []).append(value)
        return value


class PlanDoors(Doors):
    """The doors of a planned rank, at which the user gets the values of a small run.

    Arrays that are not distributed have their values also in a plan, unless they were made of such as have none.

    Parameters
    ----------
    here : callable
        The user's line.
    values : Values
        What is given to the program at each line, in order.
    value : float
        What every number is afterwards that a function makes of arrays; 0: what comes out.
    expected : ExpectedValues
        What has come where masks select.

    Attributes
    ----------
    assumed, taken : Counter
        By line, how many numbers were given that nobody has computed, and how many values were taken from `values`.
    """

    def __init__(self, here: Callable[[], UserLine], values: Values, value: float, expected: ExpectedValues) -> None:
        super().__init__(here)
        self.assumed: Counter[UserLine] = Counter()
        self.taken: Counter[UserLine] = Counter()
        self._asked: Counter[UserLine] = Counter()  # on the way, in vain
        self._values = {line: deque(found) for line, found in values.items()}
        self._value, self._expected = value, expected
        self._made: dict[int, ref[np.ndarray]] = {}  # memory of arrays whose values nobody has computed

    def asked(self, line: UserLine, dtype: np.dtype) -> Any:
        """What a line will get next, for what asks on the way there; None if that is no real number, or not known.

        Raises
        ------
        EndlessLoop
        """
        waiting = self._values.get(line)
        found = waiting[0] if waiting else None
        if dtype.kind in "fc" and isinstance(found, _REAL) and not isinstance(found, bool):
            return found
        if not waiting:
            if self._asked[line] >= MOST_ASSUMED:
                raise EndlessLoop(line)
            self._asked[line] += 1
        return None

    def value(self, result: object, word: str, known: bool) -> Any:
        """As in `Doors`.

        Raises
        ------
        EndlessLoop
        """
        line = self._here()
        return self._given(result, self._next(line), word, known, line)

    def local(self, part: np.ndarray, x: Any) -> np.ndarray:
        """As in `Doors`: its memory holds the small run's values where that had as many, on its only rank.

        Raises
        ------
        EndlessLoop
        """
        line = self._here()
        found = self._next(line)
        if self.is_known(x) or self._expected.has_values(x):
            return part
        if isinstance(found, np.ndarray) and found.shape == part.shape and part.flags.writeable:
            part[...] = found
            self.taken[line] += 1
            return part
        if self.assumed[line] >= MOST_ASSUMED:
            raise EndlessLoop(line)
        self.assumed[line] += 1
        return part

    def begin(self) -> Iterator[object]:
        """As in `Doors`."""
        found = self._next(self._here())
        return iter(found if isinstance(found, list) else ())

    def element(self, value: Any, begun: Iterator[object], known: bool) -> Any:
        """As in `Doors`."""
        return self._given(value, next(begun, None), "__iter__", known, self._here())

    def _given(self, value: Any, found: object, word: str, known: bool, line: UserLine) -> Any:
        """What was found in the small run, in the place of a value of the same kind and shape."""
        if isinstance(value, list | tuple):
            if len(value) > MOST_NOTED:
                return value
            others = found if isinstance(found, list) and len(found) == len(value) else [None] * len(value)
            made = [self._given(each, other, word, known, line) for each, other in zip(value, others, strict=True)]
            return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
        if known or not isinstance(value, (*_NUMBERS, np.ndarray)):
            return value
        if isinstance(value, np.ndarray):
            if not isinstance(found, np.ndarray) or found.shape != value.shape:
                return value
            self.taken[line] += 1
            return found.astype(value.dtype)
        if isinstance(found, _NUMBERS):
            self.taken[line] += 1
            return _as(value, found)
        if self.assumed[line] >= MOST_ASSUMED and word not in _READS:
            raise EndlessLoop(line)
        self.assumed[line] += 1
        return _as(value, self._value) if self._value and word not in _READS else value

    def selecting(self, mask: Handle) -> AbstractContextManager[None]:
        """As in `Doors`; as much of the mask is true as in the small run."""
        line = self._here()
        found = self._next(line)
        return self._expected.selecting(mask, found.part, line) if isinstance(found, SelectedPart) else nullcontext()

    def is_known(self, given: object) -> bool:
        """As in `Doors`."""
        if is_handle(given):
            if engine.is_sharded(given):
                return False
            memory = _owner(engine.plain(given))
            made = self._made.get(id(memory))
            return made is None or made() is not memory
        if isinstance(given, dict):
            given = list(given.values())
        return not isinstance(given, list | tuple) or all(map(self.is_known, given))

    def made(self, x: Any) -> None:
        """As in `Doors`."""
        if not engine.is_sharded(x):
            memory = _owner(engine.plain(x))
            self._made[id(memory)] = ref(memory)

    def _next(self, line: UserLine) -> object:
        """What the next call of a line has brought there in the small run; None if there was none."""
        waiting = self._values.get(line)
        return waiting.popleft() if waiting else None


def _kept(value: object) -> Any:
    """What is noted of a value; None for nothing."""
    if isinstance(value, list | tuple):
        return list(map(_kept, value)) if len(value) <= MOST_NOTED else None
    if isinstance(value, np.ndarray):
        return value.copy() if value.size <= MOST_NOTED and not value.dtype.hasobject else None
    return value if isinstance(value, _NUMBERS) else None


def _methods() -> list[str]:
    found = {
        name: None
        for kind in reversed(DistArray.__mro__)
        for name, method in vars(kind).items()
        if isinstance(method, FunctionType) and (name.startswith("__") or not name.startswith("_"))
    }
    return [name for name in found if name not in _NO_DOORS]


def _mask(word: str, given: Sequence[object]) -> Any:
    """The mask by which a call selects elements, where it does so."""
    if word not in _SELECTING or not given:
        return None
    mask = given[-1] if word == "__getitem__" else given[0]
    return mask if is_handle(mask) and mask.dtype.kind == "b" and mask.ndim else None


def _owner(array: np.ndarray) -> np.ndarray:
    """The array that has an array's memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _as(value: Any, found: Any) -> object:
    """A value of the small run as one like that which has come out here."""
    if type(found) is type(value):
        return found
    if isinstance(found, complex | np.complexfloating) and not isinstance(value, complex | np.complexfloating):
        found = found.real
    return type(value)(found)
