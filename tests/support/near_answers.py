"""Near misses by the reference and by the compiled queries, in one form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from cases_io import with_times
from celc_runtime.many.near.query import NearRuns
from celc_runtime.plan.near.queries import ROW, TOUCHED
from engines import table_of
from places import CASES
from reference.near_misses import near_misses

from celc.diagnostics.source import Source
from celc.driver.near import near_query
from celc.options import Options

Row = tuple[Any, ...]


def by_reference(text: str, events: Sequence[Mapping[str, Any]], **asked: Any) -> list[Row]:
    """The near misses by the definitions, sorted; `asked` are the arguments of `near_misses`."""
    return sorted(
        _row(
            dict(one.match.partition),
            one.match.start,
            one.match.end,
            {label: list(places) for label, places in one.match.labels},
            (one.part, one.line, one.column, one.amount),
            {name: dict(row) for name, row in one.match.parameters},
        )
        for one in near_misses(text, events, **asked)
    )


def near_cases() -> list[dict[str, Any]]:
    """The cases of near misses."""
    lines = (CASES / "near" / "44-near-misses.jsonl").read_text("utf-8").splitlines()
    return [with_times(json.loads(line)) for line in lines]


def asked_of(case: Mapping[str, Any]) -> dict[str, Any]:
    """What a case asks for beside its query and its events."""
    options = case["options"]
    return {
        "near": options.get("near", 0.1),
        "all_parts": options.get("parts") == "all",
        "order_by": options.get("order_by"),
        "ties": options.get("ties"),
        "at_end": options.get("at_end", "open"),
        "parameters": case.get("parameters"),
    }


def from_case(case: Mapping[str, Any]) -> list[Row]:
    """The near misses that a case expects, sorted."""
    return sorted(
        _row(
            one["partition"],
            one["start"],
            one["end"],
            one["labels"],
            (one["part"], one["line"], one["column"], one["amount"]),
            one.get("parameters", {}),
        )
        for one in case["near"]
    )


def by_compiler(
    text: str,
    events: Sequence[Mapping[str, Any]],
    *,
    near: float | Mapping[str, float] = 0.1,
    all_parts: bool = False,
    order_by: Sequence[str] | None = None,
    at_end: str = "open",
    parameters: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    ties: str | None = None,
) -> list[Row]:
    """The near misses of the compiled query, sorted."""
    query, table, tables = compiled_near(
        text,
        events,
        near=near,
        all_parts=all_parts,
        order_by=order_by,
        at_end=at_end,
        parameters=parameters,
        ties=ties,
    )
    return rows_of(query, query.near_misses(table, **tables).to_pylist())


def compiled_near(
    text: str,
    events: Sequence[Mapping[str, Any]],
    *,
    near: float | Mapping[str, float],
    all_parts: bool,
    order_by: Sequence[str] | None,
    at_end: str,
    parameters: Mapping[str, Sequence[Mapping[str, Any]]] | None,
    ties: str | None,
) -> tuple[NearRuns, pa.Table, dict[str, pa.Table]]:
    """The compiled query with its events, and the tables of its parameters."""
    order = None if order_by is None else tuple(order_by)
    options = Options(order_by=order, ties=ties, at_end=at_end)
    query, _ = near_query([Source("query.cel", text)], options, near=near, all_parts=all_parts)
    plan = query.answer.plan
    tables = {}
    for name, rows in (parameters or {}).items():
        assert plan.source.parameters is not None
        schema = pa.schema(
            [(one.name, TYPES[one.type]) for one in plan.source.parameters.attributes]
        )
        tables[name] = pa.Table.from_pylist(list(rows), schema)
    return query, _table(plan, events), tables


def rows_of(query: NearRuns, found: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows of near misses in the one form, sorted."""
    plan, labels = query.answer.plan, query.plan.shown
    set_name = None if plan.source.parameters is None else plan.source.parameters.name
    return sorted(
        _row(
            {name: row[name] for name in plan.source.key_columns if name in row},
            row["start_pos"],
            row["end_pos"],
            {label: [one["pos"] for one in row[label] or ()] for label in labels},
            (row["part"], row["line"], row["column"], row["amount"]),
            {} if set_name is None else {set_name: row[set_name]},
        )
        for row in found
    )


def _table(plan: Any, events: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Events as a table, without the columns that the queries add."""
    table = table_of(plan, events)
    return table.drop_columns([name for name in (ROW, TOUCHED) if name in table.column_names])


TYPES = {"INT": pa.int32(), "DOUBLE": pa.float64(), "LONG": pa.int64(), "STRING": pa.string()}


def _row(
    partition: Mapping[str, Any],
    start: int,
    end: int,
    labels: Mapping[str, Sequence[int]],
    told: tuple[str, int, int, float],
    parameters: Mapping[str, Any],
) -> Row:
    part, line, column, amount = told
    texts = (
        json.dumps(one, sort_keys=True, default=str) for one in (partition, parameters, labels)
    )
    return (*texts, start, end, part, line, column, round(amount, 9))
