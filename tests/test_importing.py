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
print(watches(), hasattr(seaborn.histplot, "numpy_dist_own"), hasattr(matplotlib.axes.Axes.plot, "numpy_dist_own"))
"""
    everything = "[['matplotlib.axes', 'pandas', 'seaborn']]"
    rest = "[['matplotlib.axes', 'seaborn']]"
    assert printed(code) == [everything, everything, f"{rest} True", "[] True True"]
