"""Options of a call that give a plan other columns."""

from dataclasses import replace

from celc_runtime.plan.errors import OptionClash
from celc_runtime.plan.plan import MATCH_ID, Plan


def with_match_id(plan: Plan) -> Plan:
    """The plan with the column `match_id` in its answer, with the columns by which it identifies
    events; raises OptionClash if the name is taken."""
    plan = replace(plan, answer=replace(plan.answer, match_id=None))
    for name, _ in plan.ddl_columns():
        if name.casefold() == MATCH_ID:
            raise OptionClash(
                "match_id",
                f"query {plan.name!r} has a column {name!r} already: rename it with AS, or leave "
                "out match_id",
            )
    # For other queries, the order of rows is one of their values.
    tiebreak = () if plan.source.reads else plan.source.tiebreak
    told_by = dict.fromkeys((*(one.name for one in plan.source.attributes), *tiebreak))
    return replace(plan, answer=replace(plan.answer, match_id=tuple(told_by)))


def with_type_column(plan: Plan, name: str) -> Plan:
    """The plan that reads the types of events from the column `name`; raises OptionClash if the
    query reads something else there."""
    taken = {a.name for a in (*plan.source.attributes, *plan.source.order_candidates)}
    if plan.source.stream_column:
        taken.add("stream")
    if name in taken:
        raise OptionClash(
            "type_column",
            f"query {plan.name!r} cannot read its event types from {name!r}, which is "
            "a column of its own: rename one of the two",
        )
    return replace(plan, source=replace(plan.source, type_column=True, type_name=name))
