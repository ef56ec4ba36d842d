"""Numbers as people say them."""

from __future__ import annotations


def size(count: int) -> str:
    """A number of bytes in the unit that suits it."""
    number, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while number >= 1024 and len(units) > 1:
        number /= 1024
        del units[0]
    return f"{number:.0f} {units[0]}" if units[0] == "B" else f"{number:.1f} {units[0]}"


def speed(rate: float) -> str:
    """Bytes per second."""
    return f"{rate / 1e9:.1f} GB/s"


def cores(count: float) -> str:
    """A number of cores, which may be a part of one."""
    return f"{count:g} core" + ("" if count == 1 else "s")
