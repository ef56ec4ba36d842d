"""Types of the names of `numpy_dist`.

Made by `python -m numpy_dist.conformance.stubs`, with NumPy 2.4; type checkers and editors read it.
"""
# mypy: disable-error-code="misc, override, overload-overlap, assignment"
# ruff: noqa: E402, E501, F401, F403, F821, I001, UP

import os
from builtins import bool as _bool
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import IO, Any, Literal, SupportsIndex, TypeVar, overload

import numpy as _np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from numpy_dist.argument_types import Shape
from numpy_dist.distarray import DistArray as DistArray

_Array = DistArray | NDArray[Any]
_T = TypeVar("_T")
from numpy_dist.settings import SettingsBlock

from numpy_dist import char as char
from numpy_dist import checkpoint as checkpoint
from numpy_dist import core as core
from numpy_dist import ctypeslib as ctypeslib
from numpy_dist import dtypes as dtypes
from numpy import emath as emath
from numpy_dist import exceptions as exceptions
from numpy_dist import f2py as f2py
from numpy_dist import fft as fft
from numpy_dist import lib as lib
from numpy_dist import linalg as linalg
from numpy_dist import ma as ma
from numpy_dist import polynomial as polynomial
from numpy_dist import random as random
from numpy_dist import rec as rec
from numpy_dist import strings as strings
from numpy_dist import testing as testing
from numpy_dist import typing as typing

class _Ufunc1To1(_np.ufunc):
    @overload
    def __call__(self, x: DistArray, /, out: _Array | tuple[_Array, ...] | None = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None) -> DistArray: ...
    @overload
    def __call__(self, x: NDArray[Any], /, out: _Array | tuple[_Array, ...] | None = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: ArrayLike, /, out: _Array | tuple[_Array, ...] | None = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None) -> Any: ...
    def at(self, a: _Array, indices: Any, /) -> None: ...

class _Ufunc1To2(_np.ufunc):
    @overload
    def __call__(self, x: DistArray, /, out: Any = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None) -> tuple[DistArray, DistArray]: ...
    @overload
    def __call__(self, x: NDArray[Any], /, out: Any = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None) -> tuple[NDArray[Any], NDArray[Any]]: ...
    @overload
    def __call__(self, x: ArrayLike, /, out: Any = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None) -> Any: ...
    def at(self, a: _Array, indices: Any, /) -> None: ...

class _Ufunc2To1(_np.ufunc):
    @overload
    def __call__(self, x1: DistArray, x2: ArrayLike, /, out: _Array | tuple[_Array, ...] | None = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None, axes: Any = ..., axis: Any = ..., keepdims: _bool = ...) -> DistArray: ...
    @overload
    def __call__(self, x1: ArrayLike, x2: DistArray, /, out: _Array | tuple[_Array, ...] | None = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None, axes: Any = ..., axis: Any = ..., keepdims: _bool = ...) -> DistArray: ...
    @overload
    def __call__(self, x1: NDArray[Any], x2: ArrayLike, /, out: _Array | tuple[_Array, ...] | None = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None, axes: Any = ..., axis: Any = ..., keepdims: _bool = ...) -> NDArray[Any]: ...
    @overload
    def __call__(self, x1: ArrayLike, x2: ArrayLike, /, out: _Array | tuple[_Array, ...] | None = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None, axes: Any = ..., axis: Any = ..., keepdims: _bool = ...) -> Any: ...
    def at(self, a: _Array, indices: Any, b: ArrayLike, /) -> None: ...
    @overload
    def accumulate(self, array: DistArray, /, axis: SupportsIndex = 0, dtype: DTypeLike | None = None, out: _Array | None = None) -> DistArray: ...
    @overload
    def accumulate(self, array: ArrayLike, /, axis: SupportsIndex = 0, dtype: DTypeLike | None = None, out: _Array | None = None) -> Any: ...
    def reduce(
        self, array: ArrayLike, /, axis: Shape | None = 0, dtype: DTypeLike | None = None, out: _Array | None = None, keepdims: _bool = False, initial: Any = ...,
        where: ArrayLike = True,
    ) -> Any: ...
    @overload
    def reduceat(self, array: DistArray, /, indices: ArrayLike, axis: SupportsIndex = 0, dtype: DTypeLike | None = None, out: _Array | None = None) -> DistArray: ...
    @overload
    def reduceat(self, array: ArrayLike, /, indices: ArrayLike, axis: SupportsIndex = 0, dtype: DTypeLike | None = None, out: _Array | None = None) -> Any: ...
    @overload
    def outer(self, A: DistArray, B: ArrayLike, /, **kwargs: Any) -> DistArray: ...
    @overload
    def outer(self, A: ArrayLike, B: DistArray, /, **kwargs: Any) -> DistArray: ...
    @overload
    def outer(self, A: ArrayLike, B: ArrayLike, /, **kwargs: Any) -> Any: ...

class _CoreUfunc2To1(_np.ufunc):
    def __call__(self, x1: ArrayLike, x2: ArrayLike, /, out: _Array | tuple[_Array, ...] | None = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None, axes: Any = ..., axis: Any = ..., keepdims: _bool = ...) -> Any: ...
    def at(self, a: _Array, indices: Any, b: ArrayLike, /) -> None: ...

class _Ufunc2To2(_np.ufunc):
    @overload
    def __call__(self, x1: DistArray, x2: ArrayLike, /, out: Any = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None) -> tuple[DistArray, DistArray]: ...
    @overload
    def __call__(self, x1: ArrayLike, x2: DistArray, /, out: Any = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None) -> tuple[DistArray, DistArray]: ...
    @overload
    def __call__(self, x1: NDArray[Any], x2: ArrayLike, /, out: Any = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None) -> tuple[NDArray[Any], NDArray[Any]]: ...
    @overload
    def __call__(self, x1: ArrayLike, x2: ArrayLike, /, out: Any = None, *, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, subok: _bool = True, signature: Any = None) -> Any: ...
    def at(self, a: _Array, indices: Any, b: ArrayLike, /) -> None: ...

class _Settings:
    @property
    def BACKEND(self) -> str:
        'What computes on the shards; mixed: GPUs on ranks that have them; names between commas: by rank, over again.'
    @BACKEND.setter
    def BACKEND(self, value: str) -> None: ...
    @property
    def FALLBACK(self) -> str:
        'What happens where only gathered NumPy can do it.'
    @FALLBACK.setter
    def FALLBACK(self, value: Literal['warn', 'error', 'silent']) -> None: ...
    @property
    def MIN_SHARD_BYTES(self) -> int:
        'Arrays of at least this many bytes are sharded when they are created.'
    @MIN_SHARD_BYTES.setter
    def MIN_SHARD_BYTES(self, value: int | str) -> None: ...
    @property
    def AT_ONCE(self) -> int | str:
        'Arrays and parts of fewer bytes are worked on at once; auto: MIN_SHARD_BYTES; 0: none.'
    @AT_ONCE.setter
    def AT_ONCE(self, value: int | str) -> None: ...
    @property
    def NUM_THREADS(self) -> int:
        'Threads for each rank; 0: as many as the rank may use.'
    @NUM_THREADS.setter
    def NUM_THREADS(self, value: int | str) -> None: ...
    @property
    def PLUGINS(self) -> str:
        'Which plug-ins are on: own (and matplotlib, pandas), all, none, names, names with a minus.'
    @PLUGINS.setter
    def PLUGINS(self, value: str) -> None: ...
    @property
    def ADVICE(self) -> str:
        'Whether a running program is told, once a line, what makes it slow.'
    @ADVICE.setter
    def ADVICE(self, value: Literal['on', 'off'] | _bool) -> None: ...
    @property
    def WEIGHTS(self) -> tuple[float, ...] | str:
        'How much each rank gets of new arrays, beside the others; measured: as its speed is; empty: all equally much.'
    @WEIGHTS.setter
    def WEIGHTS(self, value: Sequence[float] | str) -> None: ...
    @property
    def RANK_ORDER(self) -> str:
        "Whether ranks have MPI's numbers, or go node by node; where they differ, rank 0's setting counts."
    @RANK_ORDER.setter
    def RANK_ORDER(self, value: Literal['mpi', 'node']) -> None: ...
    @property
    def REPORT(self) -> str:
        'Whether it is counted, and told at exit, what ran where.'
    @REPORT.setter
    def REPORT(self, value: Literal['off', 'on'] | _bool) -> None: ...
    @property
    def CACHE_DIR(self) -> str:
        'Where compiled kernels are kept.'
    @CACHE_DIR.setter
    def CACHE_DIR(self, value: str | os.PathLike[str]) -> None: ...
    @property
    def CACHE_SIZE(self) -> int:
        'The bytes that compiled kernels may take there.'
    @CACHE_SIZE.setter
    def CACHE_SIZE(self, value: int | str) -> None: ...
    @property
    def COMPILE(self) -> str:
        'When a group of statements is compiled.'
    @COMPILE.setter
    def COMPILE(self, value: Literal['auto', 'first', 'never']) -> None: ...
    @property
    def COMPILE_AFTER(self) -> float:
        "Seconds (60 at most) after a script's end in which what it asked for is compiled; 0: none."
    @COMPILE_AFTER.setter
    def COMPILE_AFTER(self, value: float | str) -> None: ...
    @property
    def TRANSPORT(self) -> str:
        'How shards on GPUs travel.'
    @TRANSPORT.setter
    def TRANSPORT(self, value: Literal['auto', 'mpi-gpu', 'nccl', 'ipc', 'host']) -> None: ...
    @property
    def PROFILE(self) -> str:
        'The folder of a profile of the whole program; empty: there is none.'
    @PROFILE.setter
    def PROFILE(self, value: str | os.PathLike[str]) -> None: ...
    @property
    def MEMORY_BUDGET(self) -> int:
        'The bytes that a gather may take on one rank; 0: worked out from free memory.'
    @MEMORY_BUDGET.setter
    def MEMORY_BUDGET(self, value: int | str) -> None: ...
    @property
    def CHECK(self) -> str:
        'Whether ranks compare what they do, and replicated inputs.'
    @CHECK.setter
    def CHECK(self, value: Literal['off', 'on'] | _bool) -> None: ...
    @property
    def TIMEOUT(self) -> float:
        'Seconds of waiting after which it is printed where every rank is; 0: never.'
    @TIMEOUT.setter
    def TIMEOUT(self, value: float | str) -> None: ...
    @property
    def ON_TIMEOUT(self) -> str:
        'Whether the job ends after that is printed.'
    @ON_TIMEOUT.setter
    def ON_TIMEOUT(self, value: Literal['report', 'end']) -> None: ...
    @property
    def TRACEBACK(self) -> str:
        "Whether the report of an error that is shown has numpy_dist's lines."
    @TRACEBACK.setter
    def TRACEBACK(self, value: Literal['short', 'full']) -> None: ...
    def __call__(self, *, BACKEND: str = ..., FALLBACK: Literal['warn', 'error', 'silent'] = ..., MIN_SHARD_BYTES: int | str = ..., AT_ONCE: int | str = ..., NUM_THREADS: int | str = ..., PLUGINS: str = ..., ADVICE: Literal['on', 'off'] | _bool = ..., WEIGHTS: Sequence[float] | str = ..., RANK_ORDER: Literal['mpi', 'node'] = ..., REPORT: Literal['off', 'on'] | _bool = ..., CACHE_DIR: str | os.PathLike[str] = ..., CACHE_SIZE: int | str = ..., COMPILE: Literal['auto', 'first', 'never'] = ..., COMPILE_AFTER: float | str = ..., TRANSPORT: Literal['auto', 'mpi-gpu', 'nccl', 'ipc', 'host'] = ..., PROFILE: str | os.PathLike[str] = ..., MEMORY_BUDGET: int | str = ..., CHECK: Literal['off', 'on'] | _bool = ..., TIMEOUT: float | str = ..., ON_TIMEOUT: Literal['report', 'end'] = ..., TRACEBACK: Literal['short', 'full'] = ...) -> SettingsBlock:
        """A context manager inside which the given settings have the given values."""
    def snapshot(self) -> dict[str, object]:
        """The value of every setting, as the running context sees it."""

config: _Settings

class _Concatenator:
    def __getitem__(self, key: Any) -> DistArray: ...
    def __len__(self) -> int: ...

class _MeshGrid:
    def __getitem__(self, key: slice | tuple[slice, ...]) -> DistArray: ...

class _OpenGrid:
    @overload
    def __getitem__(self, key: slice) -> DistArray: ...
    @overload
    def __getitem__(self, key: tuple[slice, ...]) -> tuple[DistArray, ...]: ...

from numpy_dist.errors import AdviceWarning as AdviceWarning
from numpy_dist.errors import CheckpointError as CheckpointError
from numpy_dist.errors import CheckpointWarning as CheckpointWarning
from numpy_dist.errors import DivergenceError as DivergenceError
from numpy_dist.errors import FallbackError as FallbackError
from numpy_dist.errors import FallbackWarning as FallbackWarning
from numpy import False_ as False_
from numpy_dist.errors import GatherError as GatherError
from numpy_dist.errors import LauncherError as LauncherError
from numpy_dist.layout.layout import Layout as Layout
from numpy_dist.layout.mesh import Mesh as Mesh
from numpy_dist.errors import OverrideError as OverrideError
from numpy_dist.errors import OverrideWarning as OverrideWarning
from numpy_dist.errors import RankError as RankError
from numpy import ScalarType as ScalarType
from numpy_dist.errors import SettingWarning as SettingWarning
from numpy_dist.formats import StoredArray as StoredArray
from numpy_dist.formats import StoredArrays as StoredArrays
from numpy import True_ as True_
from numpy_dist.errors import UnsupportedError as UnsupportedError
abs: _Ufunc1To1
absolute: _Ufunc1To1
acos: _Ufunc1To1
acosh: _Ufunc1To1
add: _Ufunc2To1
@overload
def all(a: DistArray, axis: SupportsIndex | tuple[SupportsIndex, ...], out: _Array | None = None, keepdims: _bool = ..., *, where: ArrayLike = ...) -> DistArray: ...
@overload
def all(a: DistArray, axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None, out: _Array | None = None, *, keepdims: Literal[True], where: ArrayLike = ...) -> DistArray: ...
@overload
def all(a: ArrayLike | None, axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None, out: _Array | None = None, keepdims: _bool = ..., *, where: ArrayLike = ...) -> Any: ...
from numpy import allclose as allclose
@overload
def amax(a: DistArray, axis: Shape, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def amax(a: DistArray, axis: Shape | None = None, out: _Array | None = None, *, keepdims: Literal[True], initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def amax(a: ArrayLike, axis: Shape | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> Any: ...
@overload
def amin(a: DistArray, axis: Shape, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def amin(a: DistArray, axis: Shape | None = None, out: _Array | None = None, *, keepdims: Literal[True], initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def amin(a: ArrayLike, axis: Shape | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> Any: ...
@overload
def angle(z: DistArray, deg: _bool = False) -> DistArray: ...
@overload
def angle(z: NDArray[Any], deg: _bool = False) -> NDArray[Any]: ...
@overload
def angle(z: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]], deg: _bool = False) -> Any: ...
@overload
def any(a: DistArray, axis: SupportsIndex | tuple[SupportsIndex, ...], out: _Array | None = None, keepdims: _bool = ..., *, where: ArrayLike = ...) -> DistArray: ...
@overload
def any(a: DistArray, axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None, out: _Array | None = None, *, keepdims: Literal[True], where: ArrayLike = ...) -> DistArray: ...
@overload
def any(a: ArrayLike | None, axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None, out: _Array | None = None, keepdims: _bool = ..., *, where: ArrayLike = ...) -> Any: ...
@overload
def append(arr: DistArray, values: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]], axis: SupportsIndex | None = None) -> DistArray: ...
@overload
def append(arr: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]], values: DistArray, axis: SupportsIndex | None = None) -> DistArray: ...
@overload
def append(arr: NDArray[Any], values: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]], axis: SupportsIndex | None = None) -> NDArray[Any]: ...
@overload
def append(arr: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]], values: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]], axis: SupportsIndex | None = None) -> Any: ...
@overload
def apply_along_axis(func1d: Callable[..., Any], axis: SupportsIndex, arr: DistArray, *args: Any, **kwargs: Any) -> DistArray: ...
@overload
def apply_along_axis(func1d: Callable[..., Any], axis: SupportsIndex, arr: NDArray[Any], *args: Any, **kwargs: Any) -> NDArray[Any]: ...
@overload
def apply_along_axis(func1d: Callable[..., Any], axis: SupportsIndex, arr: ArrayLike, *args: Any, **kwargs: Any) -> Any: ...
@overload
def apply_over_axes(func: Callable[..., Any], a: DistArray, axes: Sequence[SupportsIndex] | SupportsIndex) -> DistArray: ...
@overload
def apply_over_axes(func: Callable[..., Any], a: NDArray[Any], axes: Sequence[SupportsIndex] | SupportsIndex) -> NDArray[Any]: ...
@overload
def apply_over_axes(func: Callable[..., Any], a: ArrayLike, axes: Sequence[SupportsIndex] | SupportsIndex) -> Any: ...
def arange(start_or_stop: object = ..., /, stop: object = None, step: Any = None, *, start: Any = None, dtype: DTypeLike | None = None, device: Literal['cpu'] | None = None, like: Any = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
arccos: _Ufunc1To1
arccosh: _Ufunc1To1
arcsin: _Ufunc1To1
arcsinh: _Ufunc1To1
arctan: _Ufunc1To1
arctan2: _Ufunc2To1
arctanh: _Ufunc1To1
@overload
def argmax(a: DistArray, axis: SupportsIndex, out: _Array | None = None, *, keepdims: _bool = ...) -> DistArray: ...
@overload
def argmax(a: DistArray, axis: SupportsIndex | None = None, out: _Array | None = None, *, keepdims: Literal[True]) -> DistArray: ...
@overload
def argmax(a: ArrayLike, axis: SupportsIndex | None = None, out: _Array | None = None, *, keepdims: _bool = ...) -> Any: ...
@overload
def argmin(a: DistArray, axis: SupportsIndex, out: _Array | None = None, *, keepdims: _bool = ...) -> DistArray: ...
@overload
def argmin(a: DistArray, axis: SupportsIndex | None = None, out: _Array | None = None, *, keepdims: Literal[True]) -> DistArray: ...
@overload
def argmin(a: ArrayLike, axis: SupportsIndex | None = None, out: _Array | None = None, *, keepdims: _bool = ...) -> Any: ...
@overload
def argpartition(a: DistArray, kth: ArrayLike, axis: SupportsIndex | None = -1, kind: Literal['introselect'] = 'introselect', order: Sequence[str] | str | None = None) -> DistArray: ...
@overload
def argpartition(a: ArrayLike, kth: DistArray, axis: SupportsIndex | None = -1, kind: Literal['introselect'] = 'introselect', order: Sequence[str] | str | None = None) -> DistArray: ...
@overload
def argpartition(a: NDArray[Any], kth: ArrayLike, axis: SupportsIndex | None = -1, kind: Literal['introselect'] = 'introselect', order: Sequence[str] | str | None = None) -> NDArray[Any]: ...
@overload
def argpartition(a: ArrayLike, kth: ArrayLike, axis: SupportsIndex | None = -1, kind: Literal['introselect'] = 'introselect', order: Sequence[str] | str | None = None) -> Any: ...
@overload
def argsort(a: DistArray, axis: SupportsIndex | None = -1, kind: Literal['Q', 'quick', 'quicksort', 'M', 'merge', 'mergesort', 'H', 'heap', 'heapsort', 'S', 'stable', 'stablesort'] | None = None, order: Sequence[str] | str | None = None, *, stable: _bool | None = None) -> DistArray: ...
@overload
def argsort(a: NDArray[Any], axis: SupportsIndex | None = -1, kind: Literal['Q', 'quick', 'quicksort', 'M', 'merge', 'mergesort', 'H', 'heap', 'heapsort', 'S', 'stable', 'stablesort'] | None = None, order: Sequence[str] | str | None = None, *, stable: _bool | None = None) -> NDArray[Any]: ...
@overload
def argsort(a: ArrayLike, axis: SupportsIndex | None = -1, kind: Literal['Q', 'quick', 'quicksort', 'M', 'merge', 'mergesort', 'H', 'heap', 'heapsort', 'S', 'stable', 'stablesort'] | None = None, order: Sequence[str] | str | None = None, *, stable: _bool | None = None) -> Any: ...
@overload
def argwhere(a: DistArray) -> DistArray: ...
@overload
def argwhere(a: NDArray[Any]) -> NDArray[Any]: ...
@overload
def argwhere(a: ArrayLike) -> Any: ...
@overload
def around(a: DistArray, decimals: SupportsIndex = 0, out: _Array | None = None) -> DistArray: ...
@overload
def around(a: NDArray[Any], decimals: SupportsIndex = 0, out: _Array | None = None) -> NDArray[Any]: ...
@overload
def around(a: ArrayLike, decimals: SupportsIndex = 0, out: _Array | None = None) -> Any: ...
def array(object: object, dtype: DTypeLike | None = None, *, copy: _bool | None = True, order: Literal['K', 'A', 'C', 'F'] | None = 'K', subok: _bool = False, ndmin: SupportsIndex = 0, ndmax: SupportsIndex = 64, like: Any = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None, root: SupportsIndex | None = None) -> DistArray: ...
def array2string(a: _Array, max_line_width: SupportsIndex | None = None, precision: SupportsIndex | None = None, suppress_small: _bool | None = None, separator: str = ' ', prefix: str = '', *, formatter: Any = None, threshold: SupportsIndex | None = None, edgeitems: SupportsIndex | None = None, sign: Literal['-', '+', ' '] | None = None, floatmode: Literal['fixed', 'unique', 'maxprec', 'maxprec_equal'] | None = None, suffix: str = '', legacy: Any = None) -> str: ...
from numpy import array_equal as array_equal
from numpy import array_equiv as array_equiv
def array_repr(arr: _Array, max_line_width: SupportsIndex | None = None, precision: SupportsIndex | None = None, suppress_small: _bool | None = None) -> str: ...
@overload
def array_split(ary: DistArray, indices_or_sections: Shape, axis: SupportsIndex = 0) -> list[DistArray]: ...
@overload
def array_split(ary: NDArray[Any], indices_or_sections: Shape, axis: SupportsIndex = 0) -> list[NDArray[Any]]: ...
@overload
def array_split(ary: ArrayLike, indices_or_sections: Shape, axis: SupportsIndex = 0) -> Any: ...
def array_str(a: _Array, max_line_width: SupportsIndex | None = None, precision: SupportsIndex | None = None, suppress_small: _bool | None = None) -> str: ...
def asanyarray(a: object, dtype: DTypeLike | None = None, order: Literal['K', 'A', 'C', 'F'] | None = None, *, device: Literal['cpu'] | None = None, copy: _bool | None = None, like: Any = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None, root: SupportsIndex | None = None) -> DistArray: ...
def asarray(a: object, dtype: DTypeLike | None = None, order: Literal['K', 'A', 'C', 'F'] | None = None, *, device: Literal['cpu'] | None = None, copy: _bool | None = None, like: Any = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None, root: SupportsIndex | None = None) -> DistArray: ...
@overload
def asarray_chkfinite(a: DistArray, dtype: DTypeLike | None = None, order: Literal['K', 'A', 'C', 'F'] | None = None) -> DistArray: ...
@overload
def asarray_chkfinite(a: NDArray[Any], dtype: DTypeLike | None = None, order: Literal['K', 'A', 'C', 'F'] | None = None) -> NDArray[Any]: ...
@overload
def asarray_chkfinite(a: ArrayLike, dtype: DTypeLike | None = None, order: Literal['K', 'A', 'C', 'F'] | None = None) -> Any: ...
def ascontiguousarray(a: object, dtype: DTypeLike | None = None, *, like: Any = None) -> DistArray: ...
def asfortranarray(a: object, dtype: DTypeLike | None = None, *, like: Any = None) -> DistArray: ...
asin: _Ufunc1To1
asinh: _Ufunc1To1
def asmatrix(data: ArrayLike, dtype: DTypeLike | None = None) -> Any: ...
@overload
def astype(x: DistArray, dtype: DTypeLike | None, /, *, copy: _bool = True, device: Literal['cpu'] | None = None) -> DistArray: ...
@overload
def astype(x: NDArray[Any], dtype: DTypeLike | None, /, *, copy: _bool = True, device: Literal['cpu'] | None = None) -> NDArray[Any]: ...
@overload
def astype(x: _Array, dtype: DTypeLike | None, /, *, copy: _bool = True, device: Literal['cpu'] | None = None) -> Any: ...
atan: _Ufunc1To1
atan2: _Ufunc2To1
atanh: _Ufunc1To1
@overload
def atleast_1d(*arys: DistArray) -> tuple[DistArray, ...]: ...
@overload
def atleast_1d(*arys: NDArray[Any]) -> tuple[NDArray[Any], ...]: ...
@overload
def atleast_1d(*arys: ArrayLike) -> Any: ...
@overload
def atleast_2d(*arys: DistArray) -> tuple[DistArray, ...]: ...
@overload
def atleast_2d(*arys: NDArray[Any]) -> tuple[NDArray[Any], ...]: ...
@overload
def atleast_2d(*arys: ArrayLike) -> Any: ...
@overload
def atleast_3d(*arys: DistArray) -> tuple[DistArray, ...]: ...
@overload
def atleast_3d(*arys: NDArray[Any]) -> tuple[NDArray[Any], ...]: ...
@overload
def atleast_3d(*arys: ArrayLike) -> Any: ...
def average(a: ArrayLike | list[Any], axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None, weights: ArrayLike | None = None, returned: _bool = False, *, keepdims: _bool = ...) -> Any: ...
from numpy_dist.authoring import axis_local as axis_local
def bartlett(M: ArrayLike) -> DistArray: ...
from numpy import base_repr as base_repr
from numpy import binary_repr as binary_repr
@overload
def bincount(x: DistArray, /, weights: ArrayLike | None = None, minlength: SupportsIndex = 0) -> DistArray: ...
@overload
def bincount(x: NDArray[Any], /, weights: ArrayLike | None = None, minlength: SupportsIndex = 0) -> NDArray[Any]: ...
@overload
def bincount(x: ArrayLike, /, weights: ArrayLike | None = None, minlength: SupportsIndex = 0) -> Any: ...
bitwise_and: _Ufunc2To1
bitwise_count: _Ufunc1To1
bitwise_invert: _Ufunc1To1
bitwise_left_shift: _Ufunc2To1
bitwise_not: _Ufunc1To1
bitwise_or: _Ufunc2To1
bitwise_right_shift: _Ufunc2To1
bitwise_xor: _Ufunc2To1
def blackman(M: ArrayLike) -> DistArray: ...
@overload
def block(arrays: DistArray) -> DistArray: ...
@overload
def block(arrays: NDArray[Any]) -> NDArray[Any]: ...
@overload
def block(arrays: ArrayLike) -> Any: ...
def bmat(obj: _Array | Sequence[ArrayLike] | str, ldict: Any = None, gdict: Any = None) -> Any: ...
from numpy import bool as bool
from numpy import bool_ as bool_
from numpy import broadcast as broadcast
@overload
def broadcast_arrays(*args: DistArray, subok: _bool = False) -> tuple[DistArray, ...]: ...
@overload
def broadcast_arrays(*args: NDArray[Any], subok: _bool = False) -> tuple[NDArray[Any], ...]: ...
@overload
def broadcast_arrays(*args: ArrayLike, subok: _bool = False) -> Any: ...
from numpy import broadcast_shapes as broadcast_shapes
@overload
def broadcast_to(array: DistArray, shape: Iterable[SupportsIndex] | SupportsIndex, subok: _bool = False) -> DistArray: ...
@overload
def broadcast_to(array: NDArray[Any], shape: Iterable[SupportsIndex] | SupportsIndex, subok: _bool = False) -> NDArray[Any]: ...
@overload
def broadcast_to(array: ArrayLike, shape: Iterable[SupportsIndex] | SupportsIndex, subok: _bool = False) -> Any: ...
@overload
def busday_count(begindates: DistArray, enddates: ArrayLike, weekmask: ArrayLike = '1111100', holidays: ArrayLike = ..., busdaycal: Any = None, out: _Array | None = None) -> DistArray: ...
@overload
def busday_count(begindates: ArrayLike, enddates: DistArray, weekmask: ArrayLike = '1111100', holidays: ArrayLike = ..., busdaycal: Any = None, out: _Array | None = None) -> DistArray: ...
@overload
def busday_count(begindates: NDArray[Any], enddates: ArrayLike, weekmask: ArrayLike = '1111100', holidays: ArrayLike = ..., busdaycal: Any = None, out: _Array | None = None) -> NDArray[Any]: ...
@overload
def busday_count(begindates: ArrayLike, enddates: ArrayLike, weekmask: ArrayLike = '1111100', holidays: ArrayLike = ..., busdaycal: Any = None, out: _Array | None = None) -> Any: ...
@overload
def busday_offset(dates: DistArray, offsets: ArrayLike, roll: Literal['nat', 'forward', 'following', 'backward', 'preceding', 'modifiedfollowing', 'modifiedpreceding'] | Literal['raise'] = 'raise', weekmask: ArrayLike = '1111100', holidays: ArrayLike | None = None, busdaycal: Any = None, out: _Array | None = None) -> DistArray: ...
@overload
def busday_offset(dates: ArrayLike, offsets: DistArray, roll: Literal['nat', 'forward', 'following', 'backward', 'preceding', 'modifiedfollowing', 'modifiedpreceding'] | Literal['raise'] = 'raise', weekmask: ArrayLike = '1111100', holidays: ArrayLike | None = None, busdaycal: Any = None, out: _Array | None = None) -> DistArray: ...
@overload
def busday_offset(dates: NDArray[Any], offsets: ArrayLike, roll: Literal['nat', 'forward', 'following', 'backward', 'preceding', 'modifiedfollowing', 'modifiedpreceding'] | Literal['raise'] = 'raise', weekmask: ArrayLike = '1111100', holidays: ArrayLike | None = None, busdaycal: Any = None, out: _Array | None = None) -> NDArray[Any]: ...
@overload
def busday_offset(dates: ArrayLike, offsets: ArrayLike, roll: Literal['nat', 'forward', 'following', 'backward', 'preceding', 'modifiedfollowing', 'modifiedpreceding'] | Literal['raise'] = 'raise', weekmask: ArrayLike = '1111100', holidays: ArrayLike | None = None, busdaycal: Any = None, out: _Array | None = None) -> Any: ...
from numpy import busdaycalendar as busdaycalendar
from numpy import byte as byte
from numpy import bytes_ as bytes_
c_: _Concatenator
from numpy import can_cast as can_cast
cbrt: _Ufunc1To1
from numpy import cdouble as cdouble
ceil: _Ufunc1To1
from numpy import character as character
@overload
def choose(a: DistArray, choices: ArrayLike, out: _Array | None = None, mode: Literal['raise', 'wrap', 'clip'] = 'raise') -> DistArray: ...
@overload
def choose(a: ArrayLike, choices: DistArray, out: _Array | None = None, mode: Literal['raise', 'wrap', 'clip'] = 'raise') -> DistArray: ...
@overload
def choose(a: NDArray[Any], choices: ArrayLike, out: _Array | None = None, mode: Literal['raise', 'wrap', 'clip'] = 'raise') -> NDArray[Any]: ...
@overload
def choose(a: ArrayLike, choices: ArrayLike, out: _Array | None = None, mode: Literal['raise', 'wrap', 'clip'] = 'raise') -> Any: ...
@overload
def clip(a: DistArray, a_min: ArrayLike | None = ..., a_max: ArrayLike | None = ..., out: _Array | None = None, *, min: ArrayLike | None = ..., max: ArrayLike | None = ..., **kwargs: Any) -> DistArray: ...
@overload
def clip(a: NDArray[Any], a_min: ArrayLike | None = ..., a_max: ArrayLike | None = ..., out: _Array | None = None, *, min: ArrayLike | None = ..., max: ArrayLike | None = ..., **kwargs: Any) -> NDArray[Any]: ...
@overload
def clip(a: ArrayLike, a_min: ArrayLike | None = ..., a_max: ArrayLike | None = ..., out: _Array | None = None, *, min: ArrayLike | None = ..., max: ArrayLike | None = ..., **kwargs: Any) -> Any: ...
from numpy import clongdouble as clongdouble
@overload
def column_stack(tup: Sequence[DistArray]) -> DistArray: ...
@overload
def column_stack(tup: Sequence[NDArray[Any]]) -> NDArray[Any]: ...
@overload
def column_stack(tup: Sequence[ArrayLike]) -> Any: ...
from numpy import common_type as common_type
from numpy import complex128 as complex128
from numpy import complex256 as complex256
from numpy import complex64 as complex64
from numpy import complexfloating as complexfloating
@overload
def compress(condition: DistArray, a: ArrayLike, axis: SupportsIndex | None = None, out: _Array | None = None) -> DistArray: ...
@overload
def compress(condition: ArrayLike, a: DistArray, axis: SupportsIndex | None = None, out: _Array | None = None) -> DistArray: ...
@overload
def compress(condition: NDArray[Any], a: ArrayLike, axis: SupportsIndex | None = None, out: _Array | None = None) -> NDArray[Any]: ...
@overload
def compress(condition: ArrayLike, a: ArrayLike, axis: SupportsIndex | None = None, out: _Array | None = None) -> Any: ...
@overload
def concat(arrays: DistArray | Sequence[DistArray], /, axis: SupportsIndex | None = 0, out: _Array | None = None, *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] | None = 'same_kind') -> DistArray: ...
@overload
def concat(arrays: NDArray[Any] | Sequence[NDArray[Any]], /, axis: SupportsIndex | None = 0, out: _Array | None = None, *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] | None = 'same_kind') -> NDArray[Any]: ...
@overload
def concat(arrays: ArrayLike | Sequence[ArrayLike], /, axis: SupportsIndex | None = 0, out: _Array | None = None, *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] | None = 'same_kind') -> Any: ...
@overload
def concatenate(arrays: DistArray | Sequence[DistArray], /, axis: SupportsIndex | None = 0, out: _Array | None = None, *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] | None = 'same_kind') -> DistArray: ...
@overload
def concatenate(arrays: NDArray[Any] | Sequence[NDArray[Any]], /, axis: SupportsIndex | None = 0, out: _Array | None = None, *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] | None = 'same_kind') -> NDArray[Any]: ...
@overload
def concatenate(arrays: ArrayLike | Sequence[ArrayLike], /, axis: SupportsIndex | None = 0, out: _Array | None = None, *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] | None = 'same_kind') -> Any: ...
conj: _Ufunc1To1
conjugate: _Ufunc1To1
@overload
def convolve(a: DistArray, v: ArrayLike, mode: Literal['valid', 'same', 'full'] = 'full') -> DistArray: ...
@overload
def convolve(a: ArrayLike, v: DistArray, mode: Literal['valid', 'same', 'full'] = 'full') -> DistArray: ...
@overload
def convolve(a: NDArray[Any], v: ArrayLike, mode: Literal['valid', 'same', 'full'] = 'full') -> NDArray[Any]: ...
@overload
def convolve(a: ArrayLike, v: ArrayLike, mode: Literal['valid', 'same', 'full'] = 'full') -> Any: ...
def copy(a: object, order: Literal['K', 'A', 'C', 'F'] | None = 'K', subok: _bool = False, *, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
copysign: _Ufunc2To1
def copyto(dst: _Array, src: ArrayLike, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind', where: object = True) -> None: ...
def corrcoef(x: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]], y: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]] | None = None, rowvar: _bool = True, *, dtype: DTypeLike | None = None) -> Any: ...
@overload
def correlate(a: DistArray, v: ArrayLike, mode: Literal['valid', 'same', 'full'] = 'valid') -> DistArray: ...
@overload
def correlate(a: ArrayLike, v: DistArray, mode: Literal['valid', 'same', 'full'] = 'valid') -> DistArray: ...
@overload
def correlate(a: NDArray[Any], v: ArrayLike, mode: Literal['valid', 'same', 'full'] = 'valid') -> NDArray[Any]: ...
@overload
def correlate(a: ArrayLike, v: ArrayLike, mode: Literal['valid', 'same', 'full'] = 'valid') -> Any: ...
cos: _Ufunc1To1
cosh: _Ufunc1To1
@overload
def count_nonzero(a: DistArray, axis: Shape, *, keepdims: _bool = False) -> DistArray: ...
@overload
def count_nonzero(a: DistArray, axis: Shape | None = None, *, keepdims: Literal[True]) -> DistArray: ...
@overload
def count_nonzero(a: ArrayLike, axis: Shape | None = None, *, keepdims: _bool = False) -> Any: ...
from numpy_dist.counting import count_program as count_program
@overload
def cov(m: DistArray, y: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]] | None = None, rowvar: _bool = True, bias: _bool = False, ddof: SupportsIndex | None = None, fweights: ArrayLike | None = None, aweights: ArrayLike | None = None, *, dtype: DTypeLike | None = None) -> DistArray: ...
@overload
def cov(m: NDArray[Any], y: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]] | None = None, rowvar: _bool = True, bias: _bool = False, ddof: SupportsIndex | None = None, fweights: ArrayLike | None = None, aweights: ArrayLike | None = None, *, dtype: DTypeLike | None = None) -> NDArray[Any]: ...
@overload
def cov(m: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]], y: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]] | None = None, rowvar: _bool = True, bias: _bool = False, ddof: SupportsIndex | None = None, fweights: ArrayLike | None = None, aweights: ArrayLike | None = None, *, dtype: DTypeLike | None = None) -> Any: ...
@overload
def cross(a: DistArray, b: ArrayLike, axisa: SupportsIndex = -1, axisb: SupportsIndex = -1, axisc: SupportsIndex = -1, axis: SupportsIndex | None = None) -> DistArray: ...
@overload
def cross(a: ArrayLike, b: DistArray, axisa: SupportsIndex = -1, axisb: SupportsIndex = -1, axisc: SupportsIndex = -1, axis: SupportsIndex | None = None) -> DistArray: ...
@overload
def cross(a: NDArray[Any], b: ArrayLike, axisa: SupportsIndex = -1, axisb: SupportsIndex = -1, axisc: SupportsIndex = -1, axis: SupportsIndex | None = None) -> NDArray[Any]: ...
@overload
def cross(a: ArrayLike, b: ArrayLike, axisa: SupportsIndex = -1, axisb: SupportsIndex = -1, axisc: SupportsIndex = -1, axis: SupportsIndex | None = None) -> Any: ...
from numpy import csingle as csingle
@overload
def cumprod(a: DistArray, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None) -> DistArray: ...
@overload
def cumprod(a: NDArray[Any], axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None) -> NDArray[Any]: ...
@overload
def cumprod(a: ArrayLike, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None) -> Any: ...
@overload
def cumsum(a: DistArray, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None) -> DistArray: ...
@overload
def cumsum(a: NDArray[Any], axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None) -> NDArray[Any]: ...
@overload
def cumsum(a: ArrayLike, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None) -> Any: ...
@overload
def cumulative_prod(x: DistArray, /, *, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, include_initial: _bool = False) -> DistArray: ...
@overload
def cumulative_prod(x: NDArray[Any], /, *, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, include_initial: _bool = False) -> NDArray[Any]: ...
@overload
def cumulative_prod(x: ArrayLike, /, *, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, include_initial: _bool = False) -> Any: ...
@overload
def cumulative_sum(x: DistArray, /, *, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, include_initial: _bool = False) -> DistArray: ...
@overload
def cumulative_sum(x: NDArray[Any], /, *, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, include_initial: _bool = False) -> NDArray[Any]: ...
@overload
def cumulative_sum(x: ArrayLike, /, *, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, include_initial: _bool = False) -> Any: ...
from numpy import datetime64 as datetime64
@overload
def datetime_as_string(arr: DistArray, unit: Literal['Y', 'M', 'D', 'h', 'm', 's', 'ms', 'us', 'μs', 'ns', 'ps', 'fs', 'as'] | Literal['auto'] | None = None, timezone: Any = 'naive', casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> DistArray: ...
@overload
def datetime_as_string(arr: NDArray[Any], unit: Literal['Y', 'M', 'D', 'h', 'm', 's', 'ms', 'us', 'μs', 'ns', 'ps', 'fs', 'as'] | Literal['auto'] | None = None, timezone: Any = 'naive', casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> NDArray[Any]: ...
@overload
def datetime_as_string(arr: ArrayLike, unit: Literal['Y', 'M', 'D', 'h', 'm', 's', 'ms', 'us', 'μs', 'ns', 'ps', 'fs', 'as'] | Literal['auto'] | None = None, timezone: Any = 'naive', casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> Any: ...
from numpy import datetime_data as datetime_data
from numpy_dist.dispatch.core.registry import decline as decline
deg2rad: _Ufunc1To1
degrees: _Ufunc1To1
@overload
def delete(arr: DistArray, obj: ArrayLike, axis: SupportsIndex | None = None) -> DistArray: ...
@overload
def delete(arr: ArrayLike, obj: DistArray, axis: SupportsIndex | None = None) -> DistArray: ...
@overload
def delete(arr: NDArray[Any], obj: ArrayLike, axis: SupportsIndex | None = None) -> NDArray[Any]: ...
@overload
def delete(arr: ArrayLike, obj: ArrayLike, axis: SupportsIndex | None = None) -> Any: ...
def diag(v: ArrayLike | Sequence[ArrayLike] | Sequence[Sequence[ArrayLike]], k: SupportsIndex = 0) -> DistArray: ...
def diag_indices(n: SupportsIndex, ndim: SupportsIndex = 2) -> tuple[DistArray, ...]: ...
@overload
def diag_indices_from(arr: DistArray) -> tuple[DistArray, ...]: ...
@overload
def diag_indices_from(arr: NDArray[Any]) -> tuple[NDArray[Any], ...]: ...
@overload
def diag_indices_from(arr: ArrayLike) -> Any: ...
def diagflat(v: ArrayLike, k: SupportsIndex = 0) -> DistArray: ...
@overload
def diagonal(a: DistArray, offset: SupportsIndex = 0, axis1: SupportsIndex = 0, axis2: SupportsIndex = 1) -> DistArray: ...
@overload
def diagonal(a: NDArray[Any], offset: SupportsIndex = 0, axis1: SupportsIndex = 0, axis2: SupportsIndex = 1) -> NDArray[Any]: ...
@overload
def diagonal(a: ArrayLike, offset: SupportsIndex = 0, axis1: SupportsIndex = 0, axis2: SupportsIndex = 1) -> Any: ...
@overload
def diff(a: DistArray, n: Literal[0] | int = 1, axis: SupportsIndex = -1, prepend: ArrayLike = ..., append: ArrayLike = ...) -> DistArray: ...
@overload
def diff(a: NDArray[Any], n: Literal[0] | int = 1, axis: SupportsIndex = -1, prepend: ArrayLike = ..., append: ArrayLike = ...) -> NDArray[Any]: ...
@overload
def diff(a: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]], n: Literal[0] | int = 1, axis: SupportsIndex = -1, prepend: ArrayLike = ..., append: ArrayLike = ...) -> Any: ...
@overload
def digitize(x: DistArray, bins: ArrayLike, right: _bool = False) -> DistArray: ...
@overload
def digitize(x: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]], bins: ArrayLike, right: _bool = False) -> Any: ...
from numpy_dist.dispatch.core.entries import dispatchable as dispatchable
from numpy_dist.binding import distribute as distribute
divide: _Ufunc2To1
divmod: _Ufunc2To2
def dot(a: ArrayLike, b: ArrayLike, out: _Array | None = None) -> Any: ...
from numpy import double as double
@overload
def dsplit(ary: DistArray, indices_or_sections: Shape) -> list[DistArray]: ...
@overload
def dsplit(ary: NDArray[Any], indices_or_sections: Shape) -> list[NDArray[Any]]: ...
@overload
def dsplit(ary: ArrayLike, indices_or_sections: Shape) -> Any: ...
@overload
def dstack(tup: Sequence[DistArray]) -> DistArray: ...
@overload
def dstack(tup: Sequence[NDArray[Any]]) -> NDArray[Any]: ...
@overload
def dstack(tup: Sequence[ArrayLike]) -> Any: ...
from numpy import dtype as dtype
from numpy import e as e
@overload
def ediff1d(ary: DistArray, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> DistArray: ...
@overload
def ediff1d(ary: NDArray[Any], to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> NDArray[Any]: ...
@overload
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Any: ...
def einsum(*operands: ArrayLike, out: _Array | None = None, optimize: Literal['greedy', 'optimal'] | Sequence[Any] | _bool | None = False, **kwargs: Any) -> Any: ...
from numpy import einsum_path as einsum_path
from numpy_dist.authoring import elementwise as elementwise
def empty(shape: SupportsIndex | Sequence[SupportsIndex], dtype: DTypeLike | None = None, order: Literal['C', 'F'] | None = 'C', *, device: Literal['cpu'] | None = None, like: Any = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
def empty_like(prototype: object, /, dtype: DTypeLike | None = None, order: Literal['K', 'A', 'C', 'F'] | None = 'K', subok: _bool = True, shape: SupportsIndex | Sequence[SupportsIndex] | None = None, *, device: Literal['cpu'] | None = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
equal: _Ufunc2To1
from numpy import errstate as errstate
from numpy import euler_gamma as euler_gamma
exp: _Ufunc1To1
exp2: _Ufunc1To1
@overload
def expand_dims(a: DistArray, axis: Shape) -> DistArray: ...
@overload
def expand_dims(a: NDArray[Any], axis: Shape) -> NDArray[Any]: ...
@overload
def expand_dims(a: ArrayLike, axis: Shape) -> Any: ...
from numpy_dist.dispatch.core.explain import explain as explain
from numpy_dist.engine.explaining.listing import explain_program as explain_program
expm1: _Ufunc1To1
@overload
def extract(condition: DistArray, arr: ArrayLike | list[Any]) -> DistArray: ...
@overload
def extract(condition: ArrayLike, arr: DistArray) -> DistArray: ...
@overload
def extract(condition: NDArray[Any], arr: ArrayLike | list[Any]) -> NDArray[Any]: ...
@overload
def extract(condition: ArrayLike, arr: ArrayLike | list[Any]) -> Any: ...
def eye(N: SupportsIndex, M: SupportsIndex | None = None, k: SupportsIndex = 0, dtype: DTypeLike | None = ..., order: Literal['C', 'F'] | None = 'C', *, device: Literal['cpu'] | None = None, like: Any = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
fabs: _Ufunc1To1
def fill_diagonal(a: _Array, val: object, wrap: _bool = False) -> None: ...
from numpy import finfo as finfo
@overload
def fix(x: DistArray, out: _Array | None = None) -> DistArray: ...
@overload
def fix(x: NDArray[Any], out: _Array | None = None) -> NDArray[Any]: ...
@overload
def fix(x: ArrayLike, out: _Array | None = None) -> Any: ...
from numpy import flatiter as flatiter
@overload
def flatnonzero(a: DistArray) -> DistArray: ...
@overload
def flatnonzero(a: NDArray[Any]) -> NDArray[Any]: ...
@overload
def flatnonzero(a: ArrayLike) -> Any: ...
from numpy import flexible as flexible
@overload
def flip(m: DistArray, axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None) -> DistArray: ...
@overload
def flip(m: NDArray[Any], axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None) -> NDArray[Any]: ...
@overload
def flip(m: ArrayLike, axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None) -> Any: ...
@overload
def fliplr(m: DistArray) -> DistArray: ...
@overload
def fliplr(m: NDArray[Any]) -> NDArray[Any]: ...
@overload
def fliplr(m: ArrayLike) -> Any: ...
@overload
def flipud(m: DistArray) -> DistArray: ...
@overload
def flipud(m: NDArray[Any]) -> NDArray[Any]: ...
@overload
def flipud(m: ArrayLike) -> Any: ...
from numpy import float128 as float128
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
float_power: _Ufunc2To1
from numpy import floating as floating
floor: _Ufunc1To1
floor_divide: _Ufunc2To1
fmax: _Ufunc2To1
fmin: _Ufunc2To1
fmod: _Ufunc2To1
from numpy import format_float_positional as format_float_positional
from numpy import format_float_scientific as format_float_scientific
frexp: _Ufunc1To2
from numpy_dist.interop.lazy_arrays import from_dask as from_dask
def from_dlpack(x: Any, /, *, device: Literal['cpu'] | None = None, copy: _bool | None = None) -> DistArray: ...
def from_local(block: object, axis: SupportsIndex = 0) -> DistArray: ...
from numpy_dist.interop.lazy_arrays import from_xarray as from_xarray
def frombuffer(buffer: ArrayLike, dtype: DTypeLike | None = None, count: SupportsIndex = -1, offset: SupportsIndex = 0, *, like: Any = None) -> DistArray: ...
def fromfile(file: str | os.PathLike[str] | IO[bytes], dtype: DTypeLike | None = None, count: SupportsIndex = -1, sep: str = '', offset: SupportsIndex = 0, *, like: Any = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
def fromfunction(function: Callable[..., _T], shape: Sequence[SupportsIndex], *, dtype: DTypeLike | None = ..., like: Any = None, **kwargs: object) -> _T: ...
def fromiter(iter: Iterable[Any], dtype: DTypeLike | None, count: SupportsIndex = -1, *, like: Any = None) -> DistArray: ...
from numpy import frompyfunc as frompyfunc
def fromregex(file: Any, regexp: Any, dtype: DTypeLike | None, encoding: str | None = None) -> DistArray: ...

def fromstring(
    string: str | bytes, dtype: DTypeLike | None = ..., count: SupportsIndex = -1, *, sep: str, like: Any = None
) -> DistArray: ...
def full(shape: SupportsIndex | Sequence[SupportsIndex], fill_value: object, dtype: DTypeLike | None = None, order: Literal['C', 'F'] | None = 'C', *, device: Literal['cpu'] | None = None, like: Any = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
def full_like(a: object, fill_value: Any, dtype: DTypeLike | None = None, order: Literal['K', 'A', 'C', 'F'] | None = 'K', subok: _bool = True, shape: SupportsIndex | Sequence[SupportsIndex] | None = None, *, device: Literal['cpu'] | None = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
gcd: _Ufunc2To1
from numpy import generic as generic
def genfromtxt(fname: Any, dtype: DTypeLike | None = ..., comments: str = '#', delimiter: Iterable[SupportsIndex] | SupportsIndex | str | None = None, skip_header: SupportsIndex = 0, skip_footer: SupportsIndex = 0, converters: Any = None, missing_values: Any = None, filling_values: Any = None, usecols: Sequence[SupportsIndex] | None = None, names: Collection[str] | Literal[True] | str | None = None, excludelist: Sequence[str] | None = None, deletechars: str = ..., replace_space: str = '_', autostrip: _bool = False, case_sensitive: Literal['upper', 'lower'] | _bool = True, defaultfmt: str = 'f%i', unpack: _bool | None = None, usemask: _bool = False, loose: _bool = True, invalid_raise: _bool = True, max_rows: SupportsIndex | None = None, encoding: str | None = None, *, ndmin: Literal[0, 1, 2] = 0, like: Any = None) -> Any: ...
def geomspace(start: object, stop: object, num: SupportsIndex = 50, endpoint: object = True, dtype: DTypeLike | None = None, axis: SupportsIndex = 0, *, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
from numpy import get_include as get_include
from numpy import get_printoptions as get_printoptions
from numpy import getbufsize as getbufsize
from numpy import geterr as geterr
from numpy import geterrcall as geterrcall
def gradient(f: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]], *varargs: ArrayLike, axis: Shape | None = None, edge_order: Literal[1, 2] = 1) -> Any: ...
greater: _Ufunc2To1
greater_equal: _Ufunc2To1
from numpy import half as half
def hamming(M: ArrayLike) -> DistArray: ...
def hanning(M: ArrayLike) -> DistArray: ...
heaviside: _Ufunc2To1
@overload
def histogram(a: DistArray, bins: ArrayLike | Literal['stone', 'auto', 'doane', 'fd', 'rice', 'scott', 'sqrt', 'sturges'] = 10, range: tuple[float, float] | None = None, density: _bool | None = None, weights: ArrayLike | None = None) -> tuple[DistArray, DistArray]: ...
@overload
def histogram(a: NDArray[Any], bins: ArrayLike | Literal['stone', 'auto', 'doane', 'fd', 'rice', 'scott', 'sqrt', 'sturges'] = 10, range: tuple[float, float] | None = None, density: _bool | None = None, weights: ArrayLike | None = None) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def histogram(a: ArrayLike, bins: ArrayLike | Literal['stone', 'auto', 'doane', 'fd', 'rice', 'scott', 'sqrt', 'sturges'] = 10, range: tuple[float, float] | None = None, density: _bool | None = None, weights: ArrayLike | None = None) -> Any: ...
from numpy import histogram2d as histogram2d
@overload
def histogram_bin_edges(a: DistArray, bins: ArrayLike | Literal['stone', 'auto', 'doane', 'fd', 'rice', 'scott', 'sqrt', 'sturges'] = 10, range: tuple[float, float] | None = None, weights: ArrayLike | None = None) -> DistArray: ...
@overload
def histogram_bin_edges(a: NDArray[Any], bins: ArrayLike | Literal['stone', 'auto', 'doane', 'fd', 'rice', 'scott', 'sqrt', 'sturges'] = 10, range: tuple[float, float] | None = None, weights: ArrayLike | None = None) -> NDArray[Any]: ...
@overload
def histogram_bin_edges(a: ArrayLike, bins: ArrayLike | Literal['stone', 'auto', 'doane', 'fd', 'rice', 'scott', 'sqrt', 'sturges'] = 10, range: tuple[float, float] | None = None, weights: ArrayLike | None = None) -> Any: ...
@overload
def histogramdd(sample: DistArray, bins: ArrayLike = 10, range: Sequence[tuple[float, float]] | None = None, density: _bool | None = None, weights: ArrayLike | None = None) -> tuple[DistArray, tuple[DistArray, ...]]: ...
@overload
def histogramdd(sample: NDArray[Any], bins: ArrayLike = 10, range: Sequence[tuple[float, float]] | None = None, density: _bool | None = None, weights: ArrayLike | None = None) -> tuple[NDArray[Any], tuple[NDArray[Any], ...]]: ...
@overload
def histogramdd(sample: ArrayLike, bins: ArrayLike = 10, range: Sequence[tuple[float, float]] | None = None, density: _bool | None = None, weights: ArrayLike | None = None) -> Any: ...
@overload
def hsplit(ary: DistArray, indices_or_sections: Shape) -> list[DistArray]: ...
@overload
def hsplit(ary: NDArray[Any], indices_or_sections: Shape) -> list[NDArray[Any]]: ...
@overload
def hsplit(ary: ArrayLike, indices_or_sections: Shape) -> Any: ...
@overload
def hstack(tup: Sequence[DistArray], *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> DistArray: ...
@overload
def hstack(tup: Sequence[NDArray[Any]], *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> NDArray[Any]: ...
@overload
def hstack(tup: Sequence[ArrayLike], *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> Any: ...
hypot: _Ufunc2To1
@overload
def i0(x: DistArray) -> DistArray: ...
@overload
def i0(x: NDArray[Any]) -> NDArray[Any]: ...
@overload
def i0(x: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]]) -> Any: ...
def identity(n: SupportsIndex, dtype: DTypeLike | None = None, *, like: Any = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
from numpy import iinfo as iinfo
@overload
def imag(val: DistArray) -> DistArray: ...
@overload
def imag(val: NDArray[Any]) -> NDArray[Any]: ...
@overload
def imag(val: ArrayLike) -> Any: ...
from numpy_dist.dispatch.core.overrides import implements as implements
from numpy import index_exp as index_exp

@overload
def indices(
    dimensions: Iterable[SupportsIndex], dtype: DTypeLike | None = ..., sparse: Literal[False] = False, *, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None
) -> DistArray: ...
@overload
def indices(
    dimensions: Iterable[SupportsIndex], dtype: DTypeLike | None = ..., *, sparse: Literal[True], split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None
) -> tuple[DistArray, ...]: ...
from numpy import inexact as inexact
from numpy import inf as inf
from numpy import info as info
def inner(a: ArrayLike, b: ArrayLike, /) -> Any: ...
@overload
def insert(arr: DistArray, obj: ArrayLike, values: ArrayLike, axis: SupportsIndex | None = None) -> DistArray: ...
@overload
def insert(arr: ArrayLike, obj: DistArray, values: ArrayLike, axis: SupportsIndex | None = None) -> DistArray: ...
@overload
def insert(arr: ArrayLike, obj: ArrayLike, values: DistArray, axis: SupportsIndex | None = None) -> DistArray: ...
@overload
def insert(arr: NDArray[Any], obj: ArrayLike, values: ArrayLike, axis: SupportsIndex | None = None) -> NDArray[Any]: ...
@overload
def insert(arr: ArrayLike, obj: ArrayLike, values: ArrayLike, axis: SupportsIndex | None = None) -> Any: ...
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import int8 as int8
from numpy import int_ as int_
from numpy import intc as intc
from numpy import integer as integer
@overload
def interp(x: DistArray, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | None = None, right: ArrayLike | None = None, period: ArrayLike | None = None) -> DistArray: ...
@overload
def interp(x: ArrayLike | Sequence[Any], xp: ArrayLike, fp: ArrayLike, left: ArrayLike | None = None, right: ArrayLike | None = None, period: ArrayLike | None = None) -> Any: ...
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: _bool = False, return_indices: _bool = False) -> Any: ...
from numpy import intp as intp
invert: _Ufunc1To1
@overload
def is_busday(dates: DistArray, weekmask: ArrayLike = '1111100', holidays: ArrayLike | None = None, busdaycal: Any = None, out: _Array | None = None) -> DistArray: ...
@overload
def is_busday(dates: NDArray[Any], weekmask: ArrayLike = '1111100', holidays: ArrayLike | None = None, busdaycal: Any = None, out: _Array | None = None) -> NDArray[Any]: ...
@overload
def is_busday(dates: ArrayLike, weekmask: ArrayLike = '1111100', holidays: ArrayLike | None = None, busdaycal: Any = None, out: _Array | None = None) -> Any: ...
@overload
def isclose(a: DistArray | Sequence[DistArray], b: ArrayLike | Sequence[ArrayLike] | Sequence[Sequence[ArrayLike]], rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: _bool = False) -> DistArray: ...
@overload
def isclose(a: ArrayLike | Sequence[ArrayLike] | Sequence[Sequence[ArrayLike]], b: DistArray | Sequence[DistArray], rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: _bool = False) -> DistArray: ...
@overload
def isclose(a: NDArray[Any] | Sequence[NDArray[Any]], b: ArrayLike | Sequence[ArrayLike] | Sequence[Sequence[ArrayLike]], rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: _bool = False) -> NDArray[Any]: ...
@overload
def isclose(a: ArrayLike | Sequence[ArrayLike] | Sequence[Sequence[ArrayLike]], b: ArrayLike | Sequence[ArrayLike] | Sequence[Sequence[ArrayLike]], rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: _bool = False) -> Any: ...
def iscomplex(x: ArrayLike) -> Any: ...
from numpy import iscomplexobj as iscomplexobj
from numpy import isdtype as isdtype
isfinite: _Ufunc1To1
def isfortran(a: ArrayLike) -> _bool: ...
@overload
def isin(element: DistArray, test_elements: ArrayLike, assume_unique: _bool = False, invert: _bool = False, *, kind: Literal['sort', 'table'] | None = None) -> DistArray: ...
@overload
def isin(element: ArrayLike, test_elements: DistArray, assume_unique: _bool = False, invert: _bool = False, *, kind: Literal['sort', 'table'] | None = None) -> DistArray: ...
@overload
def isin(element: NDArray[Any], test_elements: ArrayLike, assume_unique: _bool = False, invert: _bool = False, *, kind: Literal['sort', 'table'] | None = None) -> NDArray[Any]: ...
@overload
def isin(element: ArrayLike, test_elements: ArrayLike, assume_unique: _bool = False, invert: _bool = False, *, kind: Literal['sort', 'table'] | None = None) -> Any: ...
isinf: _Ufunc1To1
isnan: _Ufunc1To1
isnat: _Ufunc1To1
@overload
def isneginf(x: DistArray, out: _Array | None = None) -> DistArray: ...
@overload
def isneginf(x: NDArray[Any], out: _Array | None = None) -> NDArray[Any]: ...
@overload
def isneginf(x: ArrayLike, out: _Array | None = None) -> Any: ...
@overload
def isposinf(x: DistArray, out: _Array | None = None) -> DistArray: ...
@overload
def isposinf(x: NDArray[Any], out: _Array | None = None) -> NDArray[Any]: ...
@overload
def isposinf(x: ArrayLike, out: _Array | None = None) -> Any: ...
def isreal(x: ArrayLike) -> Any: ...
from numpy import isrealobj as isrealobj
from numpy import isscalar as isscalar
from numpy import issubdtype as issubdtype
from numpy import iterable as iterable
from numpy import ix_ as ix_
def kaiser(M: ArrayLike, beta: ArrayLike) -> DistArray: ...
@overload
def kron(a: DistArray, b: ArrayLike) -> DistArray: ...
@overload
def kron(a: ArrayLike, b: DistArray) -> DistArray: ...
@overload
def kron(a: NDArray[Any], b: ArrayLike) -> NDArray[Any]: ...
@overload
def kron(a: ArrayLike, b: ArrayLike) -> Any: ...
lcm: _Ufunc2To1
ldexp: _Ufunc2To1
left_shift: _Ufunc2To1
less: _Ufunc2To1
less_equal: _Ufunc2To1
@overload
def lexsort(keys: DistArray, axis: SupportsIndex = -1) -> DistArray: ...
@overload
def lexsort(keys: NDArray[Any], axis: SupportsIndex = -1) -> NDArray[Any]: ...
@overload
def lexsort(keys: ArrayLike, axis: SupportsIndex = -1) -> Any: ...

@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: SupportsIndex = 50, endpoint: _bool = True, retstep: Literal[False] = False,
    dtype: DTypeLike | None = None, axis: SupportsIndex = 0, *, device: Literal["cpu"] | None = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None
) -> DistArray: ...
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: SupportsIndex = 50, endpoint: _bool = True, *, retstep: Literal[True],
    dtype: DTypeLike | None = None, axis: SupportsIndex = 0, device: Literal["cpu"] | None = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None
) -> tuple[DistArray, Any]: ...
from numpy import little_endian as little_endian
def load(file: Any, mmap_mode: Literal['r+', 'r', 'w+', 'c'] | None = None, allow_pickle: _bool = False, fix_imports: _bool = True, encoding: Literal['ASCII', 'latin1', 'bytes'] = 'ASCII', *, max_header_size: SupportsIndex = 10000) -> Any: ...
def loadtxt(fname: object, dtype: DTypeLike | None = ..., comments: object = '#', delimiter: str | None = None, converters: object = None, skiprows: SupportsIndex = 0, usecols: object = None, unpack: _bool = False, ndmin: Literal[0, 1, 2] = 0, encoding: str | None = None, max_rows: SupportsIndex | None = None, *, quotechar: str | None = None, like: Any = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
log: _Ufunc1To1
log10: _Ufunc1To1
log1p: _Ufunc1To1
log2: _Ufunc1To1
logaddexp: _Ufunc2To1
logaddexp2: _Ufunc2To1
logical_and: _Ufunc2To1
logical_not: _Ufunc1To1
logical_or: _Ufunc2To1
logical_xor: _Ufunc2To1
def logspace(start: ArrayLike, stop: ArrayLike, num: SupportsIndex = 50, endpoint: object = True, base: ArrayLike = 10.0, dtype: DTypeLike | None = None, axis: SupportsIndex = 0, *, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
from numpy import long as long
from numpy import longdouble as longdouble
from numpy import longlong as longlong
from numpy_dist.authoring import map_blocks as map_blocks
from numpy_dist.authoring import map_overlap as map_overlap
def mask_indices(n: SupportsIndex, mask_func: Callable[..., Any], k: Any = 0) -> tuple[DistArray, ...]: ...
matmul: _Ufunc2To1
from numpy import matrix as matrix
@overload
def matrix_transpose(x: DistArray, /) -> DistArray: ...
@overload
def matrix_transpose(x: NDArray[Any], /) -> NDArray[Any]: ...
@overload
def matrix_transpose(x: ArrayLike, /) -> Any: ...
matvec: _Ufunc2To1
@overload
def max(a: DistArray, axis: Shape, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def max(a: DistArray, axis: Shape | None = None, out: _Array | None = None, *, keepdims: Literal[True], initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def max(a: ArrayLike, axis: Shape | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> Any: ...
maximum: _Ufunc2To1
from numpy import may_share_memory as may_share_memory
@overload
def mean(a: DistArray, axis: Shape, dtype: DTypeLike | None = None, out: _Array | None = None, keepdims: _bool = ..., *, where: ArrayLike = ...) -> DistArray: ...
@overload
def mean(a: DistArray, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, *, keepdims: Literal[True], where: ArrayLike = ...) -> DistArray: ...
@overload
def mean(a: ArrayLike, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, keepdims: _bool = ..., *, where: ArrayLike = ...) -> Any: ...
@overload
def median(a: DistArray, axis: Shape, out: _Array | None = None, overwrite_input: _bool = False, keepdims: _bool = False) -> DistArray: ...
@overload
def median(a: DistArray, axis: Shape | None = None, out: _Array | None = None, overwrite_input: _bool = False, *, keepdims: Literal[True]) -> DistArray: ...
@overload
def median(a: ArrayLike | list[Any], axis: Shape | None = None, out: _Array | None = None, overwrite_input: _bool = False, keepdims: _bool = False) -> Any: ...
from numpy_dist.files.memory_maps import memmap as memmap

def meshgrid(
    *xi: ArrayLike, copy: _bool = True, sparse: _bool = False, indexing: Literal["xy", "ij"] = "xy"
) -> tuple[DistArray, ...]: ...
mgrid: _MeshGrid
@overload
def min(a: DistArray, axis: Shape, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def min(a: DistArray, axis: Shape | None = None, out: _Array | None = None, *, keepdims: Literal[True], initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def min(a: ArrayLike, axis: Shape | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> Any: ...
from numpy import min_scalar_type as min_scalar_type
minimum: _Ufunc2To1
from numpy import mintypecode as mintypecode
mod: _Ufunc2To1
modf: _Ufunc1To2
@overload
def moveaxis(a: DistArray, source: Shape, destination: Shape) -> DistArray: ...
@overload
def moveaxis(a: NDArray[Any], source: Shape, destination: Shape) -> NDArray[Any]: ...
@overload
def moveaxis(a: _Array, source: Shape, destination: Shape) -> Any: ...
multiply: _Ufunc2To1
from numpy import nan as nan
@overload
def nan_to_num(x: DistArray, copy: _bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> DistArray: ...
@overload
def nan_to_num(x: NDArray[Any], copy: _bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> NDArray[Any]: ...
@overload
def nan_to_num(x: ArrayLike, copy: _bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any: ...
@overload
def nanargmax(a: DistArray, axis: SupportsIndex, out: _Array | None = None, *, keepdims: _bool = ...) -> DistArray: ...
@overload
def nanargmax(a: DistArray, axis: SupportsIndex | None = None, out: _Array | None = None, *, keepdims: Literal[True]) -> DistArray: ...
@overload
def nanargmax(a: ArrayLike, axis: SupportsIndex | None = None, out: _Array | None = None, *, keepdims: _bool = ...) -> Any: ...
@overload
def nanargmin(a: DistArray, axis: SupportsIndex, out: _Array | None = None, *, keepdims: _bool = ...) -> DistArray: ...
@overload
def nanargmin(a: DistArray, axis: SupportsIndex | None = None, out: _Array | None = None, *, keepdims: Literal[True]) -> DistArray: ...
@overload
def nanargmin(a: ArrayLike, axis: SupportsIndex | None = None, out: _Array | None = None, *, keepdims: _bool = ...) -> Any: ...
@overload
def nancumprod(a: DistArray, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None) -> DistArray: ...
@overload
def nancumprod(a: NDArray[Any], axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None) -> NDArray[Any]: ...
@overload
def nancumprod(a: ArrayLike, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None) -> Any: ...
@overload
def nancumsum(a: DistArray, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None) -> DistArray: ...
@overload
def nancumsum(a: NDArray[Any], axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None) -> NDArray[Any]: ...
@overload
def nancumsum(a: ArrayLike, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: _Array | None = None) -> Any: ...
@overload
def nanmax(a: DistArray, axis: Shape, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def nanmax(a: DistArray, axis: Shape | None = None, out: _Array | None = None, *, keepdims: Literal[True], initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def nanmax(a: ArrayLike, axis: Shape | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> Any: ...
@overload
def nanmean(a: DistArray, axis: Shape, dtype: DTypeLike | None = None, out: _Array | None = None, keepdims: _bool = ..., *, where: ArrayLike = ...) -> DistArray: ...
@overload
def nanmean(a: DistArray, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, *, keepdims: Literal[True], where: ArrayLike = ...) -> DistArray: ...
@overload
def nanmean(a: ArrayLike, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, keepdims: _bool = ..., *, where: ArrayLike = ...) -> Any: ...
@overload
def nanmedian(a: DistArray, axis: Shape, out: _Array | None = None, overwrite_input: _bool = False, keepdims: _bool = ...) -> DistArray: ...
@overload
def nanmedian(a: DistArray, axis: Shape | None = None, out: _Array | None = None, overwrite_input: _bool = False, *, keepdims: Literal[True]) -> DistArray: ...
@overload
def nanmedian(a: ArrayLike | list[Any], axis: Shape | None = None, out: _Array | None = None, overwrite_input: _bool = False, keepdims: _bool = ...) -> Any: ...
@overload
def nanmin(a: DistArray, axis: Shape, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def nanmin(a: DistArray, axis: Shape | None = None, out: _Array | None = None, *, keepdims: Literal[True], initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def nanmin(a: ArrayLike, axis: Shape | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> Any: ...
@overload
def nanpercentile(a: ArrayLike | list[Any], q: DistArray, axis: Shape | None = None, out: _Array | None = None, overwrite_input: _bool = False, method: Any = 'linear', keepdims: _bool = ..., *, weights: ArrayLike | None = None) -> DistArray: ...
@overload
def nanpercentile(a: ArrayLike | list[Any], q: ArrayLike, axis: Shape | None = None, out: _Array | None = None, overwrite_input: _bool = False, method: Any = 'linear', keepdims: _bool = ..., *, weights: ArrayLike | None = None) -> Any: ...
@overload
def nanprod(a: DistArray, axis: Shape, dtype: DTypeLike | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def nanprod(a: DistArray, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, *, keepdims: Literal[True], initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def nanprod(a: ArrayLike, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> Any: ...
@overload
def nanquantile(a: ArrayLike | list[Any], q: DistArray, axis: Shape | None = None, out: _Array | None = None, overwrite_input: _bool = False, method: Any = 'linear', keepdims: _bool = ..., *, weights: ArrayLike | None = None) -> DistArray: ...
@overload
def nanquantile(a: ArrayLike | list[Any], q: ArrayLike, axis: Shape | None = None, out: _Array | None = None, overwrite_input: _bool = False, method: Any = 'linear', keepdims: _bool = ..., *, weights: ArrayLike | None = None) -> Any: ...
@overload
def nanstd(a: DistArray, axis: Shape, dtype: DTypeLike | None = None, out: _Array | None = None, ddof: float = 0, keepdims: _bool = ..., *, where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ...) -> DistArray: ...
@overload
def nanstd(a: DistArray, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, ddof: float = 0, *, keepdims: Literal[True], where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ...) -> DistArray: ...
@overload
def nanstd(a: ArrayLike, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, ddof: float = 0, keepdims: _bool = ..., *, where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ...) -> Any: ...
@overload
def nansum(a: DistArray, axis: Shape, dtype: DTypeLike | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def nansum(a: DistArray, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, *, keepdims: Literal[True], initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def nansum(a: ArrayLike, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> Any: ...
@overload
def nanvar(a: DistArray, axis: Shape, dtype: DTypeLike | None = None, out: _Array | None = None, ddof: float = 0, keepdims: _bool = ..., *, where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ...) -> DistArray: ...
@overload
def nanvar(a: DistArray, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, ddof: float = 0, *, keepdims: Literal[True], where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ...) -> DistArray: ...
@overload
def nanvar(a: ArrayLike, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, ddof: float = 0, keepdims: _bool = ..., *, where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ...) -> Any: ...
from numpy_dist.ir.array_type import ndarray as ndarray
from numpy import ndenumerate as ndenumerate
from numpy import ndim as ndim
from numpy import ndindex as ndindex
from numpy import nditer as nditer
negative: _Ufunc1To1
from numpy import nested_iters as nested_iters
from numpy import newaxis as newaxis
nextafter: _Ufunc2To1
@overload
def nonzero(a: DistArray) -> tuple[DistArray, ...]: ...
@overload
def nonzero(a: NDArray[Any]) -> tuple[NDArray[Any], ...]: ...
@overload
def nonzero(a: ArrayLike) -> Any: ...
not_equal: _Ufunc2To1
from numpy import number as number
from numpy import object_ as object_
ogrid: _OpenGrid
from numpy_dist.comm.detect import on_rank_zero as on_rank_zero
def ones(shape: SupportsIndex | Sequence[SupportsIndex], dtype: DTypeLike | None = None, order: Literal['C', 'F'] | None = 'C', *, device: Literal['cpu'] | None = None, like: Any = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
def ones_like(a: object, dtype: DTypeLike | None = None, order: Literal['K', 'A', 'C', 'F'] | None = 'K', subok: _bool = True, shape: SupportsIndex | Sequence[SupportsIndex] | None = None, *, device: Literal['cpu'] | None = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...

def open(path: str | os.PathLike[str]) -> Any: ...
@overload
def outer(a: DistArray, b: ArrayLike, out: _Array | None = None) -> DistArray: ...
@overload
def outer(a: ArrayLike, b: DistArray, out: _Array | None = None) -> DistArray: ...
@overload
def outer(a: NDArray[Any], b: ArrayLike, out: _Array | None = None) -> NDArray[Any]: ...
@overload
def outer(a: ArrayLike, b: ArrayLike, out: _Array | None = None) -> Any: ...
from numpy_dist.dispatch.core.overrides import overrides as overrides
from numpy_dist.dispatch.core.overrides import overriding as overriding
@overload
def packbits(a: DistArray, /, axis: SupportsIndex | None = None, bitorder: Literal['big', 'little'] = 'big') -> DistArray: ...
@overload
def packbits(a: NDArray[Any], /, axis: SupportsIndex | None = None, bitorder: Literal['big', 'little'] = 'big') -> NDArray[Any]: ...
@overload
def packbits(a: ArrayLike, /, axis: SupportsIndex | None = None, bitorder: Literal['big', 'little'] = 'big') -> Any: ...
@overload
def pad(array: DistArray, pad_width: ArrayLike, mode: Any = 'constant', **kwargs: Any) -> DistArray: ...
@overload
def pad(array: ArrayLike, pad_width: DistArray, mode: Any = 'constant', **kwargs: Any) -> DistArray: ...
@overload
def pad(array: NDArray[Any], pad_width: ArrayLike, mode: Any = 'constant', **kwargs: Any) -> NDArray[Any]: ...
@overload
def pad(array: ArrayLike, pad_width: ArrayLike, mode: Any = 'constant', **kwargs: Any) -> Any: ...
@overload
def partition(a: DistArray, kth: ArrayLike, axis: SupportsIndex | None = -1, kind: Literal['introselect'] = 'introselect', order: Sequence[str] | str | None = None) -> DistArray: ...
@overload
def partition(a: ArrayLike, kth: DistArray, axis: SupportsIndex | None = -1, kind: Literal['introselect'] = 'introselect', order: Sequence[str] | str | None = None) -> DistArray: ...
@overload
def partition(a: NDArray[Any], kth: ArrayLike, axis: SupportsIndex | None = -1, kind: Literal['introselect'] = 'introselect', order: Sequence[str] | str | None = None) -> NDArray[Any]: ...
@overload
def partition(a: ArrayLike, kth: ArrayLike, axis: SupportsIndex | None = -1, kind: Literal['introselect'] = 'introselect', order: Sequence[str] | str | None = None) -> Any: ...
@overload
def percentile(a: ArrayLike | list[Any], q: DistArray, axis: Shape | None = None, out: _Array | None = None, overwrite_input: _bool = False, method: Any = 'linear', keepdims: _bool = False, *, weights: ArrayLike | None = None) -> DistArray: ...
@overload
def percentile(a: ArrayLike | list[Any], q: ArrayLike, axis: Shape | None = None, out: _Array | None = None, overwrite_input: _bool = False, method: Any = 'linear', keepdims: _bool = False, *, weights: ArrayLike | None = None) -> Any: ...
@overload
def permute_dims(a: DistArray, axes: Shape | None = None) -> DistArray: ...
@overload
def permute_dims(a: NDArray[Any], axes: Shape | None = None) -> NDArray[Any]: ...
@overload
def permute_dims(a: ArrayLike, axes: Shape | None = None) -> Any: ...
from numpy import pi as pi
@overload
def piecewise(x: DistArray, condlist: ArrayLike, funclist: Any, *args: Any, **kw: Any) -> DistArray: ...
@overload
def piecewise(x: ArrayLike, condlist: DistArray, funclist: Any, *args: Any, **kw: Any) -> DistArray: ...
@overload
def piecewise(x: NDArray[Any], condlist: ArrayLike, funclist: Any, *args: Any, **kw: Any) -> NDArray[Any]: ...
@overload
def piecewise(x: ArrayLike, condlist: ArrayLike, funclist: Any, *args: Any, **kw: Any) -> Any: ...
def place(arr: _Array, mask: Any, vals: ArrayLike) -> None: ...
from numpy_dist.dispatch.core.plugins import plugins as plugins
@overload
def poly(seq_of_zeros: DistArray) -> DistArray: ...
@overload
def poly(seq_of_zeros: NDArray[Any]) -> NDArray[Any]: ...
@overload
def poly(seq_of_zeros: ArrayLike) -> Any: ...
from numpy import poly1d as poly1d
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Any: ...
@overload
def polyder(p: DistArray, m: SupportsIndex = 1) -> DistArray: ...
@overload
def polyder(p: NDArray[Any], m: SupportsIndex = 1) -> NDArray[Any]: ...
@overload
def polyder(p: ArrayLike, m: SupportsIndex = 1) -> Any: ...
from numpy import polydiv as polydiv
def polyfit(x: ArrayLike, y: ArrayLike, deg: SupportsIndex, rcond: float | None = None, full: _bool = False, w: ArrayLike | None = None, cov: Literal['unscaled'] | Literal[True, 'unscaled'] | _bool = False) -> Any: ...
@overload
def polyint(p: DistArray, m: SupportsIndex = 1, k: ArrayLike | None = None) -> DistArray: ...
@overload
def polyint(p: NDArray[Any], m: SupportsIndex = 1, k: ArrayLike | None = None) -> NDArray[Any]: ...
@overload
def polyint(p: ArrayLike, m: SupportsIndex = 1, k: ArrayLike | None = None) -> Any: ...
def polymul(a1: ArrayLike, a2: ArrayLike) -> Any: ...
def polysub(a1: ArrayLike, a2: ArrayLike) -> Any: ...
@overload
def polyval(p: DistArray, x: ArrayLike) -> DistArray: ...
@overload
def polyval(p: ArrayLike, x: DistArray) -> DistArray: ...
@overload
def polyval(p: NDArray[Any], x: ArrayLike) -> NDArray[Any]: ...
@overload
def polyval(p: ArrayLike, x: ArrayLike) -> Any: ...
positive: _Ufunc1To1
pow: _Ufunc2To1
power: _Ufunc2To1
from numpy import printoptions as printoptions
@overload
def prod(a: DistArray, axis: Shape, dtype: DTypeLike | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def prod(a: DistArray, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, *, keepdims: Literal[True], initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def prod(a: ArrayLike, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> Any: ...
from numpy_dist.profiling.session import profile as profile
from numpy_dist.progress_bars import progress as progress
from numpy import promote_types as promote_types
@overload
def ptp(a: DistArray, axis: Shape, out: _Array | None = None, keepdims: _bool = ...) -> DistArray: ...
@overload
def ptp(a: DistArray, axis: Shape | None = None, out: _Array | None = None, *, keepdims: Literal[True]) -> DistArray: ...
@overload
def ptp(a: ArrayLike, axis: Shape | None = None, out: _Array | None = None, keepdims: _bool = ...) -> Any: ...
def put(a: _Array, ind: ArrayLike, v: ArrayLike, mode: Literal['raise', 'wrap', 'clip'] = 'raise') -> None: ...
def put_along_axis(arr: _Array, indices: _Array, values: ArrayLike, axis: SupportsIndex | None) -> None: ...
def putmask(a: _Array, /, mask: ArrayLike, values: ArrayLike) -> None: ...
@overload
def quantile(a: ArrayLike | list[Any], q: DistArray, axis: Shape | None = None, out: _Array | None = None, overwrite_input: _bool = False, method: Any = 'linear', keepdims: _bool = False, *, weights: ArrayLike | None = None) -> DistArray: ...
@overload
def quantile(a: ArrayLike | list[Any], q: ArrayLike, axis: Shape | None = None, out: _Array | None = None, overwrite_input: _bool = False, method: Any = 'linear', keepdims: _bool = False, *, weights: ArrayLike | None = None) -> Any: ...
r_: _Concatenator
rad2deg: _Ufunc1To1
radians: _Ufunc1To1
@overload
def ravel(a: DistArray, order: Literal['K', 'A', 'C', 'F'] = 'C') -> DistArray: ...
@overload
def ravel(a: NDArray[Any], order: Literal['K', 'A', 'C', 'F'] = 'C') -> NDArray[Any]: ...
@overload
def ravel(a: ArrayLike, order: Literal['K', 'A', 'C', 'F'] = 'C') -> Any: ...
@overload
def ravel_multi_index(multi_index: Sequence[DistArray], dims: Shape, mode: Literal['raise', 'wrap', 'clip'] | tuple[Literal['raise', 'wrap', 'clip'], ...] = 'raise', order: Literal['C', 'F'] = 'C') -> DistArray: ...
@overload
def ravel_multi_index(multi_index: Sequence[NDArray[Any]], dims: Shape, mode: Literal['raise', 'wrap', 'clip'] | tuple[Literal['raise', 'wrap', 'clip'], ...] = 'raise', order: Literal['C', 'F'] = 'C') -> NDArray[Any]: ...
@overload
def ravel_multi_index(multi_index: Sequence[ArrayLike] | Sequence[ArrayLike], dims: Shape, mode: Literal['raise', 'wrap', 'clip'] | tuple[Literal['raise', 'wrap', 'clip'], ...] = 'raise', order: Literal['C', 'F'] = 'C') -> Any: ...
@overload
def real(val: DistArray) -> DistArray: ...
@overload
def real(val: NDArray[Any]) -> NDArray[Any]: ...
@overload
def real(val: ArrayLike) -> Any: ...
@overload
def real_if_close(a: DistArray, tol: float = 100) -> DistArray: ...
@overload
def real_if_close(a: NDArray[Any], tol: float = 100) -> NDArray[Any]: ...
@overload
def real_if_close(a: ArrayLike, tol: float = 100) -> Any: ...
from numpy_dist.rebalancing import rebalance as rebalance
from numpy import recarray as recarray
reciprocal: _Ufunc1To1
from numpy import record as record
from numpy_dist.authoring import reduction as reduction
remainder: _Ufunc2To1
@overload
def repeat(a: DistArray, repeats: ArrayLike, axis: SupportsIndex | None = None) -> DistArray: ...
@overload
def repeat(a: ArrayLike, repeats: DistArray, axis: SupportsIndex | None = None) -> DistArray: ...
@overload
def repeat(a: NDArray[Any], repeats: ArrayLike, axis: SupportsIndex | None = None) -> NDArray[Any]: ...
@overload
def repeat(a: ArrayLike, repeats: ArrayLike, axis: SupportsIndex | None = None) -> Any: ...
from numpy_dist.dispatch.core.report import report as report
def require(a: object, dtype: DTypeLike | None = None, requirements: str | Iterable[str] | None = None, *, like: Any = None) -> DistArray: ...
@overload
def reshape(a: DistArray, /, shape: Any, order: Literal['A', 'C', 'F'] = 'C', *, copy: _bool | None = None) -> DistArray: ...
@overload
def reshape(a: NDArray[Any], /, shape: Any, order: Literal['A', 'C', 'F'] = 'C', *, copy: _bool | None = None) -> NDArray[Any]: ...
@overload
def reshape(a: ArrayLike, /, shape: Any, order: Literal['A', 'C', 'F'] = 'C', *, copy: _bool | None = None) -> Any: ...
@overload
def resize(a: DistArray, new_shape: Any) -> DistArray: ...
@overload
def resize(a: NDArray[Any], new_shape: Any) -> NDArray[Any]: ...
@overload
def resize(a: ArrayLike, new_shape: Any) -> Any: ...
from numpy import result_type as result_type
right_shift: _Ufunc2To1
rint: _Ufunc1To1
@overload
def roll(a: DistArray, shift: Shape, axis: Shape | None = None) -> DistArray: ...
@overload
def roll(a: NDArray[Any], shift: Shape, axis: Shape | None = None) -> NDArray[Any]: ...
@overload
def roll(a: ArrayLike, shift: Shape, axis: Shape | None = None) -> Any: ...
@overload
def rollaxis(a: DistArray, axis: SupportsIndex, start: SupportsIndex = 0) -> DistArray: ...
@overload
def rollaxis(a: NDArray[Any], axis: SupportsIndex, start: SupportsIndex = 0) -> NDArray[Any]: ...
@overload
def rollaxis(a: _Array, axis: SupportsIndex, start: SupportsIndex = 0) -> Any: ...
@overload
def roots(p: DistArray) -> DistArray: ...
@overload
def roots(p: NDArray[Any]) -> NDArray[Any]: ...
@overload
def roots(p: ArrayLike) -> Any: ...
@overload
def rot90(m: DistArray, k: SupportsIndex = 1, axes: tuple[SupportsIndex, SupportsIndex] = ...) -> DistArray: ...
@overload
def rot90(m: NDArray[Any], k: SupportsIndex = 1, axes: tuple[SupportsIndex, SupportsIndex] = ...) -> NDArray[Any]: ...
@overload
def rot90(m: ArrayLike, k: SupportsIndex = 1, axes: tuple[SupportsIndex, SupportsIndex] = ...) -> Any: ...
@overload
def round(a: DistArray, decimals: SupportsIndex = 0, out: _Array | None = None) -> DistArray: ...
@overload
def round(a: NDArray[Any], decimals: SupportsIndex = 0, out: _Array | None = None) -> NDArray[Any]: ...
@overload
def round(a: ArrayLike, decimals: SupportsIndex = 0, out: _Array | None = None) -> Any: ...
@overload
def row_stack(tup: Sequence[DistArray], *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> DistArray: ...
@overload
def row_stack(tup: Sequence[NDArray[Any]], *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> NDArray[Any]: ...
@overload
def row_stack(tup: Sequence[ArrayLike], *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> Any: ...
from numpy import s_ as s_
from numpy_dist.formats import save as save
from numpy import savetxt as savetxt
from numpy import savez as savez
from numpy import savez_compressed as savez_compressed
from numpy import sctypeDict as sctypeDict
@overload
def searchsorted(a: ArrayLike, v: DistArray, side: Literal['left', 'right'] = 'left', sorter: ArrayLike | None = None) -> DistArray: ...
@overload
def searchsorted(a: ArrayLike, v: ArrayLike, side: Literal['left', 'right'] = 'left', sorter: ArrayLike | None = None) -> Any: ...
@overload
def select(condlist: Any, choicelist: DistArray | Sequence[DistArray], default: ArrayLike = 0) -> DistArray: ...
@overload
def select(condlist: Any, choicelist: NDArray[Any] | Sequence[NDArray[Any]], default: ArrayLike = 0) -> NDArray[Any]: ...
@overload
def select(condlist: Any, choicelist: _Array | Sequence[_Array] | Sequence[ArrayLike], default: ArrayLike = 0) -> Any: ...
from numpy import set_printoptions as set_printoptions
from numpy import setbufsize as setbufsize
@overload
def setdiff1d(ar1: DistArray, ar2: ArrayLike, assume_unique: _bool = False) -> DistArray: ...
@overload
def setdiff1d(ar1: ArrayLike, ar2: DistArray, assume_unique: _bool = False) -> DistArray: ...
@overload
def setdiff1d(ar1: NDArray[Any], ar2: ArrayLike, assume_unique: _bool = False) -> NDArray[Any]: ...
@overload
def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: _bool = False) -> Any: ...
from numpy import seterr as seterr
from numpy import seterrcall as seterrcall
@overload
def setxor1d(ar1: DistArray, ar2: ArrayLike, assume_unique: _bool = False) -> DistArray: ...
@overload
def setxor1d(ar1: ArrayLike, ar2: DistArray, assume_unique: _bool = False) -> DistArray: ...
@overload
def setxor1d(ar1: NDArray[Any], ar2: ArrayLike, assume_unique: _bool = False) -> NDArray[Any]: ...
@overload
def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: _bool = False) -> Any: ...
def shape(a: ArrayLike | Sequence[Sequence[Any]] | Sequence[list[Any] | tuple[Any, ...]] | list[Any] | tuple[Any, ...]) -> Any: ...
from numpy import shares_memory as shares_memory
from numpy import short as short
from numpy import show_config as show_config
from numpy_dist.distarray.pictures import show_layout as show_layout
from numpy import show_runtime as show_runtime
sign: _Ufunc1To1
signbit: _Ufunc1To1
from numpy import signedinteger as signedinteger
sin: _Ufunc1To1
@overload
def sinc(x: DistArray) -> DistArray: ...
@overload
def sinc(x: NDArray[Any]) -> NDArray[Any]: ...
@overload
def sinc(x: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]]) -> Any: ...
from numpy import single as single
sinh: _Ufunc1To1
from numpy import size as size
@overload
def sort(a: DistArray, axis: SupportsIndex | None = -1, kind: Literal['Q', 'quick', 'quicksort', 'M', 'merge', 'mergesort', 'H', 'heap', 'heapsort', 'S', 'stable', 'stablesort'] | None = None, order: Sequence[str] | str | None = None, *, stable: _bool | None = None) -> DistArray: ...
@overload
def sort(a: NDArray[Any], axis: SupportsIndex | None = -1, kind: Literal['Q', 'quick', 'quicksort', 'M', 'merge', 'mergesort', 'H', 'heap', 'heapsort', 'S', 'stable', 'stablesort'] | None = None, order: Sequence[str] | str | None = None, *, stable: _bool | None = None) -> NDArray[Any]: ...
@overload
def sort(a: ArrayLike, axis: SupportsIndex | None = -1, kind: Literal['Q', 'quick', 'quicksort', 'M', 'merge', 'mergesort', 'H', 'heap', 'heapsort', 'S', 'stable', 'stablesort'] | None = None, order: Sequence[str] | str | None = None, *, stable: _bool | None = None) -> Any: ...
@overload
def sort_complex(a: DistArray) -> DistArray: ...
@overload
def sort_complex(a: NDArray[Any]) -> NDArray[Any]: ...
@overload
def sort_complex(a: ArrayLike) -> Any: ...
spacing: _Ufunc1To1
@overload
def split(ary: DistArray, indices_or_sections: Shape, axis: SupportsIndex = 0) -> list[DistArray]: ...
@overload
def split(ary: NDArray[Any], indices_or_sections: Shape, axis: SupportsIndex = 0) -> list[NDArray[Any]]: ...
@overload
def split(ary: ArrayLike, indices_or_sections: Shape, axis: SupportsIndex = 0) -> Any: ...
sqrt: _Ufunc1To1
square: _Ufunc1To1
@overload
def squeeze(a: DistArray, axis: Shape | None = None) -> DistArray: ...
@overload
def squeeze(a: NDArray[Any], axis: Shape | None = None) -> NDArray[Any]: ...
@overload
def squeeze(a: ArrayLike, axis: Shape | None = None) -> Any: ...
@overload
def stack(arrays: Sequence[DistArray], axis: SupportsIndex = 0, out: _Array | None = None, *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> DistArray: ...
@overload
def stack(arrays: Sequence[NDArray[Any]], axis: SupportsIndex = 0, out: _Array | None = None, *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> NDArray[Any]: ...
@overload
def stack(arrays: Sequence[ArrayLike], axis: SupportsIndex = 0, out: _Array | None = None, *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> Any: ...
@overload
def std(a: DistArray, axis: Shape, dtype: DTypeLike | None = None, out: _Array | None = None, ddof: float = 0, keepdims: _bool = ..., *, where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ...) -> DistArray: ...
@overload
def std(a: DistArray, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, ddof: float = 0, *, keepdims: Literal[True], where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ...) -> DistArray: ...
@overload
def std(a: ArrayLike, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, ddof: float = 0, keepdims: _bool = ..., *, where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ...) -> Any: ...
from numpy import str_ as str_
subtract: _Ufunc2To1
@overload
def sum(a: DistArray, axis: Shape, dtype: DTypeLike | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def sum(a: DistArray, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, *, keepdims: Literal[True], initial: ArrayLike = ..., where: ArrayLike = ...) -> DistArray: ...
@overload
def sum(a: ArrayLike, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, keepdims: _bool = ..., initial: ArrayLike = ..., where: ArrayLike = ...) -> Any: ...
@overload
def swapaxes(a: DistArray, axis1: SupportsIndex, axis2: SupportsIndex) -> DistArray: ...
@overload
def swapaxes(a: NDArray[Any], axis1: SupportsIndex, axis2: SupportsIndex) -> NDArray[Any]: ...
@overload
def swapaxes(a: ArrayLike, axis1: SupportsIndex, axis2: SupportsIndex) -> Any: ...
@overload
def take(a: ArrayLike, indices: DistArray, axis: SupportsIndex | None = None, out: _Array | None = None, mode: Literal['raise', 'wrap', 'clip'] = 'raise') -> DistArray: ...
@overload
def take(a: ArrayLike, indices: ArrayLike, axis: SupportsIndex | None = None, out: _Array | None = None, mode: Literal['raise', 'wrap', 'clip'] = 'raise') -> Any: ...
@overload
def take_along_axis(arr: DistArray, indices: _Array, axis: SupportsIndex | None = -1) -> DistArray: ...
@overload
def take_along_axis(arr: ArrayLike, indices: DistArray, axis: SupportsIndex | None = -1) -> DistArray: ...
@overload
def take_along_axis(arr: NDArray[Any], indices: _Array, axis: SupportsIndex | None = -1) -> NDArray[Any]: ...
@overload
def take_along_axis(arr: ArrayLike, indices: _Array, axis: SupportsIndex | None = -1) -> Any: ...
tan: _Ufunc1To1
tanh: _Ufunc1To1
@overload
def tensordot(a: DistArray, b: ArrayLike, axes: SupportsIndex | tuple[Shape, Shape] = 2) -> DistArray: ...
@overload
def tensordot(a: ArrayLike, b: DistArray, axes: SupportsIndex | tuple[Shape, Shape] = 2) -> DistArray: ...
@overload
def tensordot(a: NDArray[Any], b: ArrayLike, axes: SupportsIndex | tuple[Shape, Shape] = 2) -> NDArray[Any]: ...
@overload
def tensordot(a: ArrayLike, b: ArrayLike, axes: SupportsIndex | tuple[Shape, Shape] = 2) -> Any: ...
from numpy import test as test
@overload
def tile(A: DistArray, reps: ArrayLike) -> DistArray: ...
@overload
def tile(A: ArrayLike, reps: DistArray) -> DistArray: ...
@overload
def tile(A: NDArray[Any], reps: ArrayLike) -> NDArray[Any]: ...
@overload
def tile(A: ArrayLike, reps: ArrayLike) -> Any: ...
from numpy import timedelta64 as timedelta64
from numpy_dist.interop.lazy_arrays import to_dask as to_dask
from numpy_dist.interop.lazy_arrays import to_xarray as to_xarray
def trace(a: ArrayLike, offset: SupportsIndex = 0, axis1: SupportsIndex = 0, axis2: SupportsIndex = 1, dtype: DTypeLike | None = None, out: _Array | None = None) -> Any: ...
@overload
def transpose(a: DistArray, axes: Shape | None = None) -> DistArray: ...
@overload
def transpose(a: NDArray[Any], axes: Shape | None = None) -> NDArray[Any]: ...
@overload
def transpose(a: ArrayLike, axes: Shape | None = None) -> Any: ...
def trapezoid(y: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]], x: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]] | None = None, dx: complex | float = 1.0, axis: SupportsIndex = -1) -> Any: ...
def tri(N: SupportsIndex, M: SupportsIndex | None = None, k: SupportsIndex = 0, dtype: DTypeLike | None = ..., *, like: Any = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
def tril(m: ArrayLike, k: SupportsIndex = 0) -> DistArray: ...
def tril_indices(n: SupportsIndex, k: SupportsIndex = 0, m: SupportsIndex | None = None) -> tuple[DistArray, ...]: ...
from numpy import tril_indices_from as tril_indices_from
from numpy import trim_zeros as trim_zeros
def triu(m: ArrayLike, k: SupportsIndex = 0) -> DistArray: ...
def triu_indices(n: SupportsIndex, k: SupportsIndex = 0, m: SupportsIndex | None = None) -> tuple[DistArray, ...]: ...
from numpy import triu_indices_from as triu_indices_from
true_divide: _Ufunc2To1
trunc: _Ufunc1To1
from numpy import typecodes as typecodes
from numpy import typename as typename
from numpy import ubyte as ubyte
from numpy import ufunc as ufunc
from numpy import uint as uint
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64
from numpy import uint8 as uint8
from numpy import uintc as uintc
from numpy import uintp as uintp
from numpy import ulong as ulong
from numpy import ulonglong as ulonglong
@overload
def union1d(ar1: DistArray, ar2: ArrayLike) -> DistArray: ...
@overload
def union1d(ar1: ArrayLike, ar2: DistArray) -> DistArray: ...
@overload
def union1d(ar1: NDArray[Any], ar2: ArrayLike) -> NDArray[Any]: ...
@overload
def union1d(ar1: ArrayLike, ar2: ArrayLike) -> Any: ...
def unique(ar: ArrayLike, return_index: _bool = False, return_inverse: _bool = False, return_counts: _bool = False, axis: SupportsIndex | None = None, *, equal_nan: _bool = True, sorted: _bool = True) -> Any: ...
def unique_all(x: ArrayLike) -> Any: ...
def unique_counts(x: ArrayLike) -> Any: ...
def unique_inverse(x: ArrayLike) -> Any: ...
@overload
def unique_values(x: DistArray) -> DistArray: ...
@overload
def unique_values(x: NDArray[Any]) -> NDArray[Any]: ...
@overload
def unique_values(x: ArrayLike) -> Any: ...
@overload
def unpackbits(a: DistArray, /, axis: SupportsIndex | None = None, count: SupportsIndex | None = None, bitorder: Literal['big', 'little'] = 'big') -> DistArray: ...
@overload
def unpackbits(a: NDArray[Any], /, axis: SupportsIndex | None = None, count: SupportsIndex | None = None, bitorder: Literal['big', 'little'] = 'big') -> NDArray[Any]: ...
@overload
def unpackbits(a: ArrayLike, /, axis: SupportsIndex | None = None, count: SupportsIndex | None = None, bitorder: Literal['big', 'little'] = 'big') -> Any: ...
@overload
def unravel_index(indices: DistArray, shape: Shape, order: Literal['C', 'F'] = 'C') -> tuple[DistArray, ...]: ...
@overload
def unravel_index(indices: NDArray[Any], shape: Shape, order: Literal['C', 'F'] = 'C') -> tuple[NDArray[Any], ...]: ...
@overload
def unravel_index(indices: ArrayLike, shape: Shape, order: Literal['C', 'F'] = 'C') -> Any: ...
from numpy import unsignedinteger as unsignedinteger
from numpy import unstack as unstack
@overload
def unwrap(p: DistArray, discont: float | None = None, axis: SupportsIndex = -1, *, period: float = 6.283185307179586) -> DistArray: ...
@overload
def unwrap(p: NDArray[Any], discont: float | None = None, axis: SupportsIndex = -1, *, period: float = 6.283185307179586) -> NDArray[Any]: ...
@overload
def unwrap(p: ArrayLike | Sequence[Any] | Sequence[Sequence[Any]], discont: float | None = None, axis: SupportsIndex = -1, *, period: float = 6.283185307179586) -> Any: ...
from numpy import ushort as ushort
def vander(x: ArrayLike | Sequence[ArrayLike], N: SupportsIndex | None = None, increasing: _bool = False) -> DistArray: ...
@overload
def var(a: DistArray, axis: Shape, dtype: DTypeLike | None = None, out: _Array | None = None, ddof: float = 0, keepdims: _bool = ..., *, where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ...) -> DistArray: ...
@overload
def var(a: DistArray, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, ddof: float = 0, *, keepdims: Literal[True], where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ...) -> DistArray: ...
@overload
def var(a: ArrayLike, axis: Shape | None = None, dtype: DTypeLike | None = None, out: _Array | None = None, ddof: float = 0, keepdims: _bool = ..., *, where: ArrayLike = ..., mean: ArrayLike = ..., correction: float = ...) -> Any: ...
def vdot(a: ArrayLike, b: ArrayLike, /) -> Any: ...
vecdot: _CoreUfunc2To1
vecmat: _Ufunc2To1
from numpy import vectorize as vectorize
from numpy import void as void
@overload
def vsplit(ary: DistArray, indices_or_sections: Shape) -> list[DistArray]: ...
@overload
def vsplit(ary: NDArray[Any], indices_or_sections: Shape) -> list[NDArray[Any]]: ...
@overload
def vsplit(ary: ArrayLike, indices_or_sections: Shape) -> Any: ...
@overload
def vstack(tup: Sequence[DistArray], *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> DistArray: ...
@overload
def vstack(tup: Sequence[NDArray[Any]], *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> NDArray[Any]: ...
@overload
def vstack(tup: Sequence[ArrayLike], *, dtype: DTypeLike | None = None, casting: Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe'] = 'same_kind') -> Any: ...

@overload
def wait() -> None: ...
@overload
def wait(array: _T, /) -> _T: ...
@overload
def wait(*arrays: _T) -> tuple[_T, ...]: ...

@overload
def where(condition: DistArray, /) -> tuple[DistArray, ...]: ...
@overload
def where(condition: ArrayLike, /) -> tuple[_Array, ...]: ...
@overload
def where(condition: DistArray, x: ArrayLike, y: ArrayLike, /) -> DistArray: ...
@overload
def where(condition: ArrayLike, x: DistArray, y: ArrayLike, /) -> DistArray: ...
@overload
def where(condition: ArrayLike, x: ArrayLike, y: DistArray, /) -> DistArray: ...
@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Any: ...
from numpy_dist.dispatch.core.overrides import withdraw as withdraw
def zeros(shape: SupportsIndex | Sequence[SupportsIndex], dtype: DTypeLike | None = None, order: Literal['C', 'F'] | None = 'C', *, device: Literal['cpu'] | None = None, like: Any = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...
def zeros_like(a: object, dtype: DTypeLike | None = None, order: Literal['K', 'A', 'C', 'F'] | None = 'K', subok: _bool = True, shape: SupportsIndex | Sequence[SupportsIndex] | None = None, *, device: Literal['cpu'] | None = None, split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None) -> DistArray: ...

__version__: str
__array_api_version__: str
_OWN: dict[str, str]
_MODULES: tuple[str, ...]
def __array_namespace_info__() -> Any: ...
def __dir__() -> list[str]: ...
def public_names() -> set[str]: ...

__all__ = [
    'AdviceWarning',
    'CheckpointError',
    'CheckpointWarning',
    'DistArray',
    'DivergenceError',
    'FallbackError',
    'FallbackWarning',
    'False_',
    'GatherError',
    'LauncherError',
    'Layout',
    'Mesh',
    'OverrideError',
    'OverrideWarning',
    'RankError',
    'ScalarType',
    'SettingWarning',
    'StoredArray',
    'StoredArrays',
    'True_',
    'UnsupportedError',
    'abs',
    'absolute',
    'acos',
    'acosh',
    'add',
    'all',
    'allclose',
    'amax',
    'amin',
    'angle',
    'any',
    'append',
    'apply_along_axis',
    'apply_over_axes',
    'arange',
    'arccos',
    'arccosh',
    'arcsin',
    'arcsinh',
    'arctan',
    'arctan2',
    'arctanh',
    'argmax',
    'argmin',
    'argpartition',
    'argsort',
    'argwhere',
    'around',
    'array',
    'array2string',
    'array_equal',
    'array_equiv',
    'array_repr',
    'array_split',
    'array_str',
    'asanyarray',
    'asarray',
    'asarray_chkfinite',
    'ascontiguousarray',
    'asfortranarray',
    'asin',
    'asinh',
    'asmatrix',
    'astype',
    'atan',
    'atan2',
    'atanh',
    'atleast_1d',
    'atleast_2d',
    'atleast_3d',
    'average',
    'axis_local',
    'bartlett',
    'base_repr',
    'binary_repr',
    'bincount',
    'bitwise_and',
    'bitwise_count',
    'bitwise_invert',
    'bitwise_left_shift',
    'bitwise_not',
    'bitwise_or',
    'bitwise_right_shift',
    'bitwise_xor',
    'blackman',
    'block',
    'bmat',
    'bool',
    'bool_',
    'broadcast',
    'broadcast_arrays',
    'broadcast_shapes',
    'broadcast_to',
    'busday_count',
    'busday_offset',
    'busdaycalendar',
    'byte',
    'bytes_',
    'c_',
    'can_cast',
    'cbrt',
    'cdouble',
    'ceil',
    'char',
    'character',
    'checkpoint',
    'choose',
    'clip',
    'clongdouble',
    'column_stack',
    'common_type',
    'complex128',
    'complex256',
    'complex64',
    'complexfloating',
    'compress',
    'concat',
    'concatenate',
    'config',
    'conj',
    'conjugate',
    'convolve',
    'copy',
    'copysign',
    'copyto',
    'core',
    'corrcoef',
    'correlate',
    'cos',
    'cosh',
    'count_nonzero',
    'count_program',
    'cov',
    'cross',
    'csingle',
    'ctypeslib',
    'cumprod',
    'cumsum',
    'cumulative_prod',
    'cumulative_sum',
    'datetime64',
    'datetime_as_string',
    'datetime_data',
    'decline',
    'deg2rad',
    'degrees',
    'delete',
    'diag',
    'diag_indices',
    'diag_indices_from',
    'diagflat',
    'diagonal',
    'diff',
    'digitize',
    'dispatchable',
    'distribute',
    'divide',
    'divmod',
    'dot',
    'double',
    'dsplit',
    'dstack',
    'dtype',
    'dtypes',
    'e',
    'ediff1d',
    'einsum',
    'einsum_path',
    'elementwise',
    'emath',
    'empty',
    'empty_like',
    'equal',
    'errstate',
    'euler_gamma',
    'exceptions',
    'exp',
    'exp2',
    'expand_dims',
    'explain',
    'explain_program',
    'expm1',
    'extract',
    'eye',
    'f2py',
    'fabs',
    'fft',
    'fill_diagonal',
    'finfo',
    'fix',
    'flatiter',
    'flatnonzero',
    'flexible',
    'flip',
    'fliplr',
    'flipud',
    'float128',
    'float16',
    'float32',
    'float64',
    'float_power',
    'floating',
    'floor',
    'floor_divide',
    'fmax',
    'fmin',
    'fmod',
    'format_float_positional',
    'format_float_scientific',
    'frexp',
    'from_dask',
    'from_dlpack',
    'from_local',
    'from_xarray',
    'frombuffer',
    'fromfile',
    'fromfunction',
    'fromiter',
    'frompyfunc',
    'fromregex',
    'fromstring',
    'full',
    'full_like',
    'gcd',
    'generic',
    'genfromtxt',
    'geomspace',
    'get_include',
    'get_printoptions',
    'getbufsize',
    'geterr',
    'geterrcall',
    'gradient',
    'greater',
    'greater_equal',
    'half',
    'hamming',
    'hanning',
    'heaviside',
    'histogram',
    'histogram2d',
    'histogram_bin_edges',
    'histogramdd',
    'hsplit',
    'hstack',
    'hypot',
    'i0',
    'identity',
    'iinfo',
    'imag',
    'implements',
    'index_exp',
    'indices',
    'inexact',
    'inf',
    'info',
    'inner',
    'insert',
    'int16',
    'int32',
    'int64',
    'int8',
    'int_',
    'intc',
    'integer',
    'interp',
    'intersect1d',
    'intp',
    'invert',
    'is_busday',
    'isclose',
    'iscomplex',
    'iscomplexobj',
    'isdtype',
    'isfinite',
    'isfortran',
    'isin',
    'isinf',
    'isnan',
    'isnat',
    'isneginf',
    'isposinf',
    'isreal',
    'isrealobj',
    'isscalar',
    'issubdtype',
    'iterable',
    'ix_',
    'kaiser',
    'kron',
    'lcm',
    'ldexp',
    'left_shift',
    'less',
    'less_equal',
    'lexsort',
    'lib',
    'linalg',
    'linspace',
    'little_endian',
    'load',
    'loadtxt',
    'log',
    'log10',
    'log1p',
    'log2',
    'logaddexp',
    'logaddexp2',
    'logical_and',
    'logical_not',
    'logical_or',
    'logical_xor',
    'logspace',
    'long',
    'longdouble',
    'longlong',
    'ma',
    'map_blocks',
    'map_overlap',
    'mask_indices',
    'matmul',
    'matrix',
    'matrix_transpose',
    'matvec',
    'max',
    'maximum',
    'may_share_memory',
    'mean',
    'median',
    'memmap',
    'meshgrid',
    'mgrid',
    'min',
    'min_scalar_type',
    'minimum',
    'mintypecode',
    'mod',
    'modf',
    'moveaxis',
    'multiply',
    'nan',
    'nan_to_num',
    'nanargmax',
    'nanargmin',
    'nancumprod',
    'nancumsum',
    'nanmax',
    'nanmean',
    'nanmedian',
    'nanmin',
    'nanpercentile',
    'nanprod',
    'nanquantile',
    'nanstd',
    'nansum',
    'nanvar',
    'ndarray',
    'ndenumerate',
    'ndim',
    'ndindex',
    'nditer',
    'negative',
    'nested_iters',
    'newaxis',
    'nextafter',
    'nonzero',
    'not_equal',
    'number',
    'object_',
    'ogrid',
    'on_rank_zero',
    'ones',
    'ones_like',
    'outer',
    'overrides',
    'overriding',
    'packbits',
    'pad',
    'partition',
    'percentile',
    'permute_dims',
    'pi',
    'piecewise',
    'place',
    'plugins',
    'poly',
    'poly1d',
    'polyadd',
    'polyder',
    'polydiv',
    'polyfit',
    'polyint',
    'polymul',
    'polynomial',
    'polysub',
    'polyval',
    'positive',
    'pow',
    'power',
    'printoptions',
    'prod',
    'profile',
    'progress',
    'promote_types',
    'ptp',
    'put',
    'put_along_axis',
    'putmask',
    'quantile',
    'r_',
    'rad2deg',
    'radians',
    'random',
    'ravel',
    'ravel_multi_index',
    'real',
    'real_if_close',
    'rebalance',
    'rec',
    'recarray',
    'reciprocal',
    'record',
    'reduction',
    'remainder',
    'repeat',
    'report',
    'require',
    'reshape',
    'resize',
    'result_type',
    'right_shift',
    'rint',
    'roll',
    'rollaxis',
    'roots',
    'rot90',
    'round',
    'row_stack',
    's_',
    'save',
    'savetxt',
    'savez',
    'savez_compressed',
    'sctypeDict',
    'searchsorted',
    'select',
    'set_printoptions',
    'setbufsize',
    'setdiff1d',
    'seterr',
    'seterrcall',
    'setxor1d',
    'shape',
    'shares_memory',
    'short',
    'show_config',
    'show_layout',
    'show_runtime',
    'sign',
    'signbit',
    'signedinteger',
    'sin',
    'sinc',
    'single',
    'sinh',
    'size',
    'sort',
    'sort_complex',
    'spacing',
    'split',
    'sqrt',
    'square',
    'squeeze',
    'stack',
    'std',
    'str_',
    'strings',
    'subtract',
    'sum',
    'swapaxes',
    'take',
    'take_along_axis',
    'tan',
    'tanh',
    'tensordot',
    'test',
    'testing',
    'tile',
    'timedelta64',
    'to_dask',
    'to_xarray',
    'trace',
    'transpose',
    'trapezoid',
    'tri',
    'tril',
    'tril_indices',
    'tril_indices_from',
    'trim_zeros',
    'triu',
    'triu_indices',
    'triu_indices_from',
    'true_divide',
    'trunc',
    'typecodes',
    'typename',
    'typing',
    'ubyte',
    'ufunc',
    'uint',
    'uint16',
    'uint32',
    'uint64',
    'uint8',
    'uintc',
    'uintp',
    'ulong',
    'ulonglong',
    'union1d',
    'unique',
    'unique_all',
    'unique_counts',
    'unique_inverse',
    'unique_values',
    'unpackbits',
    'unravel_index',
    'unsignedinteger',
    'unstack',
    'unwrap',
    'ushort',
    'vander',
    'var',
    'vdot',
    'vecdot',
    'vecmat',
    'vectorize',
    'void',
    'vsplit',
    'vstack',
    'wait',
    'where',
    'withdraw',
    'zeros',
    'zeros_like',
]
