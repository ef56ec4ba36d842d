"""Waiting until what was printed has been read."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time

import pytest

from numpy_dist.comm.supervision.pipes import unread_bytes, wait_until_read

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells")


def test_unread_bytes_of_a_pipe() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"x" * 100)
    assert unread_bytes(writing) == 100
    os.read(reading, 60)
    assert unread_bytes(writing) == 40
    os.close(reading)
    os.close(writing)
    assert unread_bytes(writing) == 0


def test_what_is_no_pipe_has_none() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"x")
        file.flush()
        assert unread_bytes(file.fileno()) == 0
        assert wait_until_read([file.fileno()])


def test_it_returns_once_all_is_read_or_after_its_time() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"x" * 100)
    assert not wait_until_read([writing], 0.05)
    seen = []

    def read() -> None:
        time.sleep(0.1)
        seen.append(os.read(reading, 100))

    thread = threading.Thread(target=read)
    thread.start()
    assert wait_until_read([writing], 60.0)
    thread.join()
    assert seen == [b"x" * 100]
    os.close(reading)
    os.close(writing)
