"""SELECT TOTAL … PER PARTITION on streams: at the end, and with emit='running'."""

from __future__ import annotations

import random
import warnings
from dataclasses import replace
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pytest
from celc_runtime import CompiledQuery, EventError
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.rules.rows import rows_of
from celc_runtime.stream.emitted import emitting
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.rules import in_one_order
from engines import Event, Row, interpreted, only_query, table_of
from parameters import rows_table
from streams_by_hand import EVENT_TIME, Operator, instant, same_rows, streamed, streamed_behind

import celc

_ATTRIBUTES = f"k: STRING, n: INT, v: DOUBLE, d: DECIMAL(30, 2), {EVENT_TIME}: TIMESTAMP, row: LONG"
_DECLARED = f"""CREATE STREAM S {{
  EVENT A {{ {_ATTRIBUTES} }}, EVENT B {{ {_ATTRIBUTES} }}
}}
PARAMETERS rule {{ id: STRING, least: INT }}
"""

_ITEMS = (
    "COUNT(*) AS many",
    "APPROX_COUNT(*) AS about",
    "COUNT(x) AS xs",
    "SUM(x.n) AS s",
    "AVG(x.v) AS a",
    "SUM(y.v) AS t",
    "MIN(y.n) AS l, MAX(y.v) AS g",
    "SUM(y.d) AS d, MIN(x.d) AS e, AVG(y.d) AS f",
)
_FORMULAS = (
    "A AS x ; B AS y",
    "A AS x ; B+ AS y",
    "A AS x : B AS y",
    "(A AS x ; B AS y) FILTER x.n < y.n",
    "A AS x ; B AS y ; !A FOR 3 MILLISECONDS",
    "A AS x ; B AS y ; !(A FILTER A[n > 1])",
    "!B FOR 2 MILLISECONDS ; A AS x ; B AS y",
    "NXT(A AS x ; B AS y)",
)


def _drawn(rng: random.Random) -> CompiledQuery:
    items = rng.sample(_ITEMS, rng.randint(1, 3))
    clauses = [
        f"SELECT TOTAL {', '.join(items)}",
        f"FROM S WHERE {rng.choice(_FORMULAS)}",
        rng.choice(("", "PARTITION BY k")),
        f"WITHIN {rng.choice(('3 MILLISECONDS', '9 MILLISECONDS', '5 EVENTS'))}",
        rng.choice(("", "", "CONSUME BY PARTITION")),
        "PER PARTITION",
        rng.choice(("", "HAVING COUNT(*) > 2")) if "many" in items[0] else "",
    ]
    ties = "arrival" if rng.random() < 0.7 or "EVENTS" in clauses[3] else "simultaneous"
    if "NXT" in clauses[1] or ":" in clauses[1] or clauses[4]:
        ties = "arrival"
    options: dict[str, Any] = (
        {"ties": "simultaneous"} if ties == "simultaneous" else {"tiebreak": "row"}
    )
    try:
        with interpreted(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            query = only_query(
                celc.compile(_DECLARED + " ".join(clauses), order_by=EVENT_TIME, **options)
            )
    except celc.CelError:
        return _drawn(rng)
    if why_not(query.program, Route.STREAM) is not None:
        return _drawn(rng)
    return query.with_options(positions=rng.random() < 0.5)


def _events(rng: random.Random, count: int = 16) -> list[Event]:
    time, found = 10, []
    for row in range(count):
        time += rng.choice((0, 1, 1, 2, 5))
        found.append(
            {
                "type": rng.choice("AB"),
                "k": rng.choice(("", "é", None)),
                "n": rng.choice((1, 2, 3, None)),
                "v": rng.choice((0.5, -0.0, 4.0, None)),
                "d": rng.choice((Decimal("1.25"), Decimal("-" + "9" * 20), None)),
                EVENT_TIME: instant(time),
                "row": row,
            }
        )
    return found


def _wanted(query: CompiledQuery, events: list[Event], **tables: Any) -> list[Row]:
    closed = query.with_options(at_end="closed")
    return closed.match_table(table_of(query.plan, events), **tables).to_pylist()


def _options(query: CompiledQuery, buckets: int) -> StreamOptions:
    types = {"row": "LONG"} if query.plan.source.tiebreak else {}
    return StreamOptions(types, buckets=buckets)


def _check(seed: int) -> int:
    """Compare a stream with the same events as a table; returns the number of rows."""
    rng = random.Random(seed)
    query, events = _drawn(rng), _events(rng)
    options = _options(query, rng.choice((1, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = _wanted(query, events)
        found = streamed(query, events, rng, options=options, largest=rng.choice((1, 3)))
    assert not (
        told := same_rows(found, wanted)
    ), f"seed {seed}: {told}\n{query.program.text}{events}"
    return len(wanted)


def _running(query: CompiledQuery) -> CompiledQuery:
    return CompiledQuery(emitting(query.program, "running"))


def _of_ends(query: CompiledQuery) -> CompiledQuery:
    """The same query PER END, without HAVING."""
    totals = query.plan.answer.totals
    assert totals is not None
    answer = replace(query.plan.answer, totals=replace(totals, per="END", having=None))
    return CompiledQuery(replace(query.program, plan=replace(query.plan, answer=answer)))


def _check_running(seed: int) -> int:
    """A row for each end. Counts are sums of those of ends; the last rows are those of a table."""
    rng = random.Random(seed)
    query, events = _drawn(rng), _events(rng)
    totals = query.plan.answer.totals
    assert totals is not None
    if totals.having is not None:
        return 0
    try:
        running = _running(query)
    except EventError:  # of absences that differ
        return 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = streamed(running, events, rng, options=_options(query, 1), largest=3)
        ends, final = _wanted(_of_ends(query), events), _wanted(query, events)
    told = f"seed {seed}: {query.program.text}{events}"
    names = [name for name in ("k", "end_pos", "end_time") if ends and name in ends[0]]
    assert not same_rows(
        *([{n: r[n] for n in names} for r in rows] for rows in (found, ends))
    ), told
    last = {row.get("k"): row for row in found}
    rows = [{n: row[n] for n in query.output_schema.names} for row in last.values()]
    assert not same_rows(rows, final), told
    if "many" in query.output_schema.names:
        for key in last:
            of_key = [[r["many"] for r in rows if r.get("k") == key] for rows in (found, ends)]
            assert of_key[0] == [*accumulate(of_key[1])], told
    return len(found)


def test_streams_have_the_rows_of_tables_when_they_end() -> None:
    assert sum(map(_check, range(12))) >= 9


def test_running_totals_are_those_of_the_ends_so_far() -> None:
    assert sum(map(_check_running, range(12))) >= 15


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 3000, 250))
def test_many_streams(first: int) -> None:
    for seed in range(first, first + 250):
        _check(seed)
        _check_running(seed)
        _check_late(seed)


def _check_late(seed: int) -> int:
    """Partitions that begin behind the watermark, and events that are late."""
    rng = random.Random(seed)
    query, events = _drawn(rng), _events(rng)
    if not query.plan.source.tiebreak or not query.plan.source.partition_by:
        return 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        heard = streamed_behind(query, events, rng)
        wanted = _wanted(query, heard.events)
    told = same_rows(heard.rows, wanted)
    assert not told, f"seed {seed}: {told}\n{query.program.text}{events}"
    return len(wanted)


def test_late_events_are_in_no_total() -> None:
    assert sum(map(_check_late, range(12))) >= 4


def test_each_row_of_a_set_has_totals_of_its_own() -> None:
    rng = random.Random(1)
    text = """SELECT TOTAL COUNT(*) AS many, SUM(y.n) AS s FROM S FOR EACH rule
WHERE (A AS x ; B AS y) FILTER x.n >= rule.least PARTITION BY k WITHIN 9 MILLISECONDS
PER PARTITION"""
    with interpreted():
        query = only_query(celc.compile(_DECLARED + text, order_by=EVENT_TIME, tiebreak="row"))
    table = rows_table(query, [{"id": "a", "least": 1}, {"id": "b", "least": 2}])
    rules = in_one_order(rows_of(query.name, query.plan.source.parameters, table))
    events = _events(rng, 40)
    found = streamed(query, events, rng, options=_options(query, 1), rules=rules)
    assert not same_rows(found, _wanted(query, events, rule=table))
    assert len(found) > 3


def test_totals_so_far_are_asked_of_partitions_alone() -> None:
    def compiled(select: str, behind: str) -> CompiledQuery:
        with interpreted(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = f"{_DECLARED}SELECT {select} FROM S WHERE {behind}"
            return only_query(celc.compile(text, order_by=EVENT_TIME))

    plain = "A AS x ; B AS y WITHIN 9 MILLISECONDS"
    with pytest.raises(EventError, match="it has no SELECT TOTAL … PER PARTITION"):
        emitting(compiled("*", plain).program, "running")
    with pytest.raises(EventError, match="it has no SELECT TOTAL … PER PARTITION"):
        emitting(compiled("TOTAL COUNT(*) AS n", plain).program, "running")
    absent = "A AS x ; B AS y ; !A WITHIN 9 MILLISECONDS PER PARTITION"
    with pytest.raises(EventError, match="decided at different times"):
        emitting(compiled("TOTAL COUNT(*) AS n", absent).program, "running")
    with pytest.raises(ValueError, match="'final', 'running', not 'each'"):
        emitting(compiled("*", plain).program, "each")


def test_the_state_is_bounded() -> None:
    """Some numbers for each partition, however many matches there were."""
    text = """SELECT TOTAL COUNT(*) AS n FROM S WHERE A ; B PARTITION BY k WITHIN 5 MILLISECONDS
PER PARTITION"""
    with interpreted():
        query = only_query(celc.compile(_DECLARED + text, order_by=EVENT_TIME, tiebreak="row"))
    operator, sizes = Operator(query, _options(query, 1)), []
    for number in range(60):
        events = [
            {"type": type, "k": "a", EVENT_TIME: instant(10 + 2 * number + place), "row": number}
            for place, type in enumerate("AB")
        ]
        operator.advance(table_of(query.plan, events), 10 + 2 * number)
        sizes.append(operator.sum("bytes"))
    assert max(sizes[30:]) <= max(sizes[:30]) + 10  # sums take more digits
    (row,) = operator.finish()
    assert row["n"] > 100
