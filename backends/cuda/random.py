"""Uniform random numbers by a kernel: the words that NumPy's bit generators draw, bit for bit, from any place on.

A thread goes to its first word at once and then on in steps of all threads, so that neighbours write neighbours. PCG64
and PCG64DXSM are linear congruential generators modulo 2**128 (O'Neill, "PCG: A family of simple fast space-efficient
statistically good algorithms for random number generation", 2014), of which n steps are one multiplication and one
addition (Brown, "Random number generation with arbitrary strides", 1994). Philox makes four words of a number (Salmon,
Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from numpy_dist.backends.cuda.header import HEADER
from numpy_dist.backends.cuda.source import THREADS, DeviceKernel

_MASK64, _MASK128, _MASK256 = ((1 << bits) - 1 for bits in (64, 128, 256))
_STEP = {"PCG64": 0x2360ED051FC65DA44385DF649FCCF645, "PCG64DXSM": 0xDA942042E4DD58B5}
_BLOCKS = 1024
_LENGTH = 16  # words of the argument block: address, count, low, span, and what a generator has

_BOUNDS = "low = nd_scalar<nd_f8>(a.w + 2), span = nd_scalar<nd_f8>(a.w + 3)"
_ARITHMETIC = """
struct nd_u16 { nd_u8 high, low; };
ND_FUNCTION nd_u8 nd_high_product(nd_u8 a, nd_u8 b) {
  const nd_u8 a0 = a & 0xffffffffull, a1 = a >> 32, b0 = b & 0xffffffffull, b1 = b >> 32;
  const nd_u8 middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & 0xffffffffull);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}
ND_FUNCTION nd_u16 nd_product(nd_u16 a, nd_u16 b) {
  nd_u16 c;
  c.low = a.low * b.low;
  c.high = nd_high_product(a.low, b.low) + a.high * b.low + a.low * b.high;
  return c;
}
ND_FUNCTION nd_u16 nd_sum(nd_u16 a, nd_u16 b) {
  nd_u16 c;
  c.low = a.low + b.low;
  c.high = a.high + b.high + (c.low < a.low);
  return c;
}
ND_FUNCTION double nd_uniform(nd_u8 word, double low, double span) {
  return low + span * ((double)(word >> 11) * (1.0 / 9007199254740992.0));
}
"""

# Words 4 to 11: the state before the first word, the increment, the factor and the addend of as many steps as there are
# threads; each as its high and its low part. Word 12: the factor of one step.
_LINEAR = """
  const nd_u16 start = {(nd_u8)a.w[4], (nd_u8)a.w[5]}, increment = {(nd_u8)a.w[6], (nd_u8)a.w[7]};
  const nd_u16 far_factor = {(nd_u8)a.w[8], (nd_u8)a.w[9]}, far_addend = {(nd_u8)a.w[10], (nd_u8)a.w[11]};
  ND_BEGIN
  nd_u8 distance = (nd_u8)(nd_block_x * 256 + nd_thread);
  nd_i8 k = (nd_i8)distance;
  nd_u16 factor = {0, 1}, addend = {0, 0}, power = {(nd_u8)a.w[13], (nd_u8)a.w[12]}, plus = increment;
  for (; distance; distance >>= 1) {
    if (distance & 1) { factor = nd_product(factor, power); addend = nd_sum(nd_product(addend, power), plus); }
    const nd_u16 one = {0, 1};
    plus = nd_product(nd_sum(power, one), plus);
    power = nd_product(power, power);
  }
  nd_u16 state = nd_sum(nd_product(start, factor), addend);
  for (; k < count; k += nd_grid_x * 256) {
    OUTPUT
    nd_store<nd_f8>(a.w[0] + 8 * k, nd_uniform(word, low, span));
    state = nd_sum(nd_product(state, far_factor), far_addend);
  }
  ND_END
"""
_OUTPUTS = {
    # The state after a step is the word's.
    "PCG64": """
    const nd_u8 mixed = state.high ^ state.low;
    const unsigned turn = (unsigned)(state.high >> 58);
    const nd_u8 word = mixed >> turn | mixed << (-turn & 63);
""",
    # The state before a step is the word's.
    "PCG64DXSM": """
    nd_u8 word = state.high;
    const nd_u8 odd = state.low | 1;
    word ^= word >> 32;
    word *= 0xda942042e4dd58b5ull;
    word ^= word >> 48;
    word *= odd;
""",
}

# Words 4 to 7: the counter of the first four words, lowest part first; 8 and 9: the key; 10: where among them to begin.
_PHILOX = """
  ND_BEGIN
  for (nd_i8 k = nd_block_x * 256 + nd_thread; k < count; k += nd_grid_x * 256) {
    const nd_u8 place = (nd_u8)k + (nd_u8)a.w[10];
    nd_u8 c0 = (nd_u8)a.w[4] + (place >> 2), c1 = (nd_u8)a.w[5], c2 = (nd_u8)a.w[6], c3 = (nd_u8)a.w[7];
    if (c0 < (place >> 2) && ++c1 == 0 && ++c2 == 0) ++c3;
    nd_u8 k0 = (nd_u8)a.w[8], k1 = (nd_u8)a.w[9];
    for (int round = 0; round < 10; ++round) {
      const nd_u8 h0 = nd_high_product(0xd2e7470ee14c6c93ull, c0), l0 = 0xd2e7470ee14c6c93ull * c0;
      const nd_u8 h1 = nd_high_product(0xca5a826395121157ull, c2), l1 = 0xca5a826395121157ull * c2;
      c0 = h1 ^ c1 ^ k0; c1 = l1; c2 = h0 ^ c3 ^ k1; c3 = l0;
      k0 += 0x9e3779b97f4a7c15ull; k1 += 0xbb67ae8584caa73bull;
    }
    const int lane = (int)(place & 3);
    const nd_u8 word = lane == 0 ? c0 : lane == 1 ? c1 : lane == 2 ? c2 : c3;
    nd_store<nd_f8>(a.w[0] + 8 * k, nd_uniform(word, low, span));
  }
  ND_END
"""


@lru_cache(maxsize=4)
def kernel(generator: str) -> DeviceKernel:
    """The kernel for one of NumPy's bit generators."""
    body = _PHILOX if generator == "Philox" else _LINEAR.replace("OUTPUT", _OUTPUTS[generator])
    body = f"const nd_i8 count = a.w[1]; const double {_BOUNDS};{body}"
    name = "nd_uniform_" + hashlib.sha256((HEADER + _ARITHMETIC + body).encode()).hexdigest()[:20]
    struct = f"struct {name}_args {{ nd_i8 w[{_LENGTH}]; }};"
    text = f"{HEADER}{_ARITHMETIC}\n{struct}\nND_KERNEL {name}(const {name}_args a) {{{body}}}\n"
    return DeviceKernel(text, name, {}, _LENGTH)


def knows(generator: str) -> bool:
    """Whether there is a kernel for a bit generator, by the name in its state."""
    return generator == "Philox" or generator in _STEP


def uniform(
    address: int,
    count: int,
    state: Mapping[str, Any],
    low: float,
    span: float,
    launch: Callable[[DeviceKernel, np.ndarray, tuple[int, int]], None],
) -> None:
    """Start the kernel that writes so many doubles: ``low + span * x`` for the next ``Generator.random`` in a state."""
    name = state["bit_generator"]
    grid = (max(min(-(-count // THREADS), _BLOCKS), 1), 1)
    words = np.zeros(_LENGTH, np.uint64)
    words[:2] = address, count
    words[2:4] = np.array([low, span]).view(np.uint64)
    if name == "Philox":
        words[4:8], words[8:10] = state["state"]["counter"], state["state"]["key"]
        words[10] = int(state["buffer_pos"])
    else:
        start, increment, step = state["state"]["state"], state["state"]["inc"], _STEP[name]
        if name == "PCG64":
            start = (start * step + increment) & _MASK128
        far = _steps(grid[0] * THREADS, step, increment)
        for place, number in enumerate((start, increment, *far)):
            words[4 + 2 * place : 6 + 2 * place] = number >> 64, number & _MASK64
        words[12:14] = step & _MASK64, step >> 64
    launch(kernel(name), words.view(np.int64), grid)


def _steps(count: int, factor: int, addend: int) -> tuple[int, int]:
    """The factor and the addend of so many steps."""
    made, plus = 1, 0
    while count:
        if count & 1:
            made, plus = made * factor & _MASK128, (plus * factor + addend) & _MASK128
        addend = (factor + 1) * addend & _MASK128
        factor = factor * factor & _MASK128
        count >>= 1
    return made, plus
