"""A rank as the engine's lower rooms see it: what they need of the runtime, which is above them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from numpy_dist.backends.base import Backend
    from numpy_dist.comm.base import Communicator


class Rank(Protocol):
    """A rank's number, its communicator and its backend."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def comm(self) -> Communicator: ...
    @property
    def backend(self) -> Backend: ...
    @property
    def budgets(self) -> dict[int, int]: ...
