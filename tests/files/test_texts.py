"""Large texts are parsed in parts, and what comes of it is what NumPy reads."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.files import texts
from numpy_dist.files.texts import line_ranges, lines_as_file
from numpy_dist.spmd_testing import run_simulated

TABLE = "\n".join(f"{i} {i / 7:.17g} {-i * 1e-3!r}" for i in range(60)) + "\n"
FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "spaces": (TABLE, {}),
    "carriage returns": (TABLE.replace("\n", "\r\n"), {"skiprows": 2}),
    "no last line feed": (TABLE[:-1], {}),
    "commas": (TABLE.replace(" ", ","), {"delimiter": ","}),
    "comments": (TABLE.replace("\n", " # of this line\n# of its own\n\n"), {}),
    "skipped rows": ("a b c\n# d\n" + TABLE, {"skiprows": 2}),
    "all comments at the end": (TABLE + "# nothing\n" * 400, {}),
    "columns": (TABLE, {"usecols": (2, 0)}),
    "one column": (TABLE, {"usecols": 1}),
    "one column of a matrix": (TABLE, {"usecols": 1, "ndmin": 2}),
    "unpacked": (TABLE, {"unpack": True}),
    "integers": (TABLE.replace(".", ""), {"dtype": np.int64, "usecols": 0}),
    "single precision": (TABLE, {"dtype": "f4"}),
    "complex numbers": ("1+2j 3\n" * 30, {"dtype": complex}),
    "dates": ("2001-01-01 2002-02-02\n" * 30, {"dtype": "M8[D]"}),
    "converters": (TABLE, {"converters": {0: lambda text: float(text) * 2}}),
    "latin": ("# é\n" * 9 + TABLE, {"encoding": "latin1"}),
    "utf-16": (TABLE, {"encoding": "utf-16"}),
    "texts": (TABLE, {"dtype": str}),
    "records": (TABLE, {"dtype": "i4,f8,f8"}),
    "records unpacked": (TABLE, {"dtype": "i4,f8,f8", "unpack": True}),
    "rows that are asked for": (TABLE, {"max_rows": 7}),
    "quotes": ('"1" "2"\n' * 20, {"quotechar": '"'}),
    "one row": ("1 2 3" + "\n# no row" * 30, {}),
    "old line ends": (TABLE.replace("\n", "\r"), {"skiprows": 1}),
    "more rows than there are": (TABLE, {"skiprows": 10**12}),
}


MISSING = "\n".join(f"{i},{i / 7:.17g},{'' if i % 5 else -i * 1e-3!r}" for i in range(60)) + "\n"
GENERATED: dict[str, tuple[str, dict[str, Any]]] = {
    "spaces": (TABLE, {}),
    "carriage returns": (TABLE.replace("\n", "\r\n"), {"skip_header": 2}),
    "commas": (TABLE.replace(" ", ","), {"delimiter": ",", "names": None}),
    "missing": (MISSING, {"delimiter": ","}),
    "words": (TABLE.replace("3 ", "three ").replace("0.", "nan0."), {"dtype": np.float64}),
    "comments": (TABLE.replace("\n", " # of this line\n# of its own\n\n"), {}),
    "all comments at the end": (TABLE + "# nothing\n" * 400, {}),
    "skipped rows": ("a b c\n" + TABLE, {"skip_header": 1, "unpack": True}),
    "one column": ("\n".join(map(str, range(90))), {}),
    "one column of a matrix": ("\n".join(map(str, range(90))), {"ndmin": 2}),
    "fixed width": ("123456\n" * 90, {"delimiter": 2}),
    "names": ("a b c\n" + TABLE, {"names": True}),
    "another dtype": (TABLE, {"dtype": np.float32}),
    "any dtype": (TABLE, {"dtype": None}),
    "filled": (MISSING, {"delimiter": ",", "filling_values": -1}),
    "footer": (TABLE + "a b\n", {"skip_footer": 1}),
    "one row": ("1 2 3\n", {}),
    "empty": ("# nothing\n" * 90, {}),
    "too short a line": (TABLE + "1 2\n" + TABLE, {}),
    "other lines behind": (TABLE + "1 2\n" * 90, {}),
    "more rows than there are": (TABLE, {"skip_header": 999}),
    "latin": (TABLE + "# é\n", {"encoding": "latin1"}),
}


def outcome(load: Any, path: Path, options: dict[str, Any]) -> Any:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            made = load(path, **options)
        except Exception as error:
            return type(error), str(error)
    parts = [x.gather() if isinstance(x, nd.DistArray) else x for x in (made if isinstance(made, list) else [made])]
    return [(x.dtype, x.shape, x.tolist()) for x in parts], [str(warning.message) for warning in told]


def loaded(path: Path, options: dict[str, Any], load: Any = None) -> Any:
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
        return outcome(load or nd.loadtxt, path, options)


@pytest.mark.parametrize("name", FILES)
def test_numpys_values(name: str, tmp_path: Path) -> None:
    text, options = FILES[name]
    path = tmp_path / "x.txt"
    path.write_bytes(text.encode(options.get("encoding", "utf-8")))
    expected = outcome(np.loadtxt, path, options)
    assert isinstance(expected[0], list), expected
    for ranks in (1, 2, 3, 7):
        assert run_simulated(ranks, loaded, path, options) == [expected] * ranks


@pytest.mark.parametrize("name", GENERATED)
@pytest.mark.parametrize("reading", [True, False])
def test_genfromtxt(name: str, reading: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's values, errors and warnings, whoever parses the numbers."""
    text, options = GENERATED[name]
    path = tmp_path / "x.txt"
    path.write_bytes(text.encode(options.get("encoding", "utf-8")))
    expected = repr(outcome(np.genfromtxt, path, options))
    monkeypatch.setitem(nd.loadtxt.__globals__, "_PIECE", 300)
    read: list[bool] = []

    class Reader:
        @staticmethod
        def rows(text: bytes, delimiter: str | None) -> np.ndarray | None:
            try:
                made = np.loadtxt(text.decode().splitlines(), delimiter=delimiter, comments=None, ndmin=2)
            except ValueError:
                made = None
            read.append(made is not None)
            return made

    def on_rank() -> Any:
        backend: Any = nd.engine.runtime().backend
        monkeypatch.setattr(backend, "text_reader", Reader if reading else None, raising=False)
        return repr(loaded(path, options, nd.genfromtxt))

    for ranks in (1, 2, 3):
        assert run_simulated(ranks, on_rank) == [expected] * ranks
    assert any(read) or not reading or name not in ("spaces", "commas", "one column", "skipped rows")


@pytest.mark.parametrize(
    "text",
    [
        "1 2\n" * 20 + "3\n" + "1 2\n" * 20,
        "1 2\n" * 20 + "1 2 3\n" * 20,
        "1 2\n" * 30 + "1 x\n" + "1 2\n" * 5,
        "# nothing\n" * 40,
        "",
        "1 2\n" * 30 + "\xe9\n",
    ],
)
def test_numpys_errors_and_warnings(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(text.encode("latin1"))
    expected = outcome(np.loadtxt, path, {})
    for ranks in (1, 3):
        assert run_simulated(ranks, loaded, path, {}) == [expected] * ranks


@pytest.mark.parametrize("options", [{"comments": ""}, {"comments": ["#", ""]}, {"skiprows": -1}, {"skiprows": True}])
def test_what_numpy_refuses(options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where something else than NumPy could read the numbers."""
    path = tmp_path / "x.txt"
    path.write_text(TABLE)
    expected = outcome(np.loadtxt, path, options)
    assert isinstance(expected[0], type), expected

    class Reader:
        @staticmethod
        def rows(text: bytes, delimiter: str | None) -> np.ndarray:
            return np.loadtxt(text.decode().splitlines(), delimiter=delimiter, ndmin=2)

    def on_rank() -> Any:
        monkeypatch.setattr(nd.engine.runtime().backend, "text_reader", Reader, raising=False)
        return loaded(path, options)

    for ranks in (1, 3):
        assert run_simulated(ranks, on_rank) == [expected] * ranks


def test_compressed_texts_and_none(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "x.gz", np.arange(30.0).reshape(10, 3))
    for path in (tmp_path / "x.gz", tmp_path / "none"):
        expected = outcome(np.loadtxt, path, {})
        assert run_simulated(3, loaded, path, {}) == [expected] * 3


@pytest.mark.parametrize("look", [1, 3, 1 << 16])
def test_every_line_is_of_one_rank(look: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_LOOK", look)
    path = tmp_path / "x"
    for text in (b"", b"a", b"a\n", b"\n\n\n", b"ab\ncdefghij\nk\n", b"a" * 50, b"a" * 20 + b"\n" + b"b" * 20):
        path.write_bytes(text)
        for skipped in (0, 1, 2):
            rest = b"".join(text.splitlines(keepends=True)[skipped:])
            for parts in (1, 2, 3, 5, 60):
                ranges = line_ranges(path, skipped, parts)
                assert ranges is not None and len(ranges) == parts
                found = [text[lo:hi] for lo, hi in ranges]
                assert b"".join(found) == rest
                assert all(not part or part.endswith(b"\n") for part in found[:-1] if part and not rest.endswith(part))


def test_parts_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_text(TABLE)
    opened: list[tuple[int, int]] = []
    original = nd.loadtxt.__globals__["_rows_of_lines"]

    def noting(path: Path, span: tuple[int, int], *more: Any) -> Any:
        opened.append(span)
        return original(path, span, *more)

    monkeypatch.setitem(nd.loadtxt.__globals__, "_rows_of_lines", noting)
    run_simulated(3, loaded, path, {})
    lengths = [hi - lo for lo, hi in opened]
    assert len(lengths) == 3 and sum(lengths) == len(TABLE) and max(lengths) < len(TABLE) / 2


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("ranks", [1, 3])
def test_pieces_are_read_by_threads(name: str, ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces that a reader of numbers declines are NumPy's; what comes of all of them is what NumPy reads."""
    text, options = FILES[name]
    path = tmp_path / "x"
    path.write_text(text, options.get("encoding"))
    expected = outcome(np.loadtxt, path, options)
    read: list[bool] = []

    class Reader:
        @staticmethod
        def rows(text: bytes, delimiter: str | None) -> np.ndarray | None:
            separators = text.count(b" ") + text.count(b",")
            known = bool(text.strip()) and separators == 2 * text.count(b"\n") and len(read) % 3 > 0
            read.append(known)
            return np.loadtxt(text.decode().splitlines(), delimiter=delimiter, ndmin=2) if known else None

    def on_rank() -> Any:
        backend: Any = nd.engine.runtime().backend
        monkeypatch.setattr(backend, "text_reader", Reader, raising=False)
        monkeypatch.setattr(backend, "threads", 2, raising=False)
        return loaded(path, options)

    monkeypatch.setitem(nd.loadtxt.__globals__, "_PIECE", 100)
    assert run_simulated(ranks, on_rank) == [expected] * ranks
    if name in ("spaces", "commas", "unpacked"):
        assert any(read) and not all(read)


def test_a_part_that_cannot_be_read_is_not_taken_for_less(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"1\n" * 100_000)
    with lines_as_file(path, (4, 24)) as name:
        assert np.loadtxt(name).tolist() == [1.0] * 10
    with pytest.raises(OSError, match="has become shorter"), lines_as_file(path, (0, 200_002)) as name:
        np.loadtxt(name)
    with pytest.raises(BrokenPipeError), lines_as_file(path, (0, 200_000)):
        pass  # nobody has read it
    with pytest.raises(FileNotFoundError), lines_as_file(tmp_path / "none", (0, 10)) as name:
        assert Path(name).read_bytes() == b""
    with pytest.raises(ZeroDivisionError), lines_as_file(path, (0, 200_000)):
        raise ZeroDivisionError
