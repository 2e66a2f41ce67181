"""When rows are followed, and when the index of all their events is asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.rules.courses import Follower
from celc_runtime.rules.rows import rows_of
from engines import interpreted, only_query

import celc

_DECLARATION = """CREATE STREAM S { EVENT E { ts: LONG, key: LONG, value: DOUBLE } }
PARAMETERS rule { key: LONG, low: DOUBLE }
SELECT * FROM S FOR EACH rule WHERE """
_PAIR = "(E AS a ; E AS b) FILTER a.key = rule.key AND a.value < rule.low AND b.key = rule.key "
_NEXT = "(E AS a ; FIRST (E AS b FILTER b.key = rule.key)) FILTER a.key = rule.key AND b.value > 2 "
_EVENTS = 20_000


@pytest.mark.parametrize(
    ("formula", "pays"),
    [
        (_PAIR + "WITHIN 100 [ts]", True),
        (_PAIR + "WITHIN 10000 [ts]", False),
        (_NEXT + "AND a.value < rule.low WITHIN 10000 [ts]", True),
    ],
    ids=["a short window", "many events in a window", "the first event ends it"],
)
def test_rows_are_followed_through_few_events(formula: str, pays: bool) -> None:
    with interpreted():
        query = only_query(celc.compile(_DECLARATION + formula, order_by="ts"))
    parameters = query.plan.source.parameters
    assert parameters is not None
    assert parameters.course is not None
    rules = pa.table({"key": range(1_000), "low": np.ones(1_000)})
    rows = rows_of(query.name, parameters, rules)
    types = query.plan.source.declared_types
    follower = Follower(rows, parameters.course, types, follows_all=False)
    times = np.arange(_EVENTS)
    keys = np.random.default_rng(1).integers(0, 1_000, _EVENTS)
    events = pa.record_batch({"ts": times, "key": keys, "value": np.zeros(_EVENTS)})
    window = query.plan.matching.window
    assert window is not None
    parts = np.zeros(_EVENTS, np.int64)
    assert follower.pays(events, parts, times, times - int(window.size)) is pays
