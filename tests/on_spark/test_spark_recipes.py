"""The SQL that docs/recipes shows beside each query answers as the query does."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import long_over_connect
from recipes import counted, recipes
from stream_routes import settings
from test_recipes import STREAMS, random_events

# The tables have some hundred rows.
ONE_TASK = {"spark.sql.shuffle.partitions": "1"}


@pytest.mark.each(3)
@long_over_connect
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.filterwarnings("ignore:.*undecided")
def test_sql(name: str, spark: Any) -> None:
    """On the events of the page and on random ones; SQL may leave out columns of the answer."""
    recipe = recipes()[name]
    for events in (recipe.events, random_events(recipe, STREAMS[name], 0)):
        spark.createDataFrame(events).createOrReplaceTempView(recipe.stream)
        with settings(spark, ONE_TASK):
            found = spark.sql(recipe.sql).toArrow().to_pylist()
        assert found[0].keys() >= {*recipe.query.plan.source.partition_by, "start_time"}
        answer = [{column: row[column] for column in found[0]} for row in recipe.answer(events)]
        assert counted(found) == counted(answer)
