"""The backend protocol, and which backend a name means."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np

from numpy_dist.backends.memory import Memory
from numpy_dist.ir.ops import Op

if TYPE_CHECKING:
    from numpy_dist.backends.memory import Array


@dataclass(frozen=True)
class Temp:
    """A value that lives only while its tile is computed.

    Attributes
    ----------
    index : int
        Which temporary of the loop.
    dtype : dtype
    """

    index: int
    dtype: np.dtype


@dataclass
class Step:
    """One operation of a loop: operands are local arrays of the loop's full shape, scalars or `Temp`."""

    op: Op
    inputs: tuple[Any, ...]
    outputs: tuple[Array | Temp, ...]
    where: Array | Temp | None = None
    options: dict = field(default_factory=dict)
    label: int = 0  # the statement's serial, for floating-point reports


@dataclass
class ReduceStep:
    """Reduce `source` over `axes` into `partial`, a local array of the kept axes (reduced axes have extent 1)."""

    op: Op
    source: Array | Temp
    partial: Array
    axes: tuple[int, ...]
    where: Array | Temp | None = None
    label: int = 0


@dataclass
class Loop:
    """A fused loop nest over local arrays.

    Attributes
    ----------
    shape : tuple of int
        The local iteration space.
    steps : sequence of Step or ReduceStep
        In program order.
    report : callable
        ``report(label, kind)`` is told of every floating-point event; kind as in `numpy.seterrcall`.
    watched : frozenset of str
        The kinds of events that anybody wants to hear of, by NumPy's names in `numpy.errstate`.
    memo : dict
        The same for all loops that differ in their memory and in the values of scalars only: backends keep there what
        they have worked out. ``memo["siblings"]``, if it is there, are the memos of the loops that run whenever this
        one does, each on another part of the same arrays. ``memo["slow"]`` is put there once by a backend that cannot
        do the loop well: for how long it has run, and why it is slow, in words.
    alike : bool
        Whether ranks with other backends compute the same elements, which must not differ between them: every bit is
        to be the interpreter's.
    """

    shape: tuple[int, ...]
    steps: Sequence[Step | ReduceStep]
    report: Callable[[int, str], None]
    watched: frozenset[str] = frozenset(("divide", "over", "under", "invalid"))
    memo: dict[str, Any] = field(default_factory=dict)
    alike: bool = False


def arrays_of(loop: Loop, is_array: Callable[[object], bool] = lambda x: type(x) is np.ndarray) -> list[Array]:
    """The arrays over the iteration space that a loop reads or writes, in the order of their first appearance."""
    found: dict[int, Array] = {}
    for s in loop.steps:
        for x in (*s.inputs, s.where, *s.outputs) if isinstance(s, Step) else (s.source, s.where):
            if is_array(x):
                found.setdefault(id(x), x)
    return list(found.values())


class Repeat(Protocol):
    """A loop that can be run again on other memory, at once.

    Attributes
    ----------
    operands : list of int
        Whose addresses it needs: numbers in the order of `arrays_of`.
    scalars : list of (int, int)
        Whose values it needs: numbers of a step and of its input.
    """

    operands: list[int]
    scalars: list[tuple[int, int]]

    def again(self, addresses: list[int], scalars: list[object], loop: Callable[[], Loop]) -> list[Array] | None:
        """Run the loop on operands that lie elsewhere, in the same way; None if these scalars or addresses do not fit.

        Parameters
        ----------
        loop : callable
            Makes the loop over arrays, where that is needed (a floating-point event was met).

        Returns
        -------
        list of ndarray
            The partial results of its reductions.
        """


class TextReader(Protocol):
    """Reads numbers from text.

    A backend that can has one as its `text_reader`. What it does not know, or is not ready for yet, is left to NumPy.
    """

    def rows(self, text: bytes, delimiter: str | None) -> np.ndarray | None:
        """The numbers of a text of lines that have the same number of them, as doubles; each as Python's `float`.

        Parameters
        ----------
        text : bytes
        delimiter : str, optional
            One character between two numbers; default: blanks.

        Returns
        -------
        ndarray or None
            A row for each line that is not empty; None where it is anything but plain decimal numbers.
        """


class Mover(Protocol):
    """Moves elements one by one, where NumPy has no function or a slow one.

    A backend that can has one as its `mover`. What does not fit, or is not ready yet, is left to NumPy.
    """

    def moving(self, places: Sequence[np.ndarray], count: int, back: bool = False) -> Callable[..., None] | None:
        """How to move some `count` elements to several places; None if NumPy has to do it.

        Parameters
        ----------
        places : sequence of ndarray
            Each with room for all that is moved there; all of one dtype.
        back : bool
            Whether elements are moved from the places.

        Returns
        -------
        callable or None
            ``move(numbers, elements)``, called with one part of the elements after the other (and the numbers of their
            places, as bytes), moves each to what comes next in its place, or gets it from there.
        """

    def rows(
        self, rows: np.ndarray, low: int, positions: np.ndarray, elements: np.ndarray, back: bool = False
    ) -> bool:
        """Store elements in the rows at positions, one after the other, or read them there; False if nothing was done.

        Parameters
        ----------
        rows, elements : ndarray
            Of one dtype.
        low : int
            From what the positions are counted, which must be within bounds.
        back : bool
            Whether the elements are read.
        """


class ShortRows(Protocol):
    """Works on many rows of a few elements each, for which NumPy begins a loop each time.

    A backend that can has one as its `short_rows`. What does not fit, is not ready yet, or meets a floating-point event
    is left to NumPy.
    """

    def sums(self, rows: np.ndarray, most: int) -> np.ndarray | None:
        """The sums along axis 1 of a contiguous array with three axes, as `summation.Blocks` has them.

        Parameters
        ----------
        rows : ndarray
        most : int
            Rows of a block.
        """

    def computed(self, ufunc: np.ufunc, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        """``ufunc(a, b)``, as NumPy makes it."""


class Chained(Protocol):
    """Loops with the same rows (indices of axis 0) that run together: some rows of each, then the next rows."""

    def launch(self, results: Sequence[Sequence[np.ndarray]], loops: Sequence[Callable[[], Loop]]) -> None:
        """Run the loops, whose arguments have been filled in.

        Parameters
        ----------
        results : sequence of sequence of ndarray
            For each loop and each of its reductions the one-dimensional array of results, row by row. Later loops may
            read it.
        loops : sequence of callable
            As in `Repeat.again`.
        """


class Bundled(Protocol):
    """Loops that touch different elements and run as one, in any order."""

    def fill(self, addresses: np.ndarray, scalars: list[object]) -> bool:
        """Take the arguments of the next launch, one loop after the other; False if the scalars do not fit."""

    def launch(self, loop: Callable[[int], Loop]) -> Sequence[Sequence[np.ndarray] | np.ndarray]:
        """Run the loops, whose arguments have been filled in.

        Parameters
        ----------
        loop : callable
            Makes the loop with a number over arrays, as in `Repeat.again`.

        Returns
        -------
        sequence of (sequence of ndarray, or ndarray)
            For each reduction the partial results of all loops; the latter if each has one element.
        """


@runtime_checkable
class Chainable(Repeat, Protocol):
    """A loop that can be run again, and together with others."""

    def fill(self, addresses: list[int], scalars: list[object]) -> bool:
        """Take the arguments of the next launch; False if the scalars do not fit."""

    def launch(self, loop: Callable[[], Loop]) -> list[np.ndarray]:
        """Run the loop with these arguments; returns as `again` does."""

    def has_rows(self, rows: int) -> bool:
        """Whether it can be run some rows at a time."""

    def chain(self, others: Sequence[Self], rows: int) -> Chained | None:
        """This loop and others after it, all of so many rows, as one; None if that is not possible, or no gain."""

    def bundle(self, others: Sequence[Self]) -> Bundled | None:
        """This loop and others with the same reductions, that touch other elements, as one; None if not yet."""


class Backend(Protocol):
    """What executes loops on local arrays.

    Attributes
    ----------
    name : str
    memory : Memory
        Where the arrays lie.
    """

    name: str
    memory: Memory

    def run(self, loop: Loop) -> Repeat | None:
        """Execute a loop; on return, or after `fence`, its outputs are valid.

        Returns
        -------
        Repeat or None
            How to run it again on other memory, if there is a faster way than to call `run`.
        """

    def fence(self) -> None:
        """Wait until everything that was started has finished."""

    # A backend that computes nothing says so by ``computes = False``, and has the ``value`` that results of reductions
    # are taken to be. Backends of devices have ``transport(comm, attempt)``: the `backends.transport.Transport` that
    # all ranks take, collective. Without it messages lie in the host's memory. One that compiles loops may have
    # ``prepare()``: called when the first sharded array is made, and to return at once.

    def tier(self, memo: dict[str, object]) -> str:
        """By what loops with this memo are run, and why, in words for people."""


GROUP = "numpy_dist.backends"
_MODULES = {
    "numba": "compiled.backend",
    "numpy": "interpreter",
    "null": "null",
    "cupy": "cupy.backend",
    "fake": "fake.backend",
}


def choose_backend(name: str, devices: Sequence[int], compiles: bool) -> str:
    """The backend that a BACKEND setting means; a pure function of what all ranks know, so they choose alike.

    Parameters
    ----------
    name : str
        ``"auto"``: CUDA devices if every rank has one, else the processors. Others mean themselves.
    devices : sequence of int
        For each rank how many devices it could use.
    compiles : bool
        Whether Numba is there. Ranks may differ in it: their results do not.
    """
    if name != "auto":
        return name
    if devices and all(devices):
        return "cupy"
    return "numba" if compiles else "numpy"


@cache  # each simulated rank asks
def has_numba() -> bool:
    """Whether loops can be compiled for the processor."""
    return all(importlib.util.find_spec(needed) is not None for needed in ("numba", "llvmlite"))


def make_backend(name: str, ranks_here: int = 1, rank_here: int = 0, devices: Sequence[int] = ()) -> Backend:
    """The backend of a `BACKEND` setting.

    Parameters
    ----------
    name : str
    ranks_here : int
        Ranks that share this machine's cores.
    rank_here : int
        This rank's number among them, by which devices are dealt out.
    devices : sequence of int
        As in `choose_backend`.

    Raises
    ------
    ValueError
        For a backend that this version does not have, or whose plug-in cannot be loaded.
    """
    name = choose_backend(name, devices, has_numba())
    module = _MODULES.get(name)
    if module is None:
        return _from_plugin(name, ranks_here)
    if name == "cupy" and importlib.util.find_spec("cupy") is None:
        raise ValueError("BACKEND='cupy' needs CuPy: pip install 'numpy-dist[cuda12]' or 'numpy-dist[cuda13]'")
    make = importlib.import_module(f"numpy_dist.backends.{module}").make
    return make(ranks_here, rank_here) if name == "cupy" else make(ranks_here)


def _from_plugin(name: str, ranks_here: int) -> Backend:
    """The backend of an entry point in the group ``numpy_dist.backends``: a module with `make`, or that function."""
    points = sorted(importlib.metadata.entry_points(group=GROUP, name=name), key=lambda point: point.value)
    if not points:
        known = ", ".join(("auto", *_MODULES))
        raise ValueError(f"BACKEND={name!r}: this version of numpy_dist has the backends {known}")
    point = points[0]
    try:
        found = point.load()
        return getattr(found, "make", found)(ranks_here)
    except Exception as error:
        where = "" if point.dist is None else f" of {point.dist.name} {point.dist.version}"
        raise ValueError(
            f"BACKEND={name!r}: the plug-in{where} ({point.value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error
