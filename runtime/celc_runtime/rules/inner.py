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

    The number of the row is the first key of its partitions, unless rows are run one by one.
    """
    plan = program.plan
    parameters = parameters_of(plan)
    added = [Attribute(column, parameters.type_of(name)) for column, name in parameters.columns]
    added += [Attribute(one.column, "BOOLEAN") for one in parameters.patterns]
    if parameters.position is not None:
        added.append(Attribute(parameters.position, "LONG"))
    if parameters.row_by_row:
        return replace(program, plan=_changed(plan, (*plan.attributes, *added)))
    added.append(Attribute(parameters.number, "LONG"))
    inner = replace(
        _changed(plan, (*plan.attributes, *added)),
        partition_by=(parameters.number, *plan.partition_by),
        chosen_keys=tuple(replace(one, place=one.place + 1) for one in plan.chosen_keys),
        # All events of a row are one stream.
        consume_by="PARTITION" if plan.consume_by == "ANY" else plan.consume_by,
    )
    return replace(program, plan=inner)


def _changed(plan: Plan, attributes: tuple[Attribute, ...]) -> Plan:
    return replace(plan, attributes=attributes, parameters=None)


def over_events(plan: Plan) -> Plan:
    """The plan by which events are read before they meet rows: windows on the column of positions
    have no column yet."""
    parameters = parameters_of(plan)

    def is_there(window: Window | None) -> bool:
        return window is not None and window.attribute != parameters.position

    keeps = parameters.position is None or is_there(plan.window)
    return replace(
        plan,
        window=plan.window if keeps else None,
        local_windows=tuple(one for one in plan.local_windows if parameters.position is None or is_there(one)),
        parameters=None,
    )
