"""Linear algebra of stacks of matrices: each rank has whole matrices, and NumPy's LAPACK treats them there.

A single matrix that several ranks hold comes to all of them if it is small. A large one is factored by all of them for
systems, inverses, determinants and Cholesky factors (`linear_algebra_single_matrix`); singular values and
least-squares solutions are computed where it is tall (`parallel.tall`). On one rank LAPACK treats it where it lies.
Else it is gathered. `treatment` tells which, for those who compute and for `explain`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Axes, Function
from numpy_dist.backends.library import compute, on_host
from numpy_dist.dispatch.core import policy
from numpy_dist.dispatch.core.keys import name_of
from numpy_dist.dispatch.core.operands import rebuild
from numpy_dist.dispatch.core.policy import format_bytes
from numpy_dist.dispatch.core.registry import Outlook, decline, implements
from numpy_dist.dispatch.functions import linear_algebra_single_matrix as single_matrix
from numpy_dist.dispatch.patterns import replicate
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, given
from numpy_dist.dispatch.patterns.blocks import blocks
from numpy_dist.dispatch.patterns.numpy_source import adopt, numpy_source
from numpy_dist.dispatch.patterns.replicate import known
from numpy_dist.dispatch.patterns.stacks import on_stacks
from numpy_dist.engine import events_reported
from numpy_dist.layout.layout import Pinned
from numpy_dist.parallel.tall import reduced_system, triangles
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from numpy_dist.backends.library import Array
    from numpy_dist.distarray import DistArray

SINGLE = "a single matrix"
_KNOWN = 64  # times MIN_SHARD_BYTES: a matrix that LAPACK treats faster on every rank than all ranks do together
Single = Function
Treatment = Literal["refused", "alone", "plain", "replicated", "single", "gathered", "stacks"]

adopt(__name__, np.linalg.svdvals, np.linalg.tensorinv)
_tensorsolve = numpy_source(np.linalg.tensorsolve)


def _of_each(function: Function, a: object, *args: object, single: Single | None = None, **kwargs: object) -> Any:
    """A function of one matrix, for each in a stack (collective); `single` is the same of one that is sharded."""
    return _of_stacks(_local(function, *args, **kwargs), function, [as_handle(a)], [2], single)


def _local(function: Function, *args: object, **kwargs: object) -> Function:
    """A function of a rank's own matrices, by the library of the device where they lie."""
    name = function.__name__
    return lambda *parts: compute(
        "linalg", lambda *values: function(*values, *args, **kwargs), *parts, name=name, args=args, **kwargs
    )


def _of_stacks(
    local: Function,
    function: Function,
    operands: list[DistArray],
    items: list[int],
    single: Single | None = None,
) -> Any:
    """`local` on stacks of matrices; of several ranks, `single` on one matrix, unless it is wrong already."""
    name = function.__name__
    how = treatment(operands, items, single is not None)
    if how == "refused":
        local(*(np.zeros(x.shape, x.dtype) for x in operands))  # NumPy's error
        decline("an array that is no matrix")
    if how == "stacks":
        return on_stacks(local, operands, items, name=name, library=True)
    first, *others = (np.zeros(x.shape, x.dtype) for x in operands)
    local(first[None][:0], *others)  # NumPy's errors
    if how == "alone":
        return _alone(local, name, operands)
    if how == "replicated":
        return _known(local, function, operands, chosen=single is not None)
    if single is None or how != "single":
        decline(SINGLE)
    return single(*operands)


def treatment(operands: list[DistArray], items: list[int], together: bool, widened: int = 1) -> Treatment:
    """What becomes of a call; `together`: all ranks can treat a matrix together. Known from metadata.

    `widened` times as large they will be.

    What comes to every rank has at most `MIN_SHARD_BYTES`, or `_KNOWN` times as many where that is only faster (not
    with ``FALLBACK="error"``).
    """
    if operands[0].ndim < 2:
        return "refused"
    if any(x.ndim > depth for x, depth in zip(operands, items, strict=True)):
        return "stacks"
    if engine.runtime().size == 1:
        return "alone"
    if not any(engine.is_sharded(x) for x in operands):
        return "plain"  # every rank has what NumPy needs
    most = config.MIN_SHARD_BYTES * (_KNOWN if together and config.FALLBACK != "error" else 1)
    if widened * max(x.nbytes for x in operands) <= most:
        return "replicated"
    return "single" if together else "gathered"


def _outlook(kind: str, operands: list[DistArray], items: list[int], together: bool, widened: int = 1) -> Outlook:
    """What `_of_stacks` would do, in words."""
    how = treatment(operands, items, together, widened)
    nbytes = widened * sum(x.nbytes for x in operands if engine.is_sharded(x))
    if how == "replicated":
        return Outlook("replicated", f"a small single matrix: {format_bytes(nbytes)} come to every rank", nbytes)
    if how == "single":
        return Outlook(kind, "a single matrix: redistributed, and its panels are sent to every rank, one at a time")
    if how == "alone":
        return Outlook(kind, "nothing is communicated: there is one rank")
    if how == "stacks":
        return Outlook(kind, "communicated: stacks are redistributed where a matrix is cut")
    return Outlook("gathered", SINGLE if how != "refused" else "an array that is no matrix")


def _outlook_of_each(
    kind: str, together: bool = False, tall: Callable[..., bool] | None = None
) -> Callable[..., Outlook]:
    """The outlook of a function of one matrix; `tall` tells which calls take the way of tall matrices if they can."""

    def outlook(a: DistArray, *args: object, **kwargs: object) -> Outlook:
        a = as_handle(a)
        if tall is not None and tall(*args, **kwargs) and _is_tall(_upright(a)):
            return _of_triangles(kind, a)
        return _outlook(kind, [a], [2], together)

    return outlook


def _of_triangles(kind: str, a: DistArray, *others: DistArray) -> Outlook:
    nbytes = _whole_bytes(_upright(a), *others)
    if nbytes:
        return Outlook("replicated", f"{_WHOLE}: {format_bytes(nbytes)} come to every rank", nbytes)
    n = min(a.shape)
    nbytes = n * n * np.result_type(float, a.dtype).itemsize
    return Outlook(kind, f"communicated: a triangle of each rank to every rank, {format_bytes(nbytes)} each")


def _alone(function: Function, name: str, operands: list[DistArray]) -> Any:
    """NumPy's function on the memory of the only rank."""
    layouts = [engine.default_layout(tuple(x.shape)) for x in operands]
    held = blocks(*((engine.aligned(x, its), its) for x, its in zip(operands, layouts, strict=True)), library=True)
    with events_reported(name):
        made = function(*held)
    return _wrapped(made)


def _known(local: Function, function: Function, operands: list[DistArray], chosen: bool) -> object:
    """NumPy's function on each rank, of matrices that all of them get to know (collective: an exchange for each)."""
    values = [known(x, function, "matrix", chosen) for x in operands]
    with events_reported(function.__name__, alike=True):
        made = _agreed(lambda: local(*values))
    return _wrapped(made)


def _agreed(compute: Callable[[], object]) -> Any:
    """What rank 0 computes, or its error: ranks that are not alike may differ in which matrix is singular."""
    try:
        made = compute()
    except np.linalg.LinAlgError as error:
        made = error
    made = engine.agreed(made)
    if isinstance(made, np.linalg.LinAlgError):
        raise made
    return made


def _wrapped(made: Any) -> object:
    if isinstance(made, tuple):
        return rebuild(type(made), [_wrapped(item) for item in made])
    if engine.lies_on_device(made):
        return engine.from_local(made, engine.default_layout(made.shape)) if made.ndim else on_host(made)[()]
    return engine.from_global(made) if isinstance(made, np.ndarray) else made


# -- a single tall matrix --------------------------------------------------------------------------------------------


def _is_tall(a: DistArray) -> bool:
    """Whether the triangles of all ranks are small enough for every rank to have them."""
    if a.ndim != 2 or a.dtype.kind not in "biufc" or a.dtype.itemsize > 16 or a.dtype in (np.float16, np.longdouble):
        return False
    m, n = a.shape
    small = m >= n > 0 and 16 * n * n * engine.runtime().size <= replicate.MOST_KNOWN
    return small and _whole_bytes(a) <= policy.most_native()


_WHOLE = "the triangles of all ranks are as large as the matrix"


def _whole_bytes(a: DistArray, *others: DistArray | np.ndarray) -> int:
    """Bytes of a matrix, and what has as many rows, that come to every rank since ranks have fewer rows than columns.

    0 where that is not so: then triangles come, which are smaller.
    """
    m, n = a.shape
    size = engine.runtime().size
    return sum(x.nbytes for x in (a, *others) if engine.is_sharded(x)) if 1 < size and m <= size * n else 0


def _upright(a: DistArray) -> Any:
    """A matrix, or its transpose if it is wide."""
    return np.transpose(a) if a.ndim == 2 and a.shape[0] < a.shape[1] else a


def _tall_rows(function: Function, a: DistArray, *others: DistArray | np.ndarray) -> list[Array] | None:
    """This rank's rows of a tall matrix and of what has as many rows, in double precision; None if it is not tall.

    NumPy's `function`, which needs them, is for the user.
    """
    if not _is_tall(a):
        return None
    m, n = a.shape
    nbytes = _whole_bytes(a, *others)
    if nbytes:
        policy.replicate(name_of(function), _WHOLE, nbytes)
    layout = engine.layout_of(a) if engine.is_sharded(a) else None
    if layout is None or any(layout.cut_axes) or any(isinstance(what, Pinned) for what in layout.dims):
        layout = engine.default_layout((m, n), split=0)
    kind = np.result_type(float, *(x.dtype for x in (a, *others)))
    layouts = [layout.with_shape((m, x.shape[1])) for x in (a, *others)]
    pairs = ((engine.aligned(x, its), its) for x, its in zip((a, *others), layouts, strict=True))
    held = blocks(*pairs, library=True)
    mine = None if layout.primary(engine.runtime().rank) else 0  # copies, which another rank has already
    return [x[:mine].astype(kind) for x in held]


def _singular_values(function: Function, a: DistArray) -> np.ndarray | None:
    """Those of a single tall or wide matrix, as NumPy's `svd` returns them; None if it has to be gathered."""
    rows = _tall_rows(function, _upright(a))
    if rows is None:
        return None
    small = triangles(rows[0], engine.runtime().comm)
    kind = np.linalg.svd(np.zeros((1, 1), a.dtype), compute_uv=False).dtype
    try:
        found = _agreed(lambda: np.linalg.svd(small, compute_uv=False))
    except np.linalg.LinAlgError:
        found = None
    if found is None or not np.isfinite(found).all():
        # Infinity may have become NaN in the triangles; of the two NumPy's SVD makes different things.
        sample = np.eye(small.shape[1])
        sample[0, 0] = np.nan if np.isnan(a).any() else np.inf
        found = np.linalg.svd(sample, compute_uv=False)
    return found.astype(kind, copy=False)


def _outlook_of_system(a: DistArray, b: DistArray, rcond: Any = None) -> Outlook:
    a, b = as_handle(a), as_handle(b)
    if _takes_triangles(a, b):
        return _of_triangles("parallel", a, b)
    if engine.runtime().size == 1:
        return Outlook("parallel", "nothing is communicated: there is one rank")
    return Outlook("gathered", _NOT_TALL)


_NOT_TALL = "a single matrix that is not tall"


def _takes_triangles(a: DistArray, b: DistArray) -> bool:
    """Whether a system is solved by the triangles of all ranks."""
    columns = b.shape[1] if b.ndim == 2 else 1
    if not _is_tall(a) or _whole_bytes(a, b) > policy.most_native():
        return False
    return columns > 0 and columns * 16 * a.shape[1] * engine.runtime().size <= replicate.MOST_KNOWN


@implements(np.linalg.lstsq, kind="parallel", outlook=_outlook_of_system)
def lstsq(a: DistArray, b: DistArray, rcond: float | None = None) -> tuple[DistArray, DistArray, int, DistArray]:
    """Collective: one allgather of small triangles."""
    a, b = as_handle(a), as_handle(b)
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        engine.numpy_error(np.linalg.lstsq, (a, b, rcond))
    sample = np.linalg.lstsq(np.zeros((1, 1), a.dtype), np.zeros((1, 1), b.dtype), 0.0)  # NumPy's dtypes and errors
    right = np.reshape(b, (b.shape[0], 1)) if b.ndim == 1 else b
    rows = _tall_rows(np.linalg.lstsq, a, right) if _takes_triangles(a, b) else None
    if rows is None:
        if engine.runtime().size == 1:
            return _alone(_local(np.linalg.lstsq, rcond), "lstsq", [a, b])
        decline(_NOT_TALL)
    m, n = a.shape
    cutoff = np.finfo(sample[0].dtype).eps * m if rcond is None else rcond
    matrix, projected, rest = reduced_system(rows[0], rows[1], engine.runtime().comm)
    x, _, rank, values = _agreed(lambda: np.linalg.lstsq(matrix, projected, cutoff))
    left = rest + np.square(np.abs(projected - matrix @ x)).sum(axis=0) if rank == n and m > n else np.zeros(0)
    solution = x[:, 0] if b.ndim == 1 else x
    found = [each.astype(like.dtype) for each, like in ((solution, sample[0]), (left, sample[1]), (values, sample[3]))]
    return engine.wrap(found[0]), engine.wrap(found[1]), rank, engine.wrap(found[2])


# -- one function after the other ------------------------------------------------------------------------------------


_TOGETHER = _outlook_of_each("parallel", together=True)
_AT_ONE = _outlook_of_each("axis-local")


def _only_values(full_matrices: object = True, compute_uv: object = True, hermitian: object = False) -> bool:
    return not compute_uv and not hermitian


def _of_two_norm(p: object = None) -> bool:
    return p is None or p in (2, -2)


@implements(np.linalg.inv, kind="parallel", outlook=_TOGETHER)
def inv(a: object) -> DistArray:
    return _of_each(np.linalg.inv, a, single=single_matrix.inverse)


def _outlook_of_det(a: DistArray) -> Outlook:
    a = as_handle(a)
    return _outlook("parallel", [a], [2], together=True, widened=2 if a.dtype.char in "fF" else 1)


@implements(np.linalg.det, kind="parallel", outlook=_outlook_of_det)
def det(a: Any) -> DistArray | np.inexact:
    a = as_handle(a)
    kind = a.dtype
    if kind.char not in "fF":
        return _of_each(np.linalg.det, a, single=single_matrix.determinant)
    # What NumPy has is a double; one that single precision cannot hold overflows in the cast.
    found = det(np.astype(a, np.result_type(kind, np.double)))
    if engine.is_handle(found):
        return engine.copy(found, dtype=kind)
    with events_reported("cast", alike=True):
        return found.astype(kind)


@implements(np.linalg.slogdet, kind="parallel", outlook=_TOGETHER)
def slogdet(a: object) -> tuple[DistArray | np.inexact, DistArray | np.floating]:
    return _of_each(np.linalg.slogdet, a, single=single_matrix.sign_and_logarithm)


@implements(np.linalg.cholesky, kind="parallel", outlook=_TOGETHER)
def cholesky(a: object, /, *, upper: bool = False) -> DistArray:
    factor = functools.partial(single_matrix.cholesky_factor, upper=upper)
    return _of_each(np.linalg.cholesky, a, single=factor, upper=upper)


@implements(np.linalg.qr, kind="axis-local", outlook=_AT_ONE)
def qr(a: object, mode: object = "reduced") -> DistArray | tuple[DistArray, ...]:
    return _of_each(np.linalg.qr, a, mode)


@implements(np.linalg.svd, kind="axis-local", outlook=_outlook_of_each("axis-local", tall=_only_values))
def svd(
    a: object, full_matrices: object = True, compute_uv: object = True, hermitian: object = False
) -> DistArray | tuple[DistArray, ...]:
    values = None if compute_uv or hermitian else _singular_values(np.linalg.svd, as_handle(a))
    if values is not None:
        return engine.wrap(values)
    return _of_each(np.linalg.svd, a, full_matrices, compute_uv, hermitian)


@implements(np.linalg.eig, kind="axis-local", outlook=_AT_ONE)
def eig(a: object) -> tuple[DistArray, DistArray]:
    return _of_each(np.linalg.eig, a)


@implements(np.linalg.eigvals, kind="axis-local", outlook=_AT_ONE)
def eigvals(a: object) -> DistArray:
    return _of_each(np.linalg.eigvals, a)


@implements(np.linalg.eigh, kind="axis-local", outlook=_AT_ONE)
def eigh(a: object, UPLO: object = "L") -> tuple[DistArray, DistArray]:
    return _of_each(np.linalg.eigh, a, UPLO)


@implements(np.linalg.eigvalsh, kind="axis-local", outlook=_AT_ONE)
def eigvalsh(a: object, UPLO: object = "L") -> DistArray:
    return _of_each(np.linalg.eigvalsh, a, UPLO)


@implements(np.linalg.cond, kind="axis-local", outlook=_outlook_of_each("axis-local", tall=_of_two_norm))
def cond(x: DistArray, p: float | Literal["fro", "nuc"] | None = None) -> object:
    x = as_handle(x)
    values = _singular_values(np.linalg.cond, x) if p is None or p in (2, -2) else None
    if values is not None and np.isnan(values).any():
        return values.dtype.type(np.nan if np.isnan(x).any() else np.inf)
    if values is not None:
        ratio = np.linalg.cond(np.diag(values), p)
        return ratio.dtype.type(np.inf) if np.isnan(ratio) and not np.isnan(values).any() else ratio
    return _of_each(np.linalg.cond, x, p)


def _outlook_of_pinv(a: object, rcond: Any = None, hermitian: object = False, *, rtol: Any = None) -> Outlook:
    return _with_cutoffs(a, rcond, rtol)


def _with_cutoffs(a: object, *cutoffs: Any) -> Outlook:
    many = [as_handle(x) for x in cutoffs if np.ndim(x)]
    return _outlook("axis-local", [as_handle(a), *many], [2, *(0 for _ in many)], together=False)


@implements(np.linalg.pinv, kind="axis-local", outlook=_outlook_of_pinv)
def pinv(a: ArrayLike, rcond: Any = None, hermitian: bool = False, *, rtol: Any = NoValue) -> DistArray:
    if np.ndim(rcond) == 0 and (rtol is NoValue or np.ndim(rtol) == 0):
        return _of_each(np.linalg.pinv, a, rcond, hermitian, **given(rtol=rtol))
    name = "rcond" if np.ndim(rcond) else "rtol"
    if name == "rcond" and rtol is not NoValue:
        np.linalg.pinv(np.zeros((0, 1, 1)), 0.0, rtol=0.0)  # NumPy's error
    if 0 in np.shape(a)[-2:]:  # NumPy looks at no cutoff
        return _of_each(np.linalg.pinv, a, None, hermitian)

    def local(matrices: object, cutoffs: Any) -> np.ndarray:
        return np.linalg.pinv(on_host(matrices), hermitian=hermitian, **{name: on_host(cutoffs)})

    return _of_stacks(local, np.linalg.pinv, [as_handle(a), as_handle(rcond if name == "rcond" else rtol)], [2, 0])


def _outlook_of_rank(A: DistArray, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Outlook:
    A, plain = as_handle(A), np.ndim(tol) == np.ndim(rtol) == 0 and (tol is None or rtol is None)
    if A.ndim < 2 and (tol is None or rtol is None):
        return Outlook("axis-local", "communicated: one partial result of each rank")
    if plain and not hermitian and _is_tall(_upright(A)):
        return _of_triangles("axis-local", A)
    return _with_cutoffs(A, tol, rtol)


@implements(np.linalg.matrix_rank, kind="axis-local", outlook=_outlook_of_rank)
def matrix_rank(A: DistArray, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> object:
    A = as_handle(A)
    if A.ndim < 2 and (tol is None or rtol is None):
        return int(not np.all(A == 0))
    values = None if hermitian or tol is not None and rtol is not None else _singular_values(np.linalg.matrix_rank, A)
    if values is not None and np.ndim(tol) == 0 and np.ndim(rtol) == 0:
        if np.isnan(values).any():
            return np.intp(0)  # none is larger than anything
        rtol = max(A.shape) * np.finfo(values.dtype).eps if tol is None and rtol is None else rtol
        return np.linalg.matrix_rank(np.diag(values), tol, rtol=rtol)
    if np.ndim(tol) == 0 and np.ndim(rtol) == 0:
        return _of_each(np.linalg.matrix_rank, A, tol, hermitian, rtol=rtol)
    name = "tol" if np.ndim(tol) else "rtol"
    if tol is not None and rtol is not None:
        np.linalg.matrix_rank(np.zeros((1, 1)), 0.0, rtol=0.0)  # NumPy's error

    def local(matrices: object, cutoffs: Any) -> object:
        values, limits = on_host(matrices), {name: on_host(cutoffs)}
        return np.linalg.matrix_rank(values, hermitian=hermitian, **limits)  # type: ignore[call-overload]

    return _of_stacks(local, np.linalg.matrix_rank, [A, as_handle(tol if name == "tol" else rtol)], [2, 0])


def _outlook_of_solve(a: DistArray, b: DistArray) -> Outlook:
    a, b = as_handle(a), as_handle(b)
    return _outlook("parallel", [a, b], [2, 1 if b.ndim == 1 else 2], together=True)


@implements(np.linalg.solve, kind="parallel", outlook=_outlook_of_solve)
def solve(a: DistArray, b: DistArray) -> DistArray:
    a, b = as_handle(a), as_handle(b)
    depths = [2, 1 if b.ndim == 1 else 2]
    return _of_stacks(_local(np.linalg.solve), np.linalg.solve, [a, b], depths, single_matrix.solved)


@implements(np.linalg.tensorsolve, kind="composed")
def tensorsolve(a: object, b: object, axes: Axes = None) -> object:
    return _tensorsolve(as_handle(a), b, axes)
