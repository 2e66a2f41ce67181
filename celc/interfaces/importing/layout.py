"""A translated rule as a person would write it, once celc has read it."""

from __future__ import annotations

from celc.diagnostics.source import Source
from celc.editor.formatting.text import formatted
from celc.editor.languages import CEL
from celc.interfaces.importing.languages import Columns
from celc.options import Options


def laid_out(name: str, text: str, columns: Columns) -> str:
    """The text of a file of CEL in its layout; `name` is that of the rules.

    Raises `CelError` where celc cannot read it, which only a rule's own words can cause.
    """
    written = Source(f"{name} in CEL", text)
    CEL.resolve(written, Options(order_by=(columns.time,)))
    return formatted(written, CEL).rstrip() + "\n"
