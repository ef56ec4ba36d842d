"""`numpy-dist run`, as far as it can be seen without starting a job."""

from __future__ import annotations

import io
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from numpy_dist.cli import launcher, library, machine, main, processes, report, runner, streams
from numpy_dist.cli.complaints import Complaints
from numpy_dist.cli.launcher import THREAD_VARIABLES, Job
from numpy_dist.cli.library import Launcher, MPILibrary
from numpy_dist.errors import LauncherError

MPICH = MPILibrary("MPICH 5.0.2", "mpich", "5.0", ("lib/libmpi.so.12",))
OPEN_MPI = MPILibrary("Open MPI v5.0.11", "openmpi", "3.1")


@pytest.mark.parametrize(
    ("words", "own", "command"),
    [
        ("-n 4 a.py -n 9", "-n 4", "a.py -n 9"),
        ("a.py", "", "a.py"),
        ("--all-output --timeout 3 -m a.b -m c", "--all-output --timeout 3", "-m a.b -m c"),
        ("-n4 -- --odd-name.py -x", "-n4", "--odd-name.py -x"),
        ("--backend=numpy dir/", "--backend=numpy", "dir/"),
        ("-n 2", "-n 2", ""),
    ],
)
def test_our_options_end_where_the_script_begins(words: str, own: str, command: str) -> None:
    assert main.split_command(words.split()) == (own.split(), command.split())


@pytest.mark.parametrize(("ranks", "cores", "threads"), [(1, 8, "8"), (2, 8, "4"), (3, 8, "2"), (4, 2, "1")])
def test_the_cores_are_divided_among_the_ranks(ranks: int, cores: int, threads: str) -> None:
    environment = launcher.job_environment(Job(ranks, ("a.py",), environment={}), cores)
    assert {environment[name] for name in THREAD_VARIABLES} == {threads}


def test_ranks_on_several_machines_share_less() -> None:
    job = Job(8, ("a.py",), environment={"SLURM_JOB_NUM_NODES": "4"})
    assert launcher.job_environment(job, 16)["OMP_NUM_THREADS"] == "8"


def test_what_the_user_set_stays() -> None:
    given = {"OMP_NUM_THREADS": "7", "PYTHONHASHSEED": "random", "NUMPY_DIST_BACKEND": "null", "HOME": "h"}
    environment = launcher.job_environment(Job(2, ("a.py",), environment=given), 2)
    assert given.items() <= environment.items()
    assert environment["MKL_NUM_THREADS"] == "1"


def test_settings_and_hash_seed_reach_the_ranks() -> None:
    job = Job(2, ("a.py",), backend="numpy", timeout=2.5, environment={"NUMPY_DIST_BACKEND": "null"})
    environment = launcher.job_environment(job, 2)
    assert environment["NUMPY_DIST_BACKEND"] == "numpy"
    assert environment["NUMPY_DIST_TIMEOUT"] == "2.5"
    weighted = launcher.job_environment(Job(2, ("a.py",), weights="2,1", environment={}), 2)
    assert weighted["NUMPY_DIST_WEIGHTS"] == "2,1" and "NUMPY_DIST_WEIGHTS" not in environment
    assert environment["PYTHONHASHSEED"] == "0"


def test_a_job_inside_a_job_is_a_job_of_its_own() -> None:
    outer = {"PMI_RANK": "1", "PMI_FD": "99", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "1", "OMPI_MCA_btl": "self,sm"}
    environment = launcher.job_environment(Job(2, ("a.py",), environment=outer), 2)
    assert not {"PMI_RANK", "PMI_FD", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK"} & environment.keys()
    assert environment["OMPI_MCA_btl"] == "self,sm"


def test_open_mpi_lets_ranks_share_cores() -> None:
    environment = {"PATH": "bin", "NEW": "1"}
    command = launcher.mpi_command(
        Job(4, ("a.py", "-x"), environment={}), Launcher("m/mpiexec", "", "openmpi"), environment
    )
    assert command[:5] == ["m/mpiexec", "--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"]
    assert "NEW" in command and command[-2:] == ["a.py", "-x"]
    assert environment["PATH"] == os.pathsep.join(["m", "bin"])


def test_mpich_gets_another_folder_where_shared_memory_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for free, expected in ((64 << 20, True), (8 << 30, False)):
        monkeypatch.setattr(machine, "free_bytes", lambda folder, free=free: free)
        environment: dict[str, str] = {}
        launcher.mpi_command(Job(16, ("a.py",), environment={}), Launcher("m/mpiexec", "", "mpich"), environment)
        assert ("UCX_POSIX_DIR" in environment) is expected


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("HYDRA build details:\n    Version: 5.0.2", "mpich"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.13", "mpich"),
        ("MPICH Version:\t4.3.0", "mpich"),
        ("MVAPICH Version 4.0", "mpich"),
        ("mpiexec (OpenRTE) 4.1.5", "openmpi"),
        ("mpiexec (Open MPI) 5.0.11", "openmpi"),
        ("Open MPI v5.0.11, package: Open MPI", "openmpi"),
        ("something else", None),
    ],
)
def test_families(text: str, family: str | None) -> None:
    assert library.family_of(text) == family


def test_the_launcher_of_the_library_is_chosen() -> None:
    other, own = Launcher("a/mpiexec", "Open MPI", "openmpi"), Launcher("b/mpiexec", "Hydra", "mpich")
    assert library.matching_launcher(MPICH, [other, own]) is own
    assert library.matching_launcher(OPEN_MPI, [own, other]) is other


def test_a_launcher_of_another_mpi_is_refused_by_name() -> None:
    with pytest.raises(LauncherError, match=r"mpi4py loads MPICH 5.0.2 \(lib/libmpi.so.12\).*a/mpiexec \(Open MPI 5\)"):
        library.matching_launcher(MPICH, [Launcher("a/mpiexec", "Open MPI 5", "openmpi")])
    with pytest.raises(LauncherError, match="no mpiexec"):
        library.matching_launcher(MPICH, [])


def test_launchers_are_found_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path / name for name in ("prefix/bin", "beside", "path")]
    for folder, words in zip(
        folders, ("mpiexec (Open MPI) 5.0", "HYDRA build details:\n Version: 4.3", "?"), strict=True
    ):
        folder.mkdir(parents=True)
        file = folder / "mpiexec"
        file.write_text(f"#!/bin/sh\necho '{words}'\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "link").symlink_to(folders[2])
    monkeypatch.setattr(sys, "prefix", str(folders[0].parent))
    monkeypatch.setattr(sys, "executable", str(folders[1] / "python"))
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, (folders[2], tmp_path / "link", folders[0]))))
    found = library.find_launchers()
    assert [launcher.path for launcher in found] == [str(folder / "mpiexec") for folder in folders]
    assert [launcher.family for launcher in found] == ["openmpi", "mpich", None]
    assert found[1].name == "Hydra 4.3"


def test_without_a_library_the_message_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_ASK", "raise RuntimeError('cannot load MPI library')")
    with pytest.raises(LauncherError, match=r"cannot load MPI library.*pip install 'numpy-dist\[mpich\]'"):
        library.find_library()
    monkeypatch.setattr(library, "_ASK", "import time; time.sleep(20)")
    with pytest.raises(LauncherError, match="more than 0.2 s"):
        library.find_library(timeout=0.2)


def test_exit_codes_are_those_of_shells() -> None:
    assert launcher.exit_code(3, None, None) == 3
    assert launcher.exit_code(-9, None, None) == 137
    assert launcher.exit_code(1, signal.SIGINT, None) == 130
    assert launcher.exit_code(9, None, signal.SIGKILL) == 137


def test_each_line_bears_the_number_of_its_rank_once() -> None:
    reading, writing = os.pipe()
    stream = streams.RankStream(writing, 3)
    for piece in ("one\ntw", "o\n", "", "[rank 3] three\n", "four"):
        assert stream.write(piece) == len(piece)
    stream.flush()
    assert stream.fileno() == writing
    os.close(writing)
    with os.fdopen(reading) as file:
        assert file.read() == "[rank 3] one\n[rank 3] two\n[rank 3] three\n[rank 3] four"


def test_files_that_are_not_those_of_the_launcher_are_not_adopted(tmp_path: Path) -> None:
    with open(tmp_path / "a", "w") as first, open(tmp_path / "b", "w") as second:
        files = (first.fileno(), first.fileno(), first.fileno())
        description = streams.describe_files(files)
        assert streams.handed_down(description) == list(files)
        os.dup2(second.fileno(), first.fileno())
        assert streams.handed_down(description) is None
    assert streams.handed_down(description) is None


@pytest.mark.parametrize(("code", "number"), [(9, 9), (15, 15), (9, 15), (9, 11)])
def test_banners_are_taken_out_and_deaths_read_from_them(
    capfdbinary: pytest.CaptureFixture[bytes], code: int, number: int
) -> None:
    reading, writing = os.pipe()
    banner = (
        "first\n[mpiexec@host] Sending Ctrl-C to processes as requested\n\n" + "=" * 83 + "\n"
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 123 RUNNING AT host\n"
        f"=   EXIT CODE: {code}\n"
        "=   CLEANING UP REMAINING PROCESSES\n=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES\n" + "=" * 83 + "\n"
        f"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: {signal.strsignal(number)} (signal {number})\n"
        "This typically refers to a problem with your application.\nPlease see the FAQ page for debugging\nlast\n"
    )
    os.write(writing, banner.encode())
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        copy = streams.Filter(file)
        copy.run()
    assert capfdbinary.readouterr().out == b"first\nlast\n"
    assert copy.death() == number


def test_a_blank_line_that_is_no_banners_stays(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"first\n\n\nlast\n\n" + b"=" * 83 + b"\n=   PID 123 RUNNING AT host\n\n")
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        streams.Filter(file).run()
    assert capfdbinary.readouterr().out == b"first\n\n\nlast\n"


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_complaints_of_the_launcher_are_kept_aside() -> None:
    """Whole lines, also those that come in pieces; bars and questions of ranks come at once."""
    reading, writing = os.pipe()
    complaint = b"[proxy:0@a] main (pmip.c:123): demux engine error\n"
    shown, kept = io.BytesIO(), io.BytesIO()
    with os.fdopen(reading, "rb") as file:
        copy = Complaints(file, shown)
        copy.start()

        def comes(text: bytes, seen: bytes) -> None:
            os.write(writing, text)
            wait_until(lambda: shown.getvalue() == seen)

        comes(b"10%", b"10%")
        comes(b" 20%[mpiexec@a] is the user's\n[pro", b"10% 20%[mpiexec@a] is the user's\n")
        comes(complaint[4:] + b"[rank 3] x", b"10% 20%[mpiexec@a] is the user's\n[rank 3] x")
        comes(b"\n[proxy is the user's\n", b"10% 20%[mpiexec@a] is the user's\n[rank 3] x\n[proxy is the user's\n")
        interleaved = b"HYDT_dmxu_poll (/mpich/demux_poll.c:76): error\ncallback returned error status\n"
        os.write(writing, interleaved + b"[mpiexec@a] main: error")
        os.close(writing)
        copy.join()
    copy.show(kept)
    assert kept.getvalue() == complaint + interleaved + b"[mpiexec@a] main: error\n"


def test_descendants_are_found_and_ended() -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc")
    script = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(1, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = processes.descendants(process.pid)
        assert len(found) == 1 and process.pid in processes.descendants(os.getpid())
        processes.send([process.pid, *found], signal.SIGKILL)
        processes.send([2**22 + 1], signal.SIGKILL)


@pytest.mark.parametrize("names", runner.RANK_VARIABLES)
def test_rank_and_size(names: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (name for pair in runner.RANK_VARIABLES for name in pair):
        monkeypatch.delenv(name, raising=False)
    assert runner.rank_and_size() == (0, 1)
    monkeypatch.setenv(names[0], "2")
    monkeypatch.setenv(names[1], "4")
    assert runner.rank_and_size() == (2, 4)


def test_cores_obey_the_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    free = machine.cores()
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    assert machine.cores() == 1
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert machine.cores() == free


def test_memory_obeys_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    assert machine.memory() in ((1000000, 600000), (None, None))
    assert machine.free_bytes(str(tmp_path)) is not None
    assert machine.free_bytes(str(tmp_path / "none")) is None


def test_what_is_missing_comes_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "_has", lambda module: False)
    monkeypatch.setattr(report.os.path, "exists", lambda path: True)
    lines = report._missing({"problem": "no library. Do this."})
    assert [line for line in lines if "several ranks: no library. Do this." in line]
    for extra in ("cuda12", "io", "examples"):
        assert any(f"numpy-dist[{extra}]" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--weights=2,1", "2,1 are not the weights of 3 ranks"),
        ("--weights 1,0,1", "a positive number for each rank"),
        ("--bind=cores", "invalid choice"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["run", "-n", "3", *words.split(), __file__])
    assert said in capsys.readouterr().err


def test_it_starts_jobs_without_numpy(tmp_path: Path) -> None:
    """Importing that, and what computes, would take three times as long as all else before the ranks begin."""
    (tmp_path / "script.py").touch()
    start = """
import sys
from numpy_dist.cli import entry, launcher
launcher.run = lambda job: print(job.ranks, [name for name in ("numpy", "numpy_dist.engine") if name in sys.modules])
sys.argv[1:] = ["run", "-n", "2", "--timeout", "3", "script.py"]
entry.main()
"""
    done = subprocess.run([sys.executable, "-c", start], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.stderr) == ("2 []\n", "")
