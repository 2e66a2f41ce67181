"""How several queries run on a stream, in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from celc_runtime.chain.streams.match import operators_of
from celc_runtime.chain.streams.operators import Group, Wanted, group_of
from celc_runtime.chain.streams.units import Unit
from celc_runtime.program import Program, growth_line
from celc_runtime.spark.input.pushdown import why_not_filtered
from celc_runtime.stream.match import check_stream, default_buckets
from celc_runtime.stream.one_bucket.known_keys import window_length

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def explain_chain(program: Program, events: DataFrame) -> str:
    """The plan of `match_stream` for a query that reads others, with its reasons.

    Raises EventError if the query cannot run on the DataFrame.
    """
    check_stream(program, events, allow_unbounded_state=True)
    lines = [f"query {program.name!r} reads {' and '.join(map(repr, program.plan.source.reads))}"]
    return "\n".join([*lines, *_of_group(group_of(program, Wanted()), events)])


def explain_module(programs: Mapping[str, Program], events: DataFrame) -> str:
    """The plan of `match_all_stream` of a module: its operators, and what each runs.

    Raises EventError if a query cannot run on the DataFrame.
    """
    for program in programs.values():
        check_stream(program, events, allow_unbounded_state=True)
    operators = operators_of(programs)
    lines = [f"{len(programs)} queries in {len(operators)} operator{'s' * (len(operators) > 1)}"]
    if len(operators) > 1:
        lines[0] += ", because their event times differ, or they are FOR EACH or name EVENT OTHER"
    for number, groups in enumerate(operators, 1):
        lines += ["", f"operator {number}"]
        if len(groups) > 1:
            lines[-1] += f": {len(groups)} groups of queries, because their PARTITION BY differ"
        for names in groups:
            group = {name: programs[name] for name in names}
            if any(one.plan.source.parameters is not None for one in group.values()):
                lines.append(
                    f"query {names[0]!r} is FOR EACH row of a table: as match_stream runs it"
                )
                continue
            lines += _of_group(Group(group, names, dict(programs)), events)
    return "\n".join(lines)


def _of_group(group: Group, events: DataFrame) -> list[str]:
    source = next(iter(group.programs.values())).plan.source
    keys = source.partition_by if group.has_one_key else group.keys
    if group.keys:
        each = group.buckets_of_task
        lines = [
            f"buckets: {default_buckets(events.sparkSession, each)} of the keys of "
            f"{', '.join(keys)} (at most {each} for each task that keeps states)"
        ]
    else:
        why = "without PARTITION BY there is one partition"
        if not group.has_one_key:
            why = "queries read each other, and no key is in the PARTITION BY of all"
        lines = [f"buckets: 1, because {why}"]
    for unit in group.units:
        lines.append(f"  {_of_unit(unit)}")
        lines += [f"    {growth_line(one)}" for one in unit.programs if one.growth]
    return lines


def _of_unit(unit: Unit) -> str:
    if unit.reads:
        streams = " and events of its own" if unit.declared else ""
        found = f"{unit.name}: reads the rows of {', '.join(unit.reads)}{streams}"
        if unit.lag:
            found += (
                f"; these are known {timedelta(microseconds=unit.lag)} after their end, so it waits"
            )
        return found
    unfiltered = next(filter(None, (why_not_filtered(one.plan) for one in unit.programs)), "")
    rows = f"all rows, because {unfiltered}" if unfiltered else "the rows that can change something"
    if not unit.members:
        return f"{unit.name}: {rows}"
    length = window_length(unit.query)
    assert length is not None
    return (
        f"{unit.name}: share their events, of which each is kept once, for at most "
        f"{timedelta(microseconds=length)}; {rows}"
    )
