"""The compiled backend: loops run in the interpreter at first sight, and as kernels when these are there."""

from __future__ import annotations

import atexit
import os
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from numpy_dist.backends.axes import in_memory_order, memory_order, with_long_rows
from numpy_dist.backends.base import Loop, ReduceStep
from numpy_dist.backends.compiled.arguments import ArgumentBlock, Reduced
from numpy_dist.backends.compiled.bundled import BundledLoops
from numpy_dist.backends.compiled.chained import ChainedLoops, steps_of, units_of
from numpy_dist.backends.compiled.compiler import CompileError, Compiler
from numpy_dist.backends.compiled.form import Form, lower
from numpy_dist.backends.compiled.kernel import Kernel
from numpy_dist.backends.compiled.kernel_files import kernel_file
from numpy_dist.backends.compiled.repair import repair
from numpy_dist.backends.compiled.routines import KernelMover
from numpy_dist.backends.compiled.short_rows import KernelRows
from numpy_dist.backends.compiled.source import generate
from numpy_dist.backends.compiled.text_reader import KernelTextReader
from numpy_dist.backends.compiled.threads import ThreadPool
from numpy_dist.backends.compiled.threads_count import cpus, thread_count
from numpy_dist.backends.graph import UnfitScalar, Unsupported
from numpy_dist.backends.interpreter import Interpreter
from numpy_dist.backends.memory import HOST
from numpy_dist.backends.summation import fold_chunks
from numpy_dist.frames import stack_level
from numpy_dist.settings import config

# Seconds that a loop may be interpreted before its kernel is asked for. Compiling it takes another process ten to
# thirty times as long, which is paid once: the kernel is there for all runs that follow.
ASK_SECONDS = 0.01
# What a loop has cost that is asked for when the script ends, and the share of all such loops' time that may be left.
LEAST_SECONDS = 0.001
LEFT = 0.05
# What a loop has cost that no kernel is possible for, when the user is told.
SLOW_SECONDS = 1.0


@dataclass
class Tier:
    """What is known of a form: its kernel or why it has none, and the time it has spent in the interpreter.

    `ask` is the time from which on the compiler is to be told (again), and `told` whether the user knows that there
    will be no kernel.
    """

    kernel: Kernel | None = None
    reason: str | None = None
    seconds: float = 0.0
    ask: float = ASK_SECONDS
    requested: bool = False
    address: int | None = None
    told: bool = False


_MOST_TIERS = 2048


def _new_tier(form: Form) -> Tier:
    try:
        return Tier(generate(form))
    except Unsupported as reason:
        return Tier(reason=str(reason))


class Compiled:
    """Executes loops by kernels on all threads of the rank.

    Parameters
    ----------
    compiler : Compiler
    threads : int
    when : str
        "auto": a kernel is compiled, by another process, when its loop has spent some time in the interpreter;
        "first": at first sight, and waited for; "never": nobody asks whether there could be one.

    Attributes
    ----------
    chained : int
        How often loops ran together (see `chain`).
    counts : dict
        Loops by the tier that ran them: "numba", "numpy"; and why the latter did where no kernel is possible.
    """

    name = "numba"
    memory = HOST

    def __init__(self, compiler: Compiler, threads: int, when: str = "auto") -> None:
        self.compiler, self.when = compiler, when
        self.pool = ThreadPool(threads, compiler)
        self.threads = threads
        self.interpreter = Interpreter()
        self.counts: dict[str, int] = {"numba": 0, "numpy": 0}
        self.reasons: dict[str, int] = {}
        self.chained = 0  # how often loops ran together
        self._tiers: dict[Form, Tier] = {}
        self._routines: dict[str, Tier] = {}
        self.mover = KernelMover(self._routine)
        self.text_reader = KernelTextReader(self._routine)
        self.short_rows = KernelRows(self._routine)

    def run(self, loop: Loop) -> CompiledRepeat | None:
        """Execute a loop (see `backends.base.Loop`)."""
        if 0 in loop.shape:
            return None
        if self.when == "never":
            loop.memo["interpreted"] = "COMPILE is 'never'"
            self.counts["numpy"] += 1
            self.interpreter.run(loop)
            return None
        tier = loop.memo.get("tier")
        if tier is not None and self._address(tier) is None:
            self._interpret(loop, tier)
            return None
        ordered = in_memory_order(loop)
        turned = with_long_rows(ordered)
        try:
            lowered = lower(turned, across=turned is not ordered)
        except UnfitScalar as reason:
            loop.memo["interpreted"] = str(reason)
            self._interpret(loop, Tier(reason=str(reason)))
            return None
        except Unsupported as reason:
            tier = loop.memo["tier"] = Tier(reason=str(reason))
        else:
            tier = self._tiers.get(lowered.form)
            if tier is None:
                if len(self._tiers) >= _MOST_TIERS:  # loops that run again have theirs
                    self._tiers.clear()
                tier = self._tiers[lowered.form] = _new_tier(lowered.form)
            loop.memo["tier"] = tier
        address = self._address(tier)
        if address is None:
            self._interpret(loop, tier)
            return None
        assert tier.kernel is not None
        order = memory_order(loop) if loop.shape else None
        repeated = CompiledRepeat(self, address, ArgumentBlock(turned, lowered, tier.kernel), order)
        reductions = [step for step in loop.steps if isinstance(step, ReduceStep)]
        for step, result in zip(reductions, repeated.launch(lambda: loop), strict=True):
            step.partial[...] = result.reshape(step.partial.shape)
        return repeated

    def fence(self) -> None:
        """Everything has finished when `run` returns."""

    def tier(self, memo: dict[str, Any]) -> str:
        """As in `backends.base.Backend`."""
        tier = memo.get("tier")
        if tier is None:
            return f"numpy: {memo['interpreted']}" if "interpreted" in memo else "not run yet"
        if tier.reason is not None:
            return f"numpy: {tier.reason}"
        if tier.address is not None:
            return "numba"
        return f"numpy: not yet compiled, {tier.seconds:.3f} s interpreted, " + (
            "asked for" if tier.requested else f"asked for after {ASK_SECONDS:g} s"
        )

    def chain(self, members: Sequence[tuple[int, ArgumentBlock]], rows: int) -> ChainedLoops | None:
        """Kernels as one, given by their addresses and blocks (see `backends.base.Chainable.chain`)."""
        steps = steps_of([block for _, block in members], rows, self.pool.count)
        if steps is None:
            return None
        address = self._routine(kernel_file("chain"), True)
        return None if address is None else ChainedLoops(self, address, members, rows, steps)

    def bundle(self, members: Sequence[CompiledRepeat]) -> BundledLoops | None:
        """Kernels as one (see `backends.base.Chainable.bundle`)."""
        address = self._routine(kernel_file("bundle"), True)
        return None if address is None else BundledLoops(self, address, members)

    def _interpret(self, loop: Loop, tier: Tier) -> None:
        """Run a loop without its kernel; the kernel is asked for when the loop has cost as much as compiling it."""
        self.counts["numpy"] += 1
        begin = time.perf_counter()
        self.interpreter.run(loop)
        tier.seconds += time.perf_counter() - begin
        if tier.kernel is None:
            assert tier.reason is not None
            self.reasons[tier.reason] = self.reasons.get(tier.reason, 0) + 1
            if tier.seconds >= SLOW_SECONDS and not tier.told:
                tier.told = True
                loop.memo["slow"] = f"{tier.seconds:.1f} s so far: {tier.reason}"
        elif self.when == "auto" and tier.seconds >= tier.ask:
            self._request(tier)
            for memo in loop.memo.get("siblings", ()):
                if "tier" in memo and not memo["tier"].requested:
                    self._request(memo["tier"])

    def _request(self, tier: Tier) -> None:
        """Have the kernel of a loop compiled, if one is possible; what has cost most time comes first."""
        if tier.kernel is not None and tier.address is None:
            tier.requested = True
            tier.ask = 2 * max(tier.seconds, ASK_SECONDS)
            self.compiler.request(tier.kernel.text, tier.seconds)
            self._warn()

    def prepare(self) -> None:
        """Have a compiling process started, where it looks as if there were something to compile."""
        if self.when != "never":
            self.compiler.prepare()
            self._warn()

    def ask_for_the_rest(self) -> None:
        """Ask for the kernels that another run of this program would miss most; when the program ends."""
        tiers = [tier for tier in self._tiers.values() if tier.kernel is not None and tier.address is None]
        if self.when != "auto" or not tiers:
            return
        tiers.sort(key=lambda tier: tier.seconds, reverse=True)
        left = whole = sum(tier.seconds for tier in tiers)
        for tier in tiers:
            if tier.seconds < LEAST_SECONDS or left <= LEFT * whole:
                break
            left -= tier.seconds
            self._request(tier)
        if left < whole:  # where these have kernels, they will run together
            for name in ("bundle", "chain"):
                self._routine(kernel_file(name), True)

    def _address(self, tier: Tier) -> int | None:
        """The address of a loop's kernel, if it is there."""
        if tier.address is None and tier.kernel is not None and self.when != "never":
            text = tier.kernel.text
            if self.when == "first":
                self.compiler.request(text)
                self._warn()
                try:
                    tier.address = self.compiler.compile(text)
                except CompileError as error:
                    tier.kernel, tier.reason = None, f"not compiled: {error}"
            else:
                tier.address = self.compiler.address(text)
                if tier.address is None:
                    self._warn()
                    if tier.requested and (why := self.compiler.failed(text)) is not None:
                        tier.kernel, tier.reason = None, f"not compiled: {why}"
        return tier.address

    def _routine(self, text: str, asked: bool) -> int | None:
        """The address of a kernel that is no loop's, if it is there; it is compiled once it was asked for."""
        tier = self._routines.get(text)
        if tier is None:
            tier = self._routines[text] = Tier(Kernel(text, 0, {}, [], 0))
        if asked and self.when == "auto":
            self._request(tier)
        return self._address(tier)

    def _warn(self) -> None:
        said = self.compiler.warning()
        if said is not None:
            warnings.warn(said, RuntimeWarning, stacklevel=stack_level(ours=True))


class CompiledRepeat:
    """A loop that has a kernel (see `backends.base.Repeat`)."""

    def __init__(self, backend: Compiled, address: int, block: ArgumentBlock, order: tuple[int, ...] | None) -> None:
        self._backend, self.address, self.block, self.order = backend, address, block, order
        self.operands, self.scalars = block.operands, block.scalars

    def again(self, addresses: list[int], scalars: list[object], loop: Callable[[], Loop]) -> list[np.ndarray] | None:
        """Run the kernel on other memory."""
        try:
            self.block.fill(addresses, scalars)
        except OverflowError:
            return None
        return self.launch(loop)

    def fill(self, addresses: list[int], scalars: list[object]) -> bool:
        """Take the arguments of the next launch."""
        try:
            self.block.fill(addresses, scalars)
        except OverflowError:  # a Python integer that the dtype can not hold: NumPy compares them all the same
            return False
        return True

    def has_rows(self, rows: int) -> bool:
        """As in `backends.base.Chainable`."""
        return self.order is None and units_of(self.block, rows) is not None

    def chain(self, others: Sequence[CompiledRepeat], rows: int) -> ChainedLoops | None:
        """As in `backends.base.Chainable`."""
        return self._backend.chain([(loop.address, loop.block) for loop in (self, *others)], rows)

    def bundle(self, others: Sequence[CompiledRepeat]) -> BundledLoops | None:
        """As in `backends.base.Chainable`."""
        return self._backend.bundle([self, *others])

    def launch(self, loop: Callable[[], Loop]) -> list[np.ndarray]:
        """Run the kernel, have the interpreter do what it left undone, and put the chunks of reductions together."""
        backend, block = self._backend, self.block
        backend.counts["numba"] += 1
        grain = block.fine if block.fine and backend.pool.awake() else block.grain
        undone = backend.pool.run(self.address, block.address, block.units, grain)
        if undone:
            made = with_long_rows(in_memory_order(loop()))
            for first, end in undone:
                repair(backend.interpreter, made, block, first, end)
        if not block.reductions:
            return []
        return [self.result(loop, *reduction) for reduction in zip(block.reductions, block.parts, strict=True)]

    def result(self, loop: Callable[[], Loop], step: Reduced, parts: np.ndarray) -> np.ndarray:
        """A reduction's partial result, with the axes as the loop had them."""
        if parts.shape[1] > 1:
            kinds: dict[str, Literal["call"]] = dict.fromkeys(step.watched, "call")
            with np.errstate(all="ignore", call=lambda kind, flag: loop().report(step.label, kind), **kinds):
                folded = fold_chunks(step.ufunc.reduce, parts)
        else:
            folded = parts.copy()  # the block's own memory is written again
        if self.order is None:
            return folded.reshape(step.shape)
        return folded.reshape(step.shape).transpose(np.argsort(self.order))


_compilers: dict[tuple[str, int], Compiler] = {}
_backends: weakref.WeakSet[Compiled] = weakref.WeakSet()


def make(ranks_here: int) -> Compiled:
    """A new backend with the settings of this process; backends of one process share a compiler."""
    key = (config.CACHE_DIR, config.CACHE_SIZE)
    compiler = _compilers.get(key)
    if compiler is None:
        compiler = _compilers[key] = Compiler(*key, config.COMPILE_AFTER)
    sharing = 1 if len(cpus()) * ranks_here <= (os.cpu_count() or 1) else ranks_here
    made = Compiled(compiler, thread_count(config.NUM_THREADS, sharing), config.COMPILE)
    if config.COMPILE_AFTER:
        if not _backends:
            atexit.register(_at_exit)
        _backends.add(made)
    return made


def _at_exit() -> None:
    for made in list(_backends):
        made.ask_for_the_rest()
