"""The words that can stand at a place of a `.cel` file, while somebody types its text.

Keywords are those that the parser accepts after the text before the place. Where that text is
wrong, all keywords are given. Names come from the outline of the whole text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from celc_runtime.plan.frozen import frozen
from celc_runtime.values.functions import FUNCTIONS as TABLE

from celc.core.declarations import quoted, spelled
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages.functions import FUNCTIONS
from celc.diagnostics.source import Source
from celc.editor import words
from celc.editor.outline import Attributes, Outline, outline, tokens_of
from celc.parse.durations import UNITS
from celc.parse.machine import Machine
from celc.parse.queries import QueryBuilder
from celc.parse.tables import grammar
from celc.parse.tokens import HOLDS, Token, begins_statement, is_unit, keyword_of, name_text
from celc.parse.types import declared_attributes
from celc.resolve.types.own_aggregates import IN_AGGREGATES
from celc.resolve.types.own_functions import ARRAY_TYPES
from celc.resolve.types.written import PARAMETER_TYPES, TYPE_NAMES

Kind = Literal[
    "attribute", "label", "type", "stream", "query", "parameters", "function", "data type", "unit",
    "variable", "column", "keyword",
]  # fmt: skip


@frozen
class Completion:
    """A word that can stand at a place. `text` is how it is written there."""

    name: str
    text: str
    kind: Kind
    detail: str


def complete(text: str, offset: int) -> tuple[Completion, ...]:
    """The words that can stand at an offset. If a word is begun there, only those with its
    beginning."""
    start = word_start(text, offset)
    before = tokens_of(text[:start])
    if is_in_comment_or_text(text[:start], before):
        return ()
    return chosen(text[start:offset], _completions(outline(text), before, start))


def word_start(text: str, offset: int) -> int:
    """Where the word begins that contains or ends at an offset."""
    start = offset
    while start and (text[start - 1].isidentifier() or text[start - 1].isdigit()):
        start -= 1
    return start


def chosen(begun: str, completions: Iterable[Completion]) -> tuple[Completion, ...]:
    """The completions that begin like a word, each once."""
    word = begun.casefold()
    fitting = (one for one in completions if one.name.casefold().startswith(word))
    return tuple(dict.fromkeys(fitting))


def is_in_comment_or_text(before: str, tokens: Sequence[Token]) -> bool:
    """Whether a place is in a comment or a text that is open there. `tokens` are those before."""
    last = tokens[-2] if len(tokens) > 1 else None
    if last is not None and last.flawed and last.text.startswith(("'", "`", "/*")):
        return True
    gap = before[last.end if last else 0 :]
    return "--" in gap.rpartition("\n")[2]


def accepted_after(tokens: Sequence[Token], *, is_truth: bool = False) -> frozenset[str] | None:
    """The terminals that can follow tokens, of which the last one is the end. None where the tokens
    themselves are wrong. `is_truth`: the value at their end can be the condition, which goes on or
    ends behind it."""
    starts = [index for index in range(len(tokens)) if _begins(tokens, index)]
    for start in dict.fromkeys((*starts[-1:], 0)):
        machine = Machine(QueryBuilder(Diagnostics(Source("", ""))))
        if machine.run(tokens, start, len(tokens) - 1) is None:
            found = machine.accepted()
            if is_truth and HOLDS in found and machine.take(Token(HOLDS, "", 0, 0)):
                found |= machine.accepted()
            return found
    return None


def _begins(tokens: Sequence[Token], index: int) -> bool:
    after_name = (
        keyword_of(tokens[index]) == "SELECT" and index and tokens[index - 1].type == "COLON"
    )
    return begins_statement(tokens, index) and not after_name


def _completions(known: Outline, before: list[Token], start: int) -> Iterator[Completion]:
    last = before[-2] if len(before) > 1 else None
    statement = known.statement(start)
    labels = known.labels_of(statement)
    rows = known.set_of(statement)
    if last is not None and last.type == "DOT":
        of = name_text(before[-3]) if len(before) > 2 else ""
        yield from _attributes_of(of, labels, rows, known)
        return
    if last is not None and last.type in ("INTEGER", "DOUBLE"):
        yield from (Completion(unit, unit, "unit", "unit of time") for unit in sorted(UNITS))
    declared = {pair for one in (*known.types, *known.parameters) for pair in one.attributes}
    is_truth = last is not None and (name_text(last), "BOOLEAN") in declared
    accepted = accepted_after(before, is_truth=is_truth)
    if accepted is None:
        yield from _labels(labels, rows)
        yield from _types(known.types_of(statement))
        yield from _keywords(grammar().keywords.values())
        return
    if "ATTRIBUTE" in accepted or "NAME" in accepted:
        yield from _names(known, before, statement, accepted)
    if "BANG" in accepted and (last is None or last.type not in ("SEMICOLON", "LPAR")):
        accepted -= {"FIRST"}  # it chooses from what follows
    yield from _keywords(accepted)


def _names(
    known: Outline, before: Sequence[Token], statement: Sequence[Token], accepted: frozenset[str]
) -> Iterator[Completion]:
    last = before[-2] if len(before) > 1 else None
    word = "" if last is None else keyword_of(last) or last.type
    labels, rows = known.labels_of(statement), known.set_of(statement)
    types = known.types_of(statement)
    first = keyword_of(statement[0]) if statement else None
    if word in ("AS", "QUERY", "STREAM", "EVENT", "AGGREGATE", "FUNCTION", "PARAMETERS", "ARROW"):
        return  # a new name
    is_part = "ATTRIBUTE" in accepted and "TEXT" not in accepted and _is_in_type(before)
    if first == "FUNCTION" and word != "RPAR":
        yield from _named([one.value for one in ARRAY_TYPES], "data type")
    elif (word == "COLON" or is_part) and first in ("CREATE", "PARAMETERS", "AGGREGATE"):
        known_types = TYPE_NAMES if first == "CREATE" else PARAMETER_TYPES
        yield from _named(known_types, "data type")
    elif first == "CREATE" and (_is_in_brackets(before) or word == "WEIGHTED"):
        stream = name_text(statement[2])
        yield from _attributes(one for one in types if one.stream == stream)
    elif first == "PARAMETERS" and _is_in_brackets(before):  # of VALID
        name = name_text(statement[1])
        yield from _attributes(one for one in known.parameters if one.name == name)
    elif first in ("CREATE", "PARAMETERS"):
        return  # a new name
    elif first == "AGGREGATE" and word != "RPAR":
        yield from _variables(statement)
    elif "PROJECT" in accepted or word == "IS":
        yield from _types(types)
    elif word == "EACH":
        yield from _named([one.name for one in known.parameters], "parameters")
    elif _is_after_from(before):
        yield from _named(known.streams, "stream")
        yield from _named(known.queries, "query")
    elif "ATTRIBUTE" in accepted and last is not None and last.type not in ("INTEGER", "DOUBLE"):
        yield from _attributes_in_brackets(before, labels, rows, known, types)
        if "TEXT" in accepted:
            yield from (Completion(n, n, "function", words.FUNCTIONS[n]) for n in ("ABS",))
    elif "TEXT" in accepted or word in ("LSQB", "COMMA", "SELECT"):
        yield from _labels(labels, rows)
        if "TEXT" in accepted:
            yield from _functions(known, before)


def _is_in_type(before: Sequence[Token]) -> bool:
    """Whether a `<` is open before a place, where a name stands and no value."""
    kinds = [token.type for token in before]
    return kinds.count("LESS") > kinds.count("GREATER")


def _is_in_brackets(before: Sequence[Token]) -> bool:
    kinds = [token.type for token in before]
    return kinds.count("LSQB") > kinds.count("RSQB")


def _variables(statement: Sequence[Token]) -> Iterator[Completion]:
    """The parameters and the state of an aggregate, and the functions of its expressions."""
    for name, kind in declared_attributes(statement, 0, len(statement)):
        text = name_text(name)
        yield Completion(text, spelled(text), "variable", kind)
    for function in IN_AGGREGATES:
        yield Completion(function, function, "function", words.IN_AGGREGATES[function])
    for one in TABLE.values():
        if one.kernel and one.name not in IN_AGGREGATES:
            yield Completion(one.name, one.name, "function", words.OF_ONE_EVENT[one.name])


def _is_after_from(before: Sequence[Token]) -> bool:
    """Whether the names before a place are those of FROM."""
    for token in reversed(before[:-1]):
        if keyword_of(token) == "FROM":
            return True
        if token.type not in ("NAME", "COMMA") or keyword_of(token) is not None:
            return False
    return False


def _attributes_in_brackets(
    before: Sequence[Token],
    labels: Mapping[str, tuple[Attributes, ...]],
    rows: Attributes | None,
    known: Outline,
    types: Sequence[Attributes],
) -> Iterator[Completion]:
    depth = 0
    for index in range(len(before) - 2, 0, -1):
        depth += (before[index].type == "RSQB") - (before[index].type == "LSQB")
        if depth < 0:
            name = name_text(before[index - 1])
            if name in labels and not is_unit(before[index - 1]):
                yield from _attributes_of(name, labels, rows, known)
                return
            break
    yield from _attributes(types)


def _attributes_of(
    label: str,
    labels: Mapping[str, tuple[Attributes, ...]],
    rows: Attributes | None,
    known: Outline,
) -> Iterator[Completion]:
    if rows is not None and rows.name == label:
        yield from _attributes([rows])
    elif label in labels:
        yield from _attributes(labels[label] or known.types)


def _attributes(types: Iterable[Attributes]) -> Iterator[Completion]:
    owners: dict[tuple[str, str], list[str]] = {}
    for one in types:
        for name, kind in one.attributes:
            owners.setdefault((name, kind), []).append(one.name)
    for (name, kind), of in owners.items():
        # Any word can be an attribute, except words with a meaning in `x[…]`.
        is_plain = name.isidentifier() and name.upper() not in _IN_BRACKETS
        text = name if is_plain else quoted(name)
        yield Completion(name, text, "attribute", f"{kind}, of {', '.join(of)}")


_IN_BRACKETS = ("TRUE", "FALSE", "NULL", "NOT")


def _labels(
    labels: Mapping[str, tuple[Attributes, ...]], rows: Attributes | None
) -> Iterator[Completion]:
    for name, types in labels.items():
        of = ", ".join(dict.fromkeys(one.name for one in types))
        yield Completion(name, spelled(name), "label", f"label of {of}" if of else "label")
    if rows is not None:
        yield from _named([rows.name], "parameters")


def _types(types: Iterable[Attributes]) -> Iterator[Completion]:
    for one in types:
        attributes = ", ".join(f"{name}: {kind}" for name, kind in one.attributes)
        yield Completion(one.name, spelled(one.name), "type", f"{one.stream} {{ {attributes} }}")


_DETAILS: Mapping[Kind, str] = {
    "stream": "stream",
    "query": "query whose rows are events",
    "parameters": "parameter set",
    "data type": "data type",
}


def _named(names: Iterable[str], kind: Kind) -> Iterator[Completion]:
    for name in names:
        yield Completion(name, spelled(name), kind, _DETAILS[kind])


def _functions(known: Outline, before: Sequence[Token]) -> Iterator[Completion]:
    in_formula = any(keyword_of(token) == "FILTER" for token in before)
    for name in FUNCTIONS:
        if name == ("COLLECT" if in_formula else "PREV"):
            continue
        yield Completion(name, name, "function", words.FUNCTIONS[name])
    for name, meaning in words.OF_ONE_EVENT.items():
        yield Completion(name, name, "function", meaning)
    own = {"aggregate": known.aggregates, "function": known.functions}
    for kind, names in own.items():
        for name in names:
            yield Completion(name, spelled(name), "function", f"{kind} of this file")


def _keywords(terminals: Iterable[str]) -> Iterator[Completion]:
    of_grammar = set(grammar().keywords.values())
    for name in sorted(of_grammar.intersection(terminals)):
        yield Completion(name, name, "keyword", words.OF_CEL[name])
