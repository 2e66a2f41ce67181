"""Some of the queries that cross three features as Spark jobs, against one machine."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pyarrow as pa
import pytest
from crossings.check import compiled, drawn
from crossings.events import events_for, rules_for
from crossings.routes import by_table, in_one_spelling, table_for
from parameters import rows_table
from streams_by_hand import same_rows


@pytest.mark.long
@pytest.mark.parametrize("first", range(300_000, 300_080, 20))
def test_crossed_features(spark: Any, first: int) -> None:
    """Twenty seeds, each on a stream of its own, whose rows come in any order."""
    compared = 0
    for seed in range(first, first + 20):
        one, rng = drawn(seed), random.Random(seed)
        matcher = compiled(seed, one)
        if matcher is None or not one.draft.order_by:
            continue
        events = events_for(one.draft, rng)
        rules = rules_for(rng) if one.draft.for_each else []
        for name in one.draft.asked:
            query = matcher.queries[name]
            given = {} if not one.draft.for_each else {"rule": rows_table(query, rules)}
            table = table_for(query, events)
            order = pa.array(rng.sample(range(len(table)), len(table)), pa.int64())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = by_table(query, events, rules)
                found = query.match(spark.createDataFrame(table.take(order)), **given)
                assert found.columns == query.output_schema.names
                rows = found.toArrow().to_pylist()
            told = same_rows(in_one_spelling(rows), in_one_spelling(wanted))
            assert not told, f"seed {seed}, {name}, {one.features}: {told}\n{one.draft.text()}"
            compared += 1
    assert compared >= 12
