"""Copies of arrays, element by element.

An array that is assigned to a slice or to a row makes Numba compile the message of an error about
shapes: 2 s of string formatting. A loop takes 0.07 s and is as fast, since LLVM makes the same copy
of it. `tests/runtime/jit/test_cold_code.py` looks for such assignments.
"""

from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def copy_to(target, first, values):  # type: ignore[no-untyped-def]
    """Write all values, an array, into another array from a place on."""
    for place in range(values.shape[0]):
        target[first + place] = values[place]
