"""Columns `type` and `stream` → numbers of event types.

There are two kinds of numbers. Kernels read *codes*, which each batch assigns anew (`EventTypes`):
the codes of a dictionary are there already and cost nothing. Rows that are kept longer than their
batch get the numbers of the declared types, which are the same everywhere (`type_numbers`).
"""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import coded, whole_column, zeros
from celc_runtime.arrow.events.declared_types import DeclaredTypes
from celc_runtime.arrow.events.digits import Step, Workers, done
from celc_runtime.arrow.events.layout import EventType, Layout, TypesOfBatch
from celc_runtime.arrow.events.row_names import RowNames
from celc_runtime.arrow.late_rows import LateRows
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan


class EventTypes:
    """Finds the codes of the batches of one run.

    Batches often share a dictionary, so the last one is remembered. Most have the same types, so
    what was looked up for those of the last one is in the layout.
    """

    def __init__(self, plan: Plan, rows: RowNames, layout: Layout) -> None:
        self._plan = plan
        self._rows = rows
        self._layout = layout
        self._names: tuple[pa.Array, list[str]] | None = None

    def codes(self, events: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """(the codes of the rows; the codes of the plan's types; which rows have a declared type).

        The third is bool[rows]; None: all rows have one. The codes of a dictionary (int32) are used
        as they are. Other codes are uint8 or uint16, which are faster to compare. A type of the
        plan that no row has gets the code −1; if codes are unsigned, the greatest one. The next
        call may overwrite the codes.
        """
        plan = self._plan
        if events.schema.get_field_index(plan.source.type_name) < 0:
            return zeros(len(events)), np.zeros(len(plan.source.types), np.int64), None
        codes, types = _codes_of_types(plan, lambda name: self._text_codes(events, name))
        # With numbers of one type, the processor compares many unsigned codes at once.
        dtype = codes.dtype if codes.dtype.kind == "u" else np.dtype(np.int64)
        found = self._layout.types_of_batch
        if found is None or found.dtype != dtype or types != found.types:
            found = TypesOfBatch(types, dtype, *self._looked_up(types, dtype))
            self._layout.types_of_batch = found
        of_types, known = found.of_types, found.known
        if not len(known):
            return codes, of_types, None
        of_rows = known[codes]
        return codes, of_types, None if of_rows.all() else of_rows

    def _looked_up(self, types: list[EventType], dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """The codes of the plan's types in a batch, and which types of the batch are declared:
        bool[types], empty if all are."""
        plan = self._plan
        source = plan.source
        code_of = {type: code for code, type in enumerate(types)}
        none = np.iinfo(dtype).max if dtype.kind == "u" else -1
        of_types = np.array([code_of.get(t, none) for t in _as_told(plan, source.types)], dtype)
        declared = set(_as_told(plan, source.declared_types))
        known = np.array([type in declared for type in types], np.bool_)
        return of_types, known[:0] if known.all() else known

    def _text_codes(self, events: pa.RecordBatch, name: str) -> tuple[np.ndarray, list[str]]:
        """(the codes of a text column as int32, uint8 or uint16; the text of each code). NULL is an
        EventError."""
        source, declared = self._plan.source, self._layout.declared_types
        is_late = isinstance(events, LateRows)
        column = events.unmoved(name) if is_late else events.column(name)
        if column.null_count:
            column = events.column(name)
            raise _null_error(self._plan, name, self._rows.first(events, column.is_null()))
        if name == source.type_name and column.type == pa.string() and declared.can_tell:
            codes, names = declared.codes(column)
            return codes[events.order] if is_late else codes, names  # texts are not moved
        column = coded(events.column(name) if is_late else column)
        if self._names is None or not self._names[0].equals(column.dictionary):
            self._names = column.dictionary, column.dictionary.to_pylist()
        return _distinct(column, self._names[1])


def coding_types(plan: Plan, column: pa.ChunkedArray, workers: Workers) -> Step:
    """The step that finds a column of event types, coded by the declared ones if it is of texts and
    holds no others, else as it is: to find a code takes less time than to move a text, and codes of
    a byte less than those that a table brings."""
    declared = DeclaredTypes([type for _, type in plan.source.declared_types])
    is_coded = pa.types.is_dictionary(column.type)
    texts = column.type.value_type if is_coded else column.type
    if texts != pa.string() or column.null_count or not declared.can_tell:
        return done(column)

    all_codes = np.empty(len(column), declared.dtype)  # in one piece, so that they move as one

    def are_declared(chunk: pa.Array, codes: np.ndarray) -> bool:
        """Writes the codes of some rows; whether all of their types are declared."""
        codes[:], names = declared.codes_again(chunk) if is_coded else declared.codes(chunk)
        return len(names) < len(declared.names)

    def found(declares: list[bool]) -> pa.ChunkedArray:
        if not all(declares):
            return column
        texts = pa.array(declared.known, pa.string())
        codes = whole_column(all_codes, pa.from_numpy_dtype(declared.dtype))
        return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, texts, safe=False)])

    calls, begins = [], np.cumsum([0, *map(len, column.chunks)]).tolist()
    for chunk, begin in zip(column.chunks, begins[:-1], strict=True):
        calls += [
            partial(are_declared, chunk[first:end], all_codes[begin + first : begin + end])
            for first, end in workers.slices(len(chunk))
        ]
    return Step(calls, found)


def type_numbers(plan: Plan, events: pa.RecordBatch, row: str) -> np.ndarray:
    """int64[rows]: the place of each event's type in `declared_types`; −1: it is not declared.

    NULL is an EventError, whose message calls the row `row`.
    """
    if plan.source.type_name not in events.schema.names:
        return np.zeros(len(events), np.int64)

    def text_codes(name: str) -> tuple[np.ndarray, list[str]]:
        column = events.column(name)
        if column.null_count:
            raise _null_error(plan, name, row)
        column = coded(column)
        return _distinct(column, column.dictionary.to_pylist())

    codes, types = _codes_of_types(plan, text_codes)
    number_of: dict[EventType, int] = {}
    for number, type in enumerate(_as_told(plan, plan.source.declared_types)):
        number_of.setdefault(type, number)
    of_types = np.array([number_of.get(type, -1) for type in types], np.int64)
    of_rows: np.ndarray = of_types[codes]
    return of_rows


def declared_rows(plan: Plan, events: pa.RecordBatch, workers: Workers) -> np.ndarray | None:
    """bool[rows], the events whose type is declared; None: all are. Raises EventError for NULL."""
    types = DeclaredTypes([type for _, type in plan.source.declared_types])
    plain = not plan.source.stream_column and plan.source.type_name in events.schema.names
    column = events.column(plan.source.type_name) if plain else None
    if column is not None and pa.types.is_dictionary(column.type) and not column.null_count:
        texts = column.dictionary.to_pylist()
        if set(texts) <= {type for _, type in plan.source.declared_types}:
            return None
    if column is None or column.type != pa.string() or column.null_count or not types.can_tell:
        found = type_numbers(plan, events, "a row") >= 0
    else:
        texts = column

        def of_slice(first: int, end: int) -> np.ndarray:
            codes, names = types.codes(texts.slice(first, end - first))
            if len(names) < len(types.names):
                return np.ones(end - first, np.bool_)
            inside: np.ndarray = codes < len(names) - 1
            return inside

        slices = workers.slices(len(column))
        found = np.concatenate(workers.side_by_side([partial(of_slice, *one) for one in slices]))
    return None if found.all() else found


def _as_told(plan: Plan, pairs: Iterable[tuple[str, str]]) -> list[EventType]:
    return list(pairs) if plan.source.stream_column else [name for _, name in pairs]


def _codes_of_types(
    plan: Plan, text_codes: Callable[[str], tuple[np.ndarray, list[str]]]
) -> tuple[np.ndarray, list[EventType]]:
    """(the codes of the rows' types, int32, uint8 or uint16; the type of each code).

    text_codes: finds the codes of the column with a name, and the text of each code.
    """
    codes, names = text_codes(plan.source.type_name)
    if not plan.source.stream_column:
        return codes, [*names]
    stream_codes, streams = text_codes("stream")
    codes = stream_codes * np.int32(max(1, len(names))) + codes
    return codes, [(stream, name) for stream in streams for name in names]


def _distinct(column: pa.DictionaryArray, texts: list[str]) -> tuple[np.ndarray, list[str]]:
    """(the codes of a column without NULLs, int32 or unsigned; the text of each code).

    texts: the column's dictionary. A text may stand in it twice; then both get one code.
    """
    codes = np.asarray(column.indices.to_numpy(zero_copy_only=False))
    if codes.dtype.kind != "u" or len(texts) > np.iinfo(codes.dtype).max:
        codes = codes.astype(np.int32, copy=False)
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    if len(numbers) < len(texts):
        codes = np.array([numbers[text] for text in texts], np.int32)[codes]
    return codes, list(numbers)


def _null_error(plan: Plan, name: str, row: str) -> EventError:
    return EventError(
        f"query {plan.name!r}: column {name!r} is NULL in {row}; every event needs one (another "
        "column of types is named by with_options(type_column=…), --type-column)"
    )
