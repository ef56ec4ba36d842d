"""The files of the installed NumPy that hold its tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from numpy_dist.conformance.numpy_tests import left_out

__all__ = ["choose", "every", "module_of"]


def every() -> list[str]:
    """NumPy's files that have to do with arrays, as ``_core.test_umath``."""
    package = Path(np.__file__).parent
    return [
        f"{folder}.{path.stem}"
        for folder in left_out.FOLDERS
        for path in sorted((package / folder / "tests").glob("test_*.py"))
    ]


def module_of(file: str) -> str:
    """The full name of a file's module; files that are not NumPy's are named by it."""
    folder, _, name = file.rpartition(".")
    return f"numpy.{folder}.tests.{name}" if folder in left_out.FOLDERS else file


def choose(names: Sequence[str]) -> Iterator[str]:
    """The files to run.

    Parameters
    ----------
    names : sequence of str
        NumPy's, also by parts of their names (``umath``, ``lib.test_io``), or modules of tests that lie elsewhere; none
        for all of NumPy's that are not left out.

    Raises
    ------
    LookupError
        For a name that nothing has.
    """
    without = {file for files in left_out.FILES.values() for file in files.split()}
    if not names:
        yield from (file for file in every() if file not in without)
    for name in dict.fromkeys(names):
        found = [file for file in every() if name in (file, file.partition(".")[2], file.partition(".test_")[2])]
        if not found and not _exists(name):
            raise LookupError(f"NumPy has no test file of this name, and there is no such module: {name}")
        yield from found or [name]


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a package above it
        return False
