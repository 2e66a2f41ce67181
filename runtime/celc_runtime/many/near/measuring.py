"""How far each match of a bent query bends its part."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import no_rows
from celc_runtime.arrow.events.conforming import conforming
from celc_runtime.arrow.matches.values import LabelValues, computed_column
from celc_runtime.arrow.tables.event_tables import table_of
from celc_runtime.plan.expressions import Computed
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.near.queries import ROW, BentComparison, Bound, Took, Whole
from celc_runtime.program import Program, Rows

Texts = Callable[[np.ndarray], tuple[pa.Array, pa.Array]]
"""What was asked and found, of some matches by their numbers (int64)."""


@dataclass(eq=False)
class Measured:
    """How far each match bends its part, from 0 (NaN: it does not), and what tells the texts of
    what was asked and found. They are made for the few matches that are near misses."""

    amounts: np.ndarray
    told: Texts
    events: Mapping[int, str] = field(default_factory=dict)
    """What was found of some matches, where another query finds it."""

    def texts(self, rows: np.ndarray) -> tuple[pa.Array, pa.Array]:
        """What was asked and found, for these matches."""
        asked, found = self.told(rows)
        if self.events:
            texts = zip(rows.tolist(), found.to_pylist(), strict=True)
            found = pa.array([self.events.get(row, text) for row, text in texts], pa.string())
        return asked, found


def whole(measure: Whole, matches: int) -> Measured:
    """A part of which there is no more and less."""

    def told(rows: np.ndarray) -> tuple[pa.Array, pa.Array]:
        return _same(measure.asked, len(rows)), _same(measure.found, len(rows))

    return Measured(np.ones(matches), told)


def _same(text: str | None, matches: int) -> pa.Array:
    return pa.array([text] * matches, pa.string())


# --- windows --------------------------------------------------------------------------------------


def took(measure: Took, rows: pa.Table, table: pa.Table, lists: Sequence[pa.ListArray]) -> Measured:
    """A window, over which a match took longer; `lists` are the rows of its labels."""
    lengths = _lengths(measure, rows, table, lists)
    with np.errstate(all="ignore"):
        over = (lengths - measure.size) / measure.size
    amounts = np.where(over > 0, over, math.nan)

    def told(rows: np.ndarray) -> tuple[pa.Array, pa.Array]:
        written = [_length_text(measure, one) for one in lengths[rows].tolist()]
        return _same(measure.asked, len(rows)), pa.array(written, pa.string())

    return Measured(amounts, told)


def _length_text(measure: Took, length: float) -> str:
    if measure.in_time:
        return interval_text(int(length))
    return f"{int(length)}" if length == int(length) else f"{length:g}"


def _lengths(
    measure: Took, rows: pa.Table, table: pa.Table, lists: Sequence[pa.ListArray]
) -> np.ndarray:
    """How long each match took."""
    if measure.column is not None:
        inside = rows[measure.column].combine_chunks()
        offsets = inside.offsets.to_numpy()
        events = inside.values
        first, last = (events.take(pa.array(at)) for at in (offsets[:-1], offsets[1:] - 1))
        if measure.in_events:
            begins, ends = (_numbers(pc.struct_field(one, "pos")) for one in (first, last))
            return _less(ends, begins)
        places = (pc.struct_field(first, ROW), pc.struct_field(last, ROW))
        return _between(measure, table, *places)
    if measure.in_events:
        return _less(_numbers(rows["end_pos"]), _numbers(rows["start_pos"]))
    if measure.attribute is None:
        return _numbers(pc.subtract(rows["end_time"], rows["start_time"]))
    bounds = [(one.offsets.to_numpy(), one.values.to_numpy(zero_copy_only=False)) for one in lists]
    least = np.full(len(rows), np.iinfo(np.int64).max)
    most = np.full(len(rows), -1)
    for offsets, places in bounds:
        has = offsets[1:] > offsets[:-1]
        least[has] = np.minimum(least[has], places[offsets[:-1][has]])
        most[has] = np.maximum(most[has], places[offsets[1:][has] - 1])
    return _between(measure, table, pa.array(least), pa.array(most))


def _less(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    found: np.ndarray = one - other
    return found


def _between(measure: Took, table: pa.Table, first: pa.Array, last: pa.Array) -> np.ndarray:
    assert measure.attribute is not None
    column = table[measure.attribute]
    return _numbers(pc.subtract(column.take(last), column.take(first)))


# --- comparisons ----------------------------------------------------------------------------------


def compared(
    measure: BentComparison,
    lists: Mapping[str, pa.ListArray],
    matches: int,
    table: pa.Table,
    program: Program,
    parameters: Mapping[str, Rows],
) -> Measured:
    """A comparison; `lists` are the rows of each label, `program` that of the query that measures
    it, `parameters` the one row of the parameter set."""
    choices = _choices(measure, lists, matches)
    events = _events(program, table)
    values = _values(choices, events, program, parameters)
    expressions = {item.name: item for item in program.plan.answer.expressions}
    needed = {"holds", *(one.moving for one in measure.bounds)}
    needed |= {one.staying for one in measure.bounds}
    columns = {name: computed_column(expressions[name], values) for name in sorted(needed)}
    furthest = np.full(len(choices.matches), -1.0)
    bent_by = np.zeros(len(choices.matches), np.int64)
    for number, bound in enumerate(measure.bounds):
        amounts = _amounts(bound, columns[bound.moving], columns[bound.staying])
        further = amounts > furthest
        furthest[further] = amounts[further]
        bent_by[further] = number
    needs = ~np.asarray(columns["holds"].to_numpy(zero_copy_only=False), np.bool_)
    amounts = np.full(matches, math.nan)
    places = np.zeros(matches, np.int64)
    # The choice that bends furthest, of equal ones the first.
    bends = np.flatnonzero(needs)
    if not (np.diff(choices.matches) > 0).all():
        bends = bends[np.lexsort((bends, -furthest[bends], choices.matches[bends]))]
        _, first = np.unique(choices.matches[bends], return_index=True)
        bends = bends[first]
    amounts[choices.matches[bends]], places[choices.matches[bends]] = furthest[bends], bends

    def told(rows: np.ndarray) -> tuple[pa.Array, pa.Array]:
        chosen = choices.taken(places[rows])
        values = _values(chosen, events, program, parameters)
        bounds = bent_by[places[rows]]
        asked, found = (
            _texts(measure, expressions, values, side, bounds) for side in ("moving", "staying")
        )
        return asked, found

    return Measured(amounts, told)


def _texts(
    measure: BentComparison,
    expressions: Mapping[str, Computed],
    values: LabelValues,
    side: str,
    bent_by: np.ndarray,
) -> pa.Array:
    """The text of one side of each choice, of the bound that it bends."""
    texts = [_text(getattr(bound, side), expressions, values) for bound in measure.bounds]
    if len(texts) == 1:
        return texts[0]
    return pc.choose(pa.array(bent_by), *texts)


def _text(name: str, expressions: Mapping[str, Computed], values: LabelValues) -> pa.Array:
    """The values of one side as CAST AS STRING writes them in Spark."""
    if f"{name}_text" in expressions:
        return computed_column(expressions[f"{name}_text"], values).cast(pa.string())
    lengths = computed_column(expressions[name], values).cast(pa.int64()).to_pylist()
    return pa.array([None if one is None else interval_text(one) for one in lengths], pa.string())


def interval_text(microseconds: int) -> str:
    """An INTERVAL as Spark writes it."""
    sign = "-" if microseconds < 0 else ""
    seconds, rest = divmod(abs(microseconds), 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    fraction = f".{rest:06}".rstrip("0") if rest else ""
    return f"INTERVAL '{sign}{days} {hour:02}:{minute:02}:{second:02}{fraction}' DAY TO SECOND"


@frozen
class _Choices:
    """The choices of positions of all matches: the match of each, and for each label of the query
    that measures them the rows of its events: `offsets` int32[choices + 1], `entries`."""

    matches: np.ndarray
    labels: tuple[str, ...]
    offsets: tuple[np.ndarray, ...]
    entries: tuple[np.ndarray, ...]

    def taken(self, places: np.ndarray) -> _Choices:
        """Some of the choices."""
        offsets, entries = [], []
        for begins, rows in zip(self.offsets, self.entries, strict=True):
            sizes = np.diff(begins)[places]
            ends = np.cumsum(sizes)
            inside = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
            offsets.append(np.concatenate([[0], ends]).astype(np.int32))
            entries.append(rows[np.repeat(begins[:-1][places], sizes) + inside])
        return _Choices(self.matches[places], self.labels, tuple(offsets), tuple(entries))


def _choices(measure: BentComparison, lists: Mapping[str, pa.ListArray], matches: int) -> _Choices:
    offsets = {label: lists[label].offsets.to_numpy() for label in measure.chosen}
    single = all((np.diff(one) == 1).all() for one in offsets.values())
    if single and not (measure.gathered or measure.before or measure.prior):
        # Every match has one choice.
        labels = tuple(f"{label} chosen" for label in measure.chosen)
        each = np.arange(matches + 1, dtype=np.int32)
        entries = tuple(_flat(lists[label]) for label in measure.chosen)
        return _Choices(np.arange(matches), labels, (each,) * len(labels), entries)
    return _each_choice(measure, {label: one.to_pylist() for label, one in lists.items()}, matches)


def _each_choice(
    measure: BentComparison, lists: Mapping[str, list[list[int]]], matches: int
) -> _Choices:
    found: list[int] = []
    names = [f"{label} chosen" for label in measure.chosen]
    names += [f"{label} all" for label in measure.gathered]
    looked = [f"{label} before {far}" for label, far in measure.before]
    looked += [f"{label} prior" for label in measure.prior]
    entries: dict[str, list[list[int]]] = {name: [] for name in (*names, *looked)}
    for match in range(matches):
        for choice in itertools.product(*(lists[label][match] for label in measure.chosen)):
            chosen = dict(zip(measure.chosen, choice, strict=True))
            places = {f"{label} chosen": [row] for label, row in chosen.items()}
            for label in measure.gathered:
                places[f"{label} all"] = lists[label][match]
            for label, far in measure.before:
                at = lists[label][match].index(chosen[label]) - far
                places[f"{label} before {far}"] = [lists[label][match][at]] if at >= 0 else []
            for label in measure.prior:
                every = lists[label][match]
                places[f"{label} prior"] = every[: every.index(chosen[label])]
            if not all(places[name] for name in measure.needed):
                continue  # a comparison holds where nothing is before
            found.append(match)
            for name, rows in places.items():
                entries[name].append(rows)
    offsets = [np.cumsum([0, *map(len, rows)]).astype(np.int32) for rows in entries.values()]
    flat = [np.array([*itertools.chain(*rows)], np.int64) for rows in entries.values()]
    return _Choices(np.array(found, np.int64), tuple(entries), tuple(offsets), tuple(flat))


def _events(program: Program, table: pa.Table) -> dict[str, pa.Array | pa.ChunkedArray]:
    """The columns of the events as the query that measures reads them."""
    read = table_of(program, table).combine_chunks()
    batches = read.to_batches() or [no_rows(read.schema)]
    batches = [conforming(program.plan, batch) for batch in batches]
    found = batches[0] if len(batches) == 1 else pa.Table.from_batches(batches)
    return dict(zip(found.schema.names, found.columns, strict=True))


def _values(
    choices: _Choices,
    events: Mapping[str, pa.Array | pa.ChunkedArray],
    program: Program,
    parameters: Mapping[str, Rows],
) -> LabelValues:
    """What the expressions of the query that measures are taken of."""

    def look_up(attribute: str, rows: np.ndarray) -> pa.Array:
        found = events[attribute].take(pa.array(rows))
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def of_set(column: str) -> pa.Array:
        assert program.plan.source.parameters is not None
        attribute = dict(program.plan.source.parameters.columns)[column]
        (given,) = parameters.values()
        return given.columns[attribute].take(pa.array(np.zeros(len(choices.matches), np.int64)))

    count = len(choices.matches)
    return LabelValues(choices.labels, count, choices.offsets, choices.entries, look_up, of_set)


def _amounts(bound: Bound, moving: pa.Array, staying: pa.Array) -> np.ndarray:
    """How far each bound has to move, over how far it may; 0 where it need not, NaN where it
    cannot."""
    left, right = _numbers(moving), _numbers(staying)
    holds = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
    if bound.by_one:
        amounts = np.ones(len(left))
    else:
        with np.errstate(all="ignore"):
            room = np.abs(left) * bound.share if bound.room is None else bound.room
            amounts = np.abs(left - right) / room
    return np.where(holds[bound.operator], 0.0, amounts)


def _flat(rows: pa.ListArray) -> np.ndarray:
    found: np.ndarray = rows.flatten().to_numpy(zero_copy_only=False)
    return found


def _numbers(column: Any) -> np.ndarray:
    """Numbers, and durations in microseconds, of an array of Arrow."""
    if pa.types.is_duration(column.type):
        column = column.cast(pa.duration("us")).cast(pa.int64())
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    values: np.ndarray = column.to_numpy(zero_copy_only=False)
    return values.astype(np.float64)


def distance(first: pa.Scalar, last: pa.Scalar) -> float:
    """How much later a value is than another one; of times in microseconds."""
    ends = (pa.array([one.as_py()], one.type) for one in (last, first))
    return float(_numbers(pc.subtract(*ends))[0])
