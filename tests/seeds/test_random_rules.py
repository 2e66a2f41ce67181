"""Random rules of one shape, compiled by shape: each is answered as it is alone.

By hand: `python tests/seeds/test_random_rules.py 0 200`.
"""

from __future__ import annotations

import random
import re
import sys
import warnings
from collections import Counter
from typing import Any

import pytest
from celc_runtime import EventWarning
from celc_runtime.many import tables
from engines import interpreted, table_of
from test_random import TOO_LARGE
from test_random_across import Drawn, stream_for
from test_random_many import file_of, rows

import celc
from celc import CelError, Matcher
from celc.diagnostics.source import Source
from celc.driver.by_shape import compile_by_shape
from celc.options import Options

_CONSTANT = re.compile(r"((?:[=<>]|\bLIKE) )('[^']*'|-?\d+(?:\.\d+)?)(?![\w.])")
_LIST = re.compile(r"\bIN \(([^()]*)\)")


def rules_of(rng: random.Random) -> tuple[list[str], str | None, str | None]:
    """(The texts of rules that differ in constants, their order, and `ties`); no texts where the
    query that is drawn has no constants."""
    file = file_of(rng)
    declaration, *queries = re.split(r"\nQUERY q\d+:\n", file.text)
    with_constants = [one for one in queries if _CONSTANT.search(one) or _LIST.search(one)]
    if not with_constants:
        return [], None, None
    query = rng.choice(with_constants)
    where = query.index("WHERE")

    def changed() -> str:
        condition = _CONSTANT.sub(lambda found: found[1] + another(rng, found[2]), query[where:])
        condition = _LIST.sub(
            lambda found: f"IN ({', '.join(another(rng, one) for one in found[1].split(', '))})",
            condition,
        )
        return query[:where] + condition

    ties = "simultaneous" if rng.random() < 0.2 else None
    texts = [f"{declaration}\nQUERY r{n}:\n{changed()}" for n in range(rng.randint(2, 5))]
    return texts, file.order_by, ties


def another(rng: random.Random, constant: str) -> str:
    """A constant of the same type, often the same one."""
    if rng.random() < 0.4 or not re.fullmatch(r"'.*'|-?[\d.]+", constant):
        return constant
    if constant.startswith("'"):
        return rng.choice(("'p'", "'q'", "'pq'", "'p%'", "'it''s'"))
    return (
        rng.choice(("0.5", "1.0", "2.5")) if "." in constant else rng.choice(("0", "1", "2", "3"))
    )


def compiled(
    texts: list[str], order_by: str | None, ties: str | None
) -> tuple[Matcher, dict[str, Any], int] | None:
    """(All rules by shape, each alone, and how many of them are rows); None where a rule is too
    large, or has no meaning with ties."""
    options = Options(None if order_by is None else (order_by,), ties=ties)
    with interpreted():
        try:
            alone = [celc.compile(one, order_by=order_by, ties=ties) for one in texts]
        except CelError as problem:
            codes = {one.code for one in problem.diagnostics if one.severity == "error"}
            if ties is None and codes - TOO_LARGE:
                raise
            return None
        sources = [Source(f"r{number}.cel", text) for number, text in enumerate(texts)]
        compilation = compile_by_shape(sources, options)
        together = Matcher(compilation.module_parts("celc compile"))
    members = sum(len(one.rows) for one in compilation.rules.values())
    return together, {n: q for one in alone for n, q in one.queries.items()}, members


def check(seed: int, tally: Counter[str]) -> None:
    """Compare the rules of one seed."""
    rng = random.Random(seed)
    texts, order_by, ties = rules_of(rng)
    found = compiled(texts, order_by, ties) if texts else None
    if found is None:
        return
    together, alone, members = found
    assert together.queries.keys() == alone.keys()
    tally["rules"] += len(alone)
    tally["rows"] += members
    for _ in range(2):
        events = stream_for(rng, Drawn("\n".join(texts), order_by))
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            patch.setattr(tables, "_ROWS", rng.choice((1, 2, 3, 1 << 20)))
            table = table_of(next(iter(alone.values())).plan, events)
            for other in (table_of(query.plan, events) for query in alone.values()):
                for column in set(other.column_names) - set(table.column_names):
                    table = table.append_column(column, other.column(column))
            answers = together._module.match_all_table(table)
            for name, query in alone.items():
                where = f"seed {seed}, {name}, order {order_by}, ties {ties}\n{texts}\n{events}"
                expected = query.match_table(table)
                of_all, own = answers[name], together.queries[name].match_table(table)
                assert of_all.schema == own.schema == expected.schema, where
                assert rows(of_all) == rows(own) == rows(expected), where
                assert together.queries[name].output_ddl == query.output_ddl
                tally["answers"] += expected.num_rows > 0


@pytest.mark.parametrize("seeds", [8, pytest.param(300, marks=pytest.mark.long)])
def test_random_rules(seeds: int) -> None:
    tally = Counter[str]()
    for seed in range(seeds):
        check(seed, tally)
    assert tally["rows"] >= tally["rules"] // 2 >= seeds // 2
    assert tally["answers"] >= 2 * seeds // 3


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    counts = Counter[str]()
    for one in range(int(sys.argv[1]), int(sys.argv[2])):
        check(one, counts)
    print(counts)
