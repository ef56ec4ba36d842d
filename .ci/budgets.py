"""The budgets of the house: a file stays under 500 lines, a function has at most 60; no error is swallowed whole.

Tests and conformance cases are exempt. ``python .ci/budgets.py`` prints what has outgrown them and exits with 1.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 500
FUNCTION_LINES = 60
EXEMPT = ("tests/", "conformance/cases")


def tracked_files(root: Path) -> list[Path]:
    """The Python files that git tracks or would track, without links."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    names = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    paths = (root / name for name in names if not name.startswith(EXEMPT))
    return sorted({path for path in paths if path.is_file() and not path.is_symlink()})


def swallows(handler: ast.ExceptHandler) -> bool:
    """Whether the handler is `except Exception: pass` or wider."""
    wide = handler.type is None or getattr(handler.type, "id", "") in ("Exception", "BaseException")
    return wide and len(handler.body) == 1 and isinstance(handler.body[0], ast.Pass)


def complaints(name: str, text: str) -> Iterator[str]:
    """What in the source `text` of the file `name` is over budget."""
    lines = text.count("\n")
    if lines >= FILE_LINES:
        yield f"{name}: {lines} lines (under {FILE_LINES})"
    for node in ast.walk(ast.parse(text, name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{name}:{node.lineno}: {node.name} has {length} lines (at most {FUNCTION_LINES})"
        elif isinstance(node, ast.ExceptHandler) and swallows(node):
            yield f"{name}:{node.lineno}: an error is swallowed whole"


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    files = tracked_files(root)
    found = [
        complaint
        for path in files
        for complaint in complaints(str(path.relative_to(root)), path.read_text(encoding="utf-8"))
    ]
    print("\n".join(found) if found else f"budgets kept in {len(files)} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
