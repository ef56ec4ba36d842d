"""Progress bars: what the array program is busy with, drawn by tqdm beside it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.comm.launchers import PROGRESS_VARIABLE
from numpy_dist.engine.runtime import STARTED

if TYPE_CHECKING:
    from numpy_dist.engine import Runtime

_MEGABYTE = 10**6
_LOOK = 0.2  # seconds between two looks
_PATIENCE = 1.0  # seconds that something takes before it is worth a bar


def progress(stream: object = None) -> Progress:
    """Progress bars for what takes longer than a second: gathers, sorts, files, and loops.

    Rank 0 looks some times a second, from a thread of its own, at what it is busy with: a gather, a sort or a file has
    a bar of its bytes; in between, a counter shows how many statements were recorded, how many a second, and the bytes
    that rank 0 has sent. Nothing is drawn where standard error is neither a terminal nor a notebook. Not collective,
    and nothing is added to what the program does.

    ``numpy-dist run --progress script.py`` and the environment variable ``NUMPY_DIST_PROGRESS=on`` do the same for a
    whole script. It needs the package tqdm (``pip install 'numpy-dist[progress]'``).

    Parameters
    ----------
    stream : file, optional
        Where bars are drawn, whatever it is; default: standard error, or the notebook.

    Returns
    -------
    Progress
        It looks until it is closed: `close`, or the end of its ``with`` block.

    Raises
    ------
    ImportError
        Without tqdm.
    TypeError
        If it is given a loop.

    Examples
    --------
    >>> import numpy_dist as np
    >>> with np.progress():
    ...     total = np.ones(100_000).sum()
    """
    if stream is not None and not hasattr(stream, "write"):
        raise TypeError(
            f"progress() draws to a file, not to a {type(stream).__name__}: write `with numpy_dist.progress():` around "
            "a loop, which shows what goes on in it; for a bar of its rounds there is tqdm (docs/troubleshooting.md: "
            "once for each rank)"
        )
    return Progress(stream)


class Sight(NamedTuple):
    """What a look at a runtime has found.

    Attributes
    ----------
    activity : object or None
        Identifies what goes on; None between activities.
    what : str
    unit : str
        Of `done` and `total`; empty where only the time is known.
    done : int
    total : int or None
    sent : int
        Bytes that the rank has sent so far, where they are of interest.
    """

    activity: object
    what: str
    unit: str
    done: int
    total: int | None
    sent: int


def look_at(runtime: Runtime) -> Sight:
    """What a rank is busy with now; called from another thread."""
    activities = runtime.activities[:1]  # the rank may be about to end it
    if activities:
        (found,) = activities
        if found.stepwise:
            return Sight(found, found.what, "B", found.done, found.total, 0)
        return Sight(found, f"{found.what} {found.total / _MEGABYTE:,.0f} MB", "", 0, None, 0)
    return Sight(None, "array program", " statements", runtime.counters.statements, None, runtime.comm.counters.bytes)


class Progress:
    """Progress bars, as long as they are not closed; see `progress`."""

    def __init__(self, stream: object = None, runtime: Runtime | None = None) -> None:
        rt = engine.runtime() if runtime is None else runtime
        self._runtime, self._stream = rt, stream
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        make = _bars(stream)
        if rt.rank == 0:
            drawn = Drawn(make)
            self._thread = threading.Thread(target=self._run, args=(drawn,), name="numpy_dist progress", daemon=True)
            self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Draw no more."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self, drawn: Drawn) -> None:
        try:
            while not self._end.wait(_LOOK):
                drawn.update(look_at(self._runtime), time.monotonic())
        finally:
            drawn.close()


class Drawn:
    """The bar on the screen: at most one, of what has gone on for a while.

    Parameters
    ----------
    make : callable
        ``make(desc=..., total=..., unit=..., initial=...)`` returns a bar of tqdm.
    """

    def __init__(self, make: Callable[..., object]) -> None:
        self._make = make
        self._bar: Any = None
        self._seen: Sight | None = None  # what `_since` counts from
        self._since = 0.0

    def update(self, sight: Sight, now: float) -> None:
        """Draw what is seen now, in seconds of any clock."""
        before = self._seen
        if before is None or sight.activity is not before.activity:
            self.close()
            self._seen, self._since = sight, now
            return
        if self._bar is None:
            if sight.activity is None and sight.done == before.done:
                self._since = now  # nothing is recorded: the program does something else
                return
            if now - self._since < _PATIENCE:
                return
            shown = {} if sight.unit else {"bar_format": "{desc}: {elapsed}"}
            self._bar = self._make(desc=sight.what, total=sight.total, unit=sight.unit, initial=sight.done, **shown)
            return
        if sight.sent - before.sent >= _MEGABYTE:
            self._bar.set_postfix_str(f"{(sight.sent - before.sent) / _MEGABYTE:,.0f} MB sent", refresh=False)
        if not self._bar.update(sight.done - self._bar.n):
            self._bar.refresh()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
        self._bar = self._seen = None


def _bars(stream: Any) -> Function:
    """What makes bars of tqdm on a stream, or where tqdm finds that somebody looks."""
    try:
        from tqdm import auto, std
    except ImportError as error:
        raise ImportError("progress bars need the package tqdm: pip install 'numpy-dist[progress]'") from error
    base = auto.tqdm if stream is None else std.tqdm
    if stream is None and sys.stderr is not None and sys.stderr.isatty():
        file = sys.__stderr__  # `numpy-dist run` writes the rank's number before each line of the other
    else:
        file = stream

    class Bar(base):  # type: ignore[misc, valid-type]
        monitor_interval = 0  # it needs no thread of its own

    def make(**options: object) -> Any:
        quiet = None if stream is None else False  # None: where it is no terminal
        return Bar(file=file, disable=quiet, leave=False, unit_scale=True, mininterval=0, **options)

    return make


def _begin(runtime: Runtime) -> None:
    """Draw for a whole script."""
    if runtime.rank == 0:
        atexit.register(Progress(runtime=runtime).close)  # the terminal is left without a bar


if os.environ.get(PROGRESS_VARIABLE, "").strip().lower() in ("on", "1"):
    STARTED.append(_begin)
