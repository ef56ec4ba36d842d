"""Call sites: one object for a place in the user's code, kept for a while, and in bounded memory."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from numpy_dist.engine.events import sites


def _place() -> Callable[[], Any]:
    """A function that tells the site of its only line, which is code of its own."""
    names: dict[str, Any] = {"__name__": "program", "user_site": sites.user_site}
    exec("def here():\n    return user_site(0)\n", names)
    here: Callable[[], Any] = names["here"]
    return here


def test_a_site_that_nothing_refers_to_is_there_when_the_loop_comes_again() -> None:
    here, others, seen = _place(), [_place() for _ in range(20)], []
    for _ in range(2):  # called from one line
        seen.append(weakref.ref(here()))
        for other in others:
            other()
        gc.collect()
    assert seen[0]() is not None and seen[1]() is seen[0]()


def test_code_without_end_takes_no_memory_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "_RECENT", [])
    monkeypatch.setattr(sites, "LATEST", {})
    monkeypatch.setattr(sites, "_MOST", 50)
    kept = [weakref.ref(_place()()) for _ in range(175)]
    gc.collect()
    assert len(sites._RECENT) <= 50 and len(sites.LATEST) <= 50
    assert sum(each() is not None for each in kept) == 25


def test_a_site_may_be_found_while_another_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a finalizer, a handler of a signal or a profiling function that computes with arrays: it does not wait."""
    here, other, found = _place(), _place(), []

    class Interrupted(sites.CallSite):
        __slots__ = ()

        def __init__(self, frame: FrameType) -> None:
            super().__init__(frame)
            if self.code is not other.__code__:
                found.append(other())

    monkeypatch.setattr(sites, "CallSite", Interrupted)
    thread = threading.Thread(target=lambda: found.append(here()), daemon=True)
    thread.start()
    thread.join(60)
    assert [site.code for site in found] == [other.__code__, here.__code__]


@pytest.mark.parametrize("names", [{}, {"__name__": None}, {"__name__": 5}])
def test_the_code_of_a_site_need_not_be_a_modules(names: dict[str, Any]) -> None:
    exec("site = user_site(0)", names := {**names, "user_site": sites.user_site})
    assert names["site"].module == "<unknown>"
