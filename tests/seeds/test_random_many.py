"""Random files of several queries: `match_all_table` against each query alone.

By hand: `python tests/seeds/test_random_many.py 0 200`.
"""

from __future__ import annotations

import random
import sys
import warnings
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventWarning
from celc_runtime.many import runs
from celc_runtime.many.runs import can_do_without_rows
from celc_runtime.plan.schemas import input_schema
from engines import interpreted, table_of
from strategies import EVERYTHING, LOOKING_BACK, SHORTER, declaration_for, random_query
from strategies_across import WIDE_DECLARATION
from strategies_keys import with_real_keys
from strategies_removals import idempotent_query
from test_random import TOO_LARGE
from test_random_across import Drawn, stream_for

import celc
from celc import CelError, Matcher

_LANGUAGES = (EVERYTHING | SHORTER, EVERYTHING | SHORTER, LOOKING_BACK)


def file_of(rng: random.Random) -> Drawn:
    """The text of a file with some queries over one stream."""
    features = rng.choice(_LANGUAGES)
    plain = declaration_for(features)
    skips = rng.random() < 0.4
    if skips:
        plain = WIDE_DECLARATION
    declaration = plain.replace("ts: LONG", "ts: LONG, seq: LONG")
    text = declaration
    for number in range(rng.randint(2, 5)):
        query = (
            idempotent_query(rng) if skips else random_query(rng, features, 2).removeprefix(plain)
        )
        text += f"\nQUERY q{number}:\n{query}\n"
    return Drawn(with_real_keys(text), rng.choice((None, "seq")))


def compiled(file: Drawn) -> Matcher | None:
    """The file as plain Python; None where one of its queries is too large."""
    try:
        with interpreted():
            return celc.compile(file.text, order_by=file.order_by)
    except CelError as problem:
        if {d.code for d in problem.diagnostics if d.severity == "error"} - TOO_LARGE:
            raise
        return None


def rows(table: Any) -> list[str]:
    """The rows as sorted texts, so that their order does not matter."""
    return sorted(map(repr, table.to_pylist()))


def with_texts_twice(rng: random.Random, table: pa.Table) -> pa.Table:
    """The table with its texts dictionary-coded, each text twice in its dictionary."""
    for place, (name, type) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        if pa.types.is_string(type):
            texts = table.column(name).to_pylist()
            known = [one for one in dict.fromkeys(texts) if one is not None]
            places = {one: number for number, one in enumerate(known)}
            codes = [
                None if one is None else places[one] + rng.choice((0, len(known))) for one in texts
            ]
            column = pa.DictionaryArray.from_arrays(
                pa.array(codes, pa.int32()), pa.array([*known, *known], pa.string())
            )
            table = table.set_column(place, name, column)
    return table


def check(seed: int) -> tuple[int, int, int]:
    """Compare one file; returns how many answers had rows, how many queries read some rows only,
    and how many of them skip idempotent rows."""
    rng = random.Random(seed)
    file = file_of(rng)
    module = compiled(file)
    found = 0
    if module is None:
        return 0, 0, 0
    queries = module.queries
    narrow = [query.plan for query in queries.values() if can_do_without_rows(query.plan)]
    skipping = [
        plan for plan in narrow if any(one.idempotent for one in plan.source.relevant or ())
    ]
    for _ in range(2):
        events = stream_for(rng, file)
        columns: dict[str, pa.ChunkedArray] = {}
        for query in queries.values():
            # Where a query does not read a column, `table_of` may give it any type.
            read = input_schema(query.plan).names
            one = table_of(query.plan, events)
            columns |= {n: one.column(n) for n in one.column_names if n in read or n not in columns}
        table = pa.table(columns)
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            patch.setattr(runs, "_LARGE_PART", rng.choice((0.0, 0.5, 2.0)))
            coded = random.Random(seed)
            given = with_texts_twice(coded, table) if coded.random() < 0.4 else table
            together = module.match_all_table(given)
            for name, query in queries.items():
                alone = query.match_table(table)
                assert together[name].schema == alone.schema
                where = f"seed {seed}, {name}, order {file.order_by}\n{file.text}{events}"
                assert rows(together[name]) == rows(alone), where
                assert module.rows(together, name) is together[name]
                found += alone.num_rows > 0
    return found, len(narrow), len(skipping)


@pytest.mark.parametrize("files", [9, pytest.param(40, marks=pytest.mark.long)])
def test_random_files(files: int) -> None:
    found, narrow, skipping = map(sum, zip(*(check(seed) for seed in range(files)), strict=True))
    assert found >= files
    assert narrow >= files
    assert skipping >= files // 4


if __name__ == "__main__":
    counts = zip(*(check(seed) for seed in range(int(sys.argv[1]), int(sys.argv[2]))), strict=True)
    print("answers with rows, queries that read some rows, skip others:", *map(sum, counts))
