"""The conditions between events that a listing or keys decide, and values of events to try."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, assert_never

from celc.automata.predicates import Alphabet
from celc.core import formula as core
from celc.normal.divide import Definitions, Exact, Rest, Roles, Windowed
from celc.normal.flat_form import ABSENT, AbsentEvent, FlatForm, RoleClause, RoleWindow
from celc.verify.prove.code.paths import Path
from celc.verify.prove.stream_conditions import OfStream
from celc.verify.prove.verdict import NotUnderstoodError

NUMBERS = frozenset({"BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"})


class Conditions:
    """The conditions of a query that the automaton does not decide. Raises NotUnderstoodError where
    some are not about single events in a match or between two of its events."""

    def __init__(self, rest: Rest, alphabet: Alphabet, symbol_of: Sequence[int]) -> None:
        self.clauses: tuple[RoleClause, ...] = ()
        self.windows: tuple[RoleWindow, ...] = ()
        self.absent: list[tuple[AbsentEvent, frozenset[int]]] = []
        self.selector = ""
        self.is_set = isinstance(rest, Roles)
        """Whether matches can look alike, of which one counts."""
        match rest:
            case Exact():
                pass
            case Windowed():
                self.selector = "of SELECT"
            case Definitions():
                raise NotUnderstoodError("matches by definition")
            case Roles(flat=flat, selector=selector):
                self.selector = selector
                self._read(flat, alphabet, symbol_of)
            case _:
                assert_never(rest)

    def _read(self, flat: FlatForm, alphabet: Alphabet, symbol_of: Sequence[int]) -> None:
        for is_there, what in (
            (flat.first, "the first event with a key"),
            (flat.absent_parts, "an absent part with a window or a key"),
            (flat.events_before or flat.parts_before, "an absence before a match"),
            (flat.after, "an absence behind a match"),
            (any(one.part is not None for one in flat.absent), "an absent part with a key"),
            (any(one.window.begin is not None for one in flat.windows), "events that last"),
        ):
            if is_there:
                raise NotUnderstoodError(what)
        self.clauses, self.windows = flat.clauses, flat.windows
        for absent in flat.absent:
            classes = {
                symbol_of[one]
                for event in absent.events
                for one in alphabet.matching(event.type, event.clauses)
            }
            self.absent.append((absent, frozenset(classes)))
        for one in self._all_clauses():
            if one.round_mark is not None or one.shared_iterations():
                raise NotUnderstoodError("conditions on the events of one round")
            if any(isinstance(node, core.Aggregate) for node in _nodes(one.clause)):
                raise NotUnderstoodError("functions of a label's events")

    def _all_clauses(self) -> list[RoleClause]:
        return [*self.clauses, *(clause for one, _ in self.absent for clause in one.clauses)]

    @property
    def attributes(self) -> dict[str, str]:
        """The types of the attributes that the conditions read."""
        leaves = core.AttributeValue | core.Previous
        found = {
            node.attribute: node.type.value
            for one in self._all_clauses()
            for node in _nodes(one.clause)
            if isinstance(node, leaves)
        }
        return {name: type_ for name, type_ in found.items() if name != core.TYPE}

    def kept(
        self,
        matches: Sequence[Path],
        events: Sequence[Mapping[str, Any]],
        symbols: Sequence[int],
        order: str | None,
    ) -> list[Path]:
        """The matches that satisfy all conditions; `order` is the first order column."""
        stream = OfStream(events)
        return [
            one
            for one in matches
            if all(stream.clause_holds(clause.clause, one.sets) for clause in self.clauses)
            and all(self._fits(window, one, events, order) for window in self.windows)
            and not any(
                self._lies_in(absent, asked, one, stream, symbols) for absent, asked in self.absent
            )
        ]

    def _fits(
        self,
        window: RoleWindow,
        one: Path,
        events: Sequence[Mapping[str, Any]],
        order: str | None,
    ) -> bool:
        attribute = window.window.attribute
        name = order if attribute is None else attribute.name
        for first, last in _ranges(one, window.first, window.last):
            length: float = last - first
            if window.window.unit is not core.WindowUnit.EVENTS:
                assert name is not None
                length = events[last][name] - events[first][name]
            if length > window.window.size:
                return False
        return True

    def _lies_in(
        self,
        absent: AbsentEvent,
        asked: frozenset[int],
        one: Path,
        stream: OfStream,
        symbols: Sequence[int],
    ) -> bool:
        for first, last in _ranges(one, absent.first, absent.last):
            inside = range(first, last + 1) if absent.inclusive else range(first + 1, last)
            for row in inside:
                if symbols[row] in asked and all(
                    stream.clause_holds(clause.clause, {**one.sets, ABSENT: (row,)})
                    for clause in absent.clauses
                ):
                    return True
        return False

    def values(self, type_: str, count: int, rng: random.Random) -> list[Any]:
        """Random values of a type, near to each other and to the constants of the conditions."""
        if type_ == "BOOLEAN":
            chosen: list[Any] = [True, False, None]
        elif type_ == "STRING":
            texts = [c for c in self._constants() if isinstance(c, str)]
            chosen = ["a", "b", *texts, None]
        elif type_ in NUMBERS:
            near = [c for c in self._constants() if isinstance(c, int) and abs(c) < 100]
            most = rng.choice((1, 1, 3))
            chosen = [*range(most + 1)] * 2 + near + [c + 1 for c in near] + [None]
            if type_ in ("FLOAT", "DOUBLE"):
                chosen = [None if one is None else float(one) for one in chosen]
        else:
            raise NotUnderstoodError(f"conditions on {type_}")
        return [rng.choice(chosen) for _ in range(count)]

    def _constants(self) -> list[Any]:
        return [
            (
                int(node.value)
                if isinstance(node.value, float) and node.value.is_integer()
                else node.value
            )
            for one in self._all_clauses()
            for node in _nodes(one.clause)
            if isinstance(node, core.Constant) and not isinstance(node.value, bool)
        ]


def _ranges(one: Path, first: str, last: str) -> Iterator[tuple[int, int]]:
    """The events with the role `first`, each with the next one that has the role `last`."""
    begins, ends = one.sets.get(first, ()), one.sets.get(last, ())
    for begin in begins:
        end = next((end for end in ends if end >= begin), None)
        if end is not None:
            yield begin, end


def _nodes(part: Any) -> Iterator[Any]:
    """A part of a condition with all parts in it."""
    if isinstance(part, tuple):
        for one in part:
            yield from _nodes(one)
    elif is_dataclass(part):
        yield part
        for one in fields(part):
            if one.name != "span":
                yield from _nodes(getattr(part, one.name))
