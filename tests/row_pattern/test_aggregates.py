"""DISTINCT, FILTER and ORDER BY in aggregates, and measures of measures: what is refused, and why.
What they mean is in the random queries."""

from __future__ import annotations

import pyarrow as pa
import pytest
from celc_runtime import EventError
from engines import interpreted
from row_cases import compiled

from celc import CelError

_TYPES = "i INT, x INT, s STRING, l ARRAY<INT>"


def _query(measure: str, rest: str) -> str:
    return (
        f"CREATE TABLE t ({_TYPES}); SELECT * FROM t MATCH_RECOGNIZE (ORDER BY i "
        f"MEASURES {measure} AS m PATTERN (A+ B?) {rest})"
    )


@pytest.mark.parametrize(
    ("measure", "rest", "code", "marked"),
    [
        ("SUM(x ORDER BY i DESC)", "", "unsupported", "i DESC"),
        ("UPPER(DISTINCT s)", "", "unsupported", "DISTINCT"),
        ("LAST(x) FILTER (WHERE x > 1)", "", "unsupported", "x > 1"),
        ("UPPER(s ORDER BY i)", "", "unsupported", "i"),
        ("COUNT(DISTINCT *)", "", "type-mismatch", "COUNT(DISTINCT *)"),
        ("COUNT(*) FILTER (WHERE x)", "", "type-mismatch", "x"),
        ("COUNT(*) FILTER (WHERE A.x > 1)", "", "mixed-variables", None),
        ("SUM(A.x) FILTER (WHERE B.x > 1)", "", "mixed-variables", None),
        ("ARRAY_AGG(A.x ORDER BY i)", "", "mixed-variables", None),
        ("COUNT(*) FILTER (WHERE SUM(x) > 1)", "", "bad-nesting", "SUM(x)"),
        ("ARRAY_AGG(DISTINCT x ORDER BY i)", "", "unsupported", "i"),
        ("ARRAY_AGG(DISTINCT l)", "", "type-mismatch", "DISTINCT"),
        ("ARRAY_AGG(x ORDER BY l)", "", "type-mismatch", "l"),
        ("ABS(lambda q: q)", "", "unsupported", "lambda q: q"),
        ("s ->> '$.a.b'", "", "unsupported", "'$.a.b'"),
        ("m + 1", "", "unknown-column", "m"),
        ("ARRAY_AGG(x) AS n, n", "", "unknown-column", "n"),
        ("COUNT(*) AS n, SUM(n)", "", "unknown-column", "n"),
        ("COUNT(*) AS n, LAST(n)", "", "unknown-column", "n"),
        ("COUNT(*)", "DEFINE B AS COUNT(DISTINCT A.x) > 2", "unsupported", "DISTINCT"),
        ("COUNT(*) AS n, n", "DEFINE B AS n > 2", "unknown-column", "n"),
        ("COUNT(*)", "DEFINE B AS LAST(A.x, 10000) > 2", "too-large", "LAST(A.x, 10000) > 2"),
    ],
)
def test_what_is_refused(measure: str, rest: str, code: str, marked: str | None) -> None:
    with pytest.raises(CelError) as caught:
        compiled(_query(measure, rest))
    (problem,) = caught.value.diagnostics
    assert problem.code == code
    if marked is not None:
        assert caught.value.source.slice(problem.span) == marked


def test_null_has_no_place_of_its_own() -> None:
    numbers = {"i": [2, 1], "x": [None, 1]}
    whole = {name: pa.array(values, pa.int32()) for name, values in numbers.items()}
    lists = pa.array([[1], None], pa.list_(pa.int32()))
    rows = pa.table({**whole, "s": ["a", "b"], "l": lists})
    with interpreted():
        query = compiled(_query("ARRAY_AGG(s ORDER BY x)", ""))
        told = "NULL in row 1 of its order"
        with pytest.raises(EventError, match=told):
            query.match_table(rows)
        kept = compiled(_query("ARRAY_AGG(s ORDER BY x DESC NULLS FIRST)", ""))
        assert kept.match_table(rows).to_pylist() == [{"m": ["a", "b"]}]
