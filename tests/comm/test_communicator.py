"""Each operation of a communicator: on one rank, on simulated ranks, and, as an SPMD file, under MPI."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from numpy_dist.comm.base import SLOT_BYTES, Communicator
from numpy_dist.comm.detect import get_communicator
from numpy_dist.comm.simulated import run_simulated

pytestmark = pytest.mark.spmd

DTYPES = ["?", "i1", "<u2", ">i4", "f2", "f4", "f8", "c8", "c16", "S5", "U3", "M8[s]", "m8[ns]", "V6", "S0"]
STRUCTURED = np.dtype([("x", "f8"), ("tag", "S3"), ("pair", "i2", (2,))])

CHECKS: list[Callable[[], None]] = []


def check(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS.append(function)
    return function


@contextmanager
def small_messages(comm: Communicator, limit: int) -> Iterator[None]:
    """Cut messages as those above 2**31 bytes are cut."""
    comm.max_message = limit
    try:
        yield
    finally:
        del comm.max_message


def sample(dtype: np.dtype | str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    dtype = np.dtype(dtype)
    count = int(np.prod(shape)) * dtype.itemsize
    raw = np.random.default_rng(seed).integers(0, 2 if dtype.kind == "b" else 100, count).astype(np.uint8)
    return np.ndarray(shape, dtype, raw.tobytes()).copy()


def same(result: np.ndarray, expected: np.ndarray) -> bool:
    return result.dtype == expected.dtype and result.shape == expected.shape and result.tobytes() == expected.tobytes()


@check
def alltoall_numbers() -> None:
    comm = get_communicator()
    ranks = np.arange(comm.size)
    np.testing.assert_array_equal(comm.alltoall(100 * comm.rank + ranks), 100 * ranks + comm.rank)
    pairs = np.stack([comm.rank * ranks, -ranks], axis=1)
    np.testing.assert_array_equal(comm.alltoall(pairs), np.stack([comm.rank * ranks, 0 * ranks - comm.rank], axis=1))
    np.testing.assert_array_equal(comm.allsum(pairs), np.stack([ranks * ranks.sum(), -comm.size * ranks], axis=1))
    with pytest.raises(ValueError, match="numbers for"):
        comm.alltoall(np.zeros(comm.size + 1))


@check
def allgather_objects() -> None:
    comm = get_communicator()
    assert comm.allgather({"rank": comm.rank}) == [{"rank": r} for r in range(comm.size)]
    assert comm.allgather(None) == [None] * comm.size
    # Around the size of a slot, from nothing to more than one slot, and each rank differently.
    for n in (0, SLOT_BYTES - 60, SLOT_BYTES - 8, SLOT_BYTES, 5000):
        expected = [bytes([r]) * (n * r) for r in range(comm.size)]
        assert comm.allgather(expected[comm.rank]) == expected


@check
def bcast_objects() -> None:
    comm = get_communicator()
    for root in range(comm.size):
        for n in (0, 100, SLOT_BYTES, 3000):
            value = ["x" * n, root] if comm.rank == root else "ignored"
            assert comm.bcast(value, root=root) == ["x" * n, root]


@check
def gather_objects() -> None:
    comm = get_communicator()
    for root in range(comm.size):
        for n in (1, 400):
            result = comm.gather("y" * (n * comm.rank), root=root)
            assert result == (["y" * (n * r) for r in range(comm.size)] if comm.rank == root else None)


@check
def scatter_objects() -> None:
    comm = get_communicator()
    for root in range(comm.size):
        for n in (0, 400):
            objects = [("z" * n, r) for r in range(comm.size)] if comm.rank == root else None
            assert comm.scatter(objects, root=root) == ("z" * n, comm.rank)


@check
def scatter_of_a_wrong_number_raises_on_every_rank() -> None:
    comm = get_communicator()
    with pytest.raises(ValueError, match="one object for each"):
        comm.scatter([1] * (comm.size + 1) if comm.rank == 0 else None)
    with pytest.raises(ValueError, match="not None"):
        comm.scatter(None)
    comm.barrier()


@check
def roots_that_do_not_exist() -> None:
    comm = get_communicator()
    for root in (-1, comm.size):
        with pytest.raises(ValueError, match="no rank"):
            comm.bcast(1, root=root)
        with pytest.raises(ValueError, match="no rank"):
            comm.gather(1, root=root)


@check
def arrays_of_many_dtypes() -> None:
    comm = get_communicator()
    for dtype in [*DTYPES, STRUCTURED]:
        for shape in [(), (3,), (2, 3), (40, 5)]:
            expected = [sample(dtype, shape, r) for r in range(comm.size)]
            results = comm.allgather_array(expected[comm.rank])
            assert all(map(same, results, expected)), (dtype, shape)
            assert all(result.flags.writeable and result.flags.c_contiguous for result in results)


@check
def arrays_of_uneven_shapes() -> None:
    comm = get_communicator()
    for extent in (0, 1, 3, 300):
        expected = [sample("f8", (r * extent, 2), r) for r in range(comm.size)]
        assert all(map(same, comm.allgather_array(expected[comm.rank]), expected))
    # One rank has everything, with another number of dimensions.
    expected = [sample("i4", (50, 7) if r == comm.size - 1 else (0,), r) for r in range(comm.size)]
    assert all(map(same, comm.allgather_array(expected[comm.rank]), expected))


@check
def arrays_that_are_not_contiguous() -> None:
    comm = get_communicator()
    base = np.arange(60.0).reshape(6, 10) + comm.rank
    for view in (base[::2, ::-3], base.T, np.asfortranarray(base), np.broadcast_to(base[:1], (4, 10))):
        expected = [np.ascontiguousarray(view - comm.rank + r) for r in range(comm.size)]
        assert all(map(same, comm.allgather_array(view), expected))


@check
def arrays_of_objects_and_strings() -> None:
    comm = get_communicator()
    results = comm.allgather_array(np.array([comm.rank, "text", None], object))
    assert [list(result) for result in results] == [[r, "text", None] for r in range(comm.size)]
    texts = np.array(["a" * comm.rank * 300, "b"], np.dtypes.StringDType())
    assert [list(result) for result in comm.allgather_array(texts)] == [["a" * r * 300, "b"] for r in range(comm.size)]


@check
def the_result_owns_its_memory() -> None:
    comm = get_communicator()
    for n in (2, 500):
        array = np.zeros(n)
        results = comm.allgather_array(array)
        results[comm.rank][...] = 7
        assert not array.any()
        assert sum(result.any() for result in results) == 1


@check
def differing_dtypes_raise_on_every_rank() -> None:
    comm = get_communicator()
    array = np.zeros(3, "f4" if comm.rank == 0 else "f8")
    if comm.size == 1:
        comm.allgather_array(array)
        return
    with pytest.raises(ValueError, match="dtypes of the ranks differ"):
        comm.allgather_array(array)


def ring(comm: Communicator, sent: np.ndarray, received: np.ndarray) -> None:
    comm.exchange([((comm.rank + 1) % comm.size, sent)], [((comm.rank - 1) % comm.size, received)])


@check
def a_ring_of_messages() -> None:
    comm = get_communicator()
    before = (comm.rank - 1) % comm.size
    for dtype in [*DTYPES, STRUCTURED]:
        for shape in [(), (0,), (4,), (3, 2), (1000, 3)]:
            received = sample(dtype, shape, 99)
            ring(comm, sample(dtype, shape, comm.rank), received)
            assert same(received, sample(dtype, shape, before)), (dtype, shape)


@check
def fortran_order_is_contiguous_too() -> None:
    comm = get_communicator()
    received = np.zeros((3, 4), order="F")
    ring(comm, np.asfortranarray(np.arange(12.0).reshape(3, 4) + comm.rank), received)
    assert np.array_equal(received, np.arange(12.0).reshape(3, 4) + (comm.rank - 1) % comm.size)


@check
def large_messages_overtake_nothing() -> None:
    comm = get_communicator()
    before, after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    sizes = [200_000, 1, 0, 70_000]
    received = [np.zeros(n) for n in sizes]
    pending = comm.start_exchange(
        [(after, np.full(n, float(comm.rank))) for n in sizes], [(before, a) for a in received]
    )
    while comm.name == "mpi" and not pending.done():  # simulated ranks switch in `wait` only
        pass
    pending.wait()
    pending.wait()
    assert pending.done()
    assert all((a == before).all() for a in received)


@check
def everyone_with_everyone() -> None:
    comm = get_communicator()
    received = [np.zeros(r + 1, np.int64) for r in range(comm.size)]
    sends = [(r, np.full(comm.rank + 1, 10 * comm.rank + r)) for r in range(comm.size)]
    comm.exchange(sends, list(enumerate(received)))
    assert all((a == 10 * r + comm.rank).all() for r, a in enumerate(received))


@check
def several_exchanges_at_once_with_tags() -> None:
    comm = get_communicator()
    before, after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    results = {tag: np.zeros(2) for tag in (5, 0, 32000)}
    if comm.size == 1:
        for tag, target in results.items():
            comm.exchange([(0, np.full(2, tag))], [(0, target.astype(int))], tag)
        return
    receives = {tag: comm.start_exchange([], [(before, target)], tag) for tag, target in results.items()}
    sends = [comm.start_exchange([(after, np.full(2, float(tag)))], [], tag) for tag in reversed(results)]
    for pending in [*sends, *receives.values()]:
        pending.wait()
    assert all((target == tag).all() for tag, target in results.items())


@check
def messages_in_chunks() -> None:
    comm = get_communicator()
    with small_messages(comm, 64):
        for shape in [(0,), (8,), (9,), (33, 5)]:
            received = np.zeros(shape)
            ring(comm, sample("f8", shape, comm.rank), received)
            assert same(received, sample("f8", shape, (comm.rank - 1) % comm.size))
            expected = [sample("f4", (r + shape[0],), r) for r in range(comm.size)]
            assert all(map(same, comm.allgather_array(expected[comm.rank]), expected))
    with small_messages(comm, SLOT_BYTES):
        value = "t" * 1000
        assert comm.allgather(value * comm.rank) == [value * r for r in range(comm.size)]
        assert comm.bcast(value if comm.rank == 0 else None) == value
        assert comm.gather(value) in (None, [value] * comm.size)
        assert comm.scatter([value] * comm.size if comm.rank == 0 else None) == value


@check
def arguments_that_cannot_be_sent() -> None:
    comm = get_communicator()
    good, me = np.zeros(4), comm.rank
    with pytest.raises(ValueError, match="contiguous"):
        comm.start_exchange([(me, np.zeros((4, 4))[:, 1])], [])
    with pytest.raises(ValueError, match="Python objects"):
        comm.start_exchange([(me, np.array([None]))], [])
    with pytest.raises(ValueError, match="no rank"):
        comm.start_exchange([(comm.size, good)], [])
    with pytest.raises(ValueError, match="tag"):
        comm.start_exchange([], [], tag=-1)
    with pytest.raises(ValueError, match="sends itself"):
        comm.start_exchange([(me, good)], [])
    fixed = np.zeros(4)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        comm.start_exchange([], [(me, fixed)])
    with pytest.raises(TypeError, match="pickled"):
        comm.allgather(comm)
    comm.barrier()


@check
def counting() -> None:
    comm = get_communicator()
    comm.counters.reset()
    comm.barrier()
    assert (comm.counters.messages, comm.counters.bytes, comm.counters.collectives) == (0, 0, 1)
    ring(comm, np.zeros(10), np.zeros(10))
    remote = 0 if comm.size == 1 else 1
    assert (comm.counters.messages, comm.counters.bytes, comm.counters.collectives) == (remote, 80 * remote, 1)
    with small_messages(comm, 16):
        ring(comm, np.zeros(10), np.zeros(10))
    assert (comm.counters.messages, comm.counters.bytes) == (2 * remote, 160 * remote)
    before = comm.counters.bytes
    comm.allgather_array(np.zeros(1000))
    assert comm.counters.collectives == 2
    assert 8000 <= comm.counters.bytes - before < 8000 + SLOT_BYTES
    comm.counters.reset()
    assert comm.counters.messages == comm.counters.bytes == comm.counters.collectives == 0


@check
def ranks_of_this_machine() -> None:
    comm = get_communicator()
    assert comm.node_size == comm.size
    assert comm.allgather(comm.node_rank) == list(range(comm.size))
    assert (comm.native is not None) == (comm.name == "mpi")
    assert f"rank {comm.rank} of {comm.size}" in repr(comm)


@pytest.mark.parametrize("function", CHECKS, ids=lambda function: function.__name__)
def test_operation(function: Callable[[], None]) -> None:
    function()


@pytest.mark.parametrize("nranks", [1, 2, 3, 7])
@pytest.mark.parametrize("function", CHECKS, ids=lambda function: function.__name__)
def test_simulated(function: Callable[[], None], nranks: int) -> None:
    if get_communicator().size > 1:
        pytest.skip("simulated ranks are tested in the run with one rank")
    run_simulated(nranks, function)


def main() -> None:
    """All checks, for jobs that start this file as a program."""
    for function in CHECKS:
        function()
    comm = get_communicator()
    print(f"rank {comm.rank} of {comm.size}: {len(CHECKS)} checks passed")


if __name__ == "__main__":
    main()
