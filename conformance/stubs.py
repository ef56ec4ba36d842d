"""Type stubs of the namespace: ``python -m numpy_dist.conformance.stubs`` writes the ``.pyi`` files of numpy_dist.

Options: ``--check`` (write nothing; exit with 1 if a file is out of date). They are made from what `numpy_dist` has,
the signatures at run time, and what NumPy's own stubs say of parameters and results. What NumPy types well enough is
NumPy's name; a function that gives arrays gets an overload by which it gives a `DistArray` where it is given one.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

import numpy_dist
from numpy_dist.conformance import numpy_stubs
from numpy_dist.conformance.numpy_stubs import ARRAY, LIKE, OTHER, SCALAR, Overload, Types
from numpy_dist.random import legacy
from numpy_dist.settings import NAMES, Settings

FOLDER = Path(numpy_dist.__file__).parent
_HEAD = '''"""{title}

Made by `python -m numpy_dist.conformance.stubs`, with NumPy {version}; type checkers and editors read it.
"""
# mypy: disable-error-code="misc, override, overload-overlap, assignment"
# ruff: noqa: E402, E501, F401, F403, F821, I001, UP

{imports}
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import IO, Any, Literal, SupportsIndex, TypeVar, overload

import numpy as _np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from numpy_dist.argument_types import Shape
from numpy_dist.distarray import DistArray{exported}

_Array = DistArray | NDArray[Any]
_T = TypeVar("_T")
'''
_OWN_MODULES = ("linalg", "fft", "random")
_LAYOUT = "split: SupportsIndex | None = None, mesh: Mesh | Sequence[SupportsIndex] | None = None"

# What has no signature that says it: by name, in place of what would be made.
_SPECIAL = {
    "numpy.where": """
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
""",
    "numpy.linalg.eig": """
@overload
def eig(a: DistArray) -> _EigResult: ...
@overload
def eig(a: ArrayLike) -> Any: ...
""",
    "numpy.linalg.eigh": """
@overload
def eigh(a: DistArray, UPLO: Literal["L", "U", "l", "u"] = "L") -> _EigResult: ...
@overload
def eigh(a: ArrayLike, UPLO: Literal["L", "U", "l", "u"] = "L") -> Any: ...
""",
    "numpy.linalg.qr": """
@overload
def qr(a: DistArray, mode: Literal["reduced", "complete"] = "reduced") -> _QRResult: ...
@overload
def qr(a: DistArray, mode: Literal["r"]) -> DistArray: ...
@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "r", "raw"] = "reduced") -> Any: ...
""",
    "numpy.linalg.svd": """
@overload
def svd(
    a: DistArray, full_matrices: bool = True, compute_uv: Literal[True] = True, hermitian: bool = False
) -> _SVDResult: ...
@overload
def svd(
    a: DistArray, full_matrices: bool = True, *, compute_uv: Literal[False], hermitian: bool = False
) -> DistArray: ...
@overload
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any: ...
""",
    "numpy_dist.linspace": f"""
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: SupportsIndex = 50, endpoint: bool = True, retstep: Literal[False] = False,
    dtype: DTypeLike | None = None, axis: SupportsIndex = 0, *, device: Literal["cpu"] | None = None, {_LAYOUT}
) -> DistArray: ...
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: SupportsIndex = 50, endpoint: bool = True, *, retstep: Literal[True],
    dtype: DTypeLike | None = None, axis: SupportsIndex = 0, device: Literal["cpu"] | None = None, {_LAYOUT}
) -> tuple[DistArray, Any]: ...
""",
    "numpy_dist.meshgrid": """
def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: Literal["xy", "ij"] = "xy"
) -> tuple[DistArray, ...]: ...
""",
    "numpy_dist.indices": f"""
@overload
def indices(
    dimensions: Iterable[SupportsIndex], dtype: DTypeLike | None = ..., sparse: Literal[False] = False, *, {_LAYOUT}
) -> DistArray: ...
@overload
def indices(
    dimensions: Iterable[SupportsIndex], dtype: DTypeLike | None = ..., *, sparse: Literal[True], {_LAYOUT}
) -> tuple[DistArray, ...]: ...
""",
    "numpy_dist.fromstring": """
def fromstring(
    string: str | bytes, dtype: DTypeLike | None = ..., count: SupportsIndex = -1, *, sep: str, like: Any = None
) -> DistArray: ...
""",
    "numpy_dist.open": """
def open(path: str | os.PathLike[str]) -> Any: ...
""",
    "numpy_dist.wait": """
@overload
def wait() -> None: ...
@overload
def wait(array: _T, /) -> _T: ...
@overload
def wait(*arrays: _T) -> tuple[_T, ...]: ...
""",
}
# What gives a number of all elements, and an array along axes.
_REDUCTIONS = (
    *("all amax amin any argmax argmin count_nonzero max mean median min prod ptp std sum var".split()),
    *("nanargmax nanargmin nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar".split()),
)
_TUPLES = ("diag_indices", "mask_indices", "tril_indices", "triu_indices")
_OTHERS = {"load": "Any", "genfromtxt": "Any", "fromfunction": "_T"}
_OBJECTS = {"c_": "_Concatenator", "r_": "_Concatenator", "mgrid": "_MeshGrid", "ogrid": "_OpenGrid"}
_OBJECT_CLASSES = """
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
"""


# ---- one function of NumPy's


def function(where: str, name: str) -> str:
    """The stub of a function of NumPy's: NumPy's own, or signatures with distributed arrays."""
    full = f"{where}.{name}"
    if full in _SPECIAL:
        return _SPECIAL[full]
    variants = numpy_stubs.overloads(where, name)
    signature = _signature(getattr(sys.modules[where], name))
    merged = _merged(variants)
    if signature is None or not variants:
        return _numpys(where, name)
    arrays = [p for p in signature.parameters if p not in ("out", "where", "initial") and _takes_arrays(merged.get(p))]
    returned = frozenset[str]().union(*(variant.returns for variant in variants))
    if not arrays:
        return _numpys(where, name)
    if not _gives_arrays(returned):
        strict = any(ARRAY in types and LIKE not in types for types in merged.values())
        return _line(name, signature, merged, {}, _text(returned)) if strict else _numpys(where, name)
    first = [p for p in arrays if signature.parameters[p].default is inspect.Parameter.empty]
    if where == "numpy" and name in _REDUCTIONS:
        return _reductions(name, signature, merged, first)
    results = {p: _result(variants, p) for p in first}
    return _overloads(name, signature, merged, {p: result for p, result in results.items() if result != "Any"}, first)


def _overloads(
    name: str, signature: inspect.Signature, merged: dict[str, Types], results: dict[str, str], arrays: list[str]
) -> str:
    """An overload for each parameter that makes the result distributed, one for ndarrays, and one for the rest."""
    if not results:
        return _line(name, signature, merged, {}, "Any")
    texts = [
        _line(name, signature, merged, {p: "DistArray"}, _plain(result, "DistArray"))
        for p, result in results.items()
    ]
    if len(results) == len(arrays):
        p, result = next(iter(results.items()))
        texts.append(_line(name, signature, merged, {p: "NDArray[Any]"}, _plain(result, "NDArray[Any]")))
    texts.append(_line(name, signature, merged, {}, "Any"))
    return "".join(f"@overload\n{text}" for text in texts)


def _reductions(name: str, signature: inspect.Signature, merged: dict[str, Types], arrays: list[str]) -> str:
    """An array along axes and with `keepdims`; else what may be a number. Arrays of one axis are not told apart."""
    array = {arrays[0]: "DistArray"}
    axis, keepdims = signature.parameters["axis"], signature.parameters["keepdims"]
    given = axis.replace(default=inspect.Parameter.empty)
    along = signature.replace(parameters=[given if p is axis else p for p in signature.parameters.values()])
    listed = list(signature.parameters.values())
    place = listed.index(keepdims)
    kept = [p.replace(kind=p.KEYWORD_ONLY) if n >= place else p for n, p in enumerate(listed)]
    keeping = _line(name, signature.replace(parameters=kept), merged, array, "DistArray")
    texts = [
        _line(name, along, {**merged, "axis": merged["axis"] - {"None"}}, array, "DistArray"),
        re.sub(r"keepdims: bool = [^,)]*", "keepdims: Literal[True]", keeping),
        _line(name, signature, merged, {}, "Any"),
    ]
    return "".join(f"@overload\n{text}" for text in texts)


def _plain(result: str, array: str) -> str:
    """A result with this kind of arrays."""
    return result.replace(ARRAY, array).replace(SCALAR, "Any").replace(OTHER, "Any")


def _numpys(where: str, name: str) -> str:
    return f"from {where} import {name} as {name}\n"


def _signature(function: Any) -> inspect.Signature | None:
    """The signature at run time; None where there is none."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _merged(variants: list[Overload]) -> dict[str, Types]:
    """What all overloads together take, by parameter."""
    merged: dict[str, Types] = {}
    for variant in variants:
        for name, given in variant.parameters.items():
            merged[name] = merged.get(name, frozenset()) | given
    return merged


def _takes_arrays(types: Types | None) -> bool:
    return types is not None and any(word in member for member in types for word in (LIKE, ARRAY))


def _gives_arrays(types: Types) -> bool:
    return any(member in ("Any", OTHER) or SCALAR in member or ARRAY in member for member in types)


def _result(variants: list[Overload], parameter: str) -> str:
    """What a function gives if this parameter is an array: one type, or ``Any``."""
    found: set[str] = set()
    for variant in variants:
        given = variant.parameters.get(parameter, frozenset())
        out = variant.parameters.get("out", frozenset({"None"}))
        if "None" in out and (given == {"Any"} or _takes_arrays(given)):
            found |= variant.returns if variant.returns != {ARRAY, SCALAR} else frozenset()  # the last, for the rest
    known = found - {"Any"}
    return known.pop() if len(known) == 1 and ARRAY in min(known) else "Any"


# ---- text


def _text(types: Types) -> str:
    """A union in the names of the stub."""
    if any(member in (LIKE, SCALAR) for member in types):
        types = frozenset({LIKE}) | {member for member in types if member == "None" or "[" in member}
    text = numpy_stubs.union(types).replace(LIKE, "ArrayLike").replace(ARRAY, "_Array").replace(SCALAR, "ArrayLike")
    text = text.replace(OTHER, "Any")
    return re.sub(r"\bint\b", "SupportsIndex", text) if "[" not in text or "Literal" not in text else text


def _line(
    name: str,
    signature: inspect.Signature,
    merged: dict[str, Types],
    arrays: dict[str, str],
    returns: str,
    leading: tuple[str, ...] = (),
) -> str:
    """One signature; `arrays` are parameters with the kind of array that they take in it."""
    parts, kinds = [*leading], [p.kind for p in signature.parameters.values()]
    for n, parameter in enumerate(signature.parameters.values()):
        if parameter.kind is parameter.KEYWORD_ONLY and not {parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL} & {
            *kinds[:n]
        }:
            parts.append("*")
        parts.append(_parameter(parameter, merged.get(parameter.name), arrays.get(parameter.name)))
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.kind not in kinds[n + 1 :]:
            parts.append("/")
    return f"def {name}({', '.join(parts)}) -> {returns}: ...\n"


_SAME = {"out": "_Array | None", "keepdims": "bool"}
"""Parameters that mean the same everywhere, with their types."""


def _parameter(parameter: inspect.Parameter, given: Types | None, array: str | None) -> str:
    """A parameter with its type and default."""
    if parameter.name in _SAME:
        text = _SAME[parameter.name]
    elif array is not None:
        assert given is not None
        several, alone = any("[" in member and "<" in member for member in given), bool({LIKE, ARRAY} & given)
        text = " | ".join([array] * alone + [f"Sequence[{array}]"] * several) or array
    elif isinstance(parameter.annotation, str):
        text = _annotation(parameter.annotation)
    else:
        text = "Any" if given is None else _text(given)
    return _typed(parameter, text)


def _typed(parameter: inspect.Parameter, text: str) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
    if parameter.default is parameter.empty:
        return f"{stars}{parameter.name}: {text}"
    default = parameter.default
    if default is None and "None" not in text and text not in ("Any", "object"):
        text += " | None"
    shown = repr(default) if default is None or type(default) in (bool, int, float, str) else "..."
    return f"{parameter.name}: {text} = {shown if len(shown) < 30 else '...'}"


# What our own annotations say that is not for everybody.
_WORDS = {
    r"np\.random\.|npt\.": "",
    r"_OrderKACF": "Literal['K', 'A', 'C', 'F'] | None",
    r"_OrderCF": "Literal['C', 'F'] | None",
    r"_SupportsArrayFunc \| None|_SupportsDLPack\[None\]": "Any",
    r"_Requirements \| Iterable\[_Requirements\]": "str | Iterable[str]",
    r"\bT\b": "_T",
    r"\bint\b": "SupportsIndex",
}


def _annotation(text: str) -> str:
    """An annotation of ours in the names of the stub."""
    for pattern, replacement in _WORDS.items():
        text = re.sub(pattern, replacement, text)
    return text


# ---- our own functions


def own(name: str, module: str) -> str:
    """The stub of one of our own names: the name where it is typed where it stands, or a signature."""
    full = f"numpy_dist.{name}"
    if full in _SPECIAL:
        return _SPECIAL[full]
    if name in _OBJECTS:
        return f"{name}: {_OBJECTS[name]}\n"
    if module != "numpy_dist.creation":
        return f"from {module} import {name} as {name}\n"
    function = getattr(numpy_dist, name)
    merged = _merged(numpy_stubs.overloads("numpy", name))
    signature = inspect.signature(function)
    returns = "tuple[DistArray, ...]" if name in _TUPLES else _OTHERS.get(name, "DistArray")
    return _line(name, signature, {**merged, **dict.fromkeys(("like",), frozenset({"Any"}))}, {}, returns)


_SETTING_TYPES = {"_count": "int | str", "_bytes": "int | str", "_at_once": "int | str", "_seconds": "float | str"}
_SETTING_TYPES["_weights"] = "Sequence[float] | str"
_SETTING_TYPES |= dict.fromkeys(("_directory", "_folder"), "str | os.PathLike[str]")


def _setting_type(name: str) -> str:
    """What a setting may be given."""
    parse = vars(Settings)[name].parse
    words = inspect.getclosurevars(parse).nonlocals.get("words")
    if words is None:
        return _SETTING_TYPES.get(parse.__name__, "str")
    text = f"Literal[{', '.join(map(repr, words))}]"
    return f"{text} | bool" if "on" in words else text


def settings_class() -> str:
    """`config`, with the type of each setting."""
    lines = ["class _Settings:\n"]
    for name in NAMES:
        setting = vars(Settings)[name]
        read = {"AT_ONCE": "int | str", "WEIGHTS": "tuple[float, ...] | str"}.get(name, type(setting.default).__name__)
        lines += [
            f"    @property\n    def {name}(self) -> {read}:\n        {setting.documentation!r}\n",
            f"    @{name}.setter\n    def {name}(self, value: {_setting_type(name)}) -> None: ...\n",
        ]
    keywords = ", ".join(f"{name}: {_setting_type(name)} = ..." for name in NAMES)
    lines += [
        f"    def __call__(self, *, {keywords}) -> SettingsBlock:\n",
        "        \"\"\"A context manager inside which the given settings have the given values.\"\"\"\n",
        "    def snapshot(self) -> dict[str, object]:\n",
        "        \"\"\"The value of every setting, as the running context sees it.\"\"\"\n",
        "\nconfig: _Settings\n",
    ]
    return "".join(lines)


# ---- ufuncs

_CALL = (
    "*, where: ArrayLike = True, casting: str = 'same_kind', order: str = 'K', dtype: DTypeLike | None = None, "
    "subok: bool = True, signature: Any = None"
)
_METHODS = """
    @overload
    def accumulate(self, array: DistArray, /, {axis}, {dtype}, {out}) -> DistArray: ...
    @overload
    def accumulate(self, array: ArrayLike, /, {axis}, {dtype}, {out}) -> Any: ...
    def reduce(
        self, array: ArrayLike, /, axis: Shape | None = 0, {dtype}, {out}, keepdims: bool = False, initial: Any = ...,
        where: ArrayLike = True,
    ) -> Any: ...
    @overload
    def reduceat(self, array: DistArray, /, indices: ArrayLike, {axis}, {dtype}, {out}) -> DistArray: ...
    @overload
    def reduceat(self, array: ArrayLike, /, indices: ArrayLike, {axis}, {dtype}, {out}) -> Any: ...
    @overload
    def outer(self, A: DistArray, B: ArrayLike, /, **kwargs: Any) -> DistArray: ...
    @overload
    def outer(self, A: ArrayLike, B: DistArray, /, **kwargs: Any) -> DistArray: ...
    @overload
    def outer(self, A: ArrayLike, B: ArrayLike, /, **kwargs: Any) -> Any: ...
""".format(axis="axis: SupportsIndex = 0", dtype="dtype: DTypeLike | None = None", out="out: _Array | None = None")


def ufunc_class(inputs: int, outputs: int, core: bool) -> str:
    """The class of ufuncs with so many operands; `core`: that make numbers of vectors."""
    names = ["x"] if inputs == 1 else [f"x{n + 1}" for n in range(inputs)]
    plain_out = "out: _Array | tuple[_Array, ...] | None = None" if outputs == 1 else "out: Any = None"
    more = ", axes: Any = ..., axis: Any = ..., keepdims: bool = ..." if inputs == 2 and outputs == 1 else ""

    def call(kinds: dict[str, str], result: str) -> str:
        operands = ", ".join(f"{name}: {kinds.get(name, 'ArrayLike')}" for name in names)
        given = result if outputs == 1 or result == "Any" else f"tuple[{', '.join([result] * outputs)}]"
        return f"    @overload\n    def __call__(self, {operands}, /, {plain_out}, {_CALL}{more}) -> {given}: ...\n"

    lines = [f"class {_ufunc_class_name(inputs, outputs, core)}(_np.ufunc):\n"]
    if not core:
        lines += [call({name: "DistArray"}, "DistArray") for name in names]
        lines += [call({names[0]: "NDArray[Any]"}, "NDArray[Any]")]
        lines += [call({}, "Any")]
    else:
        lines += [call({}, "Any").replace("    @overload\n", "")]
    at = ", b: ArrayLike" if inputs == 2 else ""
    lines += [f"    def at(self, a: _Array, indices: Any{at}, /) -> None: ..."]
    return "".join(lines) + (_METHODS if (inputs, outputs, core) == (2, 1, False) else "\n")


def _ufunc_class_name(inputs: int, outputs: int, core: bool) -> str:
    return f"_{'Core' if core else ''}Ufunc{inputs}To{outputs}"


def _kind_of(ufunc: np.ufunc) -> tuple[int, int, bool]:
    return ufunc.nin, ufunc.nout, (ufunc.signature or "").endswith("->()")


# ---- random numbers


def random_class(name: str, more: str) -> str:
    """A generator whose arrays are distributed."""
    found = numpy_stubs.methods("numpy.random", name)
    cls = getattr(np.random, name)
    lines = [f"class {name}(_np.random.{name}):\n{more}"]
    for method in sorted(found):
        function = getattr(cls, method)
        signature = _signature(function)
        variants = found[method]
        concerned = _gives_arrays(_merged_results(variants)) or any(map(_takes_arrays, _merged(variants).values()))
        if callable(function) and signature is not None and concerned:
            parameters = [p for p in signature.parameters.values() if p.name != "self"]
            lines.append(_samples(method, signature.replace(parameters=parameters), found[method]))
    return "".join(lines)


def _merged_results(variants: list[Overload]) -> Types:
    return frozenset[str]().union(*(variant.returns for variant in variants))


def _samples(name: str, signature: inspect.Signature, variants: list[Overload]) -> str:
    """A method that gives one sample, or an array of them."""
    if [p.kind.name for p in signature.parameters.values()] == ["VAR_POSITIONAL"]:  # the size, in numbers
        return (
            f"    @overload\n    def {name}(self) -> float: ...\n"
            f"    @overload\n    def {name}(self, *args: SupportsIndex) -> DistArray: ...\n"
        )
    single = [v for v in variants if ARRAY not in v.returns and v.parameters.get("size") == frozenset({"None"})]
    arrays = [v for v in variants if v not in single]
    texts = []
    if single:
        merged = _merged(single)
        results = _merged_results(single)
        plain = {p: frozenset({"_np.generic", "float"}) if types == {SCALAR} else types for p, types in merged.items()}
        for p, types in merged.items():
            if SCALAR in types and LIKE not in types:
                plain[p] = (types - {SCALAR, "int"}) | {"_np.generic", "float"}
        result = min(results) if len(results) == 1 and min(results) in ("float", "int") else "Any"
        texts.append(_line(name, signature, plain, {}, result, ("self",)))
    if arrays:
        kinds = _merged_results(arrays)
        result = "DistArray" if ARRAY in kinds else _text(kinds)
        texts.append(_line(name, signature, _merged(arrays), {}, result, ("self",)))
    marks = ["    @overload\n    " if len(texts) > 1 else "    "] * len(texts)
    return "".join(mark + text for mark, text in zip(marks, texts, strict=True))


# ---- files


def files() -> dict[str, str]:
    """The text of each file, by its path below the package."""
    modules = sorted(name for name in np.__all__ if isinstance(getattr(np, name), types.ModuleType))
    made = {"__init__.pyi": namespace(), "random/__init__.pyi": random_module()}
    made |= {f"{name}.pyi": numpy_module(name) for name in ("fft", "linalg")}
    made |= {f"{name}.pyi": alias(name) for name in modules if name not in _OWN_MODULES and _can_be_imported(name)}
    return made


def _can_be_imported(name: str) -> bool:
    """Whether there is a module of this name in NumPy's folder, not just an attribute."""
    return importlib.util.find_spec(f"numpy.{name}") is not None


def _head(title: str, *, imports: str = "", exported: bool = False) -> str:
    version = ".".join(np.__version__.split(".")[:2])
    return _HEAD.format(
        title=title, version=version, imports=imports, exported=" as DistArray" if exported else ""
    )


def alias(name: str) -> str:
    """A submodule that is NumPy's."""
    title = f'"""`numpy.{name}`. Made by `python -m numpy_dist.conformance.stubs`."""'
    return f"{title}\n\nfrom numpy.{name} import *  # noqa: F403\n"


def _exports(names: set[str]) -> str:
    return "\n__all__ = [\n" + "".join(f"    {name!r},\n" for name in sorted(names)) + "]\n"


def namespace() -> str:
    """``numpy_dist`` itself."""
    lines = [_head("Types of the names of `numpy_dist`.", imports="import os", exported=True)]
    lines += ["from numpy_dist.settings import SettingsBlock\n\n"]
    own_names: dict[str, str] = {name: where for name, where in numpy_dist._OWN.items() if not name.startswith("_")}
    modules = [*numpy_dist._MODULES, *(name for name in np.__all__ if isinstance(getattr(np, name), types.ModuleType))]
    for name in sorted(set(modules)):
        is_file = name in numpy_dist._MODULES or _can_be_imported(name)
        lines.append(_numpys("numpy_dist" if is_file else "numpy", name))
    ufuncs = {name: f for name in np.__all__ if isinstance(f := getattr(np, name), np.ufunc)}
    lines += [f"\n{ufunc_class(*kind)}" for kind in sorted({_kind_of(ufunc) for ufunc in ufuncs.values()})]
    lines += ["\n", settings_class(), _OBJECT_CLASSES, "\n"]
    for name in sorted(numpy_dist.public_names() - set(modules) - {"config", "DistArray"}):
        if name in own_names:
            lines.append(own(name, own_names[name]))
        elif name in ufuncs:
            lines.append(f"{name}: {_ufunc_class_name(*_kind_of(ufuncs[name]))}\n")
        elif isinstance(getattr(np, name), type) or not callable(getattr(np, name)):
            lines.append(_numpys("numpy", name))
        else:
            lines.append(function("numpy", name))
    lines += [
        "\n__version__: str\n__array_api_version__: str\n_OWN: dict[str, str]\n_MODULES: tuple[str, ...]\n",
        "def __array_namespace_info__() -> Any: ...\ndef __dir__() -> list[str]: ...\n",
        "def public_names() -> set[str]: ...\n",
        _exports(numpy_dist.public_names() - {"open"}),
    ]
    return re.sub(r"(?<=[:\[|>] )bool\b", "_bool", _with_bool("".join(lines)))


def _with_bool(text: str) -> str:
    """In this namespace, ``bool`` is NumPy's."""
    return text.replace("from collections.abc", "from builtins import bool as _bool\nfrom collections.abc", 1)


_LINALG = """
class _QRResult(NamedTuple):
    Q: DistArray
    R: DistArray

class _EigResult(NamedTuple):
    eigenvalues: DistArray
    eigenvectors: DistArray

class _SlogdetResult(NamedTuple):
    sign: Any
    logabsdet: Any

class _SVDResult(NamedTuple):
    U: DistArray
    S: DistArray
    Vh: DistArray
"""


def numpy_module(name: str) -> str:
    """A submodule of functions of NumPy's, and some of ours."""
    module = getattr(np, name)
    mine = {f.__name__: f for f in getattr(numpy_dist.fft, "OWN", ())} if name == "fft" else {}
    lines = [_head(f"Types of the names of `numpy_dist.{name}`.", imports="from typing import NamedTuple")]
    lines += [_LINALG if name == "linalg" else "", "\n"]
    for item in sorted(module.__all__):
        if item in mine:
            merged = _merged(numpy_stubs.overloads(f"numpy.{name}", item))
            lines.append(_line(item, inspect.signature(mine[item]), merged, {}, "DistArray"))
        elif isinstance(getattr(module, item), type):
            lines.append(_numpys(f"numpy.{name}", item))
        else:
            lines.append(function(f"numpy.{name}", item))
    if mine:
        lines.append("\nOWN: tuple[Callable[..., Any], ...]\n")
    return "".join([*lines, _exports({*module.__all__})])


def random_module() -> str:
    """``numpy_dist.random``."""
    lines = [_head("Types of the names of `numpy_dist.random`.")]
    lines += ["\n", random_class("Generator", "    def spawn(self, n_children: int) -> list[Generator]: ...\n")]
    lines += ["\n", random_class("RandomState", ""), "\n"]
    lines += ["def default_rng(seed: Any = None) -> Generator: ...\n\n_state: RandomState\n"]
    same = {"ranf": "random_sample", "sample": "random_sample"}
    lines += [f"{name} = _state.{same.get(name, name)}\n" for name in sorted({*legacy.functions, "seed"})]
    lines += [_numpys("numpy_dist.random.legacy", name) for name in ("get_bit_generator", "set_bit_generator")]
    others = {*np.random.__all__} - {*numpy_dist.random.__all__}
    lines += [_numpys("numpy.random", name) for name in sorted(others) if not name.startswith("_")]
    return "".join([*lines, _exports({*numpy_dist.random.__all__})])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    options = parser.parse_args(arguments)
    stale = []
    for name, text in files().items():
        path = FOLDER / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(str(path))
        if not options.check:
            path.write_text(text, encoding="utf-8")
    if options.check and stale:
        print(f"out of date: {', '.join(stale)}; run `python -m numpy_dist.conformance.stubs`")
    return int(options.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
