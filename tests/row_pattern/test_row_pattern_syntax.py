"""What is said of MATCH_RECOGNIZE that is written as no text of it is."""

from __future__ import annotations

import pytest

import celc

TEXT = """CREATE TABLE t (id INT, p DOUBLE, ts TIMESTAMP)
SELECT * FROM t MATCH_RECOGNIZE (
  PARTITION BY id ORDER BY ts
  MEASURES LAST(B.p) AS l
  PATTERN (A B+)
  DEFINE B AS B.p > A.p
)"""

IN_ORDER = "clauses stand in this order: PARTITION BY, ORDER BY"
NAMED = "each measure has a name behind AS: LAST(A.x) AS x"
SIDE_BY_SIDE = "rows that follow each other stand side by side: (A B)"
DURATION = "a duration is written INTERVAL '10' MINUTE"
SECONDS = "TIMESTAMPDIFF(SECOND, a, b)"
MISTAKES = {
    "keys behind the order": (
        ("PARTITION BY id ORDER BY ts", "ORDER BY ts PARTITION BY id"),
        *("3:15", IN_ORDER),
    ),
    "definitions before the pattern": (
        ("PATTERN (A B+)\n  DEFINE B AS B.p > A.p", "DEFINE B AS B.p > A.p\n  PATTERN (A B+)"),
        *("5:3", IN_ORDER),
    ),
    "a comma between rows": (("(A B+)", "(A, B+)"), "5:13", SIDE_BY_SIDE),
    "an arrow between rows": (("(A B+)", "(A -> B+)"), "5:14", SIDE_BY_SIDE),
    "a window without INTERVAL": (("(A B+)", "(A B+) WITHIN 10 MINUTES"), "5:25", DURATION),
    "a measure without a name": (("LAST(B.p) AS l", "LAST(B.p), A.p AS f"), "4:21", NAMED),
    "a measure without AS": (("LAST(B.p) AS l", "LAST(B.p) l"), "4:22", NAMED),
    "SKIP alone": (
        ("PATTERN", "SKIP TO NEXT ROW PATTERN"),
        *("5:3", "write AFTER MATCH SKIP PAST LAST ROW"),
    ),
    "a divided duration": (("LAST(B.p)", "(LAST(B.ts) - A.ts) / 60"), "4:12", SECONDS),
    "an epoch": (("LAST(B.p)", "EXTRACT(EPOCH FROM B.ts)"), "4:20", SECONDS),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_what_to_write(name: str) -> None:
    change, place, said = MISTAKES[name]
    with pytest.raises(celc.CelError) as caught:
        celc.compile(TEXT.replace(*change), name="q.sql", dialect="match_recognize")
    told = str(caught.value)
    assert f"q.sql:{place}: " in told
    assert said in told
    assert "and 24 more" not in told


def test_the_text_itself_compiles() -> None:
    assert celc.compile(TEXT, dialect="match_recognize").query.plan is not None
