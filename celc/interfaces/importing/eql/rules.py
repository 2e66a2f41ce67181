"""An EQL query → a file of CEL: CREATE STREAM with the fields that it names, and one query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from celc_runtime.plan.names import unused_name
from lark import Token, Tree

from celc.diagnostics.errors import Diagnostics, error
from celc.diagnostics.source import Source, Span
from celc.interfaces.importing.eql.conditions import Conditions
from celc.interfaces.importing.eql.patterns import EventSequence, Key, Step, labels_of
from celc.interfaces.importing.eql.texts import constant_text
from celc.interfaces.importing.fields import Fields
from celc.interfaces.importing.grammars import Node, parse, span_of
from celc.interfaces.importing.languages import Columns
from celc.interfaces.importing.words import (
    Level,
    Words,
    attribute,
    event,
    joined,
    literal,
    of_label,
    operation,
    spelled,
)

_ANY = "event"
"""The one event type of a file that asks for events of `any` category."""

_STREAM = "logs"

_UNITS = {"ms": "MILLISECONDS", "s": "SECONDS", "m": "MINUTES", "h": "HOURS", "d": "DAYS"}

_MICROSECONDS = {
    "ms": 1000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}

_ONE_PARTIAL_MATCH = "-- As in EQL, a newer partial match takes the place of an older one."


def text_of(source: Source, name: str, columns: Columns) -> str:
    """The file of CEL for a query of EQL, not yet in its layout.

    Raises `CelError` with everything that cannot be translated.
    """
    tree = parse(source, "eql")
    known = Fields(Diagnostics(source), {columns.time: "TIMESTAMP"})
    # Translated twice: the first time finds the types of fields. A later condition can show the
    # type of a field that an earlier condition names.
    _Query(source, columns, tree, known).clauses()
    diagnostics = Diagnostics(source)
    query = _Query(source, columns, tree, Fields(diagnostics, known.kinds))
    clauses = query.clauses()
    diagnostics.raise_errors()
    return "\n".join(
        [
            *_head(query, columns),
            query.declaration(),
            "",
            *_comments(source, is_sequence=query.is_sequence),
            *_named(unused_name(name, (*query.named, _STREAM)), clauses),
        ]
    )


def _named(name: str, clauses: list[str]) -> list[str]:
    return [f"QUERY {spelled(name)}:", *clauses, ""]


def _head(query: _Query, columns: Columns) -> list[str]:
    """A comment with the options that `celc compile` needs for this query, if it needs any."""
    options = [] if query.has_any else [f"--type-column {columns.kind}"]
    if not query.has_window:
        options.append(f"--order-by {columns.time}")
    return [f"-- compile with: {' '.join(options)}"] if options else []


def _comments(source: Source, *, is_sequence: bool) -> list[str]:
    """The comments of the EQL text as comments of CEL."""
    parts = re.findall(
        r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|//([^\n]*)|/\*([\s\S]*?)\*/', source.text
    )
    lines = [line for one, block in parts for line in (one or block).splitlines()]
    found = [f"-- {line.strip(' *')}" for line in lines if line.strip(" *")]
    return [*found, _ONE_PARTIAL_MATCH] if is_sequence else found


@dataclass
class _Query:
    """One query while it is translated: what has been seen of it, and of the fields it names."""

    source: Source
    columns: Columns  # the columns of the time and of the event types
    tree: Node
    fields: Fields  # the types of the fields so far
    conditions: Conditions = field(init=False)
    named: dict[str, dict[str, None]] = field(default_factory=dict)  # fields of each event type
    shared: dict[str, None] = field(default_factory=dict)  # keys of all events
    has_window: bool = False  # whether the query has a WITHIN or a FOR, which names the time

    def __post_init__(self) -> None:
        self.conditions = Conditions(self.fields, self.fields.diagnostics)

    @property
    def is_sequence(self) -> bool:
        """Whether it is a sequence of at least two events."""
        return sum(1 for _ in self.tree.find_data("step")) > 1 and not any(
            self.tree.find_data("sample")
        )

    @property
    def has_any(self) -> bool:
        """Whether it asks for events of any category."""
        return any(str(one.children[0]) == "any" for one in self.tree.find_data("category"))

    def declaration(self) -> str:
        """CREATE STREAM; every event type has the keys and the time."""
        events = []
        for event_type, names in self.named.items():
            fields = self.fields.declared({**self.shared, **names})
            fields = [(name, kind) for name, kind in fields if name != self.columns.time]
            fields.append((self.columns.time, "TIMESTAMP"))
            listed = ", ".join(f"{attribute(name)}: {kind}" for name, kind in fields)
            events.append(f"EVENT {spelled(event_type)} {{ {listed} }}")
        return f"CREATE STREAM {_STREAM} {{ {', '.join(events)} }}"

    def clauses(self) -> list[str]:
        """SELECT, FROM and what follows."""
        query, *pipes = (_tree(one) for one in self.tree.children)
        if query.data == "event_query":
            step = self._step(query, (), is_missing=False, span=span_of(query))
            conditions = [of_label(step.event_type, step.condition)] if step.condition else []
            found = [
                "SELECT *",
                f"FROM {_STREAM}",
                f"WHERE {event(step.event_type, step.event_type, conditions)}",
            ]
            keys: tuple[Key, ...] = ()
        elif query.data == "sample":
            keys = self._keys(query)
            found = self._sample(query, keys)
        else:
            keys = self._keys(query)
            found = self._sequence(query, keys)
        return [*found, *self._pipes(pipes, has_keys=bool(keys), is_sample=query.data == "sample")]

    # --- parts ------------------------------------------------------------------------------------

    def _wrong(self, span: Span, message: str, *help: str) -> None:
        self.fields.diagnostics.add(error("import-unsupported", span, message, *help))

    def _keys(self, node: Node) -> tuple[Key, ...]:
        for one in node.children:
            if isinstance(one, Tree) and one.data == "by":
                keys = tuple(Key(*self.conditions.key(_tree(key))) for key in one.children)
                if any(key.field == self.columns.kind for key in keys):
                    self._check_kind(span_of(one))
                return keys
        return ()

    def _check_kind(self, span: Span) -> None:
        """The column of the event types is an attribute only where all events have one type."""
        if not self.has_any:
            self._wrong(
                span,
                f"'{self.columns.kind}' is the column of the event types here",
                "name the category before 'where', or write 'any where'",
            )

    def _step(self, node: Node, keys: tuple[Key, ...], *, is_missing: bool, span: Span) -> Step:
        category = _tree(node.children[0]).children[0]
        assert isinstance(category, Token)
        name = str(category)
        if category.type in ("STRING", "RAW_STRING"):
            name = constant_text(name)
        self.conditions.used = {}
        condition = self.conditions.condition(_tree(node.children[1]))
        if self.columns.kind in self.conditions.used:
            self._check_kind(span)
        event_type = name
        if self.has_any:
            event_type = _ANY
            if name != "any":
                condition = self._of_category(name, condition)
        of_type = self.named.setdefault(event_type, {})
        of_type.update({**self.conditions.used, **{key.field: None for key in keys}})
        return Step(event_type, condition, keys, is_missing, span)

    def _of_category(self, name: str, condition: Words | None) -> Words:
        """The condition, and that the event has this category."""
        self.conditions.used = {self.columns.kind: None, **self.conditions.used}
        column = Words(attribute(self.columns.kind))
        same = operation(column, "=", Words(literal(name)), Level.COMPARISON)
        return same if condition is None else joined([same, condition], Level.AND)

    def _steps(self, query: Node) -> list[Step]:
        steps: list[Step] = []
        for node in query.find_pred(lambda one: one is not query and one.data == "step"):
            steps += self._repeated(node)
        return sorted(steps, key=lambda one: one.span)

    def _repeated(self, node: Node) -> list[Step]:
        """A step, as many times as its `with runs=n` says."""
        is_missing = isinstance(node.children[0], Token)
        runs = 1
        asked = next(
            _tree(one)
            for one in node.children
            if isinstance(one, Tree) and one.data == "event_query"
        )
        for one in node.children:
            if isinstance(one, Tree) and one.data == "runs":
                runs = int(str(one.children[2]))
                if str(one.children[0]) != "runs":
                    self._wrong(span_of(one), f"'{one.children[0]}' is none of EQL's: with runs=2")
                if is_missing:
                    self._wrong(span_of(one), "a missing event has no number of runs")
                if not 1 <= runs <= 100:
                    self._wrong(span_of(one), "runs is a number from 1 to 100")
        step = self._step(asked, self._keys(node), is_missing=is_missing, span=span_of(node))
        return [step] * runs

    def _sequence(self, query: Node, keys: tuple[Key, ...]) -> list[str]:
        steps, until = self._steps(query), None
        for node in query.find_data("until"):
            asked = _tree(node.children[0])
            until = self._step(asked, self._keys(node), is_missing=True, span=span_of(node))
        apart = self._common_keys(keys, steps, until)
        if apart is None:
            return []
        keys, steps, until = apart
        window = self._window(query)
        present = [one for one in steps if not one.is_missing]
        if not present:
            self._wrong(span_of(query), "all events of this sequence are missing ones")
            return []
        missing: list[tuple[Step, ...]] = [() for _ in range(len(present) + 1)]
        place = 0
        for one in steps:
            if one.is_missing:
                missing[place] += (one,)
            else:
                place += 1
        self._check_missing(missing, window)
        needed = self._needed(keys)
        formula = EventSequence(tuple(present), tuple(missing[1:]), until, needed).formula()
        if missing[0] and window:
            before = EventSequence((missing[0][0],), ((),), None).formula()
            formula = f"!{before} FOR {window} ; {formula}"
            window = None
        found = ["SELECT *", f"FROM {_STREAM}", f"WHERE {formula}"]
        if keys:
            self.shared.update({key.field: None for key in keys})
            found.append(f"PARTITION BY {', '.join(attribute(key.field) for key in keys)}")
        self.has_window = window is not None or bool(missing[0])
        return [*found, f"WITHIN {window}"] if window else found

    def _check_missing(self, missing: Sequence[tuple[Step, ...]], window: str | None) -> None:
        first, last = missing[0], missing[-1]
        if (first or last) and window is None:
            self._wrong(
                (first or last)[0].span,
                "a missing event at the start or the end of a sequence needs 'with maxspan'",
            )
        if first and (len(missing) > 2 or len(first) > 1):
            self._wrong(
                first[0].span,
                "a missing event before a sequence of several events cannot be translated: its "
                "time begins at a distance from the last event",
            )

    def _common_keys(
        self, keys: tuple[Key, ...], steps: list[Step], until: Step | None
    ) -> tuple[tuple[Key, ...], list[Step], Step | None] | None:
        """The keys of the sequence, then the steps and `until` without them.

        A key that all steps have under one name becomes a key of the whole sequence. None: the
        steps differ in the number of their keys.
        """
        every = [*steps, *([until] if until else [])]
        if len({len(one.keys) for one in every}) > 1:
            of = next(one for one in every if len(one.keys) != len(every[0].keys))
            self._wrong(of.span, "each event of the sequence needs as many fields behind 'by'")
            return None
        common = [
            place
            for place in range(len(every[0].keys) if every else 0)
            if len({(one.keys[place].field, one.keys[place].is_optional) for one in every}) == 1
        ]
        keys += tuple(every[0].keys[place] for place in common)

        def own(step: Step) -> Step:
            left = tuple(key for place, key in enumerate(step.keys) if place not in common)
            return Step(step.event_type, step.condition, left, step.is_missing, step.span)

        return keys, [own(one) for one in steps], own(until) if until else None

    @staticmethod
    def _needed(keys: Sequence[Key]) -> tuple[Words, ...]:
        """Conditions that the first event of a match has its keys, because in EQL NULL equals
        nothing, and in PARTITION BY NULL equals NULL."""
        return tuple(
            Words(f"{attribute(key.field)} IS NOT NULL", Level.COMPARISON)
            for key in keys
            if not key.is_optional
        )

    def _window(self, query: Node) -> str | None:
        for node in query.find_data("maxspan"):
            word, written = str(node.children[0]), str(node.children[2])
            found = re.fullmatch(r"(\d+)(\D+)", written)
            assert found
            if word != "maxspan":
                self._wrong(span_of(node), f"'{word}' is none of EQL's: with maxspan=5m")
            if found[2] not in _UNITS:
                self._wrong(span_of(node), f"'{written}': times are kept in microseconds here")
                return None
            unit = _UNITS[found[2]]
            unit = unit[:-1] if found[1] == "1" else unit
            if int(found[1]) * _MICROSECONDS[found[2]] > 2**62:
                self._wrong(span_of(node), f"'{written}' is longer than time goes")
            return f"{found[1]} {unit} [{attribute(self.columns.time)}]"
        return None

    def _sample(self, query: Node, keys: tuple[Key, ...]) -> list[str]:
        steps = self._steps(query)
        if any(one.keys for one in steps) and len({one.keys for one in steps}) > 1:
            self._wrong(span_of(query), "the events of a sample need the same fields behind 'by'")
        for one in steps:
            if one.is_missing:
                self._wrong(one.span, "a sample has no missing events")
        if len({one.event_type for one in steps}) < len(steps):
            self._wrong(
                span_of(query),
                "a sample with two events of one category cannot be translated: one event could be "
                "both",
            )
        keys += steps[0].keys
        labels = labels_of(steps, self.named)
        parts = []
        for number, (one, label) in enumerate(zip(steps, labels, strict=True)):
            asked = [one.condition] if one.condition else []
            asked += self._needed(keys) if number == 0 else ()
            conditions = [of_label(label, joined(asked, Level.AND))] if asked else []
            parts.append(event(one.event_type, label, conditions))
        self.shared.update({key.field: None for key in keys})
        return [
            "SELECT *",
            f"FROM {_STREAM}",
            f"WHERE {' ALL '.join(parts)}",
            f"PARTITION BY {', '.join(attribute(key.field) for key in keys)}",
        ]

    def _pipes(self, pipes: list[Node], *, has_keys: bool, is_sample: bool) -> list[str]:
        if is_sample:
            for one in pipes:
                self._wrong(span_of(one), "pipes behind a sample cannot be translated")
            return ["LIMIT 1 PER PARTITION"]
        most: list[int] = []
        for one in pipes:
            name = str(one.children[0])
            number = one.children[1] if len(one.children) == 2 else None
            if name != "head" or not isinstance(number, Tree) or number.data != "integer":
                self._wrong(
                    span_of(one),
                    f"the pipe '{name}' cannot be translated",
                    "known: head with a number, which becomes LIMIT",
                )
            elif has_keys:
                self._wrong(
                    span_of(one),
                    "head counts the matches of all keys, and LIMIT PER PARTITION those of each",
                    "leave the pipe out, or limit the rows where they are read",
                )
            else:
                most.append(int(str(number.children[0])))
                if not 1 <= most[-1] <= 2**62:
                    self._wrong(span_of(one), "head takes a number from 1 to 2^62")
        return [f"LIMIT {min(most)} PER PARTITION"] if most else []


def _tree(node: Node | Token) -> Node:
    assert isinstance(node, Tree), node
    return node
