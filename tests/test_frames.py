"""Which line a warning names: one of ours the program's, one of NumPy's that of the caller, as NumPy has it."""

from __future__ import annotations

import json
import sysconfig
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist import frames
from numpy_dist.dispatch.core import fallback
from numpy_dist.errors import FallbackWarning
from numpy_dist.settings import config

LIBRARY = str(Path(sysconfig.get_path("purelib"), "library", "module.py"))


def library(text: str) -> Callable[..., Any]:
    """The function `call` of an installed library, which consists of this text."""
    names: dict[str, Any] = {"__name__": "library.module", "np": np, "frames": frames, "warnings": warnings}
    exec(compile(text, LIBRARY, "exec"), names)
    call: Callable[..., Any] = names["call"]
    return call


def test_the_frame_of_the_program_is_found_behind_libraries() -> None:
    find = library("def call(): return frames.calling_frame(frames.user_frame())")
    assert find().f_code is test_the_frame_of_the_program_is_found_behind_libraries.__code__
    nearest = library("def call(): return frames.user_frame()")
    assert nearest().f_code.co_filename == LIBRARY
    # Python's own library is one, too.
    back = json.loads('{"a": 1}', object_hook=lambda found: frames.calling_frame(frames.user_frame(2)))
    assert back.f_code is test_the_frame_of_the_program_is_found_behind_libraries.__code__


def test_without_a_program_it_is_the_nearest_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "library_folders", lambda: ("/", "<"))
    find = library("def call(): return frames.calling_frame(frames.user_frame())")
    assert find().f_code.co_filename == LIBRARY


@pytest.mark.parametrize(("ours", "filename"), [(True, __file__), (False, LIBRARY)])
def test_levels_of_the_stack(ours: bool, filename: str) -> None:
    issue = library(f"def call(): warnings.warn('said', UserWarning, stacklevel=frames.stack_level(ours={ours}))")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        issue()
    assert [w.filename for w in caught] == [filename]


def test_warnings_of_gathers_name_the_program_and_the_library() -> None:
    call = library(
        "def call(x, fallback):\n    fallback(np.cumsum, (x,), {}, 'why')\n    fallback(np.cumsum, (x,), {}, 'why')\n"
    )
    fallback.forget()
    with config(MIN_SHARD_BYTES=0), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module="library")  # of what is the program's it says nothing
        x = nd.arange(12.0)
        call(x, fallback.call)
        call(x, fallback.call)
    told = [(w.category, w.filename) for w in caught]
    assert told == [(FallbackWarning, __file__)] * 2  # once for each line of the program
    assert f"numpy.cumsum at {__file__}:{caught[0].lineno} (by {LIBRARY}:2) gathers" in str(caught[0].message)
    assert caught[1].lineno == caught[0].lineno + 1


@pytest.mark.parametrize("folder", ["", "~"])
def test_the_line_of_a_library_is_told_whichever_name_comes_first(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "LIBRARY", str(Path("/", folder, "site-packages", "module.py")))
    call = library("def call(x, fallback): fallback(np.cumsum, (x,), {}, 'why')\n")
    fallback.forget()
    with config(MIN_SHARD_BYTES=0), pytest.warns(FallbackWarning) as caught:
        call(nd.arange(12.0), fallback.call)
    assert f"at {__file__}:{caught[0].lineno} (by {LIBRARY}:1) gathers" in str(caught[0].message)


def test_numpys_own_warnings_name_whoever_calls_numpy() -> None:
    call = library("def call(x): return np.mean(x[:0])")
    with config(MIN_SHARD_BYTES=0), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(nd.arange(12.0))
    named = [w.filename for w in caught if "Mean of empty slice" in str(w.message)]
    assert named == [LIBRARY]  # what divides the scalars behind it is another line, with NumPy, too
