"""The rows of a module are the matches of the formula: the module is run beside the definitions.

The steps of `celc.verify.prove` compare what the passes make. This one runs what they made, with
the runtime around it: conditions between events, keys, bounds, choices and the walk are in it as a
user meets them. It is bounded by the streams that are tried, as Python and not as machine code.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from decimal import Context, Decimal
from itertools import islice, product
from typing import Any, TypeAlias

import pyarrow as pa
from celc_runtime.jit.kernels import interpreting
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.schemas import input_schema
from celc_runtime.query import CompiledQuery

from celc.core import formula as core
from celc.verify.prove.definitions import Definitions
from celc.verify.prove.expressions import parts_of
from celc.verify.prove.labellings import Labelling, Labels
from celc.verify.prove.matches import (
    ALONE,
    Match,
    OutOfStepsError,
    Steps,
    Stream,
    chosen,
)
from celc.verify.prove.representations import Representations
from celc.verify.prove.streams import (
    Classes,
    Event,
    check_understood,
    classes_of,
    following,
)
from celc.verify.prove.to_normal import ends_later, shown_labels
from celc.verify.prove.verdict import NotUnderstoodError, Verdict

STEP = "core formula → rows of the module"

_SHORT = 300  # short streams that are run
_LONGER = 160
_PARTS = 8  # that are run side by side
_STEPS = 60_000  # of the definition for one stream, so that none takes seconds

_Row: TypeAlias = tuple[int, int, tuple[tuple[str, tuple[int, ...]], ...]]
"""A row: start, end, and the positions of each label that is a column."""

_Ended: TypeAlias = tuple[int, int, Labelling]
"""A match: start, end, and the labels of its events."""

_Found: TypeAlias = tuple[int, int, frozenset[tuple[str, int]]]


def rows_of_module(given: Representations, query: CompiledQuery) -> Verdict:
    """Whether a module gives the rows that the definitions give, on streams of the query."""
    try:
        check_rows_understood(given.query)
        return _compared(given, query)
    except NotUnderstoodError as problem:
        return Verdict(STEP, "tested", str(problem))
    except EventError as problem:
        return Verdict(STEP, "tested", f"the run refuses the streams that are made: {problem}")


def check_rows_understood(query: core.Query) -> None:
    """Raises NotUnderstoodError for a query whose rows are more than its matches."""
    check_understood(query)
    for reason, is_so in (
        ("uncertain time", query.uncertain is not None),
        ("FOR EACH", query.parameters is not None),
        ("TOTAL", query.total is not None),
        ("COLLAPSED", query.collapsed),
        ("LIMIT … PER", query.rate is not None),
        ("functions of one event", bool(query.derived)),
        ("OTHER", any(t.is_rest for stream in query.streams for t in stream.event_types)),
        ("keys with alternatives", any(key.alternatives for key in query.partition_by)),
    ):
        if is_so:
            raise NotUnderstoodError(reason)


# Long: what is run, what is compared, and the words for it.
def _compared(given: Representations, compiled: CompiledQuery) -> Verdict:
    query = given.query
    windows = [one for one in parts_of(query.formula) if isinstance(one, core.Window)]
    windows += [query.window] if query.window is not None else []
    classes = classes_of(query, windows)
    schema = input_schema(compiled.plan)
    labels = tuple(o.label for o in query.output if isinstance(o, core.OutputLabel))
    closed = compiled.with_options(at_end="closed")
    parts = _Parts(query, classes)
    length, short = _short_streams(classes)
    longer = list(islice(following(query, classes), _LONGER))
    runs = found = left_out = longest = 0
    for streams in parts.shared_out(short, longer):
        expected: dict[int, set[_Found]] = {}
        for number, stream in streams.items():
            wanted = parts.expected(number, stream)
            if wanted is None:
                left_out += 1
            else:
                expected[number] = wanted
        events = parts.side_by_side({number: streams[number] for number in expected})
        with warnings.catch_warnings(), interpreting():
            warnings.simplefilter("ignore")
            rows = closed.match_table(table_of_events(events, schema)).to_pylist()
        for number, defined in expected.items():
            keys = {
                name: _column([value], schema.field(name).type)[0].as_py()
                for name, value in parts.keys[number].items()
            }
            of_part = [row for row in rows if all(row[name] == keys[name] for name in keys)]
            problem = _difference(query, defined, _rows(of_part, labels))
            if problem is not None:
                shown = "; ".join(map(str, parts.of(number, streams[number])))
                beside = f" beside {len(expected) - 1} other parts" if len(expected) > 1 else ""
                told = f"on [{shown}]{beside} {problem}"
                return Verdict(STEP, "wrong", "they differ on a stream", told)
        runs, found = runs + len(expected), found + len(rows)
        longest = max(longest, *map(len, streams.values()))
    near = " close in time" if len(classes.gaps) > 1 else ""
    what = (
        f"the module was run as Python on all streams of {length} events of "
        f"{len(classes.events)} classes{near}, and on {runs} streams in all, of up to {longest} "
        f"events: {found} rows, all as defined"
    )
    if query.partition_by:
        several = parts.number > 1
        what += "; most in parts side by side" if several else "; events of one part alone"
    if left_out:
        what += f" ({left_out} streams took too many steps and were left out)"
    if any(isinstance(one, core.OutputExpression) for one in query.output):
        what += "; values of expressions in SELECT were not compared"
    return Verdict(STEP, "bounded", what)


class _Parts:
    """The parts of PARTITION BY that are run side by side, each with streams of its own."""

    def __init__(self, query: core.Query, classes: Classes) -> None:
        self.keys = _values_of_keys(query, classes)
        # CONSUME BY ANY forgets the events of all parts, which definitions of one do not say.
        self.number = len(self.keys) if query.consume_by != "ANY" else 1
        self._reads_keys = any(
            key.name in classes.rising or any(key.name in event for event in classes.events)
            for key in query.partition_by
        )
        self._defined = [ExpectedRows(query) for _ in range(self.number)]
        self._expected: dict[int, set[_Found] | None] = {}
        self._known: dict[tuple[int, int], Event] = {}

    def shared_out(
        self, short: Sequence[list[Event]], longer: Sequence[list[Event]]
    ) -> Iterator[dict[int, list[Event]]]:
        """The streams of each run, by part: some short ones alone, the others in all parts, and so
        the longer ones, each beside itself without its last event."""
        number = self.number
        if number > 1:
            longer = [one for stream in longer for one in (stream, stream[:-1])]
        if not self._reads_keys:
            for stream in (*short, *longer):  # in this order neighbours share most of their matches
                self._expected[id(stream)] = self._found(0, stream)
        for stream in short[::number]:
            yield {0: stream}
        for some in ([one for n, one in enumerate(short) if n % number], longer):
            for first in range(0, len(some), number):
                yield dict(enumerate(some[first : first + number]))

    def expected(self, number: int, stream: list[Event]) -> set[_Found] | None:
        """The rows of a stream in a part; None: they take too many steps."""
        if id(stream) in self._expected:
            return self._expected[id(stream)]
        return self._found(number if self._reads_keys else 0, stream)

    def _found(self, number: int, stream: list[Event]) -> set[_Found] | None:
        read = self.of(number, stream) if self._reads_keys else stream
        try:
            return self._defined[number].of(read)
        except OutOfStepsError:
            return None

    def of(self, number: int, stream: Sequence[Event]) -> list[Event]:
        """The events of a stream with the keys of a part; equal ones are one object."""
        return [self._keyed(number, event) for event in stream] if self.keys[number] else [*stream]

    def _keyed(self, number: int, event: Event) -> Event:
        found = self._known.get((number, id(event)))  # classes hold the events
        if found is None:
            found = self._known[number, id(event)] = {**event, **self.keys[number]}
        return found

    def side_by_side(self, streams: Mapping[int, Sequence[Event]]) -> list[Event]:
        """The events of all parts, the first events first."""
        parts = [self.of(number, stream) for number, stream in streams.items()]
        longest = max(map(len, parts), default=0)
        return [part[place] for place in range(longest) for part in parts if place < len(part)]


def _values_of_keys(query: core.Query, classes: Classes) -> list[dict[str, Any]]:
    """The values of PARTITION BY in each part: first those that conditions ask for."""
    values: dict[str, list[Any]] = {}
    for key in query.partition_by:
        asked = [event.get(key.name) for event in classes.events]
        more: dict[core.DataType, Sequence[Any]] = {
            core.DataType.STRING: "pqrstuvw",
            core.DataType.BOOLEAN: (True, False),
        }
        some = [*asked, *more.get(key.type, range(1, _PARTS + 1))]
        known = [one for one in some if one is not None and one == one]
        values[key.name] = list(dict.fromkeys(known))[:_PARTS]
    number = max(map(len, values.values()), default=1)
    return [{name: some[n % len(some)] for name, some in values.items()} for n in range(number)]


def _short_streams(classes: Classes) -> tuple[int, list[list[Event]]]:
    """All streams of a length, at the least distances in time; shorter ones are their
    beginnings."""
    number, length = len(classes.events), 1
    while number ** (length + 1) <= _SHORT and length < 6:
        length += 1
    found = []
    for numbers in product(range(number), repeat=length):
        stream: list[Event] = []
        for one in numbers:
            stream.append(classes.event(one, 0, stream[-1] if stream else None))
        found.append(stream)
    return length, found


# --- what is expected -----------------------------------------------------------------------------


class ExpectedRows:
    """The rows of a query by the definitions. Streams with one beginning share its matches."""

    def __init__(self, query: core.Query) -> None:
        self._query = query
        self._stream = Stream(query)
        whole = ends_later(query, [query.formula])
        self._definitions = Definitions(self._stream, Steps(_STEPS), whole=whole)
        self._shown = {*shown_labels(query)}

    def of(self, events: Sequence[Event]) -> set[_Found]:
        """Those over one part, before LIMIT and ANY choose.

        Raises NotUnderstoodError, and OutOfStepsError where the definition takes too many steps.
        """
        if self._query.consume_by == "NONE":
            return self._of_all(events, 0)
        found: set[_Found] = set()
        first = 0
        for end in range(len(events)):
            here = {one for one in self._of_all(events[: end + 1], first) if one[1] == end}
            found |= here
            first = end + 1 if here else first
        return found

    def _of_all(self, events: Sequence[Event], first: int) -> set[_Found]:
        query, stream, labels = self._query, self._stream, self._stream.labels
        read = events[first:]
        same = next(
            (n for n, (a, b) in enumerate(zip(stream.events, read, strict=False)) if a is not b),
            min(len(stream.events), len(read)),
        )
        del stream.events[same:]
        self._definitions.forget(same)
        stream.events.extend(read[same:])
        self._definitions.steps.left = _STEPS
        found: list[_Ended] = []
        for end in range(len(stream.events)):
            matches = self._definitions.scope(query.formula, ALONE, end)
            if query.window is not None:
                window = query.window
                matches = frozenset(one for one in matches if stream.fits(window, one[0], end))
            if query.strategy not in ("ALL", "ANY"):
                matches = chosen(query.strategy, matches, labels.support)
            found += [(start, end, mu) for start, mu in matches]
        if query.per_start is not None:
            found = _per_start(query, found, labels)
        return {
            (
                start + first,
                end + first,
                frozenset((x, place + first) for x, place in labels.pairs(mu) if x in self._shown),
            )
            for start, end, mu in found
        }


def _per_start(query: core.Query, found: Sequence[_Ended], labels: Labels) -> list[_Ended]:
    assert query.per_start is not None
    choose = min if query.per_start.end == "FIRST" else max
    kept: list[_Ended] = []
    last = -1
    for start in sorted({one[0] for one in found}):
        if query.per_start.disjoint and start <= last:
            continue
        last = choose(end for i, end, _ in found if i == start)
        here: frozenset[Match] = frozenset(
            (start, mu) for i, end, mu in found if (i, end) == (start, last)
        )
        if query.compares_ends:
            here = chosen("NXT", here, labels.support)
        kept += [(start, last, mu) for _, mu in here]
    return kept


# --- what the module gives ------------------------------------------------------------------------


def table_of_events(events: Sequence[Event], schema: pa.Schema) -> pa.Table:
    """Events of a proof as a table with the columns of a schema."""
    columns = []
    for field in schema:
        if field.name == "type":
            values = [event[core.TYPE].partition(">")[2] for event in events]
        elif field.name == "stream":
            values = [event[core.TYPE].partition(">")[0] for event in events]
        else:
            values = [event.get(field.name) for event in events]
        columns.append(_column(values, field.type))
    return pa.table(columns, names=schema.names)


def _column(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(type_):
        exact = Context(prec=type_.precision)
        made = [None if one is None else Decimal(one).scaleb(-type_.scale, exact) for one in values]
        return pa.array(made, type_)
    if pa.types.is_date32(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if pa.types.is_temporal(type_):
        return pa.array(values, pa.int64()).cast(type_)
    return pa.array(values, type_)


def _rows(rows: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> list[_Row]:
    return [
        (
            row["start_pos"],
            row["end_pos"],
            tuple((label, tuple(one["pos"] for one in row[label])) for label in labels),
        )
        for row in rows
    ]


def _difference(query: core.Query, expected: set[_Found], rows: Sequence[_Row]) -> str | None:
    labels = tuple(o.label for o in query.output if isinstance(o, core.OutputLabel))
    wanted = sorted(
        (start, end, tuple((x, tuple(sorted(p for y, p in mu if y == x))) for x in labels))
        for start, end, mu in expected
    )
    given = sorted(rows)
    if query.limit is None and query.strategy != "ANY":
        return None if given == wanted else f"the rows are {given} and not {wanted}"
    most = 1 if query.limit is None else query.limit
    if query.strategy == "ANY":
        most = 1
    for end in {one[1] for one in (*wanted, *given)}:
        some, all_ = [o for o in given if o[1] == end], [o for o in wanted if o[1] == end]
        if len(some) != min(most, len(all_)) or any(one not in all_ for one in some):
            return f"the rows that end at {end} are {some}, at most {most} of {all_}"
    return None
