"""The fake device: loops wait for a fence, and are then run by the interpreter.

It is there for tests. A host access that the protocol of `backends.memory` does not know raises, and what is read
before somebody waited for it is wrong, as on a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from numpy_dist.backends.base import Loop, ReduceStep, Step
from numpy_dist.backends.device_transports import agree
from numpy_dist.backends.fake.arrays import FakeArray, FakeStream, hidden
from numpy_dist.backends.fake.links import FakeLinks
from numpy_dist.backends.fake.memory import FakeMemory
from numpy_dist.backends.interpreter import Interpreter
from numpy_dist.backends.transport import Attempt, Transport
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array
    from numpy_dist.backends.transport import Communicator

T = TypeVar("T")


class FakeDevice:
    """Executes loops on arrays of the fake device when somebody waits for them.

    Attributes
    ----------
    loops : int
        Loops given.
    """

    name = "fake"

    def __init__(self) -> None:
        self.memory = FakeMemory(FakeStream())
        self.loops = 0
        self._interpreter = Interpreter()

    def run(self, loop: Loop) -> None:
        """Ask for a loop (see `backends.base.Loop`)."""
        self.loops += 1
        self.memory.stream.put(self._interpreter.run, _revealed(loop))

    def fence(self) -> None:
        """Wait until everything that was asked for has happened."""
        self.memory.fence()

    def transport(self, comm: Communicator, attempt: Attempt) -> Transport:
        """As in `backends.base.Backend`."""
        return agree(config.TRANSPORT, FakeLinks(self.memory), comm, attempt)

    def tier(self, memo: dict[str, object]) -> str:
        """As in `backends.base.Backend`."""
        return "fake: the interpreter, after a fence"


def make(ranks_here: int) -> FakeDevice:
    """A new device."""
    return FakeDevice()


def _revealed(loop: Loop) -> Loop:
    """The same loop over the ndarrays behind the arrays of the device."""
    seen: dict[int, Array] = {}

    def reveal(x: T) -> T:
        if isinstance(x, FakeArray):  # one ndarray for each array, by which backends know operands
            return seen.setdefault(id(x), hidden(x))
        return x

    steps: list[Step | ReduceStep] = []
    for s in loop.steps:
        if isinstance(s, Step):
            inputs, outputs = tuple(map(reveal, s.inputs)), tuple(map(reveal, s.outputs))
            steps.append(Step(s.op, inputs, outputs, reveal(s.where), s.options, s.label))
        else:
            steps.append(ReduceStep(s.op, reveal(s.source), reveal(s.partial), s.axes, reveal(s.where), s.label))
    return Loop(loop.shape, steps, loop.report, loop.watched, alike=loop.alike)
