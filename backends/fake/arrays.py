"""Arrays of the fake device: they behave as CuPy's do, and nothing but `FakeMemory` gets at their values."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


class Stream:
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
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[..., Any], tuple]] = deque()
        self.fences = 0
        self.reuses = False
        self.free: dict[int, list[np.ndarray]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, action: Callable[..., Any], *arguments: Any) -> None:
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

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.passed = False

    def pass_by(self) -> None:
        """All before it has happened."""
        self.passed = True

    def reach(self) -> None:
        """Let all before it happen."""
        while not self.passed:
            self._stream.step()


def hidden(x: Any) -> Any:
    """The ndarray behind an array of the device, and anything else as it is: for the fake backend itself."""
    return x._hidden if isinstance(x, FakeArray) else x


class FakeArray(NDArrayOperatorsMixin):
    """An array in the memory of the fake device.

    Shape, dtype, strides, views and assignment are there at once. Its values are not: to ask NumPy or a buffer for them
    raises TypeError; `get` returns a copy of them on the host, and a single one can be converted by Python. Operators,
    ufuncs and NumPy's functions work on arrays of the device and on scalars, as they do on CuPy's arrays.
    """

    __slots__ = ("_hidden", "base", "stream")

    def __init__(self, values: np.ndarray, stream: Stream, base: FakeArray | None = None) -> None:
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

    def __getitem__(self, key: Any) -> FakeArray:
        return self._view(self._hidden[_basic(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self._hidden[_basic(key)]
        self.stream.put(np.copyto, target, _operand(value), "unsafe")

    def reshape(self, *shape: Any) -> FakeArray:
        """A view with another shape."""
        return self._view(self._hidden.reshape(*shape))

    def transpose(self, *axes: Any) -> FakeArray:
        """A view with its axes in another order."""
        return self._view(self._hidden.transpose(*axes))

    # -- values -----------------------------------------------------------------------------------------------------

    def get(self) -> np.ndarray:
        """A copy of the values on the host, after all that was asked for has happened."""
        self.stream.fence()
        return self._hidden.copy(order="K")

    def _refuse(self, *arguments: Any, **options: Any) -> NoReturn:
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

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        outs = options.pop("out", None)
        if outs is not None:
            options["out"] = tuple(None if out is None else _target(out) for out in outs)
        if "where" in options:
            options["where"] = _operand(options["where"])
        self.stream.fence()
        result = getattr(ufunc, method)(*map(_operand, inputs), **options)
        if outs is None or any(out is None for out in outs):
            return self._wrapped(result)
        return outs[0] if len(outs) == 1 else outs

    def __array_function__(self, function: Any, types: Any, arguments: Sequence[Any], options: dict) -> Any:
        self.stream.fence()
        values = {name: _operand(value) for name, value in options.items()}
        return self._wrapped(function(*_operands(arguments), **values))

    def _wrapped(self, result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple(map(self._wrapped, result))
        return FakeArray(np.asarray(result), self.stream) if isinstance(result, np.ndarray | np.generic) else result


class FakeBlock(FakeArray):
    """An allocation of the fake device, of bytes. It is freed when all that was asked for before has happened."""

    __slots__ = ("address",)

    def __init__(self, nbytes: int, stream: Stream) -> None:
        kept = stream.free.get(nbytes)
        super().__init__(kept.pop() if kept else np.empty(nbytes, np.uint8), stream)
        self.address = self._hidden.ctypes.data

    def __del__(self) -> None:
        if self.stream.reuses:
            self.stream.free.setdefault(self._hidden.size, []).append(self._hidden)
        else:
            self.stream.put(id, self._hidden)


def _basic(key: Any) -> Any:
    """An index that selects a view."""
    parts = key if isinstance(key, tuple) else (key,)
    if not all(part is None or part is Ellipsis or isinstance(part, slice | int | np.integer) for part in parts):
        raise TypeError("arrays of the fake device are indexed by integers and slices")
    # With the ellipsis, a single element is a view, too.
    return parts if Ellipsis in parts else (*parts, ...)


def _operands(values: Sequence[Any]) -> list[Any]:
    return [type(value)(_operands(value)) if type(value) in (list, tuple) else _operand(value) for value in values]


def _operand(value: Any) -> Any:
    """What NumPy is to compute with: arrays of the device, and scalars."""
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("an array of the host is no operand beside arrays of the device; upload it")
    return hidden(value)


def _target(out: Any) -> np.ndarray:
    if not isinstance(out, FakeArray):
        raise TypeError("a result of the fake device does not go into an array of the host")
    return out._hidden
