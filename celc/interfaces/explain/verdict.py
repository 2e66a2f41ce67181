"""What a query of CEL is and costs: five lines at the top of `celc explain` and of `celc check -v`.

*Safe* and *unary* are words of the first paper: no label on both sides of an operator that places
its sides one after the other, and no condition about more than one event. (Queries that are not
well-formed are errors.) All else is read off the plan that was chosen, so that the lines cannot say
what the run does not do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, assert_never

from celc_runtime.plan.strategy import All, InRuns, Latest, United

from celc.core.formula import Clause
from celc.core.verdict import Verdict, counted, listed
from celc.diagnostics.source import Source
from celc.driver.pipeline import Compilation, CompiledFile, Stages
from celc.interfaces.explain.costs import Cost, chosen_events, ends_at_one, ties_of
from celc.normal import normal_form as lp
from celc.normal.divide import Definitions, Roles
from celc.normal.equalities import equality_of
from celc.normal.traversal import forms_in
from celc.plan.adjoining.spots import AdjoiningRuns
from celc.plan.strategy import (
    ByDefinition,
    Checked,
    Counted,
    EarliestInWindow,
    InWindow,
    InWorlds,
    Keyed,
    LongestRuns,
    UnionLists,
)

if TYPE_CHECKING:
    from celc.row_pattern.compiler import RowCompilation


def verdicts_of(compilation: Compilation | RowCompilation) -> Iterator[tuple[str, Verdict]]:
    """The names of the queries of compiled files, each with its five lines."""
    if isinstance(compilation, Compilation):
        for file in compilation.files:
            for stages in file.queries:
                yield stages.query.name, verdict_of(stages, file)
    else:
        from celc.row_pattern.explain import verdict_of as of_rows

        yield compilation.query.name, of_rows(compilation)


def verdict_of(stages: Stages, file: CompiledFile) -> Verdict:
    """The five lines of a query of a file."""
    cost = Cost(stages)
    return Verdict(_kind(stages, file), cost.event(), cost.match(), cost.kept(), _cheaper(stages))


# --- what kind of query ---------------------------------------------------------------------------


def across(stages: Stages, source: Source) -> list[str]:
    """The conditions on more than one event, as they are written."""
    written = (" ".join(source.slice(clause.span).split()) for clause in _clauses_across(stages))
    return list(dict.fromkeys(written))


def _clauses_across(stages: Stages) -> Iterator[Clause]:
    for part in forms_in(stages.normal_form):
        if isinstance(part, lp.Correlated):
            yield from part.clauses


def _kind(stages: Stages, file: CompiledFile) -> str:
    query = stages.query
    inside = range(query.span.start, query.span.end + 1)
    unsafe = [w for w in file.warnings if w.code == "unsafe-label" and w.span.start in inside]
    safe = (
        f"not safe ({unsafe[0].message})"
        if unsafe
        else "safe (no label holds events of both sides of a ;)"
    )
    conditions = across(stages, file.source)
    what = "unary (no condition is about two events)"
    if conditions:
        what = f"not unary (about several events: {listed(conditions)})"
    elif any(isinstance(part, lp.Where) for part in forms_in(stages.normal_form)):
        what = "unary (no condition is about two events, but some count or compare with constants)"
    return f"{safe}, {what}; {_decided_by(stages)}"


def _decided_by(stages: Stages) -> str:
    """What decides which events are a match."""
    program, query, states = stages.program, stages.query, counted(stages.minimal.states, "state")
    automaton = f"an automaton of {states}"
    if stages.minimal.as_met:
        automaton += ", sets of which are made as the events lead to them"
    match program.listing:
        case All() | InRuns() | Latest() | United() | Counted() | EarliestInWindow():
            keys = ""
            if isinstance(program.update, Keyed):
                keys = f" for each value of the compared columns ({ties_of(program.update)})"
            return f"decided by {automaton}{keys}"
        case InWindow(tables=tables):
            chosen = counted(tables.tables.states, "state")
            return f"decided by {automaton}, and one of {chosen} that chooses in each window"
        case Checked() as checks:
            what = [counted(len(checks.clauses), "condition")] if checks.clauses else []
            what += ["the absence of other events"] if checks.looks_outside else []
            what += ["the windows of its parts"] if checks.windows else []
            select = query.per_start or query.strategy
            what += [f"SELECT {select}"] if checks.selector else []
            what += ["the columns of SELECT, where equal rows come once"] if checks.distinct else []
            return f"{automaton} finds candidates, to be decided by {', then '.join(what)}"
        case LongestRuns(run=AdjoiningRuns()):
            return f"{automaton} is followed from neighbour to neighbour, from the last event back"
        case LongestRuns():
            return "decided by reading the events in order, without an automaton"
        case ByDefinition():
            assert isinstance(stages.division.rest, Definitions)
            why = stages.division.rest.why.reason
            return f"{automaton} finds candidates, to be decided in plain Python, because {why}"
        case InWorlds():
            return f"{automaton} is followed in each order in which the events can come"
        case _:
            assert_never(program.listing)


# --- what would make it cheaper -------------------------------------------------------------------


def _cheaper(stages: Stages) -> str:
    return "; ".join(list(_advice(stages))[:3]) or "nothing that celc knows of"


def _advice(stages: Stages) -> Iterator[str]:
    query, program = stages.query, stages.program
    listing, update = program.listing, program.update
    for cause in stages.why_listed:
        yield cause.instead or f"{cause.reason}: without that no match would be listed"
    if isinstance(listing, ByDefinition):
        assert isinstance(stages.division.rest, Definitions)
        yield "the formula without the reason in the first line: machine code decides it"
    if isinstance(listing, Checked) and listing.clauses:
        equal = any(equality_of(clause) is not None for clause in _clauses_across(stages))
        if not (equal or query.partition_by) and _searches(stages):
            yield "an equality beside it, if one holds: only events that share the value are tried"
    if isinstance(update, Keyed) and not query.partition_by:
        yield f"PARTITION BY in place of {ties_of(update)}, {_QUESTION}"
    chooses = query.strategy != "ALL" or query.per_start or query.total or query.collapsed
    if not chooses and ends_at_one(stages.normal_form) is None:
        yield "SELECT TOTAL, COLLAPSED or MAX, if not every choice of events is wanted"
    if _keeps(stages) and query.window is None:
        searched = " and searched" if _searches(stages) else ""
        yield f"WITHIN, if a match has a longest time: less is kept{searched}"
    if not (query.partition_by or isinstance(update, Keyed) or query.consume_by == "ANY"):
        yield f"PARTITION BY, {_QUESTION}: parts run beside each other"


_QUESTION = "if each value is a question of its own (events of others neither match nor block)"


def _keeps(stages: Stages) -> bool:
    listing, update = stages.program.listing, stages.program.update
    if isinstance(listing, LongestRuns | Counted):
        return False
    return isinstance(update, UnionLists) or bool(update.piles.piles)


def _searches(stages: Stages) -> bool:
    rest = stages.division.rest
    if not isinstance(rest, Roles):
        return isinstance(rest, Definitions)
    return chosen_events(rest.flat.form) != 1
