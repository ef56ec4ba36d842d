"""Libraries that plug-ins wait for: one finder does, and goes with the last of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

WATCHES = """
import sys
import numpy_dist
from numpy_dist import importing
def watches():
    return [sorted(f.names) for f in sys.meta_path if isinstance(f, importing.ImportWatch)]
importing.install()
print(watches())
"""


def printed(code: str) -> list[str]:
    """What a program prints, line by line, after the names that are waited for from the beginning."""
    done = subprocess.run([sys.executable, "-c", WATCHES + code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_one_finder_waits_for_all_and_goes_with_the_last() -> None:
    for name in ("pandas", "seaborn"):
        pytest.importorskip(name)
    code = """
import importlib.util
importlib.util.find_spec("pandas")  # who only asks has not imported it
print(watches())
import pandas
print(watches(), hasattr(pandas.DataFrame.groupby, "numpy_dist_own"))
import seaborn
import matplotlib.axes
import numpy.testing
print(watches(), hasattr(seaborn.histplot, "numpy_dist_own"), hasattr(matplotlib.axes.Axes.plot, "numpy_dist_own"))
"""
    first, second, third, last = printed(code)
    assert first == second == "[['matplotlib.axes', 'numpy.testing', 'pandas', 'seaborn']]"
    assert third in ("[['matplotlib.axes', 'numpy.testing', 'seaborn']] True", "[['matplotlib.axes', 'seaborn']] True")
    assert last == "[] True True"


def test_assertions_are_put_before_in_either_order() -> None:
    """Where NumPy's module of assertions is imported first, and where last."""
    found = "print(hasattr(numpy.testing.assert_equal, 'numpy_dist_own'))"
    assert printed(f"import numpy.testing; {found}")[-1] == "True"
    done = subprocess.run(
        [sys.executable, "-c", f"import numpy.testing, numpy_dist; {found}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "True\n", done.stderr
