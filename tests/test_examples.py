"""Every example as a user starts it, at small size: it exits zero only if it agrees with NumPy and gathered nothing."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
LAUNCHER_VARIABLES = ("PMI", "PMIX_", "HYDRA_", "MPI_LOCAL", "OMPI_", "SLURM_", "NUMPY_DIST_")
SMALL = {
    "terrain.py": ["--enlarge", "1", "--steps", "10", "--picture", ""],
    "stencil.py": ["--size", "300", "--steps", "20"],
    "pi.py": ["--points", "200000"],
    "images.py": ["--images", "60", "--size", "40"],
}
PROGRAMS = {
    "cavity.py": ["--size", "190", "--steps", "3"],
    "gradients.py": ["--size", "190", "--steps", "10"],
    "kmeans.py": ["--points", "10000", "--steps", "2"],
    "options.py": ["--count", "50000"],
    "layers.py": ["--rows", "2000", "--width", "32"],
    "batches.py": ["--rows", "3000", "--columns", "50"],
    "bodies.py": ["--bodies", "300", "--steps", "1"],
    "shallow.py": ["--size", "190", "--steps", "4"],
    "regression.py": ["--samples", "35000", "--steps", "3"],
    "life.py": ["--size", "530", "--steps", "4"],
    "components.py": ["--samples", "20000", "--features", "20"],
    "fit.py": ["--times", "40000"],
    "poisson.py": ["--size", "36"],
}


def command(ranks: int, how: str) -> list[str]:
    """What stands before the script on the command line."""
    if how == "python":
        return [sys.executable]
    if how == "mpiexec":
        beside = Path(sys.executable).parent / "mpiexec"
        found = str(beside) if beside.exists() else shutil.which("mpiexec")
        if found is None:
            pytest.skip("no mpiexec in this environment")
        return [found, "-n", str(ranks), sys.executable]
    start = "from numpy_dist.cli.main import main; raise SystemExit(main())"
    return [sys.executable, "-c", start, "run", "-n", str(ranks)]


def needs_matplotlib(example: str) -> None:
    """Skip where what the example needs is not installed: the extra `examples`."""
    if example == "terrain.py" and importlib.util.find_spec("matplotlib") is None:
        pytest.skip("Matplotlib, which brings the elevation model, is not installed")


def run(arguments: list[str], folder: Path, limit: float = 90) -> tuple[int, str]:
    """Exit code and output; past the time limit the whole process group is ended and the test fails."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_VARIABLES)}
    environment["NUMPY_DIST_FALLBACK"] = "error"
    process = subprocess.Popen(
        arguments,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            output, _ = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        pytest.fail(f"{' '.join(arguments)} ran for more than {limit} s; it had printed:\n{output}")
    return process.returncode, output


# CI runs them all on one, two and four ranks, larger.
@pytest.mark.parametrize(("ranks", "how"), [pytest.param(1, "python", marks=pytest.mark.slow), (3, "run")])
@pytest.mark.parametrize("example", SMALL)
def test_example_agrees_with_numpy(example, ranks, how, tmp_path):
    needs_matplotlib(example)
    agrees(example, SMALL[example], ranks, how, tmp_path)


@pytest.mark.parametrize("example", PROGRAMS)
def test_program_agrees_with_numpy(example, tmp_path):
    agrees(example, PROGRAMS[example], 3, "run", tmp_path)


def test_every_example_is_tested():
    drivers = {path.name for path in EXAMPLES.glob("*.py")} - {"check.py"}
    assert {name for name in drivers if not name.endswith("_functions.py")} == {*SMALL, *PROGRAMS, "restart.py"}


@pytest.mark.slow
@pytest.mark.parametrize("program, seed", [("heat", 0), ("life", 1), ("prices", 2), ("heat", 3)])  # of ten each
def test_a_program_that_is_killed_ends_with_the_same_bits(program, seed, tmp_path):
    start = [*command(seed % 4 + 1, "run"), "--restart=3", str(EXAMPLES / "restart.py"), "--size", "150"]
    start += ["--program", program]
    code, output = run([*start, "--folder", str(tmp_path / "saved"), "--kill", str(seed)], tmp_path)
    assert code == 0, output
    assert "is started again (1 of 3)" in output and "every bit is NumPy's" in output, output
    assert not [file.name for file in (tmp_path / "saved/data").iterdir() if "rank" in file.name]


def test_restart_agrees_with_numpy(tmp_path):
    code, output = run([*command(3, "run"), str(EXAMPLES / "restart.py"), "--size", "150", "--steps", "30"], tmp_path)
    assert code == 0, output
    assert "30 steps on 3 ranks: every bit is NumPy's" in output


def agrees(example, options, ranks, how, folder):
    """The example exits with 0, having reported once."""
    code, output = run([*command(ranks, how), str(EXAMPLES / example), *options], folder)
    assert code == 0, output
    assert f"{ranks} rank" in output and "times NumPy's speed" in output, output
    assert output.count("times NumPy's speed") == 1, f"more than one rank printed:\n{output}"


def test_terrain_under_plain_mpiexec_writes_a_picture(tmp_path):
    needs_matplotlib("terrain.py")
    script = [str(EXAMPLES / "terrain.py"), "--enlarge", "1", "--steps", "5", "--picture", "terrain.png"]
    code, output = run([*command(2, "mpiexec"), *script], tmp_path)
    assert code == 0, output
    picture = (tmp_path / "terrain.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 100_000


WRONG = """
import sys
sys.path.insert(0, {examples!r})
import check
import numpy as np
import numpy_dist

x = np.ones((300, 300))

def gathering(x):
    x.gather()
    return x

check.both_ways("something wrong", lambda: {distributed}, lambda: {reference})
print("not reached")
"""
COMPLAINTS = {
    "largest relative difference": ("numpy_dist.asarray(x) + 1", "x + 1.5"),
    "float64 instead of": ("numpy_dist.asarray(x) + 1", "(x + 1).astype(np.float32)"),
    "is not cut": ("numpy_dist.asarray(x[0]) + 1", "x[0] + 1"),
    "gathers before": ("gathering(numpy_dist.asarray(x))", "x"),
    "is cut unevenly": ("numpy_dist.asarray(x)[10:]", "x[10:]"),
}


@pytest.mark.slow
@pytest.mark.parametrize("complaint", COMPLAINTS)
def test_what_is_wrong_ends_every_rank_with_an_error(complaint, tmp_path):
    distributed, reference = COMPLAINTS[complaint]
    script = tmp_path / "wrong.py"
    script.write_text(WRONG.format(examples=str(EXAMPLES), distributed=distributed, reference=reference))
    code, output = run([*command(2, "run"), str(script)], tmp_path)
    assert code != 0 and complaint in output and "not reached" not in output, output


@pytest.mark.parametrize("module", sorted(path.name for path in EXAMPLES.glob("*_functions.py")))
def test_functions_are_plain_numpy(module):
    source = (EXAMPLES / module).read_text()
    assert "numpy_dist" not in source
    assert [line for line in source.splitlines() if line.startswith(("import ", "from "))] == ["import numpy as np"]
