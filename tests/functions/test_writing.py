"""Files of distributed arrays: NumPy's bytes; no rank ever gathers more than a piece."""

from __future__ import annotations

import importlib
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import engine
from numpy_dist.dispatch.functions import input_output_writing
from numpy_dist.distarray import methods
from numpy_dist.files import archives
from numpy_dist.spmd_testing import run_simulated

streaming = importlib.import_module("numpy_dist.engine.data.streaming")  # the package has a function of this name
ARRAYS = {
    "rows": np.arange(240.0).reshape(40, 6),
    "columns": np.asfortranarray(np.arange(60.0).reshape(3, 20)),
    "long rows": np.arange(200.0).reshape(2, 100),
    "axes": np.arange(60, dtype="c8").reshape(3, 4, 5).transpose(2, 0, 1),
    "scalar": np.array(2.5),
    "empty": np.zeros((0, 5)),
    "no columns": np.zeros((3, 0)),
    "text": np.array(["x", "yy"] * 20),
    "records": np.array([("a", 1), ("b", 2)] * 9, "U3,>i4"),
}
SAVERS = {
    "save": lambda path, x: np.save(path, x),
    "savez": lambda path, x: np.savez(path, x, b=x[:2] if x.ndim else x, c=[1, 2], d=None),
    "savez_compressed": lambda path, x: np.savez_compressed(path, x=x),
    "savetxt": lambda path, x: np.savetxt(path, x, "%s", header="a\nb", footer="c", comments="! "),
    "savetxt, compressed": lambda path, x: np.savetxt(f"{path}.bz2", x, "%s"),
    "savetxt, two bytes": lambda path, x: np.savetxt(path, x, "%s", encoding="utf-16"),
    "savetxt, another format": lambda path, x: np.savetxt(path, x, "%d %d"),
    "tofile": lambda path, x: x.tofile(path),
    "tofile as text": lambda path, x: x.tofile(path, ", "),
    "tofile in another format": lambda path, x: x.tofile(path, " ", "%d"),
}


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Pieces of 100 bytes; the bytes of those that were gathered."""
    seen: list[int] = []
    gather = streaming.gather

    def noted(x: Any, *how: Any) -> Any:
        seen.append(x._array.nbytes)
        return gather(x, *how)

    monkeypatch.setattr(streaming, "PIECE_BYTES", 100)
    monkeypatch.setattr(input_output_writing, "_TEXT_PIECE", 100)
    monkeypatch.setattr(methods, "_TEXT_PIECE", 100)
    monkeypatch.setattr(archives, "_PIECE", 100)
    monkeypatch.setattr(archives, "_BLOCK", 40)
    monkeypatch.setattr(streaming, "gather", noted)
    monkeypatch.setattr(engine, "gather", noted)
    return seen


def contents(file: Path) -> Any:
    """The bytes of a file; of a compressed archive those of its members: pieces are compressed otherwise than all."""
    if not zipfile.is_zipfile(file):
        return file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        if all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist()):
            return file.read_bytes()
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def outcome(save: Any, path: Path, x: Any) -> str | None:
    """What a call raised, as text."""
    try:
        save(path, x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.slow
@pytest.mark.parametrize("saver", SAVERS)
@pytest.mark.parametrize("name", ARRAYS)
def test_the_bytes_are_numpys(saver: str, name: str, tmp_path: Path, small_pieces: list[int]) -> None:
    array, save = ARRAYS[name], SAVERS[saver]
    (tmp_path / "numpys").mkdir()
    raised = outcome(save, tmp_path / "numpys/file", array)
    written = {file.name: contents(file) for file in (tmp_path / "numpys").iterdir()}
    for ranks in (1, 2, 3, 5):
        folder = tmp_path / str(ranks)
        folder.mkdir()

        def ours(folder: Path = folder) -> str | None:
            with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
                return outcome(save, folder / "file", nd.asarray(array, order="K"))

        assert run_simulated(ranks, ours) == [raised] * ranks
        found = {file.name: contents(file) for file in folder.iterdir()}
        # After an error NumPy leaves an empty file, where an array on several ranks leaves none.
        assert found == written or (raised and not found)
    row = 0 if "savetxt" not in saver or array.ndim < 2 else array[:1].nbytes
    assert max(small_pieces, default=0) <= max(100, row)


def test_more_than_the_memory_budget_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "PIECE_BYTES", 1 << 14)
    plain = np.arange(1 << 17, dtype="f8")

    def body() -> None:
        x = nd.asarray(plain)
        with nd.config(MEMORY_BUDGET=plain.nbytes // 2, FALLBACK="error"):
            with pytest.raises(nd.GatherError):
                x.gather()
            np.save(tmp_path / "x.npy", x)
            with open(tmp_path / "x.bin", "wb") as file:
                x.tofile(file)
            monkeypatch.setattr(streaming, "PIECE_BYTES", 1 << 30)
            x.tofile(tmp_path / "y.bin")  # each rank its part
            with pytest.raises(nd.GatherError), open(tmp_path / "z.bin", "wb") as file:
                x.tofile(file)

    run_simulated(2, body)
    assert (np.load(tmp_path / "x.npy") == plain).all() and (np.fromfile(tmp_path / "x.bin") == plain).all()
    assert (np.fromfile(tmp_path / "y.bin") == plain).all()


class Full(io.RawIOBase):
    """A file on a disk that is full after so many writes."""

    def __init__(self, writes: int) -> None:
        self.left = writes

    def write(self, data: Any) -> int:
        self.left -= 1
        if self.left < 0:
            raise OSError(28, "No space left on device")
        return len(data)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("writes", [0, 1, 3])
def test_what_goes_wrong_is_raised_on_every_rank(ranks: int, writes: int, small_pieces: list[int]) -> None:
    def body() -> float:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            x = nd.asarray(np.arange(100.0))
            with pytest.raises(OSError, match="No space left"):
                np.save(Full(writes), x)
            with pytest.raises(OSError, match="No space left"):
                np.savetxt(Full(writes), x)
            return float(x.sum())

    assert run_simulated(ranks, body) == [4950.0] * ranks


class Odd(io.RawIOBase):
    """A file with an error that cannot be pickled."""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1

    def write(self, data: Any) -> int:
        class LocalError(ValueError): ...

        raise LocalError("of this place")


def test_any_error_is_raised_on_every_rank() -> None:
    def body() -> list[str]:
        texts = []
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            x = nd.asarray(np.arange(100.0))
            for write in (lambda: np.save(Odd(), x), lambda: x.tofile(Odd()), lambda: x.dump(Odd())):
                with pytest.raises(Exception) as caught:
                    write()
                texts.append(str(caught.value)[-13:])
        return texts

    assert len({tuple(texts) for texts in run_simulated(3, body)}) == 1


def test_files_in_memory_are_each_ranks_own(small_pieces: list[int]) -> None:
    def body() -> bytes:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            file = io.BytesIO()
            np.savez(file, nd.asarray(ARRAYS["rows"]), x=nd.asarray(np.ones(3)))
            return file.getvalue()

    expected = io.BytesIO()
    np.savez(expected, ARRAYS["rows"], x=np.ones(3))
    assert run_simulated(3, body) == [expected.getvalue()] * 3


def test_lists_of_arrays_are_left_to_the_fallback() -> None:
    def body() -> Any:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            x = nd.asarray(np.arange(6.0))
            with pytest.raises(nd.FallbackError, match="lists of distributed arrays"):
                np.savez(io.BytesIO(), x, y=[x, x])

    run_simulated(2, body)


def test_pieces_follow_each_other() -> None:
    for shape in ((7,), (3, 50), (2, 3, 40), (), (0, 3), (1, 1, 300)):
        array = np.arange(int(np.prod(shape)), dtype="i4").reshape(shape)
        for limit in (4, 100, 1 << 20):
            parts = [array[(*key, ...)] for key in engine.parts_in_order(shape, 4, limit=limit)]
            assert (np.concatenate([part.ravel() for part in parts]) == array.ravel()).all()
            assert all(part.nbytes <= max(limit, 4) for part in parts)
