"""`numpy-dist run --patch`: which modules get numpy_dist in NumPy's place, and what that tells of itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import numpy_dist
from numpy_dist.cli.patching import NumPyStandIn
from tests.cli.test_jobs import COMMAND, PATIENCE, environment  # noqa: F401 - a fixture

MAKES = "import numpy as np\nfrom numpy import ones\n\ndef kinds():\n    return type(np.zeros(3)), type(ones(3))\n"
MAIN = """
import sys

sys.path += ["environment/lib/site-packages", "elsewhere"]
import numpy as np
import scipy.linalg
from package import core
from package.inner import deep
import beside, installed, other

for module in (core, deep, beside, installed, other):
    print(module.__name__, *(kind.__name__ for kind in module.kinds()))
print("scipy", type(scipy.linalg.hilbert(3)).__name__)
print(np.__version__, core.np.__version__, type(np.zeros(2)).__name__)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with a package, a script, modules beside them and one that is installed below them."""
    for name in ("package/inner", "environment/lib/site-packages", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("package/core", "package/inner/deep", "beside", "environment/lib/site-packages/installed"):
        (tmp_path / f"{name}.py").write_text(MAKES)
    (tmp_path / "elsewhere/other.py").write_text(MAKES)
    for name in ("package/__init__", "package/inner/__init__"):
        (tmp_path / f"{name}.py").write_text("")
    for name in ("package/main", "script"):
        (tmp_path / f"{name}.py").write_text(MAIN)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(("words", "beside"), [(["script.py"], True), (["-m", "package.main"], False)])
def test_the_users_own_modules_are_patched(
    environment: dict[str, str],  # noqa: F811
    program: Path,
    words: list[str],
    beside: bool,
) -> None:
    command = [*COMMAND, "run", "--patch", *words]
    job = subprocess.run(
        command, cwd=program, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert job.returncode == 0, job.stderr
    ours, numpys = "DistArray DistArray", "ndarray ndarray"
    assert job.stdout.splitlines() == [
        f"package.core {ours}",
        f"package.inner.deep {ours}",
        f"beside {ours if beside else numpys}",
        f"installed {numpys}",
        f"other {ours if beside else numpys}",  # below the script's folder
        "scipy ndarray",
        f"{np.__version__} {np.__version__} DistArray",
    ]


def test_the_stand_in_is_numpy_dist_with_numpys_version() -> None:
    given = NumPyStandIn()
    assert given.__version__ == np.__version__ != numpy_dist.__version__
    assert given.zeros is numpy_dist.zeros and given.sin is np.sin and given.random is numpy_dist.random
    assert "zeros" in vars(given)  # found once
    assert set(dir(given)) == set(dir(numpy_dist))
    with pytest.raises(AttributeError, match="neither numpy_dist nor numpy has an attribute 'zeross'"):
        given.zeross  # noqa: B018
    assert sys.modules["numpy_dist"] is not given
