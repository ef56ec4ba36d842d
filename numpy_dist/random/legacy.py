"""`RandomState` and the module's functions: NumPy's legacy generator, its large arrays made by all ranks together."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np

from numpy_dist import engine
from numpy_dist.argument_types import Function
from numpy_dist.random import calls, draws, seeding, share
from numpy_dist.random.draws import Draw
from numpy_dist.random.generator import integer


class RandomState(np.random.RandomState):
    """NumPy's RandomState on distributed arrays: NumPy's own numbers, bit for bit, at every number of ranks.

    After each call the state is NumPy's, on every rank, with the normal that the polar method holds back.

    `random_sample`, `random`, `rand`, `uniform`, `randn`, `standard_normal`, `normal` and `randint` are split where
    that is faster: with scalar parameters and MT19937, each rank makes only its share. MT19937 has no ``advance``: a
    rank draws up to 4 million words to get to its share (1.2e8 to 2.5e8 words a second), and computes a jump for more
    (40 to 100 ms the first time, 13 to 25 ms when the distance was used before), so that arrays of fewer than some
    ten million elements are made in whole by every rank, which keeps its part. All other methods are, too.

    Parameters
    ----------
    seed : None, int, array_like of ints, SeedSequence or BitGenerator
        Without a seed, the entropy comes from rank 0; of a BitGenerator, rank 0's state is taken on every rank.
        Collective in these cases.
    """

    def __init__(self, seed: Any = None) -> None:
        if engine.is_handle(seed):
            seed = engine.gather(seed)
        plain = np.random.RandomState(seed)
        if seed is None or hasattr(seed, "capsule"):
            bit_generator = seeding.agreed(plain._bit_generator)
            if bit_generator is not plain._bit_generator:
                plain = np.random.RandomState(bit_generator)
        self._adopt(plain)

    def _adopt(self, plain: np.random.RandomState) -> None:
        # The wrapped generator holds back normals; of the base class's part only the bit generator is used.
        super().__init__(plain._bit_generator)
        self._plain = plain

    @classmethod
    def _of(cls, bit_generator: np.random.BitGenerator) -> Self:
        """The generator of a bit generator that is known to be alike on all ranks."""
        made = cls.__new__(cls)
        made._adopt(np.random.RandomState(bit_generator))
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._of, (self._bit_generator,), self.get_state(legacy=False)

    def seed(self, seed: Any = None) -> None:
        """Begin anew; see `numpy.random.RandomState.seed`. Collective without a seed: rank 0's entropy is taken."""
        self._plain.seed(engine.gather(seed) if engine.is_handle(seed) else seed)
        runtime = engine.runtime()
        if seed is None and runtime.size > 1:
            self._plain.set_state(runtime.comm.bcast(self._plain.get_state(legacy=False)))

    def get_state(self, legacy: bool = True) -> Any:
        """The state, which is the same on every rank; see `numpy.random.RandomState.get_state`."""
        return self._plain.get_state(legacy)  # type: ignore[call-overload]

    def set_state(self, state: Any) -> None:
        """Set the state, to the same on every rank; see `numpy.random.RandomState.set_state`."""
        self._plain.set_state(state)

    def _scaled(self, name: str, draw: Callable[..., Draw], size: object, *parameters: object) -> object:
        """The methods whose parameters are floats."""
        parameters = tuple(map(calls.scalar, parameters))
        if not calls.is_scalar(*parameters):
            return calls.everywhere(self._plain, name, (*parameters, size), {})
        shape = calls.shape_of(size)
        if shape is None:
            return getattr(self._plain, name)(*parameters, size)
        if share.is_small(shape, np.float64):
            return share.array_of(self._plain, getattr(self._plain, name)(*parameters, shape))
        calls.check(self._plain, name, *parameters, 1)
        return share.make(draw(*parameters), self._plain, shape)

    def random_sample(self, size: object = None) -> Any:
        """Floats in [0, 1); see `numpy.random.RandomState.random_sample`. Not collective."""
        return self._scaled("random_sample", draws.legacy_random, size)

    def random(self, size: object = None) -> Any:
        """As `random_sample`."""
        return self.random_sample(size)

    def rand(self, *args: object) -> Any:
        """As `random_sample`, with the dimensions as arguments."""
        return self.random_sample(args or None)

    def uniform(self, low: object = 0.0, high: object = 1.0, size: object = None) -> Any:
        """Floats in [low, high); see `numpy.random.RandomState.uniform`. Not collective for scalar bounds."""
        return self._scaled("uniform", lambda *bounds: draws.uniform(np.random.RandomState, *bounds), size, low, high)

    def standard_normal(self, size: object = None) -> Any:
        """Standard normals; see `numpy.random.RandomState.standard_normal`. Collective if the array is large."""
        return self._scaled("standard_normal", draws.legacy_normal, size)

    def randn(self, *args: object) -> Any:
        """As `standard_normal`, with the dimensions as arguments."""
        return self.standard_normal(args or None)

    def normal(self, loc: object = 0.0, scale: object = 1.0, size: object = None) -> Any:
        """Normals; see `numpy.random.RandomState.normal`. Collective if the array is large."""
        return self._scaled("normal", draws.legacy_normal, size, loc, scale)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        """Integers; see `numpy.random.RandomState.randint`. Collective if large, and the range is no power of two."""
        low, high = calls.scalar(low), calls.scalar(high)
        if not calls.is_scalar(low, high):
            return calls.everywhere(self._plain, "randint", (low, high, size, dtype), {})
        shape = calls.shape_of(size)
        kind = np.dtype("long" if dtype is int else dtype)
        if shape is None:
            return self._plain.randint(low, high, size, dtype)
        if share.is_small(shape, kind) or 0 in shape or not kind.isnative:  # of no samples NumPy looks at no bounds
            return share.array_of(self._plain, self._plain.randint(low, high, shape, dtype))
        calls.check(self._plain, "randint", low, high, 1, dtype)
        if high is None:
            low, high = 0, low
        draw = draws.randint(integer(low), integer(high), kind, lambda front, n: front.randint(low, high, n, dtype))
        return share.make(draw, self._plain, shape)


for _name in dir(np.random.RandomState):
    if not _name.startswith("_") and _name not in vars(RandomState):
        setattr(RandomState, _name, calls.delegating(np.random.RandomState, _name))


# Simulated ranks are threads of one process, and each has a random state of its own.
_states: WeakKeyDictionary[engine.Runtime, RandomState] = WeakKeyDictionary()


def state_of_module() -> RandomState:
    """The generator behind the functions of the module. Collective at first use, unless `seed` came first."""
    runtime = engine.runtime()
    found = _states.get(runtime)
    if found is None:
        found = _states[runtime] = RandomState()
    return found


def seed(seed: Any = None) -> None:
    """Begin anew; see `numpy.random.seed`. Collective without a seed. NumPy's own global state is not touched."""
    runtime = engine.runtime()
    found = _states.get(runtime)
    if found is None:
        _states[runtime] = RandomState(seed)
    elif isinstance(found._bit_generator, np.random.MT19937):
        found.seed(seed)
    else:
        # As NumPy does for another bit generator.
        fresh = seeding.agreed(type(found._bit_generator)(seed))
        found.set_state({**found.get_state(legacy=False), **fresh.state, "has_gauss": 0, "gauss": 0.0})


def get_bit_generator() -> np.random.BitGenerator:
    """The bit generator behind the functions of the module; see `numpy.random.get_bit_generator`."""
    return state_of_module()._bit_generator


def set_bit_generator(bitgen: np.random.BitGenerator) -> None:
    """Put another bit generator behind the functions of the module; see `numpy.random.set_bit_generator`.

    Collective: rank 0's state is taken.
    """
    _states[engine.runtime()] = RandomState(bitgen)


def _function(name: str, method: str) -> Function:
    """The function of the module that is a method of its generator."""

    def function(*args: object, **kwargs: object) -> object:
        return getattr(state_of_module(), method)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "numpy_dist.random"
    function.__doc__ = getattr(RandomState, method).__doc__
    signature = inspect.signature(getattr(RandomState, method))
    function.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    return function


_ALIASES = {"ranf": "random_sample", "sample": "random_sample"}

#: The functions of the module by name, but for those above.
functions = {
    name: _function(name, _ALIASES.get(name, name))
    for name in np.random.mtrand.__all__
    if hasattr(RandomState, _ALIASES.get(name, name)) and name != "seed"
}
