"""Files of a program that is planned: counted as they would be written, and left as they are."""

from __future__ import annotations

import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist
from numpy_dist import engine
from numpy_dist.checkpoint import restore, save, wait
from numpy_dist.comm.simulated import run_simulated
from numpy_dist.scaling.counted import JobPlan
from numpy_dist.scaling.machine import MachineSpeeds
from numpy_dist.scaling.simulation import plan_job, small_run
from numpy_dist.scaling.text import job_lines
from numpy_dist.settings import config

ELEMENTS = 60 * 500


def _array() -> Any:
    return numpy_dist.arange(ELEMENTS) * 1.0


def npy(folder: Path) -> None:
    np.save(folder / "a.npy", _array())


def fortran(folder: Path) -> None:
    numpy_dist.save(folder / "a.npy", _array().reshape(60, 500).T)


def npz(folder: Path) -> None:
    np.savez(folder / "a.npz", x=_array(), y=_array().reshape(60, 500), few=np.arange(5))


def compressed(folder: Path) -> None:
    np.savez_compressed(folder / "a.npz", x=_array(), few=np.arange(5))


def raw(folder: Path) -> None:
    _array().tofile(folder / "a.bin")


def text(folder: Path) -> None:
    np.savetxt(folder / "a.txt", _array().reshape(60, 500))


def zipped_text(folder: Path) -> None:
    np.savetxt(folder / "a.txt.gz", _array().reshape(60, 500))


def dumped(folder: Path) -> None:
    _array().dump(folder / "a.pickle")


def open_file(folder: Path) -> None:
    with open(folder / "a.npy", "wb") as file:
        np.save(file, _array())


def hdf5(folder: Path) -> None:
    pytest.importorskip("h5py")
    numpy_dist.save(folder / "a.h5", {"x": _array(), "y": _array().reshape(60, 500)})


def zarr(folder: Path) -> None:
    pytest.importorskip("zarr")
    numpy_dist.save(folder / "a.zarr", {"x": _array(), "y": _array().reshape(60, 500)})


def parquet(folder: Path) -> None:
    pytest.importorskip("pyarrow")
    numpy_dist.save(folder / "a.parquet", {"x": _array(), "y": _array()})


def checkpoints(folder: Path) -> None:
    x = _array()
    for step in range(3):
        save(folder, {"x": x, "same": x, "few": np.arange(5), "step": step}, step=step, keep=2)
        if step:
            x += 1.0


def in_the_background(folder: Path) -> None:
    x = _array()
    for step in range(3):
        save(folder, {"x": x, "step": step}, step=step, background=True)
        x += 1.0
        wait()


PROGRAMS = [npy, fortran, npz, compressed, raw, text, zipped_text, dumped, open_file, hdf5, zarr, parquet, checkpoints]
PROGRAMS += [in_the_background]


def _really(program: Any, folder: Path) -> dict[str, int]:
    program(folder)
    engine.flush()
    rt = engine.runtime()
    return {"peak": rt.pool.peak, **vars(rt.comm.counters)}


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_written_is_counted(program: Any, ranks: int, tmp_path: Path) -> None:
    folder, empty = tmp_path / "full", tmp_path / "none"  # of one length: messages have them
    folder.mkdir()
    empty.mkdir()
    with config(MIN_SHARD_BYTES=0, AT_ONCE=0, BACKEND="numpy"):
        expected = run_simulated(ranks, _really, program, folder)
        planned = plan_job(lambda: program(empty), ranks).ranks
    assert [rank.ending for rank in planned] == [""] * ranks
    assert list(empty.iterdir()) == []
    for rank, found in zip(planned, expected, strict=True):
        assert (rank.peak, rank.messages, rank.collectives) == tuple(
            found[name] for name in ("peak", "messages", "collectives")
        )
        about = 8 if program in (npz, compressed) else 2  # numbers of processes, and checksums, as texts
        assert abs(rank.bytes - found["bytes"]) <= about
    written = sum(rank.totals.written for rank in planned)
    there = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if program is zipped_text:
        assert 0 < written < there  # zeros
    elif program in (compressed, zarr, dumped, parquet, checkpoints, in_the_background):
        assert written >= ELEMENTS * 8  # as if nothing could be compressed, nor be removed again
    elif program is hdf5:
        assert 0 < there - written < 10_000  # its headers
    elif program is text:
        assert written == pytest.approx(there, rel=0.02)
    else:
        assert written == there
    lines = job_lines(JobPlan(ranks, planned), MachineSpeeds())
    assert any(line.startswith("written ") for line in lines)


def test_files_are_kept(tmp_path: Path) -> None:
    """Of all ways to change one, which a script goes on after."""
    for name in ("kept.npy", "kept.txt", "removed.txt", "moved.txt"):
        (tmp_path / name).write_text("worth something")
    np.save(tmp_path / "there.npy", np.arange(3000.0))

    def script() -> None:
        x = _array()
        os.makedirs(tmp_path / "new" / "folder", exist_ok=True)
        assert (tmp_path / "new" / "folder").is_dir()
        np.save(tmp_path / "kept.npy", x)
        np.save(tmp_path / "new" / "plain.npy", np.arange(5))
        (tmp_path / "kept.txt").write_text(f"{float(x.sum())}\n")
        with open(tmp_path / "log.txt", "a") as file:
            print("some text", file=file)
        with open(tmp_path / "state.pickle", "wb") as binary:
            pickle.dump([1, 2, 3], binary)
        os.remove(tmp_path / "removed.txt")
        (tmp_path / "moved.txt").rename(tmp_path / "elsewhere.txt")
        with tempfile.NamedTemporaryFile() as temporary:
            temporary.write(b"1234")
            temporary.flush()
            assert os.path.getsize(temporary.name) == 4
        with tempfile.NamedTemporaryFile(dir=tmp_path, delete=False) as temporary:
            temporary.write(b"1234")
        os.replace(temporary.name, tmp_path / "kept.npy")  # as careful programs write
        os.link(tmp_path / "kept.npy", tmp_path / "linked.npy")
        with tempfile.TemporaryDirectory() as folder:
            np.savetxt(os.path.join(folder, "x.txt"), x)
            np.savetxt(os.path.join(folder, "few.txt"), np.arange(5.0))
        y = numpy_dist.load(tmp_path / "there.npy")
        np.savetxt(tmp_path / "kept.txt", y * 2.0)
        assert y.shape == (3000,)

    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for rank in plan_job(script, 3).ranks:
        assert rank.ending == ""
        assert rank.totals.written > 8
    small_run(script)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (other,) = plan_job(lambda: np.memmap(tmp_path / "kept.npy", mode="r+"), 1).ranks
    assert "kept.npy would be changed, and a plan writes no files" in other.ending


def test_what_was_written_is_not_there(tmp_path: Path) -> None:
    def script() -> Any:
        np.save(tmp_path / "a.npy", _array())
        return numpy_dist.load(tmp_path / "a.npy")

    job = plan_job(script, 1)
    assert "FileNotFoundError" in job.ranks[0].ending
    assert "is not there to be read" in job_lines(job, MachineSpeeds())[-1]


def test_checkpoints_are_restored_and_kept(tmp_path: Path) -> None:
    with config(MIN_SHARD_BYTES=0):
        save(tmp_path, {"x": _array(), "step": 7}, step=7)

    def script() -> list[int]:
        state = restore(tmp_path)
        for step in range(state["step"] + 1, state["step"] + 4):
            state["x"] = state["x"] + 1.0
            save(tmp_path, {**state, "step": step}, step=step, keep=1)
        return [state["step"]]

    before = sorted(path.name for path in tmp_path.rglob("*"))
    with config(MIN_SHARD_BYTES=0):
        ranks = plan_job(script, 3).ranks
    assert [rank.ending for rank in ranks] == [""] * 3
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert sum(rank.totals.written for rank in ranks) >= 3 * 8 * ELEMENTS
