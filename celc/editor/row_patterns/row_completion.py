"""The words that could stand at a place of a text with MATCH_RECOGNIZE, while it is being typed."""

from collections.abc import Iterable, Iterator

from celc.core.declarations import quoted
from celc.editor import words
from celc.editor.completion import Completion, Kind, chosen, word_start
from celc.editor.row_patterns.row_outline import (
    RowOutline,
    RowToken,
    is_in_comment_or_text,
    row_outline,
    row_tokens,
)
from celc.resolve.types.written import PARAMETER_TYPES
from celc.row_pattern.expressions import FUNCTIONS, OF_MATCHES
from celc.row_pattern.parser import accepted_after, keywords

_UNITS = ("SECOND", "MINUTE", "HOUR", "DAY")
_CLAUSES = frozenset(
    {"SELECT", "TABLE", "FROM", "PARTITION", "ORDER", "MEASURES", "SKIP", "PATTERN", "WITHIN"}
    | {"SUBSET", "DEFINE"}
)


def complete_rows(text: str, offset: int) -> tuple[Completion, ...]:
    """The words that can stand at an offset. If a word is begun there, only those with its
    beginning."""
    if is_in_comment_or_text(text, offset):
        return ()
    start = word_start(text, offset)
    before = row_tokens(text[:start])
    accepted = accepted_after(text[:start])
    return chosen(text[start:offset], _completions(row_outline(text), before, accepted))


def _completions(
    known: RowOutline, before: list[RowToken], accepted: frozenset[str] | None
) -> Iterator[Completion]:
    last = before[-1] if before else None
    if last is not None and last.text == ".":
        yield from _columns(known)
        return
    if accepted is None:
        yield from _variables(known)
        yield from _columns(known)
        yield from _keywords(keywords())
        return
    if "NAME" in accepted:
        yield from _names(known, before, accepted)
    yield from _keywords(accepted)


def _names(
    known: RowOutline, before: list[RowToken], accepted: frozenset[str]
) -> Iterator[Completion]:
    last = before[-1].word if before else ""
    clause = next((one.word for one in reversed(before) if one.word in _CLAUSES), "")
    if "EXCLUDE" in accepted:
        yield from _variables(known)
    elif "TEXT" in accepted:
        yield from _columns(known)
        is_key = clause in ("PARTITION", "ORDER")
        yield from () if is_key else _variables(known)
        for name in FUNCTIONS:
            if not (is_key and name in OF_MATCHES):
                yield Completion(name, name, "function", words.ROW_FUNCTIONS[name])
    elif clause == "TABLE":
        if last not in ("TABLE", "(", ","):
            yield from _all(PARAMETER_TYPES, "data type", "data type")
    elif clause in ("SUBSET", "DEFINE", "SKIP"):
        yield from _variables(known)
    elif clause == "WITHIN":
        yield from _all(_UNITS, "unit", "unit of time")
    elif clause == "SELECT" and last != "AS":
        yield from _all(known.measures, "column", "measure")
        yield from _columns(known)


def _columns(known: RowOutline) -> Iterator[Completion]:
    for name, kind in known.columns:
        yield Completion(name, _written(name), "column", kind)


def _variables(known: RowOutline) -> Iterator[Completion]:
    yield from _all(known.variables, "variable", "variable of the pattern")
    for name, members in known.subsets:
        yield Completion(name, _written(name), "variable", f"subset of {', '.join(members)}")


def _all(names: Iterable[str], kind: Kind, detail: str) -> Iterator[Completion]:
    for name in names:
        yield Completion(name, _written(name), kind, detail)


def _written(name: str) -> str:
    return name if name.isidentifier() else quoted(name)


def _keywords(terminals: Iterable[str]) -> Iterator[Completion]:
    for name in sorted(keywords().intersection(terminals)):
        yield Completion(name, name, "keyword", words.OF_ROW_PATTERNS[name])
