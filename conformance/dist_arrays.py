"""The adapter of numpy_dist's own arrays: random layouts, nothing gathered unless the table says so."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING

import numpy as np

import numpy_dist.distarray  # noqa: F401 - registers the class of the arrays
from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.conformance import suite
from numpy_dist.conformance.adapter import Adapter
from numpy_dist.conformance.known_differences import Arithmetic, Difference, all_differences, arithmetic
from numpy_dist.conformance.layouts import random_layout
from numpy_dist.dispatch.core import catalogue, fallback, registry
from numpy_dist.errors import FallbackError, FallbackWarning
from numpy_dist.settings import config
from numpy_dist.spmd_testing import forbid_gathers

if TYPE_CHECKING:
    from numpy_dist.comm.base import Communicator
    from numpy_dist.distarray.array import DistArray


class DistArrays(Adapter):
    """Distributed arrays in random layouts: irregular and empty shards, copies, pinned, replicated."""

    memory_order = True

    def distribute(self, base: np.ndarray, generator: random.Random) -> tuple[DistArray, str]:
        if not engine.shardable(base.dtype):
            return engine.replicated(base.copy("K")), "replicated"
        draw = generator.random()
        if draw < 0.1 and base.ndim:
            return engine.from_global(base), "the default layout"
        if draw < 0.15:
            return engine.replicated(base.copy("K")), "replicated"
        layout = random_layout(base.shape, engine.runtime().size, generator)
        return engine.from_global(base, layout), layout.describe()

    def is_array(self, x: object) -> bool:
        return engine.is_handle(x)

    def gather(self, x: DistArray) -> np.ndarray:
        return engine.gather(x)

    def is_sharded(self, x: object) -> bool:
        return engine.is_sharded(x)

    def kind_of(self, function: Function) -> str:
        return catalogue.kind_of(function)

    def reason_of(self, function: Function) -> str:
        record = registry.lookup(function)
        reasons = [rule.reason for rule in record.rules if rule.reason] if record is not None else []
        if catalogue.kind_of(function) in ("gathered", "refused"):
            return reasons[0] if reasons else ""
        cases = suite.cases_by_function().get(function, ())
        calls = {case.declines + " (not at 1 rank)" * case.alone for case in cases if case.declines}
        return f"gathered: {'; '.join(sorted(calls))}" if calls else ""

    def differences(self) -> tuple[Difference, ...]:
        return all_differences()

    def arithmetic(self) -> Arithmetic:
        return arithmetic()

    def finish(self, *arrays: DistArray) -> None:
        engine.force(*arrays)
        engine.flush()
        engine.runtime().events.tell()  # what is reported with the next collective, now

    def settings(self) -> AbstractContextManager[object]:
        return config(MIN_SHARD_BYTES=0, FALLBACK="error", ADVICE="off")

    def holds(self, dtype: np.dtype) -> bool:
        return engine.shardable(dtype)

    def foreign_tests(self) -> AbstractContextManager[object]:
        return config(MIN_SHARD_BYTES=0, FALLBACK="silent", ADVICE="off")

    @contextmanager
    def watched(self, may_gather: bool, may_move: bool) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(config(MIN_SHARD_BYTES=0, FALLBACK="warn" if may_gather else "error", ADVICE="off"))
            stack.enter_context(engine.lazily_recorded())  # `finish` executes, and then the recorder is read
            fallback.forget()
            if not may_move:
                stack.enter_context(forbid_gathers())
            yield

    def is_declined(self, error: BaseException) -> bool:
        return isinstance(error, FallbackError)

    def is_fallback(self, category: type[Warning]) -> bool:
        return issubclass(category, FallbackWarning)

    @property
    def comm(self) -> Communicator:
        return engine.runtime().comm
