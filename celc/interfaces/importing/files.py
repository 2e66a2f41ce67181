"""Files of rules in other languages → texts of CEL in their layout."""

from __future__ import annotations

import re
import tomllib
from pathlib import PurePath

from celc.diagnostics.errors import CelError, error
from celc.diagnostics.source import Source, Span
from celc.editor.formatting.text import formatted
from celc.editor.languages import CEL
from celc.interfaces.importing.eql.rules import Columns, text_of

SUFFIXES = (".eql", ".toml")
"""The endings of files of EQL in a folder."""


def imported(source: Source, columns: Columns) -> str:
    """The text of CEL for one file: a query of EQL, or a rule of Elastic's in TOML, whose
    `rule.query` is one.

    Raises `CelError` with everything that cannot be translated.
    """
    name, query = PurePath(source.name).stem, source
    if source.name.endswith(".toml"):
        name, query = _of_toml(source)
    return formatted(Source(source.name, text_of(query, query_name(name), columns)), CEL)


def query_name(text: str) -> str:
    """A name of a query for any text: its words in small letters, joined by `_`."""
    name = "_".join(re.findall(r"[A-Za-z0-9]+", text)).lower() or "rule"
    return f"rule_{name}" if name[0].isdigit() else name


def _of_toml(source: Source) -> tuple[str, Source]:
    """The name of a rule and its query, which keeps its place in the file where it stands there as
    it is."""
    try:
        table = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as problem:
        raise CelError(
            source, (error("import-toml", Span(0, 1), f"this is no TOML: {problem}"),)
        ) from None
    rule = table.get("rule", {})
    query, language = rule.get("query"), rule.get("language", "eql")
    if not isinstance(query, str) or language != "eql":
        message = (
            f"the language of this rule is {language}, not eql"
            if isinstance(query, str)
            else "there is no text 'query' under [rule]"
        )
        raise CelError(source, (error("import-toml", Span(0, 1), message),))
    start = source.text.find(query)
    if start >= 0:
        before = re.sub(r"[^\n]", " ", source.text[:start])
        query = before + query
    return str(rule.get("name", PurePath(source.name).stem)), Source(source.name, query)
