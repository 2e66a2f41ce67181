"""Formats of TO_DATE and TO_TIMESTAMP read texts as Spark's own functions do, in UTC."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from conftest import long_over_connect
from engines import interpreted
from stream_routes import settings

import celc

_FORMATS = (
    "yyyy-MM-dd",
    "yyyy-MM-dd HH:mm:ss",
    "yyyy-MM-dd'T'HH:mm:ss.SSS",
    "yyyyMMddHHmmss",
    "yyyyMMdd HHmmss.SSS",
    "yyyyMMdd",
    "dd.MM.yyyy",
    "d.M.yyyy H:m:s",
    "M/d/yy h:mm a",
    "MM/dd/yyyy hh:mm:ss a",
    "hh a, dd-MM-yyyy",
    "dd/MM/yy",
    "HH:mm",
    "yyyy",
    "yyyy 'at' MM 'o''clock'",
    "ss.SSSSSSSSS",
    "mm:ss.S",
    "yyyy-MM-dd HH",
)
_SIGNS = "0123456789-:/. aApPmMTx+'٣é\n"


def _written(rng: random.Random, format: str) -> str:
    """A text in a format. Most of these texts are times that exist."""
    day = rng.choice((1, 5, 28, 29, 30, 31)) if rng.random() < 0.95 else rng.choice((0, 32))
    numbers = {
        "y": rng.choice((2024, 2023, 1970, 1900, 2000, 1, 9999)),
        "M": rng.randint(0, 13) if rng.random() < 0.1 else rng.randint(1, 12),
        "d": day,
        "H": rng.randint(0, 25) if rng.random() < 0.1 else rng.randint(0, 23),
        "h": rng.randint(0, 13) if rng.random() < 0.2 else rng.randint(1, 12),
        "m": rng.choice((0, 7, 30, 59, 60)),
        "s": rng.choice((0, 7, 30, 59, 60)),
    }
    found, at = "", 0
    while at < len(format):
        letter = format[at]
        end = at
        while end < len(format) and format[end] == letter:
            end += 1
        if letter == "'":
            end = at + 1
            while format[end] != "'" or format[end : end + 2] == "''":
                end += 2 if format[end] == "'" else 1
            found += format[at + 1 : end].replace("''", "'")
            end += 1
        elif letter == "S":
            digits = rng.choice((1, end - at, end - at, end - at + 1))
            found += "".join(rng.choices("0123456789", k=digits))
        elif letter == "a":
            found += rng.choice(("AM", "PM", "am", "Pm"))
        elif letter in numbers:
            number = numbers[letter] % 100 if format[at:end] == "yy" else numbers[letter]
            width = end - at if rng.random() < 0.93 else rng.randint(1, 4)
            found += f"{number:0{width}}"
        else:
            found += format[at:end]
        at = end
    return found


def _changed(rng: random.Random, text: str) -> str | None:
    """The text, or in a quarter of the cases NULL or a text with a small mistake."""
    kind = rng.random()
    if kind < 0.03:
        return None
    if kind > 0.25 or not text:
        return text
    at = rng.randrange(len(text))
    if kind < 0.1:
        return text[:at] + text[at + 1 :]
    if kind < 0.2:
        return text[:at] + rng.choice(_SIGNS) + text[at + (rng.random() < 0.5) :]
    return text.upper() if rng.random() < 0.5 else f"{rng.choice((' ', '', '+'))}{text} "


def _texts(format: str, rows: int) -> list[str | None]:
    rng = random.Random(format)
    return [_changed(rng, _written(rng, format)) for _ in range(rows)]


@long_over_connect
@pytest.mark.parametrize("rows", [300, pytest.param(10_000, marks=pytest.mark.long)])
def test_formats_read_what_spark_reads(spark: Any, rows: int) -> None:
    texts = {f"s{n}": _texts(one, rows) for n, one in enumerate(_FORMATS)}
    events = pa.table({"type": ["A"] * rows, **texts})
    quoted = [one.replace("'", "''") for one in _FORMATS]
    items = [
        f"TO_TIMESTAMP(a.s{n}, '{one}') AS t{n}, TO_DATE(a.s{n}, '{one}') AS d{n}"
        for n, one in enumerate(quoted)
    ]
    attributes = ", ".join(f"{name}: STRING" for name in texts)
    with interpreted():
        query = celc.compile(
            f"CREATE STREAM S {{ EVENT A {{ {attributes} }} }}\n"
            f"SELECT {', '.join(items)} FROM S WHERE A AS a"
        )
    mine = query.match_table(events)
    with settings(spark, {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "false"}):
        escaped = [one.replace("'", "\\'") for one in _FORMATS]
        asked = []
        for n, one in enumerate(escaped):
            time = f"try_to_timestamp(s{n}, '{one}')"
            asked += [f"{time} AS t{n}", f"CAST({time} AS DATE) AS d{n}"]
        theirs = spark.createDataFrame(events).selectExpr(*asked).toArrow()
    wrong, known = [], 0
    for n, format in enumerate(_FORMATS):
        for name in (f"t{n}", f"d{n}"):
            kind = pa.int64() if name[0] == "t" else pa.int32()
            sides = (table[name].cast(kind).to_pylist() for table in (mine, theirs))
            pairs = zip(*sides, texts[f"s{n}"], strict=True)
            for one, other, text in pairs:
                known += other is not None
                if one != other:
                    wrong.append(f"{format}: {text!r}: {one}, on Spark {other}")
    assert known > 0.8 * len(_FORMATS) * rows
    assert not wrong, "\n".join(wrong[:60])
