"""The rows of a module are the matches of the formula: the module is run beside the definitions.

The steps of `celc.verify.prove` compare what the passes make. This one runs what they made, with
the runtime around it: conditions between events, keys, bounds, choices and the walk are in it as a
user meets them. It is bounded by the streams that are tried, as Python and not as machine code.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from itertools import islice, product
from typing import Any, TypeAlias

import pyarrow as pa
from celc_runtime.jit.kernels import taking_what_is_made
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.schemas import input_schema
from celc_runtime.query import CompiledQuery

from celc.core import formula as core
from celc.verify.prove.definitions import Definitions
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
    parts_of,
)
from celc.verify.prove.to_normal import ends_later, shown_labels
from celc.verify.prove.verdict import NotUnderstoodError, Verdict

STEP = "core formula → rows of the module"

_SHORT = 300  # short streams that are run
_LONGER = 160
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


def _compared(given: Representations, compiled: CompiledQuery) -> Verdict:
    query = given.query
    windows = [one for one in parts_of(query.formula) if isinstance(one, core.Window)]
    windows += [query.window] if query.window is not None else []
    classes = classes_of(query, windows)
    schema = input_schema(compiled.plan)
    labels = tuple(o.label for o in query.output if isinstance(o, core.OutputLabel))
    closed = compiled.with_options(at_end="closed")
    defined = ExpectedRows(query)
    runs = found = left_out = 0
    longest = 0
    length, short = _short_streams(classes)
    # CONSUME BY ANY forgets the events of all parts, which the definitions of one part do not say.
    has_parts = bool(query.partition_by) and query.consume_by != "ANY"
    for stream in (*short, *islice(following(query, classes), _LONGER)):
        parts = [stream, stream[:-1]] if has_parts and runs >= len(short) else [stream]
        events = _side_by_side(parts, query)
        try:
            expected = [defined.of(part) for part in parts]
        except OutOfStepsError:
            left_out += 1
            continue
        with warnings.catch_warnings(), taking_what_is_made():
            warnings.simplefilter("ignore")
            rows = closed.match_table(table_of_events(events, schema)).to_pylist()
        for number, wanted in enumerate(expected):
            keys = {
                name: _column([value], schema.field(name).type)[0].as_py()
                for name, value in _keys(query, number).items()
            }
            of_part = [row for row in rows if all(row[name] == keys[name] for name in keys)]
            problem = _difference(query, wanted, _rows(of_part, labels))
            if problem is not None:
                shown = "; ".join(str(event) for event in events)
                return Verdict(STEP, "wrong", "they differ on a stream", f"on [{shown}] {problem}")
        runs, found, longest = runs + 1, found + len(rows), max(longest, len(events))
    near = " close in time" if len(classes.gaps) > 1 else ""
    what = (
        f"the module was run as Python on all streams of {length} events of "
        f"{len(classes.events)} classes{near}, and on {runs} streams in all, of up to {longest} "
        f"events: {found} rows, all as defined"
    )
    if query.partition_by:
        what += "; the longer ones in two parts" if has_parts else "; events of one part alone"
    if left_out:
        what += f" ({left_out} streams took too many steps and were left out)"
    if any(isinstance(one, core.OutputExpression) for one in query.output):
        what += "; values of expressions in SELECT were not compared"
    return Verdict(STEP, "bounded", what)


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


def _side_by_side(parts: Sequence[Sequence[Event]], query: core.Query) -> list[Event]:
    """The events of parts with the keys of each, the first events first."""
    longest = max(map(len, parts), default=0)
    return [
        {**part[place], **_keys(query, number)}
        for place in range(longest)
        for number, part in enumerate(parts)
        if place < len(part)
    ]


def _keys(query: core.Query, number: int) -> dict[str, Any]:
    """The values of PARTITION BY in a part, 0 or 1."""
    values: dict[core.DataType, Any] = {
        core.DataType.STRING: "pq"[number],
        core.DataType.BOOLEAN: number == 0,
    }
    return {key.name: values.get(key.type, number + 1) for key in query.partition_by}


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
