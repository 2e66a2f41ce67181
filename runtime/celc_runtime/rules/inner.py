"""A query FOR EACH as a query over pairs of an event and a row."""

from dataclasses import replace

from celc_runtime.plan.parameters import Parameters
from celc_runtime.plan.plan import Attribute, Plan, Window
from celc_runtime.program import Program, Rows


def parameters_of(plan: Plan) -> Parameters:
    """The parameter set of a query that has one."""
    assert plan.source.parameters is not None
    return plan.source.parameters


def rows_needed(program: Program) -> Rows:
    """The rows of a query FOR EACH; raises TypeError where no table has been given."""
    if program.rows is None:
        name = parameters_of(program.plan).name
        raise TypeError(
            f"query {program.name!r} is FOR EACH {name}: give a table of its rows, as in "
            f"match_table(events, {name}=rows) or with_parameters({name}=rows)"
        )
    return program.rows


def over_pairs(program: Program) -> Program:
    """The program that reads pairs: events with the columns of their row.

    The number of the row is the first key of its partitions, unless rows are run one by one. The
    columns of the row that totals read are keys as well.
    """
    plan, source, consume_by = program.plan, program.plan.source, program.plan.matching.consume_by
    parameters = parameters_of(plan)
    added = [Attribute(column, parameters.type_of(name)) for column, name in parameters.columns]
    added += [Attribute(one.column, "BOOLEAN") for one in parameters.patterns]
    if parameters.position is not None:
        added.append(Attribute(parameters.position, "LONG"))
    keys = () if plan.answer.totals is None else plan.answer.totals.row_columns
    if not parameters.row_by_row:
        added.append(Attribute(parameters.number, "LONG"))
        keys = (parameters.number, *keys)
    if consume_by == "ANY" and not parameters.row_by_row:
        # All events of a row are one stream.
        consume_by = "PARTITION"
    source = replace(
        source,
        attributes=(*source.attributes, *added),
        parameters=None,
        partition_by=(*keys, *source.partition_by),
        chosen_keys=tuple(replace(one, place=one.place + len(keys)) for one in source.chosen_keys),
    )
    matching = replace(plan.matching, consume_by=consume_by)
    return replace(program, plan=replace(plan, source=source, matching=matching), rows=None)


def over_events(plan: Plan) -> Plan:
    """The plan by which events are read before they are paired; its answers have no row column."""
    found = with_event_windows(plan)
    return replace(found, source=replace(found.source, parameters=None))


def with_event_windows(plan: Plan) -> Plan:
    """The plan with its windows in EVENTS measured on the column of positions."""
    position = parameters_of(plan).position
    if position is None:
        return plan

    def of_events(window: Window) -> Window:
        if window.attribute != position:
            return window
        return Window("EVENTS", window.size, None)

    window, local_windows = plan.matching.window, plan.matching.local_windows
    matching = replace(
        plan.matching,
        window=None if window is None else of_events(window),
        local_windows=tuple(map(of_events, local_windows)),
    )
    return replace(plan, matching=matching)
