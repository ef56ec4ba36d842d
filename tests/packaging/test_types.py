"""Type stubs: up to date, with the names of the namespace; type checkers find mistakes and nothing else."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import numpy_dist
from numpy_dist.conformance import stubs
from numpy_dist.distarray.methods import Methods
from numpy_dist.settings import NAMES

HERE = Path(__file__).resolve().parent
PATIENCE = 300.0
MODULES = {"__init__.pyi": "numpy_dist", "fft.pyi": "numpy_dist.fft", "linalg.pyi": "numpy_dist.linalg"}
MODULES["random/__init__.pyi"] = "numpy_dist.random"


def names_in(path: str) -> set[str]:
    """The public names of a stub: what it defines, and what it imports under a name of its own choice."""
    found: set[str] = set()
    for node in ast.parse((stubs.FOLDER / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            found.add(ast.unparse(node.target))
        elif isinstance(node, ast.Assign):
            found |= {ast.unparse(target) for target in node.targets}
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname for alias in node.names if alias.asname}
    return {name for name in found if not name.startswith("_")}


OLDER = tuple(map(int, np.__version__.split(".")[:2])) < (2, 4)  # than that of the stubs, whose parameters came later


def parameters(arguments: ast.arguments) -> set[str]:
    """The names of a function's parameters."""
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return {a.arg for a in every}


def test_they_are_up_to_date() -> None:
    version = ".".join(np.__version__.split(".")[:2])
    if f"with NumPy {version};" not in (stubs.FOLDER / "__init__.pyi").read_text(encoding="utf-8"):
        pytest.skip("the stubs were made with another version of NumPy")
    for path, text in stubs.files().items():
        found = (stubs.FOLDER / path).read_text(encoding="utf-8")
        assert found == text, f"{path}: run `python -m numpy_dist.conformance.stubs`"


def test_the_namespace_has_all_names_and_no_others() -> None:
    if np.__version__[:3] != "2.4":
        pytest.skip("the stubs have the names of another version of NumPy")
    assert names_in("__init__.pyi") - {"public_names"} == {n for n in dir(numpy_dist) if not n.startswith("__")}


@pytest.mark.parametrize("path", ["fft.pyi", "linalg.pyi", "random/__init__.pyi"])
def test_submodules_have_all_names_and_no_others(path: str) -> None:
    if np.__version__[:3] != "2.4":
        pytest.skip("the stubs have the names of another version of NumPy")
    name = MODULES[path].removeprefix("numpy_dist.")
    ours = importlib.import_module(MODULES[path])
    assert names_in(path) - {"OWN"} == {*getattr(np, name).__all__, *ours.__all__}


@pytest.mark.parametrize("path", MODULES)
def test_parameters_are_those_of_the_function(path: str) -> None:
    module, compared = importlib.import_module(MODULES[path]), 0
    for node in ast.parse((stubs.FOLDER / path).read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        if not hasattr(module, node.name):  # gone from a newer NumPy than that of the stubs
            assert np.__version__[:3] != "2.4", node.name
            continue
        try:
            signature = inspect.signature(getattr(module, node.name))
        except ValueError:  # written in C, without a signature
            continue
        if any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):
            continue
        assert OLDER or parameters(node.args) <= set(signature.parameters), node.name
        compared += 1
    assert compared


def test_every_method_of_the_table_is_typed() -> None:
    """What type checkers are told of the methods of `Methods` is what ndarray's take."""
    (cls,) = (node for node in ast.parse(inspect.getsource(Methods)).body if isinstance(node, ast.ClassDef))
    (block,) = (node for node in cls.body if isinstance(node, ast.If))
    typed: dict[str, set[str]] = {}
    for node in block.body:
        if isinstance(node, ast.FunctionDef):  # of several overloads, what any of them takes
            typed.setdefault(node.name, set()).update(parameters(node.args))
    made = {ast.unparse(node.targets[0]) for node in block.orelse if isinstance(node, ast.Assign)}
    assert set(typed) == made
    for name, found in typed.items():
        taken = {*parameters_of(getattr(np.ndarray, name)), *parameters_of(getattr(np, name, None)), "self"}
        assert OLDER or found <= taken, name


def parameters_of(function: object) -> set[str]:
    """The names of a function's parameters; none where it has no signature."""
    try:
        return set(inspect.signature(function).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return set()


def test_every_setting_is_typed() -> None:
    text = (stubs.FOLDER / "__init__.pyi").read_text(encoding="utf-8")
    (cls,) = (n for n in ast.parse(text).body if isinstance(n, ast.ClassDef) and n.name == "_Settings")
    functions = [node for node in cls.body if isinstance(node, ast.FunctionDef)]
    assert {node.name for node in functions} == {*NAMES, "__call__", "snapshot"}
    (call,) = (node for node in functions if node.name == "__call__")
    assert parameters(call.args) == {*NAMES, "self"}


def test_there_is_no_getattr() -> None:
    """A stub that had one would take every name."""
    for path in stubs.FOLDER.rglob("*.pyi"):
        assert "__getattr__" not in path.read_text(encoding="utf-8")


def test_typical_use_runs() -> None:
    if numpy_dist.zeros(1).comm.size > 1:
        pytest.skip("a program for one rank")
    runpy.run_path(str(HERE / "typical_use.py"), run_name="__main__")


# ---- type checkers


def checked(tmp_path_factory: pytest.TempPathFactory, *command: str) -> str:
    """What a type checker prints about both files, which lie where no settings of this project are found."""
    folder = tmp_path_factory.mktemp("types")
    for name in ("typical_use.py", "mistakes.py"):
        (folder / name).write_text((HERE / name).read_text(encoding="utf-8"), encoding="utf-8")
    environment = {**os.environ, "MYPYPATH": str(stubs.FOLDER.parent), "MYPY_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", *command, "typical_use.py", "mistakes.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1, f"{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def mypys(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, int, str]]:
    """The errors of mypy: file, line and kind."""
    pytest.importorskip("mypy")
    text = checked(tmp_path_factory, "mypy", "--strict", "--follow-imports=silent", "--no-pretty", "--no-color-output")
    lines = re.findall(r"^([\w./]+):(\d+): error: .*\[([\w-]+)\]$", text, re.MULTILINE)
    return {(name, int(number), kind) for name, number, kind in lines}


@pytest.mark.slow
def test_mypy_has_nothing_to_say_about_typical_use(mypys: set[tuple[str, int, str]]) -> None:
    assert not [error for error in mypys if error[0] != "mistakes.py"]


@pytest.mark.slow
def test_mypy_finds_every_mistake_and_no_others(mypys: set[tuple[str, int, str]]) -> None:
    lines = (HERE / "mistakes.py").read_text(encoding="utf-8").splitlines()
    told = {(n, kind) for n, line in enumerate(lines, 1) for kind in re.findall(r"# mypy: ([\w-]+)$", line)}
    assert len(told) > 20
    assert {error[1:] for error in mypys if error[0] == "mistakes.py"} == told
