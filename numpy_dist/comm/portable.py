"""Errors that travel to other ranks, where each rank raises the same."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any


@dataclass
class PortableError:
    """An error whose class cannot be unpickled from its arguments."""

    kind: type[Exception]
    args: tuple[Any, ...]
    state: dict[str, Any]
    text: str

    def restore(self) -> Exception:
        """The error again."""
        made = self.kind.__new__(self.kind)
        made.args = self.args
        made.__dict__.update(self.state)
        return made if str(made) == self.text else RuntimeError(f"{self.kind.__name__}: {self.text}")


def portable_error(error: Exception) -> Any:
    """An error that can be sent to other ranks: itself, or a `PortableError`."""
    try:
        again = pickle.loads(pickle.dumps(error, 5))
        if type(again) is type(error) and str(again) == str(error):
            return error
    except Exception as problem:  # classes that want other arguments than their `args`, local classes
        del problem
    portable = PortableError(type(error), error.args, dict(vars(error)), str(error))
    try:
        pickle.dumps(portable, 5)
    except Exception:  # not even the class can be named
        return RuntimeError(f"{type(error).__name__}: {error}")
    return portable


def restored(error: Any) -> Exception:
    """An error that came from another rank."""
    return error.restore() if isinstance(error, PortableError) else error
