"""Programs as data: statements that are Python source text, with the settings that they run under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CHECKPOINT", "RandomProgram", "script"]

CHECKPOINT = "checkpoint()"


@dataclass(frozen=True)
class RandomProgram:
    """Statements over names, run alike on ndarrays and on arrays under test.

    Attributes
    ----------
    statements : tuple of str
        Source text. Free names are those of `interpreter.namespace`: ``np``, ``array``, ``check``, ``checkpoint``,
        ``a`` and ``of`` (of `numpy_dist.conformance.arguments`), and modules of the standard library.
    seed : int
        From which it was generated.
    settings : dict
        Settings of numpy_dist in force while it runs.
    """

    statements: tuple[str, ...]
    seed: int = 0
    settings: Mapping[str, object] = field(default_factory=dict)

    def with_statements(self, statements: list[str]) -> RandomProgram:
        """Another program under the same settings."""
        return RandomProgram(tuple(statements), self.seed, self.settings)

    def as_dict(self) -> dict[str, object]:
        """What JSON can hold."""
        return {"statements": list(self.statements), "seed": self.seed, "settings": self.settings}

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> RandomProgram:
        """The program of `as_dict`."""
        return cls(tuple(found["statements"]), found["seed"], found["settings"])


def script(program: RandomProgram, ranks: int, environment: dict[str, str], problem: str) -> str:
    """Source text of a script that runs a program on both sides, and tells where they differ."""
    told = "\n".join(f"# {line}" for line in problem.splitlines())
    words = " ".join(f"{name}={value}" for name, value in environment.items())
    listed = "".join(f"    {_literal(text)},\n" for text in program.statements)
    settings = "".join(f", {name}={value!r}" for name, value in program.settings.items())
    return (
        f"# {words} numpy-dist run -n {ranks} this.py\n{told}\n"
        "from numpy_dist.conformance.fuzz.interpreter import replay\n\n"
        f"STATEMENTS = [\n{listed}]\nraise SystemExit(replay(STATEMENTS{settings}))\n"
    )


def _literal(text: str) -> str:
    """A statement as a literal that can be read: several lines stay lines."""
    return f'"""{text}"""' if "\n" in text and "\\" not in text and '"""' not in text else repr(text)
