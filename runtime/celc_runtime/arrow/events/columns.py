"""Arrow → kernel columns: one batch of events as the arrays that the kernels read.

No Python object is made for an event. Everything that can be wrong with events is checked on the
way: columns and their types (`conforming`), types of events (`event_types`), order and partitions
(`event_order`), values that a window is measured on (`window_keys`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import NO_NULLS, TextComparer, coded, numbers, text_truth
from celc_runtime.arrow.events.conforming import conforming
from celc_runtime.arrow.events.event_order import Arrangement, EventOrder
from celc_runtime.arrow.events.event_types import EventTypes
from celc_runtime.arrow.events.instants import begins_instant
from celc_runtime.arrow.events.layout import Layout, as_they_are
from celc_runtime.arrow.events.partition_keys import with_keys
from celc_runtime.arrow.events.row_names import RowNames, row_text
from celc_runtime.arrow.events.undeclared import Undeclared
from celc_runtime.arrow.events.window_keys import WindowKeys, floors_of
from celc_runtime.arrow.late_rows import LateRows, Taken
from celc_runtime.engine.arena.batch import END_OF_PARTS, NO_INTEGERS, Batch
from celc_runtime.engine.definition.instants import InstantRows
from celc_runtime.plan.conditions import TextCondition
from celc_runtime.plan.plan import Plan

_EACH_ROW = np.zeros(0, np.bool_)
_ENDS = np.array([END_OF_PARTS, END_OF_PARTS], np.int64)


@dataclass(slots=True)
class Prepared:
    """A batch ready for the kernels, with the columns that the output needs."""

    batch: Batch
    events: pa.RecordBatch  # the conforming columns, without rows of undeclared types
    parts: np.ndarray  # the rows at which partitions begin
    known: np.ndarray | None = None  # bool, the rows of the input that are left; None: all
    instants: np.ndarray = field(default_factory=lambda: _EACH_ROW)
    """bool[rows], the rows at which instants begin; empty: each row does, or instants do not
    matter."""
    instant_rows: InstantRows | None = None
    """The instants as ranges of rows; None where the update knows events by their places in
    instants."""
    tied: np.ndarray | None = None
    """bool[rows], the rows that are equal to the row before in part and order; None: no row is."""


class Columns:
    """Prepares the batches of one run; remembers the last event for checks across batches."""

    def __init__(
        self,
        plan: Plan,
        *,
        ties_are_errors: bool,
        continues: bool = False,
        parts_checked: bool = False,
        numbered: str | None = None,
        batches_wait: bool = False,
        rows_before: int = 0,
        layout: Layout | None = None,
        arranged: Arrangement | None = None,
    ) -> None:
        """continues: the first event's partition was entered before. parts_checked: it is known
        that no partition comes back. numbered: the column of each batch with the rows' numbers;
        None: no rows were left out. batches_wait: a batch is read after later ones have been
        prepared. rows_before: how many rows of the input are before the first. layout: that of the
        plan; None: no other run shares it. arranged: what is known of all rows that will come."""
        self._plan = plan
        self._layout = layout = layout or Layout(plan)
        self._rows = RowNames(numbered, layout.number_column)
        self._rows.seen = rows_before
        self._types = EventTypes(plan, self._rows, layout)
        self._order = EventOrder(
            plan,
            self._rows,
            ties_are_errors=ties_are_errors,
            continues=continues,
            parts_checked=parts_checked,
        )
        name = layout.window_attribute
        self._window = None if name is None else WindowKeys(plan, name, self._rows, self._order)
        self._local_windows = [
            WindowKeys(plan, name, self._rows, self._order) for name in layout.local_attributes
        ]
        self._batches_wait = batches_wait
        self._arranged = arranged
        # New memory costs more to touch for the first time than finding symbols does.
        self._words = np.zeros(0, np.uint64)
        self._symbols_of_few: tuple[int, dict[str, np.ndarray]] | None = None
        self._texts = TextComparer()
        self.undeclared = Undeclared()

    @property
    def partitions_seen(self) -> int:
        """The number of slots that interleaved partitions have taken so far."""
        return self._order.partitions_seen

    def row_name(self, events: pa.RecordBatch, row: int) -> str:
        """The name of a row of the last prepared batch, for messages."""
        numbered = self._rows.column if self._rows.column in events.schema.names else None
        seen = self._rows.seen - len(events)
        return row_text(events, row, rows_seen=seen, numbered=numbered)

    def prepare(self, events: pa.RecordBatch, *, conforms: bool = False) -> Prepared:
        """A checked batch of events; `conforms`: its columns are right already."""
        if isinstance(events, LateRows) and events.taken is not None:
            return self._prepare_taken(events, events.taken)
        plan = self._plan
        source = plan.source
        if not conforms:
            events = self.conforming(events)
        codes, of_types, known = self._types.codes(events)
        given = len(events)
        if known is not None:
            events = self._rows.numbered(events)
            streams = events.column("stream") if plan.source.stream_column else None
            self.undeclared.add(events.column(plan.source.type_name), streams, known)
            events = events.filter(pa.array(known))
            codes = codes[known]
        arranged = self._arranged
        are_all = arranged is not None and known is None and len(events) == arranged.rows
        if arranged is not None and not (are_all or arranged.is_of_some):
            arranged = None
        if arranged is not None:
            parts = arranged.parts
        elif source.key_columns and not plan.interleaves:
            parts = self._order.part_starts(events)
        else:
            parts = NO_INTEGERS
        self._order.check(events, parts, arranged)
        prepared = self._laid_out(events, parts)
        prepared.known = known
        prepared.tied = self._order.tied
        if source.ties is not None and not self._order.rises:
            prepared.instants = begins_instant(plan, events)
        if not are_all:  # others follow
            self._order.leave(events)
        self._rows.seen += given
        self._types_of_batch = codes, of_types
        return prepared

    def _prepare_taken(self, events: LateRows, taken: Taken) -> Prepared:
        """All rows of a run, which have been checked when they were read."""
        rows = len(events)
        if self._symbols_of_few is None or self._symbols_of_few[0] != rows:
            self._symbols_of_few = rows, self._symbol_buffers(rows)
        symbols = self._symbols_of_few[1]
        symbols["words"][-1:] = 0
        batch = Batch(
            **symbols,
            keys=taken.keys,
            floors=NO_INTEGERS,
            part_starts=taken.part_starts,
            slots=NO_INTEGERS,
            letters=NO_INTEGERS,
            contexts=NO_INTEGERS,
            instants=NO_INTEGERS,
        )
        self._types_of_batch = taken.codes, taken.of_types
        return Prepared(batch, events, taken.part_starts[:-2], tied=taken.tied)

    def prepare_stretches(
        self, events: pa.RecordBatch, codes: np.ndarray, parts: np.ndarray, absent: np.ndarray
    ) -> Prepared:
        """Conforming, sorted events, partition by partition; only the window's attribute is
        checked.

        codes: int32, the places of their types in `declared_types`. parts: int64, the rows at which
        partitions begin. absent: bool[rows], rows that stand for rows left out.
        """
        prepared = self._laid_out(events, parts)
        if self._plan.source.ties is not None:
            prepared.instants = begins_instant(self._plan, events)
            # A row that stands for rows left out is a copy of the row after it. Between two
            # instants it stands for others, so the row after it begins an instant as well.
            prepared.instants[1:] |= absent[:-1] & prepared.instants[:-1]
        self._types_of_batch = codes, np.arange(len(self._plan.source.types))
        return prepared

    def find_symbols(
        self, events: pa.RecordBatch, classify: Callable[..., None], symbols: np.ndarray
    ) -> None:
        """Write the symbols of rows in any order, all of declared types; nothing else is checked.
        Raises EventError where they do not conform."""
        events = self.conforming(events)
        codes, of_types, known = self._types.codes(events)
        assert known is None
        self._types_of_batch = codes, of_types
        classify(*self.arguments(events), symbols)

    def _laid_out(self, events: pa.RecordBatch, parts: np.ndarray) -> Prepared:
        slots = self._order.slots_of(events) if self._plan.interleaves else NO_INTEGERS
        keys, floors = self._keys(events, parts, slots)
        batch = Batch(
            **self._symbol_buffers(len(events)),
            keys=keys,
            floors=floors,
            part_starts=np.concatenate((parts, _ENDS)),
            slots=slots,
            letters=NO_INTEGERS,
            contexts=NO_INTEGERS,
            instants=NO_INTEGERS,
        )
        return Prepared(batch, events, parts)

    def _keys(
        self, events: pa.RecordBatch, parts: np.ndarray, slots: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(int64[rows], the keys of the window; int64[rows], the floors for FLOAT and DOUBLE).

        Both are empty without a window on an attribute. The attributes of windows inside the
        formula are checked too.
        """
        for local in self._local_windows:
            local.of(events, parts, slots)
        plan, name = self._plan, self._layout.window_attribute
        if self._window is None or plan.matching.window is None or name is None:
            return NO_INTEGERS, NO_INTEGERS
        keys = self._window.of(events, parts, slots)
        if not self._layout.window_is_real:
            return keys, NO_INTEGERS
        return keys, floors_of(keys, plan.matching.window.size, events.column(name).type)

    def conforming(self, events: pa.RecordBatch, waiting: int = 0) -> pa.RecordBatch:
        """As `conforming`; the schema is remembered if its columns need no change.

        waiting: the number of rows before it that have not been prepared yet.
        """
        schema, numbered = events.schema, self._rows.given
        known = self._layout.as_they_are
        if known is not None and known.numbered == numbered and known.schema.equals(schema):
            if isinstance(events, LateRows):
                events = events.of(known.places, known.served)
            else:
                events = events.select(known.places)
            return with_keys(self._plan, events) if self._layout.makes_keys else events
        found = conforming(self._plan, events, self._rows.seen + waiting, numbered)
        like = as_they_are(events, found, numbered)
        if like is not None:
            self._layout.as_they_are = like
        return with_keys(self._plan, found)

    def arguments(self, events: pa.RecordBatch) -> list[np.ndarray]:
        """The arguments of `classify` for the last prepared batch, without the symbols' buffer."""
        plan = self._plan
        arguments = [*self._types_of_batch]
        taken = events.taken if isinstance(events, LateRows) else None
        for number, name in enumerate(plan.matching.columns):
            known = None if taken is None else taken.columns[number]
            if known is not None:
                arguments += [known, NO_NULLS]
                continue
            values, valid = numbers(events.column(name))
            arguments += [values, valid if events.column(name).null_count else NO_NULLS]
        dictionaries: dict[str, pa.DictionaryArray] = {}
        for condition in plan.matching.texts:
            if isinstance(condition, TextCondition):
                if condition.attribute not in dictionaries:
                    dictionaries[condition.attribute] = coded(events.column(condition.attribute))
                arguments.append(text_truth(condition, dictionaries[condition.attribute]))
            else:
                left, right = events.column(condition.left), events.column(condition.right)
                arguments.append(self._texts.truth(condition, left, right))
        return arguments

    def _symbol_buffers(self, rows: int) -> dict[str, np.ndarray]:
        if self._plan.matching.symbol_dtype != "uint8":
            return {"symbols": np.empty(rows, np.uint16), "words": np.zeros(0, np.uint64)}
        if self._batches_wait or 8 * len(self._words) < rows:
            self._words = np.empty((rows + 7) // 8, np.uint64)
        words = self._words[: (rows + 7) // 8]
        words[-1:] = 0
        return {"symbols": words.view(np.uint8)[:rows], "words": words}
