"""Archives that all ranks write: NumPy and `zipfile` read them, and they are complete or as they were before."""

from __future__ import annotations

import functools
import importlib
import io
import zipfile
import zlib
from operator import xor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.files import archives, writing, zip_records
from numpy_dist.files.checksums import PartialCrc32, moved_crc32
from numpy_dist.spmd_testing import run_simulated

streaming = importlib.import_module("numpy_dist.engine.data.streaming")  # the package has a function of this name
RANDOM = np.random.default_rng(0)
SHARDED = {
    "rows": RANDOM.integers(0, 9, (100, 30)).astype("f8"),
    "columns": np.asfortranarray(RANDOM.random((30, 100))),
    "big endian": np.arange(5000, dtype=">i4"),
    "axes": np.arange(6000, dtype="c8").reshape(10, 20, 30).transpose(2, 0, 1),
    "records": np.array([("a", 1), ("b", 2)] * 400, "U3,>i4"),
    "one": np.array([7]),
    "empty": np.zeros((0, 5)),
    "größe": np.arange(300.0),
}
PLAIN = {
    "scalar": np.float32(2.5),
    "number": 3,
    "array": np.arange(4000),
    "objects": np.array([{"a": 1}, None], dtype=object),
    "text": "text",
}


@pytest.fixture(params=[1 << 22, 5000])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """One piece of each array, and many."""
    monkeypatch.setattr(archives, "_PIECE", request.param)
    monkeypatch.setattr(archives, "_BLOCK", 2000 if request.param == 5000 else 1 << 20)
    monkeypatch.setattr(streaming, "PIECE_BYTES", request.param)
    return request.param


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_numpy_reads_what_ranks_have_written(ranks: int, save: Any, tmp_path: Path, pieces: int) -> None:
    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            made = {name: nd.asarray(array, order="K") for name, array in SHARDED.items()}
            save(tmp_path / "x", nd.asarray(SHARDED["one"]), **{"first": PLAIN["array"], **made, **PLAIN})
            save(tmp_path / "y.npz", x=nd.asarray(SHARDED["columns"], split=1), y=made["rows"][::-1, ::2])

    run_simulated(ranks, body)
    expected = {"arr_0": SHARDED["one"], "first": PLAIN["array"], **SHARDED, **PLAIN}
    if save is np.savez:
        np.savez(tmp_path / "numpys", SHARDED["one"], **{"first": PLAIN["array"], **SHARDED, **PLAIN})
        assert (tmp_path / "x.npz").read_bytes() == (tmp_path / "numpys.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        assert archive.testzip() is None
    with np.load(tmp_path / "x.npz", allow_pickle=True) as found:
        assert set(found) == set(expected)
        for name, array in expected.items():
            assert found[name].dtype == np.asarray(array).dtype and found[name].tolist() == np.asarray(array).tolist()
            assert found[name].flags.f_contiguous == np.asarray(array).flags.f_contiguous
    with np.load(tmp_path / "y.npz") as found:
        np.testing.assert_array_equal(found["x"], SHARDED["columns"])
        np.testing.assert_array_equal(found["y"], SHARDED["rows"][::-1, ::2])
    with zipfile.ZipFile(tmp_path / "y.npz") as archive:
        assert archive.testzip() is None


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_ranks_that_do_not_see_the_file_leave_it_to_rank_0(
    save: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identities = iter(range(9))
    monkeypatch.setattr(writing, "_identity", lambda descriptor: (next(identities), 0))

    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            save(tmp_path / "x.npz", a=nd.asarray(SHARDED["rows"]), b=PLAIN["array"], c=nd.asarray(SHARDED["columns"]))

    run_simulated(3, body)
    with np.load(tmp_path / "x.npz") as found:
        for name, array in zip("abc", (SHARDED["rows"], PLAIN["array"], SHARDED["columns"]), strict=True):
            np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_cannot_be_pickled_leaves_the_old_archive(save: Any, tmp_path: Path) -> None:
    class Unwilling:
        def __reduce__(self) -> Any:
            raise TypeError("not to be pickled")

    (tmp_path / "x.npz").write_bytes(b"old")

    def body() -> str:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            with pytest.raises(TypeError) as caught:
                save(tmp_path / "x.npz", a=nd.asarray(SHARDED["rows"]), b=np.array([Unwilling()], dtype=object))
            return str(caught.value)

    assert run_simulated(3, body) == ["not to be pickled"] * 3
    assert [file.name for file in tmp_path.iterdir()] == ["x.npz"] and (tmp_path / "x.npz").read_bytes() == b"old"


def test_checksums_of_runs_add_up() -> None:
    data = RANDOM.bytes(4000)
    edges = [0, 1, 10, 10, 700, 701, 3999, 4000]
    for ranks in (1, 2, 3):
        partial = [PartialCrc32(len(data)) for _ in range(ranks)]
        for number, (start, stop) in enumerate(zip(edges, edges[1:], strict=False)):
            partial[number % ranks].add(start, data[start:stop])
        assert functools.reduce(xor, (each.value for each in partial)) == zlib.crc32(data)
    zeros = 10**6
    assert moved_crc32(zlib.crc32(data), zeros) ^ zlib.crc32(bytes(zeros)) == zlib.crc32(data + bytes(zeros))
    with pytest.raises(ValueError, match="do not follow"):
        partial[-1].add(0, b"a")
    with pytest.raises(ValueError, match="there are only 3"):
        PartialCrc32(3).add(0, b"abcd")


def test_records_of_large_archives(tmp_path: Path) -> None:
    """Members that end, begin and lie beyond 4 GiB, in a file of holes, and more of them than 65535."""
    place, infos = 0, []
    with open(tmp_path / "x.zip", "wb") as file:
        for name, data in (("a", b""), ("b", b""), ("c", b"end")):
            info = zip_records.member(name, zipfile.ZIP_STORED)
            info.header_offset, info.CRC = place, zlib.crc32(data)
            info.file_size = info.compress_size = len(data) or 5 << 30
            header = zip_records.local_header(info)
            file.seek(place)
            file.write(header + data)
            place += len(header) + info.file_size
            infos.append(info)
        file.seek(place)
        file.write(zip_records.directory(infos, place))
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        found = [(info.filename, info.file_size, info.header_offset) for info in archive.infolist()]
        assert found == [(info.filename, info.file_size, info.header_offset) for info in infos]
        assert archive.read("c") == b"end"
        with archive.open("b") as opened:
            assert opened.read(9) == bytes(9)
    many = []
    for number in range(1 << 16):
        many.append(zip_records.member(str(number), zipfile.ZIP_STORED))
        many[-1].header_offset = 0
    archive = zipfile.ZipFile(io.BytesIO(zip_records.directory(many, 0)))
    assert archive.namelist() == [str(number) for number in range(1 << 16)]
