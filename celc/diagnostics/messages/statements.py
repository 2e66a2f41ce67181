"""Messages about whole statements that contain MATCH_RECOGNIZE."""

from celc.diagnostics.errors import Diagnostic, error, warning
from celc.diagnostics.messages.wording import quote
from celc.diagnostics.source import Span


def unclosed_text(span: Span) -> Diagnostic:
    return error(
        "unclosed-text",
        span,
        "a text, a quoted name or a comment begins here and does not end",
        "write the closing quote, or */ for a comment",
    )


def lone_parenthesis(span: Span) -> Diagnostic:
    return error(
        "lone-parenthesis",
        span,
        "this parenthesis closes none",
        "leave it out, or open one before it",
    )


def unclosed(of_clause: bool, span: Span) -> Diagnostic:
    what = "MATCH_RECOGNIZE has no closing parenthesis" if of_clause else "it is not closed"
    return error("unclosed-parenthesis", span, what, "write the missing ')'")


def second_statement(span: Span) -> Diagnostic:
    return error(
        "second-statement",
        span,
        "a second statement begins here, and one is run at a time",
        "call celc.sql once for each statement",
    )


def source_from_outside(span: Span) -> Diagnostic:
    return error(
        "source-from-outside",
        span,
        "the source of MATCH_RECOGNIZE looks at columns of another table (LATERAL)",
        "MATCH_RECOGNIZE reads a table, a query in parentheses, a name of WITH or a table function",
        "write the join as the source: (SELECT … FROM a JOIN b ON …) AS q MATCH_RECOGNIZE (…)",
    )


def no_source(span: Span) -> Diagnostic:
    return error(
        "no-source",
        span,
        "MATCH_RECOGNIZE stands behind no table",
        "write it behind a table, a query in parentheses, a name of WITH or a table function, and "
        "that one's alias: FROM t AS x MATCH_RECOGNIZE (…)",
    )


def view_of_clause(what: str, span: Span) -> Diagnostic:
    return error(
        "view-of-clause",
        span,
        f"{what} is read later by the host alone, which does not know MATCH_RECOGNIZE",
        "write CREATE TABLE … AS SELECT …; or a temporary view over table functions of Spark: celc "
        "compile q.sql --to spark-functions",
    )


def view_of_functions(what: str, span: Span) -> Diagnostic:
    return error(
        "view-of-clause",
        span,
        f"{what} that stays cannot call a function of the session, as MATCH_RECOGNIZE becomes here",
        "write CREATE TEMPORARY VIEW, or CREATE TABLE … AS SELECT …",
    )


def parameter_of_function(name: str, span: Span) -> Diagnostic:
    return error(
        "missing-parameter",
        span,
        f"the parameter {name} stands in MATCH_RECOGNIZE, which becomes a function: its module is "
        "written before any value is given",
        "write the value here; outside MATCH_RECOGNIZE parameters stay",
    )


def unknown_table(table: str | None, given: str | None, span: Span) -> Diagnostic:
    """A source whose columns nobody tells. table: which of its tables; None: it has none. given:
    the table whose columns `--schema` gives."""
    of = "of what MATCH_RECOGNIZE reads" if table is None else f"of {quote(table)}"
    told = "" if given is None else f" (--schema gives those of {quote(given)})"
    shown = "name" if table is None else table.rpartition(".")[2]
    return error(
        "no-schema",
        span,
        f"the columns {of} are not known without Spark{told}",
        f"write CREATE TABLE {shown} (column TYPE, …); before the statement",
        "or select the columns with their types before MATCH_RECOGNIZE: "
        "(SELECT CAST(x AS INT) AS x, … FROM …) AS q",
    )


def unread_source(reason: str, span: Span) -> Diagnostic:
    """A source that is no SQL of Spark's."""
    return error(
        "source-refused",
        span,
        f"what MATCH_RECOGNIZE reads is no SQL of Spark's: {reason}",
        "run the statement on Spark by celc.sql, which lets Spark read it",
    )


_HOST_READS = (
    "a function of the host's alone is computed once for each row, before rows are matched; it is "
    "neither an aggregate nor makes rows"
)


def unknown_type_of_function(function: str, span: Span) -> Diagnostic:
    return error(
        "host-function",
        span,
        f"{quote(function)} is a function of Spark's, whose type is not known without Spark",
        _HOST_READS,
        f"write its type around it, a number, BOOLEAN or STRING: CAST({function}(…) AS DOUBLE)",
    )


def no_clause(span: Span) -> Diagnostic:
    return error(
        "no-clause",
        span,
        "the statement has no MATCH_RECOGNIZE behind a table in FROM",
        "give it to the host itself, or write FROM t MATCH_RECOGNIZE (…)",
    )


def missing_parameter(name: str, given: list[str], span: Span) -> Diagnostic:
    have = f"given: {', '.join(map(quote, given))}" if given else "none is given"
    return error(
        "missing-parameter",
        span,
        f"there is no value for the parameter {name}",
        have,
        "give it: celc.sql(host, text, parameters={…}), or a list for '?'",
    )


def unused_parameter(asked: int, given: int, span: Span) -> Diagnostic:
    return error(
        "unused-parameter",
        span,
        f"{given} values are given, and the statement has {asked} '?'",
        "give a value for each '?', in their order",
    )


def parameter_type(name: str, kind: str, span: Span) -> Diagnostic:
    return error(
        "parameter-type",
        span,
        f"the value of the parameter {name} is a {kind}, which is no constant of the clause",
        "in MATCH_RECOGNIZE a parameter is a number, a text, a BOOLEAN, a date, a time or None",
    )


def quoted_name_on_spark(name: str, span: Span) -> Diagnostic:
    return warning(
        "quoted-name",
        span,
        f'"{name}" is a name here, and Spark alone reads it as a text',
        f"write `{name}`, which both read alike, or '{name}' for a text",
    )


def source_refused(host: str, reason: str, span: Span) -> Diagnostic:
    return error(
        "source-refused",
        span,
        f"{host} refuses what MATCH_RECOGNIZE reads: {reason}",
        "MATCH_RECOGNIZE reads a table, a query in parentheses, a name of WITH or a table function "
        "that the host knows; a query there sees no column of other tables",
    )


def unread_column(
    host: str, table: str, column: str, type: str, cast: str | None, span: Span
) -> Diagnostic:
    """A table with a column of a type that the host does not have. cast: the type to cast it to,
    as Python writes it."""
    name = repr(column)
    advice = f"give the table without it: table.drop_columns([{name}])"
    if cast is not None:
        place = f"table.column_names.index({name})"
        advice = (
            "cast the column before: "
            f"table.set_column({place}, {name}, table[{name}].cast({cast}))"
        )
    return error(
        "unread-column",
        span,
        f"{host} cannot read the table {quote(table)}: its column {quote(column)} is {type}",
        advice,
    )


_OF_TWO_TIMES = ("DATEDIFF", "DATE_DIFF", "TIMEDIFF", "EPOCH", "DATE_SUB", "DATESUB", "AGE")
_BETWEEN_TIMES = "write TIMESTAMPDIFF(MINUTE, a, b), or b - a < INTERVAL '5' MINUTE"


def host_function_of_rows(function: str, span: Span) -> Diagnostic:
    return error(
        "host-function",
        span,
        f"{quote(function)} is a function of the host's, and cannot be of other rows",
        _HOST_READS,
        (
            _BETWEEN_TIMES
            if function.upper() in _OF_TWO_TIMES
            else "write the function inside: PREV(f(x)), SUM(f(x))"
        ),
    )


def host_function_of_variables(function: str, span: Span) -> Diagnostic:
    return error(
        "host-function",
        span,
        f"{quote(function)} is a function of the host's, and reads rows of several variables here",
        _HOST_READS,
        (
            _BETWEEN_TIMES
            if function.upper() in _OF_TWO_TIMES
            else "name columns of one variable in it"
        ),
    )


def host_function_refused(host: str, reason: str, span: Span) -> Diagnostic:
    is_aggregate = "aggregate" in reason
    return error(
        "host-function",
        span,
        f"celc has no such function, and {host} refuses it: {reason}",
        _HOST_READS,
        *["over rows there are COUNT, SUM, AVG, MIN, MAX and ARRAY_AGG"] * is_aggregate,
    )
