"""update → listing: what a module lists is the paths of the automaton, for all short strings.

The module runs as it is, with the runtime, over strings of symbols. All strings of a small length
are tried, and longer ones that the automaton accepts with other events in between. Times are such
that windows end just before, at and just behind a match.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, TypeAlias

from celc_runtime.plan.errors import EventError, WorkLimitError
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.plan import Plan

from celc.automata.determinize import START
from celc.core.formula import ROLE, Query, WindowUnit
from celc.plan.strategy import (
    ByDefinition,
    InWorlds,
    LongestRuns,
)
from celc.verify.prove.code.conditions import Conditions
from celc.verify.prove.code.folds import (
    attributes_of_totals,
    check_understood,
    read_totals,
    read_united,
    totals,
    united,
)
from celc.verify.prove.code.paths import Path, TooManyMatchesError, chosen, matches_by_end
from celc.verify.prove.representations import Representations
from celc.verify.prove.verdict import NotUnderstoodError

ListedBy: TypeAlias = Callable[
    [Sequence[int], Mapping[str, Sequence[Any]]], Sequence[Mapping[str, Any]]
]
"""The rows of the answer over events with these symbols and these values of columns."""

ROWS = 600  # events of all strings of one length together
MATCHES = 3000  # the most matches, or partial matches, of a string

Answer: TypeAlias = Counter[tuple[Any, ...]]


@frozen(eq=False)
class String:
    """Symbols of events, and their keys in the window, as numbers."""

    symbols: tuple[int, ...]
    keys: tuple[int, ...]


def refused(found: Representations) -> str | None:
    """Why the listing of a query is not compared with paths; None: it is."""
    query, plan, listing = found.query, found.plan, found.program.listing
    window = query.window
    for is_there, what in (
        (query.parameters is not None, "FOR EACH"),
        (query.uncertain is not None, "uncertain time"),
        (bool(query.reads), "a query over the rows of another"),
        (query.lasting, "events that last"),
        (query.simultaneous, "simultaneous events"),
        (query.per_start is not None, "a choice among the matches of one start"),
        (bool(plan.choice.deadlines), "an absence behind a match"),
        (query.rate is not None, "LIMIT PER"),
        (bool(plan.source.chosen_keys), "a key that is another attribute for each type"),
        (bool(plan.source.derived), "columns that are made of others"),
        (found.minimal.as_met, "states that a run makes as it meets them"),
        (not plan.answer.positions, "rows without positions"),
    ):
        if is_there:
            return what
    if isinstance(listing, ByDefinition | LongestRuns | InWorlds):
        return f"the listing {type(listing).__name__}"
    try:
        _conditions(found)
        check_understood(query)
    except NotUnderstoodError as problem:
        return str(problem)
    if window is not None and window.unit is WindowUnit.MICROSECONDS:
        kind = _type_of(
            plan, window.attribute.name if window.attribute else plan.source.order_by[0]
        )
        if kind not in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            return f"a window of time on {kind}"
    return None


def _conditions(found: Representations) -> Conditions:
    return Conditions(found.division.rest, found.alphabet, found.program.tables.symbol_of)


def listing_difference(found: Representations, listed_by: ListedBy) -> tuple[str | None, str]:
    """The first string whose rows are not the paths of the automaton, in words, None if there is
    none; and up to which bound strings were tried."""
    strings, bound = _strings(found)
    conditions, rng = _conditions(found), random.Random(2)
    count = 0
    for one in strings:
        columns = _columns(found, conditions, one, rng)
        try:
            wanted = _wanted(found, conditions, one, columns)
        except TooManyMatchesError:
            continue
        try:
            rows = listed_by(one.symbols, _given(found.plan, columns))
        except EventError as refusal:
            raise NotUnderstoodError(f"events that a proof has no values for: {refusal}") from None
        except WorkLimitError:
            continue
        except Exception as failure:  # whatever it is: events that fit the query must be read
            return f"{_shown(found.query, one)}: the module fails with {failure!r}", bound
        problem = _compared(found, wanted, rows)
        count += 1
        if problem is not None:
            return f"{_shown(found.query, one)}: {problem}", bound
    return None, f"{count:,} strings of symbols: {bound}"


# --- strings --------------------------------------------------------------------------------------


def _strings(found: Representations) -> tuple[list[String], str]:
    symbols = _representatives(found)
    begins, ends = _edges(found)
    length, count = 1, len(begins)
    while length < 6 and (length + 1) * count <= ROWS:
        length += 1
        count = len(begins) * (len(symbols) + 1) ** (length - 2) * len(ends)
    rng = random.Random(0)
    plain = [[one] for one in begins]
    if length > 1:
        inner = product((0, *symbols), repeat=length - 2)
        plain = [[first, *one, last] for one in inner for first in begins for last in ends]
    plain += _accepted(found, symbols, rng)
    size = found.query.window.size if found.query.window is not None else None
    strings = [String(tuple(one), _keys(found.query, one, size, rng)) for one in plain]
    if size is not None and found.query.window is not None:
        strings += _at_the_edge(found, size)
    return strings, f"all of {length} events that can be a match, and some that are longer"


def _representatives(found: Representations) -> list[int]:
    """The symbols other than 0 that a run can meet."""
    return sorted({*found.program.tables.symbol_of} - {0})


def _edges(found: Representations) -> tuple[list[int], list[int]]:
    """The symbols with which a match can begin, and those with which it can end."""
    automaton, begins, ends = found.minimal, set[int](), set[int]()
    letters = len(found.automaton.letters.machine.following[0])
    for letter, of_class in enumerate(automaton.class_of):
        symbol = found.program.tables.symbol_of[letter % letters]
        for state in range(automaton.states):
            for move in automaton.moves[state][of_class]:
                begins |= {symbol} if state == START else set()
                ends |= {symbol} if move.accepts else set()
    return sorted(begins), sorted(ends)


def _accepted(
    found: Representations, symbols: Sequence[int], rng: random.Random
) -> list[list[int]]:
    """Strings along random runs of the automaton to an end, with other events in between."""
    words = _words(found, rng, 40)
    made: list[list[int]] = []
    for word in words:
        made.append(word)
        for _ in range(2):
            other = list(word)
            for _ in range(rng.randint(1, 3)):
                other.insert(rng.randrange(len(other) + 1), rng.choice((0, *symbols)))
            made.append(other)
    return [one for one in made if len(one) <= 14]


def _words(found: Representations, rng: random.Random, count: int) -> list[list[int]]:
    """Symbols of the marked events of some matches, the shortest first."""
    columns = found.program.tables.symbol_of
    automaton = found.minimal
    order: list[tuple[int, tuple[int, ...]]] = [(int(START), ())]
    words: dict[tuple[int, ...], None] = {}
    seen: Counter[int] = Counter()
    for state, word in order:
        if len(words) >= count or len(word) > 8:
            break
        for symbol in sorted({*columns}):
            letter = automaton.class_of[columns.index(symbol)]
            for move in automaton.moves[state][letter]:
                after = (*word, symbol)
                if move.accepts:
                    words[after] = None
                passes = not move.marks and state != START
                if move.target is not None and not passes and seen[move.target] < 40:
                    seen[move.target] += 1
                    order.append((int(move.target), after))
    found_words = list(words)
    rng.shuffle(found_words)
    return [list(word) for word in found_words[:count]]


def _keys(
    query: Query, symbols: Sequence[int], size: float | None, rng: random.Random
) -> tuple[int, ...]:
    """Keys in the window: positions, or times with gaps of all lengths."""
    if query.window is None or query.window.unit is WindowUnit.EVENTS or size is None:
        return tuple(range(len(symbols)))
    whole = int(size)
    keys, key = [], 0
    for _ in symbols:
        keys.append(key)
        key += max(1, rng.choice((1, 1, 2, whole // 2, whole - 1, whole, whole + 1)))
    return tuple(keys)


def _at_the_edge(found: Representations, size: float) -> Iterator[String]:
    """Matches whose end is just inside their window, at its edge, and just behind it."""
    window = found.query.window
    assert window is not None
    whole = int(size)
    for word in _words(found, random.Random(1), 12):
        for length in (whole - 1, whole, whole + 1):
            if len(word) < 2 or length < len(word) - 1:
                continue
            gap = length - (len(word) - 1)
            if window.unit is not WindowUnit.EVENTS:
                keys = (0, *(gap + at for at in range(1, len(word))))
                yield String(tuple(word), keys)
                keys = (*range(len(word) - 1), length)
                yield String(tuple(word), keys)
            elif gap <= 200:
                for at in (1, len(word) - 1):
                    padded = (*word[:at], *[0] * gap, *word[at:])
                    yield String(padded, tuple(range(len(padded))))


# --- the two answers ------------------------------------------------------------------------------


def _wanted(
    found: Representations, conditions: Conditions, one: String, columns: Mapping[str, list[Any]]
) -> Answer:
    query = found.query
    symbol_of = found.program.tables.symbol_of
    letters = [symbol_of.index(symbol) for symbol in one.symbols]
    events = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    events = events or [{} for _ in letters]
    machine = found.automaton.letters.machine
    names = found.plan.answer.label_names
    shown = [label.name for label in found.plan.answer.labels]
    answer: Answer = Counter()
    size = None if query.window is None else query.window.size
    does_consume = query.consume_by != "NONE"

    order = next(iter(found.plan.source.order_by), None)

    def kept_of(matches: Sequence[Path]) -> list[Path]:
        kept = conditions.kept(matches, events, one.symbols, order)
        if conditions.is_set:
            kept = [
                *{(each.start, tuple(each.labels(names).items())): each for each in kept}.values()
            ]
        return kept

    def consumes(matches: Sequence[Path]) -> bool:
        return does_consume and bool(kept_of(matches))

    by_end = matches_by_end(
        found.minimal, machine, letters, one.keys, size, consumes=consumes, most=MATCHES
    )
    kept = ((end, kept_of(matches)) for end, matches in by_end)
    if query.total is not None:
        return totals(query, kept, events)
    if query.collapsed:
        return united(kept, shown)
    selects = bool(conditions.selector)
    for _, matches in kept:
        if selects:
            marks = frozenset(m for match in matches for m in match.sets if not m.startswith(ROLE))
            matches = chosen(query.strategy, matches, marks)
        for match in matches:
            labels = match.labels(names)
            answer[match.start, match.end, tuple((name, labels[name]) for name in shown)] += 1
    return Counter(answer.keys()) if conditions.is_set else answer


def _compared(
    found: Representations, wanted: Answer, rows: Sequence[Mapping[str, Any]]
) -> str | None:
    shown = [label.name for label in found.plan.answer.labels]
    if found.query.total is not None:
        read = read_totals(found.query, rows)
    elif found.query.collapsed:
        read = read_united(rows, shown)
    else:
        read = Counter(
            (
                row["start_pos"],
                row["end_pos"],
                tuple((name, tuple(event["pos"] for event in row[name])) for name in shown),
            )
            for row in rows
        )
    limit = found.plan.choice.limit
    if limit is None or found.query.collapsed or found.query.total is not None:
        missing, more = wanted - read, read - wanted
    else:
        more, missing = read - wanted, Counter()
        ends, listed = Counter(key[1] for key in wanted.elements()), Counter(
            key[1] for key in read.elements()
        )
        for end, count in ends.items():
            if listed[end] != min(limit, count):
                return f"{listed[end]} of {count} matches that end at event {end} are listed"
    if missing:
        return f"{_row(found.query, next(iter(missing)))} is not listed"
    if more:
        return f"{_row(found.query, next(iter(more)))} is listed, and should not be"
    return None


def _row(query: Query, key: tuple[Any, ...]) -> str:
    if query.total is not None:
        values = ", ".join(f"{name} {value}" for name, value in key[1:])
        return f"the row with {values}" + (f" at event {key[0]}" if key[0] is not None else "")
    labels = ", ".join(f"{name} {list(rows)}" for name, rows in key[-1])
    what = f"the union of {key[2]} matches" if query.collapsed else "the match"
    return f"{what} from event {key[0]} to {key[1]} ({labels})"


def _columns(
    found: Representations, conditions: Conditions, one: String, rng: random.Random
) -> dict[str, list[Any]]:
    """The columns of events as conditions read them: an order that rises, the keys of the window,
    and values near to each other."""
    plan, window, count = found.plan, found.query.window, len(one.symbols)
    columns: dict[str, list[Any]] = {}
    lengths = [int(one.window.size) for one in conditions.windows] or [1]
    for name in (*plan.source.order_by, *plan.local_attributes):
        steps = [
            rng.choice((1, 1, length, length + 1, length // 2 or 1))
            for length in lengths
            for _ in range(count)
        ]
        columns[name] = [sum(steps[:at]) for at in range(count)]
    if window is not None and window.unit is not WindowUnit.EVENTS:
        name = window.attribute.name if window.attribute is not None else plan.source.order_by[0]
        columns[name] = list(one.keys)
    for name in plan.source.key_columns:
        columns.setdefault(name, [1] * count)
    for name in columns:
        type_ = _type_of(plan, name)
        if type_ in ("FLOAT", "DOUBLE"):
            columns[name] = [float(one) for one in columns[name]]
        elif type_ not in (*_WHOLE, "TIMESTAMP", "TIMESTAMP_NTZ"):
            columns[name] = [_value(type_, one) for one in columns[name]]
    try:
        for name in (*conditions.attributes, *sorted(attributes_of_totals(found.query))):
            if name not in columns:
                columns[name] = conditions.values(_type_of(plan, name), count, rng)
    except NotUnderstoodError as problem:
        raise NotUnderstoodError(str(problem)) from None
    return columns


def _given(plan: Plan, columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """The columns as tables have them."""
    times = ("TIMESTAMP", "TIMESTAMP_NTZ")
    return {
        name: (
            [_value(_type_of(plan, name), one) for one in values]
            if _type_of(plan, name) in times
            else values
        )
        for name, values in columns.items()
    }


_WHOLE = ("BYTE", "SHORT", "INT", "LONG")


def _type_of(plan: Plan, name: str) -> str:
    return plan.source.type_of(name)


def _value(type_: str, number: int) -> Any:
    match type_:
        case "TIMESTAMP":
            return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=number)
        case "TIMESTAMP_NTZ":
            return datetime(2026, 1, 1) + timedelta(microseconds=number)
        case "BYTE" | "SHORT" | "INT" | "LONG":
            return number
        case "FLOAT" | "DOUBLE":
            return float(number)
        case "STRING":
            return f"{number:09}"
        case "BOOLEAN":
            return True
        case _:
            raise NotUnderstoodError(f"values of {type_}")


def _shown(query: Query, one: String) -> str:
    text = " ".join(map(str, one.symbols))
    if len(one.symbols) > 40:
        text = " ".join(f"{symbol}@{at}" for at, symbol in enumerate(one.symbols) if symbol)
    if query.window is None or query.window.unit is WindowUnit.EVENTS:
        return f"events with the symbols {text}"
    return f"events with the symbols {text} at {' '.join(map(str, one.keys))}"
