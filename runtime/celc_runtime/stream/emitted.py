"""When the rows of a stream come: the option `emit` of `match_stream`."""

from dataclasses import replace

from celc_runtime.plan.errors import EventError
from celc_runtime.program import Program
from celc_runtime.routes import features as has

EMITS = ("final", "running")


def emit_of(program: Program) -> str:
    """The `emit` of a program that `emitting` gave."""
    totals = program.plan.answer.totals
    return "running" if totals is not None and totals.per == "RUNNING" else "final"


def emitting(program: Program, emit: str) -> Program:
    """The program whose rows come as `emit` says.

    final: each row once it is final. running: with SELECT TOTAL … PER PARTITION, a row for each end
    at which matches end, with the totals of the partition so far. Raises ValueError for another
    word, EventError for a query without such rows.
    """
    if emit not in EMITS:
        raise ValueError(f"emit must be one of {', '.join(map(repr, EMITS))}, not {emit!r}")
    if emit in ("final", emit_of(program)):
        return program
    totals = program.plan.answer.totals
    if program.plan.source.reads:
        raise EventError(
            f"query {program.name!r} reads other queries, and emit='running' is for a query that "
            "reads events alone: leave out emit, so that the rows come at finish"
        )
    if totals is None or totals.per != "PARTITION":
        raise EventError(
            f"query {program.name!r}: emit='running' gives the totals of partitions so far, and it "
            "has no SELECT TOTAL … PER PARTITION: leave out emit"
        )
    if has.LATE_APART.is_in(program):
        raise EventError(
            f"query {program.name!r}: emit='running' has a row for each end, and matches with one "
            "end are decided at different times, because absences at their end differ or count "
            "from the start: write one absence at the end, with FOR, or leave out emit, so that "
            "the rows come at finish"
        )
    answer = replace(program.plan.answer, totals=replace(totals, per="RUNNING"))
    return replace(program, plan=replace(program.plan, answer=answer))
