"""Direct output: the bytes of ordinary writes, wherever they begin and end, and whatever the file system can."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numpy_dist.files import direct
from numpy_dist.files.direct import memory_for, open_direct, write_direct

PAGE = 4096


@pytest.mark.parametrize("way", ["direct", "no such flag", "larger blocks", "half of it"])
@pytest.mark.parametrize("place", [0, 128, 4095, 4096, 3 * PAGE + 1])
@pytest.mark.parametrize("size", [1, PAGE - 128, PAGE, 5 * PAGE + 7])
def test_all_bytes_come_to_their_places(
    way: str, place: int, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a" * (10 * PAGE))
    if way == "no such flag":
        monkeypatch.setattr(direct, "_DIRECT", 0)
    descriptor, past = os.open(path, os.O_RDWR), open_direct(path)
    if way != "no such flag" and past < 0:
        pytest.skip("this file system has no direct output")
    pwrite = os.pwrite

    def other(which: int, data: Any, where: int) -> int:
        if which == past and way == "larger blocks":
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return pwrite(which, data[: max(PAGE, len(data) // 2 // PAGE * PAGE)] if way == "half of it" else data, where)

    if way in ("larger blocks", "half of it"):
        monkeypatch.setattr(os, "pwrite", other)
    data = memory_for(place, size, lambda n: np.empty(n, np.uint8))
    assert (data.ctypes.data - place) % PAGE == 0
    data[:] = np.random.default_rng(0).integers(256, size=size)
    write_direct(past, descriptor, data.data, place)
    os.close(descriptor)
    if past >= 0:
        os.close(past)
    assert path.read_bytes() == b"a" * place + data.tobytes() + b"a" * (10 * PAGE - place - size)


def test_errors_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"")
    with open(tmp_path / "x", "rb") as file:  # not for writing
        data = memory_for(0, PAGE, lambda n: np.zeros(n, np.uint8))
        with pytest.raises(OSError, match="Bad file descriptor"):
            write_direct(file.fileno(), file.fileno(), data.data, 0)
    with pytest.raises(FileNotFoundError):
        open_direct(tmp_path / "no")
