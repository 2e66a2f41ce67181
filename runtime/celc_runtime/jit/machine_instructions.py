"""The functions of `instructions` as Numba compiles them: each becomes one instruction."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from celc_runtime.jit.instructions import (
    byte_at,
    half_word_at,
    long_word_at,
    prefetch,
    word_at,
)


@intrinsic
def _prefetch(typing_context, table, place):  # type: ignore[no-untyped-def]
    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(array.data, [arguments[1]]), byte)
        type = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], type)
        # Arguments: to be read; to be kept in all caches; data, not instructions.
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(table, types.int64), code


def _loads(type: Any) -> Any:
    """What reads a number of a type at an address (int64)."""

    @intrinsic
    def load(typing_context, address):  # type: ignore[no-untyped-def]
        def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            pointer = context.get_value_type(type).as_pointer()
            return builder.load(builder.inttoptr(arguments[0], pointer), align=1)

        return type(types.int64), code

    return load


_NUMBERS = {
    byte_at: _loads(types.uint8),
    half_word_at: _loads(types.int16),
    word_at: _loads(types.int32),
    long_word_at: _loads(types.int64),
}


def teach_numba() -> None:
    """Let Numba compile the functions of `instructions`."""
    options: Any = {"jit_options": {"nogil": True, "_nrt": False}, "inline": "always"}

    @overload(prefetch, **options)
    def _(table, place):  # type: ignore[no-untyped-def]
        return lambda table, place: _prefetch(table, place)

    for function, load in _NUMBERS.items():
        _teach_number(function, load, options)


def _teach_number(function: Any, load: Any, options: Any) -> None:
    @overload(function, **options)
    def _(address):  # type: ignore[no-untyped-def]
        return lambda address: load(np.int64(address))
