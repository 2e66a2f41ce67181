"""The columns that MEASURES computes, for some matches at once.

An expression is a tree, as those of CEL's SELECT are (`arrow/vectors`). Its leaves are values of
rows that navigation finds, and aggregates of the rows that a row of the result sees; kernels
(`measures`) find both. Rejected: code generated for each query, which had to be compiled for an
answer, and could not have functions of texts and times.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import numbers, plain, taken
from celc_runtime.arrow.decimal_vectors import ranks_of_decimals, sums_of_decimals
from celc_runtime.arrow.events.partition_keys import codes_of_keys
from celc_runtime.arrow.vectors import Numbers, Value, as_column, column_of
from celc_runtime.plan import expressions as trees
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.expressions import Leaf, OfTypes
from celc_runtime.plan.row_pattern import Measure, RowAggregate, RowPlan, SortedBy, Variables
from celc_runtime.row_pattern import passes
from celc_runtime.row_pattern.able import in_utc
from celc_runtime.row_pattern.measures import (
    aggregate_durations,
    aggregate_real,
    aggregate_whole,
    least_or_greatest_place,
    list_visible,
    listed_rows,
    navigate,
)
from celc_runtime.row_pattern.sorting import first_null, ranks_of_texts, sort_keys


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

    @cached_property
    def _of_each(self) -> tuple[np.ndarray, np.ndarray]:
        """(int64, int32) for each row of the matches: the row, and its variable. Only aggregates
        ask for them."""
        rows, labels = np.zeros(len(self._labels), np.int64), np.zeros(len(self._labels), np.int32)
        listed_rows(self._matches, self._labels, rows, labels)
        return rows, labels

    # --- leaves -----------------------------------------------------------------------------------

    def _of_result(self, leaf: Leaf | OfTypes) -> Value:
        """A leaf for each row of the result."""
        match leaf:
            case trees.ValueOfRow(column=column, row=int(row)):
                return self._column(column, self._navigated(row)[0])
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
                return self._column(leaf.column, self._of_each[0])
            case trees.LabelOfRow(row=None):
                return self._names(self._of_each[1])
            case _:
                raise AssertionError("an aggregate is taken of the rows of a match")

    def _column(self, number: int, rows: np.ndarray) -> pa.Array:
        """Values of a column at rows (int64), NULL for −1; those of a TIMESTAMP_NTZ as of UTC."""
        column, missing = self._columns[number], rows < 0
        if missing.any():
            return in_utc(column.take(pa.array(rows, mask=missing)))
        return in_utc(taken(column, rows))

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
        given: _Given = (
            *(self._matches, self._labels, self._shown),
            *(self._chosen(one.variables), one.final),
        )
        if one.function == "ARRAY_AGG" or one.distinct:
            places, ends = self._places(one, argument, given)
            argument = argument.take(pa.array(places))
            if one.function == "ARRAY_AGG":
                offsets = np.concatenate([[0], ends]).astype(np.int32)
                lists = pa.ListArray.from_arrays(pa.array(offsets), argument)
                return as_column(lists, one.type)
            given = _as_matches(ends)
        match one.function:
            case "MIN" | "MAX":
                return _extreme(one, given, argument)
            case "COUNT":
                valid = np.zeros(0, np.bool_)
                if one.argument is not None:
                    valid = np.asarray(argument.is_valid())
                whole = np.zeros(len(argument), np.int64)
                return _sums(one, given, whole, valid, counts=True)
            case "SUM" | "AVG" if pa.types.is_decimal(argument.type):
                return _decimal_sums(one, given, argument)
            case "SUM" | "AVG" if pa.types.is_duration(argument.type):
                return _duration_sums(one, given, argument)
            case "SUM" | "AVG":
                values, valid = numbers(argument)
                is_real = one.function == "AVG" or values.dtype.kind == "f"
                wide = values.astype(np.float64 if is_real else np.int64)
                return _sums(one, given, wide, valid, counts=False)
            case _:
                assert_never(one.function)

    def _argument(self, one: RowAggregate) -> pa.Array:
        """The values that an aggregate is taken of, for each row of the matches."""
        if one.argument is None:
            return pa.nulls(len(self._labels))
        return self._of_rows(one.argument, one.read)

    def _of_rows(self, tree: trees.Tree, type: str) -> pa.Array:
        return plain(column_of(tree, type, self._of_matches, len(self._labels)))

    def _places(
        self, one: RowAggregate, argument: pa.Array, given: _Given
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the matches that an aggregate takes, in its order, and where those of each
        row of the result end."""
        ends = np.empty(len(self._shown), np.int64)
        count = list_visible(*given, ends, np.zeros(0, np.int64))
        places = np.empty(max(count, 1), np.int64)
        list_visible(*given, ends, places)
        places = places[:count]
        if not (one.kept or one.order or one.distinct):
            return places, ends
        of = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        if one.kept is not None:
            kept = pc.fill_null(self._of_rows(one.kept, "BOOLEAN"), False)
            chosen = kept.to_numpy(zero_copy_only=False)[places]
            places, of = places[chosen], of[chosen]
        if one.order:
            keys = [key for by in one.order for key in self._sort_keys(by, places)]
            places = places[np.lexsort([*reversed(keys), of])]
        if one.distinct:
            codes = codes_of_keys([argument.take(pa.array(places))], len(places))
            pairs = of * (int(codes.max(initial=0)) + 1) + codes
            firsts = np.sort(np.unique(pairs, return_index=True)[1])
            places, of = places[firsts], of[firsts]
        return places, np.searchsorted(of, np.arange(len(ends)), side="right")

    def _sort_keys(self, by: SortedBy, places: np.ndarray) -> list[np.ndarray]:
        column = self._of_rows(by.value, by.type).take(pa.array(places))
        if column.null_count and by.nulls_first is None:
            row = int(self._of_each[0][places[first_null(column)]])
            raise EventError(
                f"query {self._plan.name!r} sorts the values of an aggregate by one that is NULL "
                f"in row {row} of its order. Leave such rows out by FILTER (WHERE …), or write "
                "NULLS FIRST or NULLS LAST"
            )
        return sort_keys(column, descending=by.descending, nulls_first=by.nulls_first)


_Given: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]
"""What the kernels of aggregates read: the matches, the variables of their rows, the rows of the
result, the variables that count, and whether the aggregate is FINAL."""


def _as_matches(ends: np.ndarray) -> _Given:
    """Some values for each row of the result, as the rows of a match of its own."""
    matches = np.zeros((len(ends), passes.MATCH_COLUMNS), np.int64)
    matches[:, passes.LENGTH] = np.diff(ends, prepend=0)
    matches[:, passes.FIRST_LABEL] = ends - matches[:, passes.LENGTH]
    shown = np.stack([np.arange(len(ends)), matches[:, passes.LENGTH] - 1], axis=1)
    labels = np.zeros(int(ends[-1]) if len(ends) else 0, np.int32)
    return matches, labels, shown, np.ones(1, np.bool_), True


def _sums(
    one: RowAggregate, given: _Given, values: np.ndarray, valid: np.ndarray, *, counts: bool
) -> Numbers:
    """COUNT, SUM and AVG of numbers of 64 bits."""
    rows = len(given[2])
    results, found = np.empty(rows, values.dtype), np.empty(rows, np.int64)
    kernel = aggregate_real if values.dtype == np.float64 else aggregate_whole
    kernel(*given, values, np.array(valid, np.bool_), results, found)
    if counts:
        return Numbers(found, np.ones(len(found), np.bool_))
    if one.function == "AVG":
        results = results / np.maximum(found, 1)
    return Numbers(results, found > 0)


def _duration_sums(one: RowAggregate, given: _Given, argument: pa.Array) -> Numbers:
    values, valid = numbers(argument)
    rows = len(given[2])
    found = Numbers(np.empty(rows, np.int64), np.empty(rows, np.bool_))
    aggregate_durations(*given, values, valid, one.function == "AVG", *found)
    return found


def _decimal_sums(one: RowAggregate, given: _Given, argument: pa.Array) -> Numbers:
    rows, labels, shown, variables, final = given
    matches, places = shown[:, 0], shown[:, 1]
    begins = rows[matches, passes.FIRST_LABEL]
    lengths = rows[matches, passes.LENGTH] if final else places + 1
    chosen = pa.array(variables[labels])
    taken = pc.if_else(chosen, argument, pa.scalar(None, argument.type))
    return sums_of_decimals(taken, begins, begins + np.maximum(lengths, 0), one.function)


def _extreme(one: RowAggregate, given: _Given, argument: pa.Array) -> pa.Array:
    values, valid = _ordered(argument)
    places = np.empty(len(given[2]), np.int64)
    least = one.function == "MIN"
    least_or_greatest_place(*given, values, np.array(valid, np.bool_), least, places)
    return argument.take(pa.array(places, mask=places < 0))


def _ordered(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Values as int64 or float64 in the order of their type, and where they are not NULL."""
    if pa.types.is_decimal(column.type):
        return ranks_of_decimals(column)
    if pa.types.is_string(column.type):
        return ranks_of_texts(column), np.asarray(column.is_valid())
    values, valid = numbers(column)
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64), valid
