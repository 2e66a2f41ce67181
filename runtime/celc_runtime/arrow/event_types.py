"""Columns `type` and `stream` → codes of event types."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import coded, zeros
from celc_runtime.arrow.codes import DeclaredTypes
from celc_runtime.arrow.row_names import RowNames
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan


class EventTypes:
    """Codes the types of one run's batches; remembers the dictionaries that batches share."""

    def __init__(self, plan: Plan, rows: RowNames) -> None:
        self._plan = plan
        self._rows = rows
        self._names: tuple[pa.Array, list[str]] | None = None
        self._declared: DeclaredTypes | None = None

    def codes(self, events: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """int32 codes of the rows' types, int64 the codes that the plan's types have among them
        (−1: none), and bool[rows] which rows have a declared type (None: all).

        Dictionary codes are taken as they come, so that a batch costs nothing but the comparisons.
        """
        plan = self._plan
        if plan.type_name not in events.schema.names:
            return zeros(len(events)), np.zeros(len(plan.types), np.int64), None
        codes, names = self._text_codes(events, plan.type_name)
        values: list[tuple[str, str]] | list[str]
        if plan.stream_column:
            stream_codes, streams = self._text_codes(events, "stream")
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

    def _text_codes(self, events: pa.RecordBatch, name: str) -> tuple[np.ndarray, list[str]]:
        """int32 codes of a text column without NULLs, and the distinct texts they stand for."""
        column = events.column(name)
        if column.null_count:
            raise EventError(
                f"query {self._plan.name!r}: column {name!r} is NULL in "
                f"{self._rows.first(events, column.is_null())}; every event needs one"
            )
        if name == self._plan.type_name and column.type == pa.string():
            if self._declared is None:
                pairs = (*self._plan.types, *self._plan.other_types)
                self._declared = DeclaredTypes([type for _, type in pairs])
            if self._declared.can_tell:
                return self._declared.codes(column)
        column = coded(column)
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
