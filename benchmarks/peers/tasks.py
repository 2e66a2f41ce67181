"""The tasks: a question, in CEL or MATCH_RECOGNIZE, and in SQL as one writes it who knows it well.

The SQL is read by DuckDB and by Spark alike. It uses joins on equalities wherever there is one,
windows where these replace a join, and buckets of time where there is no key: a join on
inequalities alone would compare all pairs. Each answer has the columns of `columns`, so that it can
be compared row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import celc

TYPES = "ABCDEFGHIJ"
EVENTS_OF_A_KEY = 1_000
NEAR = 50
"""How many events a window holds, on average: of its key, or of all."""


@dataclass(frozen=True, slots=True)
class Task:
    """A question, whose window is filled into all texts.

    `flink`: the name of its pattern in FlinkCEP, and the window; none where it is not asked there.
    `on_spark`: it is asked there, too.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    query: str
    sql: str
    flink: str = ""
    dialect: str = "cel"
    on_spark: bool = False

    def compiled(self, rows: int) -> Any:
        """The query in celc."""
        text = self.query.replace("WINDOW", str(window(rows)))
        if self.dialect == "match_recognize":
            text = f"CREATE TABLE quotes (k INT, ts LONG, v INT);\n{text}"
            return celc.compile(text, dialect=self.dialect).queries["query"]
        attributes = "k: INT, ts: LONG, v: INT"
        names = TYPES if self.table == "events" else "Q"
        declared = ", ".join(f"EVENT {name} {{ {attributes} }}" for name in names)
        made = celc.compile(f"CREATE STREAM S {{ {declared} }}\n{text}", order_by="ts")
        return next(iter(made.queries.values()))

    def sql_text(self, rows: int) -> str:
        """The query in SQL."""
        return _with_windows(self.sql, rows)

    def flink_text(self, rows: int) -> str:
        """The name of the pattern in `flink/Patterns.java`, and its window."""
        return _with_windows(self.flink, rows)


def _with_windows(text: str, rows: int) -> str:
    return text.replace("WINDOW_OF_KEY", str(window(rows))).replace("NEAR", str(NEAR))


def keys(rows: int) -> int:
    """How many keys there are."""
    return max(1, rows // EVENTS_OF_A_KEY)


def window(rows: int) -> int:
    """The units of time in which a key has NEAR events, on average."""
    return NEAR * keys(rows)


def tables(rows: int) -> dict[str, pa.Table]:
    """Events of ten types, and the same without types; one in each unit of time."""
    rng = np.random.default_rng(29)
    quotes = pa.table(
        {
            "k": rng.integers(0, keys(rows), rows).astype(np.int32),
            "ts": np.arange(rows),
            "v": rng.integers(0, 1000, rows).astype(np.int32),
        }
    )
    types = pa.array(np.array(list(TYPES))[rng.integers(0, len(TYPES), rows)])
    return {"events": quotes.append_column("type", types), "quotes": quotes}


_V_IN_SQL = """
WITH neighbours AS (
  SELECT *, LAG(v) OVER by_time AS before, LEAD(v) OVER by_time AS after
  FROM quotes WINDOW by_time AS (PARTITION BY k ORDER BY ts)
),
tops AS (
  SELECT *,
    MAX(CASE WHEN before IS NULL OR before <= v THEN ts END)
      OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS t1,
    MIN(CASE WHEN after IS NULL OR after <= v THEN ts END)
      OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS t2
  FROM neighbours
)
SELECT k, t1, t2 FROM tops WHERE before > v AND after > v"""

TASKS = (
    Task(
        "neighbours: A, then at once B, of one key",
        "events",
        ("k", "t1", "t2"),
        "SELECT a.ts AS t1, b.ts AS t2 WHERE A AS a : B AS b PARTITION BY k",
        """
WITH pairs AS (
  SELECT k, type, LAG(type) OVER by_time AS before, LAG(ts) OVER by_time AS t1, ts AS t2
  FROM events WINDOW by_time AS (PARTITION BY k ORDER BY ts)
)
SELECT k, t1, t2 FROM pairs WHERE before = 'A' AND type = 'B'""",
        "neighbours 0",
    ),
    Task(
        "two events: A ; B of one key in a window",
        "events",
        ("k", "t1", "t2"),
        "SELECT a.ts AS t1, b.ts AS t2 WHERE A AS a ; B AS b PARTITION BY k WITHIN WINDOW [ts]",
        """
SELECT a.k, a.ts AS t1, b.ts AS t2
FROM events a JOIN events b ON a.k = b.k AND a.ts < b.ts AND b.ts <= a.ts + WINDOW_OF_KEY
WHERE a.type = 'A' AND b.type = 'B'""",
        "two_events WINDOW_OF_KEY",
        on_spark=True,
    ),
    Task(
        "three events: A ; B ; C of one key in a window",
        "events",
        ("k", "t1", "t2", "t3"),
        "SELECT a.ts AS t1, b.ts AS t2, c.ts AS t3 WHERE A AS a ; B AS b ; C AS c "
        "PARTITION BY k WITHIN WINDOW [ts]",
        """
SELECT a.k, a.ts AS t1, b.ts AS t2, c.ts AS t3
FROM events a
JOIN events b ON a.k = b.k AND a.ts < b.ts AND b.ts <= a.ts + WINDOW_OF_KEY
JOIN events c ON a.k = c.k AND b.ts < c.ts AND c.ts <= a.ts + WINDOW_OF_KEY
WHERE a.type = 'A' AND b.type = 'B' AND c.type = 'C'""",
        "three_events WINDOW_OF_KEY",
        on_spark=True,
    ),
    Task(
        "three events without a key, in a window",
        "events",
        ("t1", "t2", "t3"),
        f"SELECT a.ts AS t1, b.ts AS t2, c.ts AS t3 WHERE A AS a ; B AS b ; C AS c "
        f"WITHIN {NEAR} [ts]",
        """
WITH home AS (SELECT type, ts, CAST(FLOOR(ts / NEAR) AS BIGINT) AS bucket FROM events),
near AS (SELECT * FROM home UNION ALL SELECT type, ts, bucket - 1 FROM home)
SELECT a.ts AS t1, b.ts AS t2, c.ts AS t3
FROM home a
JOIN near b ON a.bucket = b.bucket AND a.ts < b.ts AND b.ts <= a.ts + NEAR
JOIN near c ON a.bucket = c.bucket AND b.ts < c.ts AND c.ts <= a.ts + NEAR
WHERE a.type = 'A' AND b.type = 'B' AND c.type = 'C'""",
        "three_events_without_a_key NEAR",
        on_spark=True,
    ),
    Task(
        "absence: A ; B of one key in a window, no C between",
        "events",
        ("k", "t1", "t2"),
        "SELECT a.ts AS t1, b.ts AS t2 WHERE A AS a ; !C ; B AS b "
        "PARTITION BY k WITHIN WINDOW [ts]",
        """
WITH marked AS (
  SELECT *, MAX(CASE WHEN type = 'C' THEN ts END) OVER (PARTITION BY k ORDER BY ts) AS last_c
  FROM events
)
SELECT a.k, a.ts AS t1, b.ts AS t2
FROM events a JOIN marked b ON a.k = b.k AND a.ts < b.ts AND b.ts <= a.ts + WINDOW_OF_KEY
WHERE a.type = 'A' AND b.type = 'B' AND (b.last_c IS NULL OR b.last_c < a.ts)""",
        "absence WINDOW_OF_KEY",
    ),
    Task(
        "rising run of four or more, of one key",
        "quotes",
        ("k", "t1", "t2"),
        "SELECT LONGEST DISJOINT FIRST(x.ts) AS t1, LAST(x.ts) AS t2 "
        "WHERE (Q AS x):+ FILTER x.v > PREV(x.v) AND COUNT(x) >= 4 PARTITION BY k",
        """
WITH steps AS (
  SELECT *, CASE WHEN v > LAG(v) OVER (PARTITION BY k ORDER BY ts) THEN 0 ELSE 1 END AS begins
  FROM quotes
),
runs AS (SELECT *, SUM(begins) OVER (PARTITION BY k ORDER BY ts) AS run FROM steps)
SELECT k, MIN(ts) AS t1, MAX(ts) AS t2 FROM runs GROUP BY k, run HAVING COUNT(*) >= 4""",
        "rising_run 0",
    ),
    Task(
        "V shape, in CEL",
        "quotes",
        ("k", "t1", "t2"),
        "SELECT LONGEST top.ts AS t1, LAST(up.ts) AS t2 "
        "WHERE (!(Q AS before FILTER before.v > top.v) FOR 1 EVENTS ; "
        "Q AS top : (Q AS down):+ : (Q AS up):+) "
        "FILTER FIRST(down.v) < top.v AND down.v < PREV(down.v) "
        "AND FIRST(up.v) > LAST(down.v) AND up.v > PREV(up.v) PARTITION BY k",
        _V_IN_SQL,
        "v_shape 0",
    ),
    Task(
        "V shape, in MATCH_RECOGNIZE",
        "quotes",
        ("k", "t1", "t2"),
        "SELECT * FROM quotes MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
        "MEASURES S.ts AS t1, LAST(UP.ts) AS t2 AFTER MATCH SKIP TO LAST UP "
        "PATTERN (S DOWN+ UP+) DEFINE DOWN AS v < PREV(v), UP AS v > PREV(v))",
        _V_IN_SQL,
        "v_shape 0",
        "match_recognize",
        on_spark=True,
    ),
)
