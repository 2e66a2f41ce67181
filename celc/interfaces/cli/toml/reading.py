"""A text of TOML as values, or as one error with its place."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from celc.diagnostics.errors import CelError, error
from celc.diagnostics.source import Source, Span

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def values_of(source: Source, code: str) -> dict[str, Any]:
    """What a text says. Raises CelError with one error of this code where it is no TOML."""
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as problem:
        told = str(problem)
    at = len(source.text)
    if (place := _AT.search(told)) is not None and place[1] is not None:
        lines = source.text.split("\n")
        at = sum(len(line) + 1 for line in lines[: int(place[1]) - 1]) + int(place[2]) - 1
    message = f"this is no TOML: {_AT.sub('', told)}"
    raise CelError(source, (error(code, Span(at, at), message),))
