"""Numbers and places as people write them."""

from __future__ import annotations

import os

from numpy_dist.profiling.analysis import Line


def bytes_word(count: float) -> str:
    """Bytes: "800 MB"."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            value = count / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:,.0f} {unit}"
    return f"{count:.0f} byte{'s' * (count != 1)}"


def time_word(nanoseconds: float) -> str:
    """A time: "1.25 s", "310 ms", "42 µs"."""
    if nanoseconds >= 1e9:
        return f"{nanoseconds / 1e9:.2f} s"
    if nanoseconds >= 1e6:
        return f"{nanoseconds / 1e6:.1f} ms" if nanoseconds < 1e7 else f"{nanoseconds / 1e6:.0f} ms"
    return f"{nanoseconds / 1e3:.0f} µs"


def percent(part: float, whole: float) -> str:
    """A share: "62 %"."""
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def times_word(count: int) -> str:
    """How often: "once", "3 times"."""
    return "once" if count == 1 else f"{count:,} times"


def sentence(text: str) -> str:
    """Words at the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def file_word(filename: str, folder: str) -> str:
    """A file as seen from the folder in which the job ran, if it lies there."""
    return filename.removeprefix(folder.rstrip(os.sep) + os.sep)


def line_word(line: Line, folder: str) -> str:
    """A line: "line 31 of a.py"."""
    return f"line {line[1]} of {file_word(line[0], folder)}"
