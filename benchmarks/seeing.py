"""What profiles, progress bars, advice and reports cost a program that does not ask for them.

They are asked whether they are on at some places (`recorder is None`), of which two things are measured:

* how often a program comes to such a line, times what such a line costs in its most expensive form, in parts of the
  program's time. A difference of a thousandth is too small to be seen between two runs, a product is not.
* the same program with and without these lines, by turns: functions get other code, of which the questions are taken
  out. The same twice without tells what differences mean nothing.

``python benchmarks/seeing.py``, or ``numpy-dist run -n 2 benchmarks/seeing.py`` with what waits and collectives add.
"""

import __future__

import ast
import importlib
import inspect
import os
import statistics
import sys
import textwrap
import time
import timeit
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np

os.environ.setdefault("NUMPY_DIST_BACKEND", "auto")  # kernels: the faster a program, the more its questions count
os.environ.setdefault("NUMPY_DIST_COMPILE", "first")

from harness import Comparison, main
from stencil_functions import plate, relax

import numpy_dist
from numpy_dist import engine
from numpy_dist.comm.supervision.waits import WaitAccount
from numpy_dist.engine.data.activities import activity

ASKING = (
    "engine.scheduling.schedule",
    "engine.scheduling.execution",
    "engine.scheduling.program",
    "engine.executing.prepared",
    "engine.executing.part",
    "engine.data.ingest",
    "engine.data.gather",
    "comm.base",
    "comm.mpi",
    "dispatch.core.protocol",
    "dispatch.core.fallback",
)
WORDS = {
    **dict.fromkeys(("recorder", "observer", "active"), "ask"),
    "told": "ask",
    "slow": "look up",
    "FEW": "compare",
    "activity": "block",
}
IN_WAITS = "_communicator.waits.add"
ALLOWED = "<= 0.1"  # percent


def functions() -> Iterator[FunctionType]:
    """All functions of the modules that ask."""
    for name in ASKING:
        if name == "comm.mpi" and engine.runtime().size == 1:
            continue
        module = importlib.import_module(f"numpy_dist.{name}")
        owners = [module, *(x for x in vars(module).values() if inspect.isclass(x) and x.__module__ == module.__name__)]
        for owner in owners:
            for value in list(vars(owner).values()):
                if isinstance(value, FunctionType) and value.__code__.co_filename == module.__file__:
                    yield value


def kind_of(node: ast.AST) -> str | None:
    """What kind of question an expression is part of."""
    if isinstance(node, ast.Attribute):
        return "account" if ast.unparse(node).endswith(IN_WAITS) else WORDS.get(node.attr)
    if isinstance(node, ast.Name):  # a local variable, which costs less; a line with both counts as an attribute
        return {"ask": "test"}.get(found := WORDS.get(node.id, ""), found) or None
    return WORDS.get(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def asking_lines() -> dict[tuple[str, int], str]:
    """The kinds of all lines that ask, by file and number."""
    found = {}
    for name in {function.__code__.co_filename for function in functions()}:
        for node in ast.walk(ast.parse(Path(name).read_text())):
            if (kind := kind_of(node)) is not None:
                place = name, node.lineno  # type: ignore[attr-defined]
                if kind != "test" or place not in found:
                    found[place] = kind
    return found


def count(work: Callable[[], object]) -> Counter[str]:
    """How often the work comes to a line of each kind."""
    lines, counted = asking_lines(), Counter[str]()
    files = {name for name, _ in lines}

    def look(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        if event == "line" and (kind := lines.get((frame.f_code.co_filename, frame.f_lineno))) is not None:
            counted[kind] += 1
        return look

    sys.settrace(look)
    try:
        work()
    finally:
        sys.settrace(None)
    return counted


def unit_costs() -> dict[str, float]:
    """Seconds that one line of each kind takes, of the most expensive form that there is."""

    class Asked:
        recorder = None

    account = WaitAccount(0, 0.0)
    empty = ("pass", {})

    values = np.ones(30)
    lines = {
        "ask": [
            ("told = asked.recorder is not None", {"asked": Asked()}),
            ("recorder = asked.recorder", {"asked": Asked()}),
            ("if asked.recorder is not None: asked.recorder.now", {"asked": Asked()}),
        ],
        "test": [
            ("if recorder is not None: recorder.now", {"recorder": None}),
            ("begun = 0 if recorder is None else recorder.now", {"recorder": None}),
        ],
        "look up": [("if 'slow' in memo: pass", {"memo": {"tier": None}})],
        "compare": [
            (
                "found = told or values.size >= FEW",
                {"values": values, "FEW": 4096, "told": False},
            )
        ],
        "block": [("with activity('gathering', 8): pass", {"activity": activity})],
        "account": [("if account.add(1.0, 1.001): pass", {"account": account})],
    }

    def once(text: str, names: dict[str, Any]) -> float:
        timer = timeit.Timer(text, globals=names)
        return min(timer.repeat(15, 20_000)) / 20_000

    nothing = once(*empty)
    return {kind: max(0.0, *(once(*form) - nothing for form in forms)) for kind, forms in lines.items()}


class Without(ast.NodeTransformer):
    """Takes questions out, as if they were answered by no."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:  # noqa: N802
        if isinstance(node.value, ast.Attribute) and kind_of(node.value) == "ask":
            return ast.Pass()
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:  # noqa: N802
        self.generic_visit(node)
        asked = any(kind_of(part) for part in ast.walk(node.test))
        return (node.orelse or ast.Pass()) if asked and "slow" not in ast.dump(node.test) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        return node.body if any(kind_of(part) for part in ast.walk(node.test)) else node

    def visit_With(self, node: ast.With) -> Any:  # noqa: N802
        self.generic_visit(node)
        blocks = any(kind_of(part) == "block" for item in node.items for part in ast.walk(item.context_expr))
        return node.body if blocks and len(node.items) == 1 else node


def without_questions(function: FunctionType) -> CodeType | None:
    """A function's code without its questions; None where it has none, or cannot do without."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    asked = ast.unparse(tree)
    stripped = ast.fix_missing_locations(Without().visit(tree))
    if ast.unparse(stripped) == asked:
        return None
    stripped.body[0].decorator_list.clear()
    names: dict[str, Any] = {}
    later = __future__.annotations.compiler_flag  # names in annotations are not looked up
    code = compile(stripped, function.__code__.co_filename, "exec", later)
    exec(code, function.__globals__.copy(), names)  # noqa: S102
    made: CodeType = names[function.__name__].__code__
    return made if made.co_freevars == function.__code__.co_freevars else None


def programs(quick: bool) -> dict[str, tuple[Callable[[], object], int]]:
    """Work by name, and how often it is measured."""
    with numpy_dist.config(MIN_SHARD_BYTES=0):
        small, grid = numpy_dist.asarray(np.ones((30, 30))), numpy_dist.asarray(plate(1000))
        x = numpy_dist.asarray(np.linspace(0.0, 1.0, 1_000_000))

    def step() -> None:
        relax(grid, 10)
        engine.flush()

    def dots() -> None:
        for _ in range(10):
            float((x * x).sum())

    def little() -> None:
        for _ in range(50):
            float((small + small).sum())

    def gathers() -> None:
        for _ in range(50):
            small.gather()

    found: dict[str, tuple[Callable[[], object], int]] = {
        "10 steps of the stencil, 1000 x 1000": (step, 60),
        "10 times float((x * x).sum()), a million": (dots, 100),
        "50 times float((z + z).sum()), 30 x 30": (little, 100),
        "50 gathers of 30 x 30": (gathers, 100),
    }
    return {name: (work, 3) for name, (work, _) in found.items()} if quick else found


def measure(quick: bool) -> list[Comparison]:
    # The processor's own count of a process that never waits: others on the machine change it less.
    clock = time.process_time if engine.runtime().size == 1 else time.perf_counter
    costs = unit_costs()
    rows = [Comparison(f"a line: {kind}", None, cost, "us", cost * 1e9, "ns") for kind, cost in costs.items()]
    pairs = [(f, f.__code__, code) for f in functions() if (code := without_questions(f)) is not None]
    for name, (work, rounds) in programs(quick).items():

        def run(stripped: bool, work: Callable[[], object] = work) -> None:
            for function, asking, bare in pairs:
                function.__code__ = bare if stripped else asking
            work()

        for _ in range(3):
            work()
        counted = count(work)
        seconds: dict[str, list[float]] = {"without": [], "with": [], "again": []}
        for turn in range(rounds):
            for key in list(seconds)[:: -1 if turn % 2 else 1]:
                before = clock()
                run(key != "with")
                seconds[key].append(clock() - before)
        run(False)
        medians = {key: statistics.median(times) for key, times in seconds.items()}
        added = sum(costs[kind] * number for kind, number in counted.items())
        lines = ", ".join(f"{number} {kind}" for kind, number in sorted(counted.items()))
        rows.append(Comparison(name, None, min(seconds["with"]), "ms", 1e6 * added, f"us: {lines}"))
        share = 100 * added / min(seconds["with"])
        rows.append(Comparison("  of its time at best", None, min(seconds["with"]), "ms", share, "%", ALLOWED))
        for title, above in (("  with and without, by turns", "with"), ("  twice without, by turns", "again")):
            ratios = [a / b for a, b in zip(seconds[above], seconds["without"], strict=True)]
            figure = 100 * (statistics.median(ratios) - 1)
            rows.append(Comparison(title, None, medians[above], "ms", figure, "% more", peer=medians["without"]))
    if not pairs:
        raise SystemExit("no function asks: the words of this benchmark are out of date")
    return rows


if __name__ == "__main__":
    if engine.runtime().rank:
        measure("--quick" in sys.argv)
    else:
        main("seeing", measure)
