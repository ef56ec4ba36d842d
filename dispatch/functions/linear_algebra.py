"""Linear algebra: products of vectors and matrices, and what is made of them."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.argument_types import Function, Keywords
from numpy_dist.backends.library import compute
from numpy_dist.dispatch.core.registry import decline, implements
from numpy_dist.dispatch.functions.linear_algebra_contractions import known_of_ranks, layout_of_sum, tensors
from numpy_dist.dispatch.patterns.arguments import NoValue, as_handle, astype, type_of
from numpy_dist.dispatch.patterns.blocks import blocks, row_bounds
from numpy_dist.dispatch.patterns.gufunc import deliver, example_of, generalised
from numpy_dist.dispatch.patterns.numpy_source import adopt, numpy_source
from numpy_dist.dispatch.patterns.stacks import on_stacks
from numpy_dist.engine import events_reported
from numpy_dist.ir import structure
from numpy_dist.layout.layout import Cut, Layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.layout.regions import box_shape
from numpy_dist.parallel.contraction import Contraction
from numpy_dist.parallel.matmul import multiply, ring, ring_on_device
from numpy_dist.parallel.mesh_product import MeshProduct, best_mesh
from numpy_dist.parallel.narrow_product import narrow_product, words_of_narrow
from numpy_dist.parallel.panel_gram import panel_gram, words_of_panel_gram
from numpy_dist.parallel.panels import HeldMatrix, panel_product, words_of_panels
from numpy_dist.parallel.partial_product import partial_product
from numpy_dist.parallel.pieces import at_most, pieces
from numpy_dist.parallel.product_task import ProductTask
from numpy_dist.parallel.row_gram import row_gram

if TYPE_CHECKING:
    from numpy import _CastingKind
    from numpy.typing import ArrayLike

    from numpy_dist.backends.library import Array
    from numpy_dist.distarray import DistArray

adopt(
    __name__,
    np.kron,
    np.tensordot,
    np.outer,
    np.linalg.cross,
    np.linalg.matmul,
    np.linalg.matrix_power,
    np.linalg.multi_dot,
    np.linalg.outer,
    np.linalg.tensordot,
    np.linalg.trace,
    np.linalg.vecdot,
)


def _norm(function: Function) -> Function:
    """NumPy's code, which with `keepdims` makes an array of a number."""
    source = numpy_source(function)

    @functools.wraps(source)
    def norm(*args: object, **kwargs: object) -> object:
        made = source(*args, **kwargs)
        return engine.wrap(made) if type(made) is np.ndarray else made

    return norm


for _measure in (np.linalg.matrix_norm, np.linalg.vector_norm):
    implements(_measure, kind="composed", source=__name__)(_norm(_measure))

_norm_of_flat = _norm(np.linalg.norm)


@implements(np.linalg.norm, kind="composed")
def norm(x: Any, ord: object = None, axis: object = None, keepdims: bool = False) -> object:
    of_all = axis is None and (ord is None or (isinstance(ord, str) and ord in ("f", "fro") and np.ndim(x) == 2))
    if of_all and _is_cut_inside(x):
        with np.errstate(all="ignore") if _SILENT else engine.told_as("dot"):
            squares = x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x
            return np.sqrt(squares.sum(keepdims=keepdims))
    return _norm_of_flat(x, ord, axis, keepdims)


def _is_cut_inside(x: DistArray) -> bool:
    """Whether several ranks have several pieces of a flattened array, in the order in which it lies in memory.

    Its products would have to move it; sums of what each rank multiplies do not, in the precision of most dtypes.
    """
    layout = _box_layout(x)
    if layout is None or layout.size == 1 or x.ndim < 2 or x.dtype.char not in "fdgFDG":
        return False
    longest = max(x.strides)
    return any(x.strides[axis] != longest for axis in layout.cut_axes)


@implements(np.trace, kind="composed")
def trace(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: Any = None
) -> object:
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, dtype=type_of(dtype), out=out)


@implements(np.matmul, kind="parallel")
def matmul(
    x1: object,
    x2: object,
    /,
    out: DistArray | np.ndarray | tuple[DistArray | np.ndarray] | None = None,
    casting: _CastingKind = "same_kind",
    order: str = "K",
    dtype: DTypeLike | None = None,
    signature: object = None,
    axes: object = NoValue,
    axis: object = NoValue,
    keepdims: bool = False,
) -> object:
    if axes is not NoValue or axis is not NoValue or keepdims or signature is not None or order not in ("K", "C"):
        options = {"axes": axes, "axis": axis, "keepdims": keepdims, "signature": signature, "order": order}
        return generalised(np.matmul, x1, x2, out=out, casting=casting, dtype=dtype, **options)
    a, b = as_handle(x1), as_handle(x2)
    if a.ndim == 0 or b.ndim == 0:
        engine.numpy_error(np.matmul, (x1, x2), {})
    target = out[0] if isinstance(out, tuple) else out
    loop: Keywords = {} if dtype is None else {"signature": (None, None, np.dtype(dtype))}
    kinds = np.matmul.resolve_dtypes(
        (a.dtype, b.dtype, None if target is None else target.dtype), casting=casting, **loop
    )
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        engine.numpy_error(np.matmul, (a, b), {})
    if a.ndim > 2 and b.ndim > 2:
        return _deliver(_stacks(a, b, kinds[2]), target, casting, (a, b))
    if b.ndim > 2:  # transposed, the stack is the left operand
        product = np.matmul(np.swapaxes(b, -1, -2), a.T, dtype=kinds[2], casting="unsafe")
        product = product if a.ndim == 1 else engine.copy(np.swapaxes(product, -1, -2), order="C")
        return _deliver(product, target, casting, (a, b))
    return _deliver(_product(a, b, kinds[2], "matmul"), target, casting, (a, b))


def _deliver(
    result: DistArray | np.ndarray | np.generic,
    target: DistArray | np.ndarray | None,
    casting: _CastingKind,
    operands: tuple[DistArray, DistArray],
) -> object:
    """The product, or `out` with the product in it."""
    if target is None:
        return result
    if tuple(target.shape) != np.shape(result):
        example_of(np.matmul, *operands, target, {"casting": casting})  # NumPy's error, unless it is repeated in `out`
    deliver(result, target, casting)
    return target


def _dot_is_silent() -> bool:
    """Whether NumPy's `dot` does not tell of floating-point events, as that of 2.1."""
    with np.errstate(over="raise"):
        try:
            np.dot(np.array([1e200]), np.array([1e200]))
        except FloatingPointError:
            return False
    return True


_SILENT = _dot_is_silent()


@implements(np.dot, kind="parallel")
def dot(a: object, b: object, out: Any = None) -> object:
    a, b = as_handle(a), as_handle(b)
    pairs = a.ndim and b.ndim
    if pairs and a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        engine.numpy_error(np.dot, (a, b))
    n = 0 if pairs and 0 in (a.size, b.size) else 1  # where nothing is multiplied, there are fewer errors
    left, right = (() if a.ndim == 0 else (1, n)), (() if a.ndim and not b.ndim else (n, 1))
    dtype = np.dot(np.zeros(left, a.dtype), np.zeros(right, b.dtype)).dtype
    if dtype.hasobject:
        decline("arrays of Python objects")
    if out is not None:
        _check_output(out, (*a.shape[:-1], *b.shape[:-2], *b.shape[1:][-1:]) if pairs else a.shape + b.shape, dtype)
    if not pairs:
        result = _scaled(a, b, dtype, "C")
    elif _is_of_two(a, b, dtype):
        result = np.multiply(np.reshape(a, (1,) * (a.ndim + b.ndim - 2)), np.reshape(b, ()), dtype=dtype)
    elif b.ndim > 2:
        result = np.tensordot(a, b, (-1, -2))
    else:
        with np.errstate(all="ignore") if _SILENT else nullcontext():
            result = _product(a, b, dtype, "dot")
    if out is None:
        return result
    np.copyto(out, result)
    return out if out.ndim else out[()]


def _check_output(out: DistArray | np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """NumPy's errors for an output of `numpy.dot`, which come before anything is computed."""
    if out.dtype != dtype or out.ndim != len(shape) or not _is_c_array(out):
        raise ValueError(
            "output array is not acceptable (must have the right datatype, number of dimensions, and be a C-Array)"
        )
    if tuple(out.shape) != shape:
        raise ValueError("output array has wrong dimensions")


def _is_of_two(a: DistArray, b: DistArray, dtype: np.dtype) -> bool:
    """Whether NumPy's BLAS path multiplies two numbers: other products are added to 0, which loses a zero's sign."""
    return a.size == b.size == 1 and a.ndim <= 2 and b.ndim <= 2 and dtype.char in "fdFD"


def _scaled(
    a: DistArray, b: DistArray, dtype: np.dtype, order: Literal["C", "K"]
) -> DistArray | np.ndarray | np.generic:
    """The product of an array and a number; BLAS adds that of a matrix to 0."""
    product = np.multiply(a, b, order=order)
    if dtype.char not in "fdFD" or max(a.ndim, b.ndim) > 2 or _is_of_two(a, b, dtype):
        return product
    return np.add(product, np.zeros((), dtype)[()])


def _is_c_array(x: object) -> bool:
    return engine.metadata(x).flags.c_contiguous and engine.may_write(engine.metadata(x))


@implements(np.vecdot, kind="composed")
def vecdot(x1: object, x2: object, /, **kwargs: object) -> object:
    if kwargs:
        return generalised(np.vecdot, x1, x2, **kwargs)
    a, b = as_handle(x1), as_handle(x2)
    if a.ndim == 0 or b.ndim == 0 or a.shape[-1] != b.shape[-1] or not _meet(a.shape[:-1], b.shape[:-1]):
        engine.numpy_error(np.vecdot, (a, b))
    left, right, dtype = np.vecdot.resolve_dtypes((a.dtype, b.dtype, None))
    if a.ndim == b.ndim == 1:
        first = np.conjugate(a) if a.dtype.kind in "cO" else a
        return _product(_converted(first, left), _converted(b, right), dtype, "vecdot")
    with engine.told_as("vecdot"):
        work = _work_dtype(dtype)
        a, b = (_converted(_converted(x, own), work) for x, own in ((a, left), (b, right)))
        products = np.multiply(np.conjugate(a) if a.dtype.kind in "cO" else a, b, dtype=work)
        total = np.any(products, axis=-1) if work == np.bool_ else np.sum(products, axis=-1, dtype=work)
        return _converted(total, dtype)


def matvec(x1: object, x2: object, /, **kwargs: object) -> object:
    if kwargs:
        return generalised(np.matvec, x1, x2, **kwargs)
    a, b, dtype = _for_loop(np.matvec, x1, x2)
    if a.ndim < 2 or b.ndim < 1 or a.shape[-1] != b.shape[-1] or not _meet(a.shape[:-2], b.shape[:-1]):
        engine.numpy_error(np.matvec, (a, b))
    with engine.told_as("matvec"):
        return np.matmul(a, b, dtype=dtype) if b.ndim == 1 else np.matmul(a, b[..., None], dtype=dtype)[..., 0]


def vecmat(x1: object, x2: object, /, **kwargs: object) -> object:
    if kwargs:
        return generalised(np.vecmat, x1, x2, **kwargs)
    a, b, dtype = _for_loop(np.vecmat, x1, x2)
    if a.ndim < 1 or b.ndim < 2 or a.shape[-1] != b.shape[-2] or not _meet(a.shape[:-1], b.shape[:-2]):
        engine.numpy_error(np.vecmat, (a, b))
    a = np.conjugate(a) if a.dtype.kind in "cO" else a
    with engine.told_as("vecmat"):
        return np.matmul(a, b, dtype=dtype) if a.ndim == 1 else np.matmul(a[..., None, :], b, dtype=dtype)[..., 0, :]


def _meet(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether shapes can be broadcast together."""
    return all(1 in (n, m) or n == m for n, m in zip(reversed(one), reversed(other), strict=False))


def _for_loop(
    ufunc: np.ufunc, x1: object, x2: object
) -> tuple[DistArray | np.ndarray, DistArray | np.ndarray, np.dtype]:
    """The operands in the dtypes of NumPy's loop, and the dtype of its result."""
    a, b = as_handle(x1), as_handle(x2)
    left, right, dtype = ufunc.resolve_dtypes((a.dtype, b.dtype, None))
    return _converted(a, left), _converted(b, right), dtype


if hasattr(np, "matvec"):  # since NumPy 2.2
    implements(np.matvec, kind="composed")(matvec)
    implements(np.vecmat, kind="composed")(vecmat)


@implements(np.inner, kind="composed")
def inner(a: object, b: object, /) -> object:
    a, b = as_handle(a), as_handle(b)
    if a.ndim == 0 or b.ndim == 0:
        dtype = np.inner(np.zeros((1, 1), a.dtype), np.zeros((1, 1), b.dtype)).dtype
        if dtype.hasobject:
            decline("arrays of Python objects")
        return _scaled(a, b, dtype, "K")
    if a.shape[-1] != b.shape[-1]:
        engine.numpy_error(np.inner, (a, b))
    if b.ndim <= 2:
        return np.dot(a, np.transpose(b))
    return np.tensordot(a, b, (-1, -1))


@implements(np.vdot, kind="composed")
def vdot(a: Any, b: Any, /) -> object:
    a, b = as_handle(a), as_handle(b)
    if a.shape == b.shape and a.dtype == b.dtype and _is_cut_inside(a) and engine.is_sharded(b):
        with np.errstate(all="ignore"):
            return (np.conjugate(a) * b).sum()
    a, b = np.ravel(a), np.ravel(b)
    if a.shape != b.shape:
        engine.numpy_error(np.vdot, (a, b))
    dtype = np.vdot(np.zeros(1, a.dtype), np.zeros(1, b.dtype)).dtype  # or NumPy's errors
    a = np.conjugate(a) if a.dtype.kind in "cO" else a
    with np.errstate(all="ignore"):  # as NumPy, which does not look at what vdot meets
        return _product(a, b, dtype, "vdot")


# -- the product of two matrices -------------------------------------------------------------------------------------


def _product(a: DistArray, b: DistArray, dtype: np.dtype, name: str) -> DistArray | np.ndarray | np.generic:
    """``a @ b`` for any number of axes of `a` and one or two of `b`; a scalar for two vectors."""
    if dtype.hasobject:
        decline("arrays of Python objects")
    shape = (*a.shape[:-1], *b.shape[1:])
    if dtype.kind != "m" and dtype != np.float16 and engine.runtime().size == 1 and engine.device(dtype) is None:
        if _is_at_hand(a) and _is_at_hand(b):
            return _of_one_rank(a, b, dtype, name)
    if engine.device(dtype) is None:
        a, b = _had_by_all(a), _had_by_all(b)
    if a.ndim > 2 and b.ndim == 2:
        made = tensors(a, np.transpose(b), 0, 1, dtype, name)
        if made is not None:
            return made
    left = np.reshape(a, (prod(a.shape[:-1]), a.shape[-1]))
    right = b if b.ndim == 2 else np.reshape(b, (-1, 1))
    if dtype.kind == "m":
        result = np.reshape(_matrices_of_times(left, right, dtype, name), shape)
    else:
        left, right = (_for_product(x, dtype) for x in (left, right))
        result = np.reshape(_matrices(left, right, dtype, name), shape)
    return engine.item(result) if not shape else result


def _had_by_all(x: DistArray) -> DistArray:
    """An operand of which each rank has all, as a replicated array: nothing of it has to travel."""
    layout = _box_layout(x)
    return engine.replicated(engine.shard(x)) if layout is not None and layout.is_replicated else x


def _work_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype in which NumPy multiplies and adds up: half precision in single precision."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def _for_product(x: Any, dtype: np.dtype) -> Any:
    """An operand as it is, where no value is lost when it is converted by parts as it is multiplied; else converted."""
    work = _work_dtype(dtype)
    if engine.device(work) is None and np.can_cast(x.dtype, dtype, "safe"):
        return x
    return _converted(_converted(x, dtype), work)


def _converted(x: Any, dtype: np.dtype) -> Any:
    return x if x.dtype == dtype else astype(x, dtype)


def _matrices_of_times(a: Any, b: Any, dtype: np.dtype, name: str) -> DistArray:
    """NumPy's product with times: that of their numbers, since NumPy 2.5 in their common unit."""
    integer = np.dtype(np.int64)
    as_they_are = np.datetime_data(dtype)[0] == "generic"
    times = (x if as_they_are and x.dtype.kind == "m" else _converted(x, dtype) for x in (a, b))
    left, right = (x.view(integer) for x in times)
    return _matrices(left, right, integer, name).view(dtype)


def _matrices(a: DistArray, b: DistArray, dtype: np.dtype, name: str) -> DistArray:
    """The product of two matrices by the algorithm that moves the fewest elements (known from layouts alone).

    That with its own transpose is computed by halves, unless its inner extent is cut: then NumPy does so on each rank.
    So is that with its adjoint, also where the inner extent is cut, as long as the conjugate has not been computed.
    """
    size = engine.runtime().size
    (m, k), n = a.shape, b.shape[1]
    costs = {
        _by_contraction: _moved(a, 1) + _moved(b, 0) + m * n * size,
        _by_rows: _moved(a, 0) + (k * n * (size - 1) if engine.is_sharded(b) else 0),
        _by_columns: _moved(b, 1) + (m * k * (size - 1) if engine.is_sharded(a) else 0),
    }
    if engine.is_sharded(a) and engine.is_sharded(b) and engine.device(dtype) is None:
        lies_well = _is_cut(a, 0) is not None or (_is_cut(a, 1) is None and k <= m)
        if k >= _FOR_PAIRS and a.dtype == _work_dtype(dtype) and engine.is_transpose(a, b):
            result = _halved_on_mesh(a)
            if result is not None:
                return _by_halved_panels(a, result, dtype, name)
            if lies_well:
                return _by_pairs(a, dtype, name)
        if dtype.kind == "c" and a.dtype == b.dtype == dtype:
            of_rows = engine.is_adjoint(b, a)
            if of_rows or engine.is_adjoint(a, b):
                plain: Any = np.transpose(b) if of_rows else a
                result = _halved_on_mesh(plain) if k >= _FOR_PAIRS else None
                if result is not None:
                    return _by_halved_panels(plain, result, dtype, name, adjoint=True, conjugated=of_rows)
                if lies_well and k >= _FOR_PAIRS:
                    return _by_pairs(plain, dtype, name, adjoint=True, conjugated=of_rows)
                if costs[_by_contraction] <= min(costs.values()):
                    return _gram_by_contraction(a, b, of_rows, dtype, name)
        if k < _FOR_TURNS * size and min(m, n) >= _FOR_PANELS:
            costs[_by_blocks] = _moved(a, 0) + _moved(b, 0) + best_mesh(m, k, n, size)[1]
    if size == 1 and engine.device(dtype) is None:  # whatever the axis that is cut: with the bits of NumPy's product
        return _by_rows(a, b, dtype, name)
    if size == 1 or engine.device(dtype) is not None or not _lie_in_boxes(a, b):
        return min(costs, key=lambda algorithm: costs[algorithm])(a, b, dtype, name)
    if min(m, n) < _FOR_PANELS:
        pair: Any = (a, b) if n <= m else (np.transpose(b), np.transpose(a))
        one, other = pair
        lying = _box_layout(one)
        if lying is not None and _lies_on_mesh(lying) and not engine.is_transpose(a, b):
            result = _cut_layout((one.shape[0], other.shape[1]), 0)
            if words_of_narrow(lying, _box_layout(other), result) < min(costs.values()):
                return _by_blocks_as_they_lie(one, other, result, dtype, name, n > m)
    choices = tuple(costs.items())
    way, result = _with_panels(_box_layout(a), _box_layout(b), (m, k, n), choices, known_of_ranks())
    return way(a, b, dtype, name) if result is None else _by_panels(a, b, result, dtype, name)


@functools.lru_cache(maxsize=1024)
def _with_panels(
    left: Layout | None,
    right: Layout | None,
    extents: tuple[int, int, int],
    costs: tuple[tuple[Function, int], ...],
    ranks: tuple[object, ...],
) -> tuple[Function, Layout | None]:
    """The way of a product for which panels may move, and the layout in which it is made of panels, if it is.

    Parameters
    ----------
    left, right : Layout or None
        Of the operands; None for one of which each rank has all.
    extents : (int, int, int)
        Rows, the summed axis and columns.
    costs : tuple of (function, int)
        What the other ways move.
    ranks : tuple
        What default layouts depend on: see `known_of_ranks`.
    """
    m, k, n = extents
    of_left = [_to_cut(left, (m, k), axis) for axis in (0, 1)]
    of_right = [_to_cut(right, (k, n), axis) for axis in (0, 1)]
    whole = {
        _by_contraction: of_left[1] + of_right[0],
        _by_blocks: of_left[0] + of_right[0],
        _by_rows: of_left[0] + min(of_right),
        _by_columns: of_right[1] + min(of_left),
    }
    best, nelements = min(costs, key=lambda cost: cost[1])[0], m * k + k * n
    few = nelements <= at_most(0) * engine.runtime().size
    if min(m, n) < _FOR_PANELS and (few or whole[best] * 8 <= nelements):
        return best, None
    # Operands that do not lie as they are needed would be redistributed: for rows and columns of the result, which are
    # made in place, and for partial products that are too large to be made of panels.
    in_place = {_by_rows, _by_columns}
    if m * n > _most(m, k, n) < 2 * whole[_by_contraction] // engine.runtime().size:
        in_place.add(_by_contraction)
    ways = {way: cost for way, cost in costs if way not in in_place or not whole[way]}
    results = _results(left, right, (m, n))
    if k >= _FOR_TURNS * engine.runtime().size:
        results += _on_best_meshes(m, k, n)
    layouts = {result: words_of_panels(left, right, result, k) for result in results}
    result = min(layouts, key=lambda layout: layouts[layout])
    if all(layouts[result] * (1 if whole[way] else _WORTH[way]) < cost for way, cost in ways.items()):
        return _by_panels, result
    return min(ways, key=lambda way: ways[way]), None


def _halved_on_mesh(x: DistArray) -> Layout | None:
    """The layout of the product with the transpose where that is made by halves of panels, or None.

    It is where a mesh cuts both axes, unless the matrix is so long along the summed axis that fewer elements move if it
    is cut along that.
    """
    layout = _box_layout(x)
    if layout is None or not _lies_on_mesh(layout) or layout.shape[0] < _FOR_PANELS:
        return None
    return _layout_of_halves(layout, known_of_ranks())


@functools.lru_cache(maxsize=1024)
def _layout_of_halves(layout: Layout, ranks: tuple[object, ...]) -> Layout | None:
    """As `_halved_on_mesh`, of the layout of the matrix; `ranks` is what default layouts depend on."""
    (m, k), mesh, rows = layout.shape, layout.mesh, layout.cut_of(0)
    if rows is None or m < max(mesh.shape):
        return None
    even = engine.default_layout((m, m), mesh=mesh.shape)
    cuts = []
    for axis, what in enumerate(layout.dims):
        found = even.cut_of(axis)
        assert found is not None
        alike = what == rows or mesh.shape[0] == mesh.shape[1]
        cuts.append(Cut(axis, rows.points if alike else found.points))
    result = Layout((m, m), mesh, tuple(cuts))
    summed = m * k + m * m * layout.size // 2  # cut along the summed axis, halves are added up
    return result if k <= m or words_of_panel_gram(layout, result) < summed else None


# Fewer rows or columns are not worth that panels of both operands move, unless an operand is redistributed otherwise.
_FOR_PANELS = 64
_FOR_TURNS = 32  # columns of the left operand for each rank that are worth a turn of messages
_FOR_PAIRS = 64  # from this inner extent on half a product costs more than to send its result


def _is_at_hand(x: DistArray) -> bool:
    """Whether an operand is all of a box of the only rank."""
    return not engine.is_sharded(x) or engine.layout_of(x) is not None


def _of_one_rank(a: DistArray, b: DistArray, dtype: np.dtype, name: str) -> DistArray | np.generic:
    """NumPy's product of what the only rank has, as it lies there."""
    left, right = engine.shard(a), engine.shard(b)
    shape = (*a.shape[:-1], *b.shape[1:])
    # A plan has no memory in which a product could lie.
    large = bool(shape) and engine.runtime().computes and engine.default_shard(prod(shape) * dtype.itemsize)
    with engine.Scratch() as scratch:
        out = scratch.empty(shape, dtype) if large else None  # in memory of the result's: no copy, no fresh pages
        with events_reported(name):
            product = compute("matmul", _matmul_in(dtype, out), left, right)
        if not isinstance(product, np.ndarray):
            return product
        if not engine.default_shard(product.nbytes):
            return engine.replicated(product)
        return engine.from_local(product, _cut_layout(product.shape, 0))


def _matmul_in(dtype: np.dtype, out: np.ndarray | None = None) -> Function:
    """NumPy's product in the loop of a dtype."""
    return lambda x, y: np.matmul(x, y, out=out, dtype=dtype, casting="unsafe")


def _is_cut(x: DistArray, axis: int) -> Cut | None:
    """How a matrix is cut, if it is cut along this axis and by all ranks."""
    return _cut_by_all(_box_layout(x), axis)


def _cut_by_all(layout: Layout | None, axis: int) -> Cut | None:
    """How a layout cuts an axis, if it cuts nothing else, for all ranks."""
    cut = None if layout is None or layout.mesh.ndim > 1 else layout.cut_of(axis)
    return cut if cut is not None and cut.extent == engine.runtime().size else None


def _to_cut(layout: Layout | None, shape: tuple[int, int], axis: int) -> int:
    """As `_moved`, of a matrix that lies in boxes."""
    return 0 if layout is None or _cut_by_all(layout, axis) is not None else prod(shape)


def _moved(x: DistArray, axis: int) -> int:
    """How many elements have to be moved for an axis to be cut."""
    return 0 if not engine.is_sharded(x) or _is_cut(x, axis) is not None else x.size


def _cut_layout(shape: tuple[int, ...], axis: int, points: tuple[int, ...] | None = None) -> Layout:
    """The layout that is cut along one axis only."""
    if points is None:
        return engine.default_layout(shape, split=axis)
    return Layout(tuple(shape), Mesh((len(points) - 1,)), (Cut(axis, points),))


def _along(x: DistArray, axis: int) -> Layout:
    """The layout of a matrix once it is cut along an axis: as it is, if it is so."""
    cut = _is_cut(x, axis)
    return _cut_layout(x.shape, axis, None if cut is None else cut.points)


def _box_layout(x: DistArray) -> Layout | None:
    """The layout of an array of which each rank has a box; None if each has all of it, or if parts are no boxes."""
    return engine.layout_of(x) if engine.is_sharded(x) else None


def _lie_in_boxes(a: DistArray, b: DistArray) -> bool:
    """Whether of the operands, not all of which are replicated, each rank has boxes."""
    sharded = [x for x in (a, b) if engine.is_sharded(x)]
    return bool(sharded) and all(engine.layout_of(x) is not None for x in sharded)


def _results(left: Layout | None, right: Layout | None, shape: tuple[int, int]) -> list[Layout]:
    """Layouts in which a product may be made of panels: on the mesh of an operand, or cut along one axis."""
    found = []
    for layout, its, axis in ((left, right, 0), (right, left, 1)):
        if layout is None or layout.mesh.ndim != 2 or len(layout.cut_axes) != 2 or layout.size != engine.runtime().size:
            continue
        axes = [what.axis for what in layout.dims if isinstance(what, Cut)]
        if any(shape[of] < extent for of, extent in zip(axes, layout.mesh.shape, strict=True)):
            continue
        even = engine.default_layout([shape[of] for of in axes], mesh=layout.mesh.shape)
        cuts = [what for what in even.dims if isinstance(what, Cut)]
        dims: list[Cut] = []
        for dim, of in enumerate(axes):
            source = layout if of == axis else its
            what = None if source is None or source.mesh != layout.mesh else source.dims[dim]
            dims.append(what if isinstance(what, Cut) and what.axis == of else Cut(of, cuts[dim].points))
        found.append(Layout(shape, layout.mesh, tuple(dims)))
    found.sort(key=lambda layout: [what.axis for what in layout.dims if isinstance(what, Cut)])
    for layout, axis in ((left, 0), (right, 1)):
        along = _cut_by_all(layout, axis)
        found.append(_cut_layout(shape, axis, None if along is None else along.points))
    return found


def _on_best_meshes(m: int, k: int, n: int) -> list[Layout]:
    """Layouts of a product on the mesh that moves least for operands in rows, and on that for operands in columns."""
    size, found = engine.runtime().size, []
    for axes, shape in (((0, 1), (m, n)), ((1, 0), (n, m))):
        mesh = best_mesh(shape[0], k, shape[1], size)[0].shape
        if all(1 < extent <= count for extent, count in zip(mesh, shape, strict=True)):
            found.append(engine.default_layout(shape, mesh=mesh).transpose(axes))
    return found


def _most(m: int, k: int, n: int) -> int:
    """How many elements a rank may have besides its shares of the operands and the product, about.

    With them it is less than one and a half times the shares: messages may take as much again while they travel.
    """
    return (m * k + k * n + m * n) // (_SHARE * engine.runtime().size)


def _most_of(a: DistArray, b: DistArray, dtype: np.dtype) -> int:
    """As `_most`, in elements of the dtype of the product, which the operands need not have; they may be one array."""
    turned: Any = np.transpose(b)
    count = a.nbytes + (0 if engine.is_sharded(b) and engine.is_transpose(a, turned) else b.nbytes)
    count += a.shape[0] * b.shape[1] * dtype.itemsize
    return count // (_SHARE * engine.runtime().size * dtype.itemsize)


_SHARE = 4


def _by_rows(a: DistArray, b: DistArray, dtype: np.dtype, name: str) -> DistArray:
    """Rows stay, panels of the right operand go around."""
    rows = _along(a, 0)
    return _rows_of_product(a, b, rows, rows.with_shape((a.shape[0], b.shape[1])), dtype, name)


def _by_columns(a: DistArray, b: DistArray, dtype: np.dtype, name: str) -> DistArray:
    """Columns stay: the transposed product by rows, in NumPy's memory order all the same."""
    left: Any = np.transpose(b)
    rows = _along(left, 0)
    result = rows.with_shape((b.shape[1], a.shape[0])).transpose((1, 0))
    return _rows_of_product(left, np.transpose(a), rows, result, dtype, name, transposed=True)


def _rows_of_product(
    a: DistArray, b: Any, rows: Layout, result: Layout, dtype: np.dtype, name: str, transposed: bool = False
) -> DistArray:
    """The product, or its transpose, of which each rank computes what its rows of the left operand make.

    Parameters
    ----------
    rows, result : Layout
        Of the left operand, and of what is returned.
    """
    a = engine.aligned(a, rows)
    (_, k), n = a.shape, b.shape[1]
    passed = engine.is_sharded(b)
    for_device = a.dtype == b.dtype == dtype and (not passed or dtype.kind in "fc")
    on_device = engine.device(dtype) if for_device else None
    if passed:
        of_columns = _is_cut(b, 0) is None and _is_cut(b, 1) is not None and on_device is None
        panels = _along(b, 1 if of_columns else 0)
        b = engine.aligned(b, panels)
        left, panel = blocks((a, rows), (b, panels), library=on_device is not None)
    else:
        (left,) = blocks((a, rows), library=on_device is not None)
    with engine.Scratch() as scratch, events_reported(name):
        if on_device is not None:
            if passed:
                product = ring_on_device(left, panel, panels, on_device)
            else:
                product = compute("matmul", np.matmul, left, on_device.own(engine.plain(b)))
            return engine.from_local(product.transpose() if transposed else product, result)
        box = rows.box(engine.runtime().rank)
        held = 0 if box is None else box[0][1] - box[0][0]
        right = None if passed else engine.plain(b)
        work = _work_dtype(dtype)
        made = scratch.empty((n, held) if transposed else (held, n), dtype)
        out, left = made.T if transposed else made, left.reshape(held, k)
        most = _most_of(a, b, work)
        if right is None:
            tallest = max(high - low for low, high in row_bounds(rows))
            task = ProductTask(out, engine.runtime().comm, most, scratch.empty)
            ring(left, panel, panels, task, b.flags.c_contiguous, work, tallest)
        elif work == dtype:
            multiply(left, right, out, most)
        else:
            for low, high in pieces(held, k + n, most):
                product = np.empty((high - low, n), work)
                multiply(left[low:high], right, product, most)
                out[low:high] = product
        return engine.from_local(made, result)


def _held_of(x: DistArray) -> HeldMatrix:
    """What this rank has of a matrix that lies in boxes."""
    layout = _box_layout(x)
    assert layout is not None
    (held,) = blocks((x, layout))
    return HeldMatrix(held, layout)


def _held(a: DistArray, b: DistArray) -> tuple[HeldMatrix, HeldMatrix]:
    """What this rank has of two operands."""
    layouts = _box_layout(a), _box_layout(b)
    lying = [(x, layout) for x, layout in zip((a, b), layouts, strict=True) if layout is not None]
    held = iter(blocks(*lying))
    left, right = (
        HeldMatrix(engine.plain(x) if layout is None else next(held), layout)
        for x, layout in zip((a, b), layouts, strict=True)
    )
    return left, right


def _by_panels(a: DistArray, b: DistArray, result: Layout, dtype: np.dtype, name: str) -> DistArray:
    """The result stays, panels of both operands come from where they lie."""
    left, right = _held(a, b)
    box = result.box(engine.runtime().rank)
    with engine.Scratch() as scratch, events_reported(name):
        out, work = scratch.empty((0, 0) if box is None else box_shape(box), dtype), _work_dtype(dtype)
        task = ProductTask(out, engine.runtime().comm, _most_of(a, b, work), scratch.empty)
        panel_product(left, right, result, task, work)
        return engine.from_local(out, result)


def _lies_on_mesh(layout: Layout) -> bool:
    """Whether a mesh of all ranks cuts both axes of a matrix."""
    return layout.mesh.ndim == len(layout.cut_axes) == 2 and layout.size == engine.runtime().size


def _by_blocks_as_they_lie(
    a: DistArray, b: DistArray, result: Layout, dtype: np.dtype, name: str, transposed: bool
) -> DistArray:
    """The product with a narrow matrix, or its transpose: partial products of blocks, of which owners have the sums."""
    left, right = _held(a, b)
    box = result.box(engine.runtime().rank)
    held = 0 if box is None else box[0][1] - box[0][0]
    with engine.Scratch() as scratch, events_reported(name):
        made = scratch.empty((b.shape[1], held) if transposed else (held, b.shape[1]), _work_dtype(dtype))
        out = made.T if transposed else made
        task = ProductTask(out, engine.runtime().comm, _most_of(a, b, made.dtype), scratch.empty)
        narrow_product(left, right, result, task)
        return engine.from_local(made.astype(dtype, copy=False), result.transpose((1, 0)) if transposed else result)


def _by_blocks(a: DistArray, b: DistArray, dtype: np.dtype, name: str) -> DistArray:
    """A block of the product on each rank of a mesh, for which rows of both operands come together."""
    (m, k), n = a.shape, b.shape[1]
    rows, panels = _along(a, 0), _along(b, 0)
    left, panel = blocks((engine.aligned(a, rows), rows), (engine.aligned(b, panels), panels))
    mesh, _ = best_mesh(m, k, n, engine.runtime().size)
    left, panel, comm = left.reshape(-1, k), panel.reshape(-1, n), engine.runtime().comm
    with events_reported(name):
        part = MeshProduct(left, panel, row_bounds(rows), row_bounds(panels), mesh, comm, _work_dtype(dtype)).result()
        product = part.astype(dtype, copy=False)
    return engine.from_local(product, rows.with_shape((m, n)))


def _by_pairs(a: DistArray, dtype: np.dtype, name: str, adjoint: bool = False, conjugated: bool = False) -> DistArray:
    """The product with its own transpose or its adjoint, or the conjugate: what two ranks need is computed once."""
    rows, (m, k) = _along(a, 0), a.shape
    result = rows.with_shape((m, m))
    (left,) = blocks((engine.aligned(a, rows), rows))
    left = left.reshape(-1, k)
    with engine.Scratch() as scratch, events_reported(name):
        out = scratch.empty((len(left), m), left.dtype)
        row_gram(left, row_bounds(rows), engine.runtime().comm, out, _most(m, k // 2, m), adjoint)
        if conjugated:
            np.conjugate(out, out=out)
        return engine.from_local(out.astype(dtype, copy=False), result)


def _by_halved_panels(
    x: DistArray, result: Layout, dtype: np.dtype, name: str, adjoint: bool = False, conjugated: bool = False
) -> DistArray:
    """As `_by_pairs`, of a matrix on a mesh: the result stays, panels come, and mirror images are sent."""
    held, (m, k) = _held_of(x), x.shape
    box = result.box(engine.runtime().rank)
    with engine.Scratch() as scratch, events_reported(name):
        out = scratch.empty((0, 0) if box is None else box_shape(box), x.dtype)
        task = ProductTask(out, engine.runtime().comm, _most(m, k // 2, m), scratch.empty)
        panel_gram(held, result, task, adjoint)
        if conjugated:
            np.conjugate(out, out=out)
        return engine.from_local(out.astype(dtype, copy=False), result)


def _by_contraction(a: DistArray, b: DistArray, dtype: np.dtype, name: str) -> DistArray:
    """Both operands are cut along the summed axis, at the same points; partial products are added up."""
    work = _work_dtype(dtype)
    halved = engine.device(dtype) is None and engine.is_sharded(b) and b.dtype == work
    if halved and engine.is_transpose(b, a):
        return _halved(b, False, False, dtype, name)
    rows = _along(b, 0)
    cut = _is_cut(a, 1)
    if cut is not None and (_is_cut(b, 0) is None or a.size > b.size):
        rows = _cut_layout(b.shape, 0, cut.points)
    points = next(what.points for what in rows.dims if isinstance(what, Cut))
    columns, result = _cut_layout(a.shape, 1, points), layout_of_sum((a.shape[0], b.shape[1]), work)
    most = _most_of(a, b, work) // (1 if work == dtype else 2)  # the products of converted operands are converted
    moved = sum(x.size for x, its in ((a, columns), (b, rows)) if engine.is_sharded(x) and engine.layout_of(x) != its)
    piecewise = engine.device(dtype) is None and _lie_in_boxes(a, b)
    if piecewise and prod(result.shape) <= min(most, moved // engine.runtime().size):
        return _by_partial_products(a, b, rows, result, dtype, name, most // 2)
    a, b = engine.aligned(a, columns), engine.aligned(b, rows)
    left, right = blocks((a, columns), (b, rows), library=a.dtype == b.dtype == dtype)
    with engine.Scratch() as scratch, events_reported(name):
        contraction = _contraction(rows, most, result, dtype, scratch)
        contraction.product(left, right)
        return engine.from_local(contraction.out, result)


def _by_partial_products(
    a: DistArray, b: DistArray, rows: Layout, result: Layout, dtype: np.dtype, name: str, most: int
) -> DistArray:
    """As `_by_contraction`, of operands that lie in other ways: panels of a rank's share come to it."""
    with engine.Scratch() as scratch, events_reported(name):
        product = scratch.empty(result.shape, _work_dtype(dtype))
        with engine.Scratch() as passing:
            task = ProductTask(product, engine.runtime().comm, most, passing.empty)
            partial_product(*_held(a, b), row_bounds(rows), task)
        contraction = _contraction(rows, most, result, dtype, scratch)
        contraction.sum(product)
        return engine.from_local(contraction.out, result)


def _gram_by_contraction(a: DistArray, b: DistArray, of_rows: bool, dtype: np.dtype, name: str) -> DistArray:
    """As `_by_contraction`, where the left operand (`of_rows`) or the right one is the adjoint of the other one.

    The adjoint need not be computed.
    """
    x: Any = b if of_rows else np.transpose(a)
    return _halved(x, True, not of_rows, dtype, name)


def _halved(x: DistArray, adjoint: bool, conjugated: bool, dtype: np.dtype, name: str) -> DistArray:
    """The product of the transpose or the adjoint of a matrix with the matrix, or the conjugate of it."""
    rows, n = _along(x, 0), x.shape[1]
    result = layout_of_sum((n, n), dtype, halved=True)
    (held,) = blocks((engine.aligned(x, rows), rows))
    with engine.Scratch() as scratch, events_reported(name):
        contraction = _contraction(rows, _most(n, x.shape[0], n), result, x.dtype, scratch)
        contraction.gram(held.reshape(len(held), n), adjoint)
        product = contraction.out
        if conjugated:
            np.conjugate(product, out=product)
        return engine.from_local(product.astype(dtype, copy=False), result)


# How many times as many elements a way for which operands lie well moves at least, where it is left for panels.
_WORTH = {_by_rows: 1.25, _by_columns: 1.25, _by_contraction: 1.5, _by_blocks: 1.0}


def _contraction(rows: Layout, most: int, result: Layout, dtype: np.dtype, scratch: engine.Scratch) -> Contraction:
    """What adds up products of columns, and these rows of the right operand."""
    rank = engine.runtime().rank
    box = result.box(rank)
    out = scratch.empty((0,) if box is None else box_shape(box), dtype)
    holders = [high > low for low, high in row_bounds(rows)]
    return Contraction(
        holders, result, ProductTask(out, engine.runtime().comm, most, scratch.empty), _work_dtype(dtype)
    )


def _stacks(a: DistArray, b: DistArray, dtype: np.dtype) -> DistArray:
    """Stacks of matrices, which are broadcast against each other: whole matrices on each rank."""
    if dtype.hasobject:
        decline("arrays of Python objects")
    stack = max(a.ndim, b.ndim) - 2
    left, right = (x._view(structure.index, (None,) * (stack + 2 - x.ndim)) for x in (a, b))
    made = tensors(left, np.swapaxes(right, -1, -2), stack, 1, dtype, "matmul")
    if made is not None:
        return made

    def products(x: object, y: object) -> Array:
        return compute("matmul", _matmul_in(dtype), x, y)

    return on_stacks(products, [a, b], 2, name="matmul", order="C", library=a.dtype == b.dtype == dtype)


@implements(np.linalg.matrix_transpose, kind="structural")
def linalg_matrix_transpose(x: DistArray, /) -> DistArray:
    return x._view(np.linalg.matrix_transpose)


@implements(np.linalg.diagonal, kind="structural")
def linalg_diagonal(x: DistArray, /, *, offset: int = 0) -> DistArray:
    return x._view(np.linalg.diagonal, offset=offset)
