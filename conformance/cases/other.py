"""Fourier transforms, polynomials, data types, input and output, printing, dates, records."""

from __future__ import annotations

import numpy as np
import numpy.lib.recfunctions as rec
from numpy._core import strings as private_strings
from numpy.polynomial import polynomial

from numpy_dist.conformance.arguments import TemporaryFile, a, of, plain
from numpy_dist.conformance.case import Tolerance, Topic

TOPIC = Topic("Other routines")
case = TOPIC.case
LAPACK = Tolerance(4096, "LAPACK's result depends on the memory order of its input")

FOUR_STEPS = Tolerance(64, "a single line that is cut is transformed in four steps, which round differently")
for _function in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft):
    case(_function, a(9), tolerance=FOUR_STEPS)
    case(_function, a(24), 30, norm="ortho", tolerance=FOUR_STEPS)
    case(_function, a(24), 16, norm="forward", tolerance=FOUR_STEPS)
    for _dtype in "?bLefdFD":
        case(_function, a(4, 6, dtype=_dtype))
        case(_function, a(4, 6, dtype=_dtype), axis=0)
    for _view in ("flipped", "backwards", "fortran", "strided"):
        case(_function, a(3, 4, 5, view=_view), axis=1)
    for _norm in (None, "ortho", "forward", "backward", "other"):
        case(_function, a(4, 5), 8, axis=0, norm=_norm)
        case(_function, a(4, 5), 3, -1, _norm)
    case(_function, a(4, 5), 0)
    case(_function, a(4, 5), axis=2)
    case(_function, a(0, 5))
    case(_function, a(5, 0))
    case(_function, a(5, 1), axis=1)
    case(_function, a(4, dtype="U3"))
    case(_function, a())
case(np.fft.fft, a(4, 5), out=a(4, 5, dtype="D"))
case(np.fft.fft, a(4, 5), out=a(4, 5, dtype="f8"))
case(np.fft.fft, a(4, 5), out=a(4, 4, dtype="D"))
case(np.fft.fft, a(4, 5), out=a(3, 5, dtype="D"))
case(np.fft.irfft, a(4, 5, dtype="D"), out=a(4, 8))
for _function in (np.fft.fft2, np.fft.ifft2, np.fft.fftn, np.fft.ifftn, np.fft.rfft2, np.fft.irfft2, np.fft.rfftn,
                  np.fft.irfftn):  # fmt: skip
    case(_function, a(4, 6))
    case(_function, a(3, 4, 5))
    case(_function, a(3, 4, 5, view="fortran"), axes=(0, 2), norm="ortho")
    case(_function, a(3, 4, 5, dtype="f"), (5, 3), axes=(0, 1))
    case(_function, a(3, 4), axes=(0, 2))
    case(_function, a(3, 4, 5), (2,))
case(np.fft.fftn, a(3, 4, 5), axes=(1, 1))
case(np.fft.fft2, a(4, 6), out=a(4, 6, dtype="D"))

case(np.polyval, a(4), a(6, 5), materialises=True)
case(np.polyval, [1, 2, 3], a(6))
case(np.polyval, a(3), 2.0, materialises=True)
for _function in (np.polyadd, np.polysub, np.polymul, np.polydiv):
    case(_function, a(4), a(3), tolerance=LAPACK)
for _function in (np.polyder, np.polyint):
    case(_function, a(5))
case(np.poly, a(3), tolerance=LAPACK)
case(np.roots, a(4), tolerance=LAPACK)
case(np.polyfit, a(9, values="sorted"), a(9), 2, tolerance=LAPACK)
case(np.polyfit, a(40, values="unit"), a(40, 2), 3, tolerance=LAPACK)
case(np.polyfit, a(40, values="unit"), a(40), 3, w=a(40, values="positive"), full=True, tolerance=LAPACK)
case(np.polyfit, a(40, values="unit"), a(40), 3, cov=True, tolerance=LAPACK)
case(np.polyfit, a(40, values="unit"), a(40, 2), 3, cov="unscaled", tolerance=LAPACK)
case(np.polyfit, a(40, values="ones"), a(40), 3, tolerance=LAPACK)
case(np.polyfit, a(40), a(39), 3)
case(np.polyfit, a(40), a(40), -1)
case(np.polyfit, a(0), a(0), 1)
case(np.polyfit, a(4), a(4), 3, cov=True)
case(polynomial.polyval2d, a(3), a(3), a(2, 2))
case(polynomial.polyval2d, a(4, 5), a(4, 5), a(3, 2, dtype="i4"))
case(polynomial.polyval2d, a(4), a(5), a(3, 2))
case(polynomial.polyval2d, a(4), plain(4), [[1, 2], [3, 4]])
case(np.polymul, of([0, 0, 2]), [0, 0])
case(np.polymul, a(2, 2), a(3))
case(np.polymul, of([0.0, 0.0]), a(3))
if hasattr(polynomial.polygrid2d, "__wrapped__"):  # NumPy lets us override it since 2.4
    case(polynomial.polygrid2d, a(3), a(2), a(2, 2))
if hasattr(polynomial, "polyvalnd"):  # since NumPy 2.5
    case(polynomial.polyvalnd, (a(3), a(3)), a(2, 2))

case(np.astype, a(6, 5), "i4")
case(np.astype, a(6, 5), np.dtype("f8"), copy=False)
case(np.astype, a(6, 5, dtype="i4"), "U4")
case(np.astype, a(6, 5), "nonsense")
case(np.can_cast, "f8", "f4", via=lambda *args: np.can_cast(*args))
case(np.can_cast, a(3), "f4")
case(np.can_cast, a(3, dtype="i2"), "f8", "safe")
case(np.common_type, a(3, dtype="f4"), a(3, dtype="i4"))
case(np.common_type, a(3, dtype="U3"))
case(np.result_type, a(3, dtype="f4"), 2.5)
case(np.result_type, a(3, dtype="i1"), a(3, dtype="u1"), "f2")
case(np.min_scalar_type, a(3))

case(np.array_repr, a(6, 5), materialises=True)
case(np.array_repr, a(40, 50, dtype="i4"), via=lambda x: np.array_repr(x).partition("(")[2].split(), materialises=True)
case(np.array_repr, a(6, dtype="f4"), precision=3, materialises=True)
case(np.array_str, a(6, 5), materialises=True)
case(np.array_str, a(2000), materialises=True)
case(np.array_str, of(2.5), materialises=True)
case(np.array2string, a(6, 5), precision=2, separator=", ", materialises=True)
case(np.array2string, a(6), formatter={"float_kind": lambda x: f"{x:.1f}"}, materialises=True)
case(np.array2string, a(0, 3), materialises=True)

case(np.save, TemporaryFile(".npy"), a(6, 5), materialises=True)
case(np.savetxt, TemporaryFile(".txt"), a(6, 5), materialises=True)
case(
    np.savez,
    TemporaryFile(".npz"),
    a(6, 5),
    b=a(3),
    via=lambda path, x, **named: np.savez(path, x, **named),
    materialises=True,
)
case(np.savez_compressed, TemporaryFile(".npz"), a(6, 5), materialises=True)
case(
    np.fromfile,
    TemporaryFile(".bin"),
    a(6),
    via=lambda path, x: (x.tofile(path), np.fromfile(path, like=x))[1],
    materialises=True,
)

DATES = a(6, dtype="M8[D]")
case(np.datetime_as_string, DATES)
case(np.datetime_as_string, a(3, 4, dtype="M8[s]", view="fortran"), unit="h", casting="unsafe")
case(np.datetime_as_string, a(6, dtype="M8[s]"), unit="auto")
case(np.datetime_as_string, a(6, dtype="M8[s]"), unit="Y")
case(np.busday_count, DATES, np.datetime64("2020-03-01"))
case(np.busday_count, DATES, a(3, 6, dtype="M8[D]"), "1111110", [np.datetime64("2020-03-03")])
case(np.busday_count, DATES, DATES, weekmask=[1, 1, 1, 0, 0, 0, 1])
case(np.busday_count, DATES, a(4, dtype="M8[D]"))
case(np.busday_count, DATES, DATES, out=a(6, dtype="i8"), declines="an output")
case(np.busday_offset, DATES, 2, roll="forward")
case(np.busday_offset, DATES, of([1, 2, 3, -1, 5, 0]), "preceding", holidays=[np.datetime64("2020-03-03")])
case(np.busday_offset, of(["2020-03-07", "2020-03-06"], "M8[D]"), 1)
case(np.is_busday, DATES)
case(np.is_busday, DATES, "1111100", None, None, a(6, dtype="?"), declines="an output")
case(np.is_busday, a(4, 3, dtype="M8[D]", view="fortran"), weekmask="Sat Sun")

WORDS = a(6, dtype="U9")
for _function in (np.char.equal, np.char.not_equal, np.char.less, np.char.less_equal, np.char.greater,
                  np.char.greater_equal):  # fmt: skip
    case(_function, WORDS, a(6, dtype="U9"))
    case(_function, a(4, 3, dtype="S5", view="fortran"), a(3, dtype="S9"))
    case(_function, WORDS, "apple")
    case(_function, WORDS, a(6))
    case(_function, WORDS, a(5, dtype="U9"))
S = np.strings
for _function in (S.capitalize, S.lower, S.swapcase, S.title, S.upper, S.expandtabs, S.encode, private_strings._split,
                  private_strings._rsplit, private_strings._splitlines):  # fmt: skip
    case(_function, WORDS)
for _function in (S.capitalize, S.lower, S.swapcase, S.title, S.upper, S.expandtabs):
    case(_function, a(4, 3, dtype="S5", view="fortran"))
    case(_function, a(4, 3))
    case(_function, a(0, 3, dtype="U5"))
for _function in (S.center, S.ljust, S.rjust, S.zfill):
    case(_function, WORDS, 12)
    case(_function, WORDS, of([2, 30, 4, 5, 6, 7]))
    case(_function, a(4, 3, dtype="S5", view="fortran"), of([[2], [9], [7], [1]]))
    case(_function, WORDS, 2.5)
case(S.center, WORDS, 12, "*")
case(S.ljust, WORDS, 12, fillchar=of(["a", "b", "c", "d", "e", "f"]))
case(S.rjust, WORDS, 12, "ab")
case(S.encode, WORDS, "utf-16", errors="ignore")
case(S.decode, a(6, dtype="S9"))
case(S.decode, of([b"ab", b"\xff"]), "ascii")
case(S.mod, of(["%d x", "y %d"]), of([1, 2]))
case(S.mod, of(["%d x", "y"]), of([1, 2]))
case(S.multiply, WORDS, of([1, 2, 0, 3, 1, 1]))
case(S.multiply, WORDS, 3)
case(S.multiply, WORDS, of([1, 2]))
case(S.multiply, WORDS, 2.5)
for _function in (S.partition, S.rpartition):
    # Of literal values: NumPy's strings without any characters are an odd dtype.
    case(_function, of(["apple", "pear", "fig", "", "e", "seek"]), "e")
    case(_function, of([["apple", "pear"], ["eel", "seek"]], view="fortran"), "ee")
    case(_function, WORDS, "")
    case(_function, of(["apple", "bee", "seed"]), of(["pp", "e", "d"]), declines="several separators")
case(S.replace, WORDS, "e", "EE")
case(S.replace, WORDS, "e", "EE", 1)
case(S.replace, WORDS, old=of(["a", "b", "c", "d", "e", "pp"]), new="")
case(S.translate, WORDS, str.maketrans("ae", "AE"))
case(S.translate, a(6, dtype="S9"), bytes(range(256)), b"e")
case(private_strings._join, of("-"), WORDS)

RECORDS = a(5, dtype="i4,f8")
OTHER = a(4, dtype="i4,f4")
case(rec.append_fields, RECORDS, "x", plain(5), usemask=False)
case(rec.apply_along_fields, np.mean, RECORDS)
case(rec.assign_fields_by_name, RECORDS, plain(5, dtype="i4,f8"))
case(rec.assign_fields_by_name, plain(5, dtype="i4,f8"), RECORDS, declines="an ndarray was asked for")
case(rec.drop_fields, RECORDS, "f0")
case(rec.find_duplicates, RECORDS)
case(rec.join_by, "f0", of([(1, 2.0), (3, 4.0)], "i4,f8"), of([(1, 5.0), (7, 4.0)], "i4,f8"), usemask=False)
case(rec.merge_arrays, (RECORDS, OTHER), declines="arrays of different sizes")
for _flatten in (False, True):
    case(rec.merge_arrays, (RECORDS, a(5, dtype="i4,f4")), flatten=_flatten)
    case(rec.merge_arrays, (RECORDS, plain(5), a(5, dtype="U3"), a(1, 5, dtype="?")), flatten=_flatten)
    case(rec.merge_arrays, (RECORDS,), flatten=_flatten)
case(rec.merge_arrays, (a(5),))
case(rec.merge_arrays, (RECORDS, a(5)), usemask=True, declines="masked arrays and records")
case(rec.append_fields, RECORDS, ["x", "y"], [a(5), plain(5, dtype="i2")], usemask=False)
case(rec.append_fields, RECORDS, ["x"], [a(5)], dtypes="f4", usemask=False)
case(rec.append_fields, RECORDS, "x", plain(5), dtypes="f4", usemask=False)
case(rec.append_fields, RECORDS, ["x", "y"], [a(5)], usemask=False)
case(rec.append_fields, RECORDS, ["x", "y"], [a(5), a(5)], dtypes=["f4", "f4", "f4"], usemask=False)
case(rec.append_fields, RECORDS, "x", plain(5), declines="masked arrays and records")
case(rec.stack_arrays, (RECORDS, a(7, dtype="i4,f8"), plain(2, dtype="i4,f8")), usemask=False)
case(rec.stack_arrays, (RECORDS, OTHER), usemask=False)
case(rec.stack_arrays, (RECORDS, OTHER), usemask=False, autoconvert=True)
case(rec.stack_arrays, (a(3), a(2, 2)), usemask=False)
case(rec.stack_arrays, (RECORDS, RECORDS), declines="masked arrays and records")
case(rec.rec_append_fields, RECORDS, "x", plain(5))
case(rec.rec_drop_fields, RECORDS, "f0")
case(rec.rec_join, "f0", of([(1, 2.0), (3, 4.0)], "i4,f8"), of([(1, 5.0), (7, 4.0)], "i4,f8"))
case(rec.recursive_fill_fields, RECORDS, plain(5, dtype="i4,f8", values="zeros"), declines="an ndarray was asked for")
case(rec.recursive_fill_fields, a(3, dtype="f4,i2"), RECORDS)
case(rec.recursive_fill_fields, plain(5, dtype="i4,f8"), RECORDS)
case(rec.rename_fields, RECORDS, {"f0": "x"})
case(rec.repack_fields, RECORDS)
case(rec.require_fields, RECORDS, [("f0", "i8")])
case(rec.stack_arrays, (RECORDS, RECORDS), usemask=False)
case(rec.structured_to_unstructured, RECORDS)
case(rec.unstructured_to_structured, a(4, 2), np.dtype("f8,f8"), copy=True)
case(rec.unstructured_to_structured, a(3, 4, 2, dtype="i2"), names=["x", "y"], copy=True)
case(rec.unstructured_to_structured, a(4, 2), np.dtype("f8,i4"))
case(rec.unstructured_to_structured, a(4, 3), np.dtype("f8,i4"))
case(rec.structured_to_unstructured, a(3, 4, dtype="i4,i2,f4"), dtype="f8")
case(rec.structured_to_unstructured, a(4))
case(rec.drop_fields, a(3, 4, dtype="i4,i2,f4", view="fortran"), ["f1", "f2"], usemask=False)
case(rec.drop_fields, RECORDS, "f0", asrecarray=True, declines="masked arrays and records")
case(rec.repack_fields, a(4, dtype="i4,i2,f4", view="strided"))
case(rec.require_fields, a(3, 4, dtype="i4,i2,f4", view="fortran"), [("f2", "i8"), ("f0", "f4")])

# Keywords.
case(np.allclose, a(4), a(4), rtol=100.0)
case(np.allclose, of([1.0, 2.0]), of([1.01, 2.01]), 0.02)
case(np.may_share_memory, a(4), a(4), max_work=1)
case(np.shares_memory, a(4), a(4), max_work=1)
case(np.can_cast, a(3), "f4", casting="same_kind")
for _function in (np.fft.ifft, np.fft.fftn, np.fft.ifftn, np.fft.ifft2):
    case(_function, a(4, 5, dtype="D"), out=a(4, 5, dtype="D"))
    case(_function, a(4, 5, dtype="D"), out=a(4, 4, dtype="D"))
for _function in (np.fft.rfft, np.fft.rfft2, np.fft.rfftn, np.fft.ihfft):
    case(_function, a(4, 6), out=a(4, 4, dtype="D"))
    case(_function, a(4, 6), out=a(4, 4))
for _function in (np.fft.hfft, np.fft.irfft2, np.fft.irfftn):
    case(_function, a(4, 4, dtype="D"), out=a(4, 6))
    case(_function, a(4, 4, dtype="D"), out=a(4, 5))
case(np.polyder, a(6), 2)
case(np.polyder, a(6), -1)
case(np.polyint, a(4), 2, [1, 2])
case(np.polyint, a(4), k=3)
case(np.polyint, a(4), 2, k=[1, 2, 3])
case(np.polyfit, a(40, values="unit"), a(40), 3, rcond=0.5, tolerance=LAPACK)
_TEXT = a(6, 5, dtype="f8")
for _options in (
    {"max_line_width": 30}, {"suppress_small": True}, {"prefix": "data "}, {"threshold": 5, "edgeitems": 1},
    {"sign": "+"},
    {"floatmode": "fixed"}, {"max_line_width": 30, "suffix": " the end"}, {"legacy": "1.13"},
):  # fmt: skip
    case(np.array2string, _TEXT, **_options, materialises=True)
for _function in (np.array_repr, np.array_str):
    case(_function, _TEXT, max_line_width=30, precision=3, suppress_small=True, materialises=True)
for _options in (
    {"fmt": "%.3f"}, {"fmt": ["%d"] * 5, "delimiter": ";"}, {"newline": "|"}, {"header": "a b", "footer": "end"},
    {"header": "a", "comments": "%"}, {"encoding": "utf8"},
):  # fmt: skip
    case(np.savetxt, TemporaryFile(".txt"), _TEXT, **_options, materialises=True)
case(np.save, TemporaryFile(".npy"), _TEXT, allow_pickle=False, materialises=True)
case(np.savez, TemporaryFile(".npz"), _TEXT, b=a(3), allow_pickle=False, materialises=True)
case(np.savez_compressed, TemporaryFile(".npz"), _TEXT, allow_pickle=False, b=a(3), materialises=True)
for _options in ({"dtype": "f4"}, {"count": 3}, {"offset": 8}, {"count": 99}):
    case(np.fromfile, TemporaryFile(".bin"), a(6), **_options, like=a(6), materialises=True,
         via=lambda path, x, like, **options: (x.tofile(path), np.fromfile(path, **options, like=like))[1])  # fmt: skip
case(np.fromfile, TemporaryFile(".txt"), a(6, values="whole"), sep=",", like=a(6), materialises=True,
     via=lambda path, x, sep, like: (x.tofile(path, sep), np.fromfile(path, sep=sep, like=like))[1])  # fmt: skip
_CALENDAR = np.busdaycalendar("1111100", [np.datetime64("2020-03-03")])
case(np.busday_count, DATES, DATES, busdaycal=_CALENDAR)
case(np.busday_count, DATES, DATES, weekmask="1111110", busdaycal=_CALENDAR)
case(np.busday_offset, DATES, 2, roll="forward", weekmask="1111110")
case(np.busday_offset, DATES, 2, roll="forward", busdaycal=_CALENDAR)
case(np.busday_offset, DATES, 2, roll="forward", out=a(6, dtype="M8[D]"), declines="an output")
case(np.is_busday, DATES, holidays=[np.datetime64("1970-01-05")])
case(np.is_busday, DATES, busdaycal=_CALENDAR)
case(np.datetime_as_string, a(6, dtype="M8[s]"), timezone="UTC")
case(np.datetime_as_string, DATES, timezone="local", casting="unsafe")
case(S.decode, of([b"ab", b"\xff"]), "ascii", "ignore")
case(S.decode, of([b"ab", b"\xff"]), "ascii", errors="nonsense")
case(S.expandtabs, of(["a\tb", "\t"]), 3)
case(private_strings._split, WORDS, "a", 1)
case(private_strings._rsplit, WORDS, "a", 1)
case(private_strings._splitlines, of(["a\nb", "c"]), True)
case(rec.append_fields, RECORDS, "x", plain(5), fill_value=7, usemask=False)
case(
    rec.append_fields,
    RECORDS,
    "x",
    plain(3),
    fill_value=7,
    usemask=False,
    declines="fields of another size, or that are records",
)
case(rec.append_fields, RECORDS, "x", plain(5), usemask=False, asrecarray=True, declines="masked arrays and records")
_SECOND = of([(1,), (2,), (3,)], np.dtype([("f1", "i4")]))
case(rec.assign_fields_by_name, a(3, dtype="f4,i2"), _SECOND, zero_unassigned=False)
case(rec.assign_fields_by_name, a(3, dtype="f4,i2"), _SECOND)
_REPEATED = of([(1, 2.0), (3, 4.0), (1, 2.0), (1, 5.0)], "i4,f8")
case(rec.find_duplicates, _REPEATED, "f0", ignoremask=False, return_index=True)
_LEFT, _RIGHT = of([(1, 2.0), (3, 4.0)], "i4,f8"), of([(1, 5.0), (7, 4.0)], "i4,f8")
case(rec.join_by, "f0", _LEFT, _RIGHT, "outer", "_a", "_b", {"f1": -1.0}, usemask=False)
case(rec.join_by, "f0", _LEFT, _RIGHT, "leftouter", usemask=False, asrecarray=True)
case(rec.rec_join, "f0", _LEFT, _RIGHT, "outer", "_a", "_b", {"f1": -1.0})
case(rec.merge_arrays, (RECORDS, a(3)), fill_value=7, declines="arrays of different sizes")
case(rec.merge_arrays, (RECORDS, a(5)), fill_value=7)
case(rec.merge_arrays, (RECORDS, a(5)), asrecarray=True, declines="masked arrays and records")
case(rec.rec_append_fields, RECORDS, "x", plain(5), dtypes="f4")
case(rec.repack_fields, RECORDS, align=True)
case(rec.repack_fields, RECORDS, align=True, recurse=True)
case(rec.stack_arrays, (RECORDS, OTHER), {"f1": -1}, usemask=False)
case(rec.stack_arrays, (RECORDS, RECORDS), usemask=False, asrecarray=True, declines="masked arrays and records")
case(rec.structured_to_unstructured, RECORDS, copy=True)
case(rec.structured_to_unstructured, RECORDS, dtype="i4", casting="safe")
case(rec.unstructured_to_structured, a(4, 2), np.dtype("f8,f4"), align=True, casting="safe")
case(rec.unstructured_to_structured, a(4, 2), names=["x", "y"], align=True)

# Files: every memory order and kind of element, and what NumPy refuses.
for _array in (
    a(6, 5, view="fortran"), a(6, 5, view="backwards"), a(3, 4, 5, dtype="c8"), a(), a(0, 3), a(3, 0), a(7, dtype="U3"),
    a(7, dtype="M8[s]"), a(7, dtype="i4,f8"), a(2, 3, dtype=">i2"), plain(4),
):  # fmt: skip
    case(np.save, TemporaryFile(".npy"), _array, materialises=True)
    case(np.savez, TemporaryFile(".npz"), _array, a(5), materialises=True)
    case(np.savetxt, TemporaryFile(".txt"), _array, fmt="%s", materialises=True)
    case(np.ndarray.tofile, _array, TemporaryFile(), via=lambda x, path: x.tofile(path), materialises=True)
case(np.savetxt, TemporaryFile(".txt"), a(6, 5), fmt=["%d"] * 4, materialises=True)
case(np.savetxt, TemporaryFile(".txt"), a(6, 5), fmt=3, materialises=True)
case(np.savetxt, TemporaryFile(".txt"), a(3, dtype="U2"), materialises=True)
case(np.savez, TemporaryFile(".npz"), a(3), arr_0=a(3), materialises=True)
case(np.savez, TemporaryFile(".npz"), a(3), b=3, c=[1, 2], d=plain(2), materialises=True)
case(rec.find_duplicates, a(4))
case(rec.find_duplicates, _REPEATED, "nope")
case(np.fft.rfft, a(4, 5, dtype="D"), out=a(3))
case(np.fft.fft, a(5), 0, 1)
case(rec.repack_fields, a(4, dtype=">f8,i4,>i2"), align=True)
