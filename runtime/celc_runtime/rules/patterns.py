"""LIKE and RLIKE with patterns of a parameter table: each pattern is tested once for each text."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import coded
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.parameters import Pattern


def answers(
    pattern: Pattern,
    texts: pa.DictionaryArray,
    patterns: pa.Array,
    of_texts: np.ndarray,
    of_patterns: np.ndarray,
) -> pa.Array:
    """For pairs of a text and a pattern, given by index, whether the text matches; NULL if one of
    both is NULL."""
    rows = coded(patterns)
    text_codes = _codes(texts)[of_texts]
    pattern_codes = _codes(rows)[of_patterns]
    known = (text_codes >= 0) & (pattern_codes >= 0)
    found = np.zeros(len(known), np.bool_)
    # Each pattern is compiled once, and tested on the texts that it meets.
    order = np.argsort(pattern_codes, kind="stable")
    order = order[known[order]]
    starts = np.flatnonzero(np.diff(pattern_codes[order], prepend=-1))
    for places in np.split(order, starts[1:]):
        if len(places):
            text = rows.dictionary[int(pattern_codes[places[0]])].as_py()
            distinct, inverse = np.unique(text_codes[places], return_inverse=True)
            truth = _is_like(pattern, texts.dictionary.take(pa.array(distinct)), text)
            found[places] = truth[inverse]
    return pa.array(found, mask=~known)


def _codes(column: pa.DictionaryArray) -> np.ndarray:
    indices = column.indices.cast(pa.int64())
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False))


def _is_like(pattern: Pattern, texts: pa.Array, text: str) -> np.ndarray:
    regex = text if pattern.operator == "RLIKE" else _regex_of_like(pattern, text)
    try:
        found = pc.match_substring_regex(texts, regex)
    except pa.ArrowInvalid as refusal:
        reason = str(refusal).removeprefix("Invalid regular expression: ")
        raise EventError(
            f"the pattern {text!r} of {pattern.operator} in the attribute {pattern.parameter!r} of "
            f"the parameter table is no regular expression of RE2: {reason}"
        ) from None
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


_SPECIAL = frozenset(r"\.+*?()|[]{}^$")


def _literal(character: str) -> str:
    if character == "\0":
        return "\\x00"  # RE2 reads an escaped NUL as an octal digit
    return f"\\{character}" if character in _SPECIAL else character


def _regex_of_like(pattern: Pattern, text: str) -> str:
    """SQL's pattern as a regular expression of RE2 for the whole text."""
    parts, at = [], 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "%":
            parts.append(".*")
        elif character == "_":
            parts.append(".")
        else:
            if character == "\\":
                character = text[at : at + 1]
                at += 1
                if character not in ("%", "_", "\\"):
                    raise EventError(
                        f"the pattern {text!r} of LIKE in the attribute {pattern.parameter!r} of "
                        "the parameter table has a \\ that escapes nothing: write \\\\, \\% or \\_"
                    )
            parts.append(_literal(character))
    return rf"(?s)\A{''.join(parts)}\z"
