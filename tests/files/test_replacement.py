"""Files are complete or as they were before, whatever goes wrong, and nothing is left beside them."""

from __future__ import annotations

import errno
import importlib
import os
import stat
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.files import archives, pieces, replacement, writing
from numpy_dist.files.replacement import Replacement, replacing
from numpy_dist.formats import hdf5
from numpy_dist.spmd_testing import run_simulated
from tests.files.failing import failing_calls

streaming = importlib.import_module("numpy_dist.engine.data.streaming")  # the package has a function of this name
NEW = np.arange(3000.0).reshape(60, 50)
RECORDS = np.zeros(9, "i4,f8")  # which no rank but 0 writes
SAVERS: dict[str, Callable[[Path, Any], None]] = {
    "save": lambda path, x: np.save(path, x),
    "columns": lambda path, x: np.save(path, nd.asarray(x, split=1)),
    "savez": lambda path, x: np.savez(path, x=x, z=[1, 2]),
    "savez_compressed": lambda path, x: np.savez_compressed(path, x=x, z=[1, 2]),
    "hdf5": lambda path, x: nd.save(path, {"x": x, "y": nd.asarray(RECORDS), "z": np.ones(3)}),
    "savetxt": lambda path, x: np.savetxt(path, x),
    "tofile": lambda path, x: x.tofile(path),
    "dump": lambda path, x: x.dump(path),
}
SUFFIXES = {"save": "x.npy", "columns": "x.npy", "savez": "x.npz", "savez_compressed": "x.npz", "hdf5": "x.h5"}


@pytest.fixture(params=["unnamed", "named"])
def names(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Replacements without a name, and with one, as on file systems that know no others."""
    if request.param == "named":
        monkeypatch.setattr(replacement, "_UNNAMED", 0)
    return request.param


def outcome(save: Callable[[Path, Any], None], path: Path) -> str:
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
        x = nd.asarray(NEW)
        try:
            save(path, x)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""


def contents(path: Path) -> Any:
    """The bytes of a file; of an archive or HDF5 file what is in it: one rank writes another file than several."""
    if path.suffix == ".h5" and path.read_bytes() != b"old":
        import h5py

        with h5py.File(path) as file:
            return {name: file[name][...].tolist() for name in file}
    if not zipfile.is_zipfile(path):
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.slow
@pytest.mark.parametrize("saver", SAVERS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_call_that_fails_leaves_the_old_file(
    saver: str, ranks: int, tmp_path: Path, names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "PIECE_BYTES", 8000)
    monkeypatch.setattr(archives, "_PIECE", 8000)
    if saver == "hdf5":
        pytest.importorskip("h5py")
    path = tmp_path / SUFFIXES.get(saver, "x")
    assert run_simulated(ranks, outcome, SAVERS[saver], path) == [""] * ranks
    complete = contents(path)
    seen = set()
    for which in range(1, 200):
        path.write_bytes(b"old")
        with failing_calls(which, replacement, pieces, writing, hdf5) as failing:
            told = run_simulated(ranks, outcome, SAVERS[saver], path)
        assert [file.name for file in tmp_path.iterdir()] == [path.name]
        assert len(set(told)) == 1, (failing.failed, told)
        if not failing.failed:
            assert told[0] == "" and contents(path) == complete
            break
        seen.add(failing.failed)
        if path.read_bytes() == b"old":
            assert "No space left on device" in told[0]
        else:  # the folder could not be synchronised, or another way was found
            assert contents(path) == complete
    else:
        raise AssertionError("no end of calls")
    assert {"open", "fsync", "replace"} <= seen


def test_errors_are_those_of_open(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "no/x", tmp_path / "folder", "", f"{tmp_path}/x/", bytes(tmp_path / "no/x")):
        with pytest.raises(OSError) as expected:
            open(path, "wb").close()
        with pytest.raises(OSError) as caught:
            Replacement(path)
        assert (type(caught.value), str(caught.value)) == (type(expected.value), str(expected.value))


def test_links_and_permissions_stay(tmp_path: Path, names: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere/x", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"new")
        assert target.read_bytes() == b"old"
    assert link.is_symlink() and target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["elsewhere", "link", "x"]


def test_new_files_have_the_usual_permissions(tmp_path: Path, names: str) -> None:
    (tmp_path / "usual").write_bytes(b"")
    with replacing(tmp_path / "ours") as file:
        file.write(b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_file_that_may_not_be_written_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = tmp_path / "x.npy", os.open
    path.write_bytes(b"old")

    def read_only(name: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), name)
        return real(name, flags, *args, **kwargs)

    monkeypatch.setattr(os, "access", lambda *args: False)
    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(OSError) as caught:
        Replacement(path)
    assert caught.value.errno == errno.EROFS and caught.value.filename == str(path)
    assert path.read_bytes() == b"old"


def test_an_exception_leaves_nothing(tmp_path: Path, names: str) -> None:
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "x") as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()

    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            nd.asarray(NEW).tofile(pipe)

    run_simulated(2, body)
    reader.join(10)
    assert read == [NEW.tobytes()] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_ranks_that_do_not_see_the_file_leave_it_to_rank_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = writing._identity
    monkeypatch.setattr(writing, "_identity", lambda descriptor: (threading.get_ident(), identity(descriptor)[1]))

    def body() -> None:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            np.save(tmp_path / "x.npy", nd.asarray(NEW))

    run_simulated(3, body)
    assert (np.load(tmp_path / "x.npy") == NEW).all()


@pytest.mark.parametrize(("split", "few"), [(0, 1000), (1, 1000), (1, 0)])  # rows, runs of columns, pieces
def test_the_disk_begins_before_all_is_written(
    split: int, few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "PIECE_BYTES", 8000)
    monkeypatch.setattr(pieces, "_FEW", few)
    monkeypatch.setattr(pieces, "_LONG", 100 if few else 1000)  # a run of columns has 200 bytes
    order: list[Any] = []

    def begin(descriptor: int, *what: int) -> int:
        order.append(what)
        return -1  # it is a hint

    monkeypatch.setattr(pieces, "_sync_file_range", lambda: begin)
    monkeypatch.setattr(os, "fsync", lambda descriptor: order.append("fsync"))
    path = tmp_path / "x.npy"

    def save(path: Path, x: Any) -> None:
        np.save(path, nd.asarray(x, split=split))

    assert run_simulated(2, outcome, save, path) == ["", ""]
    begun = order[: order.index("fsync")]
    covered = {byte for place, nbytes, flag in begun for byte in range(place, place + nbytes) if flag == 2}
    assert covered == set(range(path.stat().st_size - NEW.nbytes, path.stat().st_size))
    assert (np.load(path) == NEW).all()


def test_an_error_of_the_writer_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No space left on device: '.*x'") as caught, replacing(tmp_path / "x"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.errno == errno.ENOSPC and not list(tmp_path.iterdir())
