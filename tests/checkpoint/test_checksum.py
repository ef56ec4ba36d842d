"""Checksums of pieces: any usual damage changes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from numpy_dist.checkpoint.checksum import CHECKSUMS, Sums

ROW = 8 * 4096


def exchanged(data: bytearray, one: int, other: int, size: int) -> None:
    data[one : one + size], data[other : other + size] = data[other : other + size], data[one : one + size]


def flipped(data: bytearray) -> None:
    data[3 * ROW + 11] ^= 16


def zeroed(data: bytearray) -> None:
    data[4096:8192] = bytes(4096)


DAMAGES: dict[str, Callable[[bytearray], None]] = {
    "one bit": flipped,
    "one bit of the last byte": lambda data: data.__setitem__(-1, data[-1] ^ 1),
    "a page of zeros": zeroed,
    "pages of one row": lambda data: exchanged(data, 0, 4096, 4096),
    "whole rows": lambda data: exchanged(data, 2 * ROW, 9 * ROW, ROW),
    "neighbouring bytes": lambda data: exchanged(data, ROW, ROW + 1, 1),
    "the end": lambda data: data.__delitem__(slice(-3, None)),
    "shifted": lambda data: data.insert(0, 0),
}


@pytest.mark.parametrize("name", CHECKSUMS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_changes_it(damage: str, name: str) -> None:
    data = np.random.default_rng(0).bytes(20 * ROW + 77)
    other = bytearray(data)
    DAMAGES[damage](other)
    checksum = CHECKSUMS[name]
    assert checksum(memoryview(data)) == checksum(memoryview(bytes(data)))
    assert checksum(memoryview(data)) != checksum(memoryview(other))


@pytest.mark.parametrize("size", [0, 1, ROW - 1, ROW, ROW + 1, 9 * ROW])
def test_it_is_what_is_written_down(size: int) -> None:
    """The definition in docs/files.md, in plain Python."""
    import zlib

    data = np.random.default_rng(1).bytes(size)
    whole = size // ROW
    words = [int.from_bytes(data[8 * k : 8 * k + 8], "little") for k in range(whole * 4096)]
    columns = [sum(words[k::4096]) % 2**64 for k in range(4096)]
    rows = [sum(words[4096 * k : 4096 * (k + 1)]) % 2**64 for k in range(whole)]
    packed = b"".join(value.to_bytes(8, "little") for value in columns + rows)
    assert CHECKSUMS["sums"](memoryview(data)) == zlib.crc32(packed + data[whole * ROW :])


@pytest.mark.parametrize("step", [1000, ROW, 5 * ROW + 8, 40 * ROW])
def test_it_may_be_added_while_bytes_come(step: int) -> None:
    data = np.random.default_rng(2).bytes(37 * ROW + 77)
    made = bytearray(len(data))
    sums = Sums(memoryview(made))
    for start in range(0, len(data), step):
        made[start : start + step] = data[start : start + step]
        sums.add(min(start + step, len(data)))
    assert sums.value == CHECKSUMS["sums"](memoryview(data))
