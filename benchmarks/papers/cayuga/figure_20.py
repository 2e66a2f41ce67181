"""Figure 20: the double top in one formula (μ), and by queries over queries (resubscription).

The paper has 112,635 closing prices of 24 companies, smoothed by running averages of several
lengths. Ours are random walks of as many prices and companies. The formula is the one of
`examples/worked/double-top`. By resubscription one query finds the extrema, and another reads
these; a loop by hand finds the same. Extrema that share a day do not follow one another there, so
the formula finds more.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import celc
from papers.figures import Made, Panel, Sentence, least_seconds, ratios

COMPANIES, PRICES = 24, 112_635
OF_FORMULA = 24 * 1_000
"""The prices that the formula reads: it takes seconds for these."""
SMOOTHING = (1, 2, 5, 10, 20)
_SHOWN = ["low_a", "high_b", "low_c", "high_d", "low_e"]
_WORKED = Path(__file__).parents[3] / "examples" / "worked" / "double-top" / "double_top.cel"
_STREAM = "CREATE STREAM Stocks { EVENT Quote { name: STRING, price: DOUBLE, ts: LONG } }\n"
_EXTREMA = """
QUERY extrema: SELECT m.price AS price, IF(m.price < l.price, 0, 1) AS top FROM Stocks
WHERE (Quote AS l : Quote AS m : Quote AS n)
  FILTER (m.price < l.price AND m.price < n.price) OR (m.price > l.price AND m.price > n.price)
PARTITION BY name
QUERY tops: SELECT a.price AS low_a, b.price AS high_b, c.price AS low_c, d.price AS high_d,
  e.price AS low_e FROM extrema
WHERE (extrema AS a : extrema AS b : extrema AS c : extrema AS d : extrema AS e)
  FILTER a.top = 0 AND b.price >= 1.2 * a.price
  AND c.price BETWEEN 0.9 * a.price AND 1.1 * a.price
  AND d.price BETWEEN 0.9 * b.price AND 1.1 * b.price AND e.price < a.price
PARTITION BY name
"""


def prices(count: int, smoothing: int, seed: int = 20) -> pa.Table:
    """Random walks of some companies, whose days alternate; running averages of a length."""
    random = np.random.default_rng(seed)
    days = count // COMPANIES
    steps = random.normal(0, 0.05, (COMPANIES, days))
    fading = 0.7 ** np.arange(12)  # a rise goes on for some days
    steps = np.stack([np.convolve(one, fading, "same") for one in steps])
    walks = 50 * np.exp(np.cumsum(steps, axis=1))
    kernel = np.ones(smoothing) / smoothing
    smooth = np.stack([np.convolve(walk, kernel, "valid") for walk in walks])
    names = [f"company {number:02}" for number in range(COMPANIES)]
    shown = smooth.T.ravel()
    return pa.table(
        {
            "type": pa.array(["Quote"] * len(shown)).dictionary_encode(),
            "name": pa.array(np.tile(names, smooth.shape[1])).dictionary_encode(),
            "price": shown,
            "ts": np.arange(len(shown)),
        }
    )


def formula() -> Any:
    """The double top in one formula."""
    text = _WORKED.read_text("utf-8").replace("price: DOUBLE", "price: DOUBLE, ts: LONG")
    return celc.compile(text, order_by="ts").query


def queries() -> tuple[Any, Any]:
    """The query of the extrema, and the one over these."""
    found = celc.compile(_STREAM + _EXTREMA, order_by="ts").queries
    return found["extrema"], found["tops"]


def by_hand(table: pa.Table) -> list[tuple[float, ...]]:
    """All double tops by a loop over the prices of each company.

    An extremum lasts for its three days, and follows another one if it begins after that has ended.
    """
    found = []
    prices_of = table["price"].to_numpy().reshape(-1, COMPANIES).T
    for walk in prices_of.tolist():
        turns = [
            (m, m > n, day)
            for day, (one, m, n) in enumerate(zip(walk, walk[1:], walk[2:], strict=False))
            if (m > one) == (m > n) and m not in (one, n)
        ]
        for five in zip(*(turns[start:] for start in range(5)), strict=False):
            (a, is_top, _), *_ = five
            _, b, c, d, e = (price for price, _, _ in five)
            far = all(later[2] - one[2] > 2 for one, later in pairwise(five))
            if is_top or not far or b < 1.2 * a or not 0.9 * a <= c <= 1.1 * a:
                continue
            if 0.9 * b <= d <= 1.1 * b and e < a:
                found.append((a, b, c, d, e))
    return sorted(found)


def make(small: bool) -> Made:
    """The figure; small: 40 days, little smoothing."""
    count = COMPANIES * 40 if small else PRICES
    extrema, tops = queries()
    seed = 35 if small else 20  # so short a stream seldom has a double top
    tables = {n: prices(count, n, seed) for n in SMOOTHING[: 3 if small else None]}
    found, shares = [], []
    for length, table in tables.items():
        rows = _rows(tops, table)
        if rows != by_hand(table):
            raise RuntimeError(f"{length}: the queries and the loop find other double tops")
        found.append(len(rows))
        shares.append(len(extrema.match_table(table)) / len(table))
    sentences = [
        Sentence(
            "The queries and a loop by hand find the same double tops, and there are some",
            sum(found) > 0,
            ", ".join(map(str, found)),
        ),
        Sentence(
            "The stronger the smoothing, the fewer extrema there are to read",
            shares == sorted(shares, reverse=True) and shares[0] > 1.2 * shares[-1],
            ", ".join(f"{share:.3f}" for share in shares),
        ),
    ]
    line = tuple(zip(tables, shares, strict=True))
    panel = Panel("extrema", "length of the average", "a share of all prices", {"extrema": line})
    if small:
        return Made((panel,), tuple(sentences))
    whole = formula()
    parts = {length: table.slice(0, OF_FORMULA) for length, table in tables.items()}
    by_formula = {length: Counter(_rows(whole, table)) for length, table in parts.items()}
    sentences.append(
        Sentence(
            "The formula finds all that resubscription finds, and more",
            all(Counter(_rows(tops, table)) <= by_formula[n] for n, table in parts.items())
            and any(Counter(_rows(tops, table)) < by_formula[n] for n, table in parts.items()),
            ", ".join(f"{rows.total()}" for rows in by_formula.values()) + " by the formula",
        )
    )
    lines: dict[str, list[tuple[float, float]]] = {}
    for length, table in tables.items():
        ways = {
            "μ": partial(whole.match_table, parts[length]),
            "resubscription": partial(tops.match_table, table),
        }
        seconds = least_seconds(ways, 2)
        lines.setdefault("μ", []).append((length, OF_FORMULA / seconds["μ"]))
        rate = len(table) / seconds["resubscription"]
        lines.setdefault("resubscription", []).append((length, rate))
    rates = lines["resubscription"]
    sentences.append(
        Sentence(
            "Smoothing makes resubscription faster: the strongest at least 1.2 times",
            rates[-1][1] > 1.2 * rates[0][1],
            ", ".join(f"{rate:,.0f}" for _, rate in rates),
            timed=True,
        )
    )
    drawn = {way: tuple(points) for way, points in lines.items()}
    timed = Panel("celc", "length of the average", "events a CPU second", drawn, "y")
    times = ", ".join(f"{one:.2f}" for one in ratios(drawn["μ"], drawn["resubscription"]))
    ours = {
        "μ beside resubscription": f"{times} times as fast, by the strength of smoothing",
        "μ beside CQL2": "not made",
    }
    return Made((timed, panel), tuple(sentences), ours)


def _rows(query: Any, table: pa.Table) -> list[tuple[float, ...]]:
    found = query.match_table(table).select(_SHOWN).to_pylist()
    return sorted(tuple(row.values()) for row in found)
