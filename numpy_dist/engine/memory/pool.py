"""A bounded pool of allocations: fresh pages cost more than the arithmetic on them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from numpy_dist.backends.memory import HOST, Block, Memory, make_block
from numpy_dist.engine.memory.limits import Limits
from numpy_dist.engine.memory.liveness import ARGUMENT

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Room

T = TypeVar("T")

_OVERHEAD = 256  # bytes that a block takes besides its memory, about
_WATCHED = 1 << 20  # bytes of blocks that are worth asking the system how much memory there is
_MUCH = 1 << 28
_PEAKS, _SLACK = 2, 1 << 23  # what is kept: twice what was ever in use (sizes may alternate), and some bytes
_RESERVE = 4 << 30
_LOOK_SECONDS = 0.1


class Pool:
    """Free allocations by size. They go back to the system where memory gets short (see `relieve`).

    Parameters
    ----------
    limit : int
        Most bytes that are kept free; what comes back above it is dropped, oldest first. What was in use bounds it,
        too: a program whose arrays have another size each time would else fill it with blocks that nobody wants again.
    room : callable, optional
        Tells what memory there is.
    failed : callable, optional
        Told of memory that was not to be had: other ranks may wait for what would have been computed in it.
    memory : Memory, optional
        Where the allocations lie; default: on the host.

    Attributes
    ----------
    held : int
        Bytes in use by storages; `peak` is the most there ever were.
    free : int
        Bytes kept for reuse.
    """

    def __init__(
        self,
        limit: int = 1 << 30,
        room: Callable[[], Room] | None = None,
        failed: Callable[[MemoryError], None] = lambda error: None,
        memory: Memory = HOST,
    ) -> None:
        self.memory = memory
        self.limit, self.held, self.peak, self.free = limit, 0, 0, 0
        self._blocks: dict[int, list[Block]] = {}
        self._room = room
        self.failed = failed
        self._next_look = 0.0
        self._short = False

    def take(self, nbytes: int, announces: bool = True) -> Block:
        """An allocation of exactly `nbytes`, not initialised.

        Without `announces`, other ranks are not told of memory that is not to be had: the caller does without.
        """
        blocks = self._blocks.get(nbytes)
        if blocks:
            self.free -= nbytes + _OVERHEAD
            block = blocks.pop()
            if not blocks:
                del self._blocks[nbytes]
        else:
            if self.free and nbytes >= _WATCHED:
                self.relieve(nbytes)
            attempt = self.attempt if announces else self._attempt
            block = attempt(make_block if self.memory.on_host else self.memory.allocate, nbytes)
        held = self.held = self.held + nbytes
        if held > self.peak:
            self.peak = held
        return block

    def count(self, nbytes: int) -> None:
        """Note that so many more bytes, of an allocation of this pool, are in use."""
        self.held += nbytes
        self.peak = max(self.peak, self.held)

    def give(self, block: Block) -> None:
        """Take an allocation back, which the caller has in a variable; it is reused only if nobody else sees it."""
        nbytes = block.size
        self.held -= nbytes
        if sys.getrefcount(block) > ARGUMENT or (self.memory.on_host and block.is_numpys):
            return
        cost = nbytes + _OVERHEAD
        limit = min(self.limit, _PEAKS * self.peak + _SLACK)
        if cost > limit or (nbytes >= _WATCHED and self.relieve()):
            return
        while self._blocks and self.free + cost > limit:
            self._drop_oldest()
        blocks = self._blocks.pop(nbytes, None)
        if blocks is None:
            blocks = []
        blocks.append(block)
        self._blocks[nbytes] = blocks  # the size that came back last is the last to be dropped
        self.free += cost

    def attempt(self, make: Callable[..., T], *arguments: object) -> T:
        """What `make` returns. Where it raises MemoryError, it is called again without what is kept for reuse.

        Raises
        ------
        MemoryError
            With a note that tells what this rank holds; `failed` was called with it.
        """
        try:
            return self._attempt(make, *arguments)
        except MemoryError as error:
            self.failed(error)
            raise

    def _attempt(self, make: Callable[..., T], *arguments: object) -> T:
        """As `attempt`, but nobody is told."""
        try:
            return make(*arguments)
        except MemoryError as error:
            failure = error
        if self.free:
            self.clear()
            try:
                return make(*arguments)
            except MemoryError as error:
                failure = error
        available = (self._room or Limits().room)().available
        failure.add_note(f"{self.held} bytes are in use by arrays of this rank, and {available} are available here")
        raise failure

    def relieve(self, wanted: int = 0) -> bool:
        """Whether memory is short, now or when `wanted` bytes have been taken; then nothing is kept for reuse.

        Memory is short when less than a sixteenth of it is available, and less than 4 GiB. It is shared by the ranks of
        a machine, and with arrays of the user's. The system is asked some times a second, or where much is wanted.
        """
        now = time.monotonic()
        if now >= self._next_look or wanted >= _MUCH:
            self._next_look = now + _LOOK_SECONDS
            if self._room is None:
                self._room = Limits().room
            room = self._room()
            self._short = room.available - wanted < min(room.total // 16, _RESERVE)
            if self._short:
                self.clear()
        return self._short

    def clear(self) -> None:
        """Keep nothing for reuse."""
        self._blocks.clear()
        self.free = 0

    def _drop_oldest(self) -> None:
        size = next(iter(self._blocks))
        blocks = self._blocks[size]
        blocks.pop(0)
        self.free -= size + _OVERHEAD
        if not blocks:
            del self._blocks[size]
