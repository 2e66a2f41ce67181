"""The rows of a batch that can matter to each of many queries, with each condition tested once.

`Source.relevant` has them for one query, as conditions on the events of each type. Many queries
name the same types, and test the same attributes. So the rows of a type are marked once, and
grouped by the values of an attribute once for all equalities with it. Each other condition is
tested once. A query with an equality then costs what its rows cost, not what the batch costs. This
also holds for an absence of frequent events: between two rows that a match can contain, it reads
one of them.

A query FOR EACH row of a table asks for hundreds of values. To look each of them up costs more than
a pass over the rows of the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import coded, numbers
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.relevance import AttributeTest, Relevant, Way

_COMPARISONS: dict[str, Callable[[np.ndarray, Any], Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": lambda values, number: ~(values <= number),  # NaN is greater than all numbers
    ">=": lambda values, number: ~(values < number),
}
_WIDER = {"LONG": np.int64, "DOUBLE": np.float64}
"""Types in which attributes of narrower types are compared."""

TypedWay: TypeAlias = tuple[tuple[str, str], Way]
"""A way of an event type."""

_Rows = np.ndarray
_NO_ROWS = np.zeros(0, np.int64)
_SEVERAL = 2

_SELECTIVE = 1 / 16  # the part of a type's rows up to which no other equality is looked for

_FEW = 1 / 512  # the part of a batch up to which rows are sorted

_MANY = 24  # values that a test asks for, of which more are not looked up one by one


class RelevantRows:
    """The rows of one batch by types and conditions.

    plan: of the group that reads the batch. events: conforming, of declared types only. parts:
    int64, the rows with which partitions begin, without the first row. of_types: the rows of each
    event type, if the events do not say them.
    """

    def __init__(
        self,
        plan: Plan,
        events: pa.RecordBatch,
        parts: np.ndarray,
        of_types: Mapping[tuple[str, str], np.ndarray] | None = None,
    ) -> None:
        self._plan = plan
        self._events = events
        self._parts = parts
        self._are_types_given = of_types is not None
        self._of_types: dict[tuple[str, str], _Rows] = {**(of_types or {})}
        self._tests: dict[tuple[tuple[str, str], AttributeTest], np.ndarray] = {}
        self._values: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._coded: dict[str, tuple[np.ndarray, np.ndarray, dict[str, int]]] = {}
        self._by_value: dict[tuple[tuple[str, str], str], _Groups] = {}
        self._marks: dict[AttributeTest | tuple[str, str], np.ndarray] = {}

    def of(self, plan: Plan) -> _Rows:
        """int64: the rows that can matter to a query, in order; without `relevant`, all."""
        assert plan.source.relevant is not None
        found = [rows for relevant in plan.source.relevant for rows in self._on_ways(relevant)]
        rows = self._united(found)
        firsts = [
            self._first_between(rows, self._on_way((relevant.stream, relevant.type), way))
            for relevant in plan.source.relevant
            for way in relevant.idempotent
        ]
        return self._united([rows, *firsts]) if firsts else rows

    def marks(self, plans: Iterable[Plan], unknown: str | None = None) -> np.ndarray:
        """bool: the rows that can matter to one of some queries, and perhaps others. Each condition
        is tested on all rows, which is faster for a few queries. unknown: an attribute that can
        have any value."""
        ways: dict[TypedWay, None] = {}
        for plan in plans:
            assert plan.source.relevant is not None
            for one in plan.source.relevant:
                every = (*one.ways, *one.idempotent) or ((),)
                ways |= dict.fromkeys(_asked((one.stream, one.type), every, unknown))
        return self.on_ways(_widest(ways))

    def ways_in_matches(
        self, plan: Plan, types: Iterable[tuple[str, str]], unknown: str | None = None
    ) -> Iterator[TypedWay]:
        """The ways of rows of some event types that a match of a query can contain."""
        assert plan.source.relevant is not None
        for one in plan.source.relevant:
            if (one.stream, one.type) in types:
                ways = one.ways or () if one.idempotent else one.ways or ((),)
                yield from _asked((one.stream, one.type), ways, unknown)

    def on_ways(self, ways: Iterable[TypedWay]) -> np.ndarray:
        """bool: the rows on some ways, and perhaps others."""
        found = np.zeros(len(self._events), np.bool_)
        for type, way in ways:
            found |= self._on_marked_way(type, way)
        return found

    def _on_marked_way(self, type: tuple[str, str], way: Way) -> np.ndarray:
        """bool: the rows of a type on a way."""
        found = self._marked_type(type)
        for clause in way:
            tests = [self._marked(test) for test in clause]
            found = found & (tests[0] if len(tests) == 1 else np.logical_or.reduce(tests))
        return found

    def _marked(self, test: AttributeTest) -> np.ndarray:
        if test not in self._marks:
            self._marks[test] = self._holds(test, slice(None))
        return self._marks[test]

    def _marked_type(self, type: tuple[str, str]) -> np.ndarray:
        if type not in self._marks:
            self._marks[type] = self._is_of(*type)
        return self._marks[type]

    def _is_of(self, stream: str, type: str) -> np.ndarray:
        """bool: the rows of an event type."""
        plan = self._plan
        if plan.source.type_name not in self._events.schema.names:
            return np.ones(len(self._events), np.bool_)
        asked = {plan.source.type_name: type}
        if plan.source.stream_column:
            asked["stream"] = stream
        found = np.ones(len(self._events), np.bool_)
        for name, value in asked.items():
            codes, _, places = self._texts(name)
            found &= codes == places.get(value, len(places))
        return found

    def _on_ways(self, relevant: Relevant) -> Iterator[_Rows]:
        """The rows of a type on its ways. Left out are ways on which one row stands for several."""
        type = relevant.stream, relevant.type
        if not relevant.ways and not relevant.idempotent:
            yield self._rows(type)
        for way in relevant.ways:
            yield self._on_way(type, way)

    def _first_between(self, rows: _Rows, idempotent: _Rows) -> _Rows:
        """The first idempotent rows between any two of `rows`, and before and after these.

        Partitions are treated separately.
        """
        begins = np.concatenate([[0], self._parts, rows + 1])
        places = np.unique(np.searchsorted(idempotent, begins))
        found: _Rows = idempotent[places[: np.searchsorted(places, len(idempotent))]]
        return found

    def _united(self, found: list[_Rows]) -> _Rows:
        """The rows of several lists, each once, in their order."""
        found = [rows for rows in found if len(rows)]
        if len(found) < _SEVERAL:
            return found[0] if found else _NO_ROWS
        if sum(map(len, found)) < _FEW * len(self._events):
            return np.unique(np.concatenate(found))
        # Marking rows costs a pass over the batch, which is less than sorting many of them.
        marked = np.zeros(len(self._events), np.bool_)
        for rows in found:
            marked[rows] = True
        return np.flatnonzero(marked)

    def _on_way(self, type: tuple[str, str], way: Way) -> _Rows:
        rest = list(way)
        equal = [(n, c[0]) for n, c in enumerate(way) if len(c) == 1 and self._is_looked_up(c[0])]
        if not equal:
            rows, masks = self._rows(type), [self._any(type, clause) for clause in rest]
            return rows[np.logical_and.reduce(masks)] if masks else rows
        candidates: list[tuple[_Rows, int]] = []
        for n, test in equal:
            candidates.append((self._equal(type, test), n))
            if len(candidates[-1][0]) < _SELECTIVE * len(self._rows(type)):
                break
        rows, number = min(candidates, key=lambda candidate: len(candidate[0]))
        del rest[number]
        for clause in rest:
            if not len(rows):
                break
            hold = [self._holds(test, rows) for test in clause]
            rows = rows[np.logical_or.reduce(hold)]
        return rows

    @staticmethod
    def _is_looked_up(test: AttributeTest) -> bool:
        return test.operator in ("=", "in") and test.type not in ("FLOAT", "DOUBLE")

    def _rows(self, type: tuple[str, str]) -> _Rows:
        if type not in self._of_types:
            none = self._are_types_given
            self._of_types[type] = _NO_ROWS if none else np.flatnonzero(self._is_of(*type))
        return self._of_types[type]

    def _any(self, type: tuple[str, str], clause: tuple[AttributeTest, ...]) -> np.ndarray:
        """bool, of the rows of a type: where one of the tests is true."""
        found = []
        for test in clause:
            if (type, test) not in self._tests:
                self._tests[type, test] = self._holds(test, self._rows(type))
            found.append(self._tests[type, test])
        truth: np.ndarray = np.logical_or.reduce(found)
        return truth

    def _equal(self, type: tuple[str, str], test: AttributeTest) -> _Rows:
        """The rows of a type with one of the values that a test asks for."""
        if len(test.operands) > _MANY:
            rows = self._rows(type)
            return rows.compress(self._any(type, (test,)))
        key = type, test.attribute
        if key not in self._by_value:
            self._by_value[key] = self._by_values(*key)
        wanted: Iterable[Any] = dict.fromkeys(test.operands)
        if self._is_text(test.attribute):
            places = self._texts(test.attribute)[2]
            wanted = [places[text] for text in wanted if text in places]
        found = [self._by_value[key].of(value) for value in wanted]
        if len(found) == 1:
            return found[0]
        rows = np.concatenate([_NO_ROWS, *found])
        rows.sort()
        return rows

    def _by_values(self, type: tuple[str, str], name: str) -> _Groups:
        values, valid = self._texts(name)[:2] if self._is_text(name) else self._numbers(name)
        known = self._rows(type)
        known = known[valid[known]]
        return _Groups(known, values[known])

    def _is_text(self, name: str) -> bool:
        type = self._events.column(name).type
        return bool(pa.types.is_string(type) or pa.types.is_dictionary(type))

    def _numbers(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        if name not in self._values:
            values, valid = numbers(self._events.column(name))
            whole = np.broadcast_to(valid, values.shape)
            self._values[name] = values, whole
        return self._values[name]

    def _holds(self, test: AttributeTest, rows: _Rows | slice) -> np.ndarray:
        """bool[rows]: where a test is true. Patterns and the order of texts count as true."""
        if test.operator in ("is_null", "is_not_null"):
            null: np.ndarray = np.asarray(self._events.column(test.attribute).is_null())[rows]
            return null if test.operator == "is_null" else ~null
        if self._is_text(test.attribute):
            return self._holds_of_texts(test, rows)
        values, valid = self._numbers(test.attribute)
        values, valid = values[rows], valid[rows]
        # NumPy compares a number with an array in the type of the array.
        values = values.astype(_WIDER.get(test.type, values.dtype), copy=False)
        if test.operator in ("in", "not_in"):
            inside = np.isin(values, np.array(test.operands, values.dtype))
            truth = inside if test.operator == "in" else ~inside
        else:
            truth = _COMPARISONS[test.operator](values, test.operands[0])
        found: np.ndarray = truth & valid
        return found

    def _holds_of_texts(self, test: AttributeTest, rows: _Rows | slice) -> np.ndarray:
        """The same for texts, by a table of the codes that are asked for."""
        codes, valid, places = self._texts(test.attribute)
        asked = np.ones(max(1, len(places)), np.bool_)
        if test.operator in ("=", "in", "!=", "not_in"):
            asked[:] = test.operator in ("!=", "not_in")
            asked[[places[text] for text in test.operands if text in places]] ^= True
        found: np.ndarray = asked.take(codes[rows], mode="clip") & valid[rows]
        return found

    def _texts(self, name: str) -> tuple[np.ndarray, np.ndarray, dict[str, int]]:
        """(integers[rows], the codes of texts, anything where NULL; bool[rows], where they are not;
        the code of each text, in order)."""
        if name not in self._coded:
            text = _with_distinct_texts(coded(self._events.column(name)))
            texts = text.dictionary.to_pylist()
            places = dict(zip(texts, range(len(texts)), strict=True))
            self._coded[name] = *numbers(text.indices), places
        return self._coded[name]


def _asked(type: tuple[str, str], ways: Iterable[Way], unknown: str | None) -> Iterator[TypedWay]:
    """Ways of a type without the clauses that ask for an unknown attribute."""
    for way in ways:
        yield type, tuple(c for c in way if all(test.attribute != unknown for test in c))


def _widest(ways: Iterable[TypedWay]) -> list[TypedWay]:
    """The ways without those whose rows all are on another one: of `v > 36` and `v > 40` one."""
    kept: list[TypedWay] = []
    for way in ways:
        if not any(_is_within(way, other) for other in kept):
            kept = [other for other in kept if not _is_within(other, way)] + [way]
    return kept


def _is_within(way: TypedWay, wider: TypedWay) -> bool:
    """Whether each row on a way is seen to be on another one."""
    return way[0] == wider[0] and all(
        any(all(any(map(partial(_implies, one), clause)) for one in given) for given in way[1])
        for clause in wider[1]
    )


def _implies(test: AttributeTest, other: AttributeTest) -> bool:
    """Whether one test is seen to hold only where another does."""
    sign = test.operator[0]
    if test == other or sign not in "<>" or other.operator[0] != sign:
        return test == other
    (bound,), (further,) = other.operands, test.operands
    if (test.attribute, test.type) != (other.attribute, other.type) or further == bound:
        return False
    return bool(further < bound if sign == "<" else further > bound)  # type: ignore[operator]


class _Groups:
    """Rows by their codes: for each code the rows that have it, in order."""

    def __init__(self, rows: _Rows, codes: np.ndarray) -> None:
        order = _order_of(codes)
        ordered = codes[order]
        self._rows: _Rows = rows[order]
        begins = np.flatnonzero(np.r_[[True], ordered[1:] != ordered[:-1]][: len(rows)])
        ends = [*begins[1:].tolist(), len(rows)][: len(begins)]
        places = zip(begins.tolist(), ends, strict=True)
        self._places = dict(zip(ordered[begins].tolist(), places, strict=True))

    def of(self, value: object) -> _Rows:
        """The rows with a code."""
        begin, end = self._places.get(value, (0, 0))
        return self._rows[begin:end]


def _order_of(codes: np.ndarray) -> np.ndarray:
    """int64: the places of codes in ascending order, equal ones in theirs.

    NumPy sorts numbers of 16 bits by their digits, in a fifth of the time of longer ones.
    """
    if len(codes) and codes.dtype.kind in "iu":
        least = codes.min()
        if int(codes.max()) - int(least) < 1 << 16:
            codes = (codes - least).astype(np.uint16)
    order: np.ndarray = np.argsort(codes, kind="stable")
    return order


def _with_distinct_texts(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same column with equal codes where texts are equal: the dictionary of `UPPER(x.name)` is
    that of `x.name` in capitals, in which a text can stand twice."""
    texts = column.dictionary.dictionary_encode()
    if len(texts.dictionary) == len(column.dictionary):
        return column
    return pa.DictionaryArray.from_arrays(texts.indices.take(column.indices), texts.dictionary)
