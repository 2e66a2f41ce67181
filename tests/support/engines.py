"""Compiled queries in tests: ways to build them, to feed them, and to read what they answer."""

from __future__ import annotations

import datetime as dt
import importlib
import importlib.util
import inspect
import pkgutil
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

import black
import celc_runtime
import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, Plan
from celc_runtime.engine.totals import bounded_elements, total_elements
from celc_runtime.engine.totals import kernel as totals
from celc_runtime.engine.values import wide_numbers
from celc_runtime.jit import kernels, shipping
from celc_runtime.jit.kernels import Kernel
from celc_runtime.plan.schemas import input_schema
from celc_runtime.run.answer import counted

from celc import Matcher
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options
from celc.plan.strategy import GENERAL_ENGINE, Counted, LongestRuns, UnionLists

# What the runtime loads only when a query needs it must not be loaded first inside `interpreted`.
for _module in pkgutil.walk_packages(celc_runtime.__path__, "celc_runtime."):
    importlib.import_module(_module.name)

Event = Mapping[str, Any]
Row = dict[str, Any]

# The columns of the streams that `strategies` makes, where a query does not read them itself.
COLUMNS = {
    "type": pa.string(),
    "stream": pa.string(),
    "id": pa.int32(),
    "src": pa.int32(),
    "dst": pa.int32(),
    "value": pa.float64(),
    "name": pa.string(),
    "ts": pa.int64(),
    "row": pa.int64(),
    "number": pa.int64(),
    "ratio": pa.float32(),
    "code": pa.string(),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "at": pa.timestamp("us", tz="UTC"),
    "took": pa.duration("us"),
    "px": pa.decimal128(10, 2),
    "q": pa.decimal128(18, 4),
    "w": pa.decimal128(38, 10),
}


# --- building -------------------------------------------------------------------------------------


@contextmanager
def interpreted(*, formatted: bool = False) -> Iterator[None]:
    """Modules that are loaded inside run as plain Python; `celc_runtime` stays compiled.

    Compiling one takes Numba about a second. Unless `formatted`, their text is also left as the
    templates lay it out, because black takes nine tenths of the rest.
    """
    with pytest.MonkeyPatch.context() as patch:
        # Only what is imported from now on: switching Numba off altogether would break kernels of
        # the runtime that are compiled for the first time in here.
        patch.setattr(kernels, "njit", lambda **options: lambda function: function)
        # Modules are kept by their text; neither kind may be taken for the other.
        patch.setattr(shipping, "_loaded", {})
        if not formatted:
            patch.setattr(black, "format_str", lambda text, mode: text)
        yield


@contextmanager
def tier(of_random: random.Random | None = None) -> Iterator[None]:
    """Kernels are run by Python inside, whatever they take, as those of users are at first; with
    `of_random` each call by Python or by machine code."""

    def call(kernel: Kernel, *arguments: Any) -> Any:
        if kernels._now.interprets:
            return kernel.plain(*arguments)
        if of_random is not None and of_random.random() < 0.5:
            return kernel.compiled(*arguments)
        return kernel.interpreted(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "__call__", call)
        yield


class _Wavering:
    """Bounds that numbers sometimes have outgrown at once, though none is large."""

    def __init__(self, random_of: random.Random) -> None:
        self._random_of = random_of

    def __rshift__(self, bits: np.uint64) -> np.uint64:
        return np.uint64(self._random_of.choice((0, 1 << 62)))


@contextmanager
def plain_totals(wavering: random.Random | None = None) -> Iterator[None]:
    """Totals are added up by plain Python inside: there is a kernel for each number of measures,
    and to compile one takes seconds. wavering: the kernel for numbers without bounds takes over,
    and gives back, at random events."""
    plain = _totals_in_python()
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
        patch.setattr(counted, "totals_update", plain.totals_update)
        if wavering is not None:
            patch.setattr(plain, "_LIMIT", _Wavering(wavering))
            patch.setattr(counted, "_STAY", wavering.randint(1, 4))
        yield


@cache
def _totals_in_python() -> Any:
    """A copy of the kernel of totals, and of what it calls, that is not compiled."""
    wide, elements, bounded, plain = map(
        in_python, (wide_numbers, total_elements, bounded_elements, totals)
    )
    for reader, read in (
        (elements, wide),
        (bounded, wide),
        (bounded, elements),
        (plain, elements),
        (plain, bounded),
    ):
        for name in vars(reader).keys() & vars(read).keys():
            if inspect.isfunction(getattr(read, name)):
                setattr(reader, name, getattr(read, name))
    bounded.parts_of_others = elements.parts_of_others
    plain.parts_of_totals = elements.parts_of_totals
    plain.parts_of_bounded_totals = bounded.parts_of_bounded_totals
    return plain


def in_python(module: ModuleType) -> Any:
    """A copy of a module whose functions are not compiled."""
    assert module.__file__ is not None
    spec = importlib.util.spec_from_file_location(f"{module.__name__}in_python", module.__file__)
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    with interpreted():
        spec.loader.exec_module(copy)
    return copy


def engines(
    text: str, options: Options | None = None, *, general: bool = True
) -> dict[str, Matcher]:
    """The file compiled as it is (`chosen`), and for the general engine in any case (`general`).

    Only the second where the first is the same. general: whether both are wanted.
    """
    options = options or Options()
    source = Source("query.cel", text)
    chosen = compile_source(source, options)
    programs = [stages.program for stages in chosen.queries]
    if all(
        isinstance(p.update, UnionLists) and not isinstance(p.listing, LongestRuns | Counted)
        for p in programs
    ):
        return {"general": Matcher(chosen.module_text("test"), chosen.warnings)}
    made = {}
    if general:
        by_lists = compile_source(source, options, updates=GENERAL_ENGINE)
        made["general"] = Matcher(by_lists.module_text("test"), by_lists.warnings)
    # The last one, by which tests of one engine alone take it.
    made["chosen"] = Matcher(chosen.module_text("test"), chosen.warnings)
    return made


def only_query(matcher: Matcher) -> CompiledQuery:
    """The query of a file that has one."""
    found: list[CompiledQuery] = [*matcher.queries.values()]
    (query,) = found
    return query


# --- feeding --------------------------------------------------------------------------------------


def as_on_spark(query: CompiledQuery) -> CompiledQuery:
    """The query whose rows on one machine are those that Spark gives where nobody asks for
    positions."""
    return CompiledQuery(query.program.on_spark)


def table_of(plan: Plan, events: Sequence[Event]) -> pa.Table:
    """Events as a table: the columns that the query reads, and all others that the events have."""
    read = {field.name: field.type for field in input_schema(plan)}
    names = dict.fromkeys(
        [*read, *plan.source.tiebreak, *(name for event in events for name in event)]
    )
    types = {name: read.get(name, COLUMNS.get(name)) for name in names}
    for name in ("id", "src", "dst"):
        if name not in read and any(isinstance(event.get(name), float) for event in events):
            types[name] = pa.float64()
    # A few cases have times in `ts`.
    if "ts" not in read and any(isinstance(event.get("ts"), dt.datetime) for event in events):
        types["ts"] = COLUMNS["at"]
    return pa.table(
        {name: column([event.get(name) for event in events], type) for name, type in types.items()}
    )


def in_parts(plan: Plan, events: Sequence[Event]) -> list[Event]:
    """Events with one partition after another, as `match_arrow` reads them."""
    if not plan.source.partition_by or plan.interleaves:
        return by_ends(plan, events)
    return [event for part in parts_of(plan, events).values() for event in part]


def by_ends(plan: Plan, events: Sequence[Event]) -> list[Event]:
    """Events in the order that the query says itself, where they last; else as they are given."""
    if plan.source.begin is None:
        return list(events)
    (end,) = plan.source.order_by
    return sorted(events, key=lambda event: event[end])


def parts_of(plan: Plan, events: Sequence[Event]) -> dict[tuple[Any, ...], list[Event]]:
    """The events that have a position, in their partitions."""
    declared = {*plan.source.types, *plan.source.other_types}
    parts: defaultdict[tuple[Any, ...], list[Event]] = defaultdict(list)
    for event in by_ends(plan, events):
        if plan.source.stream_column:
            known = (event["stream"], event["type"]) in declared
        elif plan.source.type_column:
            known = event["type"] in {name for _, name in declared}
        else:
            known = True
        if known:
            parts[key_of(plan, event)].append(event)
    return dict(parts)


def key_of(plan: Plan, event: Event) -> tuple[Any, ...]:
    """The partition of an event of a declared type."""
    names = list(plan.source.partition_by)
    for key in plan.source.chosen_keys:
        (names[key.place],) = (
            attribute
            for attribute, types in key.ways
            if any(
                event["type"] == name
                and (not plan.source.stream_column or event["stream"] == stream)
                for stream, name in types
            )
        )
    return tuple(as_key(event.get(name)) for name in names)


def as_key(value: Any) -> Any:
    """A value that is equal where keys are: NaN equals NaN, and −0.0 is 0.0."""
    return "NaN" if value != value else value + 0.0 if isinstance(value, float) else value


def batches_of(table: pa.Table, rng: random.Random) -> Iterator[pa.RecordBatch]:
    """The table cut into batches at random, some of them empty, columns coded this or that way."""
    cuts = sorted(rng.choices(range(len(table) + 1), k=rng.randint(0, 4)))
    for start, end in zip([0, *cuts], [*cuts, len(table)], strict=True):
        # Slices of a larger table, so that columns have offsets.
        (batch,) = table.slice(start, end - start).combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], table.schema)
        ]
        columns = [_coded(column, rng) for column in batch.columns]
        yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _coded(column: pa.Array, rng: random.Random) -> pa.Array:
    if not pa.types.is_string(column.type):
        return column
    coded = rng.choice([None, None, pa.int32(), pa.int8(), pa.uint8(), pa.large_string()])
    if coded is None:
        return column
    if coded == pa.large_string():
        return column.cast(coded)
    return column.cast(pa.dictionary(coded, pa.string()))


def column(values: Sequence[Any], type: pa.DataType | None) -> pa.Array:
    if type is None or not pa.types.is_duration(type):
        return pa.array(values, type)
    # Arrow takes all durations of Python but the smallest one.
    whole = [
        v // dt.timedelta(microseconds=1) if isinstance(v, dt.timedelta) else v for v in values
    ]
    return pa.array(whole, pa.int64()).cast(type)


# --- reading --------------------------------------------------------------------------------------


def answer_of(query: CompiledQuery, matches: Iterable[Row], events: Sequence[Event]) -> list[Row]:
    """Rows of the output in the form of the cases.

    What else the rows say is held against the events: attributes, times, and that they come in the
    order of their ends.
    """
    plan = query.plan
    parts = parts_of(plan, events)
    answer: list[Row] = []
    last_end: dict[tuple[Any, ...], int] = {}
    for row in matches:
        assert list(row) == query.output_schema.names
        shown = {name: row[name] for name in plan.source.partition_by}
        assert "-0.0" not in map(repr, shown.values()), row
        key = tuple(map(as_key, shown.values()))
        part, start, end = parts[key], row["start_pos"], row["end_pos"]
        # Matches with an absence at their end come as they are decided.
        in_order = plan.choice.deadlines or last_end.get(key, end) <= end
        assert in_order, f"{row} ends before the match that came before it"
        last_end[key] = end
        if plan.source.order_by:
            order, *_ = plan.source.order_by
            assert plan.source.begin or row["start_time"] == part[start][order], row
            assert row["end_time"] == part[end][order], row
        labels = {
            label.name: [event["pos"] for event in row[label.name]] for label in plan.answer.labels
        }
        for label in plan.answer.labels:
            assert labels[label.name] == sorted(set(labels[label.name])), row
            for event in row[label.name]:
                wanted = {name: part[event["pos"]].get(name) for name in label.attributes}
                assert [*event] == ["pos", *wanted], row
                assert all(_same(event[name], value) for name, value in wanted.items()), row
        answer.append(
            {
                "partition": shown,
                "start": start,
                "end": end,
                "labels": labels,
                **{name: row[name] for name in ("decided_time",) if name in row},
                **({name: row[name] for name in _ENDS} if plan.source.begin else {}),
                **({"matches": str(row["matches"])} if plan.answer.collapsed else {}),
                **values_of(query, row),
            }
        )
    return answer


_ENDS = ("start_time", "end_time")


def _same(left: object, right: object) -> bool:
    """Whether two values are one; NaN is itself."""
    return left == right or (left != left and right != right)


def values_of(query: CompiledQuery, row: Row) -> Row:
    """The expressions of a row, where the query has any."""
    values = {item.name: row[item.name] for item in query.plan.answer.expressions}
    return {"values": values} if values else {}


_TEXTS = (
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.large_string()),
)
"""How texts come: of pandas and polars, too, as large ones and as views."""


def with_texts_of_any_form(table: pa.Table, rng: random.Random) -> pa.Table:
    """The same table, its columns of texts in forms of Arrow at random."""
    for number, field in enumerate(table.schema):
        if field.type == pa.string():
            form = rng.choice(_TEXTS)
            column = table.column(number)
            if pa.types.is_dictionary(form):
                texts = column.cast(form.value_type).combine_chunks()
                column = pa.chunked_array([texts.dictionary_encode().cast(form)])
            table = table.set_column(number, field.name, column.cast(form))
    return table


def answers(
    query: CompiledQuery, events: Sequence[Event], rng: random.Random, *, by: str = ""
) -> dict[str, list[Row]]:
    """What the query answers by each way to run it on one machine, in the form of the cases.

    by: the only way that is wanted, if not all of them.
    """
    plan, table = query.plan, table_of(query.plan, events)
    if by == "match_table":
        found = query.match_table(with_texts_of_any_form(table, rng)).to_pylist()
        return {by: answer_of(query, found, events)}
    one_part = not plan.source.partition_by or plan.interleaves
    as_given = one_part and plan.source.begin is None
    ordered = table if as_given else table_of(plan, in_parts(plan, events))
    forms = rng.random()
    batches = query.match_arrow(
        part
        for batch in batches_of(ordered, rng)
        for part in with_texts_of_any_form(
            pa.Table.from_batches([batch]), random.Random(forms)
        ).to_batches()
    )
    in_batches = answer_of(query, (row for batch in batches for row in batch.to_pylist()), events)
    if by == "match_arrow":
        return {by: in_batches}
    found = query.match_table(with_texts_of_any_form(table, rng)).to_pylist()
    return {"match_table": answer_of(query, found, events), "match_arrow": in_batches}


def union_rows(query: CompiledQuery, rows: Iterable[Row]) -> list[Row]:
    """Rows of COLLAPSED in the form of the cases."""
    plan = query.plan
    return [
        {
            "partition": {name: row[name] for name in plan.source.partition_by},
            "start": row["start_pos"],
            "end": row["end_pos"],
            "matches": str(row["matches"]),
            "labels": {
                one.name: [event["pos"] for event in row[one.name]] for one in plan.answer.labels
            },
        }
        for row in rows
    ]
