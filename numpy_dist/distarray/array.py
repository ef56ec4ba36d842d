"""`DistArray`: a thin handle with ndarray's interface. The algorithms are elsewhere: see docs/architecture.md."""

from __future__ import annotations

import copy
import importlib
import operator
import sys
from collections.abc import Callable, Iterable
from types import GenericAlias, ModuleType
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.argument_types import Function, Keywords, Shape
from numpy_dist.dispatch.core import fallback, outcome, policy, protocol
from numpy_dist.distarray.flags import Flags
from numpy_dist.distarray.indexing import Indexing
from numpy_dist.distarray.interface import NEEDS_MEMORY, Refusals, refuse_as_bytes, refuse_as_labels
from numpy_dist.distarray.methods import Methods
from numpy_dist.distarray.operators import Operators, numpy_stand_in
from numpy_dist.engine.data import windows
from numpy_dist.ir import structure
from numpy_dist.layout.layout import Layout
from numpy_dist.layout.mesh import Mesh

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator
    from numpy_dist.distarray.flat import FlatIterator
    from numpy_dist.engine.memory.storage import Storage

__all__ = ["DistArray"]

AS_STRIDED = np.lib.stride_tricks.as_strided.__code__  # it steps by strides of the user's through what it is given
MOST_FLAT = 32  # axes that NumPy's iterator over elements takes


class DistArray(Operators, Indexing, Methods, Refusals):
    """An array that is spread over the ranks of a communicator, with the interface of `numpy.ndarray`.

    Made by `numpy_dist.asarray`, the creation functions and `from_local`, not by calling the class. Reading values
    (`repr`, `bool`, `float`, `item`, `gather`, iteration, pickling, `numpy.asarray`) is collective: every rank does it.
    """

    __slots__ = ()

    __array_priority__ = 1000.0
    __array_finalize__ = None
    __class_getitem__: object = classmethod(GenericAlias)

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError(
            "a DistArray is made by numpy_dist.asarray, from_local or a creation function such as numpy_dist.zeros"
        )

    # ---- NumPy's protocols (`__array_ufunc__` is with the operators)

    def __array_function__(self, func: Function, types: Iterable[type], args: tuple, kwargs: Keywords) -> Any:
        if windows.eager and (made := windows.routed(func, args, kwargs)) is not None:
            return made
        return protocol.array_function(DistArray, func, types, args, kwargs)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        kind = self._array.dtype.kind
        if kind == "b":
            refuse_as_labels()
        elif kind == "U":
            refuse_as_bytes()
        if self._storage is None:
            return np.array(self._array, dtype=dtype, copy=copy)
        if copy is False:
            raise ValueError(
                "Unable to avoid copy while creating an array as requested: "
                "the array is sharded; x.local is this rank's part."
            )
        if sys._getframe(1).f_code is AS_STRIDED:
            return _with_memory(self)
        fallback.announce_gather(self)
        array: np.ndarray = engine.gather(self)
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_wrap__(self, array: np.ndarray, context: object = None, return_scalar: bool = False, /) -> Any:
        if return_scalar and array.ndim == 0:
            return array[()]
        return array if isinstance(array, engine.Handle) else np.asarray(array, like=self)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The functions of the array API standard for arrays like this one."""
        return importlib.import_module("numpy_dist.standard").namespace(api_version)

    # ---- metadata

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes of the global array."""
        return self._array.shape

    @shape.setter
    def shape(self, shape: Shape) -> None:
        self._become(_changed(self._array, "shape", shape))

    if hasattr(np.ndarray, "_set_shape"):  # since NumPy 2.5, where setting the attribute is deprecated

        def _set_shape(self, shape: Shape, /) -> None:
            self._become(_changed(self._array, "_set_shape", shape))

        def _set_dtype(self, dtype: DTypeLike | None, /) -> None:
            self._become(_changed(self._array, "_set_dtype", dtype))

    @property
    def dtype(self) -> np.dtype:
        """Data type of the elements."""
        return self._array.dtype

    @dtype.setter
    def dtype(self, dtype: DTypeLike | None) -> None:
        self._become(_changed(self._array, "dtype", dtype))

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps in bytes along the axes, as the same array has them in NumPy."""
        return self._array.strides

    @strides.setter
    def strides(self, strides: object) -> None:
        changed = _changed(self._array, "strides", strides)
        if self._storage is not None and not _is_within(changed, self._storage.nbytes):
            raise ValueError("strides is not compatible with available memory")
        self._become(changed)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """Number of elements of the global array."""
        return self._array.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements of the global array."""
        return self._array.nbytes

    @property
    def flags(self) -> Any:
        """Memory layout of the global array, as ndarray.flags."""
        return self._array.flags if self._storage is None else Flags(self)

    @property
    def device(self) -> Literal["cpu"]:
        """``"cpu"``, as ndarray.device."""
        return self._array.device

    @property
    def base(self) -> DistArray | None:
        """The array that this one is a view of, or one over all of its data if it is gone; None if this is no view."""
        owner, storage = getattr(self, "_owner", None), self._storage
        if storage is None:
            base = self._array.base
            if owner is not None and base is not None and (base is owner._array or base is owner._array.base):
                return owner  # type: ignore[return-value]
            return None if not isinstance(base, np.ndarray) else engine.replicated(base)
        whole = _whole(storage)
        same = (
            self._array.shape == whole.shape
            and self._array.strides == whole.strides
            and self._array.dtype == whole.dtype
        )
        # Whether there is one does not depend on when arrays are collected, which ranks do at different times.
        if same:
            return owner if owner is not None and owner._storage is storage else None  # type: ignore[return-value]
        first = None if storage.owner is None else storage.owner()
        known = first is not None and first is not self and first._storage is storage
        return first if known else self._seen_as(whole)

    @property
    def data(self) -> memoryview:
        """The buffer of a replicated array; AttributeError where the array is sharded."""
        return self._memory_of("data")

    @property
    def ctypes(self) -> Any:
        """ndarray.ctypes of a replicated array; AttributeError where the array is sharded."""
        return self._memory_of("ctypes")

    def _memory_of(self, attribute: str) -> Any:
        if self._storage is not None:
            raise AttributeError(f"{attribute!r}: {NEEDS_MEMORY[attribute]}")
        return getattr(self._array, attribute)

    # ---- views

    @property
    def T(self) -> DistArray:
        """View with the axes in reverse order."""
        if self._storage is None:
            return engine.view_of_replicated(self, self._array.T)
        return self._owned(self._view(structure.attribute, "T"))

    @property
    def mT(self) -> DistArray:
        """View with the last two axes swapped."""
        return self._owned(self._view(structure.attribute, "mT"))

    @property
    def real(self) -> DistArray:
        """View of the real part (the array itself where it is real)."""
        return self._view(structure.attribute, "real") if self._array.dtype.kind == "c" else self

    @real.setter
    def real(self, value: object) -> None:
        self.real[...] = value if isinstance(value, engine.Handle) else _part(self, "real", value)

    @property
    def imag(self) -> DistArray:
        """View of the imaginary part; zeros that cannot be written where the array is real."""
        if self._storage is None or self._array.dtype.kind == "c":
            return self._view(structure.attribute, "imag")
        order = "F" if self._array.flags.fnc else "C"
        zeros = engine.full(self.shape, np.zeros((), self.dtype)[()], self.dtype, order, engine.layout_of(self))
        zeros.setflags(write=False)
        return zeros

    @imag.setter
    def imag(self, value: Any) -> None:
        if self._array.dtype.kind != "c":
            np.zeros(0, self._array.dtype).imag = value  # NumPy's error
        self.imag[...] = value if isinstance(value, engine.Handle) else _part(self, "imag", value)

    @property
    def flat(self) -> FlatIterator:
        """Iterator over the elements in C order, which can be indexed and assigned to."""
        from numpy_dist.distarray.flat import FlatIterator

        if self._array.ndim > MOST_FLAT:
            np.zeros((1,) * self._array.ndim).flat  # noqa: B018  # NumPy's error
        return FlatIterator(self)

    @flat.setter
    def flat(self, value: object) -> None:
        self.flat[:] = value

    # ---- what is particular to distributed arrays

    @property
    def local(self) -> np.ndarray:
        """This rank's part as an ndarray that shares memory with the array; to be read by all ranks alike."""
        return self._array if self._storage is None else engine.local(self)

    @property
    def layout(self) -> Layout | None:
        """How the array is spread over the ranks; None for a view that no layout describes.

        Every rank must ask where a result is pending, which is then computed in this layout.
        """
        storage = self._storage
        if storage is not None and storage.movable and storage.memory is None:
            checks = engine.runtime().comm.checks
            if checks is not None:
                checks.journal.asked_for_layout()
        return engine.layout_of(self)

    @property
    def comm(self) -> Communicator:
        """The communicator of the array's ranks."""
        return engine.runtime().comm

    @overload
    def gather(self, root: None = None) -> np.ndarray: ...
    @overload
    def gather(self, root: int) -> np.ndarray | None: ...
    def gather(self, root: int | None = None) -> np.ndarray | None:
        """The whole array as an ndarray of its own (collective).

        Parameters
        ----------
        root : int, optional
            The only rank that gets it; the others get None. By default every rank gets it.

        Raises
        ------
        GatherError
            Where it is larger than the memory budget.
        """
        values: np.ndarray | None = engine.gather(self, root, policy.advise_of_gather)
        return values

    def redistribute(
        self, layout: Layout | None = None, *, split: int | None = None, mesh: tuple[int, ...] | Mesh | None = None
    ) -> DistArray:
        """A copy of the array with another layout (recorded; ranks exchange what they need of each other).

        Parameters
        ----------
        layout : Layout, optional
        split : int, optional
            Cut this axis only.
        mesh : tuple of int, optional
            Extents of the mesh of ranks; its dimensions cut the leading axes in order.
        """
        if layout is None:
            layout = engine.runtime().default_layout(self.shape, split=split, mesh=mesh)
        return engine.copy(self, layout=layout)

    # ---- Python's protocols

    def _scalar(self, convert: Callable[[np.ndarray], object]) -> Any:
        """`convert` as ndarray has it: NumPy decides on the shape, and the value comes from its owner."""
        if self._storage is None:
            return engine.agreed(convert(self._array))
        if self._array.size != 1:
            return convert(numpy_stand_in(self))  # NumPy's error
        value = np.empty(self._array.shape, self._array.dtype)
        convert(np.ones(self._array.shape, self._array.dtype))  # NumPy's error, before communicating
        value[...] = engine.item(self)
        return convert(value)

    def __bool__(self) -> bool:
        return self._scalar(bool)

    def __int__(self) -> int:
        return self._scalar(int)

    def __float__(self) -> float:
        return self._scalar(float)

    def __complex__(self) -> complex:
        return self._scalar(complex)

    def __index__(self) -> int:
        return self._scalar(operator.index)

    def __bytes__(self) -> bytes:
        return bytes(self.gather())  # type: ignore[arg-type]

    def __format__(self, spec: str) -> str:
        if self._array.ndim == 0:
            return self._scalar(lambda a: format(a, spec))
        return str(self) if not spec else format(numpy_stand_in(self), spec)

    def __repr__(self) -> str:
        from numpy_dist.distarray import formatting

        return formatting.array_repr(self)

    def _repr_html_(self) -> str:
        """What notebooks show: the layout as a picture. Not collective, and nothing is executed."""
        from numpy_dist.distarray import pictures

        return pictures.array_html(self)

    def __str__(self) -> str:
        from numpy_dist.distarray import formatting

        return formatting.array_str(self)

    def __copy__(self) -> DistArray:
        return self.copy(order="K")

    def __deepcopy__(self, memo: dict[int, object]) -> DistArray:
        return engine.replicated(copy.deepcopy(self._array, memo)) if self._storage is None else self.copy(order="K")

    def __reduce__(self) -> tuple[Callable[[np.ndarray, bool], DistArray], tuple[np.ndarray, bool]]:
        """Pickle the gathered values (collective); loading, on all ranks alike, keeps each rank's part."""
        values = self.gather()
        return _restore, (values if self.flags.forc else values.copy("C"), self._storage is not None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return np.empty(0).__dlpack_device__()

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if self._storage is not None:
            raise BufferError(NEEDS_MEMORY["__dlpack__"])
        return self._array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __arrow_array__(self, type: object = None) -> Any:
        """The values as an array of Arrow, for `pyarrow.array` (gathers); without it that asks for one at a time."""
        return importlib.import_module("pyarrow").array(np.asarray(self), type=type)


def _part(x: DistArray, name: str, value: Any) -> np.ndarray:
    """What becomes of a value that is assigned to ``x.real`` or ``x.imag``: NumPy's casts, warnings and errors."""
    made = np.zeros(np.shape(value), x.dtype)
    if isinstance(value, np.ndarray | np.generic):
        value = engine.without_imaginary_part(value, made.real.dtype)
    with engine.events_reported("cast", alike=True):
        setattr(made, name, value)
    return getattr(made, name)


def _changed(array: np.ndarray, name: str, value: object) -> np.ndarray:
    """Another ndarray (or meta array) for the same data, with an attribute set; warnings are at the user's line."""
    with outcome.Retold():
        return structure.view(array, structure.changed, name, value)


def _whole(storage: Storage) -> np.ndarray:
    """The meta array of all of a storage, with the axes as they were when it was made."""
    if storage.made_as is not None:
        return storage.made_as
    whole = storage.meta_array()
    axes = storage.axes
    return whole if axes is None else structure.view(whole, np.ndarray.transpose, np.argsort(axes))


def _with_memory(x: DistArray) -> np.ndarray:
    """A gathered array amid a copy of the memory that it is a view of, as those see it who step through it."""
    storage = x._storage
    assert storage is not None  # it is sharded
    fallback.announce_gather(whole := x._seen_as(_whole(storage)))
    found: np.ndarray = engine.gather(whole)
    if not found.size:
        return np.empty(x.shape, x.dtype)
    memory = np.ascontiguousarray(found.transpose(np.argsort(found.strides)[::-1])).reshape(-1).view(np.uint8)
    return np.ndarray(x.shape, x.dtype, memory, engine.offset_of(x._array), x.strides)


def _is_within(meta_array: np.ndarray, nbytes: int) -> bool:
    """Whether all elements of a meta array lie within the bytes of its storage."""
    first, end = np.lib.array_utils.byte_bounds(meta_array)
    start = engine.offset_of(meta_array)
    origin = meta_array.__array_interface__["data"][0] - start
    return meta_array.size == 0 or (origin <= first and end <= origin + nbytes)


def _restore(array: np.ndarray, sharded: bool) -> DistArray:
    """Make a pickled array again."""
    return engine.from_global(array, engine.runtime().default_layout(array.shape) if sharded else None)


engine.register_handle_class(DistArray)
