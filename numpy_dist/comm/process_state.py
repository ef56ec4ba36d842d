"""State of the process that threads share, and that simulated ranks must not: warnings and global random generators."""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass, replace

import numpy as np

__all__ = ["ProcessState"]

# What `warnings.catch_warnings` and `pytest.warns` replace in the module.
_WARNING_HOOKS = ("showwarning", "_showwarnmsg_impl", "_showwarning_orig")


@dataclass(frozen=True)
class ProcessState:
    """A copy of the state; `restore` brings it back."""

    filters: list[tuple[object, ...]]
    filters_content: list[tuple[object, ...]]
    hooks: dict[str, object]
    once: dict[object, object]
    numpy_random: dict[str, object]
    python_random: tuple[object, ...]

    @classmethod
    def capture(cls) -> ProcessState:
        """The state as it is now."""
        return cls(
            filters=warnings.filters,  # type: ignore[arg-type,unused-ignore]
            filters_content=list(warnings.filters),
            hooks={name: getattr(warnings, name) for name in _WARNING_HOOKS if hasattr(warnings, name)},
            once=dict(getattr(warnings, "onceregistry", {})),
            numpy_random=np.random.get_state(legacy=False),
            python_random=random.getstate(),
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
        np.random.set_state(self.numpy_random)
        random.setstate(self.python_random)
