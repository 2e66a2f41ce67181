"""Functions of texts that the declaration of an aggregate computes."""

from celc.core import formula as core

OF_TEXTS = (
    *("CONCAT", "LENGTH", "SUBSTR", "REPLACE", "TRIM", "LTRIM", "RTRIM"),
    *("STARTSWITH", "ENDSWITH", "POSITION"),
)
"""Those whose answers need no table of characters, and no regular expression."""


def is_of_texts(call: core.Call) -> bool:
    """Whether it is one of these functions, or makes a text of a whole number."""
    if call.function == "CAST" and call.type is core.DataType.STRING:
        return call.operands[0].type in core.WHOLE_NUMBERS
    return call.function in OF_TEXTS
