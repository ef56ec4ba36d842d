"""Notebooks whose cells run on 1, 2 and 3 ranks, as Jupyter runs them: cells, errors, interrupts, dead ranks, ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from numpy_dist.cli import processes

pytest.importorskip("ipykernel", reason="notebooks need ipykernel")
import nbclient
import nbformat
from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpecManager

from numpy_dist.notebook import spec

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SECONDS = 120  # for anything, on a busy machine


class Notebook:
    """A kernel, and what a window does with it."""

    def __init__(self, manager: KernelManager, ranks: int, cache: Path) -> None:
        self.manager, self.ranks = manager, ranks
        # of its own, since other notebooks are tested meanwhile, and Jedi's files are written in place
        manager.start_kernel(env={**os.environ, "XDG_CACHE_HOME": str(cache)})
        self.client = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=SECONDS)

    @property
    def processes(self) -> list[int]:
        """The kernel's process, and all below."""
        pid = self.manager.provisioner.pid
        return [pid, *processes.descendants(pid)]

    def reply(self, request: str) -> dict[str, Any]:
        """The reply to a request."""
        while True:
            message = self.client.get_shell_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") == request:
                return message["content"]

    def run(
        self, code: str, meanwhile: Callable[[], object] | None = None, at: str = "", **options: Any
    ) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
        """Run a cell; its status and outputs. `meanwhile` is called when it is begun, or when it prints `at`."""
        request = self.client.execute(code, **options)
        if meanwhile is not None and not at:
            meanwhile()
        outputs = []
        while True:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") != request:
                continue
            if kind == "status" and content["execution_state"] == "idle":
                return self.reply(request)["status"], outputs
            if kind in ("stream", "error", "execute_result", "display_data"):
                outputs.append((kind, content))
            if meanwhile is not None and at and at in content.get("text", ""):
                meanwhile()

    def value(self, code: str) -> str:
        """The text of a cell's result."""
        status, outputs = self.run(code)
        assert status == "ok", outputs
        return str(outputs[-1][1]["data"]["text/plain"])

    def errors(self, code: str, *how: Any) -> list[str]:
        """The errors that a cell shows."""
        status, outputs = self.run(code, *how)
        assert status == "error", outputs
        return [f"{content['ename']}: {content['evalue']}" for kind, content in outputs if kind == "error"]

    def interrupt(self) -> None:
        """As the button does."""
        self.manager.interrupt_kernel()

    def end(self) -> None:
        """Shut the kernel down."""
        self.client.stop_channels()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel()


@pytest.fixture(scope="module")
def kernel_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the kernels are installed."""
    prefix = tmp_path_factory.mktemp("prefix")
    for ranks in (1, 2, 3):
        spec.install(ranks, prefix=str(prefix))
    return str(prefix / "share" / "jupyter" / "kernels")


def kernel_manager(folder: str, ranks: int) -> KernelManager:
    """A manager of a kernel that is installed in a folder."""
    specs = KernelSpecManager(kernel_dirs=[folder])
    return KernelManager(kernel_name=f"numpy-dist-{ranks}", kernel_spec_manager=specs)


@pytest.fixture(scope="module", params=[1, pytest.param(2, marks=pytest.mark.long), 3])
def notebook(
    request: pytest.FixtureRequest, kernel_folder: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Notebook]:
    """One for all tests at a number of ranks."""
    made = Notebook(kernel_manager(kernel_folder, request.param), request.param, tmp_path_factory.mktemp("cache"))
    yield made
    made.end()


@pytest.fixture
def several(notebook: Notebook) -> Notebook:
    """A notebook on several ranks."""
    if notebook.ranks == 1:
        pytest.skip("this is about several ranks")
    return notebook


ARRAYS = "import os, time\nimport numpy_dist as np\nx = np.arange(200_000.0)\ncomm, n = x.comm, 0"


@pytest.fixture(autouse=True)
def arrays(request: pytest.FixtureRequest) -> None:
    """What the cells of each test begin with."""
    if "notebook" in request.fixturenames:
        assert request.getfixturevalue("notebook").run(ARRAYS) == ("ok", [])


SUM = "19999900000.0"


def test_a_computation_and_what_is_shown_of_it(notebook: Notebook) -> None:
    assert notebook.value("float(x.sum()), comm.size") == f"({SUM}, {notebook.ranks})"
    status, outputs = notebook.run("print('once')\nx")
    assert [kind for kind, _ in outputs] == ["stream", "execute_result"]
    assert outputs[0][1]["text"] == "once\n"
    data = outputs[1][1]["data"]
    assert data["text/plain"].startswith("DistArray([0.00000e+00, 1.00000e+00")
    assert "DistArray" in data["text/html"]
    assert notebook.value("float(_.max()), len(In) == _ih.__len__()") == "(199999.0, True)"


def test_an_error_on_all_ranks(notebook: Notebook) -> None:
    assert notebook.errors("y = x + 1\nnp.concatenate([y, x[:, None]])")[0].startswith("ValueError: all the input")
    assert notebook.errors("1 +")[0].startswith("SyntaxError")
    assert notebook.value("float((y - x).sum())") == "200000.0"


def test_tracebacks_leave_our_lines_out(notebook: Notebook) -> None:
    status, (shown,) = notebook.run("x.sum(axis=5)")
    text = "\n".join(shown[1]["traceback"])
    assert status == "error" and shown[1]["ename"] == "AxisError"
    assert "lines inside numpy_dist are left out" in text and "in _axes" not in text


def test_an_error_on_one_rank(several: Notebook) -> None:
    found = several.errors("if comm.rank == 1:\n    raise ValueError('only here')")
    assert found == ["ValueError: rank 1: ValueError: only here"]
    assert several.value("float(x.sum())") == SUM  # nothing is lost: no rank waits


def test_an_error_on_one_rank_that_others_wait_for(several: Notebook) -> None:
    status, outputs = several.run("if comm.rank == 1:\n    raise ValueError('only here')\nfloat(x.sum())")
    assert status == "error"
    assert [(kind, content.get("ename")) for kind, content in outputs] == [("error", "ValueError"), ("stream", None)]
    assert outputs[0][1]["traceback"][0] == "rank 1: ValueError: only here"
    assert "The ranks have parted" in outputs[1][1]["text"]
    assert several.errors("float((x + 1).sum())")[0].startswith("LostValueError: an array of shape")
    assert several.value("x = np.arange(200_000.0)\nfloat(x.sum())") == SUM


def test_a_rank_that_waits_for_those_that_have_finished(several: Notebook) -> None:
    (found,) = several.errors("if comm.rank == 1:\n    float(x.sum())")
    assert "it has finished the cell" in found
    assert several.value("x = np.arange(200_000.0)\nfloat(x.sum())") == SUM


def test_input_is_asked_once(notebook: Notebook) -> None:
    def answer() -> None:
        asked = notebook.client.get_stdin_msg(timeout=SECONDS)
        assert asked["content"]["prompt"] == "how many? "
        notebook.client.input("12")

    status, outputs = notebook.run("n = int(input('how many? '))", answer, allow_stdin=True)
    assert (status, outputs) == ("ok", [])
    assert notebook.value("comm.allgather(n)") == str([12] * notebook.ranks)
    assert not notebook.client.stdin_channel.msg_ready()


def test_an_interrupt_of_pythons_own_work(notebook: Notebook) -> None:
    code = "print('begun', flush=True)\nwhile True:\n    time.sleep(0.01)"
    assert [error.partition(":")[0] for error in notebook.errors(code, notebook.interrupt, "begun")] == [
        "KeyboardInterrupt"
    ]
    assert notebook.value("float(x.sum())") == SUM


def test_an_interrupt_of_work_on_arrays(notebook: Notebook) -> None:
    code = "y = x.copy()\nprint('begun', flush=True)\nwhile True:\n    y += 1\n    n += 1\n    float(y[0])"
    assert [error.partition(":")[0] for error in notebook.errors(code, notebook.interrupt, "begun")] == [
        "KeyboardInterrupt"
    ]
    assert notebook.value("len(set(comm.allgather(n)))") == "1"
    assert notebook.value("abs(float((y - x).mean()) - n) <= 1") == "True"


def test_completion_and_inspection(notebook: Notebook) -> None:
    found = notebook.reply(notebook.client.complete("comm.allg"))
    assert {"allgather", "allgather_array"} <= set(found["matches"])
    found = notebook.reply(notebook.client.inspect("x", 1))
    assert found["found"]
    assert "DistArray" in found["data"]["text/plain"]
    assert "1.99999e+05" in found["data"]["text/plain"]
    assert not notebook.reply(notebook.client.inspect("missing", 3))["found"]
    request = notebook.client.execute("", user_expressions={"mean": "float(x.mean())"})
    assert notebook.reply(request)["user_expressions"]["mean"]["data"]["text/plain"] == "99999.5"


def test_ranks_do_not_read_what_others_parse(notebook: Notebook) -> None:
    # Jedi writes its cache in place, and finds no names where it reads a file that is half written.
    pytest.importorskip("jedi")
    notebook.reply(notebook.client.complete("comm.allg"))
    folders = "comm.allgather(__import__('jedi').settings.cache_directory)"
    assert notebook.value(f"len(set({folders}))") == str(notebook.ranks)


def test_a_plot_is_shown_once(notebook: Notebook) -> None:
    pytest.importorskip("matplotlib")
    code = "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot(x[::20_000].gather());"
    status, outputs = notebook.run(code)
    assert status == "ok", outputs
    assert [kind for kind, _ in outputs] == ["display_data"]
    assert "image/png" in outputs[0][1]["data"]


def test_commands_run_once(notebook: Notebook, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    assert notebook.run(f"!echo line >> {file}") == ("ok", [])
    assert notebook.run(f"%%bash\necho line >> {file}") == ("ok", [])
    assert file.read_text() == "line\nline\n"
    assert notebook.value(f"found = !cat {file}\ncomm.allgather(list(found))") == str([["line"] * 2] * notebook.ranks)


def test_magics_and_await(notebook: Notebook) -> None:
    status, outputs = notebook.run("%timeit -r 2 -n 3 float(x.sum())\n%timeit -r 1 time.sleep(0.02)")
    assert status == "ok"
    assert "".join(content["text"] for _, content in outputs).count("per loop") == 2
    assert notebook.value("import asyncio\nawait asyncio.sleep(0.01)\nfloat(x.sum())") == SUM


def test_a_killed_rank(several: Notebook) -> None:
    code = "comm.barrier()\nif comm.rank == comm.size - 1:\n    os.kill(os.getpid(), 9)\nfloat(x.sum())"
    (found,) = several.errors(code)
    assert found.startswith(f"RankError: rank {several.ranks - 1} (process ")
    assert "has died" in found and "Restart the kernel" in found
    assert several.errors("1 + 1") == [found]  # at once
    before = several.processes[1:]
    several.manager.restart_kernel()
    several.client.wait_for_ready(timeout=SECONDS)
    deadline = time.monotonic() + SECONDS
    while left := set(before) & alive():
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    assert several.errors("x")[0].startswith("NameError")
    assert several.value("import numpy_dist as np\nfloat(np.arange(200_000.0).sum())") == SUM


def test_a_killed_kernel(several: Notebook) -> None:
    before, root = several.processes, int(several.value("os.getpid()"))
    request = several.client.execute("comm.barrier()\nif comm.rank == 0:\n    os.kill(os.getpid(), 9)\nfloat(x.sum())")
    found: list[str] = []
    while True:
        message = several.client.get_iopub_msg(timeout=SECONDS)
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "error":
            found.append(f"{message['content']['ename']}: {message['content']['evalue']}")
        if message["content"].get("execution_state") == "idle":
            break
    (error,) = found
    assert error.startswith(f"RankError: rank 0 (process {root}), which is the kernel, has died")
    assert "Restart the kernel" in error
    deadline = time.monotonic() + SECONDS
    while several.manager.is_alive() or set(before) & alive():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    several.manager.restart_kernel()
    several.client.wait_for_ready(timeout=SECONDS)
    assert several.value("import numpy_dist as np\nfloat(np.arange(200_000.0).sum())") == SUM


def test_shutdown_leaves_no_process(notebook: Notebook) -> None:
    before = set(notebook.processes)
    assert len(before) >= notebook.ranks
    if notebook.ranks == 3:
        notebook.client.execute("while True: pass")
        time.sleep(0.2)
    notebook.manager.shutdown_kernel()
    deadline = time.monotonic() + SECONDS
    while left := before & alive():
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def alive() -> set[int]:
    """All processes that are no zombies."""
    return set(processes.descendants(0)) | set(processes.descendants(1))


def test_an_executed_notebook(kernel_folder: str) -> None:
    cells = [f"{ARRAYS}\nfloat(x.sum())", "if comm.rank == 1:\n    1 / 0", "print(comm.size)"]
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    executed = nbclient.NotebookClient(
        document, km=kernel_manager(kernel_folder, 2), timeout=SECONDS, allow_errors=True
    ).execute()
    first, second, third = (cell.outputs for cell in executed.cells)
    assert first[0]["data"]["text/plain"] == SUM
    assert second[0]["evalue"] == "rank 1: ZeroDivisionError: division by zero"
    assert third[0]["text"] == "2\n"
