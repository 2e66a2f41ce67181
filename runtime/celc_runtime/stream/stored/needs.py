"""What a query needs of the state of a stream, as the state's header records it.

The next query on the checkpoint may be another one. It goes on where its answer from then on is
that of the whole input: where all events that it needs have been kept, in a form that it can read.
A query keeps an event if its conditions on single events let it through, for as long as its window
and its absences say. Which matches it finds with them makes no difference. So what has to be
compared are the columns, the conditions on single events, and the lengths; whatever is checked
while matches are listed, and the output, is free.

The record is compressed JSON. It is compared only where the text of a query has changed, so nothing
of it has to stay the same from one version to the next but what is written here.

Rejected: to compare what Spark filters by (`Relevant.ways`) alone. It lets through more than is
kept, so that events which it lets through can be gone.
"""

from __future__ import annotations

import datetime as dt
import json
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any, NamedTuple

from celc_runtime.jit.shipping import text_of
from celc_runtime.plan.errors import StateError
from celc_runtime.plan.plan import PerStart, Plan, Window
from celc_runtime.plan.relevance import Relevant
from celc_runtime.program import Program
from celc_runtime.stream.stored.identity import normalised
from celc_runtime.stream.stored.rows import RowField, RowLayout

_FORMAT = 1

_Measured = list[Any]  # unit, size, measured column

_NUMBER = "MICROSECONDS"


class Needs(NamedTuple):
    """What a query needs of a state, in lists and texts alone.

    A length is [unit, size, measured column].
    """

    text: str  # of the query, without comments and meaningless spaces
    fields: list[list[str]]
    """[name, type, SQL of what it is made of or ""] of each column of its events, but keys."""
    keys: list[list[str]]  # of its partitions, likewise
    types: list[list[str]]  # [stream, type], as they are numbered
    order: list[str]  # the order columns
    tiebreak: list[str]
    ties: str
    begin: str  # of events that last, the column of their starts
    one_event: bool  # whether every match has one event, so that nothing is kept for a window
    window: _Measured | None
    reaches: list[list[_Measured]]  # how far absences before a match look back
    deadlines: list[list[Any]]  # a length, and whether it counts from the start
    per_start: str  # FIRST, LONGEST, and what LIMIT counts with them
    span: int | None  # of totals PER a duration, in microseconds
    values: list[str]  # what is known of partitions
    depends: str  # why its matches depend on events long before the window; empty: they do not
    positions: bool
    conditions: str  # a digest of the conditions on single events
    events: list[list[Any]] | None
    """[stream, type, ways, what they leave out] of the events that it keeps; None: nothing tells
    them but `conditions`."""
    sees_others: bool  # whether it has to know that other events were there
    mixes: bool  # whether some rows wait for an absence at their end, and others do not

    @property
    def is_late(self) -> bool:
        """Whether rows come after the ends of matches."""
        return bool(self.deadlines)

    def given_by(self, watermark: int) -> int:
        """The last time (microseconds) of which all rows have been returned that are known then.
        watermark: in microseconds, of the last micro-batch."""
        if self.is_late and self.span is not None:
            return watermark // self.span * self.span - 1
        # An absence is certain when the watermark is later than its end.
        return watermark - 1 if self.is_late else watermark


def needs_of(program: Program, layout: RowLayout, values: Sequence[str]) -> Needs:
    """What a query needs. layout: of its events; values: the names of what is known of partitions,
    as `key_values` gives them."""
    plan = program.plan
    source, matching, choice = plan.source, plan.matching, plan.choice
    made = {one.name: one.sql for one in source.derived}
    made |= {name: repr(key.ways) for name, key in source.chosen_columns.items()}
    own = len(layout.fields) - len(layout.keys)
    per, choice_of = None, choice.per_start
    if plan.answer.totals is not None and isinstance(plan.answer.totals.per, int):
        per = plan.answer.totals.per
    return Needs(
        normalised(program.text, plan.name),
        [[one.name, one.type, made.get(one.name, "")] for one in layout.fields[:own]],
        [[one.name, one.type, made.get(one.name, "")] for one in layout.keys],
        [[*pair] for pair in source.declared_types],
        [*source.order_by],
        [*source.tiebreak],
        source.ties or "",
        source.begin or "",
        matching.one_event,
        None if matching.window is None else _measured(plan, matching.window),
        [[_measured(plan, matching.local_windows[n]) for n in hops] for hops in matching.reaches],
        sorted(
            [_measured(plan, matching.local_windows[one.window]), one.from_start]
            for one in choice.deadlines
        ),
        _choice(choice_of),
        per,
        [*values],
        _why_long(program),
        plan.answer.positions,
        _conditions(program),
        None if source.events_read is None else [_kept(one) for one in source.events_read],
        source.relevant is None,
        bool(choice.deadlines) and not program.all_wait,
    )


def _choice(choice: PerStart | None) -> str:
    """What has to be known later of matches with one start. The first one, if it is known when it
    ends, is found anew among the events that are kept."""
    if choice is None or choice.known_at_end:
        return ""
    return f"{choice} {choice.counts_ends} {choice.late}"


def _measured(plan: Plan, window: Window) -> _Measured:
    return [window.unit, window.size, plan.measured_on(window)]


def _why_long(program: Program) -> str:
    plan = program.plan
    for word, holds in (
        (f"CONSUME BY {plan.matching.consume_by}", plan.matching.consume_by != "NONE"),
        ("a selector inside the formula", len(program.contexts) > 0 or program.sees_all),
        ("LIMIT … PER", plan.choice.rate is not None),
        ("DISJOINT", plan.choice.per_start is not None and plan.choice.per_start.disjoint),
        ("totals of partitions", plan.answer.totals is not None and _adds_up(plan)),
        ("uncertain time", plan.source.uncertain is not None),
    ):
        if holds:
            return word
    return ""


def _adds_up(plan: Plan) -> bool:
    return plan.answer.totals is not None and plan.answer.totals.of_partitions


def _kept(one: Relevant) -> list[Any]:
    ways = [
        [[[t.operator, t.attribute, t.type, [*t.operands]] for t in clause] for clause in way]
        for way in one.all_ways
    ]
    return [one.stream, one.type, ways, one.left_out]


def _conditions(program: Program) -> str:
    """A digest of what finds the symbols of events: an event of symbol 0 is not kept."""
    matching = program.plan.matching
    kernel: Any = program.classify
    constants: tuple[Any, ...] = ()
    if isinstance(kernel, partial):  # queries of one shape share a kernel, each with its constants
        kernel, constants = kernel.func, kernel.args
    text = _function(text_of(program.module), getattr(kernel, "__name__", ""))
    parts = (text, constants, matching.columns, matching.texts, program.plan.functions)
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()


@lru_cache(maxsize=64)
def _function(text: str, name: str) -> str:
    """The text of a function in a module."""
    start = text.find(f"\ndef {name}(")
    assert start >= 0, f"the module has no function {name!r}"
    # Its docstring and its comments may be changed by a version.
    lines = text[start + 1 : text.find("\n\n\n", start)].splitlines()[1:]
    code = (line.partition("  # ")[0].strip() for line in lines)
    found = "\n".join(line for line in code if line and not line.startswith("#"))
    head, _, rest = found.partition('"""')
    return head + rest.partition('"""')[2]


# --- as bytes -------------------------------------------------------------------------------------


def record_of(needs: Needs) -> bytes:
    """The bytes of a record."""
    told = {"format": _FORMAT, **needs._asdict()}
    return zlib.compress(json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode())


def needs_in(record: bytes) -> Needs | None:
    """What a record says; None: it is of a form that this version does not know, or there is none.

    Raises StateError for bytes that are no record.
    """
    if not record:
        return None
    try:
        told = json.loads(zlib.decompress(record))
    except (zlib.error, ValueError):
        raise StateError("the record of what the query needs is damaged") from None
    if told.pop("format", None) != _FORMAT:
        return None
    return Needs(**told)


def layout_of(needs: Needs, most_kept: int = 0) -> RowLayout:
    """The form of the events of a state with this record."""
    fields, keys = (
        [RowField(name, type) for name, type, _ in some] for some in (needs.fields, needs.keys)
    )
    return RowLayout(fields, keys, max(1, len(needs.types)), most_kept)


# --- whether a state suffices ---------------------------------------------------------------------


def lacking(old: Needs, new: Needs) -> list[str]:
    """Why the state of a query does not suffice for another, in words; empty: it does."""
    return [*_other_form(old, new), *_other_lengths(old, new), *_other_events(old, new)]


def _other_form(old: Needs, new: Needs) -> Iterator[str]:
    for one, which in ((old, "the old query"), (new, "the new query")):
        if one.depends:
            yield f"{which} has {one.depends}, which depends on events long before the window"
    for what, before, now in (
        ("PARTITION BY", old.keys, new.keys),
        ("the order columns", old.order, new.order),
        ("the tiebreak columns", old.tiebreak, new.tiebreak),
    ):
        if before != now:
            yield f"{what}: {_names(before)} → {_names(now)}"
    if old.begin != new.begin:
        yield "its events last otherwise"
    if old.one_event and not new.one_event:
        yield "matches of the old query have one event, so that it kept none"
    if old.ties != new.ties:
        yield f"ties: {old.ties or 'an error'} → {new.ties or 'an error'}"
    if old.per_start != new.per_start:
        words = [one.per_start.partition(" ")[0] or "all matches" for one in (old, new)]
        yield f"SELECT takes other matches of a start ({' → '.join(words)})"
    if old.span != new.span:
        yield "the spans of totals (PER) are others"
    if old.positions != new.positions:
        yield (
            f"positions={old.positions} → {new.positions} (with_options(positions={old.positions}) "
            "keeps them as they were)"
        )
    if missing := [name for name in new.values if name not in old.values]:
        yield f"it has to know more of each partition than was noted ({', '.join(missing)})"
    known = {name: (type, made) for name, type, made in old.fields}
    for name, type, made in new.fields:
        if name not in known:
            yield f"it reads the column {name!r}, which the old query did not read"
        elif known[name] != (type, made):
            yield f"the column {name!r} has another type, or is made in another way"


def _names(columns: Sequence[Any]) -> str:
    names = [one if isinstance(one, str) else one[0] for one in columns]
    return ", ".join(names) or "none"


def _other_lengths(old: Needs, new: Needs) -> Iterator[str]:
    if not _suffices(old.window, new.window, equal=bool(new.per_start)):
        yield f"WITHIN: {_length(old.window)} → {_length(new.window)}"
    for hops in new.reaches:
        if not any(
            len(hops) == len(known)
            and all(_suffices(one, other) for one, other in zip(known, hops, strict=True))
            for known in old.reaches
        ):
            yield f"it looks {' and '.join(map(_length, hops))} back before a match"
    if old.deadlines != new.deadlines:
        told = [
            ", ".join(_length(one) for one, _ in some.deadlines) or "none" for some in (old, new)
        ]
        yield f"the absences at the end: {' → '.join(told)}"


def _suffices(known: _Measured | None, wanted: _Measured | None, *, equal: bool = False) -> bool:
    """Whether what is kept for a length is kept long enough for another."""
    if known is None or wanted is None or equal or known[0] == "EVENTS":
        return known == wanted
    return (known[0], known[2]) == (wanted[0], wanted[2]) and bool(known[1] >= wanted[1])


def _length(one: _Measured | None) -> str:
    if one is None:
        return "none"
    unit, size, column = one
    if unit == _NUMBER:
        return f"{dt.timedelta(microseconds=size)} [{column}]"
    return f"{size:,} EVENTS" if unit == "EVENTS" else f"{size:,} [{column}]"


def _other_events(old: Needs, new: Needs) -> Iterator[str]:
    if old.sees_others != new.sees_others or (new.sees_others and old.types != new.types):
        yield "it counts other events, or asks for neighbours, in another way"
        return
    if old.conditions == new.conditions and old.types == new.types:
        return
    if old.events is None or new.events is None:
        yield "conditions on single events have changed"
        return
    kept = {(stream, type): (ways, more) for stream, type, ways, more in old.events}
    for stream, type, ways, more in new.events:
        known = kept.get((stream, type))
        if known is None:
            yield f"it needs events of type {type!r}, of which none were kept"
        elif not (known == (ways, more) or (not known[1] and _are_narrower(known[0], ways))):
            yield (
                f"its conditions on events of type {type!r} are not those of the old query, nor "
                "known to be stricter, so that events which it needs can be gone"
            )


def _are_narrower(known: list[Any], ways: list[Any]) -> bool:
    """Whether every event on one of the ways is on a known one; no ways: all events are."""
    if not known:
        return True
    return bool(ways) and all(any(_implies(way, one) for one in known) for way in ways)


def _implies(way: list[Any], known: list[Any]) -> bool:
    """Whether an AND of ORs of tests implies another."""
    return all(
        any(
            all(any(_test_implies(test, other) for other in clause) for test in given)
            for given in way
        )
        for clause in known
    )


_ORDERED = {
    ">": lambda value, bound: value > bound,
    ">=": lambda value, bound: value >= bound,
    "<": lambda value, bound: value < bound,
    "<=": lambda value, bound: value <= bound,
    "=": lambda value, bound: value == bound,
    "!=": lambda value, bound: value != bound,
}
_NO_WIDER = {
    (">", ">"): lambda mine, other: mine >= other,
    (">", ">="): lambda mine, other: mine >= other,
    (">=", ">="): lambda mine, other: mine >= other,
    (">=", ">"): lambda mine, other: mine > other,
    ("<", "<"): lambda mine, other: mine <= other,
    ("<", "<="): lambda mine, other: mine <= other,
    ("<=", "<="): lambda mine, other: mine <= other,
    ("<=", "<"): lambda mine, other: mine < other,
    (">", "!="): lambda mine, other: mine >= other,
    ("<", "!="): lambda mine, other: mine <= other,
    (">=", "!="): lambda mine, other: mine > other,
    ("<=", "!="): lambda mine, other: mine < other,
}


def _test_implies(test: list[Any], other: list[Any]) -> bool:
    """Whether a value that fulfils one test of a column fulfils another; each is [operator,
    attribute, type, constants]."""
    if test == other:
        return True
    (mine, name, type, values), (asked, other_name, other_type, wanted) = test, other
    if name != other_name:
        return False
    if asked == "is_not_null":
        return bool(mine != "is_null")
    if type != other_type or "null" in mine or "like" in mine or asked not in (*_ORDERED, "in"):
        return mine == asked == "not_in" and {*wanted} <= {*values}
    if mine in ("=", "in"):
        if asked == "in":
            return {*values} <= {*wanted}
        return all(_ORDERED[asked](value, wanted[0]) for value in values)
    if mine == "not_in":
        return bool(asked == "!=" and wanted[0] in values)
    compare = _NO_WIDER.get((mine, asked))
    return compare is not None and bool(compare(values[0], wanted[0]))
