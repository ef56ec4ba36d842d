"""Iterative solvers of `scipy.sparse.linalg` for distributed vectors and operators on them.

References
----------
R. Barrett et al., Templates for the Solution of Linear Systems, SIAM 1994: CG (2.3.1), BiCGSTAB (2.3.8).
Y. Saad and M. H. Schultz, GMRES, SIAM J. Sci. Stat. Comput. 7 (1986): with modified Gram-Schmidt.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse.linalg as solvers

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.dispatch.core.overrides import implements
from numpy_dist.dispatch.core.registry import decline

if TYPE_CHECKING:
    from numpy_dist.distarray import DistArray

Operator = Callable[[Any], Any]


def register() -> None:
    """Register the solvers."""
    _register(solvers.cg, _conjugate_gradients)
    _register(solvers.bicgstab, _bicgstab)
    _register(solvers.gmres, _gmres)


def _register(function: Function, solve: Callable[..., tuple[DistArray, int]]) -> None:
    signature = inspect.signature(function)

    def solver(*args: object, **kwargs: object) -> tuple[DistArray, int]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        b = given["b"]
        if not engine.is_handle(b) or b.ndim != 1:
            decline("the right-hand side must be a distributed vector")
        kind = np.result_type(b.dtype, getattr(given["A"], "dtype", None) or b.dtype, np.float32)
        tolerance = max(float(given["atol"] or 0.0), float(given["rtol"]) * float(np.linalg.norm(b)))
        x = np.zeros_like(b, dtype=kind) if given["x0"] is None else np.array(given["x0"], dtype=kind, like=given["b"])
        most = 10 * b.shape[0] if given["maxiter"] is None else int(given["maxiter"])
        if float(np.linalg.norm(b)) == 0:
            return b.astype(kind), 0
        callback = given["callback"] or _ignore
        more = {name: given[name] for name in ("restart", "callback_type") if name in given}
        return solve(operator(given["A"]), operator(given["M"]), b.astype(kind), x, tolerance, most, callback, **more)

    solver.__name__ = solver.__qualname__ = function.__name__
    solver.__signature__ = signature  # type: ignore[attr-defined]
    implements(function)(solver)


def _ignore(_: object) -> None:
    """In the place of a callback that was not given."""


def operator(a: object) -> Operator:
    """The product with `a`: a matrix, or a LinearOperator whose `matvec` takes and returns distributed vectors."""
    if a is None:
        return lambda v: v
    if isinstance(a, solvers.LinearOperator):
        return a._matvec  # `matvec` itself makes an ndarray of its argument
    if engine.is_handle(a) or isinstance(a, np.ndarray):
        return lambda v: a @ v
    decline(f"a matrix of type {type(a).__name__}: a LinearOperator says how it is applied to a distributed vector")


def _conjugate_gradients(
    a: Operator,
    m: Operator,
    b: DistArray,
    x: DistArray,
    tolerance: float,
    most: int,
    callback: Callable[[DistArray], object],
) -> tuple[DistArray, int]:
    r = b - a(x)
    if float(np.linalg.norm(r)) <= tolerance:
        return x, 0
    p, rho = None, 0.0
    for _ in range(most):
        z = m(r)
        before, rho = rho, np.vdot(r, z)
        p = z if p is None else z + (rho / before) * p
        q = a(p)
        alpha = rho / np.vdot(p, q)
        x = x + alpha * p
        r = r - alpha * q
        callback(x)
        if float(np.linalg.norm(r)) <= tolerance:
            return x, 0
    return x, most


def _bicgstab(
    a: Operator,
    m: Operator,
    b: DistArray,
    x: DistArray,
    tolerance: float,
    most: int,
    callback: Callable[[DistArray], object],
) -> tuple[DistArray, int]:
    r = b - a(x)
    if float(np.linalg.norm(r)) <= tolerance:
        return x, 0
    shadow, p = r, None
    v: Any = None
    rho = alpha = omega = 1.0
    for _ in range(most):
        before, rho = rho, np.vdot(shadow, r)
        if abs(rho) < np.finfo(b.dtype).eps ** 2:
            return x, -10
        p = r if p is None else r + (rho / before) * (alpha / omega) * (p - omega * v)
        direction = m(p)
        v = a(direction)
        alpha = rho / np.vdot(shadow, v)
        s = r - alpha * v
        if float(np.linalg.norm(s)) <= tolerance:
            x = x + alpha * direction
            callback(x)
            return x, 0
        correction = m(s)
        t = a(correction)
        omega = np.vdot(t, s) / np.vdot(t, t)
        x = x + alpha * direction + omega * correction
        r = s - omega * t
        callback(x)
        if float(np.linalg.norm(r)) <= tolerance:
            return x, 0
        if abs(omega) < np.finfo(b.dtype).eps ** 2:
            return x, -11
    return x, most


def _gmres(
    a: Operator,
    m: Operator,
    b: DistArray,
    x: DistArray,
    tolerance: float,
    most: int,
    callback: Callable[[DistArray | float], object],
    restart: int | None,
    callback_type: str | None,
) -> tuple[DistArray, int]:
    """Restarted GMRES, preconditioned from the left: `most` counts restarts, or steps where SciPy counts steps."""
    if callback_type not in (None, "x", "pr_norm", "legacy"):
        raise ValueError(f"Unknown callback_type: {callback_type!r}")
    every_step = _ignore if callback_type == "x" else callback
    norm, left = float(np.linalg.norm(b)), most  # steps that are left, where they count
    by_steps = callback_type in (None, "legacy") and callback is not _ignore
    for _ in range(most):
        r = b - a(x)
        if float(np.linalg.norm(r)) <= tolerance or (by_steps and left <= 0):
            break
        r = m(r)
        wanted = tolerance / norm * float(np.linalg.norm(m(b)))
        steps = min(restart or 20, b.shape[0], left if by_steps else b.shape[0])
        change, done = _krylov(lambda v: m(a(v)), r, steps, wanted, lambda rest: every_step(rest / norm))
        x, left = x + change, left - done
        if callback_type == "x":
            callback(x)
    return x, 0 if float(np.linalg.norm(b - a(x))) <= tolerance else most


def _krylov(
    a: Operator, r: DistArray, steps: int, wanted: float, each: Callable[[float], object]
) -> tuple[DistArray, int]:
    """The element of a Krylov space with the least residual, and how many steps were made."""
    size = float(np.linalg.norm(r))
    basis = [r / size]
    small = np.zeros((steps + 1, steps), r.dtype)
    start = np.zeros(steps + 1, r.dtype)
    start[0] = size
    comm = engine.runtime().comm
    for k in range(steps):
        w = a(basis[k])
        length = float(np.linalg.norm(w))
        for number, v in enumerate(basis):
            small[number, k] = along = np.vdot(v, w)
            w = w - along * v
        small[k + 1, k] = rest = float(np.linalg.norm(w))
        y = np.linalg.lstsq(small[: k + 2, : k + 1], start[: k + 2])[0]
        left = float(np.linalg.norm(start[: k + 2] - small[: k + 2, : k + 1] @ y))
        # LAPACK may give other bits on another processor, and whether to go on must be the same on every rank.
        y, left = comm.bcast((y, left))
        each(left)
        if left <= wanted or rest <= np.finfo(r.dtype).eps * length:
            break
        basis.append(w / rest)
    return sum(c * v for c, v in zip(y, basis, strict=False)), k + 1
