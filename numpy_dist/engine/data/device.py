"""What algorithms on the shards of a device work with: its library, its memory, and messages between its arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist.backends.library import Library
from numpy_dist.engine.runtime import Runtime, runtime

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from numpy_dist.backends.memory import Array


class Device:
    """A communicator whose messages are arrays of a device, by the transport of all ranks; and what computes there.

    Attributes
    ----------
    rank, size : int
    library : Library
    """

    def __init__(self, rt: Runtime, library: Library) -> None:
        self._runtime, self._memory, self.library = rt, rt.backend.memory, library
        self.rank, self.size = rt.rank, rt.size
        self.allgather, self.alltoall = rt.comm.allgather, rt.comm.alltoall

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """An array of the device, not initialised."""
        extents = (shape,) if isinstance(shape, int) else shape
        return self._runtime.pool.attempt(self._memory.empty, extents, np.dtype(dtype))

    def own(self, x: Array, dtype: DTypeLike | None = None) -> Array:
        """An array on the device; converted without a look at its values."""
        kind = x.dtype if dtype is None else np.dtype(dtype)
        host = isinstance(x, np.ndarray)
        if not host and kind == x.dtype:
            return x
        made = self.empty(x.shape, kind)
        if host:
            self._memory.upload(made, x.astype(kind, copy=False))
        else:
            self._memory.copy(made, x)
        return made

    def flat(self, x: Array) -> Array:
        """The elements of an array in C order, of one axis."""
        made = self.empty(x.shape, x.dtype)
        self._memory.copy(made, x)
        return made.reshape(-1)

    def start_transfer(
        self, sends: Sequence[tuple[int, Array]], receives: Sequence[tuple[int, Array]]
    ) -> DeviceExchange:
        """As a communicator's, with arrays of one dtype in the same order on both sides; all ranks have to ask."""
        dtype = next((x.dtype for _, x in (*sends, *receives)), np.dtype(np.uint8))

        def into(x: Array) -> Callable[[], list[Array]]:
            return lambda: [x]

        return DeviceExchange(
            self._runtime.transport.start(
                [(rank, [x]) for rank, x in sends],
                [(rank, x.size * dtype.itemsize, into(x)) for rank, x in receives],
                dtype,
            )
        )

    def transfer(self, sends: Sequence[tuple[int, Array]], receives: Sequence[tuple[int, Array]]) -> None:
        """As `start_transfer`, and done when this returns."""
        self.start_transfer(sends, receives).wait()


class DeviceExchange:
    """An exchange that has been started."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self.wait = wait


def device(*dtypes: np.dtype) -> Device | None:
    """What works on shards of these dtypes where they lie; None where that is the host. The same on all ranks."""
    rt = runtime()
    library = rt.library
    return Device(rt, library) if library is not None and all(map(library.takes, dtypes)) else None
