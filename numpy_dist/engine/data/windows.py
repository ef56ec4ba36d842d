"""Windows: the memory of one rank's arrays as ndarrays, for small work that is done at once.

A statement on some elements costs NumPy less than a microsecond, and the engine many: it is recorded, planned and
executed later. Where one rank has all elements, and nothing that is pending stands in the way, small work is hence done
by NumPy on a *window*: ndarrays over the memory of a storage. Windows are opened when elements are looked at, and shut
by the statements that are recorded on the storage: one that writes it shuts the window, one that reads it lets nobody
write through the window any more. What stands in the way is known from the serials of pending statements.

With several ranks a window is over a copy of the whole array, which each of them has while a program walks over it
(`engine.data.walks`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_dist import settings
from numpy_dist.argument_types import Function, Keywords
from numpy_dist.engine.data.ingest import default_shard, from_global, shardable
from numpy_dist.engine.data.walks import copy_of, has_walked, known_copy
from numpy_dist.engine.memory import handle as handles
from numpy_dist.engine.memory.handle import Handle
from numpy_dist.engine.memory.storage import Storage
from numpy_dist.engine.runtime import Runtime, runtime
from numpy_dist.engine.scheduling.eagerness import COSTLY_NAMES, register_limit
from numpy_dist.engine.scheduling.program import register_walks
from numpy_dist.ir.meta_arrays import address_of, is_writeable, offset_of, placed
from numpy_dist.ir.statements import Ref
from numpy_dist.ir.views import view_of
from numpy_dist.settings import config

if TYPE_CHECKING:
    from numpy_dist.engine.data.walks import Walk
    from numpy_dist.engine.memory.storage import Token


KINDS = frozenset("?bBhHiIlLqQfdFD")
"""Dtypes of which NumPy's results do not depend on strides: not those of half precision.

Of complex ones some do (`ir.ops.COMPLEX_EXACT`): NumPy takes another way for products whose operands descend, and for
results that are not contiguous, or lie among the operands.
"""

limit = 0
"""Arrays with fewer bytes than this are worked on at once; read by every index expression."""


usual = 0
"""What the limit is unless it is lifted (`engine.scheduling.eagerness`)."""

eager = False
"""Whether it is lifted: then operators look whether whole arrays are seen through windows; read by each of them."""

_free = 0
"""Where it is lifted, the bytes of which fused loops save nothing: they are not counted."""


def _set_limit() -> None:
    global limit, usual, eager
    limit = usual = config.MIN_SHARD_BYTES if config.AT_ONCE == "auto" else int(config.AT_ONCE)
    eager = False


def _lift(most: int, free: int) -> None:
    global limit, eager, _free
    eager = config.AT_ONCE == "auto" and 0 < usual < most
    limit, _free = (most, free) if eager else (usual, 0)


settings.MIRRORS["AT_ONCE"] = settings.MIRRORS["MIN_SHARD_BYTES"] = _set_limit
register_limit(_lift)
_set_limit()


def permits(nbytes: int, name: str = "") -> bool:
    """Whether a result of so many bytes is made at once, by NumPy; `name` is that of the operation."""
    if nbytes < usual or not eager:
        return nbytes < limit
    if nbytes < _free and name not in COSTLY_NAMES:
        return True
    eagerness = runtime().program.eagerness
    return eagerness is not None and eagerness.permits(nbytes, name)


def asked_for(nbytes: int) -> None:
    """Take note that a value of an array of so many bytes, which is seen through a window, goes to Python."""
    if eager and nbytes >= usual and (eagerness := runtime().program.eagerness) is not None:
        eagerness.saved = 0.0


class Window:
    """What tells whether the elements of an allocation can be read and written at this moment.

    Arrays over the allocation share it. The storage knows it as long as any of them is there (`Storage.window`).

    Attributes
    ----------
    readable, writeable : bool
        Not readable means shut for good.
    storage : Storage or None
        Whose memory it is; None for memory of NumPy's, of which the engine does not know.
    address : int
        Of the first byte of the memory of a storage, or of what was NumPy's.
    whole : ndarray or None
        All of the memory of NumPy's.
    least : int
        Bytes of the smallest sharded array whose elements are all seen: what has less is a part of any of them.
    first : weakref or None
        Of the handle that has all of it.
    token : Token or None
        Keeps the storage's values wanted for arrays that look through the window when it is shut.
    walk : Walk or None
        Over whose copy it is, with several ranks.
    """

    __slots__ = (
        "__weakref__", "address", "first", "least", "readable", "storage", "token", "walk", "whole", "writeable"
    )  # fmt: skip

    def __init__(self, storage: Storage | None, address: int, whole: np.ndarray | None = None) -> None:
        self.storage, self.address, self.whole = storage, address, whole
        self.readable, self.writeable = True, storage is None
        self.least = 0 if storage is None else storage.nbytes
        self.first: weakref.ref[Handle] | None = None
        self.token: Token | None = None
        self.walk: Walk | None = None

    def begin(self) -> int:
        """The address of the first byte of the memory, which is looked up when it is needed."""
        return self.address if self.whole is None else address_of(self.whole)

    def shut(self) -> None:
        """Let nobody look through it any more."""
        self.readable = self.writeable = False
        if self.storage is not None:
            self.token = self.storage.token
            self.storage.window = None


FREE = Window(None, 0)
"""The window of arrays in memory of NumPy's that nobody else sees."""


def family(x: Handle) -> Window | None:
    """The window of an array with the window `FREE`, of which a view is about to be taken; None if it has no views."""
    whole = x._real
    if whole.dtype.char not in KINDS or not whole.flags.forc:
        return None
    made = x._window = Window(None, 0, whole)
    made.first = weakref.ref(x)
    return made


class_at_hand: type[Handle] = Handle
assign: Callable[[Handle, object, object], bool]
"""``x[key] = value`` through the window of `x`; False if nothing was done."""


picked: Callable[[Handle, object], object]
"""``x[key]`` of few elements, by an index that has arrays; None if they are not seen through windows."""


computed: Callable[[np.ufunc, tuple, Keywords], object]
"""A call of a ufunc on elements that are seen through windows; None if they are not, or it is the engine's."""


routed: Callable[[Function, tuple, Keywords], object]
"""A function of arrays that come near; None where the engine has to do it."""


multiplied: Callable[[object, object], object]
"""``left @ right`` of a large matrix and a small operand; None where the engine has to compute it."""


def register_at_hand(
    kind: type[Handle],
    assigning: Callable[..., bool],
    picking: Function,
    computing: Function,
    multiplying: Function,
    routing: Function,
) -> None:
    """Set the class of arrays that are seen through windows, and what is called for them (see above)."""
    global class_at_hand, assign, picked, computed, multiplied, routed
    class_at_hand, assign, picked, computed, routed = kind, assigning, picking, computing, routing
    multiplied = multiplying


def near(array: np.ndarray) -> Any:
    """The array at hand of a new ndarray, which nobody else sees."""
    made = class_at_hand()
    made._real, made._window = array, FREE
    return made


def is_at_hand(x: object) -> bool:
    """Whether `x` is an array that is seen through a window; it is not handed over by being asked."""
    return type(x) is class_at_hand


def lies_in(x: Handle, storage: Storage) -> bool:
    """Whether an array is a view over a storage; it is not handed over by being asked."""
    return (x._window.storage if type(x) is class_at_hand else x._storage) is storage


def elements_at_hand(x: object) -> np.ndarray | None:
    """The elements of an array at hand of which NumPy's results are the engine's; None for all others."""
    if type(x) is class_at_hand and x._window.readable and x._real.dtype.char in KINDS:
        return x._real
    return None


def seen(x: Any) -> np.ndarray | None:
    """The elements of an array that are read at this moment, of one process or at hand; None for all others."""
    if type(x) is not class_at_hand and (x._storage is None or not x._window.readable or x._window.walk is not None):
        return None
    return x._real if x._window.readable else None


def can_open(x: Handle, used: bool = True) -> bool:
    """Whether the window of a sharded array that is looked at in parts, and whose window is shut, can be opened.

    `used` as in `open_window`.
    """
    if x._window.readable:
        return False  # it is open, and will not do
    rt = runtime()
    if rt.size > 1:
        return open_window(x, used) is not None
    program = rt.program
    storage: Any = x._storage
    if storage.window is None and not program.is_settled(storage):  # as where most others are asked for in vain
        return program.has_lingered(limit) and open_window(x) is not None
    return open_window(x, used) is not None or (program.has_lingered(limit) and open_window(x) is not None)


def come_near(x: object) -> bool:
    """Whether an operand is at hand, or no array; where the program is eager, whole sharded arrays come near."""
    if not isinstance(x, Handle) or type(x) is class_at_hand or x._storage is None:
        return True
    if type(x) is not handles._handle_class or x._array.nbytes >= limit or runtime().size > 1:
        return False
    if not x._window.readable and open_window(x) is None:
        return False
    x.__class__ = class_at_hand
    return True


def computed_eagerly(ufunc: np.ufunc, inputs: tuple, target: Handle | None = None) -> object:
    """A ufunc of operands of which one is sharded, where the program is eager; None where the engine has to do it."""
    if not (all(map(come_near, inputs)) and (target is None or come_near(target))):
        return None
    return computed(ufunc, inputs, {} if target is None else {"out": (target,)})


def open_window(x: Handle, used: bool = True) -> Window | None:
    """The window through which the elements of a sharded array are seen now, set up for it; None if there is none.

    Where elements are `used`, by an operation that all ranks do, this may be collective on several ranks. Who only
    selects a part may be alone, as shapes are known to every rank.
    """
    storage: Any = x._storage
    array = x._array
    found = None if storage.window is None else storage.window()
    if found is None:
        found = _opened(storage, used)
    if found is None or array.dtype.char not in KINDS or not array.size or not is_writeable(array):
        return None
    if storage.owner is None:
        storage.owner = weakref.ref(x)
    memory = storage.memory if found.walk is None else found.walk.copy
    x._real = np.ndarray(array.shape, array.dtype, memory, offset_of(array), array.strides)
    x._window = found
    found.least = min(found.least, array.nbytes)
    return found


def _opened(storage: Storage, used: bool) -> Window | None:
    rt = runtime()
    program, memory = rt.program, storage.memory
    if rt.size > 1:
        return _opened_everywhere(rt, storage, used)
    if storage.lost or not program.is_settled(storage):
        return None
    if memory is None:
        if storage.last_write >= 0 or storage.spare is not None or not has_ndarrays(rt):
            return None
        storage.allocate(storage.layout.box(rt.rank))  # type: ignore[arg-type]
        memory = storage.memory
    if storage.extent != storage.shape or any(storage.low) or not has_ndarrays(rt):
        return None
    made = Window(storage, memory.address)
    storage.window = weakref.ref(made)
    program.watches = True
    return made


def _step(rt: Runtime, storage: Storage, nbytes: int) -> Callable[[], object] | None:
    """What makes the copy for a walk, if the part of so many bytes that a statement reads is the step for it."""
    if nbytes < limit and has_walked(rt, storage):
        return partial(_opened_everywhere, rt, storage, used=True)
    return None


register_walks(_step)


def _opened_everywhere(rt: Runtime, storage: Storage, used: bool) -> Window | None:
    """A window over each rank's copy of the whole array; None where nobody walks over it."""
    if storage.lost or not storage.nbytes or storage.dtype.char not in KINDS or not has_ndarrays(rt):
        return None
    copy = copy_of(rt, storage) if used else known_copy(storage)
    if copy is None:
        return None
    made = Window(storage, address_of(copy))
    made.walk = storage.walk
    storage.window = weakref.ref(made)
    return made


def in_memory(x: Any, written: bool = False) -> np.ndarray | None:
    """All elements of an array as an ndarray over its memory, where one process has them on its host; None elsewhere.

    What is pending and makes them is executed first; if some are to be written, all that is pending. Whether NumPy may
    write them is what `x` says. Not for arrays of Python objects.
    """
    if is_at_hand(x) and x._window.readable and not written:
        return x._real
    storage = x._storage
    if storage is None:
        return x._array if shardable(x._array.dtype) else None
    rt, array = runtime(), x._array
    if rt.size > 1 or not has_ndarrays(rt) or not array.size:
        return None
    program = rt.program
    if written:
        program.run()
        program.run_deferred()
    program.force(storage)
    if storage.memory is None:
        storage.allocate(storage.layout.box(rt.rank))
    if storage.extent != storage.shape or any(storage.low):
        return None
    if written:
        storage.fresh = ()
        storage.rewritten += 1
        storage.drop_spare()
    made = np.ndarray(array.shape, array.dtype, storage.memory, offset_of(array), array.strides)
    made.flags.writeable = written and is_writeable(array)
    return made


def has_ndarrays(rt: Runtime) -> bool:
    """Whether the memory of storages is seen by NumPy, on all ranks, and has values in it."""
    return rt.on_host and rt.computes


def may_be_written(window: Window) -> bool:
    """Whether elements may be written through a readable window now."""
    if window.writeable:
        return True
    storage: Any = window.storage
    rt = runtime()
    if rt.program.is_read(storage):
        return False
    if storage.reserved:
        rt.program.run_deferred()
    storage.drop_spare()
    storage.fresh, storage.ahead = (), None
    storage.rewritten += 1
    window.writeable = True
    if window.walk is not None:
        window.walk.changed, window.walk.version = True, storage.version
    return True


def version_kept(storage: Storage) -> tuple[int, int]:
    """The version of values that somebody is about to keep: whoever writes through a window makes another one first."""
    found = None if storage.window is None else storage.window()
    if found is not None:
        found.writeable = False
    return storage.version


def hand_over(x: Handle) -> Any:
    """Let an array that is seen through a window be one of the engine's: a view over a storage, as all others.

    Whatever raises on the way (for want of memory, or a signal) leaves it at hand.
    """
    real, window = x._real, x._window
    several = runtime().size > 1
    if window.storage is None and several and (window is not FREE or not default_shard(real.nbytes)):
        return _turned(x, real, None, None)  # small, and the same on every rank
    if window is FREE:
        made = from_global(real, None if several else runtime().default_layout(real.shape))
        return _turned(x, made._array, made._storage, None if made._storage is None else made._ref)
    storage = window.storage
    if storage is None:
        begin = window.begin()
        storage = from_global(window.whole, runtime().default_layout(window.whole.shape))._storage
        storage.owner = window.first
        window.storage, window.readable, window.writeable = storage, False, False
        window.address, window.whole, window.token = begin, None, storage.token
    offset = address_of(real) - window.address if real.size else 0
    array = placed(real.dtype, offset, real.shape, real.strides)
    view = view_of(storage.layout, storage.dtype.itemsize, array)
    array = view.array if view.writeable else array
    return _turned(x, array, storage, Ref(storage, array, view))


_SLOTS = vars(Handle)
_set_array, _set_storage, _set_token = (_SLOTS[name].__set__ for name in ("_array", "_storage", "_token"))
_set_ref, _set_window = _SLOTS["_ref"].__set__, _SLOTS["_window"].__set__


def _turned(x: Handle, array: np.ndarray, storage: Storage | None, ref: Ref | None) -> Handle:
    """Let an array at hand be this view. It is at hand until its class is another one."""
    _set_array(x, array)
    _set_storage(x, storage)
    _set_ref(x, ref)
    _set_token(x, None if storage is None else storage.token)
    x.__class__ = handles._handle_class
    _set_window(x, handles.SHUT)
    return x
