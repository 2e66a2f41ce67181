"""Near misses of streams by hand, with a restart after every micro-batch."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from celc_runtime.chain.streams.near.query import NearQuery
from celc_runtime.chain.streams.operators import near_group
from celc_runtime.stream.formats import StreamOptions
from engines import table_of
from module_streams_by_hand import module_streamed

from celc.diagnostics.source import Source
from celc.driver.near import near_query
from celc.options import Options

Row = dict[str, Any]


def in_time(text: str) -> str:
    """A query over numbers as one over times: a unit is a second."""
    text = re.sub(r"\bts: LONG\b", "ts: TIMESTAMP", text)
    text = re.sub(r"\bPER (\d+)\b", r"PER \1 SECONDS", text)
    return re.sub(r"(\d+(?:\.\d+)?) \[ts\]", r"\1 SECONDS [ts]", text)


def at_time(number: float) -> dt.datetime:
    return dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=number)


def near_of(text: str, **asked: Any) -> NearQuery:
    """The bent forms of a query."""
    options = Options(order_by=("ts",), positions=True)
    return near_query([Source("query.cel", text)], options, **asked)[0]


def with_window(text: str, size: int) -> str:
    """A query in time with a window of so many seconds, if it has none."""
    text = re.sub(r"\bWITHIN (\d+) EVENTS\b", r"WITHIN \1 SECONDS [ts]", text)
    if re.search(r"\bWITHIN \d", text):
        return text
    before, clause, after = re.split(r"(\bCONSUME\b|\bLIMIT\b|$)", text.rstrip(), maxsplit=1)
    return f"{before} WITHIN {size} SECONDS [ts] {clause}{after}"


def table_in_time(near: NearQuery, events: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Events as a table, with a column `row`."""
    plan = near.answer.plan
    table = table_of(plan, [*events])
    return table.append_column("row", pa.array(range(len(table)), pa.int64()))


def streamed(
    near: NearQuery,
    table: pa.Table,
    rng: random.Random,
    parameters: Mapping[str, pa.Table],
    *,
    late: str = "drop",
    largest: int = 3,
) -> list[Row]:
    """The rows of a stream over the table, whose column `row` tells events apart. Of a query FOR
    EACH they are its near misses."""
    group = near_group(near, near.given(parameters), ("row",))
    buckets = rng.choice((1, 3)) if group.keys else 1
    options = StreamOptions({"row": "LONG"}, late=late, buckets=buckets, rules=group.rules)
    return module_streamed(group, table, rng, options=options, largest=largest)


def of_batch(near: NearQuery, table: pa.Table, parameters: Mapping[str, pa.Table]) -> list[Row]:
    """The near misses of the table, as a stream has them when it has ended."""
    found: Sequence[Row] = near.of_table(near.given(parameters), table, at_end="closed").to_pylist()
    return [{"kind": "near", **row} for row in found]
