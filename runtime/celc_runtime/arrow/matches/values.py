"""The values of SELECT's expressions for all matches in the output buffers at once.

Each node of an expression is evaluated once for a batch of matches. A function of a label is one
pass over the label's events. Arithmetic is NumPy over one value for each match. An attribute of
events is looked up once for all expressions.

Real numbers are added in stream order, one after another, so that a sum does not depend on how the
stream is cut into batches. Rejected: NumPy's pairwise summation, whose last digits differ from
those of Spark and of an addition by hand.

Numbers follow Spark SQL with ANSI mode off. NumPy's whole numbers wrap as Spark's do. For times and
durations, a test before the operation says whether the result fits.

Long: a way for each function and type of a value.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.decimal_vectors import as_doubles, ranks_of_decimals, sums_of_decimals
from celc_runtime.arrow.text_conditions import truth_of_columns, truth_of_values
from celc_runtime.arrow.text_numbers import SpelledTexts, texts_between
from celc_runtime.arrow.vectors import NUMPY_TYPES, Numbers, Value, as_numbers, column_of
from celc_runtime.engine.values.label_sets import (
    count_distinct,
    count_known,
    deviation,
    median,
    median_interval,
    some_known,
    variance,
)
from celc_runtime.engine.values.spark_arithmetic import add_long, less_real
from celc_runtime.engine.values.time_arithmetic import (
    average_interval,
    can_sum_interval,
    sum_interval,
)
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.conditions import TextCondition
from celc_runtime.plan.expressions import (
    Aggregate,
    Computed,
    Leaf,
    OfTypes,
    OwnAggregate,
    OwnCall,
    ParameterValue,
)


class LabelValues:
    """Attributes of the events under each label, for the matches in the output buffers.

    offsets, entries, counts: for each label, as in `LabelEntries`. look_up: the values of an
    attribute for entries. at_end: those of the last event of each match.
    """

    def __init__(
        self,
        labels: tuple[str, ...],
        matches: int,
        offsets: Sequence[np.ndarray],
        entries: Sequence[np.ndarray],
        look_up: Callable[[str, np.ndarray], pa.Array],
        at_end: Callable[[str], pa.Array],
        counts: Sequence[int] = (),
    ) -> None:
        self.matches = matches
        self._numbers = {label: number for number, label in enumerate(labels)}
        self._offsets = offsets
        self._entries = entries
        self._counts = counts
        self.look_up = look_up
        self.at_end = at_end
        self._found: dict[tuple[str, str], pa.Array] = {}

    def offsets(self, label: str) -> np.ndarray:
        """int32[matches + 1]: the events of match m are from `offsets[m]` to before `offsets[m +
        1]`."""
        return self._offsets[self._numbers[label]]

    def entries(self, label: str) -> np.ndarray:
        return self._entries[self._numbers[label]]

    def column(self, label: str, attribute: str) -> pa.Array:
        key = (label, attribute)
        if key not in self._found:
            self._found[key] = self.look_up(attribute, self.entries(label))
        return self._found[key]

    def nth(self, label: str, attribute: str, place: int) -> pa.Array:
        """The attribute of each match's event at a place under the label, from 1, or from the end
        where it is negative; NULL where there are fewer events."""
        if place in (1, -1) and self._counts and self._counts[self._numbers[label]] == 1:
            return self.column(label, attribute)
        offsets = self.offsets(label)
        places = offsets[:-1] + place - 1 if place > 0 else offsets[1:] + place
        bound = (offsets[:-1] <= places) & (places < offsets[1:])
        found = self.look_up(attribute, self.entries(label)[places[bound]])
        if len(found) == self.matches:
            return found
        return found.take(pa.array(np.cumsum(bound) - 1, mask=~bound))


def computed_column(item: Computed, labels: LabelValues) -> pa.Array:
    """The column of an expression of SELECT."""
    tree = item.value
    if isinstance(tree, Aggregate) and tree.function not in _COMPUTED:
        return _from_events(tree, labels)
    return column_of(tree, item.type, partial(_leaf, labels=labels), labels.matches)


# --- functions of a label -------------------------------------------------------------------------


_NUMERIC_FUNCTIONS = ("COUNT", "SUM", "AVG")
_OF_SETS = ("VARIANCE", "STDDEV", "MEDIAN", "DISTINCT")
_COMPUTED = (*_NUMERIC_FUNCTIONS, *_OF_SETS)


def _from_events(tree: Aggregate, labels: LabelValues) -> pa.Array:
    """FIRST, LAST, NTH, MIN, MAX and COLLECT: unchanged values of events, of any type."""
    label, attribute = tree.label, tree.attribute
    assert attribute is not None
    if tree.function in ("FIRST", "LAST", "NTH"):
        place = {"FIRST": 1, "LAST": -1}.get(tree.function, tree.place)
        return labels.nth(label, attribute, place)
    column, offsets = labels.column(label, attribute), labels.offsets(label)
    if tree.function == "COLLECT":
        return pa.ListArray.from_arrays(pa.array(offsets), column)
    places = np.empty(labels.matches, np.int64)
    least_or_greatest(*_in_order(column), offsets, tree.function == "MIN", places)
    return column.take(pa.array(places, mask=places < 0))


def _numeric_function(tree: Aggregate, labels: LabelValues) -> Numbers:
    """COUNT, SUM and AVG."""
    offsets = labels.offsets(tree.label)
    if tree.attribute is None:
        return Numbers(np.diff(offsets).astype(np.int64), np.ones(labels.matches, np.bool_))
    column = labels.column(tree.label, tree.attribute)
    if pa.types.is_decimal(column.type):
        return sums_of_decimals(column, offsets[:-1], offsets[1:], tree.function)
    values, known = _in_order(column)
    if pa.types.is_duration(column.type):
        found = Numbers(np.empty(labels.matches, np.int64), np.empty(labels.matches, np.bool_))
        of_intervals(values, known, offsets, tree.function == "SUM", *found)
        return found
    counts = np.empty(labels.matches, np.int64)
    if tree.function == "SUM" and values.dtype == np.int64:
        totals = np.empty(labels.matches, np.int64)
        whole_sums(values, known, offsets, totals, counts)
        return Numbers(totals, counts > 0)
    sums = np.empty(labels.matches, np.float64)
    real_sums(values.astype(np.float64), known, offsets, sums, counts)
    return Numbers(sums if tree.function == "SUM" else sums / counts, counts > 0)


def _function_of_sets(tree: Aggregate, labels: LabelValues) -> Numbers:
    """VARIANCE, STDDEV, MEDIAN and COUNT(DISTINCT …), by the functions for conditions."""
    assert tree.attribute is not None
    column, offsets = labels.column(tree.label, tree.attribute), labels.offsets(tree.label)
    is_interval = pa.types.is_duration(column.type)
    if tree.function != "DISTINCT" and pa.types.is_decimal(column.type):
        column = as_doubles(column)
    values, known = _in_order(_coded(column))
    whole = tree.function == "DISTINCT" or is_interval
    found = np.empty(labels.matches, np.int64 if whole else np.float64)
    fits = np.empty(labels.matches, np.bool_)
    match tree.function:
        case "VARIANCE" | "STDDEV":
            variances(values, known, offsets, tree.function == "STDDEV", found, fits)
        case "MEDIAN" if is_interval:
            medians_of_intervals(values, known, offsets, found, fits)
        case "MEDIAN":
            medians(values, known, offsets, found, fits)
        case _:
            counts_of_distinct(values, known, offsets, found, fits)
    return Numbers(found, fits)


def _coded(column: pa.Array) -> pa.Array:
    """The column; texts become a number for each different text."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type):
        # The dictionary of a column of chunks can hold a text twice.
        plain = column.dictionary.dictionary_encode()
        column = plain.indices.take(column.indices)
    return column


def _own_aggregate(tree: OwnAggregate, labels: LabelValues) -> Value:
    """The values of an aggregate that the query's file declares."""
    arguments: list[np.ndarray | np.int64] = []
    for attribute in tree.columns:
        column = labels.column(tree.label, attribute)
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        arguments += as_numbers(column)
    for text in tree.texts:
        names = text.attributes
        columns = [labels.column(tree.label, name).cast(pa.string()) for name in names]
        if isinstance(text, TextCondition):
            truth = truth_of_values(text, pc.fill_null(columns[0], ""))
            is_null = np.array(columns[0].is_null(), np.bool_)
            arguments.append(np.where(is_null, text.of_null, truth))
        else:
            arguments.append(truth_of_columns(text, *columns))
    spelled = SpelledTexts(tree.spellings)
    arguments += [spelled.of(labels.column(tree.label, name)) for name in tree.spelled]
    if tree.spelled or tree.spellings:
        arguments += [*map(np.int64, range(len(tree.spellings))), *spelled.letters]
    values = np.empty(labels.matches, NUMPY_TYPES.get(tree.type, np.int64))
    known = np.empty(labels.matches, np.bool_)
    made = tree.function(*arguments, labels.offsets(tree.label), values, known)
    if tree.is_made:
        return texts_between(made, values, known)
    if tree.type == "STRING":
        return spelled.texts_of(values, known)
    return Numbers(values, known)


def _own_call(tree: OwnCall, labels: LabelValues) -> Numbers:
    """The values of a function of one's own."""
    columns = [as_numbers(labels.column(*one)) for one in tree.columns]
    arguments = [part for numbers in columns for part in numbers]
    values = np.empty(labels.matches, NUMPY_TYPES[tree.type])
    tree.function(*arguments, *map(labels.offsets, tree.labels), values)
    return Numbers(values, np.ones(labels.matches, np.bool_))


def _in_order(column: pa.Array) -> Numbers:
    """Values as int64 or float64 in the order of their type, so that few kernels serve all
    types."""
    if pa.types.is_decimal(column.type):
        return ranks_of_decimals(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    values, known = as_numbers(column)
    return Numbers(values.astype(np.float64 if values.dtype.kind == "f" else np.int64), known)


@njit(nogil=True, cache=True)
def least_or_greatest(values, known, offsets, least, places):  # type: ignore[no-untyped-def]
    """Write the index of each match's first least (or greatest) known value, −1: it has none.

    NaN is greater than any number.
    """
    for match in range(places.shape[0]):
        best = -1
        for place in range(offsets[match], offsets[match + 1]):
            if known[place]:
                value = values[place]
                if (
                    best < 0
                    or (least and less_real(value, values[best]))
                    or (not least and less_real(values[best], value))
                ):
                    best = place
        places[match] = best


@njit(nogil=True, cache=True)
def whole_sums(values, known, offsets, totals, counts):  # type: ignore[no-untyped-def]
    """Write the sum of each match's known values, modulo 2⁶⁴, and their number."""
    for match in range(totals.shape[0]):
        total, count = np.int64(0), 0
        for place in range(offsets[match], offsets[match + 1]):
            if known[place]:
                total = add_long(total, values[place])
                count += 1
        totals[match], counts[match] = total, count


@njit(nogil=True, cache=True)
def of_intervals(values, known, offsets, is_sum, found, fits):  # type: ignore[no-untyped-def]
    """Write the sum or average of each match's known durations, and whether there is one that
    fits."""
    for match in range(found.shape[0]):
        events = np.arange(offsets[match], offsets[match + 1])
        fits[match] = some_known(known, events)
        if is_sum:
            fits[match] &= can_sum_interval(values, known, events)
            found[match] = sum_interval(values, known, events)
        else:
            found[match] = average_interval(values, known, events)


@njit(nogil=True, cache=True)
def real_sums(values, known, offsets, totals, counts):  # type: ignore[no-untyped-def]
    """Write the sum of each match's known values, added one after another, and their number."""
    for match in range(totals.shape[0]):
        total, count = 0.0, 0
        for place in range(offsets[match], offsets[match + 1]):
            if known[place]:
                total += values[place]
                count += 1
        totals[match], counts[match] = total, count


@njit(nogil=True, cache=True)
def variances(values, known, offsets, is_root, found, fits):  # type: ignore[no-untyped-def]
    """Write the variance of each match's known values, or its root, and whether it has two."""
    for match in range(found.shape[0]):
        events = np.arange(offsets[match], offsets[match + 1])
        fits[match] = count_known(known, events) > 1
        if is_root:
            found[match] = deviation(values, known, events)
        else:
            found[match] = variance(values, known, events)


@njit(nogil=True, cache=True)
def medians(values, known, offsets, found, fits):  # type: ignore[no-untyped-def]
    """Write the median of each match's known values, and whether it has one."""
    room = np.empty(values.shape[0], np.int64)
    for match in range(found.shape[0]):
        events = np.arange(offsets[match], offsets[match + 1])
        fits[match] = some_known(known, events)
        found[match] = median(values, known, events, room)


@njit(nogil=True, cache=True)
def medians_of_intervals(values, known, offsets, found, fits):  # type: ignore[no-untyped-def]
    """Write the median of each match's known durations, and whether it has one."""
    room = np.empty(values.shape[0], np.int64)
    for match in range(found.shape[0]):
        events = np.arange(offsets[match], offsets[match + 1])
        fits[match] = some_known(known, events)
        found[match] = median_interval(values, known, events, room)


@njit(nogil=True, cache=True)
def counts_of_distinct(values, known, offsets, found, fits):  # type: ignore[no-untyped-def]
    """Write the number of different known values of each match."""
    room = np.empty(values.shape[0], np.int64)
    for match in range(found.shape[0]):
        events = np.arange(offsets[match], offsets[match + 1])
        found[match], fits[match] = count_distinct(values, known, events, room), True


# --- expressions ----------------------------------------------------------------------------------


def _leaf(tree: Leaf | OfTypes, labels: LabelValues) -> Value:
    """The value of a function of a label, or of an attribute of the parameter set."""
    match tree:
        case Aggregate():
            if tree.function in _NUMERIC_FUNCTIONS:
                return _numeric_function(tree, labels)
            if tree.function in _OF_SETS:
                return _function_of_sets(tree, labels)
            return _from_events(tree, labels)
        case OwnAggregate():
            return _own_aggregate(tree, labels)
        case OwnCall():
            return _own_call(tree, labels)
        case ParameterValue():
            return labels.at_end(tree.column)
        case _:
            raise AssertionError("an attribute of one event is FIRST of its label")
