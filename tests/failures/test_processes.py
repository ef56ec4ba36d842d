"""Forked children, child processes, threads, the end of the interpreter, and scripts that run twice in one process."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.failures.jobs import run

pytestmark = pytest.mark.slow

PREAMBLE = """
import atexit, concurrent.futures, multiprocessing, os, subprocess, sys, threading, time, warnings
warnings.simplefilter("ignore")  # Python 3.12 warns where a process with threads forks
import numpy as np
import numpy_dist
from numpy_dist import engine
rank, size = engine.runtime().rank, engine.runtime().size
x = numpy_dist.asarray(np.arange(400_000.0))
for _ in range(3):
    total = float((x * 2 + 1).sum())
pending = x + 1
"""


def job_output(script: str, folder: Path, ranks: int, launcher: str = "mpiexec") -> str:
    """What a job prints, without ends of lines, which launchers mix; it must end well."""
    job = run("python" if ranks == 1 else launcher, PREAMBLE + textwrap.dedent(script), folder, ranks)
    assert (job.code, job.errors, job.left) == (0, "", []), job
    return job.output.replace("\n", "")


FORK = """
def child(queue):
    try:
        queue.put(float((x + 1).sum()))
    except RuntimeError as error:
        queue.put("forked" if "forked" in str(error) else str(error))
context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=child, args=(queue,))
process.start()
print(queue.get(timeout=50))
process.join(50)
assert process.exitcode == 0, process.exitcode
assert float(pending.sum()) == float(np.arange(400_000.0).sum()) + 400_000
"""


def test_a_forked_child_of_one_rank_is_a_program_of_its_own(tmp_path: Path) -> None:
    assert job_output(FORK, tmp_path, 1) == str(float(sum(range(1, 400_001))))


def test_a_forked_child_of_a_rank_is_told_that_its_arrays_are_dead(tmp_path: Path) -> None:
    assert job_output(FORK, tmp_path, 2) == "forked" * 2


def test_pools_of_processes_work_on_plain_arrays(tmp_path: Path) -> None:
    script = """
        values = [x[i : i + 10].gather() for i in range(0, 40, 10)]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            sums = pool.map(np.sum, values)
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
            assert list(pool.map(np.sum, values)) == sums
        print(f"{sum(sums)} {float(pending.sum()) > 0}\\n", end="")
    """
    assert job_output(script, tmp_path, 2) == "780.0 True" * 2


def test_joblib_works_on_plain_arrays(tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    script = """
        import joblib
        values = [x[i : i + 10].gather() for i in range(0, 40, 10)]
        sums = joblib.Parallel(n_jobs=2)(joblib.delayed(np.sum)(value) for value in values)
        try:
            joblib.Parallel(n_jobs=2)(joblib.delayed(np.sum)(x) for _ in range(2))
        except Exception as error:
            kind = type(error).__name__
        print(f"{kind} {sum(sums)} {float(pending.sum()) > 0}\\n", end="")
    """
    assert job_output(script, tmp_path, 2) == "PicklingError 780.0 True" * 2


def test_children_inherit_neither_variables_nor_pipes(tmp_path: Path) -> None:
    script = """
        code = "import os; print([v for v in os.environ if v.startswith(('PMI', 'HYDRA', 'HYDI', 'MPI_LOCAL'))], "
        code += "[os.readlink(f'/proc/self/fd/{d}') for d in os.listdir('/proc/self/fd') if int(d) > 2 "
        code += "and os.path.exists(f'/proc/self/fd/{d}') and 'socket' in os.readlink(f'/proc/self/fd/{d}')])"
        found = subprocess.run([sys.executable, "-c", code], close_fds=False, capture_output=True, text=True)
        print(found.stdout.strip() + found.stderr)
    """
    for launcher in ("mpiexec", "run"):
        text = job_output(script, tmp_path, 2, launcher)
        assert text.replace("[rank 0] ", "").replace("[rank 1] ", "") == "[] []" * 2


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_second_thread_may_not_record(ranks: int, tmp_path: Path) -> None:
    script = """
        def work():
            try:
                float((x + 1).sum())
            except RuntimeError as error:
                print("second thread" in str(error))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            assert pool.submit(np.sum, x.gather()).result() > 0
        assert float(pending.sum()) > 0
    """
    assert job_output(script, tmp_path, ranks) == "True" * ranks


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_interpreter_ends_with_a_pending_program(ranks: int, tmp_path: Path) -> None:
    script = """
        class Keeper:
            def __init__(self):
                self.array = x * 3
            def __del__(self):
                self.array += 1
        keeper, again = Keeper(), x[::2] + x[1::2]
        atexit.register(lambda: print(float(pending.sum()) > 0))
    """
    assert job_output(script, tmp_path, ranks) == "True" * ranks


def test_an_exit_function_from_before_the_import_may_communicate(tmp_path: Path) -> None:
    script = "import atexit\narrays = []\natexit.register(lambda: print(float(arrays[0].sum()) > 0))\n"
    path = tmp_path / "before.py"
    path.write_text(script)
    job = run("mpiexec", f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nfrom before import arrays\n" + PREAMBLE
              + "arrays.append(pending)\n", tmp_path)  # fmt: skip
    assert (job.code, job.output.replace("\n", ""), job.errors, job.left) == (0, "True" * 2, "", []), job


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_script_runs_twice_in_one_process(ranks: int, tmp_path: Path) -> None:
    script = """
        import runpy
        (path := "%s/twice" + str(rank) + ".py")
        open(path, "w").write("import numpy as np\\nimport numpy_dist\\ny = numpy_dist.asarray(np.ones(300_000))\\n"
                              "print(float((y + y).sum()))\\nraise SystemExit(0)\\n")
        for _ in range(2):
            try:
                runpy.run_path(path, run_name="__main__")
            except SystemExit:
                pass
        os.remove(path)
        assert float(pending.sum()) > 0
    """
    assert job_output(script % tmp_path, tmp_path, ranks) == "600000.0" * 2 * ranks


@pytest.mark.parametrize("ranks", [1, 2])
def test_cells_of_a_notebook_go_on_after_an_error(ranks: int, tmp_path: Path) -> None:
    script = """
        cells = ["y = x + 1", "y[10**9]", "z = y @ np.ones(3)", "1 / 0", "y **= np.nan", "print(float(y[0:2].sum()))"]
        names = {"x": x, "np": np}
        for cell in cells:
            try:
                exec(cell, names)
            except Exception as error:
                sys.last_value = error
                caught = type(error).__name__
        del sys.last_value
        assert caught == "ZeroDivisionError", caught
    """
    assert job_output(script, tmp_path, ranks) == "nan" * ranks
