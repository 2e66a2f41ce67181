"""By which columns `match_id` tells events apart."""

from __future__ import annotations

from dataclasses import replace

from celc_runtime.plan.plan import MATCH_ID, Plan


class NoMatchId(ValueError):
    """The answer of a query cannot have a column `match_id`; says why."""


def with_match_id(plan: Plan) -> Plan:
    """The plan whose answer has the column `match_id`. Raises NoMatchId where it has another column
    of that name."""
    plan = replace(plan, answer=replace(plan.answer, match_id=None))
    for name, _ in plan.ddl_columns():
        if name.casefold() == MATCH_ID:
            raise NoMatchId(
                f"query {plan.name!r} has a column {name!r} already: rename it with AS, or leave "
                "out match_id"
            )
    # The order of rows of other queries is one of their values.
    tiebreak = () if plan.source.reads else plan.source.tiebreak
    told_by = dict.fromkeys((*(one.name for one in plan.source.attributes), *tiebreak))
    return replace(plan, answer=replace(plan.answer, match_id=tuple(told_by)))
