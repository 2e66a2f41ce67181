"""Conditions on one event of a known type: attributes that the type lacks are NULL."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from celc.core import formula as core
from celc.normal.normal_form import EventClause
from celc.verify.prove.expressions import UNKNOWN, Meaning


def clause_of_type(clause: EventClause, event_type: core.EventType) -> EventClause | bool:
    """What a clause asks of the events of a type; True where all satisfy it, False where none
    does."""
    asked: dict[core.Predicate, None] = {}
    for predicate in clause.predicates:
        known = _on_type(predicate, event_type)
        truth = Meaning(lambda leaf: UNKNOWN).truth(known)
        if truth is True:
            return True
        if truth is None:
            asked[known] = None
    return EventClause(tuple(asked)) if asked else False


def _on_type(part: Any, event_type: core.EventType) -> Any:
    """A condition or an expression with all that the type tells."""
    if isinstance(part, core.AttributeValue):
        if part.attribute == core.TYPE:
            return core.Constant(f"{event_type.stream}>{event_type.name}", part.type, part.span)
        has = any(one.name == part.attribute for one in event_type.attributes)
        return part if has else core.Constant(None, part.type, part.span)
    if isinstance(part, tuple):
        return tuple(_on_type(one, event_type) for one in part)
    if not is_dataclass(part) or isinstance(part, type | core.Constant | core.DecimalType):
        return part
    changed = {
        one.name: _on_type(getattr(part, one.name), event_type)
        for one in fields(part)
        if one.init and one.name not in ("span", "type", "own", "function")
    }
    if "beside" in changed:
        changed["beside"] = ()
    return replace(part, **changed)
