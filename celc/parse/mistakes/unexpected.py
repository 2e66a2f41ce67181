"""The message about a token where no such token can stand.

Most mistakes have their own message in one of the modules beside this one; the first that applies
is used. Any other message names the found token and the tokens that could stand there, in the words
of the language.
"""

from dataclasses import replace

from celc.diagnostics.deadline import look
from celc.diagnostics.errors import Diagnostic, Related, error
from celc.parse.mistakes import (
    clauses,
    conditions,
    declarations,
    durations,
    filters,
    formulas,
    functions,
    lengths,
    missing,
    repeats,
    selects,
    totals,
    windows,
)
from celc.parse.mistakes.foreign import foreign_statements, foreign_words
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

# The first that applies is used: from sure habits of other languages to guesses.
_CASES = (
    foreign_statements.declared_columns,
    declarations.constraint,
    declarations.list_type,
    declarations.braces,
    declarations.missing_event,
    declarations.semicolon,
    declarations.type_before_name,
    declarations.in_declaration,
    declarations.in_function,
    clauses.name_with_signs,
    clauses.name_with_space,
    formulas.missing_formula,
    formulas.text_for_type,
    clauses.misspelled_statement,
    totals.per_without_total,
    totals.before_from,
    totals.group,
    totals.clause_order,
    windows.size,
    windows.local_window,
    windows.rest_of_window,
    windows.limit_of_two,
    lengths.length_without_absence,
    lengths.after_length,
    foreign_words.select_modifier,
    foreign_statements.match_recognize,
    foreign_statements.foreign_statement,
    foreign_words.foreign_clause,
    foreign_statements.after_stream,
    foreign_words.clause_in_parentheses,
    foreign_words.condition_after_clause,
    totals.having_without_total,
    foreign_words.sequence_function,
    repeats.bounds,
    repeats.not_after_formula,
    repeats.postfix_after_optional,
    repeats.none_or_more,
    selects.flat_of_all,
    selects.all_of_label,
    selects.star_in_list,
    selects.name_without_as,
    selects.nothing_selected,
    selects.condition_as_item,
    clauses.selector_without_items,
    clauses.late_declaration,
    missing.missing_by,
    conditions.label_of_quantifier,
    missing.missing_word,
    missing.missing_value,
    formulas.odd_number,
    functions.attribute_of_call,
    functions.indexed_label,
    functions.misplaced_call,
    durations.interval_literal,
    durations.near_unit,
    durations.missing_unit,
    durations.joined_parts,
    durations.clock,
    conditions.null_test,
    conditions.is_value,
    conditions.between,
    conditions.list_of_values,
    conditions.subquery,
    conditions.condition_compared,
    conditions.comparison,
    conditions.value,
    conditions.percent,
    conditions.zone,
    filters.bare_condition,
    foreign_words.word_between_events,
    filters.operator_after_filter,
    filters.missing_filter,
    filters.compared_type,
    formulas.chained_comparison,
    clauses.misspelled,
    formulas.missing_sign,
    clauses.unclosed_bracket,
    clauses.unopened_bracket,
    clauses.clause,
    missing.missing_where,
    clauses.reserved_word,
    clauses.select_after_name,
    clauses.unknown_clause,
    formulas.unknown_selector,
    formulas.brackets,
    formulas.misplaced_sign,
    formulas.missing_operator,
    formulas.missing_join,
    conditions.unknown_sign,
)


def unexpected(place: Place) -> Diagnostic:
    """The diagnostic for a token that cannot stand at its place, or for the end of the file."""
    place = _at_clause(place)
    for case in _CASES:
        look(place.found.span)  # each may read the whole text, but not more
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
    return error("unexpected", place.found.span, message, *hints)


def _unexpected_end(place: Place, hints: list[str]) -> Diagnostic:
    related = []
    if place.opener is not None:
        opener = place.tokens[place.opener]
        related.append(Related(opener.span, f"this '{opener.text}' is still open"))
    message = f"the file ends too early, after {described(place.previous)}"
    return error("unexpected-end", place.found.span, message, *hints, related=related)


# --- what could have stood there ------------------------------------------------------------------

_OPERATORS = frozenset({"SEMICOLON", "COLON", "PLUS", "COLON_PLUS", "ALL", "AND", "OR"})
_POSTFIXES = frozenset({"IN", "LSQB", "LBRACE", "COLON_LBRACE", "QUESTION"})
_ARITHMETIC = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "JOIN"})
_COMPARING = frozenset({*COMPARISONS} | {"BETWEEN", "IN", "LIKE", "RLIKE", "IS", "NOT"})
_VALUE = frozenset(
    {"NAME", "ATTRIBUTE", "INTEGER", "DOUBLE", "TEXT", "TRUE", "FALSE", "NULL", "TIMESTAMP"}
    | {"DATE", "MINUS", "PLUS", "LPAR", "PREV", "PRIOR", "DISTINCT", "IF", "CASE", "CAST"}
    | {"SOME", "EVERY", "TRY_CAST"}
)
_ATOM = frozenset(
    {"NAME", "LPAR", "BANG", "NOT", "STRICT", "NXT", "NEXT", "LAST", "MAX", "PROJECT", "WITHIN"}
    | {"FIRST"}
)
_PARTS = frozenset({"LSQB", "COLON", "DOT", "DOUBLE_COLON"})
_REST_OF_TYPE = frozenset({"PRECISION", "WITH", "WITHOUT", "LPAR", "LESS"})
_STATEMENTS = frozenset({"CREATE", "QUERY", "SELECT"})
_OF_TOTALS = ("PER", "HAVING")


def _at_clause(place: Place) -> Place:
    """The place of a WITHIN that is a clause without a formula before it, where that is missing.

    The parser goes on to the next token, because `WITHIN[…](…)` could begin there.
    """
    if place.before != "WITHIN" or not place.accepts("LSQB"):
        return place
    rest = place.tokens[place.index : place.statement_end()]
    if any(token.type == "LPAR" for token in rest):
        return place
    return replace(place, index=place.index - 1, accepted=_ATOM)


def expected(place: Place) -> list[str]:
    """The tokens that could stand at a place, in the words of the language and in a fixed order."""
    rest = set(place.accepted)
    words: list[str] = []

    def take(terminals: frozenset[str], *phrases: str) -> None:
        rest.difference_update(terminals)
        words.extend(phrases)

    if place.wants_formula:
        take(_ATOM, "an event type", "'('", "a selector such as NXT(…)")
    elif place.accepts("STAR", "NONE"):
        choices = STRATEGIES | {"FIRST", "LONGEST", "DISJOINT", "FLAT", "TOTAL", "COLLAPSED"}
        take(_VALUE | choices | {"STAR", "NONE"}, "'*'", "NONE", "a list of labels and values")
    elif place.wants_value and place.accepts("ATTRIBUTE"):
        take(_VALUE, "an attribute", "a value such as 10 or 'text'")
    elif place.wants_value:
        take(_VALUE | {"STAR"}, "a value such as x.price, 10 or 'text'")
    rest.discard("UNIT")
    if "DOUBLE_COLON" in rest:  # a value may have parts, but rarely has
        rest -= _PARTS
    if rest >= {"PRECISION", "WITHOUT"}:  # a type may go on, but rarely does
        rest -= _REST_OF_TYPE
    if place.before == "UNIT":
        rest -= {"INTEGER", "DOUBLE"}  # a duration may go on, but rarely does
    if rest & {"INTEGER"}:
        take(frozenset({"INTEGER", "DOUBLE"}), "a number")
    if "NAME" in rest:
        take(frozenset({"NAME"}), _kind_of_name(place))
    if "ATTRIBUTE" in rest:
        take(frozenset({"ATTRIBUTE"}), _kind_of_attribute(place))
    if "COLON_PLUS" in rest:
        take(_OPERATORS | _POSTFIXES, "an operator such as ; : OR")
    if "EQUAL" in rest:
        take(_COMPARING, "a comparison such as =")
    if "STAR" in rest:
        take(_ARITHMETIC, "an arithmetic operator")
    if rest >= _STATEMENTS:
        take(_STATEMENTS, "CREATE STREAM", "QUERY", "SELECT")
    words += [f"'{SIGNS[terminal]}'" for terminal in SIGNS if terminal in rest]
    ordered = (*CLAUSES[:-1], *_OF_TOTALS, CLAUSES[-1])
    words += sorted(rest & set(grammar().keywords) - set(ordered))
    full = {} if place.before in ("BY", "PER") else FULL_NAMES
    words += [full.get(word, word) for word in ordered if word in rest]
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
        case "COLON" if place.accepts("LSQB"):
            return "a name in a text of JSON"
        case "COLON" | "DOUBLE_COLON":
            return "a type such as INT or STRING"
        case "INTEGER" | "DOUBLE":
            return "a unit of time such as MINUTES"
        case _:
            return "an attribute"
