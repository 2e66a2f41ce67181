"""The warning about a LIMIT that cuts nothing: where it comes, no end has more matches."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from reference import evaluate

import celc

STREAM = "CREATE STREAM S { EVENT A { v: INT }, EVENT B { v: INT } }\n"
# The largest number of matches of one end; None: it grows with the stream.
MOST = {
    "SELECT * FROM S WHERE A": 1,
    "SELECT * FROM S WHERE A : B": 1,
    "SELECT * FROM S WHERE A OR B AS x": 2,
    "SELECT * FROM S WHERE (A AS x OR A AS y) : (B AS x OR B AS y)": 4,
    "SELECT * FROM S WHERE (A AS x OR A AS y):{1,2}": 6,
    "SELECT * FROM S WHERE (A : A) OR (A : A : A AS x)": 2,
    "SELECT * FROM S WHERE A : B? : A": 2,
    "SELECT * FROM S WHERE (A ; B) AND (A : B)": 1,
    "SELECT * FROM S WHERE (A : B) UNLESS (B FILTER B.v > 0)": 1,
    "SELECT * FROM S WHERE !A FOR 2 EVENTS ; B": 1,
    "SELECT * FROM S WHERE NXT(A ; B)": 1,
    "SELECT * FROM S WHERE NXT((A OR B) AS x ; (A OR B) AS y)": 4,
    "SELECT ANY * FROM S WHERE A ; B": 1,
    "SELECT LAST * FROM S WHERE (A AS x)+ ; B": 1,
    "SELECT NXT * FROM S WHERE (A AS x OR A AS y) ; B": 2,
    "SELECT LONGEST DISJOINT * FROM S WHERE (A AS x):+": 1,
    "SELECT FIRST DISJOINT * FROM S WHERE A ; B": 1,
    "SELECT * FROM S WHERE A ; B": None,
    "SELECT * FROM S WHERE A ; !B ; A": None,
    "SELECT * FROM S WHERE (A AS x):+": None,
    "SELECT * FROM S WHERE A ALL B": None,
    "SELECT MAX * FROM S WHERE A ; B": None,
    "SELECT FIRST * FROM S WHERE (A AS x):+ : B": None,
    "SELECT LONGEST DISJOINT * FROM S WHERE (A AS x)+ ; (A AS y)+": None,
    "SELECT NXT * FROM S WHERE PROJECT[x](A ; (B AS x))": None,
}


def told(query: str, limit: int) -> bool:
    found = celc.check(f"{STREAM}{query} LIMIT {limit}")
    assert not [one for one in found if one.severity == "error"], found
    return any(one.code == "idle-limit" for one in found)


@pytest.mark.parametrize("query", MOST)
def test_it_comes_where_no_end_has_so_many(query: str) -> None:
    most = MOST[query]
    if most is None:
        assert not told(query, 1_000)
        return
    assert told(query, most)
    assert most == 1 or not told(query, most - 1)


@pytest.mark.parametrize("query", [one for one in MOST if MOST[one] and "ANY" not in one])
def test_no_end_has_more(query: str) -> None:
    rng = random.Random(query)
    for _ in range(20):
        rows = [{"type": rng.choice("AB"), "v": rng.randrange(-2, 3)} for _ in range(6)]
        ends = Counter(one.end for one in evaluate(STREAM + query, rows))
        assert max(ends.values(), default=0) <= (MOST[query] or 0)


def test_what_it_offers_is_the_first_rows() -> None:
    query = f"{STREAM}SELECT ANY * FROM S WHERE A ; B LIMIT 2"
    (found,) = [one for one in celc.check(query) if one.code == "idle-limit"]
    (fix,) = found.fixes
    assert fix.text == "LIMIT 2 PER PARTITION"
    assert query[fix.span.start : fix.span.end] == "LIMIT 2"
