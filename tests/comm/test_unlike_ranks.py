"""Real ranks with other environments, settings, libraries or plug-ins than their peers."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from numpy_dist.comm import detect
from numpy_dist.conformance import jobs
from tests.failures.jobs import HEADER, SECONDS, JobEnd

pytestmark = pytest.mark.slow

PREAMBLE = """
import os
import numpy as np
last = int(os.environ["PMI_RANK"]) == int(os.environ["PMI_SIZE"]) - 1
import numpy_dist
from numpy_dist import engine
"""
NUMBERS = """
x = numpy_dist.asarray(np.arange(100_000.0))
total = float(x.sum())
own = float(engine.replicated(np.array(1.5 + x.comm.rank)))  # as if each had computed another number
print(f"<{total} {own} {x.comm.allgather(own)}>")
"""
WORK = {
    "collective": "x = numpy_dist.asarray(np.arange(100_000.0))\nprint(float(x.sum()))",
    "messages": "x = numpy_dist.asarray(np.arange(100_000.0))\ny = x + x[::-1]\nprint(y.local[:3])\nfloat(y.sum())",
}


def run(script: str, folder: Path, ranks: int = 2, **environment: str) -> JobEnd:
    """A job whose last rank has more in its environment."""
    mpiexec = detect.find_mpiexec()
    if mpiexec is None:
        pytest.skip("there is no mpiexec")
    path = folder / "script.py"
    path.write_text(PREAMBLE + textwrap.dedent(script))
    program = [sys.executable, str(path)]
    settings = [word for name, value in environment.items() for word in ("-env", name, value)]
    job = jobs.run([mpiexec, "-n", str(ranks - 1), *program, ":", "-n", "1", *settings, *program], folder)
    if job.hung:
        pytest.fail(f"the job hangs; it has printed:\n{job.text}")
    return job


def told_of(job: JobEnd, ranks: int) -> str:
    """What a job was told that came to its end: each rank once, and all have rank 0's numbers."""
    assert job.code == 0, job
    expected = f"<4999950000.0 1.5 {[1.5] * ranks}>"
    assert job.output.count(expected) == ranks, job
    assert job.errors.count("DivergenceWarning: the ranks are not alike:") == ranks, job
    assert "numbers that Python gets from arrays (float(x), bool(x), x.item()) are rank 0's" in job.errors
    return job.errors


def test_environment_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = 3
    variables = {"OPENBLAS_CORETYPE": "Prescott", "OMP_PLACES": "cores", "MKL_CBWR": "AVX", "PYTHONHASHSEED": "7"}
    for name in variables:
        monkeypatch.delenv(name, raising=False)  # the machine may choose OpenBLAS's kernels for everybody
    text = told_of(run(NUMBERS, tmp_path, ranks, **variables), ranks)
    others = ", ".join(map(str, range(ranks - 1)))
    for name, value in variables.items():
        assert f"  environment variable {name}: rank {others}: not set; rank {ranks - 1}: {value}\n" in text, text


def test_features_of_the_processor(tmp_path: Path) -> None:
    features = importlib.import_module("numpy._core._multiarray_umath")
    switchable = [f for f in features.__cpu_dispatch__ if features.__cpu_features__.get(f)]
    if not switchable:
        pytest.skip("NumPy uses nothing of this processor that can be switched off")
    text = told_of(run(NUMBERS, tmp_path, NPY_DISABLE_CPU_FEATURES=" ".join(switchable)), 2)
    assert "  CPU features: rank 0: " in text and "; rank 1: no more\n" in text, text


def test_versions(tmp_path: Path) -> None:
    script = """
    if last:
        import platform
        np.__version__ = "2.0.9"
        np.show_config = lambda mode: {"Build Dependencies": {"blas": {"name": "other"}}}
        platform.machine = lambda: "m68k"
    """
    text = told_of(run(textwrap.dedent(script) + NUMBERS, tmp_path), 2)
    assert f"  NumPy: rank 0: {np.__version__}; rank 1: 2.0.9\n" in text, text
    assert "; rank 1: other None\n" in text and "; rank 1: m68k\n" in text, text


@pytest.mark.parametrize(
    ("name", "value", "told", "work"),
    [
        ("MIN_SHARD_BYTES", "1GiB", "setting MIN_SHARD_BYTES: rank 0: 262144; rank 1: 1073741824", "messages"),
        ("FALLBACK", "error", "setting FALLBACK: rank 0: warn; rank 1: error", "messages"),
        ("CHECK", "on", "setting CHECK: rank 0: off; rank 1: on", "collective"),
        ("CHECK", "on", "setting CHECK: rank 0: off; rank 1: on", "messages"),
    ],
)
def test_settings_that_decide_about_communication(name: str, value: str, told: str, work: str, tmp_path: Path) -> None:
    job = run(WORK[work], tmp_path, **{f"NUMPY_DIST_{name}": value})
    assert job.code != 0 and job.seconds < SECONDS and job.errors.count(HEADER) == 1, job
    assert told in job.errors, job.errors


def test_settings_of_which_each_rank_has_its_own(tmp_path: Path) -> None:
    settings = {"NUM_THREADS": "2", "CACHE_DIR": str(tmp_path), "COMPILE": "never", "MEMORY_BUDGET": "1GiB"}
    job = run(NUMBERS, tmp_path, **{f"NUMPY_DIST_{name}": value for name, value in settings.items()})
    assert (job.code, job.errors) == (0, ""), job


def test_plug_ins(tmp_path: Path) -> None:
    """A package that only one rank's machine has."""
    installed = tmp_path / "installed"
    info = installed / "surprise-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: surprise\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[numpy_dist.overrides]\nsurprise = surprise\n")
    (installed / "surprise.py").write_text("")
    paths = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    job = run(WORK["messages"], tmp_path, PYTHONPATH=paths)
    assert job.code != 0 and job.errors.count(HEADER) == 1, job
    assert "plug-ins: rank 0: ; rank 1: surprise=surprise" in job.errors.replace("none", ""), job.errors
