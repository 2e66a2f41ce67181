"""The ways to run a query on Spark: by `match`, `match_arrow`, `match_pandas`, and in SQL.

Queries run in one Spark job for each way, because a job costs more than such a query.

`match` and SQL have no positions unless they are asked for, and the cases tell matches by them. So
rows without positions are compared with those of one machine, which are the expected ones, less
their positions.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
import sysconfig
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from celc_runtime.plan.plan import Plan
from celc_runtime.query import CompiledQuery
from places import ROOT
from reference import difference

INTERPRETED_PLANS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings with which Spark compiles no plan."""


def fewer_processes() -> dict[str, str]:
    """Settings with which Spark asks no program of the system about each file of a checkpoint,
    which took it two processes a file."""
    room = "org.apache.spark.sql.execution.streaming"
    if has_table_functions():
        room += ".checkpointing"
    name = f"{room}.FileSystemBasedCheckpointFileManager"
    return {"spark.sql.streaming.checkpointFileManagerClass": name}


_TYPES = {
    "id": pa.int32(),
    "src": pa.int32(),
    "dst": pa.int32(),
    "value": pa.float64(),
    "ts": pa.int64(),
    "mileage": pa.int64(),
    "n": pa.int32(),
    "ok": pa.bool_(),
}
_OF_PYTHON = {
    bool: pa.bool_(),
    int: pa.int32(),
    float: pa.float64(),
    dt.datetime: pa.timestamp("us", tz="UTC"),
    dt.date: pa.date32(),
}
"""Types of the columns that only some cases have, by their values; others are texts."""


def worker_python(folder: Path, *, compiles: bool = False, runtime: bool = False) -> Path:
    """A Python that sees the installed packages, but none that an editable install adds.

    compiles: whether what is generated becomes machine code; for answers alone it need not.
    runtime: whether it sees the runtime of this checkout.
    """
    path = folder / ("python-with-the-runtime" if runtime else "python-without-celc")
    packages = sysconfig.get_paths()["purelib"] + (f":{ROOT / 'runtime'}" if runtime else "")
    setting = "" if compiles else "NUMBA_DISABLE_JIT=1 "
    path.write_text(
        f'#!/bin/sh\n{setting}PYTHONPATH="{packages}" exec "{sys.executable}" -S "$@"\n'
    )
    path.chmod(0o755)
    return path


def has_table_functions() -> bool:
    """Whether this PySpark has the table functions that `register` needs (4.1)."""
    from pyspark.sql import functions

    return hasattr(functions, "arrow_udtf")


DECIMALS = {
    "px": pa.decimal128(10, 2),
    "q": pa.decimal128(18, 4),
    "w": pa.decimal128(38, 10),
}


def table(events: list[dict[str, Any]]) -> pa.Table:
    """A case's events with a row number for a tiebreak."""
    names = ["type", "id", "src", "dst", "value", "name", "mileage", "ts"]
    types = {**_TYPES}
    if any("due" in event for event in events):
        time = pa.timestamp("us", tz="UTC")
        names += ["due", "day"]
        types = types | {"ts": time, "due": time, "day": pa.date32()}
    if any("end" in event for event in events):
        names += ["start", "end", "price"]
        is_time = isinstance(events[0]["end"], dt.datetime)
        time = pa.timestamp("us", tz="UTC") if is_time else pa.int64()
        types = types | {"start": time, "end": time, "price": pa.float64()}
    if any("px" in event for event in events):
        names += DECIMALS
        types = types | DECIMALS
    more = {one: None for event in events for one in event}
    more |= {one: value for event in events for one, value in event.items() if value is not None}
    names += (name for name in more if name not in names)
    by_value = {name: _OF_PYTHON.get(type(value), pa.string()) for name, value in more.items()}
    types = by_value | types
    if isinstance(more.get("ts"), dt.datetime):
        types["ts"] = by_value["ts"]
    columns = {
        name: pa.array([event.get(name) for event in events], types.get(name, pa.string()))
        for name in names
    }
    return pa.table({**columns, "row": pa.array(range(len(events)), pa.int64())})


def _by_match(matcher: Any, frame: Any) -> Any:
    return frame.transform(matcher.match)


def _with_positions(matcher: Any, frame: Any) -> Any:
    return frame.transform(matcher.with_options(positions=True).match)


def _keys(plan: Any) -> list[Any]:
    from pyspark.sql import functions

    return [] if plan.interleaves else [functions.expr(key) for key in plan.source.key_sql]


def _by_arrow(matcher: Any, frame: Any) -> Any:
    plan = plan_of(matcher)
    order = plan.source.order_by or ("ts",)
    ordered = frame.coalesce(1).sortWithinPartitions(*_keys(plan), *order, "row")
    return ordered.mapInArrow(matcher.match_arrow, matcher.OUTPUT_DDL)


def _by_pandas(matcher: Any, frame: Any) -> Any:
    keys = _keys(plan_of(matcher))
    return frame.groupBy(*keys).applyInPandas(matcher.match_pandas, matcher.OUTPUT_DDL)


def _by_sql(matcher: Any, frame: Any) -> Any:
    plan = plan_of(matcher)
    name = f"q{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(f"{name}_events")
    matcher.register(frame.sparkSession, name=name)
    whole = plan.interleaves or not plan.source.partition_by
    parts = "WITH SINGLE PARTITION" if whole else f"PARTITION BY ({', '.join(plan.source.key_sql)})"
    table = f"TABLE({name}_events) {parts} ORDER BY ({', '.join(plan.source.order_by)}, row)"
    return frame.sparkSession.sql(f"SELECT * FROM {name}({table})")


def _by_sorting_sql(matcher: Any, frame: Any) -> Any:
    """With a table in no order where tasks can sort it, else as `_by_sql`."""
    from pyspark.sql import functions

    name = f"q{uuid.uuid4().hex}"
    try:
        matcher.register(frame.sparkSession, name=name, sorts=True)
    except ValueError as error:
        if "sorts=True" not in str(error):
            raise
        return _by_sql(matcher, frame)
    keys = ", ".join(plan_of(matcher).source.key_sql)
    frame.sort(functions.desc("row")).createOrReplaceTempView(f"{name}_events")
    events = f"SELECT * FROM {name}_events{f' DISTRIBUTE BY {keys}' if keys else ''}"
    whole = "" if keys else "WITH SINGLE PARTITION"
    return frame.sparkSession.sql(f"SELECT * FROM {name}(TABLE({events}) {whole})")


Way = str | Callable[[Any, Any], Any]
"""A name in `ROUTES`, or a function from a query and a DataFrame to the matches."""

ROUTES: dict[str, Callable[[Any, Any], Any]] = {
    "match": _by_match,
    "match with positions": _with_positions,
    "arrow": _by_arrow,
    "pandas": _by_pandas,
    "sql": _by_sql,
    "sorting sql": _by_sorting_sql,
}


def answers(way: Way, items: Sequence[tuple[Any, Any]]) -> list[list[dict[str, Any]]]:
    """The rows of each matcher for its DataFrame, as JSON has them."""
    matches = ROUTES[way] if isinstance(way, str) else way
    return json_rows([matches(matcher, frame) for matcher, frame in items])


AS_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
}
"""How `to_json` writes rows: with NULLs, and with microseconds, which it cuts off by itself."""


def json_rows(frames: Sequence[Any]) -> list[list[dict[str, Any]]]:
    """The rows of DataFrames of any columns, as JSON has them, by one job."""
    from pyspark.sql import functions

    parts = [
        frame.select(
            functions.lit(number).alias("number"),
            functions.to_json(functions.struct("*"), AS_JSON).alias("json"),
        )
        for number, frame in enumerate(frames)
    ]
    while len(parts) > 1:
        parts = [
            parts[at].unionAll(parts[at + 1]) if at + 1 < len(parts) else parts[at]
            for at in range(0, len(parts), 2)
        ]
    found: list[list[dict[str, Any]]] = [[] for _ in frames]
    for row in parts[0].collect():
        found[row.number].append(json.loads(row.json, parse_float=Written))
    return found


class Written(float):
    """A number that keeps its text: JSON does not tell a DECIMAL from a DOUBLE."""

    def __new__(cls, text: str) -> Written:
        found = super().__new__(cls, text)
        found.text = text
        return found

    text: str


def exact(value: Any, type: pa.DataType) -> Any:
    """A value with DECIMALs as texts."""
    if value is None:
        return None
    if pa.types.is_decimal(type):
        number = value.text if isinstance(value, Written) else value
        return f"{Decimal(number):f}"
    if pa.types.is_list(type):
        return [exact(one, type.value_type) for one in value]
    if pa.types.is_struct(type):
        types = {field.name: field.type for field in type}
        # Where cases are partitions of one table, events have an attribute more.
        return {name: exact(one, types.get(name, pa.null())) for name, one in value.items()}
    return value


def told(
    query: CompiledQuery,
    events: pa.Table,
    rows: Sequence[dict[str, Any]],
    expected: Sequence[dict[str, Any]],
    *,
    apart: str = "",
) -> str:
    """What differs between rows of a query, as JSON has them, and the expected answer, in which the
    partition attribute `apart` is not."""
    types = {field.name: field.type for field in query.output_schema}

    def of_query(row: dict[str, Any]) -> dict[str, Any]:
        return {name: exact(row[name], types[name]) for name in row if name != apart}

    rows = [of_query(row) for row in rows]
    if not rows or "start_pos" in rows[0]:
        return difference([expected_form(query, row) for row in rows], expected)
    assert not query.plan.counts_events, "a query that counts events has positions"
    found = query.with_options(positions=True).match_table(events)
    wanted = [of_query(row) for row in found.to_pylist()]
    if wrong := difference([expected_form(query, row) for row in wanted], expected):
        return f"one machine: {wrong}"
    return difference(*([_bare_form(query, row) for row in answer] for answer in (rows, wanted)))


def _bare_form(query: CompiledQuery, row: dict[str, Any]) -> dict[str, Any]:
    """A row in the form of the cases, with the events of labels in the place of positions."""
    labels = {
        label.name: label.attributes for label in query.plan.answer.labels if label.attributes
    }
    row = {name: _plain(value) for name, value in row.items()}
    events = {
        name: [
            tuple(_hashable(event[attribute]) for attribute in attributes) for event in row[name]
        ]
        for name, attributes in labels.items()
    }
    without: dict[str, list[Any]] = {label.name: [] for label in query.plan.answer.labels}
    form = expected_form(query, {**row, "start_pos": 0, "end_pos": 0, **without})
    return form | {"labels": events, "start_time": row["start_time"], "end_time": row["end_time"]}


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """A value of a row as JSON has it: times as texts in UTC."""
    match value:
        case list():
            return [_plain(one) for one in value]
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat()
        case dt.date():
            return value.isoformat()
        case str() if _TIME.fullmatch(value):
            return _plain(dt.datetime.fromisoformat(value))
        case float() if value != value:
            return "NaN"
        case float() if abs(value) == float("inf"):
            return "Infinity" if value > 0 else "-Infinity"
    return value


_TIME = re.compile(r"\d{4}-\d\d-\d\dT.*")


def expected_form(matcher: Any, row: dict[str, Any]) -> dict[str, Any]:
    plan = plan_of(matcher)
    return {
        "partition": {name: row[name] for name in plan.source.partition_by if name in row},
        "start": row["start_pos"],
        "end": row["end_pos"],
        "labels": {label.name: [e["pos"] for e in row[label.name]] for label in plan.answer.labels},
        **({"decided_time": _time(row["decided_time"])} if "decided_time" in row else {}),
        **({"matches": str(row["matches"])} if plan.answer.collapsed else {}),
        **({} if plan.source.uncertain is None else _times(row)),
        "values": {item.name: row[item.name] for item in plan.answer.expressions},
    }


def plan_of(query: Any) -> Plan:
    """The plan of a query, or of a file's only one."""
    if not isinstance(query, CompiledQuery):
        (query,) = query.queries.values()
    found: Plan = query.plan
    return found


def _times(row: dict[str, Any]) -> dict[str, Any]:
    """What the rows of uncertain time say of it."""
    times = {name: _time(row[name]) for name in ("start_time", "end_time")}
    return {**times, "confidence": row["confidence"]}


def _time(value: Any) -> Any:
    return dt.datetime.fromisoformat(value) if isinstance(value, str) else value
