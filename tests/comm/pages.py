"""Runs the examples of a documentation page on simulated ranks."""

from __future__ import annotations

import ast
import re
import time
from typing import Any, NamedTuple

import pytest

from numpy_dist.comm.detect import get_communicator
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.settings import config

_BLOCKS = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


class Example(NamedTuple):
    """A block of code, and what the page says that it prints."""

    code: str
    expected: str


def settings_of(code: str) -> dict[str, str]:
    """The environment variables in an example's first line, if that is a comment."""
    first = code.splitlines()[0]
    return dict(word.split("=", 1) for word in first[1:].split()) if first.startswith("#") else {}


def matches(text: str, expected: str) -> bool:
    """Whether a text is as expected, where ``...`` stands for anything."""
    return re.fullmatch(re.escape(expected).replace(r"\.\.\.", ".*"), text, re.DOTALL) is not None


def examples(page: str) -> list[Example]:
    return [Example(code, (expected or "").strip()) for code, expected in _BLOCKS.findall(page)]


class _Disordered(ast.NodeTransformer):
    """Sets become lists, in another order on each rank: simulated ranks share the seed of Python's hashes."""

    def visit_Set(self, node: ast.Set) -> ast.AST:
        items = ast.List(node.elts, ast.Load())
        call = ast.Call(ast.Name("_disordered", ast.Load()), [items], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


def _disordered(items: list[Any]) -> list[Any]:
    return items[::-1] if get_communicator().rank else items


def outcome(code: str, nranks: int = 2) -> str:
    """What an example ends with: the error of the lowest rank, else nothing."""
    compiled = compile(_Disordered().visit(ast.parse(code, "script.py")), "script.py", "exec")
    clocks = dict.fromkeys(range(nranks), 0.0)

    def clock() -> float:
        """A clock that is faster on rank 1."""
        rank = get_communicator().rank
        clocks[rank] += 0.1 * (1 + rank)
        return clocks[rank]

    def body() -> None:
        exec(compiled, {"__name__": "__main__", "_disordered": _disordered})

    settings = {name.removeprefix("NUMPY_DIST_"): value for name, value in settings_of(code).items()}
    with pytest.MonkeyPatch.context() as patch, config(**settings):
        patch.setattr(time, "time", clock)
        try:
            run_simulated(nranks, body)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""
