"""The tasks: a question, in CEL or MATCH_RECOGNIZE, and in SQL as one writes it who knows it well.

The SQL is read by DuckDB and by Spark alike. It uses joins on equalities wherever there is one,
windows where these replace a join, and buckets of time where there is no key: a join on
inequalities alone would compare all pairs. Each answer has the columns of `columns`, so that it can
be compared row by row.

The last tasks are in MATCH_RECOGNIZE. They are written after what DuckDB measures of its clause, as
far as its pull request says it (duckdb/duckdb#25255): a scan in one partition, many partitions, a
quantifier with bounds, navigation, and patterns that a matcher which goes depth first tries again
from each start. Their queries are our own, and so is the data. Where DuckDB reads the clause, it
runs the same text, too; the releases up to 2.0.1 do not.
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
            text = f"CREATE TABLE {self.table} (k INT, ts LONG, v INT);\n{text}"
            return celc.compile(text, dialect=self.dialect).queries["query"]
        attributes = "k: INT, ts: LONG, v: INT"
        names = TYPES if self.table == "events" else "Q"
        declared = ", ".join(f"EVENT {name} {{ {attributes} }}" for name in names)
        made = celc.compile(f"CREATE STREAM S {{ {declared} }}\n{text}", order_by="ts")
        return next(iter(made.queries.values()))

    def clause_text(self, rows: int) -> str | None:
        """The same query for an engine that reads MATCH_RECOGNIZE; None for one of CEL."""
        if self.dialect != "match_recognize":
            return None
        return self.query.replace("WINDOW", str(window(rows)))

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
    """Events of ten types, the same without types, and the same in partitions of ten; one in each
    unit of time."""
    rng = np.random.default_rng(29)
    quotes = pa.table(
        {
            "k": rng.integers(0, keys(rows), rows).astype(np.int32),
            "ts": np.arange(rows),
            "v": rng.integers(0, 1000, rows).astype(np.int32),
        }
    )
    types = pa.array(np.array(list(TYPES))[rng.integers(0, len(TYPES), rows)])
    tens = quotes.set_column(0, "k", pa.array(np.arange(rows, dtype=np.int32) // 10))
    return {"events": quotes.append_column("type", types), "quotes": quotes, "tens": tens}


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
    Task(
        "one partition: runs of high values",
        "quotes",
        ("t1", "t2"),
        "SELECT * FROM quotes MATCH_RECOGNIZE (ORDER BY ts "
        "MEASURES FIRST(ts) AS t1, LAST(ts) AS t2 PATTERN (HIGH+) DEFINE HIGH AS v >= 900)",
        """
WITH high AS (SELECT ts, ts - ROW_NUMBER() OVER (ORDER BY ts) AS run FROM quotes WHERE v >= 900)
SELECT MIN(ts) AS t1, MAX(ts) AS t2 FROM high GROUP BY run""",
        dialect="match_recognize",
    ),
    Task(
        "partitions of ten rows: V shape",
        "tens",
        ("k", "t1", "t2"),
        "SELECT * FROM tens MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
        "MEASURES S.ts AS t1, LAST(UP.ts) AS t2 AFTER MATCH SKIP TO LAST UP "
        "PATTERN (S DOWN+ UP+) DEFINE DOWN AS v < PREV(v), UP AS v > PREV(v))",
        _V_IN_SQL.replace("quotes", "tens"),
        dialect="match_recognize",
    ),
    Task(
        "a quantifier with bounds: runs cut into threes to fives",
        "quotes",
        ("k", "t1", "t2"),
        "SELECT * FROM quotes MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
        "MEASURES FIRST(ts) AS t1, LAST(ts) AS t2 PATTERN (A{3,5}) DEFINE A AS v >= 300)",
        """
WITH placed AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS place FROM quotes),
runs AS (
  SELECT k, ts, place - ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS run
  FROM placed WHERE v >= 300
),
parts AS (
  SELECT *, FLOOR((ROW_NUMBER() OVER (PARTITION BY k, run ORDER BY ts) - 1) / 5) AS part FROM runs
)
SELECT k, MIN(ts) AS t1, MAX(ts) AS t2 FROM parts GROUP BY k, run, part HAVING COUNT(*) >= 3""",
        dialect="match_recognize",
    ),
    Task(
        "navigation: rows three before and one behind",
        "quotes",
        ("k", "t1", "t2", "t3"),
        "SELECT * FROM quotes MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
        "MEASURES A.ts AS t1, B.ts AS t2, NEXT(B.ts) AS t3 AFTER MATCH SKIP TO NEXT ROW "
        "PATTERN (A B) DEFINE B AS v > PREV(v, 3) AND v < NEXT(v))",
        """
WITH around AS (
  SELECT *, LAG(ts) OVER by_time AS t1, LAG(v, 3) OVER by_time AS before,
    LEAD(v) OVER by_time AS after, LEAD(ts) OVER by_time AS t3
  FROM quotes WINDOW by_time AS (PARTITION BY k ORDER BY ts)
)
SELECT k, t1, ts AS t2, t3 FROM around WHERE v > before AND v < after""",
        dialect="match_recognize",
    ),
    Task(
        "starts in vain: long runs that a rare row ends",
        "quotes",
        ("k", "t1", "t2"),
        "SELECT * FROM quotes MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
        "MEASURES FIRST(A.ts) AS t1, B.ts AS t2 "
        "PATTERN (A+ B) DEFINE A AS v < 980, B AS v >= 988)",
        """
WITH marked AS (
  SELECT *, SUM(CASE WHEN v < 980 THEN 0 ELSE 1 END) OVER (PARTITION BY k ORDER BY ts) AS run,
    LEAD(v) OVER (PARTITION BY k ORDER BY ts) AS after,
    LEAD(ts) OVER (PARTITION BY k ORDER BY ts) AS behind
  FROM quotes
)
SELECT k, MIN(ts) AS t1, MAX(CASE WHEN after >= 988 THEN behind END) AS t2
FROM marked WHERE v < 980 GROUP BY k, run HAVING MAX(CASE WHEN after >= 988 THEN 1 END) = 1""",
        dialect="match_recognize",
    ),
)
