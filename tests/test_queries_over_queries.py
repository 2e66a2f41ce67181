"""Queries that read queries: the cases on one machine, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest
from cases_io import Case, load_cases, load_refused
from celc_runtime.arrow.output import FirstMatches
from celc_runtime.chain.columns import as_run
from celc_runtime.chain.rows import declared_rows, event_table
from celc_runtime.chain.run import ChainRun
from celc_runtime.run.matching import matches_of_table
from engines import interpreted
from places import TESTS
from queries_over_queries import chain_answer, source_table
from reference import difference
from strategies_queries import DECLARATION

import celc

FOLDER = TESTS / "cases_queries"


@pytest.mark.parametrize("case", load_cases(folder=FOLDER), ids=lambda case: case.name)
def test_cases(case: Case) -> None:
    with interpreted():
        matcher = celc.compile(case.query, order_by=case.order_by)
    query = matcher.queries[case.query_name or next(iter(matcher.queries))]
    told = difference(chain_answer(query, case.events), case.expected)
    assert not told


@pytest.mark.parametrize("case", load_refused(FOLDER), ids=lambda case: case.name)
def test_cases_that_are_errors(case: Case) -> None:
    with pytest.raises(celc.CelError):
        celc.compile(case.query, order_by=case.order_by)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore")
def test_rows_of_one_time_come_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    text = f"""{DECLARATION}
QUERY pairs: SELECT x.value AS v, y.id AS id FROM S WHERE A AS x ; B AS y WITHIN 6 [ts]
QUERY reader: SELECT p, q FROM pairs, S
WHERE (pairs AS p ; pairs AS q) OR (pairs AS p ALL A AS q) WITHIN 9 [ts]
"""
    with interpreted():
        query = celc.compile(text, order_by="ts").queries["reader"]
    events = [
        {"type": rng.choice("AB"), "id": n, "value": float(n), "name": "p", "ts": n // 3}
        for n in range(14)
    ]
    table, (level,) = source_table(query, events), query.program.levels
    answers = {"pairs": matches_of_table(level, table, FirstMatches(None))}
    rows = event_table(query.program, declared_rows(query.program, table), answers)
    order = list(range(len(rows)))
    rng.shuffle(order)
    order.sort(key=rows.column("ts").to_pylist().__getitem__)
    found = [
        matches_of_table(as_run(query.program), one, FirstMatches(None)).to_pylist()
        for one in (rows, rows.take(order))
    ]
    assert found[0]
    assert order != sorted(order)
    told = [sorted(repr(_without_positions(row)) for row in answer) for answer in found]
    assert told[0] == told[1]


def test_a_chain_keeps_only_the_rows_at_the_horizon() -> None:
    rng = random.Random(4)
    text = f"""{DECLARATION}
QUERY pairs: SELECT x.value AS v FROM S WHERE A AS x ; B AS y WITHIN 6 [ts]
QUERY two: SELECT p.v AS v FROM pairs, S WHERE pairs AS p ; C AS c WITHIN 9 [ts]
QUERY three: SELECT a, b FROM two WHERE two AS a ; two AS b WITHIN 12 [ts]
"""
    with interpreted():
        query = celc.compile(text, order_by="ts").queries["three"]
    events = [
        {"type": rng.choice("ABC"), "id": 1, "value": 1.0, "name": "p", "ts": n} for n in range(600)
    ]
    table = source_table(query, events)
    run = ChainRun(query.program)
    found = 0
    for batch in table.to_batches(max_chunksize=20):
        found += sum(map(len, run.push(batch)))
        assert run.waiting < 40
    assert found + sum(map(len, run.rest())) == len(query.match_table(table)) > 500


def _without_positions(row: dict[str, Any]) -> dict[str, Any]:
    labels = {name: row[name] for name in ("p", "q")}
    events = {name: [{**one, "pos": 0} for one in found] for name, found in labels.items()}
    return {"start_time": row["start_time"], "end_time": row["end_time"], **events}
