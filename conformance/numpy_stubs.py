"""NumPy's own type stubs as data: what they say about the parameters and the results of a function.

They are read, not imported, and only facts are taken: types are given in public names and the words below, so that
what is made of them does not depend on names that NumPy keeps to itself.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

LIKE, ARRAY, SCALAR, ABSENT, OTHER = "<like>", "<array>", "<scalar>", "<absent>", "<other>"
"""What NumPy makes an array of; an array; one number; a parameter that may be left out; a type without public name."""

_LIKES = ("ArrayLike", "_ArrayLike", "_DualArrayLike", "_SupportsArray", "_NestedSequence", "_Array1DLike", "_Buffer")
_ARRAYS = ("NDArray", "ndarray", "_Array", "_AnyArray", "_1D", "_2D", "_3D", "_4D")
_SCALARS = re.compile(r"_(Scalar|Float|Int|UInt|Complex|Number|Numeric|Bool|TD64|Inexact|SCT)\w*?(Like|Like_co|T|T\d)")
_ORDERS = {name: f"Literal[{', '.join(repr(c) for c in name)}]" for name in ("KACF", "ACF", "CF")}
_KNOWN = {
    **{name: name for name in ("int", "float", "complex", "str", "bytes", "bool", "SupportsIndex", "object", "None")},
    **{f"_Order{name}": text for name, text in _ORDERS.items()},
    **dict.fromkeys(("_ShapeLike", "_AnyShape", "_Shape"), "Shape"),
    **dict.fromkeys(("DTypeLike", "_DTypeLike", "dtype", "_DTypeT", "_DTypeLikeBool"), "DTypeLike"),
    "_NoValueType": ABSENT,
    "_CastingKind": "Literal['no', 'equiv', 'safe', 'same_kind', 'same_value', 'unsafe']",
    "SupportsInt": "SupportsIndex",
    "Any": "Any",
    "Incomplete": "Any",
    "py_bool": "bool",
}
_GENERICS = {
    name for name in dir(np) if isinstance(getattr(np, name), type) and issubclass(getattr(np, name), np.generic)
}
_VARIABLES = {"_T"}
_SEQUENCES = ("Sequence", "Iterable", "SupportsLenAndGetItem", "_SupportsLenAndGetItem", "list", "tuple", "Collection")

_NUMBERS = re.compile(r"bool|<scalar>|((list|Sequence)\[)+(complex|float|int)\]+")  # arrays can be made of them
Types = frozenset[str]
"""The members of a union, as text."""


@dataclass(frozen=True)
class Overload:
    """One signature of a function.

    Attributes
    ----------
    parameters : dict of str to Types
        By name; ``self`` is left out.
    returns : Types
    """

    parameters: dict[str, Types]
    returns: Types


@dataclass(frozen=True)
class _Stub:
    name: str
    is_package: bool
    body: tuple[ast.stmt, ...]


@functools.cache
def _stub(name: str) -> _Stub | None:
    """The stub file of a module of NumPy; None where it has none."""
    folder = Path(np.__file__).parent.joinpath(*name.split(".")[1:])
    for path in (folder / "__init__.pyi", folder.with_suffix(".pyi")):
        if path.is_file():
            return _Stub(name, path.stem == "__init__", tuple(_flat(ast.parse(path.read_text(encoding="utf-8")).body)))
    return None


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements, with those below conditions on Python's version among them."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _flat([*node.body, *node.orelse])
        else:
            yield node


def _named(node: ast.stmt) -> str | None:
    """The name that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def _source(stub: _Stub, node: ast.ImportFrom) -> str:
    """The module that an import names."""
    if not node.level:
        return node.module or ""
    parts = stub.name.split(".")
    parts = parts[: len(parts) - node.level + stub.is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _find(where: str, name: str, depth: int = 8) -> tuple[str, list[ast.stmt]]:
    """The module and the statements that define a name; no statements where nothing is found."""
    stub = _stub(where)
    if stub is None or not depth:
        return where, []
    found = [node for node in stub.body if _named(node) == name]
    if found:
        return where, found
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _find(_source(stub, node), alias.name, depth - 1)
    return where, []


def overloads(where: str, name: str) -> list[Overload]:
    """The signatures of a function, also of one that is another by a second name; none of what is no function."""
    where, nodes = _find(where, name)
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    if functions:
        return [_overload(where, node) for node in functions]
    if nodes and isinstance(nodes[0], ast.Assign) and isinstance(nodes[0].value, ast.Name):
        return overloads(where, nodes[0].value.id)
    return []


def methods(where: str, name: str) -> dict[str, list[Overload]]:
    """The signatures of the public methods of a class, by name."""
    where, nodes = _find(where, name)
    found: dict[str, list[Overload]] = {}
    for node in nodes[0].body if nodes and isinstance(nodes[0], ast.ClassDef) else []:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found.setdefault(node.name, []).append(_overload(where, node))
    return found


def _overload(where: str, node: ast.FunctionDef) -> Overload:
    given = node.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *(a for a in (given.vararg, given.kwarg) if a)]
    parameters = {a.arg: types(where, a.annotation) for a in every if a.arg != "self"}
    arrays = {ast.unparse(a.annotation) for a in every if isinstance(a.annotation, ast.Name)}
    returned = types(where, node.returns)
    if isinstance(node.returns, ast.Name) and node.returns.id in arrays & _VARIABLES and returned == {OTHER}:
        returned = frozenset({ARRAY})  # of the type of an argument
    return Overload(parameters, returned)


def types(where: str, node: ast.expr | None, depth: int = 4) -> Types:
    """The members of the union that an annotation is"""
    if node is None or not depth:
        return frozenset({"Any"})
    if isinstance(node, ast.BinOp):
        return types(where, node.left, depth) | types(where, node.right, depth)
    if isinstance(node, ast.Constant):
        return types(where, ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else _name("None")
    if isinstance(node, ast.Subscript):
        return _subscripted(where, node, depth)
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    if name in _KNOWN:
        return _name(name)
    alias = _alias(where, name)
    if alias is not None:
        return types(alias[0], alias[1], depth - 1)
    return _name(name)


def _alias(where: str, name: str) -> tuple[str, ast.expr] | None:
    """What a name of a type stands for, where that is no array or scalar."""
    if not name.startswith("_") or name.startswith((*_LIKES, *_ARRAYS)):
        return None
    where, nodes = _find(where, name)
    node = nodes[0] if nodes else None
    if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).endswith("TypeAlias") and node.value:
        return where, node.value
    return None


def _name(name: str) -> Types:
    if name in _KNOWN:
        return frozenset({_KNOWN[name]})
    if name.startswith(_LIKES):
        return frozenset({LIKE})
    if name.startswith(_ARRAYS):
        return frozenset({ARRAY})
    if _SCALARS.fullmatch(name) or name in _GENERICS:
        return frozenset({SCALAR})
    return frozenset({OTHER})


def _subscripted(where: str, node: ast.Subscript, depth: int) -> Types:
    name = ast.unparse(node.value).rpartition(".")[2]
    inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name in ("L", "Literal"):
        if any(isinstance(item, ast.Name) for item in inside):
            return frozenset({OTHER})
        return frozenset({f"Literal[{', '.join(ast.unparse(item) for item in inside)}]"})
    if name in _SEQUENCES:
        name = "Sequence" if name.endswith("SupportsLenAndGetItem") else name
        return frozenset({f"{name}[{', '.join(_item(where, item, depth - 1) for item in inside)}]"})
    if name == "Callable":
        return frozenset({"Callable[..., Any]"})
    return types(where, node.value, depth - 1)


def _item(where: str, node: ast.expr, depth: int) -> str:
    """What is between the brackets of a sequence's type."""
    if isinstance(node, ast.Constant) and node.value is Ellipsis:
        return "..."
    return union(types(where, node, depth))


def union(members: Types) -> str:
    """The text of a union."""
    if "Any" in members or OTHER in members:
        return "Any"
    truths = {text for text in members if re.fullmatch(r"Literal\[((True|False|0|1)(, )?)+\]", text)}
    if "bool" in members or len(truths) > 1:
        members = (members - truths) | {"bool"}
    kept = {text for text in members - {ABSENT} if LIKE not in members or not _NUMBERS.fullmatch(text)}
    return " | ".join(sorted(kept, key=lambda text: (text == "None", text))) or "Any"
