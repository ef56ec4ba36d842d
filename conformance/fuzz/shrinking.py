"""Shrinking of a program that fails: fewer statements by delta debugging, then smaller expressions."""

from __future__ import annotations

import ast
import functools
import re
import time
from collections.abc import Callable, Iterator

__all__ = ["shrink"]

Fails = Callable[[list[str]], bool]
_MAKERS = ("array", "a", "of")  # what makes an array has no simpler parts


def shrink(statements: list[str], fails: Fails, seconds: float) -> list[str]:
    """The smallest program found within so many seconds for which `fails` is still true.

    Parameters
    ----------
    statements : list of str
    fails : callable
        Whether a list of statements shows the same failure.
    seconds : float
    """
    deadline = time.monotonic() + seconds

    def tried(candidate: list[str]) -> bool:
        return time.monotonic() < deadline and fails(candidate)

    before: list[str] = []
    while before != statements and time.monotonic() < deadline:
        before = statements
        statements = _fewer(statements, tried)
        statements = _simpler(_without_aliases(statements, tried), tried)
    return statements


def _fewer(statements: list[str], fails: Fails) -> list[str]:
    """Delta debugging: chunks are left out, from the end, of half the size each time."""
    size = max(len(statements) // 2, 1)
    while True:
        end = len(statements)
        while end > 0:
            candidate = statements[: max(end - size, 0)] + statements[end:]
            if candidate and fails(candidate):
                statements = candidate
            end -= size
        if size == 1:
            return statements
        size //= 2


def _without_aliases(statements: list[str], fails: Fails) -> list[str]:
    """Each ``x = y`` left out, with `y` in place of `x` from there on."""
    for number in reversed(range(len(statements))):
        alias = re.fullmatch(r"(\w+) = (\w+)", statements[number])
        if alias is not None:
            rest = [re.sub(rf"\b{alias[1]}\b", alias[2], text) for text in statements[number + 1 :]]
            candidate = statements[:number] + rest
            statements = candidate if candidate and fails(candidate) else statements
    return statements


def _simpler(statements: list[str], fails: Fails) -> list[str]:
    """Each statement replaced by simpler ones, as long as that goes on to fail."""
    for number in range(len(statements)):
        simplified = True
        while simplified:
            simplified = False
            for text in _candidates(statements[number]):
                candidate = [*statements[:number], text, *statements[number + 1 :]]
                if fails(candidate):
                    statements, simplified = candidate, True
                    break
    return statements


def _candidates(text: str) -> Iterator[str]:
    """Simpler texts in place of a statement, each shorter or with smaller numbers."""
    tree = ast.parse(text)
    seen = {ast.unparse(tree)}
    for place in range(len(list(ast.walk(tree)))):
        for number in range(12):
            copy = ast.parse(text)
            node = list(ast.walk(copy))[place]
            if not _replace(copy, node, number):
                break
            try:
                simpler = ast.unparse(copy)
            except (ValueError, AttributeError):
                continue
            if simpler not in seen and len(simpler) <= len(text) and _tolerance(simpler) >= _tolerance(text):
                seen.add(simpler)
                yield simpler


def _tolerance(text: str) -> float:
    """How far a value may be from NumPy's that a statement compares, in units of the last place; 0 if it does not."""
    match ast.parse(text).body:
        case [ast.Expr(ast.Call(ast.Name("check"), [_, ast.Constant(int() | float() as ulps)]))]:
            return ulps
    return 0.0


def _replace(tree: ast.AST, node: ast.AST, number: int) -> bool:
    """Put replacement `number` of a node in its place; False where there are no more."""
    options = list(_replacements(node))
    if number >= len(options):
        return False
    chosen = options[number]
    if not isinstance(chosen, ast.AST | list):
        chosen()
        return True
    other: ast.AST | list[ast.stmt] = chosen

    class Swap(ast.NodeTransformer):
        def visit(self, found: ast.AST) -> ast.AST | list[ast.stmt]:
            return other if found is node else self.generic_visit(found)

    Swap().visit(tree)
    return True


def _replacements(node: ast.AST) -> Iterator[ast.AST | list[ast.stmt] | Callable[[], object]]:
    """Simpler nodes, and changes within a node."""
    if isinstance(node, ast.For | ast.While | ast.With | ast.If | ast.Try):
        yield list(node.body)
    for name in ("body", "elts", "keywords", "args"):
        parts = getattr(node, name, None)
        if isinstance(parts, list) and len(parts) > (name == "body"):
            for position, part in enumerate(parts):
                # Without its output, a ufunc with a mask leaves elements uninitialised.
                if not (isinstance(part, ast.keyword) and part.arg == "out"):
                    yield functools.partial(parts.pop, position)
    if isinstance(node, ast.Constant):
        yield from _smaller_numbers(node.value)
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.value
    elif isinstance(node, ast.Slice):
        for bound in ("lower", "upper", "step"):
            if getattr(node, bound) is not None:
                yield functools.partial(setattr, node, bound, None)
    elif isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in _MAKERS):
        yield from node.args
        if isinstance(node.func, ast.Attribute):
            yield node.func.value


def _smaller_numbers(value: object) -> Iterator[ast.AST]:
    if type(value) is int and value:
        yield from (ast.Constant(n) for n in (0, 1, value // 2, value - 1) if abs(n) < abs(value))
    elif type(value) is float and value not in (0.0, 1.0):
        yield ast.Constant(1.0)
