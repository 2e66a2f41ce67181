"""Whether a route has an answer for a query, from the table of rules."""

from dataclasses import replace
from typing import Protocol

from celc_runtime.plan.compact_form import own_aggregate
from celc_runtime.plan.joins import why_not_joined
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.routes.features import Feature, why_apart
from celc_runtime.routes.rules import RULES, Reason, Route


class Asked(Protocol):
    """A program of CEL, or one of MATCH_RECOGNIZE."""

    @property
    def name(self) -> str:
        """The query's name."""


def why_not(program: Asked, route: Route) -> Reason | None:
    """Why a route has no answer for a query; None if it has one."""
    for rule in RULES:
        if route in rule.routes and all(_has(program, one) for one in rule.features):
            words = _words(program)
            told = rule.reason
            return replace(told, why=told.why.format(**words), instead=told.instead.format(**words))
    if route in _SAME_BELOW and isinstance(program, Program):
        for level in program.levels:
            reason = why_not(level, route)
            if reason is not None:
                return replace(reason, why=f"it reads {level.name!r}, and there {reason.why}")
    return None


_SAME_BELOW = (Route.STREAM, Route.UNBOUNDED, Route.AFTER, Route.UNTIL)
"""Routes that ask the same of a query and of those that it reads."""


def check(program: Asked, route: Route) -> None:
    """Raises the error of the reason if a route has no answer for a query."""
    if (reason := why_not(program, route)) is not None:
        raise reason.error(f"query {program.name!r} cannot be run by {route.value}: {reason}")


def routes_text(program: Asked) -> str:
    """The routes that a query has, and why it does not have the others."""
    refused: dict[Reason, list[str]] = {}
    found: list[str] = []
    for route in Route:
        reason = why_not(program, route)
        (found if reason is None else refused.setdefault(reason, [])).append(route.value)
    lines = [f"query {program.name!r}", f"  runs by {', '.join(found)}"]
    lines += [f"  not by {', '.join(routes)}: {reason}" for reason, routes in refused.items()]
    return "\n".join(lines) + "\n"


def _has(program: Asked, feature: Feature) -> bool:
    return isinstance(program, Program) != feature.of_rows and feature.is_in(program)


def _words(program: Asked) -> dict[str, str]:
    """The parts of a query that reasons name."""
    if not isinstance(program, Program):
        return {"name": program.name}
    plan, choice = program.plan, program.plan.choice.per_start
    name = "" if plan.source.parameters is None else plan.source.parameters.name
    order = plan.source.order_by[0] if plan.source.order_by else ""
    return {
        "name": plan.name,
        "reads": ", ".join(plan.source.reads),
        "read": plan.source.reads[0] if plan.source.reads else "",
        "apart": why_apart(program) if plan.source.reads else "",
        "declared": "" if not program.levels else _as_stream(program.levels[0].plan),
        "set": name,
        "choice": str(choice),
        "limit": str(plan.choice.limit if choice is None else choice.limit),
        "order": order,
        "type": plan.source.type_of(order) if order else "",
        "size": "" if plan.matching.window is None else f"{plan.matching.window.size:,.0f}",
        "at_end": plan.choice.at_end,
        "column": own_aggregate(plan) or "",
        "joins": why_not_joined(plan, program.joins),
    }


def _as_stream(plan: Plan) -> str:
    """The declaration of the rows of a query as a stream of events that last, in one line."""
    shown = {
        # A computed key has its text for a name, which cannot stand in a declaration.
        name if name.isidentifier() else f"key_{number}": plan.source.type_of(name)
        for number, name in enumerate(plan.source.partition_by, 1)
    }
    shown |= {one.name: one.type for one in plan.answer.expressions}
    time = plan.source.type_of(plan.source.order_by[0]) if plan.source.order_by else "TIMESTAMP"
    shown |= {"start_time": time, "end_time": time}
    attributes = ", ".join(f"{name}: {type}" for name, type in shown.items())
    return (
        f"CREATE STREAM {plan.name} LASTING [start_time, end_time] "
        f"{{ EVENT {plan.name} {{ {attributes} }} }}"
    )
