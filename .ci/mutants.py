"""Mutants that the tests must find: changes of one place in the engine's code, drawn by a seed.

For each, the tests of the changed package run until one fails, and where none does the whole suite as README has it.
A run that hangs has found it, too. Those that nobody finds are printed as differences, and the exit code is 1 where
fewer than `--at-least` percent were found. It is run by hand, in a clone of its own, since it changes files: 500
mutants take a night.

    python -m venv .mutants && .mutants/bin/pip install cosmic-ray==8.7.0
    .mutants/bin/python .ci/mutants.py --python .venv/bin/python --mutants 500 --seed 0
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).resolve().parent.parent
TESTS = {  # what is mutated, and the tests that run first
    "numpy_dist/engine": ["tests/engine"],
    "numpy_dist/ir": ["tests/ir", "tests/engine"],
    "numpy_dist/layout": ["tests/layout", "tests/engine"],
    "backends/summation.py": ["tests/backends", "tests/engine"],
    "dispatch/core": ["tests/dispatch"],
}
SECONDS = {"first": 900, "whole": 1800}

Place = tuple[Path, tuple[int, int]]


def unmutated(code: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The ranges of annotations, which are not evaluated, and of what is for type checkers only."""
    found: list[ast.AST] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            found.append(node.returns)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found.append(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Subscript) and _is_alias(node):
            found.append(node.value)
    return [((x.lineno, x.col_offset), (x.end_lineno, x.end_col_offset)) for x in found]  # type: ignore[attr-defined]


def _is_alias(node: ast.Assign) -> bool:
    """Whether a statement names a type."""
    name = ast.unparse(node.targets[0])
    return name[:1].isupper() and not name.isupper()


def places() -> dict[Place, list[tuple[str, int]]]:
    """What can be changed: for each place the operators that do it, with the occurrence that they call it."""
    found: dict[Place, list[tuple[str, int]]] = {}
    operators = [(name, plugins.get_operator(name)) for name in sorted(plugins.operator_names())]
    for top in TESTS:
        for path in [ROOT / top] if top.endswith(".py") else sorted((ROOT / top).rglob("*.py")):
            code = path.read_text("utf-8")
            left_out = unmutated(code)
            nodes = list(ast_nodes(get_ast(code)))
            for name, operator in operators:
                if operator.arguments():
                    continue
                positions = (where for node in nodes for where, _ in operator().mutation_positions(node))
                for occurrence, where in enumerate(positions):
                    if not any(low <= where < high for low, high in left_out):
                        found.setdefault((path, where), []).append((name, occurrence))
    return found


def fails(words: list[str], seconds: float) -> bool:
    """Whether tests fail, or hang."""
    process = subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return process.wait(seconds) not in (0, 5)  # 5: there are no such tests
    except subprocess.TimeoutExpired:
        return True
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.wait()


def is_found(path: Path, python: str) -> str | None:
    """Which tests fail with the file as it is now: "first", "whole" or None."""
    relative = path.relative_to(ROOT).as_posix()
    first = next(tests for top, tests in TESTS.items() if relative.startswith(top))
    pytest = [python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    if fails([*pytest, "-n", "2", "-m", "not slow", *first], SECONDS["first"]):
        return "first"
    return "whole" if fails(pytest, SECONDS["whole"]) else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the tests")
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-least", type=float, default=90.0, help="percent that must be found")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    found = places()
    chosen = draw.sample(sorted(found), min(options.mutants, len(found)))
    print(f"{len(chosen)} of {len(found)} places", flush=True)
    survivors = []
    for number, (path, where) in enumerate(chosen, 1):
        name, occurrence = draw.choice(found[path, where])
        before = path.read_text("utf-8")
        after = mutate_code(before, plugins.get_operator(name)(), occurrence)
        begin = time.monotonic()
        try:
            path.write_text(after, "utf-8")
            by = is_found(path, options.python)
        finally:
            path.write_text(before, "utf-8")
        title = f"{path.relative_to(ROOT)}:{where[0]} {name.removeprefix('core/')}"
        print(f"{number}: {title}: {by or 'NOT FOUND'} ({time.monotonic() - begin:.0f} s)", flush=True)
        if by is None:
            survivors.append("".join(difflib.unified_diff(
                before.splitlines(True), after.splitlines(True), str(path.relative_to(ROOT)), title, n=2
            )))  # fmt: skip
    share = 100 * (1 - len(survivors) / max(len(chosen), 1))
    print("\n".join([*survivors, f"{share:.1f} % of {len(chosen)} mutants found"]))
    return int(share < options.at_least)


if __name__ == "__main__":
    raise SystemExit(main())
