"""The records of a ZIP archive that surround its members, as `zipfile` writes them for a file that it can seek in.

`zipfile` writes members one after the other. Here members that lie at known places are described, so that several
processes can write them (PKWARE's APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.14 to 4.3.16).
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Sequence

__all__ = ["directory", "local_header", "member"]

_LARGEST = (1 << 31) - 1  # sizes and offsets that readers with signed numbers know
_MOST = (1 << 16) - 1  # members
_SHORT, _LONG = 0xFFFF, 0xFFFFFFFF  # instead of a number that stands in a ZIP64 record
_ZIP64 = 45  # the version that has such records
_UTF8 = 0x800  # the flag of names that are not ASCII


def _version_of_members() -> int:
    """What `zipfile` says of members whose header has a ZIP64 record: some releases of Python 3.11 tell of no need."""
    probe = zipfile.ZipInfo("member")
    probe.CRC = 0
    probe.FileHeader(zip64=True)
    return probe.extract_version


_OF_MEMBERS = _version_of_members()


def member(name: str, compression: int) -> zipfile.ZipInfo:
    """A member of which nothing but the name is known yet."""
    made = zipfile.ZipInfo(name)
    made.compress_type = compression
    if not name.isascii():
        made.flag_bits = _UTF8  # without it Python 3.14 tries an older encoding first
    made.external_attr = 0o600 << 16
    made.CRC = 0
    return made


def local_header(info: zipfile.ZipInfo) -> bytes:
    """What stands before the bytes of a member; its length depends on the name only."""
    return info.FileHeader(zip64=True)


def directory(members: Sequence[zipfile.ZipInfo], place: int) -> bytes:
    """The list of the members, which stands at a place behind them, and the end of the archive."""
    entries = b"".join(map(_entry, members))
    count, end = len(members), place + len(entries)
    records = [entries]
    if count > _MOST or place > _LARGEST or len(entries) > _LARGEST:
        sizes = (count, count, len(entries), place)
        records += [
            struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, _ZIP64, _ZIP64, 0, 0, *sizes),
            struct.pack("<4sLQL", b"PK\6\7", 0, end, 1),
        ]
    short, size, place = min(count, _SHORT), min(len(entries), _LONG), min(place, _LONG)
    records.append(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, short, short, size, place, 0))
    return b"".join(records)


def _entry(info: zipfile.ZipInfo) -> bytes:
    """What the list says of a member."""
    sizes, offset, wide = (info.compress_size, info.file_size), info.header_offset, []
    if max(sizes) > _LARGEST:
        wide, sizes = [info.file_size, info.compress_size], (_LONG, _LONG)
    if offset > _LARGEST:
        wide, offset = [*wide, offset], _LONG
    more = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    version = _ZIP64 if wide else _OF_MEMBERS
    if info.filename.isascii():
        name, flags = info.filename.encode("ascii"), info.flag_bits
    else:
        name, flags = info.filename.encode("utf-8"), info.flag_bits | _UTF8
    year, month, day, hour, minute, second = info.date_time
    return (
        struct.pack(
            "<4s4B4H3L5H2L",
            b"PK\1\2",
            max(info.create_version, version),
            info.create_system,
            max(info.extract_version, version),
            info.reserved,
            flags,
            info.compress_type,
            hour << 11 | minute << 5 | second // 2,
            (year - 1980) << 9 | month << 5 | day,
            info.CRC,
            *sizes,
            len(name),
            len(more),
            0,
            0,
            info.internal_attr,
            info.external_attr,
            offset,
        )
        + name
        + more
    )
