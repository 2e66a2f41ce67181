"""The functions of `instructions` as Numba compiles them: each becomes one instruction."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from celc_runtime.jit.instructions import prefetch


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


def teach_numba() -> None:
    """Let Numba compile the functions of `instructions`."""
    options: Any = {"jit_options": {"nogil": True, "_nrt": False}, "inline": "always"}

    @overload(prefetch, **options)
    def _(table, place):  # type: ignore[no-untyped-def]
        return lambda table, place: _prefetch(table, place)
