"""Mistakes in labels under `--first-order`: each is one position, and local under `+`."""

from collections.abc import Collection

from celc.diagnostics.errors import Diagnostic, Related, error, warning
from celc.diagnostics.messages.wording import available, counted, quote
from celc.diagnostics.source import Span


def composite_label(label: str, span: Span) -> Diagnostic:
    """`(A ; B) AS x`."""
    return error(
        "as-on-composite",
        span,
        f"label {quote(label)} stands on a composite formula, but with --first-order a label is "
        "one position",
        f"put AS on the event type itself, A AS {label}, in each branch of an OR; without "
        "--first-order a label holds all the positions of its formula",
    )


def then_first(span: Span) -> Diagnostic:
    """`A ; FIRST B`."""
    return error(
        "first-with-first-order",
        span,
        "FIRST before an operand has no meaning with --first-order",
        "leave --first-order out, or say that no such event comes before: A ; !B ; B",
    )


def composite_rename(event_type: str, label: str, span: Span) -> Diagnostic:
    """`(A ; A)[A -> x]`."""
    return error(
        "rename-on-composite",
        span,
        f"label {quote(label)} would hold every {quote(event_type)} of a composite formula, but "
        "with --first-order a label is one position",
        f"put AS on the event type itself: {event_type} AS {label}",
    )


def iterated_label(
    label: str, visible: Collection[str], span: Span, bound: Collection[Span]
) -> Diagnostic:
    """`(A AS x)+ FILTER x.a = 1`; `bound` has the first place under `+` that binds it."""
    return error(
        "label-iterated",
        span,
        f"label {quote(label)} is bound only under '+', and with --first-order it is invisible "
        "outside it",
        "put the filter inside the '+', where it judges each round: (… FILTER …)+",
        *available("labels bound here", visible),
        related=tuple(Related(place, "bound here") for place in bound),
    )


def partly_bound_label(
    label: str, visible: Collection[str], span: Span, bound: Collection[Span]
) -> Diagnostic:
    """`(A AS x OR B) FILTER x.a = 1`; `bound` has the first place that binds it."""
    return error(
        "label-not-everywhere",
        span,
        f"label {quote(label)} is not bound on every branch that this filter judges, as "
        "--first-order asks",
        "put the filter on the branch that binds it, or bind the label on the others as well",
        *available("labels bound on every branch", visible),
        related=tuple(Related(place, "bound here") for place in bound),
    )


def too_many_branches(limit: int, span: Span) -> Diagnostic:
    """Many labels, each bound in some branches of several parts of one sequence."""
    return error(
        "first-order-too-large",
        span,
        "written out by which branch binds which label, this formula has more than "
        f"{counted(limit, 'event')}",
        "where parts of a sequence have branches, give their labels different names",
    )


def unsafe_branches(label: str, where: str, span: Span, first: Span) -> Diagnostic:
    """`(A AS x OR B) ; (A AS x OR C)`; `where` is such as: on both sides of ';'."""
    return warning(
        "unsafe-branches",
        span,
        f"branches that bind label {quote(label)} {where} match nothing: with --first-order a "
        "label is one position",
        "the other branches are kept; use two labels where two events are meant",
        related=(Related(first, "also bound here"),),
    )
