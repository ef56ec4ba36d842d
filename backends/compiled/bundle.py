"""A kernel that runs tasks: ranges of units of other kernels. Like `launch`, this file is a source, not imported.

Its block is the address of where it notes the unit at which a task stopped, and then the tasks.
"""

# mypy: ignore-errors
# (the types are Numba's)

from numpy_dist.backends.compiled.intrinsics import call_kernel, load_atomic, store_atomic

# Offsets in bytes, as in bundled.py.
STOPPED, FIRST = 0, 8
ADDRESS, BLOCK, BEGIN, END, TASK = 0, 8, 16, 24, 32


def kernel(block, first, last):
    for task in range(first, last):
        at = block + FIRST + TASK * task
        stop = call_kernel(
            load_atomic(at + ADDRESS), load_atomic(at + BLOCK), load_atomic(at + BEGIN), load_atomic(at + END)
        )
        if stop != 0:
            store_atomic(load_atomic(block + STOPPED) + 8 * task, stop - 1)
            return task + 1
    return 0
