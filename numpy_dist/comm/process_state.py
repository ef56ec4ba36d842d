"""State of the process that threads share, and that simulated ranks must not: warnings and global random generators.

Copying the generators' states takes most of a switch between ranks, few of which draw from them: so their memory is
looked at first, all of it, and states are copied, or written back, where that has changed.
"""

from __future__ import annotations

import ctypes
import random
import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = ["ProcessState"]

# What `warnings.catch_warnings` and `pytest.warns` replace in the module.
_WARNING_HOOKS = ("showwarning", "_showwarnmsg_impl", "_showwarning_orig")
_MERSENNE_BYTES = 4 * (624 + 1)  # of NumPy's `mt19937_state`: the words, and the position


def _memory_of(generator: object) -> bytes:
    """What the struct of a CPython object has behind the header that all of them have (the count of references)."""
    header = object.__basicsize__
    return ctypes.string_at(id(generator) + header, type(generator).__basicsize__ - header)


def _numpy_memory() -> bytes | None:
    """What NumPy's global generator has in memory; None where nobody knows the memory of its bits."""
    bits = np.random.mtrand.get_bit_generator()
    if type(bits) is not np.random.MT19937 or sys.implementation.name != "cpython":
        return None
    words = ctypes.string_at(bits.ctypes.state_address, _MERSENNE_BYTES)
    return _memory_of(np.random.mtrand._rand) + words  # the former has the normal number that is left of a pair


def _python_memory() -> tuple[bytes, object] | None:
    """What Python's global generator has in memory."""
    generator: Any = random._inst  # type: ignore[attr-defined,unused-ignore]
    return (_memory_of(generator), generator.gauss_next) if sys.implementation.name == "cpython" else None


def _same(memory: object, other: object) -> bool:
    """Whether a generator has not changed, as far as its memory is known."""
    return memory is not None and memory == other


@dataclass(frozen=True)
class ProcessState:
    """A copy of the state; `restore` brings it back."""

    filters: list[tuple[object, ...]]
    filters_content: list[tuple[object, ...]]
    hooks: dict[str, object]
    once: dict[object, object]
    numpy_random: dict[str, object]
    numpy_memory: bytes | None
    python_random: tuple[object, ...]
    python_memory: tuple[bytes, object] | None

    @classmethod
    def capture(cls, earlier: ProcessState | None = None) -> ProcessState:
        """The state as it is now; of an earlier one it takes the states of generators that have not been touched."""
        numpy_memory, python_memory = _numpy_memory(), _python_memory()
        of_numpy = earlier if earlier is not None and _same(earlier.numpy_memory, numpy_memory) else None
        of_python = earlier if earlier is not None and _same(earlier.python_memory, python_memory) else None
        return cls(
            filters=warnings.filters,  # type: ignore[arg-type,unused-ignore]
            filters_content=list(warnings.filters),
            hooks={name: getattr(warnings, name) for name in _WARNING_HOOKS if hasattr(warnings, name)},
            once=dict(getattr(warnings, "onceregistry", {})),
            numpy_random=of_numpy.numpy_random if of_numpy else np.random.get_state(legacy=False),
            numpy_memory=numpy_memory,
            python_random=of_python.python_random if of_python else random.getstate(),
            python_memory=python_memory,
        )

    def fork(self) -> ProcessState:
        """The same state with a list of filters of its own, which can change without changing this one's."""
        return replace(self, filters=list(self.filters_content))

    def restore(self) -> None:
        """Make this the state of the process."""
        # `catch_warnings` puts the list object itself back, so the object must be the rank's own too.
        warnings.filters = self.filters  # type: ignore[assignment,unused-ignore]
        self.filters[:] = self.filters_content
        for name, value in self.hooks.items():
            setattr(warnings, name, value)
        registry = getattr(warnings, "onceregistry", None)
        if registry is not None:
            registry.clear()
            registry.update(self.once)
        # Every rank issues each warning: the marks "already shown" at call sites become void at a switch.
        mutated = getattr(warnings, "_filters_mutated", None)
        if mutated is not None:
            mutated()
        if not _same(self.numpy_memory, _numpy_memory()):
            np.random.set_state(self.numpy_random)
        if not _same(self.python_memory, _python_memory()):
            random.setstate(self.python_random)
