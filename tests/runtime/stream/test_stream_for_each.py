"""FOR EACH on streams, by hand: the cases, tables that change, and what is refused."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from cases_io import load_cases
from celc_runtime import CompiledQuery
from celc_runtime.plan.errors import StateError
from celc_runtime.program import Rows
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.rules.rows import rows_of
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.rules import hash_of_rows, in_one_order
from engines import Event, engines, interpreted, only_query, table_of
from parameters import rows_table
from places import CASES
from streams_by_hand import EVENT_TIME, Operator, instant, microseconds, same_rows, streamed, timed

import celc
from celc.options import Options

_STREAM = f"""CREATE STREAM S {{
  EVENT A {{ id: INT, v: DOUBLE, {EVENT_TIME}: TIMESTAMP }},
  EVENT B {{ id: INT, v: DOUBLE, {EVENT_TIME}: TIMESTAMP }}
}}
PARAMETERS rule {{ id: INT, least: DOUBLE, name: STRING }}
"""
_PAIR = "WHERE (A AS a ; B AS b) FILTER a.id = rule.id AND b.id = a.id AND b.v >= rule.least"


def _query(text: str) -> CompiledQuery:
    with interpreted():
        compiled = only_query(celc.compile(_STREAM + text, order_by=EVENT_TIME))
    return compiled.with_options(positions=False)


def _rules(query: CompiledQuery, *rows: tuple[int, float, str | None]) -> Rows:
    parameters = query.plan.source.parameters
    assert parameters is not None
    table = rows_table(
        query, [dict(zip(("id", "least", "name"), row, strict=True)) for row in rows]
    )
    return in_one_order(rows_of(query.name, parameters, table))


def _difference(
    query: CompiledQuery, events: list[Event], rules: pa.Table, rng: random.Random
) -> tuple[str, int]:
    """What differs between the answers of a stream and of a table; and how many rows there are."""
    parameters = query.plan.source.parameters
    assert parameters is not None
    closed = query.with_options(at_end="closed")
    wanted = closed.match_table(table_of(query.plan, events), rule=rules).to_pylist()
    rows = in_one_order(rows_of(query.name, parameters, rules))
    options = StreamOptions({}, buckets=rng.choice((1, 3)), rules=hash_of_rows(rows))
    found = streamed(query, events, rng, options=options, rules=rows)
    return same_rows(found, wanted), len(wanted)


def test_cases() -> None:
    """Those that a stream can run: not CONSUME BY ANY of partitions. Crossed features have those of
    events that last."""
    problems, matches, compared = [], 0, 0
    for number, case in enumerate(load_cases(folder=CASES / "parameters")):
        text = case.query
        if case.ties or case.ends_late or case.lasts or number % 4:
            continue
        if "CONSUME BY ANY" in text and "PARTITION BY" in text:
            continue
        if "VALID [" in text:
            continue  # its times are not those of a stream; test_changing_rules has streams with it
        with interpreted():
            compiled = engines(timed(text), Options((EVENT_TIME,)))
        events = [{**e, EVENT_TIME: instant(1 + at)} for at, e in enumerate(case.events)]
        for name, matcher in compiled.items():
            positions = len(case.name) % 2 == 0
            query = only_query(matcher).with_options(positions=positions)
            if why_not(query.program, Route.UNBOUNDED) is not None:
                continue
            rules = rows_table(query, case.parameters["rule"])
            told, count = _difference(query, events, rules, random.Random(case.name))
            problems += [f"{case.name} ({name}): {told}"] if told else []
            matches += count
        compared += 1
    assert not problems, "\n".join(problems)
    assert compared >= 8
    assert matches >= 20


@pytest.mark.each(3, values=False)
@pytest.mark.parametrize("seeds", [2, pytest.param(6, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "text",
    [
        f"SELECT a, b FROM S FOR EACH rule {_PAIR} WITHIN 20 MILLISECONDS",
        f"SELECT a, b FROM S FOR EACH rule {_PAIR} PARTITION BY id WITHIN 9 MILLISECONDS",
        f"SELECT LAST b FROM S FOR EACH rule {_PAIR} WITHIN 30 MILLISECONDS",
        f"SELECT a FROM S FOR EACH rule {_PAIR} WITHIN 20 MILLISECONDS CONSUME BY PARTITION",
        f"SELECT COLLAPSED * FROM S FOR EACH rule {_PAIR} WITHIN 20 MILLISECONDS",
        f"SELECT TOTAL COUNT(*) AS n FROM S FOR EACH rule {_PAIR} WITHIN 20 MILLISECONDS "
        "HAVING n > rule.least",
        "SELECT a FROM S FOR EACH rule WHERE (A AS a ; !B FOR 5 MILLISECONDS) "
        "FILTER a.id = rule.id AND a.v > rule.least",
        "SELECT a FROM S FOR EACH rule WHERE (A AS a : B) FILTER a.v > rule.least "
        "WITHIN 20 MILLISECONDS",
        f"SELECT a, b FROM S FOR EACH rule {_PAIR} PARTITION BY id WITHIN 4 EVENTS",
        f"SELECT FIRST a, b FROM S FOR EACH rule {_PAIR} WITHIN 9 EVENTS",
        "SELECT a FROM S FOR EACH rule WHERE (A AS a ; !(B AS b FILTER b.id = rule.id) "
        "FOR 3 EVENTS) FILTER a.id = rule.id AND a.v > rule.least",
        "SELECT b FROM S FOR EACH rule WHERE (!A FOR 2 EVENTS ; B AS b) FILTER b.v > rule.least "
        "WITHIN 20 MILLISECONDS",
        f"SELECT a, b FROM S FOR EACH rule {_PAIR.replace('(A', 'WITHIN[3 EVENTS](A')} "
        "WITHIN 20 MILLISECONDS",
    ],
)
def test_a_stream_gives_the_rows_of_a_table(text: str, seeds: int) -> None:
    asked, matches = _query(text), 0
    for seed in range(seeds):
        rng = random.Random(seed)
        query = asked.with_options(positions=seed % 3 == 0)
        times = sorted(rng.sample(range(1, 120), 40))
        events = [
            {
                "type": rng.choice("AB"),
                "id": rng.choice((1, 2, 3, None)),
                "v": rng.choice((0.5, 2.0, None)),
                EVENT_TIME: instant(time),
            }
            for time in times
        ]
        rows = [(rng.choice((1, 2, 3)), rng.choice((0.0, 1.0)), "n") for _ in range(4)]
        rules = rows_table(
            query, [dict(zip(("id", "least", "name"), row, strict=True)) for row in rows]
        )
        told, count = _difference(query, events, rules, rng)
        assert not told, f"seed {seed}: {told}"
        matches += count
    assert matches


def test_the_order_of_a_table_does_not_matter() -> None:
    query = _query(f"SELECT a FROM S FOR EACH rule {_PAIR} WITHIN 20 MILLISECONDS")
    one = _rules(query, (1, 0.0, "p"), (2, 1.0, None), (1, float("nan"), "q"))
    other = _rules(query, (1, float("nan"), "q"), (1, 0.0, "p"), (2, 1.0, None))
    assert hash_of_rows(one) == hash_of_rows(other)
    changed = _rules(query, (1, 0.0, "p"), (2, 1.0, "p"), (1, float("nan"), "q"))
    assert hash_of_rows(one) != hash_of_rows(changed)


def test_another_table_does_not_fit_a_checkpoint() -> None:
    query = _query(f"SELECT a FROM S FOR EACH rule {_PAIR} WITHIN 20 MILLISECONDS")
    one, other = _rules(query, (1, 0.0, "p")), _rules(query, (2, 0.0, "p"))
    event = {"type": "A", "id": 1, "v": 1.0, EVENT_TIME: instant(5)}
    begun = Operator(query, StreamOptions({}, rules=hash_of_rows(one)), rules=one)
    begun.advance(table_of(query.plan, [event]), 0)
    goes_on = Operator(query, StreamOptions({}, rules=hash_of_rows(other)), rules=other)
    goes_on.headers, goes_on.segments = begun.headers, begun.segments
    with pytest.raises(StateError, match="another table of parameters"):
        goes_on.advance(table_of(query.plan, [event]), 0)


def _check_late(seed: int) -> int:
    """Late events come for each row that they are late for, and are in no match of that row;
    returns their number."""
    rng = random.Random(seed)
    text = rng.choice(
        (
            f"SELECT a, b FROM S FOR EACH rule {_PAIR} WITHIN 9 MILLISECONDS",
            f"SELECT a FROM S FOR EACH rule {_PAIR} PARTITION BY id WITHIN 9 MILLISECONDS",
            "SELECT * FROM S FOR EACH rule WHERE (A AS a ; B AS b) FILTER b.v >= rule.least "
            "WITHIN 9 MILLISECONDS",
        )
    )
    query = _query(text)
    rows = [{"id": id, "least": v, "name": name} for id, v, name in ((1, 0.5, "x"), (1, 2.0, None))]
    rows += [{"id": 2, "least": 1.0, "name": "é"}]
    rules = _rules(query, *(tuple(row.values()) for row in rows))
    events, time = [], 10
    for row in range(20):
        time += rng.choice((1, 1, 2, 4))
        type, id = rng.choice("AB"), rng.choice((1, 1, 2, 3))
        v = rng.choice((0.0, 1.0, 2.0))
        events.append({"type": type, "id": id, "v": v, EVENT_TIME: instant(time), "row": row})
    options = StreamOptions({}, late="side", buckets=rng.choice((1, 3)), rules=hash_of_rows(rules))
    operator, told, latest = Operator(query, options, rng=rng, rules=rules), [], 0
    for event in sorted(events, key=lambda e: (microseconds(e[EVENT_TIME]) + 9000 * rng.random())):
        told += operator.advance(table_of(query.plan, [event]), max(0, latest - 2))
        latest = max(latest, microseconds(event[EVENT_TIME]) // 1000)
    told += operator.finish()
    late = [(row["rule"], row["event"]) for row in told if row["kind"] == "late"]
    shown = query.output_schema.field("rule").type
    found, wanted = [], []
    for row in told:
        if row["kind"] == "match":
            found.append({name: row[name] for name in query.output_schema.names})
    for rule in rows:
        of_rule = {field.name: rule[field.name] for field in shown}
        lost = [event[EVENT_TIME] for known, event in late if known == of_rule]
        heard = [event for event in events if event[EVENT_TIME] not in lost]
        table = rows_table(query, [rule])
        wanted += query.match_table(table_of(query.plan, heard), rule=table).to_pylist()
    assert not (differs := same_rows(found, wanted)), f"seed {seed}: {differs}"
    assert operator.counts["late"] == len(late)
    return len(late)


@pytest.mark.parametrize("seeds", [4, pytest.param(20, marks=pytest.mark.long)])
def test_late_events_come_for_the_rows_that_they_are_late_for(seeds: int) -> None:
    assert sum(map(_check_late, range(seeds))) >= 20 * seeds // 20
