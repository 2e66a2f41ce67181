"""Windows, clauses, events and labels as text, for dumps and for comments in generated code."""

from celc.core import formula as core
from celc.core.formula import ROLE
from celc.core.show import show_interval, show_predicate
from celc.normal.normal_form import SUPPORT, EventClause


def show_window(window: core.Window) -> str:
    """A window as `WITHIN[3 EVENTS]`."""
    return f"WITHIN[{_size(window)}]"


def show_length(length: core.Window) -> str:
    """The length of an absence as `FOR 30 MINUTES`."""
    return f"FOR {_size(length)}"


def _size(window: core.Window) -> str:
    attribute = "" if window.attribute is None else f" [{window.attribute.name}]"
    return f"{show_size(window)}{attribute}"


def show_size(window: core.Window) -> str:
    """The size of a window in its unit: `3 EVENTS`, `30 MINUTES`, `2.5`."""
    if window.unit is core.WindowUnit.MICROSECONDS:
        return show_interval(int(window.size))
    return f"{window.size}{' EVENTS' if window.unit is core.WindowUnit.EVENTS else ''}"


def show_clause(clause: EventClause | core.Clause) -> str:
    return " OR ".join(map(show_predicate, clause.predicates)) or "FALSE"


def show_clauses(clauses: tuple[EventClause, ...]) -> str:
    parts = [show_clause(clause) for clause in clauses]
    if len(parts) > 1:
        parts = [
            f"({part})" if len(clause.predicates) > 1 else part
            for part, clause in zip(parts, clauses, strict=True)
        ]
    return " AND ".join(parts)


def show_event(event_type: core.EventType, clauses: tuple[EventClause, ...]) -> str:
    """Events of a type that satisfy conditions, as in `T[value > 40.0]`."""
    if not clauses:
        return event_type.name
    parts = [show_clause(clause) for clause in clauses]
    if len(parts) > 1:
        parts = [f"({part})" if " OR " in part else part for part in parts]
    return f"{event_type.name}[{' AND '.join(parts)}]"


def show_labels(labels: tuple[str, ...]) -> str:
    """A label set, `{x, y}`. `•` is an event that counts for a selector but shows no label. Roles
    follow: `{x} role 0`."""
    names = [label for label in labels if label != SUPPORT and not label.startswith(ROLE)]
    text = "•" if SUPPORT in labels and not names else "{" + ", ".join(names) + "}"
    roles = (label.removeprefix(ROLE) for label in labels if label.startswith(ROLE))
    return " ".join([text, *roles])
