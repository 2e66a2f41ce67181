"""The query of the first page of the documents, its events, and hostile texts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from engines import interpreted

import celc

FIRE = """CREATE STREAM Farm {
  EVENT T { id: LONG, value: DOUBLE, ts: TIMESTAMP },
  EVENT H { id: LONG, value: DOUBLE, ts: TIMESTAMP }
}
QUERY fire:
SELECT hot[value], dry[value]
FROM Farm
WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND dry.value <= 25
PARTITION BY id
WITHIN 10 MINUTES [ts]
"""

_NOON = 1_782_907_200_000_000
_ROWS = [
    ("T", 1, 41.5, 0),
    ("H", 1, 31.0, 60),
    ("T", 2, 38.0, 90),
    ("T", 1, 42.0, 240),
    ("H", 2, 22.0, 300),
    ("H", 1, 24.5, 420),
    ("H", 1, 23.0, 780),
]


def farm() -> pa.Table:
    """Seven readings at two places, with three matches."""
    kinds, ids, values, seconds = zip(*_ROWS, strict=True)
    times = [_NOON + 1_000_000 * second for second in seconds]
    return pa.table(
        {
            "type": kinds,
            "id": pa.array(ids, pa.int64()),
            "value": values,
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )


def matcher(text: str = FIRE, **options: Any) -> Any:
    """A matcher that runs as plain Python, since compiling it takes longer than its few events."""
    with interpreted():
        return celc.compile(text, **options)


HOSTILE = (
    "</script><script>window.hurt = 1</script>",
    '"><img src=x onerror="window.hurt = 1">',
    "<!--<script>",
    "a\u2028b\u2029c",
    "'+window.hurt+'",
    "{{ 7 * 7 }}",
    "&lt;b&gt;\\u003c",
    "\u202eright to left, a\ttab, \x00",
)
"""Texts that would hurt a page in which they were not escaped."""


def hostile() -> tuple[str, pa.Table]:
    """A query and events with hostile texts, as values, as keys and as names."""
    name = "`<b onmouseover=window.hurt=1>`"
    text = (
        f"CREATE STREAM S {{ EVENT A {{ note: STRING, {name}: STRING }} }}\n"
        "-- </script><script>window.hurt = 1</script>\n"
        f"SELECT x[note, {name}] FROM S WHERE A AS x PARTITION BY note WITHIN 1 EVENTS"
    )
    return text, pa.table({"note": HOSTILE, name.strip("`"): HOSTILE})
