"""What the threads of a pool run, as a kernel. This file is a source, and is not imported: its text is
what the compiler gets and makes the key of, so it has all that it needs besides `intrinsics`.

A pool's threads share a block of words, the *state*. A launch is described by another one, the *request*, which belongs
to the launching thread.

A request is published by storing its tickets in one word: the number of the first range of units that nobody has taken
and, below it, of the one behind the last. The launching thread takes ranges from the front, workers take them from the
end, so that a loop that is run again finds most of its data in the caches of the same cores. Who takes a ticket (adds
to the word, and finds that there was one) owns one range, and the launching thread does not return before that range
has been computed. So the request may be read by owners of tickets only, threads that come late or never do no harm, and
no thread is waited for that has not begun.

A worker without work spins for a while and then parks on a lock. These are Python's own locks below the interpreter,
which are taken without it: workers come back to Python when the pool is closed only, and do not compete for the GIL. A
worker says that it parks *before* it looks for tickets once more, and the launching thread looks for parked workers
*after* it has published, with a fence in between: one of them sees the other.
"""

# mypy: ignore-errors
# (the types are Numba's)

from collections.abc import Callable

from llvmlite import ir
from numba import njit, types
from numba.core.base import BaseContext
from numba.extending import intrinsic

from numpy_dist.backends.compiled.intrinsics import call_kernel, fetch_add, load_atomic, pause, store_atomic

# Offsets in bytes, as in threads.py. What one thread writes while others spin is 128 bytes from everything else: caches
# fetch lines in pairs.
TICKETS = 0  # which ranges of the published request nobody has taken
REQUEST = 128
DONE = 256  # how many ranges other threads than the launching one have computed
BUSY = 384  # whether a launch is under way
PARKED = 512  # how many workers have parked
CLOSED = 640  # from here on nobody writes while threads work
WORKERS, ACQUIRE, RELEASE, YIELD, SPINS = 648, 656, 664, 672, 680
CLOCK = 688  # the address of `clock_gettime` while somebody wants to know when workers work, else 0
SLOTS, SLOT, LOCK = 768, 128, 8  # for each worker: whether it has parked, and its lock
# What a worker did in the present launch, by that clock, in nanoseconds; and room for two times of the clock.
RANGES, BEGIN, END_OF_WORK, AT_WORK, TIMES = 16, 24, 32, 40, 48

ADDRESS, BLOCK, UNITS, GRAIN, COUNT, STOPS = 0, 8, 16, 24, 32, 40  # of a request

FRONT, END = 1 << 32, (1 << 32) - 1  # one more range is taken from the front; the bits of the end
NONE = 1 << 24  # both numbers begin here: threads that find no ticket have counted the end down all the same

HURRY = 32  # by so much shorter than workers the launching thread spins before it lets others have its core
PATIENCE = 32  # turns of a spinning worker between those that let others have its core
AWAKENED = 2  # workers that a thread wakes, each of which wakes as many

# In one function the compiler sees that no exception can come up, for which a kernel has no way out.
_inlined = njit(error_model="numpy", forceinline=True)

_WORD = ir.IntType(64)
_INT = ir.IntType(32)


def _called(builder: ir.IRBuilder, address: ir.Value, result: ir.Type, arguments: list[ir.Value]) -> ir.Value:
    """Call the C function at an address."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(builder.inttoptr(address, kind.as_pointer()), arguments)


@intrinsic
def call_acquire(typing: object, address: object, lock: object) -> tuple[object, Callable[..., ir.Value]]:
    """``int (*)(void *, int)``: `PyThread_acquire_lock`, which waits."""

    def generate(context: object, builder: ir.IRBuilder, signature: object, words: list[ir.Value]) -> ir.Value:
        return _called(builder, words[0], _INT, [words[1], _INT(1)])

    return types.int32(types.int64, types.int64), generate


@intrinsic
def call_release(typing: object, address: object, lock: object) -> tuple[object, Callable[..., ir.Value]]:
    """``void (*)(void *)``: `PyThread_release_lock`."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: object, words: list[ir.Value]) -> ir.Value:
        _called(builder, words[0], ir.VoidType(), [words[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def call_yield(typing: object, address: object) -> tuple[object, Callable[..., ir.Value]]:
    """``int (*)(void)``: `sched_yield`."""

    def generate(context: object, builder: ir.IRBuilder, signature: object, words: list[ir.Value]) -> ir.Value:
        return _called(builder, words[0], _INT, [])

    return types.int32(types.int64), generate


@intrinsic
def call_clock(typing: object, address: object, place: object) -> tuple[object, Callable[..., ir.Value]]:
    """``int (*)(int, struct timespec *)``: `clock_gettime`, of the monotonic clock."""

    def generate(context: object, builder: ir.IRBuilder, signature: object, words: list[ir.Value]) -> ir.Value:
        return _called(builder, words[0], _INT, [_INT(1), words[1]])

    return types.int32(types.int64, types.int64), generate


@intrinsic
def exchange(typing: object, address: object, value: object) -> tuple[object, Callable[..., ir.Value]]:
    """Store a word at an address; returns what was there before (acquire and release)."""

    def generate(context: object, builder: ir.IRBuilder, signature: object, words: list[ir.Value]) -> ir.Value:
        pointer = builder.inttoptr(words[0], _WORD.as_pointer())
        return builder.atomic_rmw("xchg", pointer, words[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def fence(typing: object) -> tuple[object, Callable[..., ir.Value]]:
    """What this thread has stored before is seen by all threads before what it loads afterwards is fetched."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: object, words: list[ir.Value]) -> ir.Value:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@_inlined
def tickets_left(word):
    """How many ranges nobody has taken, given the word; none if that is below 1."""
    return (word & END) - (word >> 32)


@_inlined
def time_of(place):
    """The nanoseconds of a time that the clock has put at an address."""
    return load_atomic(place) * 1_000_000_000 + load_atomic(place + 8)


@_inlined
def note(slot):
    """Add a range to what the worker of a slot did, whose begin and end the clock has put there."""
    begin, end = time_of(slot + TIMES), time_of(slot + TIMES + 16)
    ranges = load_atomic(slot + RANGES)
    if ranges == 0:
        store_atomic(slot + BEGIN, begin)
        store_atomic(slot + AT_WORK, 0)
    store_atomic(slot + RANGES, ranges + 1)
    store_atomic(slot + END_OF_WORK, end)
    store_atomic(slot + AT_WORK, load_atomic(slot + AT_WORK) + end - begin)


@_inlined
def take_part(state, taken, slot):
    """Compute ranges until no ticket is left; returns how many.

    `taken` is what is added to the tickets for each, and `slot` the worker's, or 0.
    """
    done = 0
    clock = 0
    if slot != 0:
        clock = load_atomic(state + CLOCK)
    word = fetch_add(state + TICKETS, taken)
    while tickets_left(word) > 0:
        request = load_atomic(state + REQUEST)
        block = load_atomic(request + BLOCK)
        units = load_atomic(request + UNITS)
        grain = load_atomic(request + GRAIN)
        number = (word >> 32) if taken == FRONT else (word & END) - 1
        first = (number - NONE) * grain
        last = min(first + grain, units)
        if clock != 0:
            call_clock(clock, slot + TIMES)
        stop = call_kernel(load_atomic(request + ADDRESS), block, first, last)
        if clock != 0:
            call_clock(clock, slot + TIMES + 16)
            note(slot)
        if stop != 0:
            place = request + STOPS + 16 * fetch_add(request + COUNT, 1)
            store_atomic(place, stop - 1)
            store_atomic(place + 8, last)
        done += 1
        word = fetch_add(state + TICKETS, taken)
    return done


@_inlined
def wake(state, most):
    """Wake up to `most` parked workers."""
    slot = state + SLOTS
    end = slot + SLOT * load_atomic(state + WORKERS)
    while most > 0 and slot < end and load_atomic(state + PARKED) > 0:
        # Only who sets the word back releases the lock: once for each time that it is waited for.
        if load_atomic(slot) != 0 and exchange(slot, 0) != 0:
            fetch_add(state + PARKED, -1)
            call_release(load_atomic(state + RELEASE), load_atomic(slot + LOCK))
            most -= 1
        slot += SLOT


@_inlined
def launch(state, request):
    """Compute a request with all threads; returns how many ranges stopped early, or -1 if another launch is on."""
    if exchange(state + BUSY, 1) != 0:
        return -1
    units = load_atomic(request + UNITS)
    grain = load_atomic(request + GRAIN)
    tickets = (units + grain - 1) // grain
    store_atomic(state + REQUEST, request)
    store_atomic(state + DONE, 0)
    store_atomic(state + TICKETS, NONE * FRONT + NONE + tickets)
    fence()
    parked = load_atomic(state + PARKED)
    if parked > 0:
        awake = load_atomic(state + WORKERS) - parked
        wake(state, min(tickets - 1 - awake, AWAKENED))
    others = tickets - take_part(state, FRONT, 0)
    spins = load_atomic(state + SPINS) // HURRY
    while load_atomic(state + DONE) < others:
        if spins > 0:
            spins -= 1
            pause()
        else:
            # The thread that is waited for may be in need of this very core.
            call_yield(load_atomic(state + YIELD))
    store_atomic(state + BUSY, 0)
    return load_atomic(request + COUNT)


@_inlined
def spin(state, spins):
    """Wait for tickets; returns whether there are any."""
    while spins > 0:
        if tickets_left(load_atomic(state + TICKETS)) > 0:
            return True
        spins -= 1
        if spins % PATIENCE:
            pause()
        else:  # the launching thread may be in need of this very core
            call_yield(load_atomic(state + YIELD))
    return False


@_inlined
def park(state, slot):
    """Sleep until somebody wakes this worker, unless there is work."""
    fetch_add(state + PARKED, 1)  # first: the number may be too high for a moment, but never too low
    exchange(slot, 1)
    fence()
    needed = tickets_left(load_atomic(state + TICKETS)) > 0 or load_atomic(state + CLOSED) != 0
    if needed and exchange(slot, 0) != 0:
        fetch_add(state + PARKED, -1)
    else:
        call_acquire(load_atomic(state + ACQUIRE), load_atomic(slot + LOCK))


@_inlined
def work(state, slot):
    """The life of a worker."""
    while load_atomic(state + CLOSED) == 0:
        if spin(state, load_atomic(state + SPINS)):
            done = take_part(state, -1, slot)
            if done > 0:
                fetch_add(state + DONE, done)
        else:
            park(state, slot)
            wake(state, min(tickets_left(load_atomic(state + TICKETS)) - 1, AWAKENED))


@_inlined
def close(state):
    """Let all workers return."""
    store_atomic(state + CLOSED, 1)
    fence()
    wake(state, load_atomic(state + WORKERS))


def kernel(block, first, last):
    """Launch the request at `first` in the state `block`; without one, `last` is a role.

    Roles: the number of a worker (0 and up), -1 to close, and below that to spin so often (to measure a spin).
    """
    if first != 0:
        return launch(block, first)
    if last >= 0:
        work(block, block + SLOTS + SLOT * last)
    elif last == -1:
        close(block)
    else:
        spin(block, -last)
    return 0
