"""The other ranks of a notebook: they do in a shell of their own what rank 0 is asked to do, and show nothing."""

from __future__ import annotations

import builtins
import getpass
import os
import signal
import sys
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ipykernel.compiler import XCachingCompiler
from ipykernel.zmqshell import KernelMagics
from IPython.core.application import BaseIPythonApplication
from IPython.core.completer import provisionalcompleter, rectify_completions
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.shellapp import InteractiveShellApp
from IPython.utils.tokenutil import token_at_cursor
from traitlets import Any as AnyTrait
from traitlets import Type

from numpy_dist.comm.supervision.tracebacks import shorten_shown
from numpy_dist.notebook.channel import Leave, RankLink, SharedRequest
from numpy_dist.notebook.interrupts import CellInterrupt
from numpy_dist.notebook.settling import PATIENCE_OUTSIDE, CellOutcome, CellOver, operations_of, outcome_of, settle
from numpy_dist.notebook.sharing import SCRIPTS, share_times

__all__ = ["RankShell", "run_rank"]

QUIET_SECONDS = 0.2  # until a rank that has finished tells those that have not
_POLL_SECONDS = 0.002

# Magics that are about the user's window, or that rank 0 alone can answer.
_OF_WINDOW = ("autosave", "clear", "connect_info", "edit", "less", "man", "more", "qtconsole", "subshell")


class SilentDisplayHook(DisplayHook):
    """Computes what the result of a cell looks like, as rank 0 does (all ranks take part in that), and drops it."""

    def write_output_prompt(self) -> None:
        """Write nothing."""

    def write_format_data(self, format_dict: object, md_dict: object = None) -> None:
        """Write nothing."""

    def finish_displayhook(self) -> None:
        """Write nothing."""
        self._is_active = False


class SilentPublisher(DisplayPublisher):
    """Drops what is displayed."""

    def publish(self, data: object, metadata: object = None, **others: object) -> None:
        """Show nothing."""

    def clear_output(self, wait: bool = False) -> None:
        """There is nothing to be cleared."""


class RankShell(InteractiveShell):
    """The shell of another rank than 0.

    Attributes
    ----------
    link : RankLink
    last_traceback : tuple of str
        Of the last error.
    """

    displayhook_class = Type(SilentDisplayHook)
    display_pub_class = Type(SilentPublisher)
    compiler_class = Type(XCachingCompiler)
    link: RankLink = AnyTrait()  # type: ignore[assignment]
    last_traceback: tuple[str, ...] = ()

    def init_magics(self) -> None:
        """As in a kernel, without those that open something."""
        super().init_magics()
        self.register_magics(KernelMagics)
        for name in _OF_WINDOW:
            self.register_magic_function(_nothing, "line", name)

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> object:
        """Rank 0 runs what is run by another program."""
        if magic_name in SCRIPTS:
            return self.link.share(f"%%{magic_name}", _not_here)
        return super().run_cell_magic(magic_name, line, cell)

    def enable_gui(self, gui: object = None) -> None:
        """There are no windows."""

    def ask_exit(self) -> None:
        """Rank 0 ends the notebook."""

    def set_next_input(self, text: str, replace: bool = False) -> None:
        """Rank 0 tells the window."""

    def _showtraceback(self, etype: object, evalue: object, stb: list[str]) -> None:
        self.last_traceback = tuple(stb)

    def show_usage_error(self, exc: object) -> None:
        """Nothing is printed: the error is reported."""
        self.last_traceback = (f"UsageError: {exc}",)

    def system(self, cmd: str) -> None:
        """Rank 0 runs it; here its exit code is known, too."""
        self.user_ns["_exit_code"] = self.link.share(f"!{cmd}", _not_here)

    system_piped = system_raw = system

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> object:
        """The output of a command that rank 0 has run."""
        return self.link.share(f"!{cmd}", _not_here)


def _nothing(line: str = "") -> None:
    """A magic that rank 0 alone has."""


def _not_here() -> None:
    raise AssertionError("rank 0 does this")


class RankApplication(BaseIPythonApplication, InteractiveShellApp):
    """Sets up the shell as a kernel does: by its configuration, and with its extensions and startup files."""

    name = "ipython-kernel"  # by which the files of its configuration are found
    link: Any = AnyTrait()

    def initialize(self, argv: list[str] | None = None) -> None:
        """Make the shell and run its startup files."""
        super().initialize(argv)
        self.init_path()
        self.init_shell()
        self.init_extensions()
        self.init_code()

    def init_crash_handler(self) -> None:
        """Errors go to the log with the number of the rank."""

    def init_shell(self) -> None:
        """Make the shell."""
        self.config.HistoryManager.enabled = False  # rank 0 keeps it
        self.shell = RankShell.instance(parent=self, profile_dir=self.profile_dir, user_ns=self.user_ns, link=self.link)
        self.shell.configurables.append(self)
        shorten_shown()


class RankRequests:
    """What a rank does at the word of rank 0: each method is a kind of `SharedRequest`."""

    def __init__(self, shell: RankShell) -> None:
        self.shell = shell

    def cell(self, code: str, silent: bool, store_history: bool) -> BaseException | None:
        """Run a cell; returns its error."""
        result = self.shell.run_cell(code, store_history=store_history, silent=silent)
        return result.error_before_exec or result.error_in_exec

    def expressions(self, expressions: Mapping[str, str]) -> None:
        """Evaluate what the window has asked for; errors are part of the result."""
        self.shell.user_expressions(dict(expressions))

    def complete(self, code: str, position: int) -> None:
        """Look up names, which may ask objects for theirs."""
        completer = self.shell.Completer
        if completer.use_jedi:
            _keep_parsed_sources_apart(self.shell.link.comm.rank)
        with provisionalcompleter():
            list(rectify_completions(code, completer.completions(code, position)))

    def inspect(self, code: str, position: int, detail: int) -> None:
        """Describe an object: its text may be that of a distributed array."""
        try:
            self.shell.object_inspect_mime(token_at_cursor(code, position), detail_level=detail)
        except KeyError:  # there is no such object
            return


@lru_cache(maxsize=1)
def _keep_parsed_sources_apart(rank: int) -> None:
    """Have Jedi cache what it has parsed in a folder of this rank's.

    It writes its files in place, and where it reads one that another process has begun to write, it finds no name.
    """
    import jedi  # takes its time, and not every notebook completes names

    jedi.settings.cache_directory = os.path.join(jedi.settings.cache_directory, f"rank-{rank}")


def run_rank(link: RankLink) -> None:
    """Do what rank 0 says until the notebook ends."""
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")  # as in a kernel
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    application = RankApplication.instance(link=link)
    application.initialize([])
    shell = application.shell
    share_times(link)
    builtins.input = lambda prompt="", /: link.share("input()", _not_here)
    getpass.getpass = lambda prompt="", stream=None, **others: link.share("getpass()", _not_here)
    sys.breakpointhook = sys.__breakpointhook__
    link.comm.signals.patience_outside = PATIENCE_OUTSIDE
    requests = RankRequests(shell)
    interrupt = CellInterrupt(shell.user_ns)
    while True:
        message = link.todo.get()
        if isinstance(message, Leave):
            return
        if isinstance(message, SharedRequest):
            _take_part(requests, link, message, interrupt)


def _take_part(requests: RankRequests, link: RankLink, request: SharedRequest, interrupt: CellInterrupt) -> None:
    """Do one thing together with all ranks."""
    shell = requests.shell
    shell.last_traceback = ()
    interrupt.install()
    link.comm.signals.install()
    link.ends.begin(request.serial)
    link.armed.set()
    error = _perform(requests, request)
    outcome = outcome_of(link.comm, error, shell.last_traceback)
    link.finish(request.serial, outcome)
    over = _wait(link, request.serial, outcome)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if over is not None:
        link.ends.over()
        link.ends.comm = settle(link.comm, over, "see the output of that cell")


def _perform(requests: RankRequests, request: SharedRequest) -> BaseException | None:
    _launcher_frame = True  # what is below is the program
    try:
        error: BaseException | None = getattr(requests, request.kind)(**request.arguments)
        return error
    except BaseException as raised:  # also what leaves a shell, such as an interrupt: rank 0 waits for this rank
        return raised


def _wait(link: RankLink, serial: int, outcome: CellOutcome) -> CellOver | None:
    """Wait until all ranks have finished, and answer those that have not; None where the notebook ends."""
    begun, told = time.monotonic(), False
    while link.todo.empty():
        if not told and (outcome.failed or time.monotonic() - begun > QUIET_SECONDS):
            told = True
            if outcome.failed:
                link.finished(serial, outcome.error, True)
            else:
                link.finished(serial, "it has finished the cell", False, operations_of(link.comm))
        link.comm.look_for_notices()
        time.sleep(_POLL_SECONDS)
    message = link.todo.get()
    if isinstance(message, Leave):
        link.todo.put(message)
        return None
    assert isinstance(message, CellOver)
    return message
