"""Random chains of queries: what they answer on one machine against the reference.

By hand: `python tests/seeds/test_random_queries_over_queries.py 0 500`.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from engines import interpreted
from parameters import rows_table
from queries_over_queries import batches_for, chain_answer, source_table
from reference import (
    WorkLimitError,
    check_answer,
    evaluate,
    evaluate_totals,
    totals_difference,
)
from strategies_queries import Chain, random_chain
from test_random import TOO_LARGE
from test_random_compact import answers_differ

import celc
from celc import CelError

_MOST_ROWS = 400
_OF_ATTRIBUTES = {
    "label-unless",
    "label-negated",
    "unknown-attribute",
    "unknown-partition-attribute",
    "partial-partition-attribute",
}


def check(seed: int) -> str:
    """Compare one chain; returns what came of it."""
    chain = random_chain(random.Random(seed))
    try:
        with interpreted():
            matcher = celc.compile(chain.text, order_by="ts", at_end=chain.at_end)
    except CelError as problem:
        codes = {one.code for one in problem.diagnostics if one.severity == "error"}
        # A reader may ask for attributes that the rows it reads have not.
        if codes - TOO_LARGE - _OF_ATTRIBUTES:
            raise
        return "refused"
    found = "no rows"
    options: dict[str, Any] = {"order_by": "ts", "at_end": chain.at_end, "clock": chain.clock}
    for name in (*chain.readers, *chain.each):
        query = matcher.queries[name].with_options(clock=chain.clock)
        rules = {"parameters": {"rule": chain.rules}} if name in chain.each else {}
        try:
            wanted = evaluate(
                chain.text,
                chain.events,
                query=name,
                times=True,
                work_limit=200_000,
                **options,
                **rules,
            )
        except WorkLimitError:
            return "too much work"
        if len(wanted) > _MOST_ROWS:
            return "too many rows"
        answer = chain_answer(query, chain.events, chain.rules)
        try:
            check_answer(chain.text, wanted, answer, query=name)
        except AssertionError as problem:
            raise AssertionError(
                f"{chain.text}\n{name} {options} {chain.events} {rules}\n{problem}"
            ) from None
        given = query.with_parameters(rule=rows_table(query, chain.rules)) if rules else query
        table = source_table(query, chain.events)
        ordered = pa.Table.from_batches(batches_for(query, table), table.schema)
        told = answers_differ(given, chain.events, random.Random(seed), (table, ordered))
        assert not told, f"compact: {chain.text}\n{name} {options} {chain.events} {rules}\n{told}"
        found = "rows" if wanted else found
    for name in (*chain.totals, *chain.each_totals):
        _check_totals(chain, name, matcher.queries[name].with_options(clock=chain.clock), options)
    return found


def _check_totals(chain: Chain, name: str, query: CompiledQuery, options: dict[str, Any]) -> None:
    rules = {}
    if name in chain.each_totals:
        rules = {"parameters": {"rule": chain.rules}}
        query = query.with_parameters(rule=rows_table(query, chain.rules))
    table = source_table(query, chain.events)
    rows = evaluate_totals(chain.text, chain.events, query=name, **options, **rules)
    batches = batches_for(query, table)
    answers = {
        "a table": query.match_table(table),
        "batches": pa.Table.from_batches(query.match_arrow(batches), query.output_schema),
    }
    for way, totals in answers.items():
        told = totals_difference(totals.to_pylist(), rows)
        assert not told, f"{way}: {chain.text}\n{name} {options} {chain.events} {rules}\n{told}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", [3, pytest.param(12, marks=pytest.mark.long)])
def test_chains_equal_the_reference(seeds: int) -> None:
    found = Counter(map(check, range(seeds)))
    assert found["rows"] >= 4 * seeds // 12, found


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_many_chains_equal_the_reference() -> None:
    found = Counter(map(check, range(12, 560)))
    assert found["rows"] > 180, found


if __name__ == "__main__":
    print(Counter(map(check, range(*map(int, sys.argv[1:])))))
