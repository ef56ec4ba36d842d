"""Iterative solvers of `scipy.sparse.linalg` for distributed vectors and operators on them.

They are SciPy's own source, as `dispatch.patterns.numpy_source` runs NumPy's: values, callbacks, warnings and errors
are SciPy's by construction. Only what makes ndarrays of matrices and vectors has another form here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
import scipy.sparse.linalg as solvers

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.dispatch.core.overrides import implements
from numpy_dist.dispatch.core.registry import decline
from numpy_dist.dispatch.patterns.arguments import astype
from numpy_dist.dispatch.patterns.numpy_source import numpy_source

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


def register() -> None:
    """Register the solvers."""
    for function in (solvers.cg, solvers.cgs, solvers.bicg, solvers.bicgstab, solvers.tfqmr, solvers.minres):
        _register(function, numpy_source(function, make_system=_system))
    names = {"np": _WithSmallMatrices(), "get_lapack_funcs": _agreeing}
    _register(solvers.gmres, numpy_source(solvers.gmres, make_system=_system, **names))
    for function in (solvers.lsqr, solvers.lsmr):
        _register(function, numpy_source(function, aslinearoperator=_Operator), begins=True)


def _register(function: Function, source: Function, begins: bool = False) -> None:
    """Register SciPy's source of a function, which may begin with `x0` as it is given (`begins`)."""
    signature = inspect.signature(function)

    def solver(*args: object, **kwargs: object) -> object:
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments
        if not engine.is_handle(given["b"]):
            decline("the right-hand side must be a distributed vector")
        for name in ("A", "M"):
            if not _is_known(given.get(name)):
                kind = type(given[name]).__name__
                decline(f"a matrix of type {kind}: a LinearOperator says how it is applied to a distributed vector")
        if begins and given.get("x0") is not None:
            given["x0"] = _cut(given["x0"] if engine.is_handle(given["x0"]) else np.asarray(given["x0"]))
        return source(*bound.args, **bound.kwargs)

    solver.__name__ = solver.__qualname__ = function.__name__
    solver.__signature__ = signature  # type: ignore[attr-defined]
    implements(function)(solver)


def _is_known(a: object) -> bool:
    if isinstance(a, np.ndarray) or engine.is_handle(a):
        return bool(a.ndim == 2)
    return a is None or isinstance(a, solvers.LinearOperator)


class _Operator:
    """A matrix, or a LinearOperator whose `matvec` takes and returns distributed vectors, as SciPy's code sees it."""

    ndim = 2  # asked for since SciPy 1.18, whose operators may be stacks

    def __init__(self, a: Any) -> None:
        self.shape: tuple[int, int] = tuple(a.shape)  # type: ignore[assignment]
        self.dtype: np.dtype | None = a.dtype
        if isinstance(a, solvers.LinearOperator):
            self.matvec: Callable[[Any], Any] = a._matvec  # `matvec` itself makes an ndarray of its argument
            self.rmatvec: Callable[[Any], Any] = a._rmatvec
        else:
            self.matvec = lambda v: np.dot(a, v)
            self.rmatvec = lambda v: np.conj(np.dot(a.T, np.conj(v))) if a.dtype.kind == "c" else np.dot(a.T, v)

    def __matmul__(self, v: object) -> Any:
        return self.matvec(v)


class _Identity:
    """No preconditioner."""

    @staticmethod
    def matvec(v: object) -> Any:
        """The vector itself."""
        return v

    rmatvec = matvec


def _system(a: object, m: object, x0: Any, b: Any) -> tuple[_Operator, object, object, object]:
    """SciPy's ``make_system``: operators, the first solution and the right-hand side, in one dtype."""
    matrix = _Operator(a)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"expected square matrix, but got shape={(matrix.shape,)}")
    n = matrix.shape[0]
    if b.shape not in ((n, 1), (n,)):
        raise ValueError(f"shapes of A {matrix.shape} and b {b.shape} are incompatible")
    b = np.ravel(b)
    b = b if b.dtype.char in "fdFD" else astype(b, np.double)
    kind = matrix.matvec(b).dtype if matrix.dtype is None else matrix.dtype
    kind = np.result_type(kind if kind.char in "fdFD" else np.double, b.dtype)
    b = b if b.dtype == kind else astype(b, kind)
    preconditioner: Any = _Identity if m is None else _Operator(m)
    if m is not None and preconditioner.shape != matrix.shape:
        raise ValueError("matrix and preconditioner have different shapes")
    if x0 is None:
        return matrix, preconditioner, np.zeros_like(b), b
    if isinstance(x0, str) and x0 == "Mb":
        return matrix, preconditioner, preconditioner.matvec(b.copy()), b
    x = engine.copy(x0, dtype=kind) if engine.is_handle(x0) else np.array(x0, kind)
    if x.shape not in ((n, 1), (n,)):
        raise ValueError(f"shapes of A {matrix.shape} and x0 {x.shape} are incompatible")
    return matrix, preconditioner, _cut(np.ravel(x)), b


def _cut(x: Any) -> object:
    """A vector of ours, which is cut however small it is: what is added to it will be."""
    return x if engine.is_handle(x) else engine.from_global(x, engine.default_layout(x.shape), compared=True)


class _WithSmallMatrices:
    """NumPy for SciPy's GMRES: the Krylov vectors are cut as vectors are, and every rank has the small matrices."""

    def __getattr__(self, name: str) -> object:
        return getattr(np, name)

    @staticmethod
    def empty(shape: list[int], dtype: DTypeLike) -> engine.Handle:
        """The Krylov vectors."""
        return engine.empty(tuple(shape), dtype, layout=engine.default_layout(tuple(shape), split=1))


def _agreeing(name: str, dtype: np.dtype) -> Function:
    """LAPACK's function, of which all ranks have the same result: whether to go on depends on it."""
    function = scipy.linalg.get_lapack_funcs(name, dtype=dtype)
    return lambda *args: engine.agreed(function(*args))
