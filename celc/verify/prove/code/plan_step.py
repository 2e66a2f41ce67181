"""program → plan and module: what the runtime is told of a query is what the query asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from celc_runtime.plan.plan import Label, Plan
from celc_runtime.plan.strategy import InRuns

from celc.automata.determinize import START, DeterministicAutomaton
from celc.core.formula import DataType, OutputLabel, Query, Window, WindowUnit
from celc.plan.code import Code
from celc.plan.tables import Kind, Tables
from celc.verify.prove.code.arena_model import ALWAYS
from celc.verify.prove.code.machines import marks_text
from celc.verify.prove.code.relations import Clock
from celc.verify.prove.code.written import Named, Written


def differences_of_plan(query: Query, kinds: tuple[Kind, ...], plan: Plan) -> Iterator[str]:
    """Where a plan says something else of a query than the query does, in words. `kinds` are those
    of the events that the listing writes."""
    names = plan.answer.label_names
    shown = [item.label for item in query.output if isinstance(item, OutputLabel)]
    if query.total is None and [label.name for label in plan.answer.labels] != shown:
        yield f"the labels of the answer are {[label.name for label in plan.answer.labels]}"
    if len(kinds) != len(plan.matching.kinds):
        yield f"{len(kinds)} kinds of events become {len(plan.matching.kinds)}"
    for number, (ours, theirs) in enumerate(zip(kinds, plan.matching.kinds, strict=False)):
        wanted = sorted(names.index(mark) for mark in ours.marks if mark in names)
        if sorted(theirs.columns) != wanted or ours.starts != theirs.starts:
            yield f"kind {number} of {marks_text(ours.marks)} goes to the labels {theirs.columns}"
    if len(plan.matching.kinds) > 1 << plan.matching.kind_bits:
        yield f"{plan.matching.kind_bits} bits hold no {len(plan.matching.kinds)} kinds"
    yield from _window(query.window, plan)
    consume_by = query.consume_by if query.parameters is None else query.parameters.consume_by
    if plan.matching.consume_by != consume_by:
        yield f"CONSUME BY is {plan.matching.consume_by}"
    if plan.answer.collapsed != query.collapsed:
        yield "matches of one end are united, or are not"
    if plan.source.order_by != tuple(one.name for one in query.order_by):
        yield f"events are ordered by {plan.source.order_by}"
    if query.per_start is None and query.total is None and not query.collapsed:
        limit = 1 if query.strategy == "ANY" else query.limit
        if query.strategy in ("ALL", "ANY") and plan.choice.limit != limit:
            yield f"LIMIT is {plan.choice.limit}, not {limit}"
    if (plan.source.ties is not None) != query.simultaneous:
        yield f"ties are {plan.source.ties}"


def _window(window: Window | None, plan: Plan) -> Iterator[str]:
    found = plan.matching.window
    if window is None or found is None:
        if (window is None) != (found is None):
            yield f"the window is {found}"
        return
    attribute = None if window.attribute is None else window.attribute.name
    if (found.unit, found.size, found.attribute) != (window.unit.name, window.size, attribute):
        yield f"the window is {found.size} {found.unit} of {found.attribute}"


def clock_of(query: Query, *, one_event: bool) -> Clock:
    """A key of an event and the earliest start in its window, as WITHIN says."""
    window = query.window
    if window is None:
        return Clock(1000, 1000) if one_event else Clock(1000, ALWAYS)
    key = 10 * int(window.size) + 1000
    return Clock(key, key - math.floor(window.size))


def has_floors(query: Query) -> bool:
    """Whether the window is measured on floating numbers, whose floors are found beforehand."""
    window = query.window
    if window is None or window.unit is WindowUnit.EVENTS:
        return False
    attribute = window.attribute or query.order_by[0]
    return attribute.type in (DataType.FLOAT, DataType.DOUBLE)


def differences_of_labels(automaton: DeterministicAutomaton, plan: Plan) -> Iterator[str]:
    """Labels that the plan calls single, first or last, and that are not so in some match."""
    for label in plan.answer.labels:
        if label.single or label.first or label.last:
            yield from _label(automaton, label)


def _label(automaton: DeterministicAutomaton, label: Label) -> Iterator[str]:
    """A state of the search: that of the automaton, how many events have had the label (2: more),
    and whether the first event has it."""
    first = (int(START), 0, False)
    order, known = [first], {first}
    for state, count, begins in order:
        for row in automaton.moves[state]:
            for move in row:
                has = label.name in move.marks
                after = min(2, count + has)
                at_start = has if state == START else begins
                if move.accepts:
                    if label.single and after != 1:
                        yield f"a match has {after} events of {label.name}, which is called single"
                        return
                    if label.first and not at_start:
                        yield f"a match does not begin with {label.name}"
                        return
                    if label.last and not has:
                        yield f"a match does not end with {label.name}"
                        return
                if move.target is not None:
                    following = (int(move.target), after, at_start)
                    if following not in known:
                        known.add(following)
                        order.append(following)


def differences_of_shape(
    automaton: DeterministicAutomaton, tables: Tables, listing: InRuns
) -> Iterator[str]:
    """Where matches have not the one shape by which they are listed."""
    marks = [tables.kinds[kind].marks for kind in listing.kinds]
    order, known = [(int(START), 0)], {(int(START), 0)}
    for state, place in order:
        for row in automaton.moves[state]:
            for move in row:
                passes = not move.marks and state != START
                takes = move.accepts or (move.target is not None and not passes)
                if takes and (place >= len(marks) or move.marks != marks[place]):
                    marked = marks_text(move.marks)
                    yield f"an event at place {place} of a match has the marks {marked}"
                    return
                if move.accepts and place + 1 != len(marks):
                    yield f"a match has {place + 1} events, not {len(marks)}"
                    return
                after = place if passes else place + 1
                if move.target is not None and (int(move.target), after) not in known:
                    known.add((int(move.target), after))
                    order.append((int(move.target), after))


def differences_of_module(found: Written, plan: Plan) -> Iterator[str]:
    """Where the text of a module says another plan than the one that was made."""
    for part in ("name", "source", "matching", "choice", "answer", "functions"):
        if not _are_equal(getattr(found.plan, part, None), getattr(plan, part)):
            yield f"the {part} of the plan in the module is another one"


def _are_equal(read: Any, made: Any) -> bool:
    """Whether a value in a text is a value of the compiler, in which names stand for code."""
    if isinstance(made, Code):
        return isinstance(read, Named) and made.text.startswith(read.name)
    if isinstance(made, tuple):
        same = isinstance(read, tuple) and len(read) == len(made)
        return same and all(map(_are_equal, read, made))
    if is_dataclass(made):
        of_parts = (
            _are_equal(getattr(read, f.name, None), getattr(made, f.name)) for f in fields(made)
        )
        return type(read) is type(made) and all(of_parts)
    return bool(read == made)
