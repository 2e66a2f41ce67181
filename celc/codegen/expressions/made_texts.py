"""Functions of texts in the declaration of an aggregate → calls of `engine.values.made_texts`."""

from collections.abc import Callable
from functools import reduce

from celc.codegen.text.imports import Imports
from celc.core import formula as core

_KERNELS = {
    "LENGTH": "length_of_text",
    "REPLACE": "replaced_text",
    "STARTSWITH": "begins_with",
    "ENDSWITH": "ends_with",
    "POSITION": "place_of_text",
    "CAST": "text_of_whole",
}
_TRIMMED = {"TRIM": ("True", "True"), "LTRIM": ("True", "False"), "RTRIM": ("False", "True")}
_ALL_CHARACTERS = str(2**31 - 1)


def code_of_texts(
    call: core.Call, value: Callable[[core.Expression], str], imports: Imports
) -> str:
    """The value of a function of texts where no operand is NULL; `value` is that of an operand."""
    operands = [value(one) for one in call.operands]
    match call.function:
        case "CONCAT":
            return reduce(lambda left, right: imports.call("joined_text", left, right), operands)
        case "SUBSTR":
            length = operands[2] if len(operands) == 3 else _ALL_CHARACTERS
            return imports.call("part_of_text", *operands[:2], length)
        case "TRIM" | "LTRIM" | "RTRIM":
            return imports.call("trimmed_text", *operands, *_TRIMMED[call.function])
        case "REPLACE" if len(operands) == 2:
            operands.append(imports.call("no_text"))
    return imports.call(_KERNELS[call.function], *operands)
