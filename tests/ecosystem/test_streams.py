"""Parquet's columns: each chunk of a column is decoded by one rank, whatever the groups of rows and the layouts."""

from __future__ import annotations

import os

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.comm.detect import get_communicator
from numpy_dist.formats import parquet
from numpy_dist.formats.dealing import RowStream, Want, deal
from numpy_dist.layout.default import default_layout

pytestmark = pytest.mark.spmd
NEEDS = ("pyarrow",)
ROWS = 3000
GROUPS = {
    "one": [ROWS],
    "many": [170] * 17 + [110],
    "two": [1000, 2000],
    "empty ones": [0, 0, 1400, 0, 1600, 0],
    "ragged": [1, 2500, 7, 492],
}


def plain(x):
    return x.gather() if isinstance(x, nd.DistArray) else x


def columns(rows=ROWS):
    return {
        "real": np.arange(float(rows)) / 3,
        "whole": np.arange(rows, dtype=np.int16),
        "date": np.arange(rows).astype("M8[ms]"),
        "flag": np.arange(rows) % 3 == 0,
        "missing": [None if i % 7 == 0 else i for i in range(rows)],
        "hole": [None if i % 5 == 0 else i / 2 for i in range(rows)],
        "text": [None if i % 11 == 0 else str(i) for i in range(rows)],
    }


def write(path, groups, given=None):
    """Rank 0 writes a file of groups of so many rows, for which the others wait; what pyarrow reads of it."""
    import pyarrow
    import pyarrow.parquet

    comm = get_communicator()
    comm.barrier()
    table = pyarrow.table(columns(sum(groups)) if given is None else given)
    if comm.rank == 0:
        with pyarrow.parquet.ParquetWriter(path, table.schema) as writer:
            start = 0
            for rows in groups:
                writer.write_table(table.slice(start, rows), row_group_size=max(rows, 1))
                start += rows
    comm.barrier()
    table = pyarrow.parquet.read_table(path)
    return {name: table.column(name).to_numpy() for name in table.column_names}


@pytest.fixture
def decoded(monkeypatch):
    """The (column, group, rows) that this rank decodes."""
    seen = []
    decode = parquet._Column.decode

    def noted(self, piece):
        for batch in decode(self, piece):
            seen.append((self._name, piece, len(batch)))
            yield batch

    monkeypatch.setattr(parquet._Column, "decode", noted)
    return seen


def counted(decoded):
    """For each (column, group) which ranks have decoded it, and how many rows; what was noted is forgotten."""
    found = {}
    for rank, seen in enumerate(get_communicator().allgather(decoded)):
        for name, piece, rows in seen:
            ranks = found.setdefault((name, piece), {})
            ranks[rank] = ranks.get(rank, 0) + rows
    decoded.clear()
    return found


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("batch", [64, 1 << 18])
def test_each_chunk_is_decoded_by_one_rank(groups, batch, tmp_path, monkeypatch, decoded):
    monkeypatch.setattr(parquet, "_BATCH", batch)
    lengths = GROUPS[groups]
    expected = write(tmp_path / "x.parquet", lengths)
    with nd.open(tmp_path / "x.parquet") as file:
        for name, values in expected.items():
            for key in (slice(None), slice(5, 2900), slice(2990, 3000), slice(7, 8), slice(0, 0), slice(2, 2900, 13)):
                found = file[name][key]
                assert found.dtype == values.dtype
                np.testing.assert_array_equal(plain(found), values[key])
                span = range(ROWS)[key]
                edges = np.cumsum([0, *lengths])
                touched = {
                    group
                    for group, (lo, hi) in enumerate(zip(edges[:-1], edges[1:], strict=True))
                    if len(span) and max(lo, span[0]) < min(hi, span[-1] + 1)
                }
                seen = counted(decoded)
                assert set(seen) == {(name, group) for group in touched}
                for (_, group), ranks in seen.items():
                    assert len(ranks) == 1
                    assert max(ranks.values()) <= lengths[group]
        np.testing.assert_array_equal(plain(file["real"][-3]), expected["real"][-3])
        np.testing.assert_array_equal(np.asarray(file["real"]), expected["real"])  # by each rank for itself


def test_rows_that_are_on_one_rank_are_decoded_there(tmp_path, decoded):
    comm = get_communicator()
    lengths = [hi - lo for ((lo, hi),) in map(default_layout((ROWS,), comm.size).box, range(comm.size))]
    write(tmp_path / "x.parquet", lengths)
    comm.barrier()
    with nd.open(tmp_path / "x.parquet") as file:
        comm.counters.reset()
        x = file["real"][...]
        assert comm.counters.messages == 0
        assert counted(decoded) == {("real", rank): {rank: rows} for rank, rows in enumerate(lengths)}
        np.testing.assert_array_equal(plain(x), columns()["real"])


def test_columns_of_one_group_are_dealt_out(tmp_path, decoded):
    comm = get_communicator()
    given = {str(number): np.arange(ROWS) + number for number in range(8)}
    given["short"] = np.arange(ROWS, dtype=np.int8)
    expected = write(tmp_path / "x.parquet", [ROWS], given)
    with nd.open(tmp_path / "x.parquet") as file:
        found = file.read()
        assert list(found) == list(given)
        for name, values in expected.items():
            assert isinstance(found[name], nd.DistArray) and found[name].dtype == values.dtype
        seen = counted(decoded)
        for name, values in expected.items():
            np.testing.assert_array_equal(plain(found[name]), values)
        assert all(len(ranks) == 1 for ranks in seen.values()) and len(seen) == 9
        shares = [
            sum(rank in ranks for (name, _), ranks in seen.items() if name != "short") for rank in range(comm.size)
        ]
        assert max(shares) - min(shares) <= 1
        some = file.read(["3", "short"])
        assert list(some) == ["3", "short"]
        np.testing.assert_array_equal(plain(some["short"]), expected["short"])
        with pytest.raises(KeyError, match="none"):
            file.read(["none"])


def test_arrays_of_other_formats_at_once(tmp_path):
    given = {"u": np.arange(60.0).reshape(6, 10), "run/t": np.arange(5)}
    nd.save(tmp_path / "x.h5", {name: nd.asarray(x) for name, x in given.items()})
    with nd.open(tmp_path / "x.h5") as file:
        found = file.read()
        assert set(found) == set(given)
        for name, values in given.items():
            np.testing.assert_array_equal(plain(found[name]), values)
        np.testing.assert_array_equal(plain(file["run"].read(["t"])["t"]), given["run/t"])
        with pytest.raises(KeyError, match="is a group"):
            file.read(["run"])


@pytest.mark.parametrize("where", ["first", "last"])
def test_an_error_of_one_rank_is_that_of_all(where, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_BATCH", 100)
    comm = get_communicator()
    write(tmp_path / "x.parquet", [ROWS])
    decode = parquet._Column.decode

    def fails(self, piece):
        batches = decode(self, piece)
        for number, batch in enumerate(batches):
            if number == (0 if where == "first" else 17) and self._name in ("real", "text"):
                raise OSError(5, "Input/output error")
            yield batch

    monkeypatch.setattr(parquet._Column, "decode", fails)
    with nd.open(tmp_path / "x.parquet") as file:
        for name in ("real", "text"):
            with pytest.raises(OSError, match="Input/output error") as caught:
                file[name][...]
            assert f"rank 0 has met this as it read <StoredArray {tmp_path / 'x.parquet'}" in caught.value.__notes__[0]
        np.testing.assert_array_equal(plain(file["whole"][...]), columns()["whole"])
        with pytest.raises(OSError, match="Input/output error"):
            file.read(["whole", "real"])
        comm.barrier()


def test_a_file_that_is_cut_off_or_damaged(tmp_path):
    comm = get_communicator()
    path = tmp_path / "x.parquet"
    write(path, [ROWS], {"real": np.random.default_rng(0).random(ROWS)})
    data = path.read_bytes()
    comm.barrier()

    def put(new):
        comm.barrier()
        if comm.rank == 0:
            path.write_bytes(new)
        comm.barrier()

    put(data[: len(data) // 2])
    with pytest.raises(Exception, match="Parquet|parquet"):
        nd.open(path)
    put(data)
    file = nd.open(path)
    put(data[: len(data) // 2])  # the same file, which is shorter now
    with pytest.raises(Exception) as caught:
        file["real"][...]
    assert f"has met this as it read <StoredArray {path}, real" in "".join(caught.value.__notes__)
    messages = comm.allgather((type(caught.value).__name__, str(caught.value), caught.value.__notes__))
    assert messages == [messages[0]] * comm.size
    put(b"PAR1" + bytes(2000) + data[2004:])  # headers of pages are gone
    with pytest.raises(Exception) as caught:
        nd.open(path)["real"][...]
    assert f"has met this as it read <StoredArray {path}, real" in "".join(caught.value.__notes__)
    put(data)
    if comm.size > 1:
        with pytest.raises(FileNotFoundError, match="none.parquet"):
            nd.open(tmp_path / ("none.parquet" if comm.rank == comm.size - 1 else "x.parquet"))
        write(tmp_path / "y.parquet", [1000, 2000], {"real": np.arange(float(ROWS))})
        with pytest.raises(ValueError, match="not the same for all ranks"):
            nd.open(tmp_path / ("y.parquet" if comm.rank else "x.parquet"))


def test_a_rank_without_memory_for_its_rows(tmp_path, monkeypatch):
    from numpy_dist import engine

    comm = get_communicator()
    if comm.size == 1:
        return
    write(tmp_path / "x.parquet", [ROWS])
    if comm.rank == 1:
        monkeypatch.setattr(engine.Scratch, "empty", lambda *args: (_ for _ in ()).throw(MemoryError("no room")))
    with nd.open(tmp_path / "x.parquet") as file, pytest.raises(MemoryError, match="no room"):
        file["real"][...]


def test_rows_are_fewer_at_once_where_they_are_long(tmp_path):
    import pyarrow.parquet

    given = {"short": np.arange(1000.0), "long": [f"{i:010000d}" for i in range(1000)]}
    write(tmp_path / "x.parquet", [1000], given)
    metadata = pyarrow.parquet.read_metadata(tmp_path / "x.parquet")
    assert parquet._rows_at_once(metadata, "short") == parquet._BATCH
    assert 100 < parquet._rows_at_once(metadata, "long") < 500
    with nd.open(tmp_path / "x.parquet") as file:
        assert plain(file["long"][990:]).tolist() == given["long"][990:]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_row_is_dealt_once(size, count):
    edges = tuple(np.cumsum([0, 40, 0, 300, 7, 153]).tolist())
    wants = []
    for number in range(count):
        lo, hi = 11 * number, 500 - 3 * number
        cuts = [lo + (hi - lo) * rank // size for rank in range(size + 1)]
        parts = list(zip(cuts[:-1], cuts[1:], strict=True)) if number % 2 == 0 else [(lo, hi)] * size
        wants.append(Want(RowStream(edges, 32), 8, parts))
    made = deal(wants, size)
    for number, want in enumerate(wants):
        rows, decoders = [], {}
        for rank in range(size):
            for kind in (made.own, made.shared):
                last = {}
                for step in kind[rank]:
                    if step.want != number:
                        continue
                    lo, hi = step.rows
                    assert 0 < hi - lo <= 32
                    assert edges[step.piece] <= lo and hi <= edges[step.piece + 1]
                    assert last.get(step.piece, lo) == lo  # one after the other
                    last[step.piece] = hi
                    decoders.setdefault(step.piece, set()).add(rank)
                    rows.extend(range(lo, hi))
        assert sorted(rows) == list(range(min(lo for lo, _ in want.parts), max(hi for _, hi in want.parts)))
        assert all(len(ranks) == 1 for ranks in decoders.values())
    if size > 1:
        assert sum(bool(made.own[rank] or made.shared[rank]) for rank in range(size)) == min(size, 4 * count)


def test_a_file_without_rows(tmp_path):
    write(tmp_path / "x.parquet", [], {"a": np.arange(0), "b": np.arange(0.0)})
    with nd.open(tmp_path / "x.parquet") as file:
        assert plain(file["a"][...]).shape == (0,) and plain(file.read()["b"]).dtype == float


def test_what_a_rank_reads_of_the_disk(tmp_path):
    """Bytes by the system's count: of a file of one group, all ranks together read little more than its size."""
    comm = get_communicator()
    if comm.name == "simulated" or not os.path.exists("/proc/self/io"):
        return
    rows = 1 << 20
    write(tmp_path / "x.parquet", [rows], {"a": np.random.default_rng(0).random(rows), "b": np.arange(rows)})

    def count():
        with open("/proc/self/io") as file:
            return int(file.readline().split()[1])

    with nd.open(tmp_path / "x.parquet") as file:
        comm.barrier()
        before = count()
        file.read()
        told = comm.allgather(count() - before)
    assert sum(told) < 1.2 * os.path.getsize(tmp_path / "x.parquet")
    if comm.size > 1:
        assert sum(n > 1 << 20 for n in told) == 2  # a column each


def test_all_rows_are_dealt_out_once_to_ranks_that_have_least_to_do() -> None:
    """As by looking at all ranks for each piece, which would take as long as there are pairs of both."""
    own = np.random.default_rng(1)
    for _ in range(200):
        size, rows = int(own.integers(1, 7)), int(own.integers(0, 60))
        edges = (0, *sorted(own.integers(0, rows + 1, own.integers(0, 6)).tolist()), rows)
        cuts = [0, *sorted(own.integers(0, rows + 1, size - 1).tolist()), rows]
        parts = list(zip(cuts, cuts[1:], strict=False))[:: int(own.choice([1, -1]))]
        dealt = deal([Want(RowStream(edges, 7), 8, parts)], size)
        loads, shared = [0] * size, []
        for piece, (start, stop) in enumerate(zip(edges, edges[1:], strict=False)):
            held = [max(0, min(hi, stop) - max(lo, start)) for lo, hi in parts]
            if sum(held) and max(held) == sum(held):
                loads[held.index(max(held))] += 8 * (stop - start)
                assert piece in {step.piece for step in dealt.own[held.index(max(held))]}
            elif sum(held):
                shared.append((piece, held, 8 * (stop - start)))
        for piece, held, cost in sorted(shared, key=lambda each: -each[2]):
            rank = min(range(size), key=lambda rank: (loads[rank], -held[rank], rank))
            loads[rank] += cost
            assert piece in {step.piece for step in dealt.shared[rank]}
        steps = [step.rows for steps in (*dealt.own, *dealt.shared) for step in steps]
        assert sorted(row for lo, hi in steps for row in range(lo, hi)) == list(range(rows))
