"""Files and checkpoints on the ranks of a job, beside NumPy, h5py, zarr and dd on the same file system.

    numpy-dist run -n 2 benchmarks/files.py --gib 1 --folder /scratch

Every candidate writes a new file, waits until it is on the disk and puts it in the place of the last one, as numpy_dist
does: one that overwrote its file would reuse the pages of the page cache that the last contents had, where the others
need new ones, which a virtual machine may first have to get from its host (0.2 to 2 seconds for 1 GiB). What is read is
in the page cache: each reader finds it there. Candidates take turns; each figure is the median of the rounds, and a
ratio that of the ratios within a round. Other ranks sleep while rank 0 measures NumPy or dd.
"""

from __future__ import annotations

import argparse
import mmap
import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import numpy_dist
from numpy_dist import checkpoint, engine

_OF_ALL_RANKS = ("numpy_dist", "plain reads", "plain reads into whole pages")
_PIECE = 1 << 24  # bytes that plain reads ask for at once
MEASURED = ("files", "archives", "texts", "formats", "stencil")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=1.0, help="size of the array")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where (default: that of temporary files)")
    parser.add_argument("--steps", type=int, default=60, help="of the stencil that saves every tenth")
    parser.add_argument("--only", nargs="+", choices=MEASURED, default=MEASURED, help="what is measured")
    parser.add_argument("--size", type=int, default=2048, help="of the stencil, along each axis")
    parser.add_argument("--sweeps", default="1,4,16", help="of its steps")
    options = parser.parse_args()
    comm = engine.runtime().comm
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder = Path(comm.bcast(temporary))
        rows = []
        for name, measure, unit in (
            ("files", files, 2**27), ("archives", archives, 2**27), ("texts", texts, 2**20), ("formats", formats, 2**27)
        ):  # fmt: skip
            if name in options.only:
                rows += measure(folder, int(options.gib * unit), options.rounds)
        for sweeps in options.sweeps.split(",") if "stencil" in options.only else ():
            rows += stencil(folder, options.size, int(sweeps), options.steps, options.rounds)
        comm.barrier()
    if comm.rank == 0:
        print(f"{comm.size} ranks; {options.gib} GiB; medians of {options.rounds} rounds, in turn")
        print(*rows, sep="\n")


def files(folder: Path, count: int, rounds: int) -> list[str]:
    """Saving an array of so many numbers, and, when that is gone, loading it."""
    return saved(folder, count, rounds) + loaded(folder, count, rounds)


def saved(folder: Path, count: int, rounds: int) -> list[str]:
    """Saving an array of so many numbers; the files stay, with the names of their writers."""
    values = np.arange(float(count if engine.runtime().rank == 0 else 0))  # NumPy's; other ranks have their parts only
    x = numpy_dist.arange(float(count), split=0)
    engine.force(x)
    new = folder / "new"

    def save_numpys() -> None:
        with open(new, "wb") as file:
            np.save(file, values)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, folder / "numpys.npy")

    def save_dd() -> None:
        copy = ["dd", "bs=16M", f"count={8 * count >> 24}", "if=/dev/zero", f"of={new}", "conv=fsync", "status=none"]
        subprocess.run(copy, check=True)
        os.replace(new, folder / "dd")

    candidates: dict[str, Callable[[], object]] = {
        "dd": save_dd,
        "NumPy": save_numpys,
        "numpy_dist": lambda: np.save(folder / "ours.npy", x),
    }
    return table("save", candidates, rounds, folder)


def loaded(folder: Path, count: int, rounds: int) -> list[str]:
    """Loading what was saved; dd has one buffer of 16 MiB to read into, the others new memory for all of it.

    So has "plain reads": each rank's half, by calls of the system alone. That is as quick as a load into NumPy's memory
    can be, which begins 16 bytes after the beginning of a page; "into whole pages" has memory that begins with one.
    """
    numpys, copy = folder / "numpys.npy", ["dd", "bs=16M", f"count={8 * count >> 24}", "of=/dev/null", "status=none"]
    if engine.runtime().rank == 0:
        (folder / "dd").unlink()

    def read_plainly(make: Callable[[int], np.ndarray]) -> np.ndarray:
        comm = engine.runtime().comm
        start, stop = 8 * count * comm.rank // comm.size, 8 * count * (comm.rank + 1) // comm.size
        made = make(stop - start)
        with open(numpys, "rb", buffering=0) as file:
            for place in range(0, len(made), _PIECE):
                os.preadv(file.fileno(), [made[place : place + _PIECE]], start + place)
        return made

    def whole_pages(nbytes: int) -> np.ndarray:
        memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)  # as NumPy does
        return np.frombuffer(memory, np.uint8)

    candidates: dict[str, Callable[[], object]] = {
        "dd": lambda: subprocess.run([*copy, f"if={numpys}"], check=True),
        "NumPy": lambda: np.load(numpys),
        "plain reads": lambda: read_plainly(lambda nbytes: np.empty(nbytes, np.uint8)),
        "plain reads into whole pages": lambda: read_plainly(whole_pages),
        "numpy_dist": lambda: numpy_dist.load(folder / "ours.npy"),
    }
    return table("load", candidates, rounds, folder)


def archives(folder: Path, count: int, rounds: int) -> list[str]:
    """Archives of three arrays of so many numbers together, and a compressed one of few, of two digits."""
    values = np.random.default_rng(0).random((count // 3072, 1024))
    few = np.round(values[: len(values) // 3 + 1], 2)
    x, y = numpy_dist.asarray(values, split=0), numpy_dist.asarray(few, split=0)
    found = []
    for save, theirs, ours in ((np.savez, values, x), (np.savez_compressed, few, y)):
        name, members = save.__name__, ("a", "b", "c") if save is np.savez else ("a",)

        def save_numpys(save=save, theirs=theirs, members=members) -> None:  # type: ignore[no-untyped-def]
            save(folder / "numpys.npz", **dict.fromkeys(members, theirs))
            synchronise(folder / "numpys.npz")

        candidates: dict[str, Callable[[], object]] = {
            "NumPy": save_numpys,
            "numpy_dist": lambda save=save, ours=ours, members=members: save(  # type: ignore[misc]
                folder / "ours.npz", **dict.fromkeys(members, ours)
            ),
        }
        found += table(name, candidates, rounds, folder)
    return found


def table(name: str, candidates: dict[str, Callable[[], object]], rounds: int, folder: Path) -> list[str]:
    """Times of candidates that take turns: all ranks work for those of `_OF_ALL_RANKS`, rank 0 for the others."""
    comm = engine.runtime().comm
    times: dict[str, list[float]] = {candidate: [] for candidate in candidates}
    for number in range(rounds):
        for candidate, work in candidates.items():
            comm.barrier()
            if candidate not in _OF_ALL_RANKS and comm.rank != 0:
                while not (folder / f"{name}-{candidate}-{number}").exists():
                    time.sleep(0.02)
                continue
            begin = time.perf_counter()
            made = work()
            times[candidate].append(time.perf_counter() - begin)
            del made
            if candidate not in _OF_ALL_RANKS:
                (folder / f"{name}-{candidate}-{number}").touch()
    comm.barrier()
    if comm.rank:
        return []
    speeds = ", ".join(
        f"{statistics.median(a / b for a, b in zip(times[other], times['numpy_dist'], strict=True)):.2f} of {other}'s"
        for other in candidates
        if other != "numpy_dist"
    )
    medians = ", ".join(f"{candidate} {statistics.median(took):.3f} s" for candidate, took in times.items())
    return [f"{name}: {medians}; speed of numpy_dist: {speeds}"]


def synchronise(path: Path) -> None:
    """Wait until a file, or all files of a folder, are on the disk."""
    for file in path.rglob("*") if path.is_dir() else [path]:
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def texts(folder: Path, rows: int, rounds: int) -> list[str]:
    """Text of so many rows of three numbers, which NumPy writes and reads with one thread."""
    values = np.random.default_rng(0).random((rows, 3))
    x = numpy_dist.asarray(values, split=0)
    numpys, ours = folder / "numpys.txt", folder / "ours.txt"

    def save_numpys() -> None:
        np.savetxt(numpys, values)
        synchronise(numpys)

    writing: dict[str, Callable[[], object]] = {
        "NumPy": save_numpys,
        "numpy_dist": lambda: np.savetxt(ours, x),
    }
    reading: dict[str, Callable[[], object]] = {
        "NumPy": lambda: np.loadtxt(numpys),
        "numpy_dist": lambda: numpy_dist.loadtxt(ours),
    }
    generating: dict[str, Callable[[], object]] = {
        "NumPy": lambda: np.genfromtxt(numpys),
        "numpy_dist": lambda: numpy_dist.genfromtxt(ours),
    }

    def words_numpys() -> None:
        values.tofile(numpys, " ")
        synchronise(numpys)

    wording: dict[str, Callable[[], object]] = {"NumPy": words_numpys, "numpy_dist": lambda: x.tofile(ours, " ")}
    return (
        table("savetxt", writing, rounds, folder)
        + table("loadtxt", reading, rounds, folder)
        + table("genfromtxt", generating, rounds, folder)
        + table("tofile, as text", wording, rounds, folder)
    )


def formats(folder: Path, count: int, rounds: int) -> list[str]:
    """A matrix of so many numbers in HDF5 and Zarr files, beside their libraries in one process."""
    import h5py
    import zarr

    values = np.random.default_rng(0).random((count // 1024, 1024))
    x = numpy_dist.asarray(values, split=0)
    chunks = (min(1024, len(values)), 1024)

    def save_h5py() -> None:
        with h5py.File(folder / "theirs.h5", "w") as file:
            file["x"] = values
        synchronise(folder / "theirs.h5")

    def read_h5py() -> np.ndarray:
        with h5py.File(folder / "theirs.h5") as file:
            return file["x"][...]

    def read_ours(name: str) -> object:
        made = numpy_dist.open(folder / name)["x"][...]
        return engine.force(made)

    def save_zarr() -> None:
        group = zarr.open_group(folder / "theirs.zarr", mode="w")
        group.create_array("x", shape=values.shape, dtype=values.dtype, chunks=chunks)[...] = values
        synchronise(folder / "theirs.zarr")

    found = []
    for name, save, read in (
        ("h5", save_h5py, read_h5py),
        ("zarr", save_zarr, lambda: zarr.open_group(folder / "theirs.zarr", mode="r")["x"][...]),
    ):
        library = "h5py" if name == "h5" else "zarr"
        ours = folder / f"ours.{name}"
        writing: dict[str, Callable[[], object]] = {
            library: save,
            "numpy_dist": lambda ours=ours: numpy_dist.save(ours, {"x": x}),  # type: ignore[misc]
        }
        reading: dict[str, Callable[[], object]] = {
            library: read,
            "numpy_dist": lambda name=name: read_ours(f"ours.{name}"),  # type: ignore[misc]
        }
        found += table(f"{library}, save", writing, rounds, folder) + table(f"{library}, open", reading, rounds, folder)
    return found


class BareWriter:
    """The least that there is to do in the background: a copy of memory, which a thread writes to the disk."""

    def __init__(self, path: Path) -> None:
        self._path, self._thread, self._copy = path, threading.Thread(), np.empty(0)
        self._thread.start()

    def write(self, block: np.ndarray) -> None:
        """Copy a block, when the one before is written, and begin to write it."""
        self.wait()
        if self._copy.size != block.size:
            memory = mmap.mmap(-1, block.nbytes)  # whole pages, as direct output wants them
            self._copy = np.frombuffer(memory, block.dtype, block.size).reshape(block.shape)
        np.copyto(self._copy, block)
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the last block is on the disk."""
        self._thread.join()

    def _write(self) -> None:
        self._path.unlink(missing_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
        os.pwrite(descriptor, self._copy.data, 0)
        os.fsync(descriptor)
        os.close(descriptor)


def stencil(folder: Path, size: int, work: int, steps: int, rounds: int) -> list[str]:
    """What a checkpoint every ten steps, in the background, costs a stencil whose steps have `work` sweeps each.

    Beside the ratios stands what the disk would have to write a second for all of them, and what it writes: that of
    checkpoints that are waited for. Processor time is that of all ranks; it tells of checkpoints, not of the disk.
    "Bare" is a copy of each rank's rows that a thread writes past the page cache and synchronises, one file a rank:
    without names, checksums, agreement of ranks and an older checkpoint that stays. Nothing can cost less.
    """
    comm = engine.runtime().comm
    u = numpy_dist.zeros((size, size), split=0)
    u[0] = 1.0
    done = 0
    bare = BareWriter(folder / f"bare-{comm.rank}")

    def run(if_busy: str) -> tuple[float, float]:
        nonlocal done
        comm.barrier()
        begin, processor = time.perf_counter(), time.process_time()
        for step in range(steps):
            for _ in range(work):
                u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
            if if_busy == "bare" and step % 10 == 9:
                engine.force(u)
                bare.write(engine.share(u, tells=False).block)
            elif if_busy and step % 10 == 9:
                state = {"u": u, "step": step}
                done += checkpoint.save(folder / "run", state, step=step, background=True, if_busy=if_busy)  # type: ignore[arg-type]
        engine.force(u)
        took = time.perf_counter() - begin
        checkpoint.wait()
        bare.wait()
        return took, sum(comm.allgather(time.process_time() - processor))

    def write() -> float:
        u[0, 0] += 1.0
        engine.force(u)
        begin = time.perf_counter()
        checkpoint.save(folder / "run", {"u": u}, step=0)
        return u.nbytes / (time.perf_counter() - begin)

    run("wait")
    times: dict[str, list[tuple[float, float]]] = {"": [], "bare": [], "wait": [], "skip": []}
    saved, speeds = [], []
    for _ in range(rounds):
        for if_busy, column in times.items():
            done = 0
            column.append(run(if_busy))
        saved.append(done)
        speeds.append(write())
    ratios = {
        name: [statistics.median(b[i] / a[i] for a, b in zip(times[""], column, strict=True)) for i in (0, 1)]
        for name, column in times.items()
    }
    took, asked = statistics.median(took for took, _ in times[""]) / steps, steps // 10
    return [
        f"stencil {size}^2, {work} sweeps a step, {1000 * took:.1f} ms a step, a checkpoint of {u.nbytes / 1e6:.0f} MB "
        f"every 10 steps ({u.nbytes / took / 1e7:.0f} MB/s; those waited for: {statistics.median(speeds) / 1e6:.0f} "
        f"MB/s): {ratios['wait'][0]:.2f} times as long, {ratios['wait'][1]:.2f} times the processor time; those that "
        f"find the disk busy skipped (written {statistics.median(saved):.0f} of {asked}): {ratios['skip'][0]:.2f} and "
        f"{ratios['skip'][1]:.2f} times; a bare copy that is written {ratios['bare'][0]:.2f} and "
        f"{ratios['bare'][1]:.2f} times"
    ]


if __name__ == "__main__":
    main()
