"""Universal functions: calls generated from the loops of each ufunc, and all methods of each."""

from __future__ import annotations

import operator

import numpy as np

from numpy_dist.conformance.arguments import Array, a, of, plain
from numpy_dist.conformance.case import BLAS, PRODUCTS, SUMS, Tolerance, Topic
from numpy_dist.dispatch.core.catalogue import overridable_ufuncs
from numpy_dist.dispatch.core.signatures import NUMPY_VERSION

TOPIC = Topic("Universal functions")
case = TOPIC.case

DTYPES = {"M": "M8[s]", "m": "m8[s]"}
GENERALISED = {
    "matmul": (((6, 5), (5, 4)), ((7,), (7, 3)), ((3, 6, 5), (5, 4))),
    "vecdot": (((6, 5), (6, 5)), ((7,), (7,))),
    "matvec": (((6, 5), (5,)), ((3, 6, 5), (3, 5))),
    "vecmat": (((6,), (6, 5)), ((3, 5), (3, 5, 4))),
}
# Values that keep most results within the domain, where "mixed" ones would only give NaN, errors or overflow.
VALUES = {
    "left_shift": "bits", "right_shift": "bits", "power": "positive", "float_power": "positive", "arccosh": "large",
    "arccos": "unit", "arcsin": "unit", "arctanh": "unit", "log": "positive", "log2": "positive", "log10": "positive",
    "log1p": "positive", "sqrt": "positive",
}  # fmt: skip
ASSOCIATIVE = ("add", "multiply", "maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor",
               "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm")  # fmt: skip
ROUNDED = {"add": SUMS, "multiply": PRODUCTS}
SCALAR_LOOPS = Tolerance(64, "NumPy's vector loop for single steps rounds differently than its scalar loop")
LOOPS = {"power": SCALAR_LOOPS, "arctan2": SCALAR_LOOPS}
EITHER_ZERO = Tolerance(0, "which of 0.0 and -0.0 NumPy chooses depends on the place of the element in its vectors")
ZEROS = {"fmax": EITHER_ZERO, "fmin": EITHER_ZERO}


def loops(ufunc: np.ufunc) -> list[str]:
    """The input dtypes of the loops, as characters; without Python objects."""
    inputs = dict.fromkeys(loop.partition("->")[0] for loop in ufunc.types)
    return [characters for characters in inputs if "O" not in characters]


def arrays(
    ufunc: np.ufunc, characters: str, *shape: int, values: str | None = None, view: str = "whole"
) -> list[Array]:
    """Distributed arrays of these dtypes."""
    drawn = values or VALUES.get(ufunc.__name__, "mixed")
    return [
        a(*shape, dtype=DTYPES.get(c, c), values=drawn if c in "efdgFDGbBhHiIlLqQ" else "mixed", view=view)
        for c in characters
    ]


def element_wise(ufunc: np.ufunc) -> None:
    """Cases of a ufunc that works element by element."""
    found = loops(ufunc)
    for characters in found:
        case(ufunc, *arrays(ufunc, characters, 7, 5))
    for characters in found:
        if characters[0] in "bBqQfdDM":
            case(ufunc, *arrays(ufunc, characters, 23, values="special"), tolerance=ZEROS.get(ufunc.__name__))
    usual = next((c for c in found if c[0] == "d"), found[-1])
    n = ufunc.nin
    for shape in ((0,), (3, 0, 2), (), (1,), (1, 1), (2,), (13, 3), (2, 3, 4)):
        case(ufunc, *arrays(ufunc, usual, *shape))
    for view in ("flipped", "backwards", "fortran", "strided"):
        case(ufunc, *arrays(ufunc, usual, 9, 4, view=view))
    if n > 1:
        broadcasting(ufunc, usual)
    keywords(ufunc, usual)


def broadcasting(ufunc: np.ufunc, usual: str) -> None:
    """Operands of different shapes and kinds."""
    first, *rest = arrays(ufunc, usual, 6, 5)
    case(ufunc, *arrays(ufunc, usual[:1], 6, 1), *arrays(ufunc, usual[1:], 5))
    case(ufunc, *arrays(ufunc, usual[:1], 5), *arrays(ufunc, usual[1:], 2, 3, 5))
    case(ufunc, *arrays(ufunc, usual[:1], 4), *arrays(ufunc, usual[1:], 5))
    case(ufunc, first, *(plain(6, 5, dtype=x.dtype, values=x.values) for x in rest))
    case(ufunc, *(plain(5, dtype=x.dtype, values=x.values) for x in rest), first)
    if usual[0] in "dq?" and ufunc.nin == 2:
        for scalar in (2, 2.5, True, np.float32(1.5), np.int8(3), np.float64(2), 1j, [1, 2, 3, 2, 1], np.array(3)):
            case(ufunc, first, scalar)
            case(ufunc, scalar, first)
        for dtype in ("f4", "i1", "u1", "?", "c8", "e"):
            case(ufunc, a(7, 5, dtype=dtype), a(7, 5, dtype="f8" if dtype != "e" else "f4"))
            case(ufunc, a(7, 5, dtype=dtype), 3)
        case(ufunc, a(5, dtype="u1"), 300)
        case(ufunc, a(5, dtype="i8"), a(5, dtype="u8"))


def keywords(ufunc: np.ufunc, usual: str) -> None:
    """out=, where=, dtype=, casting=, order=, signature=."""
    n = ufunc.nin
    result = ufunc.resolve_dtypes((*(np.dtype(DTYPES.get(c, c)) for c in usual), *(None,) * ufunc.nout))[-1]
    out = a(6, 5, dtype=result.str)
    wide = a(3, 6, 5, dtype=result.str)
    if ufunc.nout == 1:
        case(ufunc, *arrays(ufunc, usual, 6, 5), out=out)
        case(ufunc, *arrays(ufunc, usual, 6, 5), out)
        case(ufunc, *arrays(ufunc, usual, 5), out=wide)
        case(ufunc, *arrays(ufunc, usual, 6, 5), out=a(6, 4, dtype=result.str))
        case(ufunc, *arrays(ufunc, usual, 6, 5), out=a(1, 5, dtype=result.str))
        case(ufunc, *arrays(ufunc, usual, 6, 5), out=a(6, 5, dtype="i1"))
        case(ufunc, *arrays(ufunc, usual, 6, 5), out=a(6, 5, dtype="c16"))
        case(ufunc, *arrays(ufunc, usual, 6, 5), out=out, where=a(6, 5, dtype="?"))
        case(ufunc, *arrays(ufunc, usual, 6, 5), out=out, where=plain(5, dtype="?"))
        case(ufunc, *arrays(ufunc, usual, 6, 5), out=plain(6, 5, dtype=result.str), declines="its output is an ndarray")
        case(ufunc, *(plain(6, 5, dtype=x.dtype, values=x.values) for x in arrays(ufunc, usual)), out=out)
        case(ufunc, *arrays(ufunc, usual, 6, 5), out=out, casting="unsafe", dtype=result)
        x = arrays(ufunc, usual[:1], 9)[0]
        others = arrays(ufunc, usual[1:])
        case(ufunc, x, *others, out=x)
        if x.dtype == result:
            overlapping(ufunc, x, others)
    else:
        outs = tuple(a(6, 5, dtype=loop) for loop in ufunc.types[-1].partition("->")[2].replace("O", "d"))
        case(ufunc, *arrays(ufunc, usual, 6, 5), out=outs)
        case(ufunc, *arrays(ufunc, usual, 6, 5), out=(None, outs[1]))
        case(ufunc, *arrays(ufunc, usual, 6, 5), out=outs, where=a(6, 5, dtype="?"))
    case(ufunc, *arrays(ufunc, usual, 6, 5), dtype="f4")
    case(ufunc, *arrays(ufunc, usual, 6, 5), dtype="f4", casting="unsafe")
    case(ufunc, *arrays(ufunc, usual, 6, 5), casting="equiv", dtype="i2")
    case(ufunc, *arrays(ufunc, usual, 6, 5), order="F")
    case(ufunc, *arrays(ufunc, usual, 6, 5), nonsense=1)
    case(ufunc, *arrays(ufunc, usual, 6, 5), subok=False)
    case(ufunc, *arrays(ufunc, usual, 6, 5), signature=loop_of(ufunc, usual))
    case(ufunc, *arrays(ufunc, usual, 6, 5), signature=(*(None,) * ufunc.nin, *ufunc.types[0].partition("->")[2]))
    if n > 1:
        case(ufunc, *arrays(ufunc, usual[:1], 6, 5))
    if ufunc.types[0][0] == "?":
        case(ufunc, *arrays(ufunc, "?" * n, 6, 5), signature="?" * n + "->" + ufunc.types[0].partition("->")[2])


def loop_of(ufunc: np.ufunc, characters: str) -> str:
    """The loop for these dtypes, as `signature` has it."""
    return next(loop for loop in ufunc.types if loop.partition("->")[0] == characters)


def overlapping(ufunc: np.ufunc, x: Array, others: list[Array]) -> None:
    """Results that go where a shifted or reversed input is read from."""

    def assigned(out: np.ndarray, values: np.ndarray) -> np.ndarray:
        out[...] = values
        return out

    case(
        ufunc,
        x,
        *others,
        via=lambda x, *o: ufunc(x[1:], *o, out=x[:-1]),
        apart=lambda x, *o: assigned(x[:-1], ufunc(x[1:].copy(), *o)),
    )
    case(
        ufunc,
        x,
        *others,
        via=lambda x, *o: ufunc(x[::-1], *o, out=x),
        apart=lambda x, *o: assigned(x, ufunc(x[::-1].copy(), *o)),
    )


def methods(ufunc: np.ufunc) -> None:
    """reduce, accumulate, reduceat, outer, at."""
    found = loops(ufunc)
    usual = next((c for c in found if c[0] == "d"), found[-1] if found else "d" * ufunc.nin)
    tolerance = ROUNDED.get(ufunc.__name__)
    if ufunc.nin == 2 and ufunc.nout == 1 and ufunc.signature is None and found:
        x, y = arrays(ufunc, usual, 6)[0], a(4, 5, dtype=DTYPES.get(usual[0], usual[0]))
        case(ufunc.reduce, x, tolerance=tolerance)
        case(ufunc.reduce, y, axis=1, tolerance=tolerance)
        case(ufunc.accumulate, x, tolerance=tolerance or LOOPS.get(ufunc.__name__))
        case(ufunc.accumulate, y, axis=1, tolerance=tolerance or LOOPS.get(ufunc.__name__))
        case(ufunc.reduceat, x, [0, 3, 1, 5], tolerance=tolerance)
        case(ufunc.outer, x, arrays(ufunc, usual[1:], 3)[0])
        case(ufunc.at, x, [0, 2, 2, -1], arrays(ufunc, usual[1:], 4)[0])
        case(ufunc.at, x, [0, 17], arrays(ufunc, usual[1:], 2)[0])
        case(ufunc.reduceat, y, of([0, 3, 1]), axis=0, tolerance=tolerance)
        method_keywords(ufunc, usual, tolerance or LOOPS.get(ufunc.__name__))
    else:
        x = arrays(ufunc, usual[:1], 6)[0]
        case(ufunc.reduce, x)
        case(ufunc.accumulate, x)
        case(ufunc.reduceat, x, [0, 3])
        case(ufunc.outer, x, *(1,) * (ufunc.nin - 1))
        case(ufunc.at, x, [0, 2], *(1,) * (ufunc.nin - 1))
    if ufunc.__name__ in ASSOCIATIVE:
        reductions(ufunc)


def method_keywords(ufunc: np.ufunc, usual: str, tolerance: Tolerance | None) -> None:
    """What the methods take, of any ufunc that they mean something for."""
    x = arrays(ufunc, usual[:1], 6, 5)[0]
    character = ufunc.resolve_dtypes((*(np.dtype(DTYPES.get(c, c)) for c in usual), None))[-1].str
    wide, mask = {"dtype": character}, a(6, 5, dtype="?")
    case(ufunc.reduce, x, axis=1, keepdims=True, **wide, tolerance=tolerance)
    case(ufunc.reduce, x, axis=0, initial=1, where=mask, tolerance=tolerance)
    case(ufunc.reduce, x, axis=0, out=a(5, dtype=character), tolerance=tolerance)
    case(ufunc.reduce, x, axis=1, dtype="i4", tolerance=tolerance)
    case(ufunc.accumulate, x, axis=1, **wide, tolerance=tolerance)
    case(ufunc.accumulate, x, axis=0, out=a(6, 5, dtype=character), tolerance=tolerance)
    case(ufunc.reduceat, x, [0, 3, 1], axis=1, **wide, tolerance=tolerance)
    case(ufunc.reduceat, x, [0, 3, 1], axis=-1, out=a(6, 3, dtype=character), tolerance=tolerance)
    y = arrays(ufunc, usual[1:], 3)[0]
    case(ufunc.outer, x, y, out=a(6, 5, 3, dtype=character), where=a(5, 3, dtype="?"))
    case(ufunc.outer, x, y, order="F", **wide, casting="unsafe")
    case(ufunc.outer, x, y, signature=loop_of(ufunc, usual))


def reductions(ufunc: np.ufunc) -> None:
    """All that a reduction of the engine takes."""
    integers = "iIlLqQ?" if ufunc.__name__[:7] in ("bitwise", "gcd", "lcm") else "?bBhHiIqQefdFD"
    tolerance = ROUNDED.get(ufunc.__name__)
    dtype = "d" if "d" in integers else "q"
    for character in integers:
        case(ufunc.reduce, a(7, 5, dtype=character), axis=None, tolerance=tolerance if character in "efdFD" else None)
        case(ufunc.reduce, a(7, 5, dtype=character), tolerance=tolerance if character in "efdFD" else None)
    for shape in ((7, 5), (6, 1, 4), (1,), (0, 3), (3, 0)):
        for axis in (None, 0, -1, (0, len(shape) - 1), ()):
            for keepdims in (False, True):
                x = a(*shape, dtype=dtype, values="whole")
                case(ufunc.reduce, x, axis=axis, keepdims=keepdims, tolerance=tolerance)
    x = a(6, 5, dtype=dtype, values="whole")
    case(ufunc.reduce, x, axis=0, where=a(6, 5, dtype="?"), initial=3)
    case(ufunc.reduce, x, axis=(0, 1), where=a(5, dtype="?"), initial=3)
    case(ufunc.reduce, x, axis=1, where=plain(6, 1, dtype="?"))
    case(ufunc.reduce, x, axis=None, initial=2)
    case(ufunc.reduce, x, axis=0, initial=None)
    case(ufunc.reduce, x, axis=0, out=a(5, dtype=dtype))
    case(ufunc.reduce, x, axis=0, out=a(4, dtype=dtype))
    case(ufunc.reduce, x, axis=1, dtype="i2", values=True)
    case(ufunc.reduce, x, axis=2)
    case(ufunc.reduce, x, axis=(0, 0))
    case(ufunc.reduce, x, axis="0")
    for view in ("flipped", "backwards", "fortran"):
        case(ufunc.reduce, a(6, 5, dtype=dtype, values="whole", view=view), axis=1)
    if dtype == "d":
        case(ufunc.reduce, a(6, 5, values="nans"), axis=1, tolerance=tolerance)
        if tolerance is None:  # whether sums of the largest numbers overflow depends on their order
            case(ufunc.reduce, a(40, values="special"))


for _shape, _axis in (((0, 0), 1), ((0, 3), 1), ((3, 0), 1), ((4, 0, 0), (0, 1)), ((0, 4, 0), 1), ((0, 0), ())):
    for _ufunc in (np.maximum, np.fmin, np.add):
        case(_ufunc.reduce, a(*_shape), axis=_axis)
for _ufunc in (np.add, np.multiply):
    case(_ufunc.accumulate, a(7, values="whole"), out=a(7, dtype=">f8"), tolerance=ROUNDED[_ufunc.__name__])
case(np.divmod, a(6), 2.0, out=(a(6), ...))
case(np.negative, a(6), out=(...,))
case(np.add.reduce, a(6, 5), out=(...,))


def generalised(ufunc: np.ufunc) -> None:
    """Cases of matmul and its kind."""
    for shapes in GENERALISED[ufunc.__name__]:
        for character in "?bqQfdFD":
            case(ufunc, *(a(*shape, dtype=character) for shape in shapes), tolerance=BLAS)
    shapes = GENERALISED[ufunc.__name__][0]
    case(ufunc, *(a(*shape, values="whole") for shape in shapes), dtype="f4")
    case(ufunc, a(3, 4), a(7, 2))
    case(ufunc, a(3, 4), 2.0)
    case(ufunc, *(a(*shape, values="whole", view="fortran") for shape in shapes))
    case(ufunc, a(*shapes[0], values="whole"), plain(*shapes[1], values="whole"))
    case(ufunc, plain(*shapes[0], values="whole"), a(*shapes[1], values="whole"))
    x, y = (a(*shape, values="whole") for shape in shapes)
    made = ufunc(np.ones(shapes[0]), np.ones(shapes[1])).shape
    case(ufunc, x, y, out=a(*made))
    case(ufunc, x, y, out=a(*made, dtype="i4"))
    case(ufunc, x, y, out=a(*made, dtype="i4"), casting="unsafe")
    case(ufunc, x, y, out=a(3, *made))
    case(ufunc, x, y, order="F")
    case(ufunc, x, y, signature="ff->f", casting="same_kind")
    case(ufunc, x, y, subok=False)
    case(ufunc, x, y, where=a(*made, dtype="?"))
    # The core axes of the operands and of the result, first instead of last.
    inputs, _, result = ufunc.signature.partition("->")
    cores = [core.count(",") + (core != "()") for core in (*inputs.replace("),(", ") (").split(), result)]
    axes = [tuple(range(n)) for n in cores]
    square = a(4, 4, 4, values="whole"), a(4, 4, 4, values="whole")
    case(ufunc, *square, axes=axes)
    case(ufunc, *square, axes=[tuple(reversed(its)) for its in axes])
    case(ufunc, *square, axes=axes[:1])
    for axis in (0, -2, 3):
        case(ufunc, *square, axis=axis)
        case(ufunc, *square, axis=axis, keepdims=True)
    case(ufunc, *square, keepdims=True)


# Strings: those of np.strings that NumPy makes ufuncs of, with arguments that mean something.
_S = a(6, dtype="U9")
_OUT = a(6, dtype="U12", values="zeros")
_E = of("e", "U1")
STRINGS: dict[str, tuple[object, ...]] = {
    "_center": (_S, 12, of("*", "U1"), _OUT), "_ljust": (_S, 12, of("*", "U1"), _OUT),
    "_rjust": (_S, 12, of("*", "U1"), _OUT), "_zfill": (_S, 12, _OUT), "_expandtabs": (_S, 4, _OUT),
    "_expandtabs_length": (_S, 4), "_partition": (_S, _E), "_rpartition": (_S, _E), "_partition_index": (_S, _E, 2),
    "_rpartition_index": (_S, _E, 2), "_replace": (_S, _E, of("EE", "U2"), 5, _OUT), "_slice": (_S, 1, 4, 1),
    "_lstrip_chars": (_S, of("a", "U1")), "_rstrip_chars": (_S, of("a", "U1")), "_strip_chars": (_S, of("a", "U1")),
    "count": (_S, _E, 0, 9), "find": (_S, _E, 0, 9), "rfind": (_S, _E, 0, 9), "index": (_S, _E, 0, 9),
    "rindex": (_S, of("", "U1"), 0, 9), "startswith": (_S, _E, 0, 9), "endswith": (_S, _E, 0, 9),
}  # fmt: skip

for _ufunc in overridable_ufuncs():
    if _ufunc.signature is not None:
        generalised(_ufunc)
    elif _ufunc.types:
        element_wise(_ufunc)
    else:
        case(_ufunc, *STRINGS.get(_ufunc.__name__, (_S,)))
        case(_ufunc, *STRINGS.get(_ufunc.__name__, (a(2, 3, dtype="S5"),)))
    # Ufuncs of strings have no loops for other dtypes, and none of their methods means anything: NumPy itself crashes
    # in `_expandtabs.reduce(x)`.
    if _ufunc.types:
        methods(_ufunc)

# Where the order matters, NumPy's is kept.
_S2 = np.s_[:, [0, 1, 1]]
for _ufunc in (np.subtract, np.divide, np.hypot):
    for _axis in (0, 1, -1, None, (), (0, 1), 2):
        for _keepdims in (False, True):
            case(_ufunc.reduce, a(6, 5), axis=_axis, keepdims=_keepdims)
    for _shape in ((0,), (3, 0), (0, 3), (1,), ()):
        case(_ufunc.reduce, a(*_shape))
        case(_ufunc.accumulate, a(*_shape))
    case(_ufunc.reduce, a(6, 5), axis=1, initial=2.5)
    case(_ufunc.reduce, a(6, 5), axis=1, where=a(6, 5, dtype="?"))
    case(_ufunc.reduce, a(6, 5), axis=0, where=a(6, 5, dtype="?"), initial=1)
    case(_ufunc.reduce, a(23), where=a(23, dtype="?"), initial=1)
    case(_ufunc.reduce, a(6, 5, dtype="i4", values="positive"), axis=0)
    case(_ufunc.reduce, a(6, 5), axis=0, dtype="f4")
    case(_ufunc.reduce, a(6, 5), axis=0, out=a(5))
    case(_ufunc.reduce, a(6, 5), axis=0, out=a(4))
    case(_ufunc.reduce, a(6, 5, view="fortran"), axis=1)
    case(_ufunc.accumulate, a(6, 5), axis=1, out=a(6, 5))
    case(_ufunc.accumulate, a(6, 5, dtype="i4", values="positive"), axis=1)
    case(_ufunc.reduceat, a(23), of([0, 20, 3, 3, 22]))
    case(_ufunc.reduceat, a(6, 5), [0, 2], axis=1, out=a(6, 2))
    case(_ufunc.reduceat, a(6, 5, view="fortran"), [0, 2], axis=1)
    case(_ufunc.reduceat, a(6, 5), [0, 6])
    case(_ufunc.outer, a(6, 5), a(3), out=a(6, 5, 3))
    case(_ufunc.outer, a(6, 5), a(3), dtype="f4")
    case(_ufunc.outer, a(6), a(3), out=a(6, 2))
    case(_ufunc.at, a(6, 5), _S2, a(6, 3))
    case(_ufunc.at, a(6, 5), (a(6, dtype="?", values="ones"), 2), a(6))
    case(_ufunc.at, a(6, 5, dtype="f4"), of([0, 0, 5]), a(3, 5))
    case(_ufunc.at, a(6, 5), ..., 2)
    case(_ufunc.at, a(6, 5), of([0, 0, 5]), a(2, 5))
    case(_ufunc.at, plain(6, 5), of([0, 0, 5]), 1, declines="updates of an ndarray")
case(np.power.reduce, of([2, -1, 3]))
case(np.power.accumulate, of([2, -1, 3]))
case(np.subtract.reduce, a(6, dtype="m8[s]"))
case(np.subtract.reduce, a(6, dtype="M8[s]"))
for _ufunc in (np.equal, np.not_equal, np.less, np.add, np.maximum):
    case(_ufunc, a(6, dtype="U9"), a(6, dtype="U4"))
    case(_ufunc, a(6, dtype="S9"), a(6, dtype="S4"))
    case(_ufunc, a(6, dtype="U9"), "elm")
case(np.power, a(6, dtype="i8", values="whole"), a(6, dtype="i8", values="whole"))
case(np.power, a(6, dtype="i8", values="whole"), -1)
case(np.floor_divide, a(6, dtype="i8", values="whole"), a(6, dtype="i8", values="zeros"))
case(np.negative, a(6, dtype="?"))
if NUMPY_VERSION >= (2, 3):  # `out=...` asks for an array where there would be a scalar
    case(np.multiply, a(), a(), out=...)
    case(np.multiply, a(6, 5), a(5), out=...)
    case(np.add.reduce, a(6, 5, values="whole"), axis=None, out=...)
case(np.subtract, a(6, dtype="?"), a(6, dtype="?"))
case(np.subtract, a(6, 5), a(5, dtype="f4"), dtype=np.dtypes.Float32DType)
case(np.subtract, a(6, dtype="M8[s]"), a(6, dtype="M8[D]"), dtype=np.dtypes.TimeDelta64DType)
case(np.add.reduce, a(6, 5, dtype="i4"), dtype=np.dtypes.Float32DType)
case(np.add, a(6), a(6), via=lambda x, y: operator.iadd(x[::2], y[1::2]))
case(np.add.reduceat, a(5, dtype="f4"), [0, 1], out=a(3, 4), declines="an output with more axes")
