"""Files of rules in other languages → texts of CEL in their layout."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from celc.diagnostics.errors import CelError, error
from celc.diagnostics.source import Source, Span
from celc.interfaces.importing.languages import Columns, Translated
from celc.interfaces.importing.layout import laid_out
from celc.interfaces.importing.names import query_name


def imported(
    language: str, sources: Sequence[Source], columns: Columns
) -> Iterator[tuple[Source, Translated | CelError]]:
    """For each file its text in CEL with the tests of its examples, or the error with
    everything that cannot be translated.

    Raises ModuleNotFoundError where the library of the language is not there. A file of Sigma that
    has only rules which correlations read has no text.
    """
    for source, found in _translated(language, sources, columns):
        if isinstance(found, CelError):
            yield source, found
            continue
        try:
            yield source, replace(found, text=laid_out(source.name, found.text, columns))
        except CelError as problem:
            yield source, problem


def _translated(
    language: str, sources: Sequence[Source], columns: Columns
) -> Iterator[tuple[Source, Translated | CelError]]:
    if language == "sigma":
        from celc.interfaces.importing.sigma.rules import texts_of

        yield from texts_of(sources, columns)
        return
    if language == "flink":
        from celc.interfaces.importing.flink.rules import text_of
    else:
        from celc.interfaces.importing.eql.rules import text_of
    for source in sources:
        try:
            name, query = PurePath(source.name).stem, source
            if source.name.endswith(".toml"):
                name, query = _of_toml(source)
            yield source, Translated(text_of(query, query_name(name), columns))
        except CelError as problem:
            yield source, problem
        except RecursionError:
            message = "this is nested too deeply to be translated"
            yield source, CelError(source, (error("import-unsupported", Span(0, 1), message),))


def _of_toml(source: Source) -> tuple[str, Source]:
    """The name of a rule and its query, which keeps its place in the file where it stands there as
    it is."""
    try:
        table = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as problem:
        raise CelError(
            source, (error("import-toml", Span(0, 1), f"this is no TOML: {problem}"),)
        ) from None
    rule = table.get("rule")
    rule = rule if isinstance(rule, dict) else {}
    query, language = rule.get("query"), rule.get("language", "eql")
    if not isinstance(query, str) or language != "eql":
        message = (
            f"the language of this rule is {language}, not eql"
            if isinstance(query, str)
            else "there is no text 'query' under [rule]"
        )
        at = max(0, source.text.find("language" if isinstance(query, str) else "rule"))
        raise CelError(source, (error("import-toml", Span(at, at + 1), message),))
    start = source.text.find(query)
    name = str(rule.get("name", PurePath(source.name).stem))
    if start < 0:
        # It is written with escapes, and places are those of the text that they stand for.
        return name, Source(f"{source.name}: query", query)
    before = re.sub(r"[^\n]", " ", source.text[:start])
    return name, Source(source.name, before + query)
