"""Calls of the system that fail: of the modules that write files, one call after the other."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

CALLS = frozenset(
    {"open", "stat", "fstat", "fchmod", "ftruncate", "fsync", "link", "posix_fallocate", "pwrite", "replace", "dup"}
)


class FailingSystem:
    """The module `os` for what writes files: one of its calls fails, counted over all ranks."""

    def __init__(self, which: int) -> None:
        self.left, self.failed, self.lock = which, "", threading.Lock()

    def __getattr__(self, name: str) -> Any:
        call = getattr(os, name)
        if name not in CALLS:
            return call

        def failing(*args: Any, **kwargs: Any) -> Any:
            with self.lock:
                self.left -= 1
                fails = self.left == 0
            if fails:
                self.failed = name
                raise OSError(28, "No space left on device")
            return call(*args, **kwargs)

        return failing


@contextlib.contextmanager
def failing_calls(which: int, *modules: ModuleType) -> Iterator[FailingSystem]:
    """The `which`-th call of these modules fails."""
    made = FailingSystem(which)
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(module, "os", made)
        yield made
