"""What is said of a token where no such token can stand.

Most mistakes have a message of their own (`celc.parse.mistakes.formulas`, `clause_errors`); the
first that applies is taken. Any other says what was found and what could have stood there, in the
words of the language.
"""

from __future__ import annotations

from celc.diagnostics.errors import Diagnostic, Related, error
from celc.parse.mistakes import clauses as clause_errors
from celc.parse.mistakes import conditions as condition_errors
from celc.parse.mistakes import filters as filter_errors
from celc.parse.mistakes import foreign_statements
from celc.parse.mistakes import foreign_words as foreign_errors
from celc.parse.mistakes import formulas as formula_errors
from celc.parse.mistakes import missing as missing_errors
from celc.parse.mistakes import repeats as repeat_errors
from celc.parse.mistakes import selects as select_errors
from celc.parse.mistakes import windows as window_errors
from celc.parse.mistakes.place import (
    CLAUSES,
    COMPARISONS,
    FULL_NAMES,
    SIGNS,
    STRATEGIES,
    Place,
    described,
)
from celc.parse.tables import END, grammar
from celc.parse.tokens import keyword_of

# The first that applies is taken: from what is surely a habit of another language to guesses.
_CASES = (
    formula_errors.missing_formula,
    clause_errors.misspelled_statement,
    window_errors.size,
    window_errors.rest_of_window,
    window_errors.limit_of_two,
    foreign_errors.select_modifier,
    foreign_errors.case_expression,
    foreign_statements.match_recognize,
    foreign_statements.foreign_statement,
    foreign_errors.foreign_clause,
    foreign_statements.after_stream,
    foreign_errors.clause_in_parentheses,
    foreign_errors.condition_after_clause,
    foreign_errors.sequence_function,
    repeat_errors.counted,
    repeat_errors.optional,
    select_errors.all_of_label,
    select_errors.star_in_list,
    select_errors.name_without_as,
    select_errors.nothing_selected,
    clause_errors.selector_without_items,
    clause_errors.late_declaration,
    missing_errors.missing_by,
    missing_errors.missing_word,
    missing_errors.missing_value,
    formula_errors.odd_number,
    condition_errors.attribute_of_call,
    condition_errors.indexed_label,
    condition_errors.misplaced_call,
    window_errors.duration_in_condition,
    condition_errors.null_test,
    condition_errors.is_value,
    condition_errors.between,
    condition_errors.list_of_values,
    condition_errors.comparison,
    condition_errors.value,
    condition_errors.percent,
    filter_errors.bare_condition,
    foreign_errors.word_between_events,
    filter_errors.operator_after_filter,
    filter_errors.missing_filter,
    filter_errors.compared_type,
    formula_errors.chained_comparison,
    clause_errors.misspelled,
    formula_errors.missing_sign,
    clause_errors.unclosed_bracket,
    clause_errors.unopened_bracket,
    clause_errors.clause,
    missing_errors.missing_where,
    clause_errors.reserved_word,
    clause_errors.select_after_name,
    clause_errors.unknown_clause,
    formula_errors.unknown_selector,
    formula_errors.brackets,
    formula_errors.misplaced_sign,
    formula_errors.missing_operator,
    formula_errors.missing_join,
    condition_errors.unknown_sign,
)


def unexpected(place: Place) -> Diagnostic:
    """The diagnostic for a token that cannot stand at its place, or for the end of the file."""
    for case in _CASES:
        diagnostic = case(place)
        if diagnostic is not None:
            return diagnostic
    *words, last_word = expected(place)
    hints = [f"expected {', '.join(words)}{' or ' if words else ''}{last_word}"]
    if place.before == "COMMA":
        hints.append("or leave the ',' before it out")
    if place.before == "ATTRIBUTE" and keyword_of(place.previous) in grammar().reserved:
        hints.append(f"'{place.previous.text}' was read as an attribute, not as the keyword")
    if place.found.type == END:
        return _unexpected_end(place, hints)
    after = f" after {described(place.previous)}" if place.before else ""
    message = f"{described(place.found)} cannot stand here{after}"
    return error("unexpected", place.found.span, message, help=hints)


def _unexpected_end(place: Place, hints: list[str]) -> Diagnostic:
    related = []
    if place.opener is not None:
        opener = place.tokens[place.opener]
        related.append(Related(opener.span, f"this '{opener.text}' is still open"))
    message = f"the file ends too early, after {described(place.previous)}"
    return error("unexpected-end", place.found.span, message, help=hints, related=related)


# --- what could have stood there ------------------------------------------------------------------

_OPERATORS = frozenset({"SEMICOLON", "COLON", "PLUS", "COLON_PLUS", "ALL", "AND", "OR"})
_ARITHMETIC = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT"})
_COMPARING = frozenset({*COMPARISONS} | {"BETWEEN", "IN", "LIKE", "RLIKE", "IS", "NOT"})
_VALUE = frozenset(
    {"NAME", "ATTRIBUTE", "INTEGER", "DOUBLE", "TEXT", "TRUE", "FALSE", "NULL", "TIMESTAMP"}
    | {"DATE", "MINUS", "PLUS", "LPAR", "PRIOR"}
)
_ATOM = frozenset(
    {"NAME", "LPAR", "BANG", "NOT", "STRICT", "NXT", "NEXT", "LAST", "MAX", "PROJECT"}
)
_STATEMENTS = frozenset({"CREATE", "QUERY", "SELECT"})


def expected(place: Place) -> list[str]:
    """What could stand at a place, in the words of the language and in a fixed order."""
    rest = set(place.accepted)
    words: list[str] = []

    def take(terminals: frozenset[str], *phrases: str) -> None:
        rest.difference_update(terminals)
        words.extend(phrases)

    if place.wants_formula:
        take(_ATOM, "an event type", "'('", "a selector such as NXT(…)")
    elif place.accepts("STAR", "NONE"):
        take(_VALUE | STRATEGIES | {"STAR", "NONE"}, "'*'", "NONE", "a list of labels and values")
    elif place.wants_value and place.accepts("ATTRIBUTE"):
        take(_VALUE, "an attribute", "a value such as 10 or 'text'")
    elif place.wants_value:
        take(_VALUE, "a value such as x.price, 10 or 'text'")
    if rest & {"INTEGER"}:
        take(frozenset({"INTEGER", "DOUBLE"}), "a number")
    if "NAME" in rest:
        take(frozenset({"NAME"}), _kind_of_name(place))
    if "ATTRIBUTE" in rest:
        take(frozenset({"ATTRIBUTE"}), _kind_of_attribute(place))
    if "COLON_PLUS" in rest:
        take(_OPERATORS | {"IN", "LSQB"}, "an operator such as ; : OR")
    if "EQUAL" in rest:
        take(_COMPARING, "a comparison such as =")
    if "STAR" in rest:
        take(_ARITHMETIC, "an arithmetic operator")
    if rest >= _STATEMENTS:
        take(_STATEMENTS, "CREATE STREAM", "QUERY", "SELECT")
    words += [f"'{SIGNS[terminal]}'" for terminal in SIGNS if terminal in rest]
    words += sorted(rest & set(grammar().keywords) - set(CLAUSES))
    full = {} if place.before == "BY" else FULL_NAMES
    words += [full.get(word, word) for word in CLAUSES if word in rest]
    if "TEXT" in rest:
        words.append("a text such as 'a%'")
    if END in rest:
        words.append("the end of the file")
    return words


def _kind_of_name(place: Place) -> str:
    match place.before:
        case "FROM" | "STREAM":
            return "the name of a stream"
        case "COMMA" if place.last("FROM"):
            return "the name of a stream"
        case "GREATER" | "EVENT":
            return "an event type"
        case "QUERY":
            return "a name for the query"
        case _:
            return "a label"


def _kind_of_attribute(place: Place) -> str:
    match place.before:
        case "COLON":
            return "a type such as INT or STRING"
        case "INTEGER" | "DOUBLE":
            return "a unit of time such as MINUTES"
        case _:
            return "an attribute"
