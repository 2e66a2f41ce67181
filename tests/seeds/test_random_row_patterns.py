"""MATCH_RECOGNIZE against its definitions: all cases, and random queries on random tables."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from calendar_columns import with_calendar_intervals
from celc_runtime import EventError, WorkLimitError
from celc_runtime.arrow.events import digits, partition_keys
from celc_runtime.row_pattern import arranged
from celc_runtime.run import parts
from engines import interpreted
from reference.row_patterns import RunError, TooLong
from reference.row_patterns import answer as answer_of
from row_cases import RowCase, compiled, row_cases, rows_of, same, table_of, written
from strategies_rows import row_query, row_table, with_real_groups

from celc.diagnostics.source import Source
from celc.row_pattern.parser import parse


def _reference(text: str, schema: Any, rows: Any, most: int = 200_000) -> list[dict[str, Any]]:
    table = table_of(schema, rows).to_pylist()
    found = answer_of(parse(Source("q.sql", text)), text, table, most)
    return [{name: written(value) for name, value in row.items()} for row in found]


@pytest.mark.each(2)
@pytest.mark.parametrize("case", [c for c in row_cases() if c.when != "compile"], ids=str)
def test_the_reference_answers_the_cases(case: RowCase) -> None:
    if case.expected is None:
        with pytest.raises(RunError, match=case.error):
            _reference(case.query, case.schema, case.table)
        return
    found = _reference(case.query, case.schema, case.table)
    names = {name.casefold(): name for name in case.types}
    assert same(case, [{names[key]: value for key, value in row.items()} for row in found])


def _check(seed: int) -> bool:
    """Whether a random query could be compared."""
    rng = random.Random(seed)
    text, schema, rows = with_real_groups(row_query(rng), row_table(rng))
    if seed % 2:  # most tables come in the order of time
        rows = sorted(rows, key=lambda row: row["id"])
    with interpreted():
        query = compiled(text)
    wanted: Any
    try:
        wanted = _reference(text, schema, rows)
    except RunError as problem:
        wanted = problem.kind
    except (TooLong, RecursionError):
        return False
    table = with_calendar_intervals(table_of(schema, rows), random.Random(text))
    try:
        answer = rows_of(query.match_table(table))
        with _as_large():
            for threads in (1, 3):
                again = rows_of(query.match_table(table, threads=threads))
                assert repr(again) == repr(answer), f"seed {seed}, {threads} threads\n{text}"
        found: Any = _in_parts(text, answer)
    except WorkLimitError:
        raise
    except EventError as problem:
        told = str(problem)
        found = "skip-to-first-row" if "found again" in told else "skip-target-missing"
    if not isinstance(wanted, str):
        wanted = _in_parts(text, wanted)
    assert found == wanted, f"seed {seed}\n{text}\n{rows}"
    return True


@contextmanager
def _as_large() -> Iterator[None]:
    """Tables are sorted and cut as large ones are, however few rows they have."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (arranged, partition_keys):
            patch.setattr(module, "is_worth_it", lambda rows: rows > 0)
        patch.setattr(arranged, "_FEW", 2)
        patch.setattr(digits, "_ROWS_OF_A_SLICE", 2)
        patch.setattr(parts, "LEAST_ROWS", 1)
        yield


def _in_parts(text: str, rows: list[dict[str, Any]]) -> Any:
    """Partitions in one order: nothing is said about theirs."""
    rows = [{key.casefold(): value for key, value in row.items()} for row in rows]
    keys = parse(Source("q.sql", text)).partition_by
    return sorted(rows, key=lambda row: repr([row[key.called.key] for key in keys]))


@pytest.mark.each(3)
@pytest.mark.parametrize("seed", range(18))
def test_random_queries(seed: int) -> None:
    _check(seed)


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:])
    compared = sum(_check(seed) for seed in range(first, last))
    print(f"{compared} of {last - first} compared, no difference")
