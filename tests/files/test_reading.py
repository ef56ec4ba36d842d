"""Files are read part by part, and what one rank cannot read is told on all."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.comm.detect import get_communicator
from numpy_dist.files import pieces, reading
from numpy_dist.spmd_testing import run_simulated

ARRAYS = {
    "rows": np.arange(240.0).reshape(40, 6),
    "columns": np.asfortranarray(np.arange(60.0).reshape(3, 20)),
    "axes": np.arange(120, dtype="c8").reshape(4, 5, 6),
    "line": np.arange(101, dtype=">i2"),
    "records": np.array([("a", 1), ("b", 2)] * 9, "U3,>i4"),
    "dates": np.arange("2001", "2031", dtype="M8[Y]"),
}


@pytest.fixture(params=["runs", "rows", "long rows"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is read run by run, or with what lies between, of some rows or of one."""
    if request.param != "runs":
        monkeypatch.setattr(pieces, "_FEW", 0)
        monkeypatch.setattr(pieces, "_CHUNK", 100 if request.param == "rows" else 30)
    else:
        monkeypatch.setattr(pieces, "_CHUNK", 100)


@pytest.mark.parametrize("name", ARRAYS)
def test_what_is_read_is_what_was_written(name: str, tmp_path: Path, ways: None) -> None:
    array = ARRAYS[name]
    np.save(tmp_path / "x.npy", array)
    array.tofile(tmp_path / "x")

    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            x = nd.load(tmp_path / "x.npy")
            assert x.dtype == array.dtype and x.flags.f_contiguous == array.flags.f_contiguous
            assert x.nbytes == 0 or get_communicator().size == 1 or x._storage is not None
            np.testing.assert_array_equal(x.gather(), array)
            for split in range(min(array.ndim, 1)):
                y = nd.fromfile(tmp_path / "x", array.dtype, split=split)
                np.testing.assert_array_equal(y.gather(), array.ravel())
            z = nd.fromfile(tmp_path / "x", array.dtype, 7, offset=array.itemsize)
            np.testing.assert_array_equal(z.gather(), array.ravel()[1:8])

    for ranks in (1, 2, 4):
        run_simulated(ranks, body)


def told(read: Callable[[int], Any], ranks: int) -> list[str]:
    """What each rank is told."""

    def body() -> str:
        comm = get_communicator()
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            try:
                read(comm.rank)
            except Exception as error:
                return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
            return ""

    return run_simulated(ranks, body)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_file_that_ends_early(ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, ARRAYS["rows"])
    path.write_bytes(path.read_bytes()[:-17])
    texts = told(lambda rank: nd.load(path), ranks)
    assert len(set(texts)) == 1 and str(path) in texts[0]
    with pytest.raises(ValueError) as caught:
        np.load(path)
    if "Failed to read all data" in str(caught.value):  # NumPy >= 2.3
        assert str(caught.value) in texts[0]


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_file_that_becomes_shorter(ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.npy"
    np.save(path, ARRAYS["rows"])
    data = path.read_bytes()
    read = reading.read_box

    def shortened(*args: Any) -> None:
        path.write_bytes(data[:-9])
        read(*args)

    monkeypatch.setattr(reading, "read_box", shortened)
    texts = told(lambda rank: nd.load(path), ranks)
    assert len(set(texts)) == 1 and "has become shorter" in texts[0]
    assert ranks == 1 or "rank 2 has met this" in texts[0]


def test_a_file_that_is_gone_for_one_rank(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ARRAYS["rows"])
    for load in (nd.load, nd.fromfile):
        texts = told(lambda rank, load=load: load(tmp_path / ("y.npy" if rank == 1 else "x.npy")), 3)
        assert len(set(texts)) == 1 and "FileNotFoundError" in texts[0] and "y.npy" in texts[0]
        assert "rank 1 has met this" in texts[0]


def test_a_file_that_is_another_one_for_one_rank(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ARRAYS["rows"])
    np.save(tmp_path / "y.npy", ARRAYS["rows"][1:])
    texts = told(lambda rank: nd.load(tmp_path / ("y.npy" if rank == 2 else "x.npy")), 3)
    assert len({text.replace("y.npy", "x.npy") for text in texts}) == 1
    assert "rank 2 an array of shape (39, 6)" in texts[0]


def test_what_is_long_is_compared_by_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same may be pickled in several ways: then it is compared itself, as where a rank sees something else."""
    monkeypatch.setattr("numpy_dist.files.reading.MOST_TOLD", 0)
    name = "".join(["na", "me"])

    def look(other: bool) -> tuple[tuple[str, str], bytes, int]:
        rank = engine.runtime().rank
        twice = (name, name) if rank else (name, "".join(name))
        found = (*twice, "other") if other and rank == 1 else twice
        comm = engine.runtime().comm
        told = reading.agreed(comm, "file", lambda: found)
        return told, pickle.dumps(found, protocol=5), comm.counters.collectives

    found = run_simulated(2, look, False)
    assert found[0][0] == found[1][0] == ("name", "name")
    assert (found[0][1] == found[1][1]) == (found[0][2] == 1)
    with pytest.raises(ValueError, match="is not the same for all ranks: rank 0 sees .*, rank 1 .*other"):
        run_simulated(2, look, True)


@pytest.mark.parametrize("ranks", [1, 2])
def test_other_files_are_numpys(ranks: int, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(b"no array")
    texts = told(lambda rank: nd.load(tmp_path / "x.npy"), ranks)
    with pytest.raises(ValueError) as caught:
        np.load(tmp_path / "x.npy")
    assert texts == [f"ValueError: {caught.value}\nin {tmp_path / 'x.npy'}"] * ranks


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("saver", [np.savez, np.savez_compressed])
def test_archives_are_read_in_parts(name: str, saver: Callable[..., None], tmp_path: Path) -> None:
    array, path = ARRAYS[name], tmp_path / "x.npz"
    saver(path, first=np.arange(7), x=array, objects=np.array([None]))

    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"), nd.load(path, allow_pickle=True) as file:
            x = file["x"]
            assert x.dtype == array.dtype and x.flags.f_contiguous == array.flags.f_contiguous
            assert get_communicator().size == 1 or x._storage is not None
            np.testing.assert_array_equal(x.gather(), array)
            np.testing.assert_array_equal(file["x.npy"].gather(), array)
            assert file["objects"].tolist() == [None]
            with pytest.raises(KeyError):
                file["none"]

    for ranks in (1, 2, 4):
        run_simulated(ranks, body)


def test_an_archive_that_is_gone_for_one_rank(tmp_path: Path) -> None:
    for name in ("x.npz", "y.npz"):
        np.savez(tmp_path / name, x=ARRAYS["rows"])

    def read(rank: int) -> None:
        file = nd.load(tmp_path / ("y.npz" if rank == 1 else "x.npz"))
        if rank == 1:
            (tmp_path / "y.npz").unlink()
        file["x"]

    texts = told(read, 3)
    assert len(set(texts)) == 1 and "FileNotFoundError" in texts[0] and "rank 1 has met this" in texts[0]


def test_an_archive_whose_member_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.random.default_rng(1).random(1000))
    data = bytearray(path.read_bytes())
    data[5000] ^= 255
    path.write_bytes(data)
    texts = told(lambda rank: nd.load(path)["x"], 3)
    assert len(set(texts)) == 1 and texts[0]


def test_memory_that_one_rank_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "x.npy", ARRAYS["rows"])
    make = engine.from_filler

    def short(*args: Any) -> Any:
        if get_communicator().rank == 1:
            raise MemoryError("no room for this part")
        return make(*args)

    monkeypatch.setattr(engine, "from_filler", short)
    for read in (nd.load, lambda path: nd.open(path)[...]):
        texts = told(lambda rank, read=read: read(tmp_path / "x.npy"), 3)
        assert len(set(texts)) == 1 and "MemoryError: no room for this part" in texts[0]
        assert "rank 1 has met this" in texts[0]


def test_an_archive_that_has_other_members_for_one_rank(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=ARRAYS["rows"])
    np.savez(tmp_path / "y.npz", y=ARRAYS["rows"])
    texts = told(lambda rank: nd.load(tmp_path / ("y.npz" if rank == 1 else "x.npz"))["x"], 3)
    assert all("is not the same for all ranks" in text and "rank 1 an archive of y" in text for text in texts)


@pytest.mark.parametrize("file", ["gone", "shorter", "another dtype"])
def test_a_memory_map_that_is_not_the_same_for_all_ranks(file: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ARRAYS["rows"])
    if file == "shorter":
        (tmp_path / "y.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-9])
    if file == "another dtype":
        np.save(tmp_path / "y.npy", ARRAYS["rows"].astype(">f8"))
    texts = told(lambda rank: nd.load(tmp_path / ("y.npy" if rank == 1 else "x.npy"), mmap_mode="r"), 3)
    assert len({text.replace("y.npy", "x.npy") for text in texts}) == 1 and "rank 1" in texts[0]


def test_an_archive_that_is_cut_off_for_one_rank(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", ARRAYS["rows"])
    (tmp_path / "y.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:-9])
    texts = told(lambda rank: nd.load(tmp_path / ("y.npz" if rank == 1 else "x.npz"))["arr_0"], 3)
    assert len(set(texts)) == 1 and "BadZipFile" in texts[0] and "rank 1 has met this" in texts[0]


@pytest.mark.parametrize("read", [nd.loadtxt, nd.genfromtxt])
def test_a_text_that_is_gone_for_one_rank(read: Callable[[Path], Any], tmp_path: Path) -> None:
    np.savetxt(tmp_path / "x.txt", ARRAYS["rows"])
    texts = told(lambda rank: read(tmp_path / ("y.txt" if rank == 1 else "x.txt")), 3)
    assert len(set(texts)) == 1 and "FileNotFoundError" in texts[0] and "rank 1 has met this" in texts[0]
    gone = told(lambda rank: read(tmp_path / "y.txt"), 3)
    with pytest.raises(FileNotFoundError) as caught:
        {nd.loadtxt: np.loadtxt, nd.genfromtxt: np.genfromtxt}[read](tmp_path / "y.txt")
    assert set(gone) == {f"FileNotFoundError: {caught.value}"}


EVERY_RANKS = {
    "loadtxt": lambda path: nd.loadtxt(path, max_rows=30),
    "loadtxt of texts": lambda path: nd.loadtxt(path, dtype=str),
    "genfromtxt": lambda path: nd.genfromtxt(path, names=["a", "b", "c", "d", "e", "f"]),
    "fromregex": lambda path: nd.fromregex(path, r"(\S+)", [("a", float)]),
    "fromregex by its name": lambda path: nd.fromregex(file=path, regexp=r"(\S+)", dtype=[("a", float)]),
}


@pytest.mark.parametrize("name", EVERY_RANKS)
def test_a_text_that_every_rank_reads(name: str, tmp_path: Path) -> None:
    read = EVERY_RANKS[name]
    np.savetxt(tmp_path / "x.txt", ARRAYS["rows"])
    (tmp_path / "z.txt").write_text((tmp_path / "x.txt").read_text() * 2)
    texts = told(lambda rank: read(tmp_path / ("y.txt" if rank == 1 else "x.txt")), 3)
    assert len(set(texts)) == 1 and "FileNotFoundError" in texts[0] and "rank 1 has met this" in texts[0]
    if name != "loadtxt":  # which reads so many rows of either
        texts = told(lambda rank: read(tmp_path / ("z.txt" if rank == 2 else "x.txt")), 3)
        assert len({text.replace("z.txt", "x.txt") for text in texts}) == 1 and "is not the same" in texts[0]


def test_what_numpy_cannot_parse_is_told_with_the_files_name(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("1 2\n" * 9 + "1 x\n")
    texts = told(lambda rank: nd.loadtxt(tmp_path / "x.txt"), 2)
    assert len(set(texts)) == 1 and "could not convert string 'x'" in texts[0] and f"in {tmp_path}" in texts[0]


def test_a_member_that_every_rank_reads_is_damaged_for_one_rank(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.array(100_000 * " " + "text", object))  # far behind its header
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[data.index(b"text")] ^= 1
    (tmp_path / "y.npz").write_bytes(bytes(data))

    def read(rank: int) -> Any:
        return nd.load(tmp_path / ("y.npz" if rank == 1 else "x.npz"), allow_pickle=True)["x"]

    texts = told(read, 3)
    assert len({text.replace("y.npz", "x.npz") for text in texts}) == 1
    assert "BadZipFile" in texts[0] and "rank 1 has met this" in texts[0]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_member_that_is_not_as_it_was_written(order: Any, ranks: int, tmp_path: Path) -> None:
    path, array = tmp_path / "x.npz", np.arange(3000.0).reshape(50, 60, order=order)
    np.savez(path, x=array)
    data = bytearray(path.read_bytes())
    data[data.index(array.tobytes("A")) + 20_000] ^= 1
    path.write_bytes(data)
    texts = told(lambda rank: nd.load(path)["x"], ranks)
    with pytest.raises(zipfile.BadZipFile) as caught, np.load(path) as archive:
        archive["x"]
    assert len(set(texts)) == 1 and texts[0].startswith(f"BadZipFile: {caught.value}\n") and str(path) in texts[0]


def test_versions_of_the_format(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.lib.format.write_array(path.open("wb"), np.zeros(3, [("中", "f8")]), (3, 0))
    with pytest.raises(ValueError, match=r"version \(3, 0\).*numpy_dist\.load\(path\) reads it"):
        nd.open(path)
    assert nd.load(path).shape == (3,)
    path.write_bytes(path.read_bytes().replace(b"NUMPY\3", b"NUMPY\4"))
    with pytest.raises(ValueError, match=r"we only support format version"):
        nd.open(path)


@pytest.mark.parametrize("file", ["gone", "shorter", "shorter than asked for"])
def test_numpys_memory_maps_are_made_by_all_ranks(file: str, tmp_path: Path) -> None:
    ARRAYS["rows"].tofile(tmp_path / "x")
    if file != "gone":
        (tmp_path / "y").write_bytes((tmp_path / "x").read_bytes()[:-16])
    shape = (240,) if file == "shorter than asked for" else None
    texts = told(lambda rank: nd.memmap(tmp_path / ("y" if rank == 1 else "x"), float, "r", shape=shape), 3)
    assert len({text.replace("/y ", "/x ") for text in texts}) == 1 and "rank 1" in texts[0]
    with pytest.raises((OSError, ValueError)) as caught:
        np.memmap(tmp_path / "y", float, "r", shape=(240,))
    assert file == "shorter" or texts[0].startswith(f"{type(caught.value).__name__}: {caught.value}")
    assert str(tmp_path) in texts[0]


def test_a_memory_map_that_is_made_is_made_once(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1" * 99)

    def body() -> None:
        comm = get_communicator()
        made = nd.memmap(tmp_path / "x", "i8", "w+", shape=(50, 3))
        assert type(made) is np.memmap and made.mode == "w+" and not made.any()
        comm.barrier()
        made[comm.rank] = comm.rank + 1
        comm.barrier()
        assert made[:, 0].tolist() == [1, 2, 3] + [0] * 47  # the other ranks' rows, too
        assert isinstance(made, nd.memmap) and issubclass(np.memmap, nd.memmap) and not isinstance(1, nd.memmap)

    run_simulated(3, body)


def test_memory_maps_of_one_rank_are_compared_before_they_are_read(tmp_path: Path) -> None:
    ARRAYS["rows"].tofile(tmp_path / "x")
    (tmp_path / "y").write_bytes((tmp_path / "x").read_bytes()[:-16])
    texts = told(lambda rank: nd.asarray(np.memmap(tmp_path / ("y" if rank == 1 else "x"), float, "r")), 3)
    assert len(set(texts)) <= 2 and all("rank 1 an array of shape (238,)" in text for text in texts)

    def cut_off(rank: int) -> None:
        given = np.memmap(tmp_path / "x", float, "r")
        get_communicator().barrier()
        (tmp_path / "x").write_bytes(b"")  # to read the map now would end the process
        nd.asarray(given[4:])

    texts = told(cut_off, 3)
    assert len(set(texts)) == 1 and "x has become shorter since it was mapped" in texts[0]
