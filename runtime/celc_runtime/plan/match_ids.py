"""The columns by which `match_id` identifies events."""

from dataclasses import replace

from celc_runtime.plan.plan import MATCH_ID, Plan


class NoMatchId(ValueError):
    """The answer of a query cannot have a column `match_id`. It says why."""


def with_match_id(plan: Plan) -> Plan:
    """The plan with the column `match_id` in its answer; raises NoMatchId if the name is taken."""
    plan = replace(plan, answer=replace(plan.answer, match_id=None))
    for name, _ in plan.ddl_columns():
        if name.casefold() == MATCH_ID:
            raise NoMatchId(
                f"query {plan.name!r} has a column {name!r} already: rename it with AS, or leave "
                "out match_id"
            )
    # For other queries, the order of rows is one of their values.
    tiebreak = () if plan.source.reads else plan.source.tiebreak
    told_by = dict.fromkeys((*(one.name for one in plan.source.attributes), *tiebreak))
    return replace(plan, answer=replace(plan.answer, match_id=tuple(told_by)))
