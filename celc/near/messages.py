"""What near misses refuse."""

from celc.diagnostics.errors import Diagnostic, error, warning
from celc.diagnostics.source import Span


def refused(what: str, span: Span, instead: str) -> Diagnostic:
    """A query that has no near misses."""
    return error("no-near-misses", span, f"{what} has no near misses", instead)


def with_match_id(span: Span) -> Diagnostic:
    """A query compiled with a column that tells matches from each other."""
    return error(
        "no-near-misses",
        span,
        "a near miss has no match_id: it is no match of the query",
        "leave out match_id where near misses are asked for; part, start and the labels tell them",
    )


def repeated_comparison(span: Span) -> Diagnostic:
    """A comparison of several positions in a part that is repeated."""
    return error(
        "no-near-misses",
        span,
        "how far this comparison was bent cannot be told: it compares positions in a part that can "
        "stand several times in a match",
        "compare them in a FILTER around the whole formula",
    )


def repeated_window(span: Span) -> Diagnostic:
    """A window in a part that is repeated."""
    return error(
        "no-near-misses",
        span,
        "how far this window was bent cannot be told: it is in a part that can stand several times "
        "in a match",
        "leave it to the WITHIN of the query",
    )


def other_positions(label: str, span: Span) -> Diagnostic:
    """A comparison about some positions of a label."""
    return error(
        "no-near-misses",
        span,
        f"how far this comparison was bent cannot be told: {label} has other positions in a match "
        "than those that it compares",
        f"give the label that is compared here another name than {label}",
    )


def amount_of_duration(name: str, span: Span) -> Diagnostic:
    """An amount, which is a number, for an attribute that is a duration."""
    return error(
        "no-near-misses",
        span,
        f"near gives a number for {name}, and what is compared here is a duration",
        f"leave {name} out of near: the duration then moves by a tenth",
    )


def unknown_attribute(name: str, available: str, span: Span) -> Diagnostic:
    """An amount for an attribute that no event has."""
    return error(
        "no-near-misses",
        span,
        f"near names {name!r}, which is no attribute of the events",
        f"available are {available}",
    )


def taken(name: str, span: Span) -> Diagnostic:
    """A column whose name is one of those that tell what was bent."""
    return error(
        "no-near-misses",
        span,
        f"the query has a column {name}, and near misses have one of this name: it tells what was "
        "bent",
        f"give the column another name, as in AS {name}_1",
    )


def undeclared(span: Span) -> Diagnostic:
    """A query over a table that the text does not declare."""
    return error(
        "no-near-misses",
        span,
        "a query over a table that the text does not declare has no near misses",
        "declare the table with CREATE STREAM; `celc init` and celc.declare write the declaration",
    )


def left_out(clause: str, span: Span) -> Diagnostic:
    """A clause that near misses do not look at."""
    return warning(
        "left-out-of-near-misses",
        span,
        f"near misses leave out {clause}: of the query and of its bent forms all matches count",
        "a near miss shares no event with any match that the query has without it",
    )
