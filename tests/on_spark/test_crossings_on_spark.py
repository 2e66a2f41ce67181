"""Some of the queries that cross features as Spark jobs, against one machine."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from crossings.check import Drawn, asked_query, compiled, drawn
from crossings.drafts import TIEBREAK
from crossings.events import events_for, rules_for
from crossings.pairs import covering, pairs_of
from crossings.routes import by_table, in_one_spelling, table_for
from engines import as_on_spark
from parameters import rows_table
from pyspark.sql.pandas.types import from_arrow_schema
from streams_by_hand import same_rows


def _compared(spark: Any, seed: int, one: Drawn) -> int | None:
    """How many queries of a file were compared, each on a stream whose rows come in any order;
    None: the compiler refuses the file."""
    rng = random.Random(seed)
    matcher = compiled(seed, one)
    if matcher is None:
        return None
    events = events_for(one.draft, rng)
    rules = rules_for(rng) if one.draft.for_each else []
    compared = 0
    for name in one.draft.asked:
        query = asked_query(one, matcher, name)
        if why_not(query.program, Route.SPARK) is not None:
            continue
        given = {} if not one.draft.for_each else {"rule": rows_table(query, rules)}
        table = table_for(query, events)
        order = pa.array(rng.sample(range(len(table)), len(table)), pa.int64())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if rng.random() < 0.2:
                query = query.with_options(positions=True)
            source = query.plan.source
            if source.order_by and not source.tiebreak and source.ties is None:
                # It has its order from an absence, and rows of a DataFrame have no other.
                query = query.with_options(tiebreak=(TIEBREAK,))
            on_machine = as_on_spark(query)
            wanted = by_table(on_machine, events, rules)
            found = query.match(_frame(spark, table.take(order)), **given)
            assert found.columns == on_machine.output_schema.names
            rows = found.toArrow().to_pylist()
        told = same_rows(in_one_spelling(rows), in_one_spelling(wanted))
        assert not told, f"seed {seed}, {name}, {one.features}: {told}\n{one.draft.text()}"
        compared += 1
    return compared


def _frame(spark: Any, table: pa.Table) -> Any:
    """The table as a DataFrame; Spark Connect does not ask an empty table for its types."""
    if len(table):
        return spark.createDataFrame(table)
    return spark.createDataFrame([], from_arrow_schema(table.schema))


@pytest.mark.long
@pytest.mark.parametrize("first", range(300_000, 300_360, 20))
def test_crossed_features(spark: Any, first: int) -> None:
    """Twenty seeds."""
    found = [_compared(spark, seed, drawn(seed)) for seed in range(first, first + 20)]
    assert sum(filter(None, found)) >= 12


_SLICES = 36


@pytest.mark.long
@pytest.mark.parametrize("number", range(_SLICES))
def test_each_two_features(spark: Any, number: int) -> None:
    """Some twenty queries; what is refused of three features is not of other pairs of them."""
    queries, _ = covering()
    compared = 0
    for seed, one in queries[number::_SLICES]:
        found = _compared(spark, seed, one)
        if found is None:
            found = sum(_compared(spark, *alone) or 0 for alone in pairs_of(seed, one))
        compared += found
    assert compared >= 12
