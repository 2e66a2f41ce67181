"""Types that declarations write, and words around them that other systems have."""

from collections.abc import Collection

from celc.diagnostics.errors import Diagnostic, Fix, Related, error, warning
from celc.diagnostics.messages.wording import guess, guessed, quote
from celc.diagnostics.source import Span

_NEAREST = {
    "INT8": ("BYTE", "LONG"),
    "UINT8": ("SHORT",),
    "UTINYINT": ("SHORT",),
    "UINT16": ("INT",),
    "USMALLINT": ("INT",),
    "UINT32": ("LONG",),
    "UINTEGER": ("LONG",),
    "UINT64": ("DECIMAL(20, 0)",),
    "UBIGINT": ("DECIMAL(20, 0)",),
    "HUGEINT": ("DECIMAL(38, 0)",),
    "NUMBER": ("DOUBLE",),
    "UUID": ("STRING", "BINARY"),
    "JSON": ("STRING",),
    "ENUM": ("STRING",),
    "BIT": ("BOOLEAN",),
    "ROW": ("STRUCT",),
    "OBJECT": ("STRUCT",),
}
"""Words of other systems with more than one meaning, or for what no type here is."""
_REMEDIES = {
    "TIME": "there is no type of a time of day: declare the column TIMESTAMP, or read it as a "
    "STRING or as the LONG of its microseconds",
    "VARIANT": "write the columns that the query needs with their types before, or keep the value "
    "as a STRING of JSON",
    "PRIMARY_TIME": "it is the type of one attribute of an event type: write TIMESTAMP elsewhere",
}
_PARTS = {
    "DECIMAL": "the number of its digits, and of those behind the point",
    "ARRAY": "the type of its elements",
    "STRUCT": "fields, each with a name and a type",
    "MAP": "the types of its keys and of its values",
}


def unknown_type(name: str, types: Collection[str], span: Span) -> Diagnostic:
    """`EVENT A { id: INTEGR }`."""
    word = name.upper()
    near = _NEAREST.get(word)
    told: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    if word in _REMEDIES:
        told = (_REMEDIES[word],)
        instead = ("TIMESTAMP", "STRING", "LONG") if word == "TIME" else ("STRING",)
        instead = ("TIMESTAMP",) if word == "PRIMARY_TIME" else instead
        fixes = tuple(Fix(span, one) for one in instead)
    elif near is None:
        told, fixes = guess(name, types), guessed(name, types, span)
    else:
        told = (f"did you mean {' or '.join(map(quote, near))}?",)
        fixes = tuple(Fix(span, one) for one in near)
    message, listed = f"{quote(name)} is not a type", f"types: {', '.join(types)}"
    return error("unknown-type", span, message, *told, listed, fixes=fixes)


def parts_of_type(name: str, example: str | None, span: Span) -> Diagnostic:
    """`EVENT A { tags: ARRAY }`, `STRUCT<INT>` and `INT(10)`; `example` is None where the type has
    no parts."""
    if example is None:
        message, hint = f"the type {name} has no parts in brackets", f"write {name}"
    else:
        article = "an" if name == "ARRAY" else "a"
        message, hint = f"{article} {name} is written with {_PARTS[name]}", f"for example {example}"
    fixes = (Fix(span, name),) if example is None else ()
    return error("parts-of-type", span, message, hint, fixes=fixes)


def keys_of_map(type: str, span: Span) -> Diagnostic:
    """`MAP<INT, STRING>`."""
    message = f"the keys of a MAP are STRINGs, not {type}"
    hint = "write MAP<STRING, …>, or read the column as ARRAY<STRUCT<key: …, value: …>>"
    return error("keys-of-map", span, message, hint)


def duplicate_field(name: str, span: Span, first: Span) -> Diagnostic:
    """`STRUCT<a: INT, A: INT>`."""
    message = f"the STRUCT has two fields called {quote(name)}"
    hint = "give each field its own name; upper and lower case are the same, as in Spark"
    related = (Related(first, "the first one"),)
    return error("duplicate-field", span, message, hint, related=related)


def digits_of_decimal(precision: int, scale: int, most: int, span: Span) -> Diagnostic:
    """`DECIMAL(50, 2)`, or `DECIMAL(2, 5)`."""
    message = f"there is no type DECIMAL({precision}, {scale})"
    hint = (
        f"the first number counts all digits, from 1 to {most}; the second one those behind the "
        "point, from 0 to the first number"
    )
    return error("digits-of-decimal", span, message, hint)


def bare_decimal(written: str, span: Span) -> Diagnostic:
    """`EVENT A { price: DECIMAL }`."""
    message = f"{written.upper()} alone is DECIMAL(10, 0), as in Spark: whole numbers of 10 digits"
    hint = "write the digits of the column, such as DECIMAL(10, 2)"
    return warning("bare-decimal", span, message, hint)
