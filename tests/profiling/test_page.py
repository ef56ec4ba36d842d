"""The page: complete in itself, well-formed, and it shows what the logs say; a browser draws it, where there is one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from numpy_dist.profiling.advice import advise
from numpy_dist.profiling.analysis import COMMUNICATION, LOOP, Profiled, ProfileSpan, profiled
from numpy_dist.profiling.log import MemorySpeed, log_of
from numpy_dist.profiling.page import page_of, thinned
from numpy_dist.profiling.timeline import SCRIPT
from tests.profiling.hand_made import header, logs, logs_with_threads, records

_ALONE = ("meta", "th", "td", "tr", "li", "p")  # whose end need not be written


class Reader(HTMLParser):
    """What is in a page: words by the id of what they stand in, attributes, and whether elements nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.words: dict[str, str] = {}
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.attributes += given.items()
        if tag not in _ALONE:
            self.open.append((tag, given.get("id", "")))

    def handle_endtag(self, tag: str) -> None:
        if tag not in _ALONE:
            assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        for _, name in self.open:
            if name:
                self.words[name] = self.words.get(name, "") + data + " "


@pytest.fixture
def found() -> Profiled:
    return profiled(logs())


@pytest.fixture
def page(found: Profiled) -> str:
    return page_of(found, advise(found))


def test_it_needs_nothing_else(page: str) -> None:
    assert not re.search(r"https?:|//[a-z]|@import|url\(", page)
    assert not {name for name, _ in Reader(page).attributes} & {"src", "href"}


def test_it_shows_source_lines_and_advice(page: str) -> None:
    words = Reader(page).words
    assert "y = f(x) < 1" in words["lines"] and "print('</script><b>')" in words["lines"]
    assert "a.py:12" in words["lines"] and "B<.py:7" in words["lines"]
    assert "rank 1 waits for rank 0" in words["advice"] and "800 MB" in words["advice"]
    assert words["bytes"].split() == ["0", "1", "0", "850", "bytes", "1", "850", "bytes"]
    assert words["waiting"].split() == ["0", "1", "0", "1", "49", "ms"]
    assert "49 ms (49 %)" in words["shares"]


def test_what_is_drawn(page: str, found: Profiled) -> None:
    data = json.loads(Reader(page).words["data"])
    assert data["length"] == found.length and [row["name"] for row in data["ranks"]] == ["rank 0", "rank 1"]
    drawn = data["ranks"][1]["spans"]
    assert [(begin, begin + length) for begin, length, *_ in drawn] == [(s.begin, s.end) for s in found.spans[1]]
    texts = [data["texts"][span[4]] for span in drawn]
    assert "messages with rank 0 | line 12 of a.py | 800 bytes; of this 39 ms for rank 0" in texts


def test_other_threads_have_rows_and_a_table() -> None:
    found = profiled(logs_with_threads(2))
    words = Reader(page_of(found, [])).words
    data = json.loads(words["data"])
    assert [row["name"] for row in data["ranks"]] == [
        name for rank in (0, 1) for name in (f"rank {rank}", *(f"rank {rank}, {t}" for t in found.threads[rank]))
    ]
    ((begin, length, depth, kind, text),) = data["ranks"][1]["spans"]
    assert (begin, length, depth, data["kinds"][kind]) == (3_000_000, 17_000_000, 0, "thread")
    assert data["texts"][text] == "sin, less, add | line 12 of a.py | 4 ranges, busy for 16 ms"
    table = " ".join(words["threads"].split())
    assert "0 worker 0 16 ms 16 %" in table and "1 checkpoint 50 ms 50 % 1" in table


def test_many_workers_of_a_rank_have_two_rows() -> None:
    found = profiled(logs_with_threads(12))
    data = json.loads(Reader(page_of(found, [])).words["data"])
    names = [row["name"] for row in data["ranks"]]
    assert names[:4] == ["rank 0", "rank 0, worker 0", "rank 0, worker 11", "rank 0, checkpoint"]


def test_a_page_of_one_rank() -> None:
    alone = profiled([log_of(header(0, 1), records(0)[:8])])
    words = Reader(page_of(alone, advise(alone))).words
    assert "bytes" not in words and "a.py:12" in words["lines"]


def test_what_is_too_short_is_drawn_together() -> None:
    def span(begin: int, end: int, kind: str = LOOP, within: int = -1) -> ProfileSpan:
        return ProfileSpan(begin, end, kind, "", {}, 0, within)

    short = [span(n, n + 1) for n in range(0, 100, 2)]
    assert thinned(short, 0) == [(n, n + 1, 0, 0, k) for k, n in enumerate(range(0, 100, 2))]
    assert thinned(short, 5) == [(0, 99, 0, 0, -1)]
    apart = [span(0, 1), span(50, 51), span(60, 90), span(61, 62, COMMUNICATION[0], within=2), span(91, 92)]
    assert [part[:3] for part in thinned(apart, 5)] == [(0, 1, 0), (50, 51, 0), (60, 90, 0), (61, 62, 1), (91, 92, 0)]


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_the_script_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "timeline.js").write_text(SCRIPT)
    node: Any = shutil.which("node")
    done = subprocess.run([node, "--check", tmp_path / "timeline.js"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


# No sandbox, since tests may run as root; and it asks for nothing but the page.
CHROMIUM_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@pytest.mark.slow
def test_a_browser_draws_it_zooms_and_tells(tmp_path: Path) -> None:
    """With the package playwright, and Debian's chromium or the one that the variable CHROMIUM names."""
    api = pytest.importorskip("playwright.sync_api")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium, and the variable CHROMIUM names none")
    (tmp_path / "profile.html").write_text(page_of(profiled(logs_with_threads()), []))
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            tmp_path / "user", executable_path=chromium, args=CHROMIUM_FLAGS, viewport={"width": 1200, "height": 900}
        )
        view = browser.new_page()
        errors: list[object] = []
        view.on("pageerror", lambda error: errors.append(error))
        requests: list[str] = []
        view.on("request", lambda request: requests.append(request.url))
        view.goto((tmp_path / "profile.html").as_uri())
        box = view.locator("#timeline").bounding_box()
        assert box["height"] > 60
        left = 76  # as in `timeline`
        width = box["width"] - left
        # In the middle of the first loop of rank 0, in the topmost row.
        view.mouse.click(box["x"] + left + 0.30 * width, box["y"] + 26)
        told = view.locator("#told").inner_text()
        assert told.startswith("rank 0, loop, from 2 ms for 58 ms") and "sin, less, add | line 12 of a.py" in told
        view.click("#in")  # the middle half of the time is seen: 25 to 75 ms
        view.mouse.click(box["x"] + left + 0.80 * width, box["y"] + 26)
        assert view.locator("#told").inner_text().startswith("rank 0, loop, from 60 ms for 10 ms")
        view.click("#all")
        view.mouse.click(box["x"] + left + 0.90 * width, box["y"] + 26)
        assert view.locator("#told").inner_text().startswith("Nothing there")
        view.mouse.click(box["x"] + left + 0.10 * width, box["y"] + 20 + 2 * 15 + 8 + 7)  # the worker's row
        told = view.locator("#told").inner_text()
        assert told.startswith("rank 0, worker 0, thread, from 3 ms for 17 ms") and "busy for 16 ms" in told
        view.mouse.move(box["x"] + 64 + 0.3 * width, box["y"] + 26)
        view.mouse.wheel(0, -300)
        assert not errors and len(requests) == 1
        browser.close()


def test_what_loops_achieve_of_a_copy() -> None:
    found = profiled([log_of(header(rank), [MemorySpeed(2e8 * (rank + 1)), *records(rank)]) for rank in range(2)])
    words = Reader(page_of(found, [])).words
    cost = found.costs[0]
    assert found.copy_speed == 4e8
    rate = cost.nbytes / cost.looping
    assert f"{rate:.2f} {100 * rate / 0.4:.0f} %" in " ".join(words["lines"].split())
    assert f"{100 * rate / 0.4:.0f} % of what a copy does there (0.4 GB/s)" in " ".join(advise(found))
