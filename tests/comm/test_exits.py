"""How ranks end, in real MPI jobs: one traceback, an exit code, within seconds; never a hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from numpy_dist.comm import detect
from numpy_dist.comm.supervision.exits import exit_code
from numpy_dist.errors import RankError

SECONDS = 90.0  # a busy machine takes its time; ranks that nobody ends would take longer
PATIENCE = 120.0
HEADER = "Traceback (most recent call last)"

PREAMBLE = """
import os, signal, subprocess, sys, time
import numpy as np
from numpy_dist.comm.detect import get_communicator, watch_exits
watch_exits()
"""
WITH_COMMUNICATOR = "comm = get_communicator()\nrank = comm.rank\ncomm.barrier()\n"
WITHOUT_COMMUNICATOR = "rank = int(os.environ['PMI_RANK'])\n"

# A rank can wait until another one has printed a report.
TOLD = """
write = sys.stderr.write
def write_and_tell(text):
    write(text)
    if "has waited" in text: open(__file__ + ".told", "w").close()
sys.stderr.write = write_and_tell
def wait_until_told():
    while not os.path.exists(__file__ + ".told"): time.sleep(0.05)
"""


class Job(NamedTuple):
    code: int
    output: str
    errors: str
    seconds: float

    @property
    def text(self) -> str:
        """The output without ends of lines, which the launcher may mix."""
        return self.output.replace("\n", "")


Runner = Callable[..., Job]


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """Runs a script on some ranks; a job that hangs fails the test."""
    mpiexec = detect.find_mpiexec()
    if mpiexec is None:
        pytest.skip("there is no mpiexec")

    def run(script: str, nranks: int = 3, preamble: str = WITH_COMMUNICATOR, interrupt: bool = False) -> Job:
        path = tmp_path / "script.py"
        path.write_text(PREAMBLE + preamble + textwrap.dedent(script))
        started = time.monotonic()
        process = subprocess.Popen(
            [mpiexec, "-n", str(nranks), sys.executable, str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        try:
            if interrupt:
                assert process.stdout is not None and process.stdout.readline() == "ready\n"
                process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=PATIENCE)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        return Job(process.returncode, output, errors, time.monotonic() - started)

    return run


def assert_failed(job: Job, *expected: str, code: int | None = None) -> None:
    assert job.code != 0 and (code is None or job.code == code), job
    assert job.errors.count(HEADER) == 1, job.errors
    assert job.seconds < SECONDS, job
    for text in expected:
        assert text in job.errors, job.errors


def test_an_exception_on_one_rank(run: Runner) -> None:
    job = run("if rank == 1: raise ValueError('planted')\ncomm.allgather(1)")
    assert_failed(job, f"[rank 1] {HEADER}", "ValueError: planted", code=1)


@pytest.mark.slow
def test_an_exception_on_every_rank(run: Runner) -> None:
    # Of those that fail at the same time the lowest reports; here one may be much earlier than the others.
    job = run("raise ValueError(f'planted {rank}')")
    assert_failed(job, "ValueError: planted", "The other ranks meanwhile", code=1)


@pytest.mark.slow
def test_an_exception_while_the_others_compute(run: Runner) -> None:
    job = run("if rank == 0: raise ValueError('planted')\ntime.sleep(100)", nranks=2)
    assert_failed(job, f"[rank 0] {HEADER}", "ValueError: planted")


@pytest.mark.slow
def test_an_exception_while_others_send_and_receive(run: Runner) -> None:
    script = """
        if rank == 0: raise ValueError('planted')
        if rank == 1: comm.exchange([], [(0, np.zeros(3))])
        comm.exchange([(0, np.zeros(10**6))], [])
    """
    assert_failed(run(script), f"[rank 0] {HEADER}", "ValueError: planted")


def test_an_exit_with_a_code_on_one_rank(run: Runner) -> None:
    job = run("if rank == 1: sys.exit(3)\ncomm.allgather(1)")
    assert_failed(job, f"[rank 1] {HEADER}", "SystemExit: 3", "script.py")
    assert run("sys.exit(3)")[:3] == (3, "", "")


@pytest.mark.slow
def test_an_exit_with_a_code_while_the_others_compute(run: Runner) -> None:
    assert_failed(run("if rank == 1: sys.exit(3)\ntime.sleep(100)", nranks=2), f"[rank 1] {HEADER}", code=3)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["raise SystemExit(3)", "leave()", "exit(3)", "raise Own(3)", "again()"])
@pytest.mark.parametrize("others", ["comm.allgather(1)", "time.sleep(100)"], ids=["wait", "compute"])
def test_a_system_exit_that_is_raised(run: Runner, end: str, others: str) -> None:
    script = """
        class Own(SystemExit):
            pass
        def leave():
            raise SystemExit(3)
        def again():
            try:
                raise SystemExit(4)
            except SystemExit as first:
                raise SystemExit(3) from first
    """
    job = run(textwrap.dedent(script) + f"if rank == 1: {end}\n{others}", nranks=2)
    assert_failed(job, f"[rank 1] {HEADER}", "SystemExit: 3", "script.py", code=3)


@pytest.mark.slow
def test_a_system_exit_without_a_code_is_a_normal_end(run: Runner) -> None:
    job = run("if rank == 1: raise SystemExit\ntime.sleep(0.5)\nprint('end')", nranks=2)
    assert (job.code, job.text, job.errors) == (0, "end", "")
    job = run("if rank == 1: raise SystemExit\ncomm.barrier()", nranks=2)
    assert_failed(job, "RankError: rank 1 has ended (it left by SystemExit)", code=1)


@pytest.mark.slow
def test_a_rank_that_waited_in_vain_ends_with_the_code_of_the_other(run: Runner) -> None:
    # Launchers mix the codes of all ranks, bit by bit.
    job = run("if rank == 1: sys.exit(4)\ncomm.allgather(1)", nranks=3)
    assert_failed(job, f"[rank 1] {HEADER}", "rank 0, 2: waited for rank 1 in allgather", code=4)


@pytest.mark.slow
def test_an_exit_that_was_caught_is_none(run: Runner) -> None:
    script = """
        try:
            if rank == 1: sys.exit(3)
        except SystemExit:
            pass
        comm.barrier()
        print('end')
    """
    job = run(script, nranks=2)
    assert (job.code, job.text, job.errors) == (0, "endend", "")


@pytest.mark.slow
def test_a_keyboard_interrupt_on_one_rank(run: Runner) -> None:
    script = "if rank == 1:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(9)\ncomm.barrier()"
    assert_failed(run(script), f"[rank 1] {HEADER}", "KeyboardInterrupt", code=130)


def test_control_c(run: Runner) -> None:
    job = run("if rank == 0: print('ready', flush=True)\nelse: comm.barrier()\ntime.sleep(100)", interrupt=True)
    assert job.code != 0 and job.seconds < SECONDS


@pytest.mark.slow
def test_a_normal_end_while_others_wait(run: Runner) -> None:
    job = run("if rank == 0: sys.exit()\ncomm.allgather(1)")
    assert_failed(job, "RankError: rank 0 has ended", "in allgather, called from", "script.py", code=1)


@pytest.mark.slow
def test_mpi_is_finalised_while_others_wait(run: Runner) -> None:
    job = run("from mpi4py import MPI\nif rank == 0: MPI.Finalize()\nelse: comm.allgather(1)", nranks=2)
    assert_failed(job, "RankError: rank 0 has ended (it has called MPI.Finalize())", "script.py", code=1)


@pytest.mark.slow
def test_what_comes_after_mpi_was_finalised_is_refused(run: Runner) -> None:
    script = """
        from mpi4py import MPI
        import numpy_dist
        x = numpy_dist.asarray(np.ones(100_000))
        pair = [(1 - rank, np.zeros(3))]
        MPI.Finalize()
        for use in (x.sum, x.gather, comm.barrier, lambda: comm.start_exchange(pair, pair)):
            try:
                float(use())
            except RuntimeError as error:
                assert "the program has called MPI.Finalize()" in str(error), error
        print("end")
    """
    job = run(script, nranks=2)
    assert (job.code, job.text, job.errors) == (0, "endend", "")


def test_an_early_end_without_further_communication_is_legal(run: Runner) -> None:
    script = """
        pending = comm.start_exchange([(2, np.zeros(10**6))] if rank == 1 else [],
                                      [(1, target := np.ones(10**6))] if rank == 2 else [])
        if rank < 2: sys.exit(0)
        time.sleep(0.5)
        pending.wait()
        print('received', target.any())
    """
    job = run(script)
    assert (job.code, job.output, job.errors) == (0, "received False\n", "")


@pytest.mark.slow
def test_a_loop_until_a_message_is_here_is_a_wait(run: Runner) -> None:
    script = """
        if rank == 0:
            pending = comm.start_exchange([], [(1, np.zeros(3))])
            while not pending.done(): time.sleep(0.001)
    """
    job = run(script, nranks=2)
    assert job.code != 0 and job.seconds < SECONDS
    assert "rank 1 has ended (it ran to its end), and rank 0 waits for it in messages with ranks [1]" in job.errors


@pytest.mark.slow
def test_the_program_may_handle_it(run: Runner) -> None:
    script = """
        from numpy_dist.errors import RankError
        if rank == 0: sys.exit()
        for _ in range(2):
            try:
                comm.barrier()
            except RankError as error:
                print(error.rank, flush=True)
        comm.exchange([(3 - rank, np.ones(3))], [(3 - rank, target := np.zeros(3))])
        assert target.all()
    """
    job = run(script)
    assert (job.code, job.text, job.errors) == (0, "0000", "")


@pytest.mark.slow
def test_a_collective_that_the_ended_rank_took_part_in_completes(run: Runner) -> None:
    script = """
        data = comm.allgather_array(np.full(300_000, float(rank)))
        if rank == 0: sys.exit()
        time.sleep(0.3)
        print(sum(a[-1] for a in data))
    """
    job = run(script)
    assert (job.code, job.text, job.errors) == (0, "3.03.0", "")


@pytest.mark.slow
def test_what_is_printed_before_the_job_is_aborted_is_not_lost(run: Runner) -> None:
    # The launcher's helper, which reads what ranks print, sleeps meanwhile, as on a busy machine.
    script = """
        if rank == 1:
            helper = os.getppid()
            subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -CONT {helper}"])
            os.kill(helper, signal.SIGSTOP)
            sys.stderr.write("x" * 60_000 + "end")
            comm.abort(3)
        time.sleep(100)
    """
    for _ in range(5):
        job = run(script, nranks=2)
        assert job.code == 3 and "x" * 60_000 + "end" in job.errors, job.errors[-300:]


def test_a_process_that_dies(run: Runner) -> None:
    job = run("if rank == 1: os.kill(os.getpid(), signal.SIGKILL)\ncomm.allgather(1)", nranks=2)
    assert job.code != 0 and job.seconds < SECONDS and HEADER not in job.errors
    job = run("if rank == 1: os._exit(7)\ncomm.allgather(1)", nranks=2)
    assert_failed(job, f"[rank 1] {HEADER}", "os._exit(7)", "rank 0: waited for rank 1 in allgather", code=7)


@pytest.mark.slow
def test_another_hook_shows_the_exception(run: Runner) -> None:
    script = (
        "sys.excepthook = lambda *a: print('hook:', a[1])\nif rank == 1: raise ValueError('planted')\ncomm.barrier()"
    )
    job = run(script, nranks=2)
    assert job.code != 0 and job.seconds < SECONDS
    assert job.output.count("hook: planted") == 1 and HEADER not in job.errors


@pytest.mark.slow
def test_a_hook_from_before_is_called(run: Runner) -> None:
    hook = "sys.excepthook = lambda *a: print('hook:', a[1])\nfrom numpy_dist.comm import detect\n"
    hook += "detect._guard._previous_hook = sys.excepthook\nsys.excepthook = detect._guard._hook\n"
    job = run(hook + "if rank == 1: raise ValueError('planted')\ncomm.barrier()", nranks=2)
    assert job.code != 0 and job.output == "hook: planted\n" and job.errors.startswith("[rank 1] ")


@pytest.mark.slow
def test_showing_an_exception_is_no_end(run: Runner) -> None:
    script = """
        if rank == 1:
            try:
                1 / 0
            except ZeroDivisionError:
                sys.excepthook(*sys.exc_info())
        comm.barrier()
        print('end')
    """
    job = run(script, nranks=2)
    assert (job.code, job.text) == (0, "endend") and job.errors.count("ZeroDivisionError") == 1


# -- before the first communication ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_exception_before_the_first_use(run: Runner) -> None:
    script = "if rank == 1: raise ValueError('planted')\nget_communicator().barrier()"
    assert_failed(run(script, preamble=WITHOUT_COMMUNICATOR), f"[rank 1] {HEADER}", "ValueError: planted", code=1)


@pytest.mark.slow
def test_an_exception_on_every_rank_before_the_first_use(run: Runner) -> None:
    job = run("raise ValueError('planted')", preamble=WITHOUT_COMMUNICATOR)
    assert_failed(job, f"[rank 0] {HEADER}", "ValueError: planted", code=1)


@pytest.mark.slow
def test_an_exception_before_the_first_use_while_the_others_compute(run: Runner) -> None:
    script = "if rank == 1: raise ValueError('planted')\ntime.sleep(100)"
    job = run(script, nranks=2, preamble=WITHOUT_COMMUNICATOR)
    assert_failed(job, f"[rank 1] {HEADER}", "ValueError: planted")


@pytest.mark.slow
def test_exits_before_the_first_use(run: Runner) -> None:
    script = "if rank == 1: sys.exit(CODE)\nget_communicator().barrier()"
    job = run(script.replace("CODE", "4"), nranks=2, preamble=WITHOUT_COMMUNICATOR)
    assert_failed(job, f"[rank 1] {HEADER}", "SystemExit: 4")
    job = run(script.replace("CODE", "0"), nranks=2, preamble=WITHOUT_COMMUNICATOR)
    assert_failed(job, f"[rank 0] {HEADER}", "RankError: rank 1 has ended")


@pytest.mark.slow
def test_a_program_that_never_communicates(run: Runner) -> None:
    job = run("print('end')", nranks=2, preamble=WITHOUT_COMMUNICATOR)
    assert (job.code, job.text, job.errors) == (0, "endend", "")


@pytest.mark.slow
def test_a_launcher_that_does_not_fit(run: Runner) -> None:
    # Without its pipe, the library takes each process for a program of its own.
    job = run("os.environ.pop('PMI_FD')\nget_communicator()", preamble=WITHOUT_COMMUNICATOR)
    assert_failed(job, f"[rank 0] {HEADER}", "LauncherError: the launcher started 3 ranks (PMI_SIZE=3)", "sees 1 rank")


# -- children --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("preamble", [WITH_COMMUNICATOR, WITHOUT_COMMUNICATOR], ids=["after", "before"])
def test_children_are_programs_of_one_rank(run: Runner, preamble: str) -> None:
    script = """
        code = "from numpy_dist.comm.detect import *; watch_exits(); print(get_communicator().name)"
        print(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=30).stdout, end='')
        get_communicator().barrier()
    """
    job = run(script, nranks=2, preamble=preamble)
    assert (job.code, job.text, job.errors) == (0, "singlesingle", "")


@pytest.mark.slow
def test_a_forked_child_cannot_communicate(run: Runner) -> None:
    script = """
        import warnings
        warnings.simplefilter("ignore")  # Python 3.12 warns where a process with threads forks
        child = os.fork()
        if child == 0:
            try:
                comm.barrier()
            except RuntimeError as error:
                sys.exit(5 if 'forked' in str(error) else 6)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        comm.barrier()
    """
    job = run(script, nranks=2)
    assert (job.code, job.text, job.errors) == (0, "55", "")


def test_who_is_waited_for_is_the_rank_that_ended_first_of_itself() -> None:
    pytest.importorskip("mpi4py")
    from numpy_dist.comm.mpi import MpiCommunicator
    from numpy_dist.comm.supervision.exits import EndNotice

    ended = {
        1: EndNotice(1, 3, "waited for rank 2 in allgather", True, False, False, 0),
        2: EndNotice(2, 3, "SystemExit: 3", True, True, True, 0),
    }
    waiting = SimpleNamespace(ended=ended, rank=0, checks=None, named=lambda where: where)
    with pytest.raises(RankError, match="rank 2 has ended") as caught:
        MpiCommunicator.raise_if_missing(waiting, lambda notice: True, "allgather")  # type: ignore[arg-type]
    assert caught.value.rank == 2
    with pytest.raises(RankError, match="rank 1 has ended"):
        MpiCommunicator.raise_if_missing(waiting, lambda notice: notice.rank == 1, "allgather")  # type: ignore[arg-type]


def test_exit_codes() -> None:
    assert [exit_code(value) for value in (None, 0, 3, True, 256 + 2, -1, "text")] == [0, 0, 3, 1, 2, 255, 1]


@pytest.mark.slow
def test_the_setting_timeout_prints_where_ranks_wait(run: Runner) -> None:
    script = """
        from numpy_dist.settings import config
        config.TIMEOUT = 0.5
        if rank == 1: wait_until_told()
        comm.allgather(1)
    """
    job = run(TOLD + textwrap.dedent(script), nranks=2)
    assert job.code == 0
    assert job.errors.count("[rank 0] has waited") == 1 and "in allgather" in job.errors and "script.py" in job.errors
