"""Arrow → kernel columns: one batch of events as the arrays that the kernels read.

No Python object is made for an event. What is checked here is everything that can be wrong with
the events: missing columns, other types, NULLs where there can be none, an order that is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arena import BLOCK
from celc_runtime.batch import (
    END_OF_PARTS,
    NO_INTEGERS,
    Batch,
    disorder,
    float_floors,
    order_preserving,
)
from celc_runtime.codes import DeclaredTypes
from celc_runtime.conditions import TextComparison, TextCondition
from celc_runtime.errors import EventError
from celc_runtime.keys import columns_of_keys, key_values
from celc_runtime.numbers import LAST_DAY, MICROSECONDS_PER_DAY
from celc_runtime.paths import unused_name, with_fields
from celc_runtime.plan import ARROW_TYPES, Plan
from celc_runtime.undeclared import Undeclared

_WIDENING = {
    "INT": (pa.int8(), pa.int16(), pa.uint8(), pa.uint16()),
    "LONG": (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32()),
    "FLOAT": (pa.float16(), pa.int8(), pa.int16()),
    "DOUBLE": (pa.float16(), pa.float32(), pa.int8(), pa.int16(), pa.int32()),
    "STRING": (pa.large_string(), pa.string_view()),
}
"""Types of columns that are taken for an attribute's type, because no value changes by that."""

_TEXTS = (pa.string(), pa.large_string(), pa.string_view())


def names_read(plan: Plan) -> list[str]:
    """The columns that a query reads; that of the types also where it can do without."""
    return [plan.type_name, *plan.input_schema().names, *plan.tiebreak]


def conforming(
    plan: Plan, events: pa.RecordBatch, rows_seen: int = 0, numbered: str | None = None
) -> pa.RecordBatch:
    """The columns that the query reads, in the types that it declares.

    Texts may be dictionary-coded, with a dictionary of plain texts none of which is NULL. Raises
    EventError for a missing column, a column given twice, or one of another type; `rows_seen` rows
    have come before. `numbered`: the column with the rows' numbers among those that were given,
    where they are not in their places any more; it is kept.
    """
    read = [plan.type_name, *(a.name for a in plan.attributes), *plan.tiebreak]
    events = with_fields(events, read)
    names = events.schema.names
    wanted = [*plan.input_schema(), *(pa.field(name, pa.null()) for name in plan.tiebreak)]
    if not plan.type_column and plan.type_name in names:
        # One event type needs no such column; where there is one, it still says which rows count.
        wanted.append(pa.field(plan.type_name, pa.string()))
    row_of = partial(_row, events, rows_seen=rows_seen, numbered=numbered)
    fields: dict[str, pa.Array] = {}
    for field in wanted:
        if field.name in fields:
            continue
        if names.count(field.name) != 1:
            raise not_found(plan, field.name, names, numbered)
        column = without_views(events.column(names.index(field.name)))
        if pa.types.is_null(field.type):
            _refuse_unordered(plan, field.name, column.type)
        else:
            column = _conforming_column(plan, field, column, row_of)
        fields[field.name] = column
    if numbered is not None:
        fields[numbered] = events.column(numbered)
    if not fields:
        # A query that looks at nothing still counts events.
        return pa.RecordBatch.from_arrays([pa.nulls(len(events))], ["*"])
    return pa.RecordBatch.from_arrays(list(fields.values()), list(fields))


def with_keys(plan: Plan, events: pa.RecordBatch) -> pa.RecordBatch:
    """Events that conform, with the columns that are made for keys of PARTITION BY."""
    for name, key in plan.chosen.items():
        read = {n: plain(events.column(n)) for n in columns_of_keys(plan, [key])}
        events = events.append_column(name, key_values(plan, key, read))
    return events


def columns_as_they_came(
    plan: Plan, names: Sequence[str], events: pa.RecordBatch | pa.Table
) -> dict[str, pa.Array | pa.ChunkedArray] | None:
    """Columns of events that need not conform, those made for keys among them; None where one is
    missing or there twice, which is for `conforming` to say.

    Raises EventError where a key cannot be made, because a column that it is read from is of
    another type than the query declares.
    """
    chosen = {name: key for name, key in plan.chosen.items() if name in names}
    read = [name for name in names if name not in chosen]
    sources = columns_of_keys(plan, chosen.values()) if chosen else []
    events = with_fields(events, [*read, *sources])
    if any(events.schema.names.count(name) != 1 for name in (*read, *sources)):
        return None
    fields = {field.name: field for field in plan.input_schema()}
    row_of = partial(_row, events, rows_seen=0, numbered=None)
    plains = {
        name: plain(
            _conforming_column(
                plan, fields[name], without_views(in_one_piece(events.column(name))), row_of
            )
        )
        for name in sources
    }
    made = {name: key_values(plan, key, plains) for name, key in chosen.items()}
    return {name: made[name] if name in made else events.column(name) for name in names}


def in_one_piece(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column that is not cut into chunks; of one that was, texts are not dictionary-coded."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def not_found(
    plan: Plan, name: str, names: Sequence[str], numbered: str | None = None
) -> EventError:
    """The error for a column that a query reads and that is missing or there twice.

    numbered: a column that the runtime has added, and that is no column to the user.
    """
    problem, remedy = "is missing", "add it, or rename the column that holds it"
    if name in names:
        problem, remedy = "occurs more than once", "drop or rename all but one"
    return EventError(
        f"query {plan.name!r} reads the column {name!r}, which {problem}; the columns are: "
        f"{', '.join(repr(n) for n in names if n != numbered) or 'none'} ({remedy})"
    )


def without_views(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The column with its texts one after another, where Arrow holds them as views: it can neither
    sort nor pick those."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if not (
        pa.types.is_dictionary(column.type) and pa.types.is_string_view(column.type.value_type)
    ):
        return column
    if isinstance(column, pa.ChunkedArray):
        type = pa.dictionary(column.type.index_type, pa.large_string())
        return pa.chunked_array([without_views(chunk) for chunk in column.chunks], type)
    return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.large_string()))


def _conforming_column(
    plan: Plan, field: pa.Field, column: pa.Array, row_of: Callable[[int], str]
) -> pa.Array:
    found = column.type
    if pa.types.is_dictionary(found):
        if pa.types.is_string(field.type) and found.value_type in _TEXTS:
            return _text_dictionary(column)
        column = column.dictionary_decode()
    type = column.type
    if type == field.type:
        return column
    wanted = next((a.type for a in plan.attributes if a.name == field.name), "STRING")
    if pa.types.is_null(type) or type in _WIDENING.get(wanted, ()):
        return column.cast(field.type)
    if wanted == "TIMESTAMP" and pa.types.is_timestamp(type):
        # A time zone changes no instant; times without one are taken for UTC.
        unit = pa.timestamp("us", tz=type.tz)
        try:
            return column.cast(unit).cast(field.type)
        except pa.ArrowInvalid:
            there = column.cast(unit, safe=False).cast(type, safe=False)
            row = int(
                np.flatnonzero(np.asarray(pc.fill_null(pc.not_equal(there, column), False)))[0]
            )
            raise EventError(
                f"query {plan.name!r} declares {field.name!r} as TIMESTAMP, which counts whole "
                f"microseconds in 64 bits, but {row_of(row)} has "
                f"{shown(column[row])}: round or filter such times"
            ) from None
    fits = next((name for name, arrow in ARROW_TYPES.items() if arrow == type), None)
    declared = any(attribute.name == field.name for attribute in plan.attributes)
    remedy = f", or declare the attribute as {fits}" if fits and declared else ""
    raise EventError(
        f"query {plan.name!r} declares {field.name!r} as {wanted}, but the column's type is "
        f"{found}: cast the column to {field.type}{remedy}"
    )


def _text_dictionary(column: pa.DictionaryArray) -> pa.Array:
    texts = column.dictionary
    if texts.type != pa.string():
        texts = texts.cast(pa.string())
        column = pa.DictionaryArray.from_arrays(column.indices, texts)
    return column.dictionary_decode() if texts.null_count else column


def _refuse_unordered(plan: Plan, name: str, type: pa.DataType) -> None:
    if not is_ordered(type):
        raise EventError(
            f"query {plan.name!r} orders events by the column {name!r}, but values of the type "
            f"{type} have no order: name a column of numbers, texts or times"
        )


def is_ordered(type: pa.DataType) -> bool:
    """Whether values of a type can be sorted."""
    if pa.types.is_dictionary(type):
        return is_ordered(type.value_type)
    return not pa.types.is_nested(type)


@dataclass(slots=True)
class Prepared:
    """A batch ready for the kernels, with what the output needs of it.

    `events` are the conforming columns without the rows of undeclared types (`dropped` is their
    number), `parts` the rows at which partitions begin.
    """

    batch: Batch
    events: pa.RecordBatch
    dropped: int
    parts: np.ndarray


class Columns:
    """Prepares the batches of one run; remembers the last event for the checks across batches."""

    def __init__(
        self,
        plan: Plan,
        *,
        ties_are_errors: bool,
        continues: bool = False,
        numbered: str | None = None,
    ) -> None:
        """`numbered`: the column of each batch with the rows' numbers; none: they are in their
        places."""
        self._plan = plan
        self._numbered = numbered
        # Once rows are left out, those that stay are numbered in a column of their own.
        self._numbers = numbered or unused_name("row", names_read(plan))
        self._ties_are_errors = ties_are_errors
        self._continues = continues
        self._last: dict[str, pa.Array] | None = None
        self._slot_keys = NO_INTEGERS
        self._slots: dict[tuple[object, ...], int] = {}
        self._rows_seen = 0
        self._keys_seen: set[tuple[object, ...]] = set()
        # Memory that has just been asked for costs more to touch than symbols cost to find.
        self._words = np.zeros(0, np.uint64)
        self._schema: pa.Schema | None = None
        self._places: list[int] = []
        self._names: tuple[pa.Array, list[str]] | None = None
        self._declared: DeclaredTypes | None = None
        self.undeclared = Undeclared()

    @property
    def partitions_seen(self) -> int:
        """How many slots the partitions of interleaved events have taken so far."""
        return max(1, len(self._slots))

    def prepare(self, events: pa.RecordBatch) -> Prepared:
        """One batch of events, conforming and checked."""
        plan = self._plan
        events = self._conforming(events)
        codes, of_types, known = self._type_codes(events)
        dropped = 0
        if known is not None:
            dropped = int(len(events) - known.sum())
            if self._numbered is None:
                given = np.arange(self._rows_seen, self._rows_seen + len(events))
                events = events.append_column(self._numbers, pa.array(given))
            streams = events.column("stream") if plan.stream_column else None
            self.undeclared.add(events.column(plan.type_name), streams, known)
            events = events.filter(pa.array(known))
            codes = codes[known]
        rows = len(events)
        parts = self._part_starts(events) if plan.key_columns and not plan.interleaves else []
        self._check_order(events, parts)
        prepared = self._laid_out(events, parts, dropped)
        if rows:
            names = dict.fromkeys((*plan.key_columns, *plan.order_by, *plan.tiebreak))
            if plan.window_attribute:
                names[plan.window_attribute] = None
            last = events.select(list(names)).take(pa.array([rows - 1]))
            self._last = {
                name: plain(column) for name, column in zip(names, last.columns, strict=True)
            }
        self._rows_seen += rows + dropped
        self._types_of_batch = codes, of_types
        return prepared

    def prepare_stretch(self, events: pa.RecordBatch, codes: np.ndarray) -> Prepared:
        """Events of one partition that conform and are in order, with their types as int32 numbers
        among those that are declared; the window's attribute is checked."""
        prepared = self._laid_out(events, [], 0)
        self._types_of_batch = codes, np.arange(len(self._plan.types))
        return prepared

    def _laid_out(self, events: pa.RecordBatch, parts: list[int], dropped: int) -> Prepared:
        slots = self._slots_of(events) if self._plan.interleaves else NO_INTEGERS
        keys, floors = self._window_keys(events, parts, slots)
        batch = Batch(
            **self._symbol_buffers(len(events)),
            keys=keys,
            floors=floors,
            part_starts=np.array([*parts, END_OF_PARTS, END_OF_PARTS], np.int64),
            slots=slots,
            letters=NO_INTEGERS,
        )
        return Prepared(batch, events, dropped, np.asarray(parts, np.int64))

    def _conforming(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """`conforming`, without another look at a schema of which all columns serve as they are."""
        if self._schema is not None and events.schema.equals(self._schema):
            return with_keys(self._plan, events.select(self._places))
        found = conforming(self._plan, events, self._rows_seen, self._numbered)
        names = events.schema.names
        # A column may also be a field of a struct, or not be there at all (`*`).
        if set(found.schema.names) <= set(names):
            self._places = [names.index(name) for name in found.schema.names]
            served = events.select(self._places).schema
            coded = any(pa.types.is_dictionary(type) for type in served.types)
            # Whether a text is a coded NULL is a matter of each dictionary.
            self._schema = events.schema if served.equals(found.schema) and not coded else None
        return with_keys(self._plan, found)

    def arguments(self, events: pa.RecordBatch) -> list[np.ndarray]:
        """What `classify` takes of the batch prepared last, the symbols' buffer aside."""
        plan = self._plan
        arguments = [*self._types_of_batch]
        for name in plan.columns:
            values, valid = numbers(events.column(name))
            arguments += [values, valid if events.column(name).null_count else NO_NULLS]
        dictionaries: dict[str, pa.DictionaryArray] = {}
        for condition in plan.texts:
            if isinstance(condition, TextCondition):
                if condition.attribute not in dictionaries:
                    dictionaries[condition.attribute] = _dictionary(
                        events.column(condition.attribute)
                    )
                arguments.append(_text_truth(condition, dictionaries[condition.attribute]))
            else:
                assert isinstance(condition, TextComparison)
                arguments.append(
                    condition.of_columns(
                        plain(events.column(condition.left)), plain(events.column(condition.right))
                    )
                )
        return arguments

    def _symbol_buffers(self, rows: int) -> dict[str, np.ndarray]:
        if self._plan.symbol_dtype != "uint8":
            return {"symbols": np.empty(rows, np.uint16), "words": np.zeros(0, np.uint64)}
        if 8 * len(self._words) < rows:
            self._words = np.empty((rows + 7) // 8, np.uint64)
        words = self._words[: (rows + 7) // 8]
        words[-1:] = 0
        return {"symbols": words.view(np.uint8)[:rows], "words": words}

    # --- types ------------------------------------------------------------------------------------

    def _type_codes(
        self, events: pa.RecordBatch
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """int32 codes of the rows' types, int64 the codes that the plan's types have among them
        (−1: none), and bool[rows] which rows have a declared type (None: all).

        Dictionary codes are taken as they come, so that a batch costs nothing but the comparisons.
        """
        plan = self._plan
        if plan.type_name not in events.schema.names:
            return zeros(len(events)), np.zeros(len(plan.types), np.int64), None
        codes, names = self._codes(events, plan.type_name)
        values: list[tuple[str, str]] | list[str]
        if plan.stream_column:
            stream_codes, streams = self._codes(events, "stream")
            codes = stream_codes * np.int32(max(1, len(names))) + codes
            values = [(stream, name) for stream in streams for name in names]
            wanted: list[object] = list(plan.types)
            declared: set[object] = {*plan.types, *plan.other_types}
        else:
            values = names
            wanted = [name for _, name in plan.types]
            declared = {name for _, name in (*plan.types, *plan.other_types)}
        places: dict[object, int] = {value: code for code, value in enumerate(values)}
        of_types = np.array([places.get(value, -1) for value in wanted], np.int64)
        known = np.array([value in declared for value in values], np.bool_)
        if known.all():
            return codes, of_types, None
        of_rows = known[codes]
        return codes, of_types, None if of_rows.all() else of_rows

    def _codes(self, events: pa.RecordBatch, name: str) -> tuple[np.ndarray, list[str]]:
        """int32 codes of a text column without NULLs, and the distinct texts they stand for."""
        column = events.column(name)
        if column.null_count:
            raise EventError(
                f"query {self._plan.name!r}: column {name!r} is NULL in "
                f"{self._first_row(events, column.is_null())}; every event needs one"
            )
        if name == self._plan.type_name and column.type == pa.string():
            if self._declared is None:
                pairs = (*self._plan.types, *self._plan.other_types)
                self._declared = DeclaredTypes([type for _, type in pairs])
            if self._declared.can_tell:
                return self._declared.codes(column)
        column = _dictionary(column)
        codes = np.asarray(column.indices.to_numpy(zero_copy_only=False)).astype(
            np.int32, copy=False
        )
        if self._names is None or not self._names[0].equals(column.dictionary):
            self._names = column.dictionary, column.dictionary.to_pylist()
        texts = self._names[1]
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        if len(distinct) < len(texts):
            codes = np.array([distinct[text] for text in texts], np.int32)[codes]
        return codes, list(distinct)

    def _first_row(self, events: pa.RecordBatch, wrong: pa.Array | np.ndarray) -> str:
        """The first row for which something is true, as messages name it."""
        return self._row(events, int(np.flatnonzero(np.asarray(wrong))[0]))

    def _row(self, events: pa.RecordBatch, row: int) -> str:
        """A row of a batch that conforms, as messages name it."""
        # No column that the query reads has this name, and it has no others.
        numbered = self._numbers if self._numbers in events.schema.names else None
        return _row(events, row, rows_seen=self._rows_seen, numbered=numbered)

    # --- partitions and order ---------------------------------------------------------------------

    def _part_starts(self, events: pa.RecordBatch) -> list[int]:
        """The rows at which a new partition begins; a partition that comes back is an error."""
        plan = self._plan
        if not len(events):
            return []
        changed = np.zeros(len(events), np.bool_)
        for name in plan.key_columns:
            changed[1:] |= differs(events.column(name))
        first = _keys([events.column(name).slice(0, 1) for name in plan.key_columns])
        if self._last is None:
            changed[0] = not self._continues
            if self._continues:
                self._keys_seen.update(first)
        else:
            changed[0] = first != _keys([self._last[name] for name in plan.key_columns])
        starts = np.flatnonzero(changed)
        columns = [events.column(name).take(pa.array(starts)) for name in plan.key_columns]
        for number, key in enumerate(_keys(columns)):
            if key in self._keys_seen:
                partition = ", ".join(
                    f"{name}={shown(column[number])}"
                    for name, column in zip(plan.key_columns, columns, strict=True)
                )
                raise EventError(
                    f"query {plan.name!r}: the partition {partition} comes back in "
                    f"{self._row(events, int(starts[number]))} after others: sort the "
                    f"events by {', '.join(plan.key_columns)} first, or use match_table"
                )
            self._keys_seen.add(key)
        return [int(start) for start in starts]

    def _slots_of(self, events: pa.RecordBatch) -> np.ndarray:
        """A number for the partition of each row, the same one whenever the partition comes."""
        names = list(self._plan.key_columns)
        codes = codes_of_keys([plain(events.column(name)) for name in names], len(events))
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        keys = _keys([events.column(name).take(pa.array(first)) for name in names])
        numbers_of_keys = [self._slots.setdefault(key, len(self._slots)) for key in keys]
        return np.array(numbers_of_keys or [0], np.int64)[inverse] if len(events) else NO_INTEGERS

    def _check_order(self, events: pa.RecordBatch, parts: list[int]) -> None:
        plan = self._plan
        for name in plan.order_by:
            column = events.column(name)
            if column.null_count:
                raise EventError(
                    f"query {plan.name!r}: the order column {name!r} is NULL in "
                    f"{self._first_row(events, column.is_null())}: filter such rows out, or order "
                    "by another column"
                )
            nan = _nan(column)
            if nan.any():
                raise EventError(
                    f"query {plan.name!r}: the order column {name!r} is NaN in "
                    f"{self._first_row(events, nan)}: filter such rows out, or order by another "
                    "column"
                )
        names = (*plan.order_by, *plan.tiebreak)
        if not plan.order_by or not len(events):
            return
        if self._is_in_order(events.column(names[0]), parts, alone=len(names) == 1):
            return
        undecided = np.ones(len(events), np.bool_)
        undecided[parts] = False
        if self._last is None:
            undecided[0] = False
        for name in names:
            column = plain(events.column(name))
            order = order_of_neighbours(column, None if self._last is None else self._last[name])
            wrong = undecided & (order < 0)
            if wrong.any():
                raise EventError(
                    f"query {plan.name!r}: the events are not in the order of {', '.join(names)}: "
                    f"{self._first_row(events, wrong)} has {name}="
                    f"{shown(column[int(wrong.argmax())])} after a larger value; sort them first, "
                    "or use match_table"
                )
            undecided &= order == 0
        if self._ties_are_errors and undecided.any():
            raise EventError(
                f"query {plan.name!r}: two events are equal in {', '.join(names)} "
                f"({self._first_row(events, undecided)} and the one before it), and a distributed "
                "table has no order of its own: name a column that tells them apart, as in "
                "with_options(tiebreak=['event_id']) or celc compile --tiebreak event_id"
            )

    def _is_in_order(self, column: pa.Array, parts: list[int], *, alone: bool) -> bool:
        """Whether the first order column shows by itself that all events are in order.

        `alone`: it is the only one, so that equal values are in order unless ties are errors. False
        where it does not show it, or is no column of whole numbers or times.
        """
        whole = pa.types.is_integer(column.type) or pa.types.is_temporal(column.type)
        if not whole or column.type == pa.uint64():
            return False
        values = numbers(column)[0]
        if self._last is None:
            falls, ties = disorder(values[1:], values[0]) if len(values) > 1 else (0, 0)
        else:
            before = numbers(self._last[self._plan.order_by[0]].cast(column.type))[0][0]
            falls, ties = disorder(values, before)
        if not falls and not ties:
            return True
        # Where a partition begins, there may be any value.
        at = np.array(parts[1:] if parts[:1] == [0] else parts, np.int64)
        falls -= int((values[at] < values[at - 1]).sum())
        ties -= int((values[at] == values[at - 1]).sum())
        if parts[:1] == [0] and self._last is not None:
            falls -= int(values[0] < before)
            ties -= int(values[0] == before)
        return not falls and (not ties or (alone and not self._ties_are_errors))

    def _window_keys(
        self, events: pa.RecordBatch, parts: list[int], slots: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        plan = self._plan
        name = plan.window_attribute
        if name is None or plan.window is None:
            return NO_INTEGERS, NO_INTEGERS
        column = events.column(name)
        for wrong, what in (
            (column.is_null() if column.null_count else None, "NULL"),
            (_nan(column), "NaN"),
            (self._immeasurable(column, parts), "too far from 0 to measure from"),
        ):
            if wrong is not None and np.asarray(wrong).any():
                raise EventError(
                    f"query {plan.name!r}: WITHIN is measured on {name!r}, which is {what} in "
                    f"{self._first_row(events, wrong)}: filter such rows out, or measure on "
                    "another attribute"
                )
        values = whole_numbers(column)
        falls = self._falls(values, parts, slots)
        if falls.any():
            raise EventError(
                f"query {plan.name!r}: WITHIN is measured on {name!r}, which falls in "
                f"{self._first_row(events, falls)} to {shown(column[int(falls.argmax())])}: order "
                "the events by it, or measure on another attribute"
            )
        floors = NO_INTEGERS
        if pa.types.is_floating(column.type):
            floors = float_floors(values, float(plan.window.size))
        return values, floors

    def _immeasurable(self, column: pa.Array, parts: list[int]) -> np.ndarray:
        """`immeasurable`, without a look at all values where events are in their order."""
        if self._plan.order_by[:1] == (self._plan.window_attribute,) and column.type == pa.int64():
            values = numbers(column)[0]
            if len(values) and values[0] > -(2**63) and (values[parts] > -(2**63)).all():
                return _NOWHERE
        return immeasurable(column)

    def _falls(self, values: np.ndarray, parts: list[int], slots: np.ndarray) -> np.ndarray:
        """bool[rows]: where the window's attribute is less than at the event before in its part."""
        plan, name = self._plan, self._plan.window_attribute
        assert name is not None
        if not len(values) or plan.order_by[:1] == (name,):
            return _NOWHERE  # what events are ordered by has been checked
        falls = np.zeros(len(values), np.bool_)
        if plan.interleaves:
            return self._falls_in_slots(values, slots)
        falls[1:] = values[1:] < values[:-1]
        if self._last is not None:
            falls[0] = values[0] < whole_numbers(self._last[name])[0]
        falls[parts] = False
        return falls

    def _falls_in_slots(self, values: np.ndarray, slots: np.ndarray) -> np.ndarray:
        more = np.full(self.partitions_seen - len(self._slot_keys), -(2**63), np.int64)
        self._slot_keys = np.concatenate([self._slot_keys, more])
        rows = np.argsort(slots, kind="stable")
        of_slots, sorted_values = slots[rows], values[rows]
        before = np.roll(sorted_values, 1)
        first = np.append(True, of_slots[1:] != of_slots[:-1])
        before[first] = self._slot_keys[of_slots[first]]
        last = np.roll(first, -1)
        self._slot_keys[of_slots[last]] = sorted_values[last]
        falls = np.empty(len(values), np.bool_)
        falls[rows] = sorted_values < before
        return falls


def _row(events: pa.RecordBatch, row: int, *, rows_seen: int, numbered: str | None) -> str:
    """A row of a batch as messages name it: by its number among all that were given."""
    number = rows_seen + row if numbered is None else events.column(numbered)[row].as_py()
    return f"row {number:,} (counted from 0)"


def row_named_in(message: str) -> int | None:
    """The number of the first row that a message about events names; None: it names none."""
    found = re.search(r"row ([\d,]+) \(counted from 0\)", message)
    return None if found is None else int(found[1].replace(",", ""))


# --- arrays ---------------------------------------------------------------------------------------


def numbers(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The values of a column (anything where NULL) and bool[rows] where they are not NULL.

    BOOLEAN becomes uint8, TIMESTAMP int64, DATE int32. Both are read-only.
    """
    if pa.types.is_boolean(column.type):
        values = np.asarray(
            pc.fill_null(column, False).cast(pa.uint8()).to_numpy(zero_copy_only=False)
        )
        values.flags.writeable = False
    else:
        dtype = (
            np.dtype(f"int{column.type.bit_width}")
            if pa.types.is_temporal(column.type)
            else column.type.to_pandas_dtype()
        )
        buffer = column.buffers()[1]
        values = np.frombuffer(buffer, dtype)[column.offset : column.offset + len(column)]
    if column.null_count == 0:
        return values, _all_true(len(column))
    valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    valid.flags.writeable = False  # as the other: kernels are compiled for one kind of array
    return values, valid


NO_NULLS = np.ones(BLOCK, np.bool_)
"""What `classify` takes for the whole of a column without NULLs (see `block_of`)."""
NO_NULLS.flags.writeable = False

_NOWHERE = np.zeros(0, np.bool_)

_TRUE = np.ones(0, np.bool_)


def _all_true(rows: int) -> np.ndarray:
    global _TRUE
    if len(_TRUE) < rows:
        _TRUE = np.ones(rows, np.bool_)
        _TRUE.flags.writeable = False
    return _TRUE[:rows]


_ZEROS = np.zeros(0, np.int32)


def zeros(rows: int) -> np.ndarray:
    """int32[rows], all 0; shared between batches."""
    global _ZEROS
    if len(_ZEROS) < rows:
        _ZEROS = np.zeros(rows, np.int32)
        _ZEROS.flags.writeable = False
    return _ZEROS[:rows]


def whole_numbers(column: pa.Array) -> np.ndarray:
    """A window or order column without NULLs as int64 of the same order; times in microseconds."""
    values = numbers(column)[0]
    if pa.types.is_date32(column.type):
        return values.astype(np.int64) * MICROSECONDS_PER_DAY
    if pa.types.is_floating(column.type):
        return order_preserving(values.astype(np.float64))
    return np.ascontiguousarray(values.astype(np.int64, copy=False))


def _nan(column: pa.Array) -> np.ndarray:
    """bool[rows] where a column of fractions without NULLs is NaN; nothing of another column."""
    if not pa.types.is_floating(column.type):
        return np.zeros(0, np.bool_)
    wrong: np.ndarray = np.isnan(numbers(column)[0])
    return wrong


def immeasurable(column: pa.Array) -> np.ndarray:
    """bool[rows] where a value of a column without NULLs has no place among 64-bit window keys."""
    values = numbers(column)[0]
    wrong: np.ndarray = np.zeros(0, np.bool_)
    if pa.types.is_date32(column.type):
        wrong = np.abs(values.astype(np.int64)) > LAST_DAY
    elif values.dtype == np.int64:
        wrong = values == -(2**63)
    return wrong


def plain(column: pa.Array) -> pa.Array:
    """The column itself, neither dictionary-coded nor of views."""
    column = without_views(column)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _dictionary(column: pa.Array) -> pa.DictionaryArray:
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def _text_truth(condition: TextCondition, column: pa.DictionaryArray) -> np.ndarray:
    # The last element stands for NULL.
    table = np.append(condition.of_values(column.dictionary), condition.of_null)
    indices = column.indices
    if pa.types.is_unsigned_integer(indices.type):
        indices = indices.cast(pa.int64())
    codes = np.asarray(pc.fill_null(indices, -1).to_numpy(zero_copy_only=False))
    truth: np.ndarray = table[codes]
    return truth


def differs(column: pa.Array) -> np.ndarray:
    """bool[rows − 1]: where a value is not the one before it; NULL equals NULL, NaN equals NaN."""
    column = plain(column)
    here, before = column[1:], column[:-1]
    changed = np.array(pc.fill_null(pc.not_equal(here, before), False), np.bool_)
    if column.null_count:
        null = np.asarray(column.is_null())
        changed |= null[1:] != null[:-1]
    if pa.types.is_floating(column.type):
        nan = np.isnan(numbers(column)[0])
        changed &= ~(nan[1:] & nan[:-1])
    return changed


def sortable(column: pa.Array) -> pa.Array:
    """A column of the same order as Arrow compares values: Spark's order, where NaN equals itself
    and is larger than any number, and −0.0 equals 0.0."""
    if pa.types.is_null(column.type):
        return column.cast(pa.int8())
    if not pa.types.is_floating(column.type):
        return column
    values = np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0))
    # Only this NaN: there are others, negative ones among them.
    keys = order_preserving(np.where(np.isnan(values), np.nan, values))
    return pa.array(keys, mask=np.asarray(column.is_null()))


def order_of_neighbours(column: pa.Array, last: pa.Array | None) -> np.ndarray:
    """int8[rows]: 1 where a value is larger than the one before, 0 where equal, −1 where smaller.

    `last` holds the value before the first row, if there is one. NULL comes first, as in Spark.
    """
    if last is not None and last.type != column.type:
        if pa.types.is_null(column.type):
            column = column.cast(last.type)
        else:
            last = last.cast(column.type)
    column = sortable(column)
    first = pa.nulls(1, column.type) if last is None else sortable(last)
    before = pa.concat_arrays([first, column[:-1]])
    larger = np.array(pc.fill_null(pc.greater(column, before), False), np.int8)
    smaller = np.array(pc.fill_null(pc.less(column, before), False), np.int8)
    order = larger - smaller
    if before.null_count or column.null_count:
        order += np.asarray(before.is_null()).astype(np.int8)
        order -= np.asarray(column.is_null()).astype(np.int8)
    return order


def partition_keys(plan: Plan, events: pa.RecordBatch) -> list[tuple[object, ...]]:
    """The partitions of the first and of the last row of a batch as it came; none where it lacks
    the columns, which is for `conforming` to say."""
    columns = columns_as_they_came(plan, plan.key_columns, events)
    if columns is None:
        return []
    ends = pa.array([0, len(events) - 1])
    return _keys([plain(column).take(ends) for column in columns.values()])


def codes_of_keys(columns: Sequence[pa.Array], rows: int) -> np.ndarray:
    """int64[rows]: a number for the values of each row together, equal where all of them are."""
    codes = np.zeros(rows, np.int64)
    for column in columns:
        coded = column.dictionary_encode(null_encoding="encode")
        width = max(1, len(coded.dictionary))
        codes = codes * width + np.asarray(coded.indices.to_numpy(zero_copy_only=False))
        _, codes = np.unique(codes, return_inverse=True)
    return codes


def _keys(columns: Sequence[pa.Array]) -> list[tuple[object, ...]]:
    """Partition keys, row by row, as Python values that are equal where the keys are."""
    return list(zip(*([_normal(v) for v in _values(column)] for column in columns), strict=True))


def _values(column: pa.Array) -> list[object]:
    # Times as numbers: Python has none before the year 1 or after 9999.
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    values: list[object] = column.to_pylist()
    return values


def _normal(value: object) -> object:
    # NaN must equal itself as a key, and −0.0 is 0.0.
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    return value


def shown(value: pa.Scalar) -> str:
    """A value in a message."""
    if not value.is_valid:
        return "NULL"
    if not pa.types.is_temporal(value.type):
        return repr(value.as_py())
    try:
        return str(value.as_py())
    except (ValueError, OverflowError):
        number = value.cast(pa.int64() if value.type.bit_width == 64 else pa.int32())
        return f"{number} ({value.type})"
