"""Linear algebra."""

from __future__ import annotations

import numpy as np

from numpy_dist.conformance.arguments import a, of, plain
from numpy_dist.conformance.case import BLAS, SUMS, Tolerance, Topic

TOPIC = Topic("Linear algebra")
case = TOPIC.case
LAPACK = Tolerance(4096, "LAPACK's result depends on the memory order of its input")

for _left, _right in (
    ((5,), (5,)), ((4, 5), (5,)), ((5,), (5, 3)), ((4, 5), (5, 3)), ((13, 7), (7, 11)), ((1, 1), (1, 1)),
    ((0, 3), (3, 2)), ((3, 0), (0, 2)), ((0,), (0,)), ((4, 1), (1, 3)),
):  # fmt: skip
    for _dtype in ("f8", "f4", "i8", "c16", "?", "e"):
        case(np.dot, a(*_left, dtype=_dtype), a(*_right, dtype=_dtype), tolerance=BLAS)
        case(np.matmul, a(*_left, dtype=_dtype), a(*_right, dtype=_dtype), tolerance=BLAS)
    case(np.matmul, a(*_left), plain(*_right), tolerance=BLAS)
    case(np.matmul, plain(*_left), a(*_right), tolerance=BLAS)
    case(np.dot, a(*_left), plain(*_right), tolerance=BLAS)
    case(np.dot, a(*_left, dtype="i4"), a(*_right), tolerance=BLAS)
    case(np.matmul, a(*_left, values="whole", view="fortran"), a(*_right, values="whole", view="flipped"))
case(np.dot, a(4, 5, values="whole"), a(5, 3, values="whole"), out=a(4, 3))
case(np.dot, a(4, 5, values="whole"), a(5, 3, values="whole"), out=a(4, 3, dtype="f4"))
case(np.dot, a(4, 5), a(4, 5))
case(np.dot, a(4, 5), 2.5)
case(np.dot, of(2.0), a(4, 5))
case(np.dot, a(2, 3, 4, values="whole"), a(4, values="whole"))
case(np.dot, a(2, 3, 4, values="whole"), a(4, 2, values="whole"))
case(np.matmul, a(4, 5), a(4, 5))
case(np.matmul, a(4, 5), of(2.0))
case(np.matmul, a(2, 4, 5, values="whole"), a(2, 5, 3, values="whole"))
for _left, _right in (
    ((2, 4, 5), (5, 3)), ((4, 5), (2, 5, 3)), ((5,), (2, 5, 3)), ((2, 4, 5), (5,)), ((3, 1, 4, 5), (2, 5, 3)),
    ((1, 4, 5), (3, 5, 2)), ((2, 4, 5), (3, 5, 2)), ((2, 4, 5), (2, 4, 3)), ((0, 4, 5), (5, 3)), ((2, 0, 5), (2, 5, 3)),
):  # fmt: skip
    for _dtype in ("f8", "i1", "F", "?", "e"):
        _tolerance = None if _dtype in ("i1", "?") else BLAS  # the signs of zeros depend on the order
        case(np.matmul, a(*_left, dtype=_dtype, values="whole"), a(*_right, dtype=_dtype, values="whole"),
             tolerance=_tolerance)  # fmt: skip
    case(np.matmul, a(*_left, view="fortran"), a(*_right, view="fortran"), tolerance=BLAS)
case(np.matmul, a(4, 5, values="whole"), a(2, 5, 3, values="whole"), out=a(2, 4, 3))
case(np.matmul, a(2, 4, 5, dtype="i4"), a(2, 5, 3), dtype="D", tolerance=BLAS)
case(np.matmul, a(4, 5, values="whole"), a(5, 3, values="whole"), out=a(4, 3))
case(np.matmul, a(4, 5, values="whole"), a(5, 3, values="whole"), out=a(4, 4))
case(np.matmul, a(4, 5, values="whole"), a(4, 5, values="whole"), via=lambda x, y: x @ y.T)
case(np.matmul, a(4, 5, values="whole"), [1, 2, 3, 4, 5], via=lambda x, y: x @ y)
case(np.matmul, [1, 2, 3, 4], a(4, 5, values="whole"), via=lambda x, y: x @ y)
case(np.linalg.matmul, a(4, 5), a(5, 3), tolerance=BLAS)
case(np.vdot, a(5), a(5), tolerance=BLAS)
case(np.vdot, a(4, 3, dtype="c16"), a(4, 3, dtype="c16"), tolerance=BLAS)
case(np.vdot, a(4), a(5))
case(np.linalg.vecdot, a(4, 5), a(4, 5), tolerance=BLAS)
case(np.linalg.vecdot, a(4, 5, dtype="c16"), a(5, dtype="c16"), tolerance=BLAS)
case(np.vecdot, of([1.0, 2j, 3.0], "O"), a(3), declines="object")
case(np.vecdot, of([[1.0, 2j, 3.0]], "O"), a(2, 3), declines="object")
case(np.dot, of([1.0, 2j, 3.0], "O"), a(3), declines="object")
case(np.dot, a(2, 3), of([1.0, 2j, 3.0], "O"), declines="object")
if hasattr(np, "vecmat"):
    case(np.vecmat, of([1.0, 2j, 3.0], "O"), a(3, 2), declines="object")
    case(np.vecmat, of([[1.0, 2j, 3.0]], "O"), a(3, 2), declines="object")
# What overflows is told in the name of the function that was called, and before its value is there.
for _dtype, _size in (("e", 300.0), ("f", 1e30), ("d", 1e200)):
    _line = of([_size] * 9, _dtype)
    for _function in (np.dot, np.vdot, np.inner, np.vecdot, np.matmul, np.linalg.vecdot):
        case(_function, _line, _line)
    case(np.einsum, "i,i", _line, _line)
    case(np.tensordot, _line, _line, 1)
    case(np.linalg.norm, _line)
    case(np.vecdot, of([[_size] * 9] * 4, _dtype), _line)
    if hasattr(np, "matvec"):
        case(np.matvec, of([[_size] * 9] * 4, _dtype), _line)
        case(np.matvec, of([[[_size] * 3] * 4] * 2, _dtype), of([[_size] * 3] * 2, _dtype))
        case(np.vecmat, _line, of([[_size] * 4] * 9, _dtype))
case(np.linalg.det, of(np.diag([1e200] * 9)))
case(np.linalg.cond, of([[1.0, 2.0]] * 8 + [[np.inf, 1.0]]))
case(np.linalg.cond, of([[1.0]] * 8 + [[np.inf]]))
case(np.linalg.cond, of([[1.0, 2.0]] * 8 + [[np.nan, 1.0]]))
case(np.linalg.det, of(np.diag([1e20] * 9), "f"))
case(np.linalg.det, of([np.diag([1e20] * 2)] * 5, "f"))
case(np.vecdot, of([[300, 300], [1, 2]], "e"), of([[300, -300], [3, 4]], "e"))  # added up in single precision
case(np.inner, a(5), a(5), tolerance=BLAS)
case(np.inner, a(3, 5), a(4, 5), tolerance=BLAS)
case(np.inner, a(3, 5), a(4, 4))
case(np.outer, a(5), a(3))
case(np.outer, a(2, 3), a(2, dtype="c8"))
case(np.outer, a(5), a(3), out=a(5, 3))
case(np.linalg.outer, a(5), a(3))
case(np.linalg.outer, a(5, 2), a(3))
case(np.tensordot, a(3, 4, 5), a(4, 5, 2), tolerance=BLAS)
case(np.tensordot, a(3, 4, 5), a(4, 3, 2), axes=([1, 0], [0, 1]), tolerance=BLAS)
case(np.tensordot, a(3, 4), a(2), axes=0)
case(np.tensordot, a(3, 4), a(3, 4), axes=1)
case(np.linalg.tensordot, a(3, 4), a(4, 2), axes=1, tolerance=BLAS)
case(np.einsum, "ij->ji", a(3, 4))
case(np.einsum, "ji", a(0, 0))
case(np.einsum, "ji", a(1, 1))
case(np.einsum, a(4, 4), of([0, 0]), tolerance=BLAS)
case(np.einsum, a(3, 4), of([0, 1]), a(4), of([1]), of([0]), tolerance=BLAS)
case(np.einsum, a(3, 4), of([0, 1]), of([1, 0]))
case(np.einsum, a(3, 3, dtype="O"), of([0, 0]), declines="objects")
case(np.einsum, "ii->i", a(4, 4))
for _subscripts, *_shapes in (
    ("ij,jk->ik", (3, 4), (4, 2)), ("ij,jk->ki", (3, 4), (4, 2)), ("ij,jk", (3, 4), (4, 2)), ("ij,j", (3, 4), (4,)),
    ("i,i", (5,), (5,)), ("ij,ij->", (3, 4), (3, 4)), ("ij,ij->i", (3, 4), (3, 4)), ("ij,ij->ji", (3, 4), (3, 4)),
    ("i,j->ij", (3,), (4,)), ("i,j->ji", (3,), (4,)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bij,bjk->ikb", (2, 3, 4), (2, 4, 5)), ("bij,bj->bi", (2, 3, 4), (2, 4)), ("ii", (4, 4)), ("ii->", (4, 4)),
    ("ij->j", (3, 4)), ("ij->", (3, 4)), ("...ij->...ji", (2, 3, 4)), ("...ij,...jk", (2, 3, 4), (4, 5)),
    ("i...,i...->...", (3, 4), (3, 4)), ("ij,jk,kl->il", (3, 4), (4, 5), (5, 2)), ("i,ij,j->", (3,), (3, 4), (4,)),
    ("ij,ik,il->jkl", (3, 2), (3, 4), (3, 2)), ("iij,jk->ik", (3, 3, 4), (4, 2)), ("ij,kl->ijkl", (2, 3), (3, 2)),
    ("ijk,jil->kl", (3, 4, 5), (4, 3, 2)), ("ij,ij->ij", (1, 4), (3, 4)), ("ij,jk->ik", (3, 1), (4, 2)),
    ("ij,jk->ik", (0, 4), (4, 2)), ("ij,jk->ik", (3, 0), (0, 2)), ("ij,jk->ij", (3, 4), (4, 2)), ("i->i", (4,)),
    ("ij,jk->ik", (3, 4), (3, 2)), ("ij->k", (3, 4)), ("ij->ii", (3, 4)), ("ij,jk", (3, 4)), ("ii", (3, 4)),
):  # fmt: skip
    _arrays = tuple(a(*_shape) for _shape in _shapes)
    case(np.einsum, _subscripts, *_arrays, tolerance=BLAS)
    if _subscripts.isascii() and len(_arrays) > 1:
        case(np.einsum, _subscripts, *_arrays, optimize=True, tolerance=BLAS)
for _dtype in "?bBhiLefFD":
    _tolerance = BLAS if _dtype in "efFD" else None
    case(np.einsum, "ij,jk->ik", a(3, 4, dtype=_dtype), a(4, 2, dtype=_dtype), tolerance=_tolerance)
    case(np.einsum, "ij,ij->j", a(3, 4, dtype=_dtype), a(3, 4, dtype=_dtype), tolerance=_tolerance)
case(np.einsum, "ij,jk->ik", a(3, 4, view="fortran"), a(4, 2, view="fortran"), tolerance=BLAS)
case(np.einsum, "ij,jk->ik", a(3, 4), a(4, 2), order="F", tolerance=BLAS)
for _order in "CFAK":
    for _optimize in (False, True):
        _options = {"order": _order, "optimize": _optimize, "tolerance": BLAS}
        case(np.einsum, "...ft,mf->...mt", a(2, 3, 5, view="fortran"), a(4, 3, view="fortran"), **_options)
        case(np.einsum, "...ft,mf->...mt", a(2, 3, 5), a(4, 3), **_options)
case(np.einsum, "ij,jk->ik", a(3, 4, dtype="i4"), a(4, 2), dtype="D", tolerance=BLAS)
case(np.einsum, "ij,jk->ik", a(3, 4), a(4, 2), dtype="f4", tolerance=BLAS)
case(np.einsum, "ij,jk->ik", a(3, 4), a(4, 2), dtype="f4", casting="unsafe", tolerance=BLAS)
case(np.einsum, "ij,jk->ik", a(3, 4), a(4, 2), out=a(3, 2), tolerance=BLAS)
case(np.einsum, "ij,jk->ik", a(3, 4), a(4, 2), out=a(3, 3))
case(np.einsum, "ij,jk->ik", a(3, 4), a(4, 2), out=a(3, 2, dtype="i4"))
case(np.einsum, a(3, 4), [0, 1], a(4, 2), [1, 2], [0, 2], tolerance=BLAS)
case(np.einsum, "ij,jk->ik", a(3, 4), a(4, 2), nonsense=3)
case(np.einsum, "ij,jk->ik", a(3, 4), plain(4, 2), tolerance=BLAS)
case(np.einsum_path, "ij,jk,kl->il", a(3, 4), a(4, 5), a(5, 2))
case(np.einsum_path, "ij,jk,kl->il", a(3, 4), a(4, 5), a(5, 2), optimize="optimal")
case(np.kron, a(2, 3), a(3, 2))
case(np.cross, a(4, 3), a(4, 3))
case(np.cross, a(3), a(3))
case(np.cross, a(3, 4), a(3, 4), axis=0)
case(np.cross, a(4), a(4))
case(np.linalg.cross, a(4, 3), a(4, 3))
case(np.linalg.cross, a(4, 2), a(4, 2))
case(np.trace, a(4, 5), tolerance=SUMS)
case(np.trace, a(4, 5, dtype="i2"), 1)
case(np.trace, a(2, 4, 5), -1, 1, 2, tolerance=SUMS)
case(np.trace, a(4))
case(np.linalg.trace, a(2, 4, 5), tolerance=SUMS)
case(np.linalg.trace, a(4, 5), offset=1, dtype="f4", tolerance=SUMS)
case(np.linalg.multi_dot, [a(3, 4), a(4, 5), a(5, 2)], tolerance=BLAS)
case(np.linalg.multi_dot, [a(4), a(4, 5), a(5)], tolerance=BLAS)
case(np.linalg.multi_dot, [a(4, 4)])
case(np.linalg.matrix_power, a(4, 4), 3, tolerance=BLAS)
case(np.linalg.matrix_power, a(4, 4), 0)
case(np.linalg.matrix_power, a(4, 3), 2)
case(np.linalg.matrix_power, a(4, 4), 1.5)
for _order in (None, 1, -1, np.inf, -np.inf, "fro"):
    case(np.linalg.norm, a(4, 5), _order, tolerance=SUMS)
    case(np.linalg.matrix_norm, a(2, 4, 5), ord=_order or "fro", tolerance=SUMS)
for _order in (None, 0, 1, 2, 3, np.inf, -np.inf):
    case(np.linalg.norm, a(7), _order, tolerance=SUMS)
    case(np.linalg.norm, a(4, 5), _order, axis=1, tolerance=SUMS)
    case(np.linalg.vector_norm, a(4, 5), ord=2 if _order is None else _order, axis=0, tolerance=SUMS)
case(np.linalg.norm, a(4, 5, dtype="c16"), tolerance=SUMS)
case(np.linalg.norm, a(4, 5, dtype="i4"), axis=0, keepdims=True, tolerance=SUMS)
case(np.linalg.norm, a(4), "fro")
case(np.linalg.norm, a(4, 4), 3)
case(np.linalg.vector_norm, a(4, 5), tolerance=SUMS)
for _function in (np.linalg.norm, np.linalg.vector_norm, np.linalg.matrix_norm):
    for _view in ("whole", "fortran", "backwards", "column"):
        case(_function, a(4, 5, view=_view), keepdims=True, tolerance=SUMS)

SQUARE = a(5, 5, values="definite")
STACK = a(3, 4, 4, values="definite")
for _function in (np.linalg.cholesky, np.linalg.det, np.linalg.inv, np.linalg.slogdet, np.linalg.eigvalsh,
                  np.linalg.eigh, np.linalg.svdvals, np.linalg.matrix_rank, np.linalg.cond, np.linalg.pinv,
                  np.linalg.eig, np.linalg.eigvals, np.linalg.qr, np.linalg.svd):  # fmt: skip
    _gathered = _function in (np.linalg.eig, np.linalg.eigvals)
    case(_function, SQUARE, tolerance=LAPACK, declines="a single matrix" if _gathered else None, alone=True)
    case(_function, STACK, tolerance=LAPACK)
    case(_function, a(2, 3, 4, 4, values="definite", view="fortran"), tolerance=LAPACK)
    case(_function, a(5, 2, 2, values="definite", dtype="F"), tolerance=LAPACK)
    case(_function, a(3, 2, 2, dtype="i4"), tolerance=LAPACK)
    case(_function, a(0, 4, 4))
    case(_function, a(3, 0, 0))
    case(_function, a(2, 3, 3, dtype="e"))
    case(_function, a(2, 3, 3, dtype="U3"))
    if _function is not np.linalg.matrix_rank:
        case(_function, a(4))
    if _function not in (np.linalg.svd, np.linalg.svdvals, np.linalg.matrix_rank, np.linalg.pinv, np.linalg.qr,
                         np.linalg.cond):  # fmt: skip
        case(_function, a(2, 3, 4))
        case(_function, a(3, 4))
    else:
        case(_function, a(2, 3, 4), tolerance=LAPACK)
case(np.linalg.cholesky, of([[1.0, 2.0], [2.0, 1.0]]))
case(np.linalg.cholesky, of([[[1.0, 2.0], [2.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]]]))
case(np.linalg.cholesky, STACK, upper=True, tolerance=LAPACK)
case(np.linalg.inv, of([[1.0, 2.0], [2.0, 4.0]]))
case(np.linalg.inv, of([[[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]]]))
case(np.linalg.det, of([[[1.0, 2.0], [2.0, 4.0]], [[1e200, 0.0], [0.0, 1e200]]]))
case(np.linalg.solve, SQUARE, a(5), tolerance=LAPACK)
for _dtype in "fdFDi":
    _square = a(9, 9, dtype=_dtype, values="definite")
    for _function in (np.linalg.det, np.linalg.slogdet, np.linalg.inv, np.linalg.cholesky):
        case(_function, _square, tolerance=LAPACK)
    for _other in "fDi":
        case(np.linalg.solve, _square, a(9, dtype=_other), tolerance=LAPACK)
        case(np.linalg.solve, _square, a(9, 4, dtype=_other, view="fortran"), tolerance=LAPACK)
    case(np.linalg.cholesky, _square, upper=True, tolerance=LAPACK)
case(np.linalg.solve, SQUARE, a(5, 0))
case(np.linalg.solve, SQUARE, a(4))
case(np.linalg.solve, SQUARE, a(4, 2))
case(np.linalg.solve, plain(5, 5, values="definite"), a(5), tolerance=LAPACK)
case(np.linalg.solve, SQUARE, plain(5, 3), tolerance=LAPACK)
case(np.linalg.solve, a(300, 300, values="definite"), a(300, 3), tolerance=LAPACK)
for _function in (np.linalg.det, np.linalg.slogdet, np.linalg.inv, np.linalg.cholesky):
    case(_function, a(4, 4, values="zeros"))
    case(_function, a(0, 0))
    case(_function, a(300, 300, values="definite"), tolerance=LAPACK)
case(np.linalg.det, of([[1e200, 0.0], [0.0, 1e200]]))
case(np.linalg.det, of([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [4.0, -3.0, 8.0]]), tolerance=LAPACK)
case(np.linalg.slogdet, of([[0.0, 1.0], [1.0, 0.0]]))
case(np.linalg.cholesky, a(5, 5, dtype="D", values="definite", view="fortran"), tolerance=LAPACK)
case(np.linalg.solve, STACK, a(3, 4, 2), tolerance=LAPACK)
case(np.linalg.solve, STACK, a(4), tolerance=LAPACK)
case(np.linalg.solve, STACK, a(4, 2, dtype="D"), tolerance=LAPACK)
case(np.linalg.solve, plain(4, 4, values="definite"), a(5, 4, 1), tolerance=LAPACK)
case(np.linalg.solve, a(2, 1, 3, 3, values="definite"), a(5, 3, 2), tolerance=LAPACK)
case(np.linalg.solve, STACK, a(5))
case(np.linalg.solve, STACK, a(3, 5, 2))
case(np.linalg.solve, STACK, a(2, 4, 2))
case(np.linalg.solve, a(3, 2, 2, values="ones"), a(3, 2, 1))
for _rows, _columns in ((6, 3), (31, 4), (5, 5), (9, 1)):
    for _dtype in "fdFDi":
        case(np.linalg.lstsq, a(_rows, _columns, dtype=_dtype), a(_rows), tolerance=LAPACK)
        case(np.linalg.lstsq, a(_rows, _columns, dtype=_dtype), a(_rows, 2, dtype=_dtype), tolerance=LAPACK)
        case(np.linalg.svdvals, a(_rows, _columns, dtype=_dtype), tolerance=LAPACK)
        case(np.linalg.svdvals, a(_columns, _rows, dtype=_dtype), tolerance=LAPACK)
        case(np.linalg.svd, a(_rows, _columns, dtype=_dtype), compute_uv=False, tolerance=LAPACK)
        case(np.linalg.cond, a(_rows, _columns, dtype=_dtype), tolerance=LAPACK)
        case(np.linalg.matrix_rank, a(_rows, _columns, dtype=_dtype))
        case(np.linalg.norm, a(_rows, _columns, dtype=_dtype), 2, tolerance=LAPACK)
case(np.linalg.lstsq, a(31, 4), a(31), 0.6, tolerance=LAPACK)
case(np.linalg.lstsq, a(31, 4), a(31, 3), -1, tolerance=LAPACK)
case(np.linalg.lstsq, a(31, 4, values="ones"), a(31, 3), tolerance=LAPACK)
case(np.linalg.lstsq, a(31, 4), plain(31), tolerance=LAPACK)
case(np.linalg.lstsq, a(31, 4), a(30))
case(np.linalg.lstsq, a(31), a(31))
case(np.linalg.lstsq, a(31, 4, dtype="U3"), a(31))
case(np.linalg.lstsq, a(3, 4), a(3), tolerance=LAPACK)
case(np.linalg.svdvals, a(31, 4, values="nans"))
case(np.linalg.cond, a(31, 4, values="nans"))
case(np.linalg.cond, a(31, 4), -2, tolerance=LAPACK)
case(np.linalg.cond, a(31, 4, values="zeros"))
case(np.linalg.cond, a(31, 4), 1)
case(np.linalg.matrix_rank, a(31, 4, values="ones"))
case(np.linalg.matrix_rank, a(31, 4), 5.5)
case(np.linalg.matrix_rank, a(31, 4), rtol=0.9)
case(np.linalg.norm, a(31, 4), "nuc", tolerance=LAPACK)
case(np.linalg.norm, a(31, 4), -2, tolerance=LAPACK)
case(np.linalg.norm, a(2, 31, 4), 2, axis=(1, 2), keepdims=True, tolerance=LAPACK)
case(np.linalg.matrix_norm, a(31, 4), ord=2, tolerance=LAPACK)
case(np.linalg.tensorinv, a(4, 6, 8, 3), 2, tolerance=LAPACK)
case(np.linalg.tensorsolve, a(2, 3, 6), a(2, 3), tolerance=LAPACK)
case(np.linalg.tensorsolve, a(2, 3, 6), a(2, 4))
case(np.linalg.tensorsolve, plain(2, 3, 6), a(2, 3), tolerance=LAPACK)
case(np.linalg.tensorsolve, a(2, 3, 6, values="ones"), a(2, 3))
case(np.linalg.tensorinv, a(2, 3, 6), 2, tolerance=LAPACK)
case(np.linalg.tensorinv, a(4, 6, 8, 3), 0)
case(np.linalg.tensorinv, a(4, 6, 8), 2)
case(np.linalg.qr, a(5, 3), tolerance=LAPACK)
for _mode in ("complete", "r", "raw", "other"):
    case(np.linalg.qr, a(4, 5, 3), _mode, tolerance=LAPACK)
    case(np.linalg.qr, a(9, 4, dtype="D"), _mode, tolerance=LAPACK)
    case(np.linalg.qr, a(3, 7, dtype="f4"), _mode, tolerance=LAPACK)
case(np.linalg.qr, a(40, 3, dtype="i4"), tolerance=LAPACK)
case(np.linalg.svd, a(5, 3), full_matrices=False, tolerance=LAPACK)
case(np.linalg.svd, a(3, 5, dtype="D"), tolerance=LAPACK)
case(np.linalg.svd, SQUARE, hermitian=True, tolerance=LAPACK)
case(np.linalg.svd, SQUARE, compute_uv=False, hermitian=True, tolerance=LAPACK)
case(np.linalg.svd, a(5, 5, values="nans"))
case(np.linalg.pinv, a(5, 3), tolerance=LAPACK)
case(np.linalg.pinv, a(3, 5, dtype="F"), 0.1, tolerance=LAPACK)
case(np.linalg.pinv, SQUARE, hermitian=True, rtol=None, tolerance=LAPACK)
case(np.linalg.eigh, a(5, 5, dtype="D"), "u", tolerance=LAPACK)
case(np.linalg.eigh, SQUARE, "X")
case(np.linalg.eigvalsh, a(5, 5, dtype="f4"), "U", tolerance=LAPACK)
case(np.linalg.svd, a(4, 5, 3), full_matrices=False, tolerance=LAPACK)
case(np.linalg.svd, a(4, 5, 3), compute_uv=False, tolerance=LAPACK)
case(np.linalg.svd, STACK, hermitian=True, tolerance=LAPACK)
case(np.linalg.eigh, STACK, "U", tolerance=LAPACK)
case(np.linalg.eigvalsh, STACK, UPLO="X")
case(np.linalg.eigvals, of([[[0.0, 1.0], [-1.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]]]), tolerance=LAPACK)
case(np.linalg.eig, a(3, 2, 2, values="nans"))
for _order in (1, -1, 2, -2, np.inf, -np.inf, "fro"):
    case(np.linalg.cond, STACK, _order, tolerance=LAPACK)
case(np.linalg.cond, a(3, 2, 2, values="ones"), 1)
case(np.linalg.cond, STACK, 7)
case(np.linalg.pinv, a(3, 4, 2), 0.1, tolerance=LAPACK)
case(np.linalg.pinv, a(3, 4, 2), plain(3, values="unit"), tolerance=LAPACK)
case(np.linalg.pinv, a(3, 4, 2), rtol=0.2, tolerance=LAPACK)
case(np.linalg.pinv, a(3, 4, 2), 0.2, rtol=0.2)
case(np.linalg.matrix_rank, a(7))
case(np.linalg.matrix_rank, a(7, values="zeros"))
case(np.linalg.matrix_rank, STACK, 5.0)
case(np.linalg.matrix_rank, STACK, a(3, values="large"))
case(np.linalg.matrix_rank, STACK, rtol=[0.1, 0.5, 0.9])
case(np.linalg.matrix_rank, STACK, 1.0, rtol=1.0)

# Keywords.
case(np.cross, a(3, 4), a(4, 3), axisa=0, axisb=1, axisc=0)
case(np.cross, a(3, 4), a(5, 3, 1), axisa=0, axisb=1)
case(np.cross, a(4, 3), a(4, 3), axisc=0)
case(np.cross, a(4, 3), a(4, 3), axisa=2)
case(np.cross, a(3, 4), a(3, 4), axis=0)
case(np.linalg.cross, a(3, 4), a(3, 4), axis=0)
case(np.linalg.cross, a(3, 4), a(3, 4), axis=2)
case(np.linalg.matrix_norm, a(3, 4, 5), keepdims=True, tolerance=SUMS)
case(np.linalg.vector_norm, a(4, 5), keepdims=True, tolerance=SUMS)
case(np.linalg.vector_norm, a(4, 5), axis=1, keepdims=True, tolerance=SUMS)
case(np.linalg.matrix_rank, STACK, hermitian=True)
case(np.linalg.pinv, STACK, hermitian=True, tolerance=LAPACK)
case(np.linalg.multi_dot, [a(3, 4), a(4, 5), a(5, 2)], out=a(3, 2), tolerance=BLAS)
case(np.linalg.multi_dot, [a(3, 4), a(4, 5), a(5, 2)], out=a(2, 3))
case(np.linalg.tensorinv, a(6, 2, 3), 1, tolerance=LAPACK)
case(np.linalg.tensorsolve, a(2, 6, 3), a(2, 3), axes=(1,), tolerance=LAPACK)
case(np.linalg.vecdot, a(5, 4), a(5, 3, 4), axis=-1, tolerance=BLAS)
case(np.linalg.vecdot, a(5, 4), a(5, 4), axis=0, tolerance=BLAS)
case(np.vecdot, a(5, 4), a(5, 4), of(-2), tolerance=BLAS, via=lambda x, y, axis: np.vecdot(x, y, axes=[0, axis]))
case(np.trace, a(4, 5, dtype="i2"), dtype="f4")
case(np.trace, a(3, 4, 5), axis1=1, axis2=2, out=a(3), tolerance=SUMS)
case(np.trace, a(3, 4, 5), out=a(3))
case(np.cross, a(2), a(2))
case(np.trace, a(4, 5, dtype="i4"), dtype=">f8")
case(np.dot, a(3, 0), a(0, 2, dtype="M8[s]"), declines="object")
case(np.dot, a(0, 3), a(3, dtype="M8[s]"), declines="object")
case(np.dot, of(3), a(4, dtype="m8[s]"))
