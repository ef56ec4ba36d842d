"""Eigenvalues, singular values and norms that SciPy finds by a matrix's products: ARPACK, PROPACK, LOBPCG, 1-norms.

SciPy's own functions run on rank 0, with vectors that are small beside the matrix. What they ask a matrix for, a
product or the solution of a system, all ranks compute together. On every rank they would not ask for the same: where
an array lies in memory is enough for other rounding errors, and another number of steps.
"""

from __future__ import annotations

import contextvars
import inspect
import pickle
import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.linalg as solvers

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.comm.portable import first_error, portable_error, restored
from numpy_dist.dispatch.core import outcome
from numpy_dist.dispatch.core.overrides import implements
from numpy_dist.dispatch.core.registry import decline
from numpy_dist.dispatch.functions.linear_algebra_single_matrix import from_one
from numpy_dist.dispatch.patterns.arguments import as_handle
from numpy_dist.dispatch.patterns.replicate import few

_MATRICES = ("A", "B", "M", "Minv", "OPinv")
_LEFT = {"eigsh": 0, "eigs": 1}  # as many eigenvalues less than there are, and SciPy finds them by LAPACK
_GLOBAL: np.random.RandomState = np.random.get_state.__self__  # type: ignore[attr-defined]

Product = Callable[[np.ndarray], np.ndarray]


def register() -> None:
    """Register the functions."""
    for function in (solvers.eigsh, solvers.eigs, solvers.svds, solvers.onenormest, solvers.lobpcg):
        _register(function)


def _register(function: Function) -> None:
    signature = inspect.signature(function)

    def found(*args: object, **kwargs: object) -> object:
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments
        _check(function.__name__, given)
        told: list[tuple[type[Warning], Warning | str]] = []
        with outcome.Recorded(told):
            if function.__name__ in _LEFT:
                _give_inverses(given)
            served = _Served()
            for name, value in given.items():
                if name in _MATRICES:
                    given[name] = served.operator(value)
                elif engine.is_handle(value):
                    given[name] = few(value)
            random = [
                _GLOBAL,
                *(x for x in given.values() if isinstance(x, (np.random.Generator, np.random.RandomState))),
            ]
            before = [_state(x) for x in random]
            made, error = served.run(lambda: function(*bound.args, **bound.kwargs))
        comm = engine.runtime().comm
        told, error, after, alike = comm.bcast((told, portable_error(error), [_state(x) for x in random], before))
        for generator, state, own, theirs in zip(random, after, before, alike, strict=True):
            if own == theirs:  # it goes on as that of rank 0
                _set_state(generator, state)
        outcome.warn_again(told)
        if error is not None:
            raise restored(error)
        return from_one(made)

    found.__name__ = found.__qualname__ = function.__name__
    found.__signature__ = signature  # type: ignore[attr-defined]
    implements(function)(found)


def _check(name: str, given: dict[str, Any]) -> None:
    """Leave to SciPy what it does with the elements of the matrix."""
    a = given["A"]
    if not isinstance(a, (np.ndarray, solvers.LinearOperator)) and not engine.is_handle(a) or len(a.shape) != 2:
        decline("the matrix is neither an array nor a LinearOperator")
    if isinstance(a, solvers.LinearOperator):
        return
    if name in _LEFT and a.shape[0] == a.shape[1] and given.get("k", 6) >= len(a) - _LEFT[name]:
        decline("nearly all eigenvalues, which SciPy finds by LAPACK")
    if name == "lobpcg" and np.ndim(given["X"]) == 2 and 5 * given["X"].shape[1] > len(given["X"]):
        decline("so many eigenvalues that SciPy finds them by LAPACK")


# -- what SciPy asks for ---------------------------------------------------------------------------------------------


class _End(BaseException):
    """Nobody answers any more."""


class _Served:
    """SciPy's function on a thread of rank 0, and the products that it asks for, which all ranks make in their own.

    All ranks make them at the same place of the program, so they are statements like others.
    """

    def __init__(self) -> None:
        self._products: list[Product] = []
        self._questions: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()  # a number below 0 ends
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def operator(self, a: Any) -> Any:
        """A distributed matrix, or a LinearOperator of distributed vectors, as SciPy's function gets it."""
        if isinstance(a, solvers.LinearOperator):
            multiply, adjoint = self._asking(_of_distributed(a._matvec)), self._asking(_of_distributed(a._rmatvec))
            return solvers.LinearOperator(a.shape, multiply, adjoint, dtype=a.dtype)
        if not engine.is_handle(a):
            return a
        matrix: Any = a
        multiply = self._asking(lambda v: few(np.dot(matrix, v)))
        # Not by the conjugate of the matrix, which would be a second one.
        adjoint = self._asking(lambda v: np.conj(few(np.dot(matrix.T, np.conj(v)))))
        return solvers.LinearOperator(a.shape, multiply, adjoint, multiply, a.dtype, adjoint)

    def _asking(self, product: Product) -> Product:
        self._products.append(product)
        number = len(self._products) - 1

        def ask(v: np.ndarray) -> np.ndarray:
            self._questions.put((number, v))
            answer = self._answers.get()
            if isinstance(answer, BaseException):
                raise answer
            made: np.ndarray = answer
            return made

        return ask

    def run(self, function: Callable[[], object]) -> tuple[Any, Exception | None]:
        """What the function gives, or its error, on rank 0. Collective: for each product a broadcast of a vector."""
        comm = engine.runtime().comm
        if comm.rank:
            while (question := comm.bcast())[0] >= 0:
                self._made(*question)
            return None, None

        def answer() -> None:
            try:
                found.append((function(), None))
            except Exception as error:
                found.append((None, error))
            except _End:
                return
            self._questions.put((-1, None))

        found: list[tuple[Any, Exception | None]] = []
        thread = threading.Thread(target=contextvars.copy_context().run, args=(answer,), daemon=True)
        thread.start()
        try:
            while (question := comm.bcast(self._questions.get()))[0] >= 0:
                self._answers.put(self._made(*question))
        finally:
            self._answers.put(_End())  # of one that waits yet, after an interrupt
            thread.join()
        return found[0]

    def _made(self, number: int, v: np.ndarray) -> Any:
        """A product, or the error of the first rank that has met one. Collective, as the product, and an allgather."""
        made, error = None, None
        try:
            made = self._products[number](v)
        except Exception as raised:
            error = raised
        comm = engine.runtime().comm
        first = first_error(comm.allgather(portable_error(error)), comm.rank, error)
        return made if first is None else first[1]


def _of_distributed(product: Callable[[Any], Any]) -> Product:
    """A product with distributed vectors, for a vector that every rank has."""

    def made(v: np.ndarray) -> np.ndarray:
        whole = np.ravel(v)
        return few(product(engine.from_global(whole, engine.default_layout(whole.shape))))

    return made


# -- systems ---------------------------------------------------------------------------------------------------------


def _give_inverses(given: dict[str, Any]) -> None:
    """What solves a system with ``A - sigma M``, or with M, for SciPy, which would have to have the matrix."""
    a, m, sigma = given["A"], given.get("M"), given.get("sigma")
    if any(isinstance(x, solvers.LinearOperator) for x in (a, m)) or a.shape[0] != a.shape[1]:
        return  # SciPy solves by iterations; or its error
    if m is not None and np.shape(m) != a.shape:
        return
    if sigma is None:
        if engine.is_handle(m) and given.get("Minv") is None:
            given["Minv"] = _Inverse(m)
    elif given.get("OPinv") is None and given.get("Minv") is None:
        given["OPinv"] = _Inverse(_shifted(a, m, sigma))


def _shifted(a: Any, m: Any, sigma: Any) -> Any:
    sigma = np.real(sigma) if np.imag(sigma) == 0 else sigma
    if m is not None:
        return a - sigma * m
    made = engine.copy(as_handle(a), dtype=np.result_type(a.dtype, np.complex64 if np.iscomplexobj(sigma) else a.dtype))
    np.fill_diagonal(made, np.diagonal(a) - sigma)
    return made


class _Inverse(solvers.LinearOperator):
    """That of a matrix, by its factors, for distributed vectors."""

    def __init__(self, a: Any) -> None:
        super().__init__(a.dtype, a.shape)
        self._factors = scipy.linalg.lu_factor(a)

    def _matvec(self, v: Any) -> Any:
        return scipy.linalg.lu_solve(self._factors, v)

    def _rmatvec(self, v: Any) -> Any:
        return scipy.linalg.lu_solve(self._factors, v, 2)


# -- random numbers --------------------------------------------------------------------------------------------------


def _state(generator: np.random.Generator | np.random.RandomState) -> bytes:
    if isinstance(generator, np.random.RandomState):
        return pickle.dumps(generator.get_state(legacy=False))
    return pickle.dumps(generator.bit_generator.state)


def _set_state(generator: np.random.Generator | np.random.RandomState, state: bytes) -> None:
    if isinstance(generator, np.random.RandomState):
        generator.set_state(pickle.loads(state))
    else:
        generator.bit_generator.state = pickle.loads(state)
