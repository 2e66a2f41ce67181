"""Whether automata alone decide that two queries have the same answers.

What a query answers is a function of the matches of its automaton and of its other clauses: what
chooses among matches, totals, and conditions between the events that the automaton has marked. So
queries with equal clauses and automata of equal matches have equal answers. Conditions on single
events are what both automata read, and may be written in any way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from celc_runtime.plan.frozen import frozen

from celc.automata.predicates import TypeConditions
from celc.compare.conditions import predicate_written_out
from celc.compare.product import Machine, Measured, Pair, measured, window_of
from celc.compare.sides import Side
from celc.core import formula as core
from celc.core.terms import nodes_named_in
from celc.driver.pipeline import Stages
from celc.normal.conditions.truths import possible_truths
from celc.normal.divide import Definitions, Exact, Roles, Windowed
from celc.normal.normal_form import Disjunction, EventClause

MOST_TRUTHS = 4000


def same_form(old: Side, new: Side) -> bool:
    """Whether both queries, and all that they read, are the same formula with the same clauses."""
    if len(old.read) != len(new.read):
        return False
    return all(
        one.normal_form == other.normal_form
        and _clauses(one, whole=True) == _clauses(other, whole=True)
        and (one is old.stages or one.query.name == other.query.name)
        for one, other in zip(old.read, new.read, strict=True)
    )


def _clauses(stages: Stages, *, whole: bool) -> core.Query:
    """The query without its formula; unless `whole`, also without what automata compare: its
    window, and the types of its streams."""
    query = stages.query
    output = tuple(sorted(map(_item, query.output), key=repr))
    total = query.total
    if total is not None:
        total = replace(total, items=tuple(replace(one, text="") for one in total.items))
    nothing = core.Disjunction((), query.span)
    bare = replace(query, name="", formula=nothing, output=output, total=total, strategy_span=None)
    if whole:
        return bare
    return replace(bare, window=None, streams=(), needs_type_column=False, derived=())


def _item(item: core.OutputLabel | core.OutputExpression) -> Any:
    """An item of SELECT without the way it is written, and the order of attributes."""
    if isinstance(item, core.OutputExpression):
        return replace(item, text="")
    return replace(item, attributes=tuple(sorted(item.attributes, key=lambda one: one.name)))


@frozen
class Automata:
    """Two queries as automata: what they read, and their windows. `pairs`: the symbols that one
    event may have in both."""

    machines: tuple[Machine, Machine]
    pairs: tuple[Pair, ...]
    windows: Measured


def why_not_automata(old: Side, new: Side) -> str | None:
    """What stands in the way of comparing two queries by automata; None: nothing."""
    sides = (old, new)
    if any(len(side.read) > 1 for side in sides):
        return "one of them reads the rows of queries"
    if any(side.query.uncertain is not None for side in sides):
        return "times are uncertain"
    if any(side.query.simultaneous for side in sides):
        return "events are simultaneous"
    if any(side.stages.minimal.as_met for side in sides):
        return "an automaton has too many states"
    if any(isinstance(side.stages.division.rest, Definitions) for side in sides):
        return "conditions compare events, and no automaton decides them"
    if _types(old) != _types(new):
        return "they declare other events"
    if any(one.is_rest for side in sides for one in _event_types(side)):
        return "they read events of types that are not declared"
    if old.query.order_by != new.query.order_by:
        return "they order events in other ways"
    windows = [window_of(side.query) for side in sides]
    for one in windows:
        if one is not None and any(one.clock in _asked(side) for side in sides):
            return f"conditions ask for '{one.clock}', which the window measures"
    return None


def why_not_equal_clauses(old: Side, new: Side) -> str | None:
    """What else differs than the matches of the automata; None: nothing."""
    if _clauses(old.stages, whole=False) != _clauses(new.stages, whole=False):
        return "their clauses differ"
    if any(side.query.strategy == "ANY" or side.query.limit is not None for side in (old, new)):
        return "ANY and LIMIT choose a match that the language does not name"
    derived = {one.name for side in (old, new) for one in side.query.derived}
    if derived and old.query.derived != new.query.derived:
        keys = {n for side in (old, new) for key in side.query.partition_by for n in key.attributes}
        rests = any(isinstance(side.stages.division.rest, Roles) for side in (old, new))
        shown = any(
            isinstance(one, core.OutputExpression)
            for side in (old, new)
            for one in side.query.output
        )
        if rests or shown or keys & derived or old.query.total is not None:
            return "they compute other columns"
    if _rest(old) != _rest(new):
        return "conditions compare events in other ways"
    return None


def _rest(side: Side) -> Any:
    match side.stages.division.rest:
        case Exact():
            return "exact"
        case Windowed(selected):
            return selected.strategy
        case Roles(flat=flat, selector=selector):
            return selector, replace(flat, form=Disjunction((), side.query.span))
        case Definitions(form=form):
            return form


def _event_types(side: Side) -> Iterator[core.EventType]:
    for stream in side.query.streams:
        yield from stream.event_types


def _types(side: Side) -> Any:
    return {
        (key if side.query.needs_stream_column else key[1]): frozenset(one.attributes)
        for key, one in side.types.items()
    }


def _asked(side: Side) -> frozenset[str]:
    """The attributes that conditions on single events name."""
    return frozenset(
        node.attribute
        for conditions in side.stages.alphabet.types
        for group in conditions.groups
        for clause in group
        for predicate in clause.predicates
        for node in nodes_named_in(predicate_written_out(predicate, side.query))
        if isinstance(node, core.AttributeValue)
    )


def automata_of(old: Side, new: Side) -> Automata | None:
    """Two queries as automata; None where the symbols of one event cannot be told."""
    pairs = _pairs(old, new)
    if pairs is None:
        return None
    one, other = (
        Machine(side.stages.minimal, side.stages.automaton.letters) for side in (old, new)
    )
    return Automata((one, other), pairs, measured(window_of(old.query), window_of(new.query)))


def _pairs(old: Side, new: Side) -> tuple[Pair, ...] | None:
    """The symbols that one event may have in both queries, perhaps with some that none has."""
    found: dict[Pair, None] = {}
    for key in old.types:
        both = [_conditions(side, key) for side in (old, new)]
        groups = [group for _, written in both for group in written]
        truths = possible_truths(groups, limit=MOST_TRUTHS)
        if truths is None:
            return None
        count = len(both[0][1])
        numbers = [
            (
                {}
                if conditions is None
                else {
                    symbol.truth: number
                    for number, symbol in side.stages.alphabet.numbered(conditions.type)
                }
            )
            for side, (conditions, _) in zip((old, new), both, strict=True)
        ]
        for truth in sorted(truths):
            low, high = truth & ((1 << count) - 1), truth >> count
            found[numbers[0].get(low, 0), numbers[1].get(high, 0)] = None
    return tuple(found)


def _conditions(
    side: Side, key: tuple[str, str]
) -> tuple[TypeConditions | None, Sequence[tuple[EventClause, ...]]]:
    """The conditions of a side on events of a type, and its groups of clauses in which derived
    columns are written out: both sides may give one name to different columns."""
    several = side.query.needs_stream_column
    for conditions in side.stages.alphabet.types:
        known = conditions.type
        if known.name == key[1] and (not several or known.stream == key[0]):
            written = [
                tuple(
                    EventClause(
                        tuple(predicate_written_out(one, side.query) for one in clause.predicates)
                    )
                    for clause in group
                )
                for group in conditions.groups
            ]
            return conditions, written
    return None, ()
