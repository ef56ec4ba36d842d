"""Whether a gather or a replication is allowed, what the user is told, and the account of those that took place.

A replication is a whole sharded array on every rank, as an algorithm needs it. Up to `most_native` bytes it is native;
a larger one is a gather to every rank: ``FALLBACK`` warns of it or refuses it, unless the algorithm is chosen for its
speed, and ``FALLBACK="error"`` takes one that replicates less. Each is counted.

Everything here is decided from metadata before anything is communicated, on every rank alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from numpy_dist import engine
from numpy_dist.advice import advise
from numpy_dist.errors import ElementLoopWarning, FallbackError, FallbackWarning, GatherError
from numpy_dist.frames import UserLine, calling_frame, user_frame
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.engine.events.sites import CallSite


@dataclass
class Gathered:
    """What one function gathered at one call site.

    Attributes
    ----------
    function : str
        The function's name, as in its warning.
    site : UserLine
        File and line of the user's call.
    reason : str
        Why it was gathered.
    count : int
        How many times.
    bytes : int
        Bytes of the arrays that were gathered, in all.
    """

    function: str
    site: UserLine
    reason: str
    count: int = 0
    bytes: int = 0


HINTS: list[Callable[[FrameType], str]] = []
"""What is given the frame that asked for a gather, and says how that is avoided; nothing where it does not know."""

ADVICE = "numpy_dist.explain tells more, and config.FALLBACK what happens here (warn, error or silent)"


class Ledger:
    """What one rank's runtime has gathered and said so far."""

    def __init__(self) -> None:
        self.warned: set[tuple[str, UserLine]] = set()
        self.gathered: dict[tuple[str, UserLine], Gathered] = {}
        self.replicated: dict[tuple[str, UserLine], Gathered] = {}
        # what ran by rules and by the engine (see `report`)
        self.native: dict[tuple[str, str, UserLine | CallSite], int] = {}
        self.compared: set[object] = set()  # the overrides that were compared between the ranks (see `guard`)


def ledger() -> Ledger:
    """The calling rank's ledger."""
    return ledger_of(engine.runtime())


def ledger_of(runtime: engine.Runtime) -> Ledger:
    """The ledger of a rank's runtime."""
    found: Ledger | None = runtime.ledger
    if found is None:
        found = runtime.ledger = Ledger()
    return found


def gathered() -> list[Gathered]:
    """What was gathered without having been asked for, by function and call site, the most bytes first."""
    return sorted(ledger().gathered.values(), key=lambda entry: -entry.bytes)


def replicated() -> list[Gathered]:
    """What algorithms have brought to every rank, by function and call site, the most bytes first."""
    return sorted(ledger().replicated.values(), key=lambda entry: -entry.bytes)


def forget() -> None:
    """Forget which call sites were warned, and what was gathered: the next gather warns again."""
    engine.runtime().ledger = None


def format_bytes(count: int) -> str:
    """A number of bytes for people."""
    size, units = float(count), ["KiB", "MiB", "GiB", "TiB"]
    if count < 1024:
        return f"{count} bytes"
    while size >= 1024 and units:
        size /= 1024
        unit = units.pop(0)
    return f"{size:.1f} {unit}"


def permit(name: str, reason: str, nbytes: int, action: str, advice: str = ADVICE) -> None:
    """Apply ``FALLBACK`` and ``MEMORY_BUDGET`` to a gather that the user did not ask for, and book it.

    Parameters
    ----------
    name : str
        The function that needs the gathered arrays.
    reason : str
        Why it does.
    nbytes : int
        Bytes of all arrays that one rank would get.
    action : str
        What is gathered for.
    advice : str
        What to do instead.

    Raises
    ------
    FallbackError
        If ``FALLBACK`` is "error"; nothing was communicated.
    GatherError
        If the bytes are more than the budget.
    FallbackWarning
        If warnings are errors.
    """
    frame = user_frame(2)
    site = UserLine(frame.f_code.co_filename, frame.f_lineno)
    policy = config.FALLBACK
    caller = calling_frame(frame) if policy != "silent" else frame
    line = site if caller is frame else UserLine(caller.f_code.co_filename, caller.f_lineno)
    runtime = engine.runtime()
    account = ledger_of(runtime)
    told = policy == "silent" or (policy == "warn" and (name, line) in account.warned)
    if not told or nbytes > engine.budget(runtime):
        where = f"{line}" if line == site else f"{line} (by {site})"
        what = f"{name} at {where} gathers {format_bytes(nbytes)} to {action}: {reason}"
        if policy == "error":
            raise FallbackError(f"{what}. numpy_dist.config.FALLBACK is 'error'; {_hints(frame)}{advice}.")
        check_budget(name, nbytes, where)
        if not told:
            _warn(f"{what}; {_hints(frame)}{advice}.", caller)
            account.warned.add((name, line))
    _book(account.gathered, name, site, reason, nbytes)
    if (recorder := runtime.recorder) is not None:
        recorder.notice("gathered", name, reason, nbytes, site)


def _hints(frame: FrameType) -> str:
    return "".join([hint(frame) for hint in HINTS])


def _book(account: dict[tuple[str, UserLine], Gathered], name: str, site: UserLine, reason: str, nbytes: int) -> None:
    entry = account.get((name, site))
    if entry is None:
        entry = account[name, site] = Gathered(name, site, reason)
    entry.count += 1
    entry.bytes += nbytes


_NATIVE_BYTES = 1 << 18


def most_native() -> int:
    """Largest array that a native algorithm may replicate: as large as one that is never sharded, or 256 KiB."""
    return max(config.MIN_SHARD_BYTES, _NATIVE_BYTES)


def replicate(name: str, reason: str, nbytes: int, chosen: bool = False) -> None:
    """Apply the policy to a sharded array that is about to come to every rank, and book it.

    Parameters
    ----------
    name : str
        The function that needs it there.
    reason : str
        Why it does.
    nbytes : int
        Its bytes.
    chosen : bool
        Whether this is faster than another algorithm, which ``FALLBACK="error"`` takes (the caller sees to that).

    Raises
    ------
    FallbackError, GatherError
        As `permit` does, if there is no other algorithm and it has more than `most_native` bytes.
    """
    if engine.runtime().size == 1:
        return  # nothing is copied
    if nbytes > most_native() and not chosen:
        permit(name, reason, nbytes, action="copy the whole array to every rank")
        return
    frame = user_frame(2)
    site = UserLine(frame.f_code.co_filename, frame.f_lineno)
    _book(ledger().replicated, name, site, reason, nbytes)
    if (recorder := engine.runtime().recorder) is not None:
        recorder.notice("replicated", name, reason, nbytes, site)


def warn_of_loop(reads: int) -> None:
    """Tell the user, once for each line, that a loop reads a sharded array element by element."""
    frame = user_frame(2)
    site = UserLine(frame.f_code.co_filename, frame.f_lineno)
    if (recorder := engine.runtime().recorder) is not None:
        recorder.notice("elements", "a loop", "it reads elements one by one", reads, site)
    hints = "".join([hint(frame) for hint in HINTS])
    _warn_at(
        frame,
        "element",
        f"has read {reads} elements of a sharded array one by one: every rank goes through the whole loop, and "
        f"waits for blocks of the array; {hints}functions of whole arrays do not, and x.gather() gives an ordinary "
        "array to loop over",
        ElementLoopWarning,
    )


def warn_once(name: str, text: str, category: type[Warning]) -> None:
    """Tell the user something about a line of the program, once for each line and name, unless ``FALLBACK`` is silent.

    Parameters
    ----------
    name : str
        Of what is told.
    text : str
        What follows the line, as its predicate ("plots 3 of 9 points").
    category : type
    """
    _warn_at(user_frame(2), name, text, category)


def _warn_at(frame: FrameType, name: str, text: str, category: type[Warning]) -> None:
    site = UserLine(frame.f_code.co_filename, frame.f_lineno)
    frame = calling_frame(frame)
    line = UserLine(frame.f_code.co_filename, frame.f_lineno)
    where = f"{line}" if line == site else f"{line} (by {site})"
    account, key = ledger(), (name, line)
    if config.FALLBACK == "silent" or key in account.warned:
        return
    account.warned.add(key)
    _warn(f"{where} {text}", frame, category)


LARGE_GATHER = 1 << 30
"""Bytes of a gather that was asked for and is worth a word: there is most often another way."""


def advise_of_gather(nbytes: int, root: int | None) -> None:
    """Tell, once for each line, that the program has asked for a gather, if it is large; of others `permit` has told.

    Not collective: rank 0 tells.

    Parameters
    ----------
    nbytes : int
        What was gathered.
    root : int or None
        The only rank that has got it.
    """
    rt = engine.runtime()
    if nbytes < LARGE_GATHER or rt.rank or rt.size == 1 or not rt.computes:
        return
    frame = calling_frame(user_frame(2))
    line = UserLine(frame.f_code.co_filename, frame.f_lineno)
    whom, other = "every rank", "x.gather(root=0) brings it to one rank only, and numpy.save "
    if root is not None:
        whom, other = f"rank {root}", "numpy.save "
    advise(
        "gather",
        line,
        f"{line} gathers {format_bytes(nbytes)} to {whom}, as it asks for: {other}writes it without a gather",
        "docs/guide/memory.md",
    )


def _warn(text: str, frame: FrameType, category: type[Warning] = FallbackWarning) -> None:
    """Once for each call site and function is our rule: the registry of the warnings module has no say."""
    warnings.warn_explicit(
        text,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__") or "<unknown>",
        registry=None,
    )


def check_budget(name: str, nbytes: int, where: str) -> None:
    """Raise `GatherError` if `nbytes` are more than one rank may get (the first call is collective)."""
    allowed = engine.budget(engine.runtime())
    if nbytes > allowed:
        raise GatherError(
            f"{name} at {where} would gather {nbytes} bytes ({format_bytes(nbytes)}) on one rank, and the memory "
            f"budget is {allowed} bytes ({format_bytes(allowed)}); numpy_dist.config.MEMORY_BUDGET sets it"
        )
