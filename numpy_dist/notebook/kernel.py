"""Rank 0 of a notebook: an IPython kernel that has the other ranks do what it is asked to do."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from traitlets import Any as AnyTrait
from traitlets import Type

from numpy_dist.errors import RankError
from numpy_dist.notebook.channel import RootHub, leave_soon
from numpy_dist.notebook.interrupts import CellInterrupt
from numpy_dist.notebook.last_words import forget_request, note_request
from numpy_dist.notebook.rank_shell import QUIET_SECONDS
from numpy_dist.notebook.settling import (
    PARTED,
    PATIENCE_OUTSIDE,
    CellOutcome,
    announced_by,
    decide,
    operations_of,
    outcome_of,
    settle,
)
from numpy_dist.notebook.sharing import SCRIPTS, share_times

__all__ = ["RootApplication", "RootKernel"]

_POLL_SECONDS, _MOST_POLL_SECONDS = 0.0005, 0.02
_REPLY_SECONDS = 0.5  # for the last words to Jupyter
_UNSUPPORTED = ("debugger", "kernel subshells")  # what would run code on rank 0 alone


class RootShell(ZMQInteractiveShell):
    """The shell of rank 0.

    Attributes
    ----------
    hub : RootHub
    error : BaseException or None
        What the cell was left by.
    kept : list of (type, exception, list of str)
        Errors that only tell of other ranks' errors: shown if there are none of these.
    """

    hub: RootHub = AnyTrait()  # type: ignore[assignment]
    error: BaseException | None = None
    kept: list[tuple[type[BaseException], BaseException, list[str]]] = []

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        if self.hub.active and isinstance(evalue, RankError):
            self.kept = [*self.kept, (etype, evalue, stb)]
            self._last_traceback = stb
        else:
            super()._showtraceback(etype, evalue, stb)

    def show_kept(self) -> None:
        """Show the errors that were kept."""
        kept, self.kept = self.kept, []
        for etype, evalue, stb in kept:
            super()._showtraceback(etype, evalue, stb)

    def run_cell(self, *arguments: object, **keywords: object) -> object:
        """As in the base class; the error is noted."""
        result = super().run_cell(*arguments, **keywords)
        self.error = result.error_before_exec or result.error_in_exec
        return result

    async def run_cell_async(self, *arguments: object, **keywords: object) -> object:
        """As in the base class; the error is noted."""
        result = await super().run_cell_async(*arguments, **keywords)
        self.error = result.error_before_exec or result.error_in_exec
        return result

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> object:
        """As in the base class; what is run by another program is run for all ranks."""
        if magic_name not in SCRIPTS:
            return super().run_cell_magic(magic_name, line, cell)

        def run() -> None:
            super(RootShell, self).run_cell_magic(magic_name, line, cell)

        return self.hub.share(f"%%{magic_name}", run)

    def system(self, cmd: str) -> None:
        """Run a command, for all ranks."""

        def run() -> object:
            super(RootShell, self).system(cmd)
            return self.user_ns.get("_exit_code")

        self.hub.share(f"!{cmd}", run)

    system_piped = system

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> object:
        """The output of a command, for all ranks."""
        return self.hub.share(f"!{cmd}", lambda: super(RootShell, self).getoutput(cmd, split, depth + 2))


class RootKernel(IPythonKernel):
    """The kernel of a notebook on several ranks."""

    shell_class = Type(RootShell)

    def __init__(self, **keywords: Any) -> None:
        self.hub: RootHub = keywords["parent"].hub
        super().__init__(**keywords)
        self.shell.hub = self.hub
        self._interrupt = CellInterrupt(self.shell.user_ns)
        self.hub.comm.signals.patience_outside = PATIENCE_OUTSIDE
        share_times(self.hub)
        sys.breakpointhook = sys.__breakpointhook__

    # -- what is done on all ranks -----------------------------------------------------------------------------------

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: dict[str, str] | None = None,
        allow_stdin: bool = False,
        **others: object,
    ) -> dict[str, object]:
        """Run a cell on all ranks."""
        _launcher_frame = True  # what is below is the program
        if self.hub.dead:
            return self._failed("RankError", self._death())
        shell = self.shell
        shell.error, shell.kept = None, []
        note_request(self.parent.abs_connection_file, self.get_parent("shell")["header"])
        with self._running("cell", code=code, silent=silent, store_history=store_history):
            try:
                reply = await super().do_execute(code, silent, store_history, {}, allow_stdin, **others)
            except BaseException as raised:  # also a second interrupt: the other ranks wait for this one
                shell.error = raised
                reply = self._failed(type(raised).__name__, str(raised))
        outcomes, parted = await self._finish(shell.error)
        reply = self._with_errors(reply, outcomes)
        if parted:
            print(PARTED, file=sys.stderr)
        if user_expressions and reply["status"] == "ok":
            with self._running("expressions", expressions=user_expressions):
                reply["user_expressions"] = shell.user_expressions(user_expressions)
            await self._finish(None)
        forget_request(self.parent.abs_connection_file)
        return reply

    async def do_complete(self, code: str, cursor_pos: int | None) -> dict[str, object]:
        """Complete a name: all ranks look it up, since objects may communicate as they tell of theirs."""
        position = len(code) if cursor_pos is None else cursor_pos
        return await self._together(
            lambda: super(RootKernel, self).do_complete(code, position), "complete", code, position
        )

    async def do_inspect(
        self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: object = ()
    ) -> dict[str, object]:
        """Describe an object: all ranks do, since the text of an array is that of all ranks."""
        return await self._together(
            lambda: super(RootKernel, self).do_inspect(code, cursor_pos, detail_level, omit_sections),
            "inspect",
            code,
            cursor_pos,
            detail=detail_level,
        )

    async def _together(
        self, work: Callable[[], dict[str, object]], kind: str, code: str, position: int, **others: object
    ) -> dict[str, object]:
        _launcher_frame = True
        if self.hub.dead:
            return work()
        error: Exception | None = None
        with self._running(kind, code=code, position=position, **others):
            try:
                return work()
            except Exception as raised:  # told to the others, and raised below
                error = raised
                raise
            finally:
                await self._finish(error)

    @contextmanager
    def _running(self, kind: str, **arguments: object) -> Iterator[None]:
        """All ranks begin the same."""
        self._interrupt.install()
        self.hub.comm.signals.install()
        self.hub.begin(kind, **arguments)
        yield

    async def _finish(self, error: BaseException | None) -> tuple[dict[int, CellOutcome], bool]:
        """Wait until all ranks have finished; their outcomes, and whether the ranks have parted."""
        hub, comm = self.hub, self.hub.comm
        mine = outcome_of(comm, error)
        begun, told, pause = time.monotonic(), False, _POLL_SECONDS
        while hub.waited_for():
            if not told and (mine.failed or time.monotonic() - begun > QUIET_SECONDS):
                told = True
                if mine.failed:
                    hub.finished(mine.error, True)
                else:
                    hub.finished("it has finished the cell", False, operations_of(comm))
            comm.look_for_notices()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MOST_POLL_SECONDS)
        outcomes = {0: mine, **hub.outcomes}
        if hub.dead:
            hub.active = False
            return outcomes, False
        how = decide(outcomes)
        over = hub.over(how, announced_by(outcomes))
        renewed = settle(comm, over, "see the output of that cell")
        hub.ends.comm = renewed
        hub.rest()
        return outcomes, renewed is not comm

    # -- errors ------------------------------------------------------------------------------------------------------

    def _with_errors(self, reply: dict[str, object], outcomes: dict[int, CellOutcome]) -> dict[str, object]:
        """The reply to a request, once the errors of other ranks are shown."""
        if self.hub.dead:
            return {**reply, **self._failed("RankError", self._death())}
        mine = outcomes[0]
        found: dict[tuple[str, str], list[int]] = {}
        for rank in sorted(outcomes):
            outcome = outcomes[rank]
            same = (outcome.name, outcome.text) == (mine.name, mine.text)
            if rank and outcome.failed and not outcome.followed and not same:
                found.setdefault((outcome.name, outcome.text), []).append(rank)
        if not found and mine.followed:
            self.shell.show_kept()
        first: dict[str, object] = {}
        for (name, _), ranks in found.items():
            outcome = outcomes[ranks[0]]
            told = f"rank {', '.join(map(str, ranks))}: {outcome.error}"
            shown = self._failed(name, told, outcome.traceback)
            first = first or shown
        if not first and not mine.failed:
            followers = [rank for rank in sorted(outcomes) if outcomes[rank].failed]
            if followers:
                outcome = outcomes[followers[0]]
                first = self._failed(outcome.name, f"rank {followers[0]}: {outcome.error}", outcome.traceback)
        if first and (mine.followed or not mine.failed):
            return {**reply, **first}
        return reply

    def _failed(self, name: str, text: str, traceback: tuple[str, ...] = ()) -> dict[str, object]:
        """Show an error, and the reply that tells of it."""
        content = {"ename": name, "evalue": text, "traceback": [text, *traceback]}
        self.send_response(self.iopub_socket, "error", content, ident=self._topic("error"))
        return {
            "status": "error",
            **content,
            "execution_count": self.shell.execution_count - 1,
            "user_expressions": {},
            "payload": [],
        }

    def _death(self) -> str:
        rank, pid = min(self.hub.dead.items())
        return (
            f"rank {rank} (process {pid}) has died: it was killed, has crashed, or the system was out of memory. "
            "Restart the kernel, and run the cells again"
        )

    # -- what the user is asked, and asks ----------------------------------------------------------------------------

    def raw_input(self, prompt: object = "") -> str:
        """Ask the user, for all ranks."""
        return str(self.hub.share("input()", lambda: super(RootKernel, self).raw_input(prompt)))

    def getpass(self, prompt: str = "", stream: object = None, **others: object) -> str:
        """Ask the user, for all ranks."""
        return str(self.hub.share("getpass()", lambda: super(RootKernel, self).getpass(prompt, stream, **others)))

    async def interrupt_request(self, stream: object, ident: object, parent: object) -> None:
        """Interrupt all ranks."""
        self.hub.interrupt()
        await super().interrupt_request(stream, ident, parent)

    def pre_handler_hook(self) -> None:
        """An interrupt may come only while the notebook's code runs: the other ranks wait for this one otherwise."""
        self.saved_sigint_handler = signal.signal(signal.SIGINT, self._interrupt)

    @contextmanager
    def _cancel_on_sigint(self, future: asyncio.Future[object]) -> Iterator[None]:
        """In a cell with ``await`` an interrupt cancels what is awaited."""

        def handle(number: int, frame: object) -> None:
            if self._interrupt.is_due():
                raise KeyboardInterrupt
            self.io_loop.add_callback_from_signal(future.cancel)

        before = signal.signal(signal.SIGINT, handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @property
    def kernel_info(self) -> dict[str, object]:
        """As in the base class, without what is for one process."""
        info: dict[str, Any] = dict(super().kernel_info)
        if "supported_features" in info:
            info["supported_features"] = [f for f in info["supported_features"] if f not in _UNSUPPORTED]
        return info

    def do_shutdown(self, restart: bool) -> object:
        """End all ranks."""
        self.leave()
        return super().do_shutdown(restart)

    def leave(self) -> None:
        """Have all ranks end, this one in a moment if it does not by itself; may be called again."""
        if self.hub.leaving:
            return
        forget_request(self.parent.abs_connection_file)
        self.hub.leave()
        if dead := self.hub.dead:
            leave_soon(_REPLY_SECONDS, [self.hub.keepers[rank] for rank in dead])
        else:
            leave_soon()


class RootApplication(IPKernelApp):
    """Starts the kernel of rank 0."""

    hub: Any = AnyTrait()
    kernel_class = Type(RootKernel, klass="ipykernel.kernelbase.Kernel").tag(config=True)
