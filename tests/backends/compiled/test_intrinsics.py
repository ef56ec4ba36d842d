"""What kernels import: pointers, bits, inner loops, stack memory, flags and atomics."""

import threading

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

from numpy_dist.backends.compiled import inner_loops, intrinsics, worker
from tests.backends.compiled.kernels import call, compiled, source

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip


def sample(dtype, count=37):
    rng = np.random.default_rng(1)
    return (
        np.frombuffer(rng.bytes(count * np.dtype(dtype).itemsize), dtype) if dtype != "bool" else rng.random(37) > 0.5
    )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_pointers_read_and_write_each_dtype(dtype):
    address = compiled(
        source(
            f"a = numba.carray(pointer_{dtype}(w[0]), (w[3],))",
            f"b = numba.carray(pointer_{dtype}(w[1]), (w[3],))",
            f"p = numba.carray(pointer_{dtype}(w[2]), (w[3],))",
            "for j in range(w[3]):",
            "    b[j] = a[j]",
            "    p[j] = a[w[3] - 1 - j]",
            "return 0",
        )
    )
    x = sample(dtype)
    y, z = np.zeros_like(x), np.zeros_like(x)
    call(address, x, y, z, x.size)
    assert y.tobytes() == x.tobytes()
    assert z.tobytes() == x[::-1].tobytes()


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "complex128"])
def test_bits_of_a_word(dtype):
    address = compiled(source(f"numba.carray(pointer_{dtype}(w[0]), (1,))[0] = bits_{dtype}(w[1])", "return 0"))
    for value in sample(dtype, 8):
        out, bits = np.zeros(1, dtype), np.full(1, -1, np.int64)
        bits.view(dtype)[0] = value
        if dtype == "bool":
            bits[0] = int(value) << 0 | 0x100  # the low byte counts
        call(address, out, bits[0])
        assert out.tobytes() == np.array([value], dtype).tobytes()


FLAGS = {
    "nothing": (1.5, 2.0, 0),
    "divide": (1.0, 0.0, intrinsics.DIVIDE),
    "invalid": (0.0, 0.0, intrinsics.INVALID),
    "over": (1e308, 1e-10, intrinsics.OVER),
    "under": (1e-308, 1e10, intrinsics.UNDER),
}


@pytest.fixture(scope="module")
def divide():
    return compiled(
        source(
            "clear_flags()",
            "a = numba.carray(pointer_float64(w[0]), (w[3],))",
            "b = numba.carray(pointer_float64(w[1]), (w[3],))",
            "c = numba.carray(pointer_float64(w[2]), (w[3],))",
            "for j in range(w[3]):",
            "    c[j] = a[j] / b[j]",
            "return test_flags()",
        )
    )


@pytest.mark.parametrize("event", FLAGS)
@pytest.mark.parametrize("place", [0, 500, 1002])
def test_vectorised_events_are_seen_between_the_calls(divide, event, place):
    numerator, denominator, flag = FLAGS[event]
    a, b, c = np.full(1003, 3.0), np.full(1003, 1.5), np.zeros(1003)
    a[place], b[place] = numerator, denominator
    assert call(divide, a, b, c, 1003) == flag
    a[place], b[place] = 3.0, 1.5
    assert call(divide, a, b, c, 1003) == 0  # what was before is forgotten


def test_events_before_and_after_are_not_seen():
    address = compiled(
        source(
            "p, q = pointer_float64(w[0]), pointer_float64(w[1])",
            "q[0] = p[0] / p[1]",
            "clear_flags()",
            "q[1] = p[2] + p[2]",
            "flags = test_flags()",
            "q[2] = p[2] * p[2] / p[1]",
            "return flags",
        )
    )
    p, q = np.array([1.0, 0.0, 1e300]), np.zeros(3)
    assert call(address, p, q) == 0
    assert np.isinf(q[[0, 2]]).all()


def test_events_inside_inner_loops_are_seen():
    address = compiled(
        source("clear_flags()", "call_loop(w[0], w[1], w[2], w[3], w[4])", "return test_flags()"),
    )
    x, y = np.array([1.0, 1e4]), np.zeros(2)
    arguments, steps = np.array([x.ctypes.data, y.ctypes.data]), np.array([8, 8])
    assert call(address, exp_loop(), arguments, np.array([2]), steps, 0) == intrinsics.OVER
    x[1] = 2.0
    assert call(address, exp_loop(), arguments, np.array([2]), steps, 0) == 0


def test_inner_loops_give_numpys_bits_on_scratch_memory():
    address = compiled(
        source(
            "memory = scratch(8192)",
            "words = numba.carray(pointer_int64(scratch(48)), (6,))",
            "x, y, n = w[1], w[2], w[3]",
            "tile = numba.carray(pointer_float64(memory), (1024,))",
            "for start in range(0, n, 1024):",
            "    count = min(1024, n - start)",
            "    a = numba.carray(pointer_float64(x + 8 * start), (count,))",
            "    b = numba.carray(pointer_float64(y + 8 * start), (count,))",
            "    for j in range(count):",
            "        tile[j] = a[j]",
            "    words[0] = words[1] = memory",
            "    words[2] = count",
            "    words[3] = words[4] = 8",
            "    call_loop(w[0], words.ctypes.data, words.ctypes.data + 16, words.ctypes.data + 24, 0)",
            "    for j in range(count):",
            "        b[j] = tile[j]",
            "return memory % 64",
        )
    )
    x = np.random.default_rng(0).normal(size=100_003) * 100
    y = np.zeros_like(x)
    assert call(address, exp_loop(), x, y, x.size, 0) == 0
    assert y.tobytes() == np.exp(x).tobytes()


def exp_loop():
    return inner_loops.find(np.exp, (np.dtype("d"), np.dtype("d"))).function


def test_scratch_in_a_loop_is_one_piece_of_the_stack():
    address = compiled(
        source(
            "seen = pointer_int64(w[0])",
            "for j in range(w[1]):",
            "    here = scratch(4096)",
            "    pointer_int64(here)[0] = j",
            "    seen[j % 2] = here",
            "return scratch(64) % 64",
        )
    )
    seen = np.zeros(2, np.int64)
    assert call(address, seen, 1_000_000) == 0  # as much stack as that would be, no process has
    assert seen[0] == seen[1] != 0


def test_scratch_needs_a_literal():
    with pytest.raises(worker.SourceError, match="literal"):
        compiled(source("return scratch(w[0])"))


def test_atomics_lose_nothing():
    address = compiled(
        source(
            "for j in range(w[1]):",
            "    fetch_add(w[0], 3)",
            "    pause()",
            "return load_atomic(w[0])",
        )
    )
    total = np.zeros(1, np.int64)
    threads = [threading.Thread(target=call, args=(address, total, 100_000)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert total[0] == 3 * 4 * 100_000
    assert call(address, total, 0) == total[0]


def test_a_stored_word_publishes_what_was_written_before():
    """One thread writes data and then the word; another one spins on the word and reads the data."""
    write = compiled(
        source(
            "p = pointer_int64(w[1])",
            "for j in range(1, w[2]):",
            "    p[0] = j * j",
            "    store_atomic(w[0], j)",
            "    while load_atomic(w[0]) != 0:",
            "        pause()",
            "return 0",
        )
    )
    read = compiled(
        source(
            "p = pointer_int64(w[1])",
            "wrong = 0",
            "for j in range(1, w[2]):",
            "    while load_atomic(w[0]) != j:",
            "        pause()",
            "    wrong += p[0] != j * j",
            "    store_atomic(w[0], 0)",
            "return wrong",
        )
    )
    shared, data = np.zeros(1, np.int64), np.zeros(1, np.int64)
    writer = threading.Thread(target=call, args=(write, shared, data, 50))
    writer.start()
    assert call(read, shared, data, 50) == 0
    writer.join(60)
    assert data[0] == 49 * 49


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_each_machines_status_word_is_well_formed(machine):
    """The instructions themselves are tested above, on the machine that runs the tests: LLVM aborts at others'."""
    register, _ = intrinsics._MACHINES[machine]
    module = ir.Module(name=machine)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), []), "flags")
    builder = ir.IRBuilder(function.append_basic_block())
    intrinsics._write_status(builder, register, intrinsics._read_status(builder, register))
    builder.ret_void()
    text = str(llvm.parse_assembly(str(module)))  # checks the constraints against the types
    for words in {"x86_64": ("stmxcsr", "ldmxcsr"), "aarch64": ("mrs $0, fpsr", "msr fpsr, $0")}[machine]:
        assert text.count(f'asm sideeffect "{words}') == 1
