"""A value of the runtime's dataclasses → the text of the call that makes it.

The last representation of a query is data of `celc_runtime.plan`, so it can be checked before it is
written. No place needs to know both the fields of a class and their text. The names to import are
those of the classes.
"""

from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from celc.codegen.text.escape import literal_lines, string_literal, tuple_text
from celc.codegen.text.imports import Imports
from celc.codegen.text.layout import LINE_LENGTH
from celc.plan.code import Code

_LONGEST_TUPLE = 1000  # texts that are written one by one; black takes seconds for more


def emit(value: object, imports: Imports) -> str:
    """An expression that makes a value. Fields with their default value are left out. A truth value
    is passed by name, and so is every field after it or after a field that was left out."""
    match value:
        case Code(text=text):
            return text
        case str():
            return _text(value)
        case float() if value != value or value in (float("inf"), -float("inf")):
            return f'float("{value}")'
        case None | int() | float():
            return repr(value)
        case tuple() if len(value) > _LONGEST_TUPLE and _are_lines(value):
            return f'tuple({string_literal(chr(10).join(value))}.split("\\n"))'
        case tuple():
            return tuple_text(emit(item, imports) for item in value)
        case _:
            assert is_dataclass(value), f"no data: {value!r}"
            return imports.call_of(type(value), *arguments_of(value, imports))


def arguments_of(value: Any, imports: Imports) -> list[str]:
    """The arguments of the call that makes a dataclass."""
    found, named = [], False
    for one in fields(value):
        given = getattr(value, one.name)
        if not one.init or _is_default(one, given):
            named = True
            continue
        named = named or one.kw_only is True or isinstance(given, bool)
        found.append(f"{one.name}={emit(given, imports)}" if named else emit(given, imports))
    return found


def _is_default(field: Field[Any], given: object) -> bool:
    # `True == 1`, but both can occur.
    default: object = field.default
    return field.default is not MISSING and type(given) is type(default) and given == default


def _text(text: str) -> str:
    """A literal. A text of several lines has a literal for each line."""
    literal = string_literal(text)
    if "\n" not in text or len(literal) <= LINE_LENGTH:
        return literal
    return f'"\\n".join([{", ".join(literal_lines(text))},])'


def _are_lines(texts: tuple[object, ...]) -> bool:
    return all(isinstance(text, str) and "\n" not in text for text in texts)
