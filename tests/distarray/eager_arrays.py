"""An adapter for the conformance suite: sharded arrays of an eager program (`engine.scheduling.eagerness`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from numpy_dist import settings
from numpy_dist.conformance.dist_arrays import DistArrays
from numpy_dist.conformance.known_differences import Difference
from numpy_dist.engine.data import windows
from numpy_dist.settings import config
from tests.distarray.at_hand_arrays import AtHandArrays


@contextmanager
def eager(usual: int, limit: int) -> Iterator[None]:
    """A program that is eager whatever it does: arrays of less than `limit` bytes come near."""

    def lift() -> None:
        windows.usual, windows.limit, windows.eager = usual, limit, True

    with pytest.MonkeyPatch.context() as patch:
        for name in ("AT_ONCE", "MIN_SHARD_BYTES"):
            patch.setitem(settings.MIRRORS, name, lift)
        lift()
        try:
            yield
        finally:
            patch.undo()
            windows._set_limit()


class EagerArrays(DistArrays):
    """Sharded arrays, which come near as soon as an operator or a function is applied to them."""

    def differences(self) -> tuple[Difference, ...]:
        return AtHandArrays().differences()

    def settings(self) -> AbstractContextManager[Any]:
        return config(MIN_SHARD_BYTES=0, FALLBACK="error")
