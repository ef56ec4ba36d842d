"""Call sites: one object for a place in the user's code, kept for a while, and in bounded memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
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
