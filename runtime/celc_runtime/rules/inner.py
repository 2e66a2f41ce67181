"""A query FOR EACH as a query over pairs of an event and a row."""

from __future__ import annotations

from dataclasses import replace

from celc_runtime.plan.parameters import Parameters
from celc_runtime.plan.plan import Attribute, Plan, Window
from celc_runtime.program import Program


def parameters_of(plan: Plan) -> Parameters:
    """The parameter set of a query that has one."""
    assert plan.parameters is not None
    return plan.parameters


def over_pairs(program: Program) -> Program:
    """The program that reads pairs: events with the columns of their row.

    The number of the row is the first key of its partitions, unless rows are run one by one. What
    totals read of the row are keys as well.
    """
    plan = program.plan
    parameters = parameters_of(plan)
    added = [Attribute(column, parameters.type_of(name)) for column, name in parameters.columns]
    added += [Attribute(one.column, "BOOLEAN") for one in parameters.patterns]
    if parameters.position is not None:
        added.append(Attribute(parameters.position, "LONG"))
    keys = () if plan.totals is None else plan.totals.row_columns
    if not parameters.row_by_row:
        added.append(Attribute(parameters.number, "LONG"))
        keys = (parameters.number, *keys)
    inner = _changed(plan, (*plan.attributes, *added))
    inner = replace(
        inner,
        partition_by=(*keys, *plan.partition_by),
        chosen_keys=tuple(replace(one, place=one.place + len(keys)) for one in plan.chosen_keys),
        # All events of a row are one stream.
        consume_by=plan.consume_by if parameters.row_by_row else _of_row(plan.consume_by),
    )
    return replace(program, plan=inner)


def _of_row(consume_by: str) -> str:
    return "PARTITION" if consume_by == "ANY" else consume_by


def _changed(plan: Plan, attributes: tuple[Attribute, ...]) -> Plan:
    return replace(plan, attributes=attributes, parameters=None)


def over_events(plan: Plan) -> Plan:
    """The plan by which events are read before they meet rows, whose answers have no column of
    rows."""
    return replace(with_event_windows(plan), parameters=None)


def with_event_windows(plan: Plan) -> Plan:
    """The plan with the windows of EVENTS that are measured on the column of positions."""
    position = parameters_of(plan).position
    if position is None:
        return plan

    def of_events(window: Window) -> Window:
        if window.attribute != position:
            return window
        return Window("EVENTS", window.size, None)

    return replace(
        plan,
        window=None if plan.window is None else of_events(plan.window),
        local_windows=tuple(map(of_events, plan.local_windows)),
    )
