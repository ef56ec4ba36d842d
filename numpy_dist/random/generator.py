"""`Generator`: NumPy's, with large arrays made by all ranks together."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import DTypeLike

from numpy_dist import engine
from numpy_dist.random import calls, draws, seeding, share
from numpy_dist.random.draws import Draw

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


class Generator(np.random.Generator):
    """NumPy's Generator on distributed arrays: NumPy's own numbers, bit for bit, at every number of ranks.

    After each call the bit generator is in the state in which NumPy's would be, on every rank.

    `random`, `uniform`, `integers`, `standard_normal`, `normal`, `standard_exponential` and `exponential` are split:
    with scalar parameters and PCG64, PCG64DXSM, Philox or MT19937, each rank makes only its share. Those with
    rejection (normals, exponentials, integers whose range is no power of two) exchange a few integers in one
    collective. All other methods, array parameters and bit generators are drawn by every rank, which keeps its part:
    the same numbers, in the time of one rank. Small arrays are made in whole by every rank.

    Parameters
    ----------
    bit_generator : numpy.random.BitGenerator
        Rank 0's state is taken on every rank. Collective.
    """

    def __init__(self, bit_generator: np.random.BitGenerator) -> None:
        if hasattr(bit_generator, "capsule"):
            bit_generator = seeding.agreed(bit_generator)
        super().__init__(bit_generator)
        self._plain = np.random.Generator(bit_generator)

    @classmethod
    def _of(cls, bit_generator: np.random.BitGenerator) -> Self:
        """The generator of a bit generator that is known to be alike on all ranks."""
        made = cls.__new__(cls)
        np.random.Generator.__init__(made, bit_generator)
        made._plain = np.random.Generator(bit_generator)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._of, (self.bit_generator,)

    def __getstate__(self) -> None:
        """The bit generator is all that there is."""

    def __setstate__(self, state: object) -> None:
        """The bit generator is all that there is."""

    def spawn(self, n_children: int) -> list[Self]:  # type: ignore[override]
        """Independent generators, alike on every rank; see `numpy.random.Generator.spawn`."""
        return [self._of(child) for child in self.bit_generator.spawn(n_children)]  # type: ignore[attr-defined]

    def _filled(
        self,
        name: str,
        draw: Callable[[np.dtype], Draw],
        size: object,
        dtype: DTypeLike | None,
        out: object,
        *more: object,
    ) -> object:
        """The methods that have `dtype` and `out`."""
        kind = np.dtype(dtype)
        if kind != DOUBLE and kind != SINGLE:
            return calls.check(self._plain, name, None, kind, *more)
        kind = DOUBLE if kind == DOUBLE else SINGLE
        if engine.is_handle(out):
            return calls.made_into(draw(kind), self._plain, size, out)
        shape = calls.shape_of(size)
        if shape is None or out is not None:
            return getattr(self._plain, name)(size, kind, *more, out=out)
        if share.is_small(shape, kind):
            return share.array_of(self._plain, getattr(self._plain, name)(shape, kind, *more))
        return share.make(draw(kind), self._plain, shape)

    def random(self, size: object = None, dtype: DTypeLike | None = np.float64, out: object = None) -> Any:  # type: ignore[override]
        """Floats in [0, 1); see `numpy.random.Generator.random`. Not collective."""
        return self._filled("random", draws.random, size, dtype, out)

    def standard_normal(self, size: object = None, dtype: DTypeLike | None = np.float64, out: object = None) -> Any:  # type: ignore[override]
        """Standard normals; see `numpy.random.Generator.standard_normal`. Collective if the array is sharded."""
        return self._filled("standard_normal", draws.standard_normal, size, dtype, out)

    def standard_exponential(  # type: ignore[override]
        self,
        size: object = None,
        dtype: DTypeLike | None = np.float64,
        method: Literal["zig", "inv"] = "zig",
        out: object = None,
    ) -> Any:
        """Standard exponentials; see `numpy.random.Generator.standard_exponential`. Collective if sharded."""
        return self._filled(
            "standard_exponential", lambda kind: draws.standard_exponential(kind, method), size, dtype, out, method
        )

    def _scaled(self, name: str, draw: Callable[..., Draw], size: object, *parameters: object) -> object:
        """The methods whose parameters are floats."""
        parameters = tuple(map(calls.scalar, parameters))
        if not calls.is_scalar(*parameters):
            return calls.everywhere(self._plain, name, (*parameters, size), {})
        shape = calls.shape_of(size)
        if shape is None:
            return getattr(self._plain, name)(*parameters, size)
        if share.is_small(shape, DOUBLE):
            return share.array_of(self._plain, getattr(self._plain, name)(*parameters, shape))
        calls.check(self._plain, name, *parameters, 1)
        return share.make(draw(*parameters), self._plain, shape)

    def uniform(self, low: object = 0.0, high: object = 1.0, size: object = None) -> Any:  # type: ignore[override]
        """Floats in [low, high); see `numpy.random.Generator.uniform`. Not collective for scalar bounds."""
        return self._scaled("uniform", lambda *bounds: draws.uniform(np.random.Generator, *bounds), size, low, high)

    def normal(self, loc: object = 0.0, scale: object = 1.0, size: object = None) -> Any:  # type: ignore[override]
        """Normals; see `numpy.random.Generator.normal`. Collective if the array is sharded."""
        return self._scaled("normal", draws.normal, size, loc, scale)

    def exponential(self, scale: object = 1.0, size: object = None) -> Any:  # type: ignore[override]
        """Exponentials; see `numpy.random.Generator.exponential`. Collective if the array is sharded."""
        return self._scaled("exponential", draws.exponential, size, scale)

    def integers(  # type: ignore[override]
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: Any = False
    ) -> Any:
        """Integers; see `numpy.random.Generator.integers`.

        Collective if the array is sharded and the range is no power of two.
        """
        low, high = calls.scalar(low), calls.scalar(high)
        if not calls.is_scalar(low, high):
            return calls.everywhere(self._plain, "integers", (low, high, size, dtype, endpoint), {})
        shape = calls.shape_of(size)
        if shape is None or not np.dtype(dtype).isnative:
            return self._plain.integers(low, high, size, dtype, endpoint)
        if share.is_small(shape, dtype) or 0 in shape:  # of no samples NumPy looks at no bounds
            return share.array_of(self._plain, self._plain.integers(low, high, shape, dtype, endpoint))
        calls.check(self._plain, "integers", low, high, 1, dtype, endpoint)
        if high is None:
            low, high = 0, low
        draw = draws.integers(integer(low), integer(high), np.dtype(dtype), bool(endpoint))
        return share.make(draw, self._plain, shape)


def integer(value: Any) -> int:
    """A bound as NumPy takes it: floats are cut off."""
    try:
        return operator.index(value)
    except TypeError:
        return int(np.asarray(value))


for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name != "bit_generator" and _name not in vars(Generator):
        setattr(Generator, _name, calls.delegating(np.random.Generator, _name))


def default_rng(seed: object = None) -> Generator:
    """A generator that is alike on every rank; see `numpy.random.default_rng`.

    Parameters
    ----------
    seed : None, int, array_like of ints, SeedSequence, BitGenerator, Generator or RandomState
        Without a seed the entropy comes from rank 0. Of objects that have a state, rank 0's is taken on every rank.
        Collective, but for ints, arrays, and generators of this module.
    """
    if isinstance(seed, Generator):
        return seed
    return Generator._of(seeding.bit_generator_from(seed))
