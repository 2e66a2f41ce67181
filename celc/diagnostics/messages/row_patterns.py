"""Messages about MATCH_RECOGNIZE.

Long: a function for each message.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from celc.diagnostics.errors import Diagnostic, Fix, Related, error, warning
from celc.diagnostics.messages.wording import quote, unknown, written
from celc.diagnostics.source import Span

# --- syntax ---------------------------------------------------------------------------------------

_WORDS = {
    "NAME": "a name",
    "QUOTED": "a name",
    "INTEGER": "a number",
    "REAL": "a number",
    "TEXT": "a text in quotes",
    "SEMICOLON": "';'",
    "LPAR": "'('",
    "RPAR": "')'",
    "COMMA": "','",
    "DOT": "'.'",
    "STAR": "'*'",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "ARROW": "'->'",
    "LONG_ARROW": "'->>'",
    "SLASH": "'/'",
    "PERCENT": "'%'",
    "QUESTION": "'?'",
    "CARET": "'^'",
    "DOLLAR": "'$'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "EXCLUDE": "'{-'",
    "EXCLUDED": "'-}'",
    "VBAR": "'|'",
    "EQUALS": "'='",
    "EQUAL": "'='",
    "DIFFERS": "'<>'",
    "LESS": "'<'",
    "GREATER": "'>'",
    "$END": "the end of the text",
}
CLAUSES = (
    *("PARTITION", "ORDER", "MEASURES", "ONE", "ALL", "AFTER", "PATTERN"),
    *("WITHIN", "SUBSET", "DEFINE"),
)
_MOST_WORDS = 10


def odd_character(character: str, span: Span) -> Diagnostic:
    """A character that no word begins with, or a text without its second quote."""
    if character in ("'", "`", '"'):
        message = f"no second {character} closes this one"
        return error("syntax", span, message, "close it; within a text write '' for a quote")
    message = f"no word of MATCH_RECOGNIZE begins with {character!r}"
    hint = "texts stand in '…', names with special characters in `…` or \"…\""
    return error("syntax", span, message, hint)


def unexpected(
    found: str | None,
    accepted: Collection[str],
    span: Span,
    before: str = "",
    clause: str = "",
) -> Diagnostic:
    """A word that cannot stand at its place; None: the text ends too early. before: the word before
    it, in capitals. clause: the first word of the clause in which it stands."""
    words = sorted({_WORDS.get(one, one) for one in accepted if one != "$END"})
    if found is None:
        return error("syntax", span, "the text ends here", _possible(words))
    help, word = [], found.upper()
    if word in CLAUSES:
        help.append("the clauses stand in this order: " + ", ".join(_ORDER))
        words = [one for one in words if one in CLAUSES] or words
    if found in ("*", "+", "?", "{") and not accepted & {"STAR", "PLUS"}:  # type: ignore[operator]
        help.append("one quantifier stands behind a part: put the part into parentheses first")
    if word in _ELSEWHERE:
        help.append(_ELSEWHERE[word])
    if before == "SELECT" and "PATTERN" not in accepted:
        help.append(
            "a subquery stands before: join what it gives to the rows that MATCH_RECOGNIZE reads"
        )
    if found in ("|", ")", ",") and "DOLLAR" in accepted:
        help.append("write () for a pattern of no rows")
    if before == "WITHIN" and found.isdigit():
        help.append(f"a duration is written INTERVAL '{found}' MINUTE, with its unit behind")
    if clause == "MEASURES" and "AS" in accepted and "AT" not in accepted and not help:
        help.append("each measure has a name behind AS: LAST(A.x) AS x")
        words = [] if found[0].isalpha() or found in ("`", ",") else words
    if clause == "PATTERN" and found in _BETWEEN_VARIABLES:
        help.append("rows that follow each other stand side by side: (A B), and (A | B) is either")
        words = []
    return error(
        "syntax",
        span,
        f"{quote(found)} cannot stand here",
        *help,
        *([_possible(words)] if words else ()),
    )


def _possible(words: Sequence[str]) -> str:
    shown = words[:_MOST_WORDS]
    more = f" and {len(words) - len(shown)} more" if len(words) > len(shown) else ""
    return f"possible here: {', '.join(shown)}{more}"


_BETWEEN_VARIABLES = (",", "->", "->>", ":", "||", "&", "and", "AND")
_ELSEWHERE = {
    "SKIP": "write AFTER MATCH SKIP PAST LAST ROW",
    "FOR": "write SUBSTR(x, 1, 2)",
    "ILIKE": "write LOWER(x) LIKE 'a%'",
    "ESCAPE": "LIKE has no ESCAPE: a \\ before % and _ takes them as they are",
    "OVER": "a window function is computed before: (SELECT *, LAG(x) OVER (…) AS y FROM t) AS q",
}
_ORDER = (
    *("PARTITION BY", "ORDER BY", "MEASURES", "ONE ROW or ALL ROWS PER MATCH"),
    *("AFTER MATCH SKIP", "PATTERN", "WITHIN", "SUBSET", "DEFINE"),
)


def too_deep(most: int, span: Span) -> Diagnostic:
    """Parentheses within parentheses within …"""
    message = f"the text nests more than {most} levels deep"
    hint = "write fewer parentheses, or shorter chains of operators"
    return error("too-large", span, message, hint)


def too_many_permuted(count: int, most: int, span: Span) -> Diagnostic:
    """`PERMUTE(A, B, C, D, E, F, G)`."""
    message = f"PERMUTE has {count} parts, and at most {most} can be permuted"
    hint = "the orders are written out: each part more multiplies them"
    return error("too-large", span, message, hint)


def large_bound(most: int, span: Span) -> Diagnostic:
    """`A{100000}`."""
    message = f"a bound of a quantifier is at most {most:,}"
    return error("too-large", span, message, "leave out the upper bound: {n,}")


def no_round(span: Span) -> Diagnostic:
    """`A{0}`."""
    message = "the upper bound of a quantifier is at least 1"
    return error("bad-quantifier", span, message, "write () for a pattern of no rows")


def from_in_call(function: str, span: Span) -> Diagnostic:
    """`TRIM(s FROM 'x')`."""
    message = f"only EXTRACT has FROM in it, and this is {quote(function)}"
    return error("syntax", span, message, "write arguments with commas: SUBSTR(s, 1, 2)")


def part_of_time(part: str, known: Sequence[str], span: Span) -> Diagnostic:
    """`EXTRACT(WEEK FROM ts)`."""
    message, hint = f"EXTRACT gives no {quote(part)}", "write SECOND(ts)"
    if part.upper() == "EPOCH":
        hint = "for a number of seconds write TIMESTAMPDIFF(SECOND, a, b)"
    elif part.upper() != "SECOND":
        return error("syntax", span, message, f"parts: {', '.join(known)}")
    return error("syntax", span, message, f"parts: {', '.join(known)}", hint)


def bounds_exchanged(least: int, most: int, span: Span) -> Diagnostic:
    """`A{3,2}`."""
    message = f"the lower bound {least} is larger than the upper bound {most}"
    return error("bad-quantifier", span, message, f"write {{{most},{least}}}")


def too_many_states(most: int, span: Span) -> Diagnostic:
    """A pattern whose quantifiers multiply."""
    message = f"the pattern has more than {most:,} rows when its quantifiers are written out"
    return error("too-large", span, message, "make bounds smaller, or leave out upper bounds: {n,}")


def too_many_moves(most: int, span: Span) -> Diagnostic:
    """`(A? B?){9000}`."""
    message = (
        f"the pattern has more than {most:,} ways to go from one row to the next when its "
        "quantifiers are written out"
    )
    return error("too-large", span, message, "make bounds smaller, or leave out upper bounds: {n,}")


def too_many_conditions(most: int, span: Span) -> Diagnostic:
    """More conditions than a word has bits."""
    message = f"the pattern has more than {most} different conditions on a row"
    return error("too-large", span, message, "join variables with equal conditions")


def too_much_remembered(most: int, span: Span) -> Diagnostic:
    """`LAST(A.x, 20000)` in a condition."""
    message = f"a condition remembers at most {most:,} rows of a variable"
    return error("too-large", span, message, "choose a smaller offset, or PREV and NEXT")


# --- names ----------------------------------------------------------------------------------------


def no_schema(table: str, span: Span) -> Diagnostic:
    """A query without CREATE TABLE, and no schema beside it."""
    return error(
        "no-schema",
        span,
        f"the columns of table {quote(table)} are not known",
        f"write CREATE TABLE {table} (name TYPE, …) before the query; in Python, schema=… gives "
        "the types as well, and celc run takes them from a Parquet file, or with DuckDB from one "
        "file of CSV or JSON",
    )


def other_table(found: str, declared: str, span: Span, place: Span) -> Diagnostic:
    """`CREATE TABLE t (…); SELECT * FROM u`."""
    message = f"the query reads table {quote(found)}, and CREATE TABLE declares {quote(declared)}"
    hint = f"write FROM {declared}"
    return error("no-schema", span, message, hint, related=(Related(place, "the declaration"),))


def unknown_column(name: str, known: Sequence[str], span: Span) -> Diagnostic:
    """A column that the table (or the result, in SELECT) lacks."""
    told = [_NO_COLUMNS[name.upper()]] if name.upper() in _NO_COLUMNS else []
    message = f"there is no column {quote(name)}"
    return unknown("unknown-column", span, message, name, "columns", known, *told)


_NOW = (
    "write the time as a constant, or as a parameter of celc.sql: TIMESTAMP '2026-01-31 12:00:00'"
)
_NO_COLUMNS = {
    "CLASSIFIER": "write CLASSIFIER()",
    "MATCH_NUMBER": "write MATCH_NUMBER()",
    "CURRENT_TIMESTAMP": _NOW,
    "CURRENT_DATE": _NOW,
    "SYSDATE": _NOW,
}


def no_column(name: str, known: Sequence[str], other: str | None, span: Span) -> Diagnostic:
    """A name of no column that can be read. other: the type of the table's column of this name,
    empty if nobody knows it; None: the table has none."""
    if other is None:
        return unknown_column(name, known, span)
    if not other:
        return error(
            "unreadable-column",
            span,
            f"the type of column {quote(name)} is not known without Spark",
            "write it in the query before MATCH_RECOGNIZE: "
            f"(SELECT CAST({written(name)} AS DOUBLE) AS {written(name)}, … FROM …) AS q",
        )
    return error(
        "unreadable-column",
        span,
        f"column {quote(name)} is of the type {_type(other)}, which MATCH_RECOGNIZE does not read",
        f"types that it reads: {_READABLE}",
        *_casts({name: other}),
    )


def left_out(others: Mapping[str, str], names: Sequence[str], span: Span) -> Diagnostic:
    """`SELECT *` with ALL ROWS PER MATCH of a table with columns that cannot be read."""
    shown = [f"{quote(name)} ({_type(type) or 'not known'})" for name, type in others.items()]
    if len(shown) > _MOST_OTHERS:
        shown = [*shown[:_MOST_OTHERS], f"… {len(shown) - _MOST_OTHERS:,} more"]
    chosen = ", ".join(names)
    return error(
        "unreadable-column",
        span,
        f"* would leave out columns whose types MATCH_RECOGNIZE does not read: {', '.join(shown)}",
        f"list the columns of the result: SELECT {chosen}",
        *_casts(others),
        fixes=(Fix(span, chosen),),
    )


_READABLE = (
    "BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, DECIMAL, STRING, BINARY, TIMESTAMP, "
    "TIMESTAMP_NTZ, DATE, INTERVAL, ARRAY, STRUCT, MAP with STRING keys"
)
_MOST_OTHERS = 12
_LONGEST_TYPE = 60
_NUMBERS = {"decimal256": "DOUBLE", "uint64": "BIGINT", "halffloat": "FLOAT"}


def _type(text: str) -> str:
    return text if len(text) <= _LONGEST_TYPE else f"{text[: _LONGEST_TYPE - 1]}…"


def _casts(others: Mapping[str, str]) -> Iterator[str]:
    """A help line with the first column that can become a number that is read."""
    for name, type in others.items():
        for begin, number in _NUMBERS.items():
            if type.startswith(begin):
                column = written(name)
                cast = f"CAST({column} AS {number}) AS {column}"
                yield f"or give the query a table with another type for it, as by {cast}"
                return


def unknown_qualifier(name: str, alias: str | None, span: Span) -> Diagnostic:
    """`SELECT u.x FROM t MATCH_RECOGNIZE (…) AS m`."""
    known = "it has no name" if alias is None else f"it is called {quote(alias)}"
    return error(
        "unknown-column",
        span,
        f"the result is not called {quote(name)}: {known}",
        *(
            ("leave out the name before the dot",)
            if alias is None
            else (f"write {alias}, or leave it out",)
        ),
    )


def table_as_variable(name: str, span: Span) -> Diagnostic:
    """`quotes.price`: the name of the table before a dot."""
    message = f"{quote(name)} is the table, and before a dot stands a variable of PATTERN"
    return error("unknown-variable", span, message, "write the column alone")


def unknown_variable(name: str, known: Sequence[str], span: Span) -> Diagnostic:
    """A name before a dot, in SUBSET or in SKIP TO that PATTERN lacks."""
    message = f"there is no variable {quote(name)} in PATTERN or SUBSET"
    return unknown("unknown-variable", span, message, name, "variables", known)


def not_in_pattern(name: str, known: Sequence[str], span: Span) -> Diagnostic:
    """DEFINE of a variable that PATTERN lacks."""
    message = f"DEFINE gives a condition to {quote(name)}, which PATTERN lacks"
    return unknown("not-in-pattern", span, message, name, "variables of PATTERN", known)


def duplicate_name(what: str, name: str, span: Span, place: Span | None) -> Diagnostic:
    """Two variables, subsets, keys or columns of one name, case aside."""
    message = f"there are two {what} {quote(name)}; case does not tell names apart"
    hint = "rename or leave out one of them"
    related = () if place is None else (Related(place, "the other one"),)
    return error("duplicate-name", span, message, hint, related=related)


def no_columns(span: Span) -> Diagnostic:
    """ONE ROW PER MATCH with neither keys nor measures."""
    message = "the result would have no column"
    return error("no-columns", span, message, "write MEASURES, PARTITION BY or ALL ROWS PER MATCH")


def unknown_function(name: str, known: Sequence[str], span: Span) -> Diagnostic:
    """`UPPER(s)`."""
    return unknown(
        "unknown-function",
        span,
        f"there is no function {quote(name)} in MATCH_RECOGNIZE",
        name,
        "functions",
        known,
        "compute other columns before, or on the result",
    )


# --- expressions ----------------------------------------------------------------------------------


def type_mismatch(message: str, span: Span, *help: str) -> Diagnostic:
    """An operand of a type that its operator does not take."""
    return error("type-mismatch", span, message, *(help or _TYPES))


_TYPES = (
    "numbers take arithmetic, SUM and AVG, texts LIKE and RLIKE; both sides of a comparison have "
    "one type",
)


def between_rows(function: str, span: Span) -> Diagnostic:
    """`UPPER(A.s || B.s) = 'x'` in DEFINE."""
    name = {"ELEMENT": "[…]", "FIELD": "a field"}.get(function, function)
    message = f"{name} is computed from one row in DEFINE, and these arguments are of several"
    example = f"{function}(A.x) = {function}(x)" if name == function else "A.x[0] = x[0]"
    hints = [f"compare values of one row each, as in {example}"]
    if function == "CONCAT":
        hints = [
            "texts of several rows are joined and compared: they have no LIKE, and no function"
        ]
    return error("between-rows", span, message, *hints)


def variable_in_key(clause: str, name: str, span: Span) -> Diagnostic:
    """`PARTITION BY A.x`."""
    message = f"{clause} is about rows of the table, before any is a row of {quote(name)}"
    return error("variable-in-key", span, message, "write the column alone")


def match_in_key(clause: str, span: Span) -> Diagnostic:
    """`ORDER BY MATCH_NUMBER()`."""
    message = f"{clause} comes before any match, so there is no CLASSIFIER and no MATCH_NUMBER"
    return error("match-in-key", span, message, "write an expression of columns")


def bad_offset(text: str, span: Span) -> Diagnostic:
    """`PREV(v, -1)`, `LAST(v, id)`."""
    message = f"an offset is a whole number from 0 on, written as one, not {quote(text)}"
    return error("bad-offset", span, message, "PREV goes back, NEXT forward: an offset has no sign")


def path_of_json(text: str, span: Span) -> Diagnostic:
    """`j ->> '$.a.b'`."""
    message = f"{quote(text)} is a path, and ->> takes one name or number"
    return error("unsupported", span, message, "write j:a.b, or GET_JSON_OBJECT(j, '$.a.b')")


def bad_interval(message: str, span: Span) -> Diagnostic:
    """`INTERVAL '1' MONTH`."""
    hint = "write INTERVAL '90' SECOND, with MILLISECOND, SECOND, MINUTE, HOUR or DAY"
    return error("bad-interval", span, message, hint)


def bad_within(message: str, span: Span, help: str) -> Diagnostic:
    """WITHIN over an order that is no time."""
    return error("bad-within", span, message, help)


def mixed_variables(function: str, names: Sequence[str], span: Span) -> Diagnostic:
    """`SUM(A.x + B.x)`."""
    return error(
        "mixed-variables",
        span,
        f"{function} is taken over the rows of one variable, and here are {' and '.join(names)}",
        "name one variable in all columns, or declare SUBSET u = (…) and write u before them",
    )


def bad_navigation(message: str, span: Span, help: str) -> Diagnostic:
    """`LAST(1)`, `FINAL PREV(x)`."""
    return error("bad-navigation", span, message, help)


def bad_nesting(outer: str, inner: str, span: Span) -> Diagnostic:
    """`SUM(PREV(v))`."""
    message = f"{inner} cannot stand inside {outer}"
    hint = "only PREV and NEXT take FIRST or LAST, as in PREV(FIRST(v.x, 1), 2)"
    return error("bad-nesting", span, message, hint)


def final_in_define(span: Span) -> Diagnostic:
    """`DEFINE A AS FINAL LAST(v) > 1`."""
    message = "FINAL reads the whole match, which is not known while rows are mapped"
    hint = "leave out FINAL: conditions read the rows so far"
    return error("final-in-define", span, message, hint)


def wrong_arguments(function: str, wanted: str, span: Span) -> Diagnostic:
    """`ABS(a, b)`."""
    message = f"these are not the arguments of {function}"
    return error("type-mismatch", span, message, f"write {wanted}")


def unsupported(message: str, span: Span, help: str) -> Diagnostic:
    """Something of the standard that is not there."""
    return error("unsupported", span, message, help)


def exclusion_with_unmatched(span: Span, place: Span) -> Diagnostic:
    """`{- … -}` with WITH UNMATCHED ROWS."""
    message = "rows cannot be excluded where unmatched rows are shown"
    hint = "write ALL ROWS PER MATCH SHOW EMPTY MATCHES, or write ( … ) for {- … -}"
    related = (Related(place, "the rows that are shown"),)
    return error("exclusion-with-unmatched", span, message, hint, related=related)


# --- warnings -------------------------------------------------------------------------------------


def searches_paths(variable: str, span: Span) -> Diagnostic:
    """A condition that makes the search depend on the path."""
    return warning(
        "path-search",
        span,
        f"the condition of {quote(variable)} reads how earlier rows are mapped, so matches are "
        "found by a search, which can take long",
        "the search remembers failures and is stopped after max_work steps; conditions on the "
        "row at hand and on rows at a constant distance from it need none",
    )
