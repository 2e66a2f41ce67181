"""The constants of EQL: texts with escapes, wildcards, regular expressions."""

from __future__ import annotations

import re

from celc.interfaces.importing.words import Wildcard

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def constant_text(written: str) -> str:
    """The text that a constant in quotes stands for. Between three quotes no sign is an escape."""
    if written.startswith('"""'):
        return written[3:-3]
    return re.sub(r"\\(u\{([0-9a-fA-F]+)\}|.)", _unescaped, written[1:-1], flags=re.DOTALL)


def _unescaped(found: re.Match[str]) -> str:
    if found[2] is not None:
        return chr(int(found[2], 16))
    return _ESCAPES.get(found[1], found[1])


def pattern_of(text: str) -> list[str | Wildcard]:
    """A text with `*` and `?` as a pattern. EQL has no way to write these signs in a pattern: the
    text `C:\\*` ends with a backslash and a wildcard."""
    wildcards = {"*": Wildcard.MANY, "?": Wildcard.ONE}
    return [wildcards.get(sign, sign) for sign in text]


def lucene_problem(pattern: str) -> str | None:
    """Why a regular expression of Lucene is none of RE2's, or does not mean the same there."""
    special = re.search(r"(?<!\\)(?:\\\\)*([~&@#<>\"])", pattern)
    if special:
        return (
            f"'{special[1]}' is an operator of Lucene's regular expressions, which RE2 has not; "
            f"as a sign of the text it is written '\\{special[1]}'"
        )
    anchor = re.search(r"(?<!\\)(?:\\\\)*([\^$])", re.sub(r"\[\^?[^\]]*\]", "", pattern))
    if anchor:
        return (
            f"'{anchor[1]}' is a sign of the text in Lucene's regular expressions: '\\{anchor[1]}'"
        )
    try:
        re.compile(pattern)
    except re.error as problem:
        return f"this is no regular expression: {problem}"
    return None
