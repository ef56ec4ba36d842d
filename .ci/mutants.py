"""Mutants that the tests must find: changes of one place in the engine's code, drawn by a seed.

For each, tests run in stages until one fails: those of the changed module, those of its package, the same in jobs of
several ranks, the sample of the conformance suite, and last the whole suite as README has it. How it was found is told
apart: by a test that failed, by a run that hangs, or that takes up the machine's memory. A stage that is over its limit
of time has found nothing: the machine may be busy, and the next stage goes on. Those that nobody finds are printed as
differences, and the exit code is 1 where fewer than `--at-least` percent were found. It is run by hand, in a clone of
its own, since it changes files, and on Linux: 500 mutants take a night. Where that is too long, what the first stages
leave can be tried with files that are chosen by hand.

    python -m venv .mutants && .mutants/bin/pip install cosmic-ray==8.7.0
    .mutants/bin/python .ci/mutants.py --python .venv/bin/python --mutants 500 --seed 0
    .mutants/bin/python .ci/mutants.py --python .venv/bin/python --mutants 500 --seed 0 --only 17,41 \
        --tests "--ranks 1,2 tests/engine/test_recording.py"
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).resolve().parent.parent
TESTS = {  # what is mutated, and the folders of tests that run before all others
    "numpy_dist/engine": ["tests/engine"],
    "numpy_dist/ir": ["tests/ir", "tests/engine"],
    "numpy_dist/layout": ["tests/layout", "tests/engine"],
    "backends/summation.py": ["tests/backends", "tests/engine"],
    "dispatch/core": ["tests/dispatch", "tests/distarray"],
}
STAGES = {"module": 1800, "package": 1800, "jobs": 1800, "sample": 1800, "whole": 7200}  # seconds at most
# What no run of ours takes between the ends of two tests, however busy the machine is; a job of ranks is one test.
IDLE_SECONDS = 240.0
COMPUTING_SECONDS = 900.0
GIGABYTES = 8.0

Place = tuple[Path, tuple[int, int]]


def unmutated(code: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The ranges of annotations, which are not evaluated, of what is for type checkers only, and of what is equivalent.

    That is whether `zip` compares lengths that are equal, whether results are cached, and how many.
    """
    found: list[ast.AST] = []
    decorators: list[ast.expr] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators += [each for each in node.decorator_list if "lru_cache" in ast.unparse(each)]
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            found.append(node.returns)
        elif isinstance(node, ast.keyword) and node.arg in ("strict", "maxsize"):
            found.append(node.value)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found.append(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Subscript) and _is_alias(node):
            found.append(node.value)
    ranges = [((x.lineno, x.col_offset), (x.end_lineno, x.end_col_offset)) for x in found]  # type: ignore[attr-defined]
    return ranges + [((x.lineno, x.col_offset - 1), (x.lineno, x.col_offset)) for x in decorators]  # the sign before it


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


def processes(mark: str) -> list[int]:
    """The processes that a run of tests has started, whoever is their parent: their environment has its mark."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:  # it has ended, or is another user's
                continue
    return found


def used(pids: list[int]) -> tuple[dict[int, float], float]:
    """The seconds of processors that each of these processes has used, and the gigabytes that all hold."""
    seconds: dict[int, float] = {}
    pages = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        seconds[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        pages += int(fields[21])
    return seconds, pages * os.sysconf("SC_PAGE_SIZE") / 1e9


def outcome(words: list[str], limit: float) -> tuple[str, str]:
    """How a run of tests ends: "passed", "failed", "hangs", "memory" or "timed out", and the test that failed.

    It hangs where since the last test ended it has done nothing for long, or computed for long. Both are told by the
    processors' time that it used, which does not depend on how busy the machine is.
    """
    mark = f"NUMPY_DIST_MUTANT={os.getpid()}.{time.monotonic_ns()}"
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            words, cwd=ROOT, stdout=output, stderr=output, env={**os.environ, **dict([mark.split("=")])}
        )
        begin = moved = time.monotonic()
        seen: dict[int, float] = {}
        printed, computed = 0, 0.0
        try:
            while True:
                try:
                    code = process.wait(2)
                    output.seek(0)
                    failed = re.search(r"^(?:FAILED|ERROR) (.*)", output.read().decode(errors="replace"), re.MULTILINE)
                    name = failed[1] if failed else ""
                    return ("passed" if code in (0, 5) else "failed", name)  # 5: there are no such tests
                except subprocess.TimeoutExpired:
                    now = time.monotonic()
                seconds, gigabytes = used(processes(mark))
                new = sum(value - seen.get(pid, 0.0) for pid, value in seconds.items())
                computed += new
                if new > 0.04:  # in two seconds: more than polling takes
                    moved = now
                if os.fstat(output.fileno()).st_size != printed:
                    printed, moved, computed = os.fstat(output.fileno()).st_size, now, 0.0
                seen = seconds
                if gigabytes > GIGABYTES:
                    return "memory", ""
                if now - moved > IDLE_SECONDS or computed > COMPUTING_SECONDS:
                    return "hangs", ""
                if now - begin > limit:
                    return "timed out", ""
        finally:
            while left := processes(mark):  # again: one of them may have started another
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.poll()
                time.sleep(0.1)
            process.wait()


def of_module(relative: str) -> list[str]:
    """The files of tests that are named after a module, or import it."""
    package, _, name = relative.removesuffix(".py").replace("/", ".").rpartition(".")
    package = package if package.startswith("numpy_dist") else f"numpy_dist.{package}".rstrip(".")
    dotted = re.escape(package)
    imports = re.compile(rf"{dotted}\.{name}\b|from {dotted} import [^\n]*\b{name}\b")
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(file) for file in files if file.stem == f"test_{name}" or imports.search(file.read_text("utf-8"))]


def commands(path: Path, python: str, chosen: str | None = None) -> dict[str, list[str]]:
    """For each stage the command that runs its tests; one stage where they are chosen by hand."""
    relative = path.relative_to(ROOT).as_posix()
    folders = next(tests for top, tests in TESTS.items() if relative.startswith(top))
    pytest = [python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--spmd-timeout=300"]
    if chosen is not None:
        return {"chosen": [*pytest, "-m", "not slow", *shlex.split(chosen)]}
    found = {
        "package": [*pytest, "-m", "not slow", "--ranks", "1", *folders],
        "jobs": [*pytest, "-m", "spmd and not slow", "--ranks", "2,3", *folders],
        "sample": [*pytest, "conformance/test_sample.py"],
        "whole": pytest,
    }
    files = of_module(relative)
    return {"module": [*pytest, "-m", "not slow", "--ranks", "1", *files], **found} if files else found


def stage_that_finds(stages: dict[str, list[str]]) -> tuple[str | None, list[str]]:
    """How the file as it is now is found, None where it is not; what else is to be told of it."""
    notes = []
    for stage, words in stages.items():
        ended, test = outcome(words, STAGES.get(stage, STAGES["module"]))
        if ended == "timed out":
            notes.append(f"{stage} (timed out)")
        elif ended != "passed":
            return f"{stage} ({ended})", [*notes, test]
    return None, notes


def numbers_in(text: str) -> set[int]:
    """Those that a list such as 5-30,41 names."""
    ends = [part.partition("-") for part in text.split(",")]
    return {number for low, _, high in ends for number in range(int(low), int(high or low) + 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the tests")
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--only", help="numbers of the draw, such as 5-30,41: a run that was cut, or survivors again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stages", default=",".join(STAGES), help="those that run, of: %(default)s")
    parser.add_argument("--tests", help="instead of the stages: the files of tests, and the options of pytest")
    parser.add_argument("--at-least", type=float, default=90.0, help="percent that must be found")
    options = parser.parse_args()
    stages = options.stages.split(",")
    if unknown := set(stages) - set(STAGES):
        parser.error(f"no stages: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the file is written back, and the tests end
    draw = random.Random(options.seed)
    found = places()
    chosen = draw.sample(sorted(found), min(options.mutants, len(found)))
    numbers = numbers_in(options.only) if options.only else set(range(1, len(chosen) + 1))
    print(f"{len(numbers)} of {len(found)} places", flush=True)
    survivors: list[str] = []
    untried: list[int] = []
    ways: Counter[str] = Counter()
    for number, (path, where) in enumerate(chosen, 1):
        name, occurrence = draw.choice(found[path, where])
        if number not in numbers:
            continue
        before = path.read_text("utf-8")
        after = mutate_code(before, plugins.get_operator(name)(), occurrence)
        begin = time.monotonic()
        title = f"{path.relative_to(ROOT)}:{where[0]} {name.removeprefix('core/')}"
        words = commands(path, options.python, options.tests)
        words = {stage: words[stage] for stage in words if options.tests or stage in stages}
        if not words:
            untried.append(number)
            print(f"{number}: {title}: NOT TRIED, no test is named after it", flush=True)
            continue
        try:
            path.write_text(after, "utf-8")
            by, notes = stage_that_finds(words)
        finally:
            path.write_text(before, "utf-8")
        ways[by or "NOT FOUND"] += 1
        told = ", ".join(filter(None, [*notes, by or "NOT FOUND"]))
        print(f"{number}: {title}: {told} ({time.monotonic() - begin:.0f} s)", flush=True)
        if by is None:
            difference = difflib.unified_diff(
                before.splitlines(True), after.splitlines(True), str(path.relative_to(ROOT)), title, n=2
            )
            survivors.append("".join(difference))
            print(survivors[-1], flush=True)
    tried = ways.total()
    share = 100 * (1 - len(survivors) / max(tried, 1))
    print(*(f"{count} {way}" for way, count in sorted(ways.items())), sep="\n")
    if untried:
        print(f"{len(untried)} NOT TRIED: {','.join(map(str, untried))}")
    print(f"{share:.1f} % of {tried} mutants found by {options.tests or 'the stages ' + ', '.join(stages)}")
    return int(share < options.at_least or bool(untried))


if __name__ == "__main__":
    raise SystemExit(main())
