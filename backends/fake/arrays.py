"""Arrays of the fake device: they behave as CuPy's do, and nothing but `FakeMemory` gets at their values."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from numpy_dist.argument_types import Axes, Function

if TYPE_CHECKING:
    import numpy.typing as npt

    from numpy_dist.backends.library import Library


class FakeStream:
    """What was asked of the device and has not happened yet, in order.

    Attributes
    ----------
    fences : int
        How often somebody waited for all of it.
    reuses : bool
        Whether memory that nobody refers to any more is used again at once, as by the pools of devices: what was asked
        of the stream before happens before what is asked of it then. Not where collectors of cycles run: they call
        finalizers of blocks that other finalizers give back to the engine's pool.
    free : dict
        Such memory by its size.
    library : Library
        What computes on the arrays.
    """

    library: Library

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[..., object], tuple]] = deque()
        self.fences = 0
        self.reuses = False
        self.free: dict[int, list[np.ndarray]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, action: Callable[..., object], *arguments: object) -> None:
        """Ask for something."""
        self._waiting.append((action, arguments))

    def fence(self) -> None:
        """Do all that waits. What raises is done with; the rest is left to the next fence."""
        self.fences += 1
        while self._waiting:
            self.step()

    def step(self) -> None:
        """Do what waits longest."""
        action, arguments = self._waiting.popleft()
        action(*arguments)

    def mark(self) -> Mark:
        """A mark behind all that was asked for so far."""
        mark = Mark(self)
        self.put(mark.pass_by)
        return mark

    def after(self, mark: Mark) -> None:
        """What is asked for from now on happens after what lies before a mark of another stream."""
        self.put(mark.reach)


class Mark:
    """A place in a stream, as an event of a device."""

    def __init__(self, stream: FakeStream) -> None:
        self._stream = stream
        self.passed = False

    def pass_by(self) -> None:
        """All before it has happened."""
        self.passed = True

    def reach(self) -> None:
        """Let all before it happen."""
        while not self.passed:
            self._stream.step()


def hidden(x: object) -> Any:
    """The ndarray behind an array of the device, and anything else as it is: for the fake backend itself."""
    return x._hidden if isinstance(x, FakeArray) else x


class FakeArray(NDArrayOperatorsMixin):
    """An array in the memory of the fake device.

    Shape, dtype, strides, views and assignment are there at once. Its values are not: to ask NumPy or a buffer for them
    raises TypeError; `get` returns a copy of them on the host, and a single one can be converted by Python. Operators,
    ufuncs and NumPy's functions work on arrays of the device and on scalars, as they do on CuPy's arrays.
    """

    __slots__ = ("_hidden", "base", "stream")

    def __init__(self, values: np.ndarray, stream: FakeStream, base: FakeArray | None = None) -> None:
        self._hidden, self.stream, self.base = values, stream, base

    # -- metadata and views -----------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self._hidden.shape

    @property
    def dtype(self) -> np.dtype:
        return self._hidden.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        return self._hidden.strides

    @property
    def ndim(self) -> int:
        return self._hidden.ndim

    @property
    def size(self) -> int:
        return self._hidden.size

    @property
    def itemsize(self) -> int:
        return self._hidden.itemsize

    @property
    def nbytes(self) -> int:
        return self._hidden.nbytes

    def _view(self, values: np.ndarray) -> FakeArray:
        if values.size and not np.may_share_memory(values, self._hidden):
            raise ValueError("this would be a copy, which is not taken unasked")
        return FakeArray(values, self.stream, self if self.base is None else self.base)

    def __len__(self) -> int:
        return len(self._hidden)

    def __getitem__(self, key: object) -> FakeArray:
        if isinstance(key, FakeArray):  # a copy; how much a mask picks is waited for
            self.stream.fence()
            return self._wrapped(self._hidden[key._hidden])
        return self._view(self._hidden[_basic(key)])

    def __setitem__(self, key: object, value: object) -> None:
        if isinstance(key, FakeArray):
            self.stream.put(_scatter, self._hidden, key._hidden, _operand(value))
            return
        target = self._hidden[_basic(key)]
        self.stream.put(np.copyto, target, _operand(value), "unsafe")

    def reshape(self, *shape: Any) -> FakeArray:
        """A view with another shape."""
        return self._view(self._hidden.reshape(*shape))

    def transpose(self, *axes: Axes) -> FakeArray:
        """A view with its axes in another order."""
        return self._view(self._hidden.transpose(*axes))

    def astype(self, dtype: npt.DTypeLike) -> FakeArray:
        """A copy of another dtype."""
        return self._later(np.ndarray.astype, (self, np.dtype(dtype)), {})

    # -- values -----------------------------------------------------------------------------------------------------

    def get(self) -> np.ndarray:
        """A copy of the values on the host, after all that was asked for has happened."""
        self.stream.fence()
        return self._hidden.copy(order="K")

    def _refuse(self, *arguments: object, **options: object) -> NoReturn:
        raise TypeError("values of the fake device were asked for implicitly; use .get()")

    __array__ = __iter__ = __contains__ = _refuse
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __repr__(self) -> str:
        return f"<array of the fake device, shape {self.shape}, {self.dtype}>"

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: Any) -> object:
        outs = options.pop("out", None)
        if outs is not None:
            options["out"] = tuple(None if out is None else _target(out) for out in outs)
        if "where" in options:
            options["where"] = _operand(options["where"])
        if outs is None:
            return self._later(getattr(ufunc, method), inputs, options)
        self.stream.fence()
        result = getattr(ufunc, method)(*map(_operand, inputs), **options)
        if any(out is None for out in outs):
            return self._wrapped(result)
        return outs[0] if len(outs) == 1 else outs

    def __array_function__(
        self, function: Function, types: object, arguments: Sequence[object], options: dict
    ) -> object:
        return self._later(function, arguments, options)

    def _later(self, function: Function, arguments: Sequence[object], options: dict) -> Any:
        """Ask for a function's results, whose shapes and dtypes do not depend on values."""
        with np.errstate(all="ignore"):
            like = function(*_operands(arguments, _unknown), **{k: _operand(v, _unknown) for k, v in options.items()})
        values, named = _operands(arguments), {k: _operand(v) for k, v in options.items()}
        wrapped = self._wrapped(like)
        targets = [x._hidden for x in (wrapped if isinstance(wrapped, tuple) else (wrapped,))]
        for target in targets:
            target[...] = np.frombuffer(b"\xa5" * target.itemsize, target.dtype)[0]

        def work() -> None:
            with np.errstate(all="ignore"):
                made = function(*values, **named)
            for target, found in zip(targets, made if isinstance(made, tuple) else (made,), strict=True):
                target[...] = found

        self.stream.put(work)
        return wrapped

    def now(self, function: Function, arguments: Sequence[object], options: dict) -> object:
        """A function's results, after all that was asked for has happened."""
        self.stream.fence()
        with np.errstate(all="ignore"):
            return self._wrapped(function(*_operands(arguments), **{k: _operand(v) for k, v in options.items()}))

    def _wrapped(self, result: object) -> Any:
        if isinstance(result, tuple):
            return tuple(map(self._wrapped, result))
        return FakeArray(np.array(result), self.stream) if isinstance(result, np.ndarray | np.generic) else result


class FakeBlock(FakeArray):
    """An allocation of the fake device, of bytes. It is freed when all that was asked for before has happened."""

    __slots__ = ("address",)

    def __init__(self, nbytes: int, stream: FakeStream, values: np.ndarray | None = None) -> None:
        kept = stream.free.get(nbytes)
        if values is not None:
            memory = values.reshape(-1).view(np.uint8)
        else:
            memory = kept.pop() if kept else np.empty(nbytes, np.uint8)
        super().__init__(memory, stream)
        self.address = self._hidden.ctypes.data

    def __del__(self) -> None:
        if self.stream.reuses:
            self.stream.free.setdefault(self._hidden.size, []).append(self._hidden)
        else:
            self.stream.put(id, self._hidden)


def _basic(key: object) -> tuple[Any, ...]:
    """An index that selects a view."""
    parts = key if isinstance(key, tuple) else (key,)
    if not all(part is None or part is Ellipsis or isinstance(part, slice | int | np.integer) for part in parts):
        raise TypeError("arrays of the fake device are indexed by integers and slices")
    # With the ellipsis, a single element is a view, too.
    return parts if Ellipsis in parts else (*parts, ...)


def _operands(values: Sequence[Any], see: Callable[[object], object] = hidden) -> list[object]:
    return [
        type(value)(_operands(value, see)) if type(value) in (list, tuple) else _operand(value, see)
        for value in values
    ]


def _operand(value: object, see: Callable[[object], object] = hidden) -> object:
    """What NumPy is to compute with: arrays of the device, and scalars."""
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("an array of the host is no operand beside arrays of the device; upload it")
    if isinstance(value, FakeArray) and value.size and not value._hidden.flags.aligned:
        raise RuntimeError("misaligned address")  # a device's processors raise, and are lost to the process
    return see(value)


def _unknown(x: object) -> object:
    """An array with the metadata of one of the device, whose values are not there yet."""
    return np.zeros_like(x._hidden) if isinstance(x, FakeArray) else x


def _scatter(target: np.ndarray, key: np.ndarray, values: Any) -> None:
    """As devices assign to elements: of several values for one, any may stay (here not the last)."""
    if key.dtype == np.bool_ or not np.ndim(values):
        target[key] = values
    else:
        target[key[::-1]] = values[::-1]


def _target(out: object) -> np.ndarray:
    if not isinstance(out, FakeArray):
        raise TypeError("a result of the fake device does not go into an array of the host")
    return out._hidden
