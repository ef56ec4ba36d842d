"""Skip-ahead for MT19937: its state after any number of draws, without making them.

The words of the Mersenne Twister satisfy a linear recurrence over GF(2) whose characteristic polynomial has degree
19937. Hence the words that follow ``n`` draws are a fixed XOR of the first 19937 ones, chosen by the coefficients of
``x**n`` modulo that polynomial (Haramoto, Matsumoto, Nishimura, Panneton, L'Ecuyer, "Efficient Jump Ahead for F2-Linear
Random Number Generators", INFORMS Journal on Computing 20 (3), 2008). Tempering is linear too, so that the words which
NumPy hands out serve, and only the last 624 are turned back into the state.

A new distance takes 40 to 100 ms, one that was used before 13 to 25 ms; drawing runs at 1.2e8 to 2.5e8 words a second
(``benchmarks/random_numbers.py``), so that short distances are drawn (:data:`DRAWN`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

BLOCK = 624
DEGREE = 19937
MIDDLE = 397
TWIST = 0x9908B0DF

#: Distances up to this many words are drawn, longer ones jumped.
DRAWN = 1 << 22

State = Mapping[str, Any]


def words(bit_generator: np.random.BitGenerator, count: int) -> np.ndarray:
    """The next `count` draws of 32 bits, in order."""
    return np.random.Generator(bit_generator).integers(0, 1 << 32, size=count, dtype=np.uint32)


def _multiply(a: int, b: int) -> int:
    """Product of two polynomials over GF(2); bit ``k`` of an int is the coefficient of ``x**k``."""
    product = 0
    while b:
        low = b & -b
        product ^= a << (low.bit_length() - 1)
        b ^= low
    return product


@lru_cache(maxsize=1)
def characteristic() -> int:
    """The characteristic polynomial of MT19937 (Matsumoto and Nishimura 1998, appendix A), 135 terms."""
    long = (1 << BLOCK) ^ (1 << MIDDLE)
    short = (1 << (BLOCK - 1)) ^ (1 << (MIDDLE - 1))
    power = [1]
    for _ in range(31):
        power.append(_multiply(power[-1], short))
    polynomial = _multiply(power[31], long)
    for bit in range(31):
        if TWIST >> bit & 1:
            polynomial ^= _multiply(power[30 - bit], long)
    return polynomial ^ (TWIST >> 31 & 1)


@lru_cache(maxsize=1)
def _tables() -> tuple[list[int], np.ndarray]:
    """Multiples of the polynomial by each 8-bit factor, and the bits of each byte spread to even places."""
    # The second term of the polynomial lies 227 below the first, so a factor of 8 bits appears unchanged on top.
    multiples = [_multiply(characteristic(), byte) for byte in range(256)]
    spread = [sum((byte >> bit & 1) << 2 * bit for bit in range(8)) for byte in range(256)]
    return multiples, np.array(spread, dtype="<u2")


def _reduced(polynomial: int) -> int:
    """`polynomial` modulo the characteristic one."""
    multiples = _tables()[0]
    for shift in range((polynomial.bit_length() - DEGREE - 1) // 8 * 8, -1, -8):
        top = polynomial >> (DEGREE + shift)
        if top:
            polynomial ^= multiples[top] << shift
    return polynomial


def _squared(polynomial: int) -> int:
    data = np.frombuffer(polynomial.to_bytes((DEGREE + 7) // 8, "little"), dtype=np.uint8)
    return _reduced(int.from_bytes(_tables()[1][data].tobytes(), "little"))


@lru_cache(maxsize=64)
def _terms(distance: int) -> np.ndarray:
    """The exponents of ``x**distance`` modulo the characteristic polynomial."""
    shift = max(0, distance.bit_length() - 14)
    polynomial = 1 << (distance >> shift)
    for bit in reversed(range(shift)):
        polynomial = _squared(polynomial)
        if distance >> bit & 1:
            polynomial = _reduced(polynomial << 1)
    data = np.frombuffer(polynomial.to_bytes((DEGREE + 7) // 8, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(data, bitorder="little"))


def _untempered(word: np.ndarray) -> np.ndarray:
    """The state's words from those handed out: the four tempering steps undone."""
    word = word ^ word >> 18
    word ^= word << 15 & np.uint32(0xEFC60000)
    undone = word.copy()
    for _ in range(4):
        undone = word ^ (undone << 7 & np.uint32(0x9D2C5680))
    word = undone ^ undone >> 11
    return word ^ undone >> 22


def copied(state: State) -> np.random.MT19937:
    """A generator of its own in `state`."""
    bit_generator: Any = np.random.MT19937(0)
    bit_generator.state = state
    return bit_generator


def skipped(state: State, count: int) -> np.random.MT19937:
    """A generator in the state that NumPy's has when it has drawn `count` words from `state` on."""
    bit_generator = copied(state)
    # A block is made when its first word is drawn, so NumPy is at 624 of the old one, never at 0 of the new one.
    block, position = divmod(state["state"]["pos"] + count - 1, BLOCK)
    if count <= DRAWN or block < 2:
        if count:
            bit_generator.random_raw(count, output=False)
        return bit_generator
    bit_generator.random_raw(BLOCK - state["state"]["pos"], output=False)
    # Only generated words satisfy the recurrence (31 bits of a seeded state do not matter), so it begins with block 1.
    drawn = words(bit_generator, DEGREE + BLOCK)
    target = np.zeros(BLOCK, np.uint32)
    for start in _terms((block - 1) * BLOCK).tolist():
        np.bitwise_xor(target, drawn[start : start + BLOCK], out=target)
    key = _untempered(target)
    reached: Any = {"bit_generator": "MT19937", "state": {"key": key, "pos": position + 1}}
    bit_generator.state = reached
    return bit_generator
