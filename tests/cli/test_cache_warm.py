"""`numpy-dist cache warm`: after it, a script finds all its kernels."""

import os
import subprocess
import sys

import pytest

from numpy_dist.cli.main import main

SCRIPT = """
import sys
import numpy as np
import numpy_dist
from numpy_dist import engine

x = numpy_dist.asarray(np.ones((400, 400)))
x[1:-1] = np.sin(x[2:]) + x[:-2]
total = float(x.sum())
counts = engine.runtime().backend.counts
print(*sys.argv[1:], counts["numba"], counts["numpy"])
sys.exit(3)
"""


def _run(folder, *words):
    environment = os.environ | {"NUMPY_DIST_CACHE_DIR": str(folder / "cache"), "NUMPY_DIST_COMPILE_AFTER": "0"}
    return subprocess.run(
        [sys.executable, "-m", "numpy_dist", *words], env=environment, capture_output=True, text=True, timeout=200
    )


@pytest.mark.slow
@pytest.mark.parametrize("ranks", ["1", "2"])
def test_a_script_finds_all_kernels_after_it(tmp_path, ranks):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    warmed = _run(tmp_path, "cache", "warm", "-n", ranks, str(script), "word")
    made = len(list((tmp_path / "cache").glob("*.kernel")))
    *_, last = warmed.stdout.splitlines()
    assert made >= 2 and warmed.returncode == 3, warmed.stderr
    assert last == f"{made} kernels were added to {tmp_path / 'cache'}, which has {made}"
    done = _run(tmp_path, "run", "-n", ranks, str(script), "word")
    word, compiled, interpreted = done.stdout.split()
    assert word == "word" and int(compiled) >= 2 and interpreted == "0"
    assert len(list((tmp_path / "cache").glob("*.kernel"))) == made
    again = _run(tmp_path, "cache", "warm", "-n", ranks, str(script))
    assert again.stdout.splitlines()[-1].startswith("0 kernels were added")


def test_a_cache_that_is_not_used_cannot_be_warmed(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    (tmp_path / "script.py").write_text("print('runs')")
    done = _run(tmp_path, "cache", "warm", str(tmp_path / "script.py"))
    assert done.returncode == 2 and "others can write" in done.stderr and not done.stdout


@pytest.mark.parametrize(("words", "said"), [([], "no script given"), (["nothing.py"], "no such script")])
def test_a_script_is_needed(capsys, words, said):
    with pytest.raises(SystemExit):
        main(["cache", "warm", *words])
    assert said in capsys.readouterr().err
