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
    put_byte_at,
    put_half_word_at,
    put_long_word_at,
    put_word_at,
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


def _stores(type: Any) -> Any:
    """What writes a number of a type at an address (int64)."""

    @intrinsic
    def store(typing_context, address, number):  # type: ignore[no-untyped-def]
        def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            pointer = context.get_value_type(type).as_pointer()
            at = builder.inttoptr(arguments[0], pointer)
            builder.store(arguments[1], at, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, type), code

    return store


_NUMBERS = {
    byte_at: _loads(types.uint8),
    half_word_at: _loads(types.int16),
    word_at: _loads(types.int32),
    long_word_at: _loads(types.int64),
}

_PUTS: dict[Any, tuple[Any, Any]] = {
    put_byte_at: (_stores(types.uint8), np.uint8),
    put_half_word_at: (_stores(types.int16), np.int16),
    put_word_at: (_stores(types.int32), np.int32),
    put_long_word_at: (_stores(types.int64), np.int64),
}


def teach_numba() -> None:
    """Let Numba compile the functions of `instructions`."""
    options: Any = {"jit_options": {"nogil": True, "_nrt": False}, "inline": "always"}

    @overload(prefetch, **options)
    def _(table, place):  # type: ignore[no-untyped-def]
        return lambda table, place: _prefetch(table, place)

    for function, load in _NUMBERS.items():
        _teach_number(function, load, options)
    for put, (store, dtype) in _PUTS.items():
        _teach_put(put, store, dtype, options)


def _teach_number(function: Any, load: Any, options: Any) -> None:
    @overload(function, **options)
    def _(address):  # type: ignore[no-untyped-def]
        return lambda address: load(np.int64(address))


def _teach_put(function: Any, store: Any, dtype: Any, options: Any) -> None:
    @overload(function, **options)
    def _(address, number):  # type: ignore[no-untyped-def]
        return lambda address, number: store(np.int64(address), dtype(number))
