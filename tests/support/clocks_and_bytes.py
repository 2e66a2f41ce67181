"""Queries about TIMESTAMP_NTZ, BINARY, SHORT and BYTE, and their answers."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

_ATTRIBUTES = "at: TIMESTAMP_NTZ, data: BINARY, n: SHORT, b: BYTE, row: LONG"
DECLARATION = f"CREATE STREAM S {{ EVENT A {{ {_ATTRIBUTES} }}, EVENT B {{ {_ATTRIBUTES} }} }}\n"
# The clocks of St John's and of Berlin do not show, or show twice, some of these.
TIMES = [
    dt.datetime(2024, 3, 10, 1, 30),
    dt.datetime(2024, 3, 10, 2, 30),
    dt.datetime(2024, 3, 31, 2, 30),
    None,
    dt.datetime(2024, 10, 27, 2, 30, 0, 1),
    dt.datetime(1900, 1, 1),
]
EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "B", "B", "B"],
        "at": pa.array(TIMES, pa.timestamp("us")),
        "data": pa.array([b"a\x00", b"", None, b"a\x00", b"\xff", b""], pa.binary()),
        "n": pa.array([1, 32767, -32768, None, 300, 5], pa.int16()),
        "b": pa.array([1, 127, -128, None, 44, 5], pa.int8()),
        "row": pa.array(range(6), pa.int64()),
    }
)

ONE = (
    ("HOUR(x.at) = 2 AND MINUTE(x.at) = 30", [1, 2, 4]),
    ("x.at = CAST('2024-03-10 02:30:00' AS TIMESTAMP_NTZ)", [1]),
    ("x.at + 1 HOUR > CAST(TIMESTAMP '2024-03-31 03:00:00' AS TIMESTAMP_NTZ)", [2, 4]),
    (
        "x.at IN (CAST('1900-01-01' AS TIMESTAMP_NTZ), "
        "CAST('2024-03-10 01:30:00' AS TIMESTAMP_NTZ))",
        [0, 5],
    ),
    ("CAST(x.at AS TIMESTAMP) < TIMESTAMP '2024-03-10 02:00:00'", [0, 5]),
    ("DATE_TRUNC('DAY', x.at) = TIMESTAMP '2024-03-10 00:00:00'", [0, 1]),
    ("HOUR(x.at + 45 MINUTES) = 3", [1, 2, 4]),
    (
        "COALESCE(x.at, CAST('2000-01-01' AS TIMESTAMP_NTZ)) < CAST('2001-01-01' AS TIMESTAMP_NTZ)",
        [3, 5],
    ),
    ("CAST(x.at AS STRING) LIKE '%.000001'", [4]),
    ("x.data = x.data", [0, 1, 3, 4, 5]),
    ("x.data IS NULL", [2]),
    ("x.n + x.n = -2 AND x.b + x.b = -2", [1]),
    ("CAST(x.n AS BYTE) = x.b AND x.n > x.b", [4]),
    ("ABS(x.n) = 300 OR -x.b = -128", [2, 4]),
)
TWO = (
    ("x.at = y.at", []),
    ("y.at - x.at = 1 HOUR", [(0, 1)]),
    ("y.at < x.at + 1 DAY", [(0, 1), (0, 5), (2, 5)]),
    ("x.at IS NOT DISTINCT FROM y.at OR y.at IS NULL", [(0, 3), (2, 3)]),
    ("GREATEST(x.at, y.at) = y.at", [(0, 1), (0, 4), (2, 4)]),
    ("x.data = y.data", [(0, 3)]),
    ("x.data <> y.data", [(0, 1), (0, 4), (0, 5)]),
    ("x.data IS DISTINCT FROM y.data AND y.row < 5", [(0, 1), (0, 4), (2, 3), (2, 4)]),
    ("x.n + y.n < 0 AND x.b < y.b", [(0, 1), (2, 4), (2, 5)]),
)
"""Conditions, each with the rows of x, or of x and y, in the matches of its formula."""
ALL = tuple((condition, "(A OR B) AS x", found) for condition, found in ONE) + tuple(
    (condition, "A AS x ; B AS y", found) for condition, found in TWO
)
