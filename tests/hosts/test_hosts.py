"""`numpy-dist run --hosts`: jobs on two hosts, which are namespaces of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hosts.conftest import HostJobs, jobs_on
from tests.hosts.namespaces import CLOCK, Network, has_clocks, signal_inside, wait_for

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SOON = 90.0  # seconds on a busy machine; ranks that nobody ends would take longer

PREAMBLE = """
import os, signal, sys, time
from numpy_dist.comm.detect import get_communicator
comm = get_communicator()
"""
WAITING = f"""{PREAMBLE}
comm.barrier()
if comm.rank == 0:
    print("ready", flush=True)
"""
DATA = """
import numpy as np
import numpy_dist as nd
from numpy_dist import engine

assert engine.runtime().size == 4
rng = np.random.default_rng(5)
plain = rng.standard_normal((60, 7))
keys = rng.integers(0, 50, 300)


def step(x):
    x = x.copy()
    x[1:-1] = 0.25 * (x[2:] + x[:-2]) + 0.5 * x[1:-1]
    return x


def relax(x):
    for _ in range(5):
        x = step(x)
    return x


CALLS = {
    "elementwise": (lambda m, x, k: m.sin(x) * 2 + x),
    "halo": (lambda m, x, k: relax(x)),
    "columns": (lambda m, x, k: x[:, 1:] - x[:, :-1]),
    "sum": (lambda m, x, k: x.sum(axis=0)),
    "cumsum": (lambda m, x, k: m.cumsum(k)),
    "sort": (lambda m, x, k: m.sort(k)),
    "argsort": (lambda m, x, k: m.argsort(k, kind="stable")),
    "unique": (lambda m, x, k: m.unique(k)),
    "mask": (lambda m, x, k: k[k > 25]),
    "take": (lambda m, x, k: x[m.sort(k) % 60]),
    "reversed": (lambda m, x, k: x[::-2]),
    "product": (lambda m, x, k: x @ x.T),
    "concatenate": (lambda m, x, k: m.concatenate([x[50:], x[:9]])),
}
for name, call in CALLS.items():
    expected = call(np, plain, keys)
    found = call(nd, nd.asarray(plain), nd.asarray(keys))
    assert isinstance(found, nd.DistArray), name
    np.testing.assert_allclose(found.gather(), expected, rtol=1e-12, atol=1e-12, err_msg=name)
nd.save("kept.npy", nd.asarray(plain))
np.testing.assert_array_equal(nd.load("kept.npy").gather(), plain)
print("compared", len(CALLS))
"""


def test_hosts_have_their_own_of_everything(network: Network, shared: Path, environment: dict[str, str]) -> None:
    look = "hostname; echo $$ > /dev/shm/mine; ls /dev/shm; ls /proc | grep -c '^[0-9]'; rm /dev/shm/mine"
    output, _ = network["a"].start(["sh", "-c", look], shared, environment).communicate()
    name, file, processes = output.split()
    assert (name, file) == ("a", "mine") and int(processes) < 10
    shell = [environment["HYDRA_LAUNCHER_EXEC"], "-x", "b", "hostname; cat; exit 3"]
    called = network["a"].start(shell, shared, environment)
    assert called.communicate("text") == ("b\ntext", "")
    assert called.returncode == 3


def test_no_host_outlives_who_made_it(allowed: None, tmp_path: Path) -> None:
    script = f"""
import sys, time
sys.path.insert(0, {os.fspath(Path(__file__).resolve().parents[2])!r})
from pathlib import Path
from tests.hosts.namespaces import Network
with Network({{"a": "a", "b": "b"}}, Path({os.fspath(tmp_path)!r})) as network:
    print(*(host.first for host in network.hosts.values()), *(host.process.pid for host in network.hosts.values()))
    sys.stdout.flush()
    time.sleep(200)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = process.stdout.readline().split()
        assert len(pids) == 4 and all(os.path.exists(f"/proc/{pid}/ns/net") for pid in pids)
        process.kill()
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


def test_arrays_on_two_hosts(jobs: HostJobs) -> None:
    code, output, errors = jobs.run("a", "-n 4 --hosts a,b", DATA)
    assert (code, output, errors) == (0, "compared 13\n", ""), errors


@pytest.mark.parametrize(
    "example", [["stencil.py", "--size", "300", "--steps", "20"], ["life.py", "--size", "530", "--steps", "4"]]
)
def test_examples(jobs: HostJobs, example: list[str]) -> None:
    jobs.environment["NUMPY_DIST_FALLBACK"] = "error"
    code, output, errors = jobs.run("a", "-n 4 --hosts a,b", [str(EXAMPLES / example[0]), *example[1:]])
    assert code == 0 and output, errors


PLACES = f"""{PREAMBLE}
import numpy_dist as np
found = comm.allgather((os.uname().nodename, comm.node_rank, comm.node_size))
print(*(f"{{name}}:{{rank}}/{{size}}" for name, rank, size in found), float(np.arange(100.0).sum()))
"""


def test_ranks_fill_the_slots_of_hosts(jobs: HostJobs) -> None:
    code, output, errors = jobs.run("a", "-n 4 --hosts b:1,a:3", PLACES)
    assert (code, output) == (0, "b:0/1 a:0/3 a:1/3 a:2/3 4950.0\n"), errors


def test_a_file_of_hosts(jobs: HostJobs) -> None:
    (jobs.folder / "hosts").write_text("# ours\na:2\nb slots = 4 max_slots=4\n")
    code, output, errors = jobs.run("login", "-n 4 --hostfile hosts", PLACES)
    assert (code, output) == (0, "a:0/2 a:1/2 b:0/2 b:1/2 4950.0\n"), errors


def test_two_hosts_of_one_name_share_no_memory(twin_jobs: HostJobs) -> None:
    addresses = ",".join(twin_jobs.network[name].address for name in ("x", "y"))
    code, output, errors = twin_jobs.run("login", f"-n 4 --hosts {addresses}", PLACES + DATA)
    expected = "node:0/2 node:1/2 node:0/2 node:1/2 4950.0\ncompared 13\n"
    assert (code, output, errors) == (0, expected, ""), errors


@pytest.mark.parametrize("where", ["a", "login"])
def test_streams(jobs: HostJobs, where: str) -> None:
    script = f"""{PREAMBLE}
print("out", comm.rank, repr(sys.stdin.read()))
print("err", comm.rank, file=sys.stderr)
"""
    code, output, errors = jobs.run(where, "-n 4 --hosts a,b", script, text="one\ntwo\n")
    assert (code, output) == (0, "out 0 'one\\ntwo\\n'\n"), errors
    assert sorted(errors.split("\n")) == ["", *(f"[rank {rank}] err {rank}" for rank in range(4))]


def test_one_rank_on_another_host(jobs: HostJobs) -> None:
    script = "import os, sys; print(os.uname().nodename, sys.stdin.read()); sys.exit(7)"
    assert jobs.run("a", "--hosts b", script, text="in")[:2] == (7, "b in\n")


def test_a_rank_on_the_other_host_fails(jobs: HostJobs) -> None:
    script = f"{PREAMBLE}\ncomm.barrier()\nif comm.rank == 3:\n    raise ValueError('there')\ncomm.barrier()"
    code, output, errors = jobs.run("a", "-n 4 --hosts a,b", script)
    assert code == 1 and "[rank 3] ValueError: there\n" in errors
    assert "numpy-dist:" not in errors and errors.count("Traceback") == 1


def test_what_the_launcher_says_is_shown_where_nothing_else_explains(jobs: HostJobs) -> None:
    code, _, errors = jobs.run("a", "-n 4 --hosts a,nowhere", "print(1)")
    assert code and "nowhere" in errors and "[mpiexec@a]" in errors


NAMED = "numpy-dist: rank {} (process "


def test_a_killed_rank_of_the_launchers_host_is_named(jobs: HostJobs) -> None:
    script = f"{PREAMBLE}\ncomm.barrier()\nif comm.rank == 1:\n    os.kill(os.getpid(), 9)\ncomm.barrier()"
    code, _, errors = jobs.run("a", "-n 4 --hosts a,b", script)
    (told,) = [line for line in errors.splitlines() if line.startswith("numpy-dist:")]
    assert code == 137 and told.startswith(NAMED.format(1)) and "was ended by signal 9" in told, errors
    assert "HYD" not in errors  # what MPICH's launcher says of itself


def test_a_job_that_has_lost_a_rank_on_another_host_is_started_again(jobs: HostJobs) -> None:
    script = f"""{PREAMBLE}
comm.barrier()
if comm.rank == 3 and os.environ["NUMPY_DIST_RESTART"] == "0":
    os.kill(os.getpid(), 9)
comm.barrier()
print("done")
"""
    code, output, errors = jobs.run("a", "-n 4 --hosts a,b --restart 1", script)
    assert (code, output.strip()) == (0, "done"), errors
    named, restarted = [line for line in errors.splitlines() if line.startswith("numpy-dist:")]
    assert named.startswith(NAMED.format(3)) and "on host b was lost" in named and "started again" in restarted


@pytest.mark.parametrize(("number", "where"), [(signal.SIGINT, "a"), (signal.SIGTERM, "login")])
def test_signals_end_the_job_on_all_hosts(jobs: HostJobs, number: signal.Signals, where: str) -> None:
    process = jobs.start(where, "-n 4 --hosts a,b", f"{WAITING}\ntime.sleep(100)")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    begun = time.monotonic()
    signal_inside(process, number)
    code, _, errors = jobs.end(process)
    assert code == 128 + number and time.monotonic() - begun < SOON, errors


ROUNDS = f"""{WAITING}
while True:
    comm.barrier()
    time.sleep(0.01)
"""


def test_a_host_vanishes(fragile_jobs: HostJobs) -> None:
    jobs = fragile_jobs
    process = jobs.start("login", "-n 4 --hosts a,b --timeout 3", ROUNDS)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    begun = time.monotonic()
    jobs.network.vanish("b")
    code, _, errors = jobs.end(process)
    assert code == 128 + signal.SIGKILL and time.monotonic() - begun < SOON
    assert errors == "numpy-dist: host b does not answer any more; it ran rank 2, 3\n"


def test_the_launchers_host_vanishes(fragile_jobs: HostJobs) -> None:
    jobs = fragile_jobs
    process = jobs.start("a", "-n 4 --hosts a,b --timeout 3", ROUNDS)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    jobs.network.vanish("a")
    wait_for(lambda: not any("runner" in words for words in jobs.processes()["b"].values()))


def test_another_clock(allowed: None, shared: Path, environment: dict[str, str], tmp_path: Path) -> None:
    if not has_clocks():
        pytest.skip("there are no time namespaces here")
    script = f"""{PREAMBLE}
times = comm.allgather(time.monotonic())
assert times[2] - times[0] > {CLOCK // 2}
{DATA}
comm.barrier()
nd.config.TIMEOUT = 2  # no sooner: the ranks of a busy machine start late
if engine.runtime().rank == 1:
    time.sleep(3)  # others wait, and look for deadlocks
comm.barrier()
"""
    with Network({"a": "a", "b": "b"}, shared, frozenset("b")) as network:
        for jobs in jobs_on(network, shared, environment, tmp_path.name):
            code, output, errors = jobs.run("a", "-n 4 --hosts a,b --timeout 1000", script)
    assert (code, output) == (0, "compared 13\n"), errors
    assert errors.count("Where every rank is:") == 1 and "has not answered" not in errors


# A module that Python imports as it starts: there are no namespaces for this clock.
CLOCKS = """
import os, time
if os.uname().nodename == "b":
    real = time.time
    time.time = lambda: real() + {ahead}
"""


@pytest.mark.parametrize(("ahead", "limit", "ends"), [(3600, "10m", False), (-3600, "0", True)])
def test_the_end_of_a_job_where_a_clock_differs_by_an_hour(
    jobs: HostJobs, ahead: int, limit: str, ends: bool
) -> None:
    """Rank 0 is on another host than the launcher."""
    (jobs.folder / "sitecustomize.py").write_text(CLOCKS.format(ahead=ahead))
    jobs.environment["PYTHONPATH"] += f":{jobs.folder}"
    script = f"{PREAMBLE}\nfrom numpy_dist import checkpoint\ntimes = comm.allgather(time.time())\n"
    script += "print(round((times[0] - times[1]) / 3600), checkpoint.should_end())"
    code, output, errors = jobs.run("login", f"-n 2 --hosts b,a --max-time {limit}", script)
    assert (code, output) == (0, f"{ahead // 3600} {ends}\n"), errors


# Another Python, another processor, and another user's environment, as far as ranks see of them.
UNLIKE = """
import os
if os.uname().nodename == "b":
    import platform
    import numpy
    platform.python_version = lambda: "3.99.1"
    features = numpy._core._multiarray_umath.__cpu_features__
    features["AVX2"] = not features.get("AVX2")
    elsewhere = os.path.join(FOLDER, "elsewhere")
    os.makedirs(elsewhere, exist_ok=True)
    os.environ |= {"OPENBLAS_CORETYPE": "Prescott", "HOME": elsewhere, "NUMPY_DIST_CACHE_DIR": elsewhere}
    os.chdir(elsewhere)
"""


def test_hosts_that_are_not_alike(jobs: HostJobs) -> None:
    """What differs is told once, and data are right."""
    (jobs.folder / "sitecustomize.py").write_text(UNLIKE.replace("FOLDER", repr(str(jobs.folder))))
    jobs.environment["PYTHONPATH"] += f":{jobs.folder}"
    script = DATA.replace('"kept.npy"', repr(str(jobs.folder / "kept.npy")))
    (jobs.folder / "script.py").write_text(script)
    code, output, errors = jobs.run("a", "-n 4 --hosts a,b", [str(jobs.folder / "script.py")])
    assert (code, output) == (0, "compared 13\n"), errors
    for text in ("Python: rank 0, 1: 3.", "rank 2, 3: 3.99.1", "CPU features: rank 0, 1: ", "rank 2, 3: Prescott"):
        assert errors.count(text) == 1, errors


def test_a_host_with_a_device_and_one_without(jobs: HostJobs) -> None:
    """All ranks take the processors, as they have agreed."""
    script = f"""
import os
from numpy_dist.comm import devices
devices.usable = lambda: int(os.uname().nodename == "b")
{DATA}
rt = engine.runtime()
print(*sorted({{(rt.backend.name, *rt.comm.devices)}}))
"""
    jobs.environment["NUMPY_DIST_BACKEND"] = "auto"
    code, output, errors = jobs.run("a", "-n 4 --hosts a,b", script)
    assert code == 0, errors
    assert output.endswith("0, 0, 1, 1)\n") and "cupy" not in output


def test_ranks_with_a_device_beside_ranks_without(jobs: HostJobs) -> None:
    """Whatever the backends, the ranks of a host share what it fetches, or none does."""
    script = f"""
{DATA}
rt, values = engine.runtime(), np.arange(40_000.0)
assert (nd.asarray(values).gather() == values).all()
print(rt.transport.name, rt.comm.allgather(rt.backend.name))
"""
    jobs.environment["NUMPY_DIST_BACKEND"] = "fake,numpy,numpy,fake"
    code, output, errors = jobs.run("a", "-n 4 --hosts a,b", script)
    assert code == 0, errors
    assert output.endswith("host ['fake', 'numpy', 'numpy', 'fake']\n")


KERNELS = """
import numpy as np
import numpy_dist
from numpy_dist import engine

x = numpy_dist.asarray(np.ones((400, 400)))
x[1:-1] = x[2:] + x[:-2]
total = float(x[3, 3])
print(min(engine.runtime().comm.allgather(engine.runtime().backend.counts["numba"])))
"""


@pytest.mark.parametrize("cache", ["shared", "separate"])
def test_kernels_are_kept(jobs: HostJobs, cache: str) -> None:
    folder = jobs.folder / "kernels" if cache == "shared" else Path("/tmp/kernels")
    jobs.environment |= {
        "NUMPY_DIST_CACHE_DIR": str(folder),
        "NUMPY_DIST_COMPILE": "first",
        "NUMPY_DIST_COMPILE_AFTER": "0",
    }
    try:
        code, output, errors = jobs.end_leaving(jobs.start("a", "-n 4 --hosts a,b", KERNELS))
        assert code == 0 and int(output) >= 1, errors
        if cache == "shared":
            kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.kernel")}
            again, _, errors = jobs.run("a", "-n 4 --hosts a,b", KERNELS)
            assert again == 0 and kept, errors
            assert {path.name: path.stat().st_mtime_ns for path in folder.glob("*.kernel")} == kept
        else:
            roots = [Path(f"/proc/{jobs.network[name].first}/root") for name in ("a", "b")]
            assert all(list((root / "tmp/kernels").glob("*.kernel")) for root in roots)
    finally:
        for name in ("a", "b"):
            jobs.network[name].start(["rm", "-rf", "/tmp/kernels"], jobs.folder, jobs.environment).communicate()
