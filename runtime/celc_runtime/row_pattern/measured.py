"""The columns that MEASURES computes, for some matches at once.

An expression is a tree, as those of CEL's SELECT are (`arrow/vectors`). Its leaves are values of
rows that navigation finds, and aggregates of the rows that a row of the result sees; kernels
(`measures`) find both. Rejected: code generated for each query, which had to be compiled for an
answer, and could not have functions of texts and times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import numbers, plain
from celc_runtime.arrow.decimal_vectors import ranks_of_decimals, sums_of_decimals
from celc_runtime.arrow.vectors import Numbers, Value, as_column, column_of
from celc_runtime.plan import expressions as trees
from celc_runtime.plan.expressions import Leaf, OfTypes
from celc_runtime.plan.row_pattern import Measure, RowAggregate, RowPlan, Variables
from celc_runtime.row_pattern import passes
from celc_runtime.row_pattern.measures import (
    aggregate_real,
    aggregate_whole,
    least_or_greatest_place,
    list_visible,
    listed_rows,
    navigate,
)


class Listed:
    """Some matches and the rows of the result that they give, with their measures.

    columns: the columns that are read, by their numbers, in the order of the query. labels: the
    variables of the rows of the matches. shown: the match and the place in it of each row of the
    result.
    """

    def __init__(
        self,
        plan: RowPlan,
        columns: Mapping[int, pa.Array],
        offsets: np.ndarray,
        matches: np.ndarray,
        labels: np.ndarray,
        shown: np.ndarray,
    ) -> None:
        self._plan = plan
        self._columns = columns
        self._offsets = offsets
        self._matches = matches
        self._labels = labels
        self._shown = shown
        self._rows = np.zeros(len(labels), np.int64)
        self._row_labels = np.zeros(len(labels), np.int32)
        listed_rows(matches, labels, self._rows, self._row_labels)
        self._found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._aggregates: dict[int, Value] = {}
        self._unmatched = matches[shown[:, 0], passes.LENGTH] < 0

    def measure(self, measure: Measure) -> pa.Array:
        """The values of a measure for each row of the result."""
        found = plain(column_of(measure.value, measure.type, self._of_result, len(self._shown)))
        if not self._unmatched.any():
            return found
        kept = pa.array(~self._unmatched)
        return pc.if_else(kept, found, pa.scalar(None, found.type))

    # --- leaves -----------------------------------------------------------------------------------

    def _of_result(self, leaf: Leaf | OfTypes) -> Value:
        """A leaf for each row of the result."""
        match leaf:
            case trees.ValueOfRow(column=column, row=int(row)):
                rows, _ = self._navigated(row)
                return self._column(column, pa.array(rows, mask=rows < 0))
            case trees.LabelOfRow(row=int(row)):
                return self._names(self._navigated(row)[1])
            case trees.RowIsThere():
                return pa.array(self._navigated(leaf.row)[0] >= 0)
            case trees.NumberOfMatch():
                return pa.array(self._matches[self._shown[:, 0], passes.MATCH_NUMBER])
            case trees.ValueOfAggregate():
                return self._aggregate(leaf.aggregate)
            case _:
                raise AssertionError("a measure reads rows that navigation finds")

    def _of_matches(self, leaf: Leaf | OfTypes) -> Value:
        """A leaf of an aggregate's argument for each row of the matches."""
        match leaf:
            case trees.ValueOfRow(row=None):
                return self._column(leaf.column, pa.array(self._rows))
            case trees.LabelOfRow(row=None):
                return self._names(self._row_labels)
            case _:
                raise AssertionError("an aggregate is taken of the rows of a match")

    def _column(self, number: int, rows: pa.Array) -> pa.Array:
        """Values of a column at rows, those of a TIMESTAMP_NTZ as of UTC."""
        found = self._columns[number].take(rows)
        is_clock = pa.types.is_timestamp(found.type) and found.type.tz is None
        return found.cast(pa.timestamp("us", "UTC")) if is_clock else found

    def _names(self, labels: np.ndarray) -> pa.Array:
        names = pa.array(self._plan.variables, pa.string())
        return names.take(pa.array(labels, mask=labels < 0))

    def _chosen(self, variables: Variables) -> np.ndarray:
        if variables is None:
            return np.ones(len(self._plan.variables), np.bool_)
        found = np.zeros(len(self._plan.variables), np.bool_)
        found[list(variables)] = True
        return found

    def _navigated(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The row that a navigation finds for each row of the result, and its variable, or −1."""
        if number not in self._found:
            to = self._plan.navigations[number]
            rows = np.empty(len(self._shown), np.int64)
            labels = np.empty(len(self._shown), np.int32)
            place_of = (to.first, to.offset, to.shift, to.final)
            navigate(
                *(self._matches, self._labels, self._offsets, self._shown),
                *(self._chosen(to.variables), place_of, rows, labels),
            )
            self._found[number] = rows, labels
        return self._found[number]

    # --- aggregates -------------------------------------------------------------------------------

    def _aggregate(self, number: int) -> Value:
        if number not in self._aggregates:
            self._aggregates[number] = self._computed(self._plan.aggregates[number])
        return self._aggregates[number]

    def _computed(self, one: RowAggregate) -> Value:
        argument = self._argument(one)
        match one.function:
            case "ARRAY_AGG":
                return self._lists(one, argument)
            case "MIN" | "MAX":
                return self._extreme(one, argument)
            case "COUNT":
                valid = np.zeros(0, np.bool_)
                if one.argument is not None:
                    valid = np.asarray(argument.is_valid())
                whole = np.zeros(len(self._labels), np.int64)
                return self._sums(one, whole, valid, counts=True)
            case "SUM" | "AVG" if pa.types.is_decimal(argument.type):
                return self._decimal_sums(one, argument)
            case "SUM" | "AVG":
                values, valid = numbers(argument)
                is_real = one.function == "AVG" or values.dtype.kind == "f"
                wide = values.astype(np.float64 if is_real else np.int64)
                return self._sums(one, wide, valid, counts=False)
            case _:
                assert_never(one.function)

    def _argument(self, one: RowAggregate) -> pa.Array:
        """The values that an aggregate is taken of, for each row of the matches."""
        if one.argument is None:
            return pa.nulls(len(self._labels))
        return plain(column_of(one.argument, one.read, self._of_matches, len(self._labels)))

    def _given(self, one: RowAggregate) -> tuple[np.ndarray, ...]:
        return self._matches, self._labels, self._shown, self._chosen(one.variables)

    def _sums(
        self, one: RowAggregate, values: np.ndarray, valid: np.ndarray, *, counts: bool
    ) -> Numbers:
        """COUNT, SUM and AVG of numbers of 64 bits."""
        real = values.dtype == np.float64
        results = np.empty(len(self._shown), values.dtype)
        found = np.empty(len(self._shown), np.int64)
        kernel = aggregate_real if real else aggregate_whole
        given = values, np.array(valid, np.bool_)
        kernel(*self._given(one), one.final, *given, results, found)
        if counts:
            return Numbers(found, np.ones(len(found), np.bool_))
        if one.function == "AVG":
            results = results / np.maximum(found, 1)
        return Numbers(results, found > 0)

    def _decimal_sums(self, one: RowAggregate, argument: pa.Array) -> Numbers:
        matches, places = self._shown[:, 0], self._shown[:, 1]
        begins = self._matches[matches, passes.FIRST_LABEL]
        lengths = self._matches[matches, passes.LENGTH] if one.final else places + 1
        chosen = pa.array(self._chosen(one.variables)[self._labels])
        taken = pc.if_else(chosen, argument, pa.scalar(None, argument.type))
        return sums_of_decimals(taken, begins, begins + np.maximum(lengths, 0), one.function)

    def _extreme(self, one: RowAggregate, argument: pa.Array) -> pa.Array:
        values, valid = _ordered(argument)
        places = np.empty(len(self._shown), np.int64)
        given = values, np.array(valid, np.bool_)
        least_or_greatest_place(*self._given(one), one.final, *given, one.function == "MIN", places)
        return argument.take(pa.array(places, mask=places < 0))

    def _lists(self, one: RowAggregate, argument: pa.Array) -> pa.Array:
        ends = np.empty(len(self._shown), np.int64)
        given = *self._given(one), one.final, ends
        count = list_visible(*given, np.zeros(0, np.int64))
        places = np.empty(max(count, 1), np.int64)
        list_visible(*given, places)
        values = argument.take(pa.array(places[:count]))
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        return as_column(pa.ListArray.from_arrays(pa.array(offsets), values), one.type)


def _ordered(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Values as int64 or float64 in the order of their type, and where they are not NULL."""
    if pa.types.is_decimal(column.type):
        return ranks_of_decimals(column)
    if pa.types.is_string(column.type):
        return ranks_of_texts(column), np.asarray(column.is_valid())
    values, valid = numbers(column)
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64), valid


def ranks_of_texts(column: pa.Array) -> np.ndarray:
    """int64 in the order of a column of texts; anything where NULL."""
    coded = column.dictionary_encode()
    ranks = np.empty(max(len(coded.dictionary), 1), np.int64)
    ranks[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(coded.dictionary))
    found: np.ndarray = ranks[pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False)]
    return found
