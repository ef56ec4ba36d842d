"""The warnings and exceptions of numpy_dist.

Errors about shapes, dtypes, indices and values are NumPy's own. The classes here are about what only a distributed
array can run into.
"""

from __future__ import annotations

__all__ = [
    "AdviceWarning",
    "CheckpointError",
    "CheckpointWarning",
    "CommunicationRefused",
    "DivergenceError",
    "DivergenceWarning",
    "ElementLoopWarning",
    "FallbackError",
    "FallbackWarning",
    "GatherError",
    "LauncherError",
    "LostValueError",
    "OverrideError",
    "OverrideWarning",
    "RankError",
    "SettingError",
    "SettingWarning",
    "ThinningWarning",
    "UnsupportedError",
]


class FallbackWarning(UserWarning):
    """A function ran on gathered NumPy; issued once for each call site and function, where ``FALLBACK`` is ``warn``."""


class ElementLoopWarning(UserWarning):
    """A loop reads a sharded array element by element; issued once for each line, unless ``FALLBACK`` is ``silent``."""


class AdviceWarning(UserWarning):
    """Something makes the program slow; issued once for each line, on rank 0, where ``ADVICE`` is ``on``; never raised.

    Where a warning filter would make an error of it, it is a line on standard error.
    """


class ThinningWarning(UserWarning):
    """A plot shows less than all of an array; issued once for each line, unless ``FALLBACK`` is ``silent``."""


class FallbackError(RuntimeError):
    """A function would have to run on gathered NumPy, and ``FALLBACK`` is ``error``; raised before communicating."""


class GatherError(MemoryError):
    """A gather is larger than ``MEMORY_BUDGET``; raised on every rank, before communicating."""


class DivergenceError(RuntimeError):
    """The ranks did not run the same program: they recorded different operations."""


class DivergenceWarning(UserWarning):
    """The ranks run under different conditions (versions, processors, environment); issued once, on every rank."""


class RankError(RuntimeError):
    """Another rank has ended or failed, so that this one cannot go on.

    Attributes
    ----------
    rank : int or None
        The rank that ended, or None where it is not known.
    where : str
        What this rank waited in, and the line that called it; empty where that is not known.
    """

    def __init__(self, message: str, rank: int | None = None, where: str = "") -> None:
        super().__init__(message)
        self.rank = rank
        self.where = where

    def __reduce__(self) -> tuple[type[RankError], tuple[str, int | None, str]]:
        return type(self), (str(self), self.rank, self.where)


class LauncherError(RuntimeError):
    """The launcher started several ranks, but the MPI library sees only one, or the two do not fit."""


class LostValueError(RuntimeError):
    """The values of an array are lost: an exception has left the execution of a program that was overwriting them.

    The exception that was caught (`KeyboardInterrupt`, say) and the line of the statement are in the message. The error
    is raised wherever the values are asked for, also those of arrays that were computed from them, until all of the
    array is assigned anew.
    """


class CheckpointError(ValueError):
    """A checkpoint is not there, not complete or damaged; the file is named."""


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged, and the one before it is taken."""


class CommunicationRefused(AssertionError):
    """A communicator that counts was told to refuse this communication (tests only)."""


class OverrideError(RuntimeError):
    """An override returned what cannot be right, or behaved otherwise on other ranks; it is named, with the call."""


class OverrideWarning(UserWarning):
    """Overrides clash, or a plug-in cannot be loaded."""


class SettingError(ValueError):
    """An environment variable (the first argument) has a value that its setting cannot have (the second says why)."""

    def __str__(self) -> str:
        variable, why = self.args
        return f"environment variable {variable}: {why}"


class SettingWarning(UserWarning):
    """A setting was given a value that nothing reads any more."""


class UnsupportedError(TypeError):
    """The function cannot mean anything on a distributed array."""
