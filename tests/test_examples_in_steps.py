"""Queries of the documents written both ways, as one formula and in steps, have equal answers.

The pairs are `name.cel` and `name_steps.cel` of examples/worked/steps, and the double top of
docs/queries.md. Positions differ, because they number the rows that a query reads.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from engines import interpreted
from places import ROOT
from test_docs import blocks_in

import celc

_FOLDER = ROOT / "examples" / "worked" / "steps"
_NAMES = sorted(path.stem for path in _FOLDER.glob("*.cel") if "_steps" not in path.stem)


def _compiled(text: str, name: str) -> celc.CompiledQuery:
    with interpreted():
        *_, last = celc.compile(text, name=f"{name}.cel").queries.values()
    return last


def _answer(query: celc.CompiledQuery, quotes: pa.Table) -> list[str]:
    rows: list[dict[str, Any]] = query.match_table(quotes).to_pylist()
    values = [{n: v for n, v in row.items() if n not in ("start_pos", "end_pos")} for row in rows]
    return sorted(map(repr, values))


def _quotes(seed: int, rows: int) -> pa.Table:
    """Quotes of three stocks that walk at random, one or two minutes apart."""
    rng = random.Random(seed)
    price = {"IBM": 40, "Dell": 30, "MSFT": 35}
    minute, found = 0, []
    for _ in range(rows):
        name = rng.choice([*price])
        price[name] = max(20, price[name] + rng.choice((-2, -1, -1, 0, 1, 1, 2, 3)))
        minute += rng.randrange(1, 3)
        vol = rng.choice((100, 5_000, 20_000))
        found.append({"name": name, "price": float(price[name]), "vol": vol, "ts": minute})
    columns = {one: [row[one] for row in found] for one in found[0]}
    times = pa.array([n * 60_000_000 for n in columns["ts"]], pa.timestamp("us", tz="UTC"))
    return pa.table({**columns, "ts": times})


@pytest.mark.parametrize("name", _NAMES)
def test_both_ways_have_equal_answers(name: str) -> None:
    formula, steps = (
        _compiled((_FOLDER / f"{one}.cel").read_text(encoding="utf-8"), one)
        for one in (name, f"{name}_steps")
    )
    found = 0
    for seed in range(3):
        quotes = _quotes(seed, 250)
        wanted = _answer(formula, quotes)
        assert _answer(steps, quotes) == wanted
        found += len(wanted)
    assert found > 3


def test_the_double_top_has_equal_answers() -> None:
    page = (ROOT / "docs" / "queries.md").read_text(encoding="utf-8")
    texts = {block.comment: block.text for block in blocks_in(page)}
    formula, steps = (_compiled(texts[f"file: {one}.cel"], "tops") for one in ("formula", "steps"))
    rng = random.Random(3)
    quotes = pa.table(
        {
            "sym": [rng.choice("ab") for _ in range(300)],
            "price": [float(rng.randrange(6)) for _ in range(300)],
            "ts": list(range(300)),
        }
    )
    wanted = _answer(formula, quotes)
    assert len(wanted) > 3
    assert _answer(steps, quotes) == wanted


def test_there_are_pairs() -> None:
    assert {"peaks", "query_3", "query_5", "query_6", "query_7"} <= set(_NAMES)
    assert {f"{name}_steps" for name in _NAMES} < {path.stem for path in _FOLDER.glob("*.cel")}
