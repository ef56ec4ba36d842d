"""What the engine did, counted: the evidence that nothing was gathered and nothing was stored twice."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass
class EngineCounters:
    """Counts of one rank since the last `reset`.

    Attributes
    ----------
    statements : int
        Statements recorded.
    loops : int
        Fused loops executed (one pass over an iteration space each).
    reads, writes : int
        Storages read and written by these loops (each once a loop).
    stored_temporaries : int
        Results that were written out although no handle referred to them any more when their loop ran.
    contracted : int
        Results that were never stored, since nobody could ask for them.
    versions, carried : int
        Writes that went to a second allocation, and those of them which had to carry cells over.
    fetches, halos : int
        Redistributions for unaligned operands; halo refreshes.
    gathers, gathered_bytes : int
        Whole arrays gathered to one or to all ranks, and their bytes.
    """

    statements: int = 0
    loops: int = 0
    reads: int = 0
    writes: int = 0
    stored_temporaries: int = 0
    contracted: int = 0
    versions: int = 0
    carried: int = 0
    fetches: int = 0
    halos: int = 0
    gathers: int = 0
    gathered_bytes: int = 0

    def reset(self) -> None:
        """Set every count to zero."""
        for field in fields(self):
            setattr(self, field.name, 0)
