"""Parameter tables of `match`: collected once, and sent to every task with the query.

Rejected: a join of events and rows on Spark, which would have to know each comparison, and shuffle
pairs where now events are shuffled; a broadcast variable, which Connect has none of. What is larger
than a megabyte Spark broadcasts with the function by itself.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc

from celc_runtime.arrow.arrays import plain
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.parameters import Concern, OfBoth, OfEvent, Test
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.relevance import AttributeTest, Relevant
from celc_runtime.program import Program, Rows
from celc_runtime.rules.any_query import with_tables
from celc_runtime.rules.inner import rows_needed, with_event_windows
from celc_runtime.spark.input.columns import column_named
from celc_runtime.spark.input.pipelines import is_stream, refuse_in_pipelines
from celc_runtime.spark.input.probe import tell_job
from celc_runtime.spark.input.pushdown import EXACT, has_many_odd_values

MOST_VALUES = 1 << 19
"""Values of a parameter by which Spark filters rows, at most. They are part of the plan, which is a
megabyte larger with this number."""


def with_their_tables(
    programs: Mapping[str, Program], tables: Mapping[str, Any]
) -> dict[str, Program]:
    """Programs with the tables that a call gives for their parameter sets, by name.

    Raises TypeError for a table without a set and for a set without a table, EventError where a
    table does not fit its declaration.
    """
    sets = {
        program.plan.source.parameters.name: program
        for program in programs.values()
        if program.plan.source.parameters is not None
    }
    for name in tables:
        if name not in sets:
            known = f"their parameter sets are {', '.join(map(repr, sets))}" if sets else "none is"
            raise TypeError(f"no query of the module is FOR EACH {name}: {known}")
    here = {name: collected(sets[name], name, table) for name, table in tables.items()}
    found = {}
    for name, program in programs.items():
        parameters = program.plan.source.parameters
        if parameters is not None:
            given = {one: table for one, table in here.items() if one == parameters.name}
            program = with_tables(program, given)
            rows_needed(program)
        found[name] = program
    return found


def collected(program: Program, name: str, table: Any) -> Any:
    """The rows of a DataFrame of Spark for the set of this name, as a table of Arrow; what is no
    DataFrame of Spark as it is.

    Raises EventError for a stream.
    """
    if not type(table).__module__.startswith("pyspark.sql"):
        return table
    if is_stream(table):
        raise EventError(
            f"query {program.name!r}: the table of parameters {name!r} is a stream, but its rows "
            "are fixed for a run: read it with spark.read (match_stream of one query takes a "
            "stream, of a set with VALID)"
        )
    parameters = program.plan.source.parameters
    declared = () if parameters is None else parameters.attributes
    kept = [one.name for one in declared if one.name in table.columns]
    refuse_in_pipelines(
        table.sparkSession,
        f"query {program.name!r}: a DataFrame as the table of parameters {name!r}",
        "give a table of pandas or Arrow, or read it with .toPandas() outside of the function",
    )
    tell_job(f"the rows of {name!r}")
    # Without any of them the error names the columns that there are.
    return (table.select(*map(column_named, kept)) if kept else table.limit(0)).toArrow()


def planned(program: Program) -> Plan:
    """The plan of a query as Spark reads events; of a query FOR EACH that has a table, for the rows
    of this table."""
    if program.rows is None:
        return program.plan
    return with_event_windows(with_values_of(program.plan, program.rows))


def with_values_of(plan: Plan, rules: Rows) -> Plan:
    """The plan of a query FOR EACH as Spark reads events: those that no row of the table can
    concern can change nothing, because an attribute equals none of the values there.

    A parameter with more than `MOST_VALUES` values says nothing of the events. Windows of EVENTS
    count all events before they meet rows.
    """
    parameters = plan.source.parameters
    if parameters is None or parameters.position is not None:
        return plan
    concerns = _of_partitions(plan) if parameters.concerns is None else parameters.concerns
    if concerns is None:
        return plan
    found = []
    for concern in concerns:
        ways = tuple(_of_events(way, rules) for way in concern.ways)
        # A way that says nothing of events lets all of them pass.
        found.append(Relevant(concern.stream, concern.type, ways if all(ways) else ()))
    return replace(plan, source=replace(plan.source, relevant=tuple(found)))


def _of_partitions(plan: Plan) -> tuple[Concern, ...] | None:
    """What all events of a match are asked, neighbours too, if a key of PARTITION BY equals an
    attribute of the row at each event that begins one; None: nothing."""
    parameters = plan.source.parameters
    if parameters is None or parameters.course is None:
        return None
    ways = [way for concern in parameters.course.begins for way in concern.ways or ((),)]
    keys = tuple(
        clause
        for clause in ways[0]
        for test in clause
        if len(clause) == 1 and isinstance(test, OfBoth) and test.operator == "="
        if test.attribute in plan.source.partition_by and all(clause in way for way in ways)
    )
    return tuple(Concern(*type, (keys,)) for type in plan.source.declared_types) if keys else None


def _of_events(
    way: tuple[tuple[Test, ...], ...], rules: Rows
) -> tuple[tuple[AttributeTest, ...], ...]:
    """The part of a way that is about events alone, in conditions that Spark decides as the runtime
    does."""
    clauses = []
    for clause in way:
        tests = [_of_event(test, rules) for test in clause]
        known = tuple(test for test in tests if test is not None)
        if len(known) == len(tests):
            clauses.append(known)
    return tuple(clauses)


def _of_event(test: Test, rules: Rows) -> AttributeTest | None:
    match test:
        case OfEvent(operator, attribute, type, operands) if type in EXACT:
            return AttributeTest(operator, attribute, type, operands)
        case OfBoth("=", attribute, parameter, type) if type in EXACT:
            found = pc.drop_null(plain(rules.columns[parameter]).unique())
            if len(found) > MOST_VALUES:
                return None
            values = tuple(found.to_pylist())
            if not has_many_odd_values(type, values):
                return AttributeTest("in", attribute, type, values)
        case OfBoth("<" | "<=" | ">" | ">=" as operator, attribute, parameter, "INT" | "LONG"):
            # Of a bound the one that most events pass.
            widest = pc.max if operator[0] == "<" else pc.min
            bound = widest(plain(rules.columns[parameter])).as_py()
            if bound is None:
                return AttributeTest("in", attribute, test.type)  # NULL satisfies no comparison
            return AttributeTest(operator, attribute, test.type, (bound,))
    return None


def rules_line(plan: Plan, count: int) -> str:
    """The words of a plan about its parameter table."""
    parameters = plan.source.parameters
    assert parameters is not None
    way = "an index finds the rows that an event concerns"
    if parameters.course is not None:
        way = "an index finds the rows that an event begins, and they are followed from there"
    elif parameters.concerns is None:
        way = f"every event meets every row, because {parameters.why}"
    return f"parameters: {count:,} rows of {parameters.name!r} are sent to each task; {way}"
