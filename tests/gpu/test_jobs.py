"""Jobs of several processes: every transport on the fake device, and, marked `gpu`, on one or several real ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from numpy_dist.comm import devices

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
START = "from numpy_dist.cli.main import main; raise SystemExit(main())"
ON = ["fake", pytest.param("cupy", marks=pytest.mark.gpu)]
SMALL = {
    "stencil.py": ["--size", "300", "--steps", "20"],
    "options.py": ["--count", "50000"],
    "gradients.py": ["--size", "190", "--steps", "10"],
    "life.py": ["--size", "530", "--steps", "4"],
    "kmeans.py": ["--points", "10000", "--steps", "2"],
}
pytestmark = pytest.mark.slow


def run(ranks: int, script: Path, *options: str, limit: float = 240, **settings: str) -> str:
    """What a job of `numpy-dist run` prints; it must end with 0."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "NUMPY_DIST_"))}
    environment |= {f"NUMPY_DIST_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-c", START, "run", "-n", str(ranks), str(script), *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("backend", ON)
@pytest.mark.parametrize(
    ("ranks", "transport"), [(1, "auto"), (2, "host"), (2, "ipc"), (2, "mpi-gpu"), (2, "nccl"), (4, "auto"), (4, "ipc")]
)
def test_programs_are_numpys(backend, ranks, transport):
    if transport == "nccl" and (backend == "fake" or devices.usable() < ranks):
        pytest.skip("NCCL wants a device for each rank, and has no stand-in between processes")
    try:
        text = run(ranks, HERE / "job.py", BACKEND=backend, TRANSPORT=transport, MIN_SHARD_BYTES="0", FALLBACK="error")
    except AssertionError as error:
        if transport == "mpi-gpu" and "takes no messages in the memory of devices" in str(error):
            pytest.skip("this MPI library takes no messages in the memory of devices")
        raise
    told = json.loads(text)
    assert told["backend"] == backend
    names = {name for name, _ in told["ranks"]}
    assert len(names) == 1 and [wrong for _, wrong in told["ranks"]] == [[]] * ranks
    if transport != "auto":
        assert names == {transport}


@pytest.mark.gpu
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("example", SMALL)
def test_examples(example, ranks):
    """They compare with NumPy themselves."""
    assert "times NumPy's speed" in run(ranks, EXAMPLES / example, *SMALL[example], BACKEND="cupy", FALLBACK="error")


@pytest.mark.parametrize("backend", ON)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_benchmarks(ranks, backend):
    """That they run; figures are taken with nothing beside them."""
    told = run(ranks, HERE.parent.parent / "benchmarks" / "gpu.py", "--quick", BACKEND=backend)
    assert "stencil" in told and "sort" in told


@pytest.mark.gpu
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck", "initcheck"])
def test_compute_sanitizer(tool):
    """NVIDIA's checker on all kernels of the job: accesses out of bounds, races, barriers, memory that nobody wrote."""
    checker = shutil.which("compute-sanitizer")
    if checker is None:
        pytest.skip("compute-sanitizer is not installed")
    settings = {"BACKEND": "cupy", "MIN_SHARD_BYTES": "0", "FALLBACK": "error"}
    environment = os.environ | {f"NUMPY_DIST_{name}": value for name, value in settings.items()}
    command = [checker, "--tool", tool, "--error-exitcode", "9", sys.executable, str(HERE / "job.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


SOME = "add or subtract or multiply or minimum or where or roll or transpose or concatenate or clip or sort or cumsum"


@pytest.mark.gpu
@pytest.mark.parametrize(("ranks", "names"), [("1", ""), ("2", SOME), ("4", SOME)], ids=["1", "2", "4"])
def test_conformance(ranks, names):
    """Every function on one rank; some of them on several, which share devices where there are fewer."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "--ranks", ranks, "-k", names]
    command += ["-n", "8"] if ranks == "1" else []
    environment = os.environ | {"NUMPY_DIST_BACKEND": "cupy"}
    done = subprocess.run(
        [*command, "-p", "numpy_dist.spmd_plugin", "--pyargs", "numpy_dist.conformance.test_functions"],
        env=environment, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:]
