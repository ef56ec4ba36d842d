"""Checkpoints: complete or not there, at any number of ranks."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import checkpoint, engine
from numpy_dist.checkpoint import folder as folders
from numpy_dist.checkpoint import saving, snapshot, writer
from numpy_dist.checkpoint.checksum import CHECKSUMS
from numpy_dist.comm.detect import get_communicator
from numpy_dist.engine.data import streaming
from numpy_dist.errors import CheckpointWarning
from numpy_dist.files import direct, pieces, replacement
from numpy_dist.spmd_testing import run_simulated
from tests.files.failing import failing_calls

PLAIN: dict[str, np.ndarray] = {
    "rows": np.arange(240.0).reshape(40, 6),
    "columns": np.asfortranarray(np.arange(60.0).reshape(3, 20)),
    "big end": np.arange(101, dtype=">i2"),
    "records": np.array([("a", 1), ("b", 2)] * 9, "U3,>i4"),
    "scalar": np.array(2.5),
    "empty": np.zeros((0, 5)),
}


def on_ranks(ranks: int, body: Callable[..., Any], *args: Any) -> list[Any]:
    def sharded() -> Any:
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            return body(*args)

    return run_simulated(ranks, sharded)


def state_of(step: int) -> dict[str, Any]:
    found = {name: nd.asarray(array, order="K") for name, array in PLAIN.items()}
    return {**found, "split": nd.asarray(PLAIN["rows"], split=1), "view": found["rows"][5:30:3, ::-1], "step": step}


def save(folder: Path, step: int, background: bool = False) -> None:
    checkpoint.save(folder, state_of(step), step=step, background=background)
    checkpoint.wait()


def check(folder: Path) -> int:
    state = checkpoint.restore(folder)
    for name, array in PLAIN.items():
        assert type(state[name]) is nd.DistArray and state[name].dtype == array.dtype
        assert state[name].flags.f_contiguous == array.flags.f_contiguous
        np.testing.assert_array_equal(state[name].gather(), array)
    np.testing.assert_array_equal(state["view"].gather(), PLAIN["rows"][5:30:3, ::-1])
    if engine.runtime().size > 1:
        assert engine.layout_of(state["split"]).cut_axes == (1,)
    return state["step"]


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("ranks", [1, 3])
def test_any_number_of_ranks_goes_on(
    ranks: int, background: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "_FEW", 0)  # also redistributed
    on_ranks(ranks, save, tmp_path, 7, background)
    for others in (1, 2, 4, 5):
        assert on_ranks(others, check, tmp_path) == [7] * others


def test_numpy_reads_the_files(tmp_path: Path) -> None:
    on_ranks(2, save, tmp_path, 7)
    entries = folders.read_manifest(folders.step_path(tmp_path, 7))["arrays"]
    np.testing.assert_array_equal(np.load(tmp_path / "data" / entries[0]["file"]), PLAIN["rows"])
    plain = next(entry for entry in entries if entry["member"])
    assert plain["member"] in np.load(tmp_path / "data" / plain["file"])


def test_the_newest_are_kept_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/of-a-killed-job.npy").write_bytes(b"")

    def body() -> list[int]:
        x = nd.asarray(PLAIN["rows"])
        for step in range(5):
            x += 1
            checkpoint.save(tmp_path, {"x": x}, step=step, keep=2)
        return checkpoint.steps(tmp_path)

    assert on_ranks(3, body) == [[3, 4]] * 3
    assert len(list((tmp_path / "data").iterdir())) == 2


def test_the_names_of_new_folders_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synchronised: list[Path] = []
    monkeypatch.setattr(saving, "sync_folder", synchronised.append)
    new = tmp_path / "runs/first"
    on_ranks(2, lambda: [checkpoint.save(new, step, step=step) for step in (1, 2)])
    assert synchronised == [tmp_path, tmp_path / "runs", new]


def test_how_many_are_kept_is_a_whole_number(tmp_path: Path) -> None:
    for keep, error in ((0, ValueError), (2.5, TypeError)):
        with pytest.raises(error):
            checkpoint.save(tmp_path, 1, step=1, keep=keep)  # type: ignore[arg-type]
    assert checkpoint.latest(tmp_path) is None


def test_going_on_from_an_older_one_makes_the_newest(tmp_path: Path) -> None:
    def body() -> Any:
        for step in (10, 20, 30, 15):
            checkpoint.save(tmp_path, step, step=step)
        return checkpoint.latest(tmp_path), checkpoint.restore(tmp_path), checkpoint.restore(tmp_path, 20)

    assert on_ranks(2, body) == [(15, 15, 20)] * 2


def test_a_damaged_one_is_removed_before_others(tmp_path: Path) -> None:
    def body() -> Any:
        for step in (10, 20, 30):
            checkpoint.save(tmp_path, step, step=step)
        damaged(folders.step_path(tmp_path, 30), "short")
        with pytest.warns(nd.CheckpointWarning, match="step-000000000030"):
            found = checkpoint.restore(tmp_path)
        checkpoint.save(tmp_path, 15, step=15, keep=1)
        return found, checkpoint.steps(tmp_path), len(list(tmp_path.glob("*.json")))

    assert on_ranks(1, body) == [(20, [15], 1)]


def test_what_has_not_changed_is_not_written_again(tmp_path: Path) -> None:
    def files() -> list[str]:
        newest = folders.manifests(tmp_path)[-1][1]
        assert isinstance(newest, dict)
        return [entry["file"] for entry in newest["arrays"]]

    def body() -> None:
        x, y, z = (nd.asarray(PLAIN["rows"]) for _ in range(3))
        seen = []
        changes = lambda: None, lambda: x.fill(1), lambda: y.__setitem__((0, 0), 5), lambda: None, lambda: z.local
        for step, change in enumerate(changes):
            change()
            checkpoint.save(tmp_path, [x, y, z, x[3:]], step=step, background=step % 2 == 1, keep=None)
            checkpoint.wait()
            seen.append(files())
        same = [[a == b for a, b in zip(one, two, strict=True)] for one, two in zip(seen, seen[1:], strict=False)]
        assert same == [[False, True, True, False], [True, False, True, True], [True] * 4, [True, True, False, True]]
        np.testing.assert_array_equal(checkpoint.restore(tmp_path, 2)[1].gather()[0, 0], 5)
        np.testing.assert_array_equal(checkpoint.restore(tmp_path, 1)[1].gather()[0, 0], 0)

    on_ranks(1, body)
    on_ranks(3, body)


def writing_waits(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let all writing of parts wait for an event."""
    go_on = threading.Event()
    write = writer.write_box

    def late(*args: Any) -> None:
        assert go_on.wait(20)
        write(*args)

    monkeypatch.setattr(writer, "write_box", late)
    return go_on


def test_what_the_program_does_meanwhile_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = writing_waits(monkeypatch)

    def body() -> None:
        x, plain = nd.asarray(PLAIN["rows"]), np.arange(3)
        checkpoint.save(tmp_path, {"x": x, "plain": plain}, step=1, background=True)
        x += 1
        plain += 1
        assert float(x[0, 0]) == 1.0
        engine.runtime().comm.barrier()
        go_on.set()
        state = checkpoint.restore(tmp_path)
        np.testing.assert_array_equal(state["x"].gather(), PLAIN["rows"])
        np.testing.assert_array_equal(state["plain"], np.arange(3))

    on_ranks(3, body)


@pytest.mark.parametrize("cached", [1 << 12, 1 << 18])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_copies_have_the_checksums_of_what_is_written(
    ranks: int, cached: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the strides in memory, the pieces of the file and the parts that are copied at once."""
    monkeypatch.setattr(snapshot, "_CACHED", cached)
    monkeypatch.setattr(streaming, "PIECE_BYTES", 1 << 20)
    wide = np.random.default_rng(0).random((701, 1026))

    def body() -> None:
        x = nd.asarray(wide)
        state = {"whole": x, "strided": x[:, 3:-2:2], "flat": nd.asarray(wide.ravel()[:-5]), "turned": x[::-1].T}
        checkpoint.save(tmp_path, state, step=1, background=True)
        checkpoint.wait()

    on_ranks(ranks, body)
    for entry in folders.read_manifest(folders.step_path(tmp_path, 1))["arrays"]:
        stored = np.load(tmp_path / "data" / entry["file"])
        in_order = stored.T if stored.flags.f_contiguous and not stored.flags.c_contiguous else stored
        assert sum(np.prod([hi - lo for lo, hi in box]) for box, _ in entry["pieces"]) == stored.size
        assert len(entry["pieces"]) >= 3
        for box, checksum in entry["pieces"]:
            piece = np.ascontiguousarray(in_order[tuple(slice(*pair) for pair in box)])
            assert CHECKSUMS["sums"](pieces.bytes_of(piece)) == checksum


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_busy_disk_may_be_left_alone(ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = writing_waits(monkeypatch)

    def body() -> list[bool]:
        x, saved = nd.asarray(PLAIN["rows"]), []
        for step in (1, 2):
            saved.append(checkpoint.save(tmp_path, {"x": x}, step=step, background=True, if_busy="skip"))
            x += 1
        engine.runtime().comm.barrier()
        go_on.set()
        checkpoint.wait()
        saved.append(checkpoint.save(tmp_path, {"x": x}, step=3, background=True, if_busy="skip"))
        checkpoint.wait()
        assert checkpoint.steps(tmp_path) == [1, 3]
        np.testing.assert_array_equal(checkpoint.restore(tmp_path, 1)["x"].gather(), PLAIN["rows"])
        np.testing.assert_array_equal(checkpoint.restore(tmp_path, 3)["x"].gather(), PLAIN["rows"] + 2)
        return saved

    assert on_ranks(ranks, body) == [[True, False, True]] * ranks


def test_the_memory_of_copies_is_used_again(tmp_path: Path) -> None:
    def body() -> None:
        x = nd.asarray(PLAIN["rows"])
        pool = engine.runtime().pool
        held = []
        for step in range(4):
            x += 1
            engine.force(x)
            checkpoint.save(tmp_path, {"x": x}, step=step, background=True)
            checkpoint.wait()
            held.append((pool.held, pool.free))
        assert len(set(held)) == 1 and pool.free > PLAIN["rows"].nbytes / 2

    on_ranks(2, body)


def test_the_first_version_of_the_format_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = "numpy_dist checkpoint, version 1"
    monkeypatch.setattr(folders, "_FORMAT", old)
    monkeypatch.setattr(writer, "CHECKSUM", "crc32")
    on_ranks(3, save, tmp_path, 7)
    path = folders.step_path(tmp_path, 7)
    content = folders.read_manifest(path)
    for entry in content["arrays"]:
        entry.pop("checksum", None)
    folders.write_manifest(tmp_path, content)
    monkeypatch.undo()
    assert old.encode() in path.read_bytes()
    assert on_ranks(2, check, tmp_path) == [7] * 2
    damaged(tmp_path / "data" / content["arrays"][0]["file"], "one bit")
    with pytest.raises(nd.CheckpointError, match="checksum"):
        on_ranks(2, check, tmp_path)


def damaged(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "gone":
        path.unlink()
    elif how == "short":
        path.write_bytes(data[:-3])
    else:
        data[-20] ^= 4
        path.write_bytes(data)


DAMAGES = [(what, how) for what in ("array", "plain", "manifest") for how in ("gone", "short", "one bit")]
DAMAGES.remove(("manifest", "gone"))  # then there is no such checkpoint


@pytest.mark.parametrize(("what", "how"), DAMAGES)
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_damaged_one_is_named_and_the_one_before_is_taken(ranks: int, what: str, how: str, tmp_path: Path) -> None:
    def make() -> None:
        save(tmp_path, 1)
        save(tmp_path, 2)

    on_ranks(3, make)
    files = folders.read_manifest(folders.step_path(tmp_path, 2))["files"]
    name = next(file for file in files if file.endswith(".npz" if what == "plain" else ".npy"))
    path = folders.step_path(tmp_path, 2) if what == "manifest" else tmp_path / "data" / name
    damaged(path, how)

    def body() -> None:
        with pytest.raises(nd.CheckpointError, match=path.name):
            checkpoint.restore(tmp_path, 2)

    with pytest.warns(nd.CheckpointWarning, match=path.name):
        assert on_ranks(ranks, check, tmp_path) == [1] * ranks
    on_ranks(ranks, body)


@pytest.mark.parametrize("ranks", [1, 3])
def test_damaged_archives_of_which_zipfile_tells_in_other_ways(ranks: int, tmp_path: Path) -> None:
    """No end of a name, a method of compression that nobody knows, a flag, a member of another name."""
    state = {"a": np.arange(3), "b": np.arange(4)}
    on_ranks(1, lambda: [checkpoint.save(tmp_path, {**state, "step": step}, step=step) for step in (1, 2)])
    path = tmp_path / "data" / folders.read_manifest(folders.step_path(tmp_path, 2))["plain"]
    data = path.read_bytes()
    directory = data.index(b"PK\1\2")
    for place, value in ((29, 32), (directory + 8, 32), (directory + 8, 1), (directory + 11, 128), (directory + 50, 1)):
        path.write_bytes(data[:place] + bytes([data[place] ^ value]) + data[place + 1 :])
        with pytest.warns(nd.CheckpointWarning, match=path.name):
            found = on_ranks(ranks, lambda: checkpoint.restore(tmp_path)["step"])
        assert found == [1] * ranks


@pytest.mark.parametrize("ranks", [1, 3])
def test_dates_keep_their_byte_order(ranks: int, tmp_path: Path) -> None:
    plain = np.arange(5).astype("M8[25s]").astype(">M8[25s]")
    on_ranks(ranks, lambda: checkpoint.save(tmp_path, [plain, nd.asarray(plain), plain[:0]], step=1))

    def body() -> None:
        found = checkpoint.restore(tmp_path)
        for x, expected in zip(found, (plain, plain, plain[:0]), strict=True):
            assert x.dtype == expected.dtype
            np.testing.assert_array_equal(x.gather() if engine.is_handle(x) else x, expected)

    on_ranks(ranks, body)


def test_if_all_are_damaged_nothing_begins_anew(tmp_path: Path) -> None:
    on_ranks(1, save, tmp_path, 1)
    damaged(folders.step_path(tmp_path, 1), "short")
    for ranks in (1, 3):
        with pytest.raises(nd.CheckpointError, match="step-000000000001"):
            on_ranks(ranks, lambda: checkpoint.restore(tmp_path))


def test_there_is_none(tmp_path: Path) -> None:
    def body() -> Any:
        with pytest.raises(nd.CheckpointError, match="no checkpoint of step 3"):
            checkpoint.restore(tmp_path / "no", 3)
        return checkpoint.restore(tmp_path / "no"), checkpoint.latest(tmp_path), checkpoint.steps(tmp_path)

    assert on_ranks(2, body) == [(None, None, [])] * 2


def test_states_that_differ_are_told_on_all_ranks(tmp_path: Path) -> None:
    def body() -> None:
        rank = engine.runtime().rank
        with pytest.raises(ValueError, match="rank 0 and rank 2 have not the same arrays"):
            checkpoint.save(tmp_path, [nd.asarray(PLAIN["rows"]), np.zeros(1 + (rank == 2))], step=1)
        with pytest.raises(TypeError, match="state is a"):
            checkpoint.save(tmp_path, object() if rank == 1 else 1, step=1)
        assert checkpoint.latest(tmp_path) is None

    on_ranks(3, body)


def test_what_waits_for_the_program_is_saved_where_it_comes_to_lie(tmp_path: Path) -> None:
    def body() -> None:
        x = nd.asarray(PLAIN["rows"])
        y = np.sqrt(x[1:]) + x[:-1]
        np.save(tmp_path / "y.npy", y * 2)
        checkpoint.save(tmp_path, {"y": y, "t": (y + 1).T, "m": np.maximum(x[::2], 3)}, step=1)
        state = checkpoint.restore(tmp_path)
        wanted = np.sqrt(PLAIN["rows"][1:]) + PLAIN["rows"][:-1]
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wanted * 2)
        np.testing.assert_array_equal(state["y"].gather(), wanted)
        np.testing.assert_array_equal(state["t"].gather(), (wanted + 1).T)
        np.testing.assert_array_equal(state["m"].gather(), np.maximum(PLAIN["rows"][::2], 3))
        engine.runtime().comm.barrier()

    for ranks in (1, 2, 3, 5):
        on_ranks(ranks, body)


@pytest.mark.parametrize("ranks", [1, 3])
def test_bad_arguments(ranks: int, tmp_path: Path) -> None:
    def body() -> None:
        for wrong in ({"step": -1}, {"step": 1, "keep": 0}, {"step": 1, "if_busy": "no"}):
            with pytest.raises(ValueError):
                checkpoint.save(tmp_path, 1, **wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="state is a"):
            checkpoint.save(tmp_path, object(), step=1)
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(OSError):
            checkpoint.save(tmp_path / "file", 1, step=1)
        assert checkpoint.latest(tmp_path) is None

    on_ranks(ranks, body)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("background", [False, True])
def test_a_call_that_fails_leaves_the_old_checkpoint(ranks: int, background: bool, tmp_path: Path) -> None:
    def attempt() -> str:
        state = {"x": nd.asarray(PLAIN["rows"]), "y": np.arange(3)}
        try:
            checkpoint.save(tmp_path, state, step=2, background=background)
            checkpoint.wait()
        except nd.CheckpointError as error:
            return "\n".join([str(error), *getattr(error, "__notes__", ())])
        return ""

    on_ranks(ranks, save, tmp_path, 1)
    files = sorted(path.name for path in (tmp_path / "data").iterdir())
    for which in range(1, 100):
        with failing_calls(which, replacement, pieces, direct, writer) as failing:
            told = on_ranks(ranks, attempt)
        assert len(set(told)) == 1
        if not failing.failed:
            assert told[0] == ""
            break
        if told[0]:
            assert "No space left on device" in told[0] or "could not write" in told[0]
            assert ranks == 1 or "has met this" in told[0]
        if folders.step_path(tmp_path, 2).exists():  # all was done but for the last look at the folder
            folders.step_path(tmp_path, 2).unlink()
        else:
            assert told[0], failing.failed
        assert on_ranks(ranks, check, tmp_path) == [1] * ranks
        on_ranks(ranks, lambda: checkpoint.save(tmp_path, state_of(1), step=1))  # what is left goes
        assert len(list((tmp_path / "data").iterdir())) == len(files)
    else:
        raise AssertionError("no end of calls")


@pytest.mark.parametrize("place", [20, 21], ids=["a quotation mark", "the byte order"])
def test_a_header_that_is_not_as_it_was_written(place: int, tmp_path: Path) -> None:
    def body() -> None:
        for step in (1, 2):
            checkpoint.save(tmp_path, nd.arange(60.0) + step, step=step)
        comm = get_communicator()
        if comm.rank == 0:
            (file,) = (tmp_path / "data").glob("000000000002-*.npy")
            data = bytearray(file.read_bytes())
            data[place] ^= 2  # < becomes >
            file.write_bytes(data)
        comm.allgather(None)
        with pytest.warns(CheckpointWarning, match="header"):
            found = checkpoint.restore(tmp_path)
        assert found[0] == 1

    on_ranks(1, body)
    on_ranks(2, body)


@pytest.mark.parametrize("step", [1.5, "1", None])
def test_steps_are_whole_numbers(step: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        checkpoint.save(tmp_path, 1, step=step)


@pytest.mark.parametrize("early", [True, False])
def test_ranks_meet_twice(early: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ranks have to say is told at once, twice more where rank 0 is still writing or the folder is a new one."""
    if not early:
        monkeypatch.setattr(saving, "_prepared_early", lambda *args: None)

    def body() -> list[str]:
        calls: list[str] = []
        x, y = nd.asarray(PLAIN["rows"]), nd.asarray(PLAIN["big end"])
        checkpoint.save(tmp_path, {"x": x, "y": y}, step=1, background=True)
        x += 1
        y += 1
        engine.force(x)
        comm = engine.runtime().comm
        saving._session(comm).writing.join()  # type: ignore[union-attr]
        comm.barrier()
        for name in ("allgather", "bcast", "barrier"):
            call = getattr(comm, name)

            def counted(*args: Any, call: Any = call, name: str = name) -> Any:
                calls.append(name)
                return call(*args)

            monkeypatch.setattr(comm, name, counted)
        checkpoint.save(tmp_path, {"x": x, "y": y}, step=2, background=True)
        met = list(calls)
        checkpoint.wait()
        return met

    more = [] if early else ["bcast", "allgather"]
    assert on_ranks(2, body) == [["allgather", *more, "allgather"]] * 2


def test_another_folder_and_one_that_was_removed(tmp_path: Path) -> None:
    """Whether an array was written before is asked anew, in files that are there."""

    def body() -> None:
        comm, x = engine.runtime().comm, nd.asarray(PLAIN["rows"])
        for name in ("a", "a", "b", "a", "b"):
            checkpoint.save(tmp_path / name, {"x": x}, step=1, background=True)
            checkpoint.wait()
            comm.barrier()
            np.testing.assert_array_equal(checkpoint.restore(tmp_path / name)["x"].gather(), PLAIN["rows"])
            if comm.rank == 0 and name == "a":
                shutil.rmtree(tmp_path / name)
            comm.barrier()
        assert checkpoint.steps(tmp_path / "a") == [] and checkpoint.steps(tmp_path / "b") == [1]

    for ranks in (1, 3):
        on_ranks(ranks, body)


def test_what_others_leave_in_the_folder_is_seen(tmp_path: Path) -> None:
    """Checkpoints that were damaged, or taken away, count when it is decided which are kept."""

    def body() -> list[list[int]]:
        x, found = nd.asarray(PLAIN["rows"]), []
        for step in range(6):
            x += 1
            checkpoint.save(tmp_path, {"x": x}, step=step, keep=3)
            found.append(checkpoint.steps(tmp_path))
            if step == 2:
                damaged(folders.step_path(tmp_path, 2), "short")
            if step == 4:
                folders.step_path(tmp_path, 4).unlink()
        return found

    assert on_ranks(1, body) == [[[0], [0, 1], [0, 1, 2], [0, 1, 3], [1, 3, 4], [1, 3, 5]]]
    assert len(list((tmp_path / "data").iterdir())) == 3


def test_a_step_that_is_saved_again(tmp_path: Path) -> None:
    """The files of the one before go, and those that another checkpoint names stay."""

    def body() -> None:
        x, y = nd.asarray(PLAIN["rows"]), nd.asarray(PLAIN["rows"]) + 1
        for step in (1, 2, 2, 2, 3):
            x += 1
            checkpoint.save(tmp_path, {"x": x, "y": y}, step=step)
        for step in (1, 2, 3):
            state = checkpoint.restore(tmp_path, step)
            np.testing.assert_array_equal(state["y"].gather(), PLAIN["rows"] + 1)
        assert checkpoint.steps(tmp_path) == [1, 2, 3]

    on_ranks(3, body)
    assert len(list((tmp_path / "data").iterdir())) == 4


@pytest.mark.parametrize("short", [(1,), (0, 1, 2)])
def test_a_rank_without_memory_for_a_copy_writes_first(
    short: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = saving.copied

    def lacking(*args: Any) -> Any:
        if engine.runtime().comm.rank in short:
            raise MemoryError
        return copied(*args)

    monkeypatch.setattr(saving, "copied", lacking)

    def body() -> None:
        x = nd.asarray(PLAIN["rows"])
        for step in (1, 2):
            assert checkpoint.save(tmp_path, {"x": x}, step=step, background=True)
            x += 1
            engine.force(x)
        checkpoint.wait()
        for step in (1, 2):
            np.testing.assert_array_equal(checkpoint.restore(tmp_path, step)["x"].gather(), PLAIN["rows"] + (step - 1))

    on_ranks(3, body)


def test_floating_point_events_are_told_before_anything_is_saved(tmp_path: Path) -> None:
    def body() -> None:
        x, y = nd.asarray(PLAIN["rows"]), nd.asarray(PLAIN["rows"])
        with pytest.raises(FloatingPointError), np.errstate(invalid="raise"):
            y /= x  # of which the first rank has a zero
            checkpoint.save(tmp_path, {"x": x, "y": y}, step=1)
        assert checkpoint.latest(tmp_path) is None
        checkpoint.save(tmp_path, {"x": x}, step=2)

    on_ranks(3, body)


LACKING = """
import sys
import numpy_dist as nd
from numpy_dist import checkpoint, engine
from numpy_dist.engine.memory import pool

x = nd.ones((500, 1000))
engine.force(x)
make = pool.make_block

def lacking(nbytes):
    if x.comm.rank == 1 and nbytes > 1 << 20:
        raise MemoryError("planted")
    return make(nbytes)

pool.make_block = lacking
for step in range(3):
    engine.runtime().pool.clear()
    checkpoint.save(sys.argv[1], {"x": x, "step": step}, step=step, background=True)
checkpoint.wait()
print(checkpoint.steps(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_rank_of_a_job_without_memory_for_a_copy(tmp_path: Path) -> None:
    """Other ranks are not told that it has none, which would end the job."""
    (tmp_path / "script.py").write_text(LACKING)
    command = [sys.executable, "-m", "numpy_dist", "run", "-n", "2", str(tmp_path / "script.py"), str(tmp_path / "run")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout.strip()) == (0, "[0, 1, 2]"), ended.stderr
