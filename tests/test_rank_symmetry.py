"""docs/rank-symmetry.md names every file that looks at what only one rank knows, where that could lead to a message."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy_dist

ROOT = Path(numpy_dist.__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "rank-symmetry.md").read_text(encoding="utf-8")
_OURS = ("engine", "ir", "layout", "parallel", "distarray", "random", "authoring", "standard", "interop", "comm")
_DISPATCH = ("core", "patterns", "functions")
FOLDERS = {name: ROOT / "numpy_dist" / name for name in _OURS} | {
    f"dispatch/{name}": ROOT / "dispatch" / name for name in _DISPATCH
}
_CONSTANTS = ("Ellipsis", "NotImplemented", "NoValue")
_NAMES = {
    *("id", "getrefcount", "WeakSet", "WeakValueDictionary", "WeakKeyDictionary", "finalize"),
    *("monotonic", "perf_counter", "thread_time", "getpid", "listdir", "getenv"),
}


def _is_local(node: ast.AST) -> bool:
    """Whether it is a comparison by identity of values, or a call that asks what differs between ranks."""
    if isinstance(node, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
        asked = [node.left, *node.comparators]
        types = any(isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and x.func.id == "type" for x in asked)
        constants = (isinstance(x, ast.Constant) or ast.unparse(x) in _CONSTANTS for x in asked[1:])
        return not types and not all(constants)
    if isinstance(node, ast.Attribute):
        return node.attr == "environ"
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        return name in _NAMES
    return False


def _files() -> list[tuple[str, list[str]]]:
    found = []
    for name, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            asked = [ast.unparse(node) for node in ast.walk(ast.parse(path.read_text("utf-8"))) if _is_local(node)]
            if asked:
                found.append((f"{name}/{path.relative_to(folder).as_posix()}", asked))
    return found


def test_the_page_names_every_file_that_asks() -> None:
    files = _files()
    assert len(files) > 20
    missing = {}
    for name, asked in files:
        dotted = name.removesuffix(".py").replace("/", ".")
        if f"`{name}`" not in PAGE and f"`{dotted}" not in PAGE:
            missing[name] = asked
    assert not missing, missing


def test_the_page_names_files_that_there_are() -> None:
    for line in PAGE.splitlines():
        for cell in line.split("|")[1:2]:
            for word in cell.split("`")[1::2]:
                if word.endswith(".py"):
                    assert any((root / word).exists() for root in (ROOT, ROOT / "numpy_dist")), word
