"""symbols → code of symbols: the module gives each event the symbol of its class.

The events are those of the classes that the conditions of the query tell apart
(`celc.verify.prove.streams`), each written into a table. Their truths are found from the meaning of
the conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from celc_runtime.plan.errors import EventError

from celc.automata.predicates import Alphabet, TypeConditions
from celc.core import formula as core
from celc.verify.prove.expressions import Meaning
from celc.verify.prove.representations import Representations
from celc.verify.prove.streams import Event, classes_of
from celc.verify.prove.verdict import NotUnderstoodError, Verdict

SymbolsBy: TypeAlias = Callable[[Sequence[Event]], Sequence[int]]
"""The symbols that a module finds for events."""

CLASSES = "symbols → code of symbols"

MOST = 600  # events


def classes_step(found: Representations, symbols_by: SymbolsBy) -> Verdict:
    """Whether the code of a module finds the symbols of events."""
    query, plan = found.query, found.plan
    for is_there, what in (
        (query.parameters is not None, "FOR EACH"),
        (bool(query.reads), "a query over the rows of another"),
        (bool(plan.source.derived), "columns that are made of others"),
        (bool(plan.source.chosen_keys), "a key that is another attribute for each type"),
        (bool(plan.source.rest), "types of events that are not declared"),
        (plan.interleaves, "partitions that interleave"),
    ):
        if is_there:
            return Verdict(CLASSES, "tested", what)
    try:
        events = list(_events(found))
        wanted = [_symbol(found, event) for event in events]
    except NotUnderstoodError as problem:
        return Verdict(CLASSES, "tested", str(problem))
    try:
        read = symbols_by(events)
    except EventError as refusal:
        return Verdict(CLASSES, "tested", f"the run refuses the events that are made: {refusal}")
    what = f"{len(events):,} events of the classes that the conditions tell apart"
    for event, ours, theirs in zip(events, wanted, read, strict=True):
        if ours != theirs:
            shown = ", ".join(f"{name} {value!r}" for name, value in event.items())
            return Verdict(CLASSES, "wrong", what, f"({shown}) has symbol {theirs}, not {ours}")
    return Verdict(CLASSES, "bounded", what)


def _events(found: Representations) -> Iterator[Event]:
    """Events of all classes, one behind the other, in one partition."""
    query = found.query
    windows = [query.window] if query.window is not None else []
    classes = classes_of(query, windows, [found.division.asked])
    keys: dict[str, Any] = {}
    for key in query.partition_by:
        keys[key.name] = {"STRING": "p", "BOOLEAN": True}.get(key.type.value, 1)
    before: Event | None = None
    for number in range(min(len(classes.events), MOST)):
        before = {**classes.event(number, 0, before), **keys}
        if any(found.plan.source.input_type(name).startswith("DECIMAL") for name in before):
            raise NotUnderstoodError("values of DECIMALs")
        yield before


def _symbol(found: Representations, event: Event) -> int:
    """The symbol of an event, by the meaning of the conditions on its type."""
    alphabet: Alphabet = found.alphabet
    number = 0
    for conditions in alphabet.types:
        if event[core.TYPE] == f"{conditions.type.stream}>{conditions.type.name}":
            truth = _truth(conditions, event)
            for place, symbol in enumerate(alphabet.symbols):
                if symbol.type == conditions.type and symbol.truth == truth:
                    number = place
    return found.program.tables.symbol_of[number]


def _truth(conditions: TypeConditions, event: Event) -> int:
    """The groups of conditions that an event satisfies, as a bit set."""
    meaning = Meaning(lambda leaf: event.get(leaf.attribute or core.TYPE))
    return sum(
        1 << bit
        for bit, group in enumerate(conditions.groups)
        if all(any(meaning.truth(one) for one in clause.predicates) for clause in group)
    )
