"""Queries that read queries: the cases on one machine, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from cases_io import Case, load_cases, load_refused
from celc_runtime import EventError
from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.chain.columns import as_run, levels_of
from celc_runtime.chain.rows import declared_rows, event_table
from celc_runtime.chain.run import ChainRun, why_gathered
from celc_runtime.plan.strategy import Checked
from celc_runtime.rules.any_query import matches_of_table
from celc_runtime.run.walk.by_definition import DefinitionWalk
from engines import interpreted
from parameters import rows_table
from places import CASES
from queries_over_queries import chain_answer, source_table, together_table
from reference import difference, evaluate
from strategies_queries import DECLARATION

import celc

FOLDER = CASES / "queries"


@pytest.mark.parametrize("case", load_cases(folder=FOLDER), ids=lambda case: case.name)
def test_cases(case: Case) -> None:
    with interpreted():
        matcher = celc.compile(case.query, order_by=case.order_by, at_end=case.at_end)
    query = matcher.queries[case.query_name or next(iter(matcher.queries))]
    told = difference(chain_answer(query, case.events, case.parameters.get("rule")), case.expected)
    assert not told
    given = {name: rows_table(query, rows) for name, rows in case.parameters.items()}
    together = matcher.match_all_table(together_table(matcher, case.events), **given)
    assert list(together) == list(matcher.queries)
    for name, one in matcher.queries.items():
        own = given if one.plan.source.parameters is not None else {}
        alone = one.match_table(source_table(one, case.events), **own)
        assert together[name].equals(alone), name


@pytest.mark.parametrize("case", load_refused(FOLDER), ids=lambda case: case.name)
def test_cases_that_are_errors(case: Case) -> None:
    with pytest.raises(celc.CelError):
        celc.compile(case.query, order_by=case.order_by)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore")
def test_rows_of_one_time_come_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    text = f"""{DECLARATION}
QUERY pairs: SELECT x.value AS v, y.id AS id FROM S WHERE A AS x ; B AS y WITHIN 6 [ts]
QUERY reader: SELECT p, q FROM pairs, S
WHERE (pairs AS p ; pairs AS q) OR (pairs AS p ALL A AS q) WITHIN 9 [ts]
"""
    with interpreted():
        query = celc.compile(text, order_by="ts").queries["reader"]
    events = [
        {"type": rng.choice("AB"), "id": n, "value": float(n), "name": "p", "ts": n // 3}
        for n in range(14)
    ]
    table, (level,) = source_table(query, events), query.program.levels
    answers = {"pairs": matches_of_table(level, table, FirstMatches(None))}
    rows = event_table(query.program, declared_rows(query.program, table), answers)
    order = list(range(len(rows)))
    rng.shuffle(order)
    order.sort(key=rows.column("ts").to_pylist().__getitem__)
    found = [
        matches_of_table(as_run(query.program), one, FirstMatches(None)).to_pylist()
        for one in (rows, rows.take(order))
    ]
    assert found[0]
    assert order != sorted(order)
    told = [sorted(repr(_without_positions(row)) for row in answer) for answer in found]
    assert told[0] == told[1]


def test_a_chain_keeps_only_the_rows_at_the_horizon() -> None:
    rng = random.Random(4)
    text = f"""{DECLARATION}
QUERY pairs: SELECT x.value AS v FROM S WHERE A AS x ; B AS y WITHIN 6 [ts]
QUERY two: SELECT p.v AS v FROM pairs, S WHERE pairs AS p ; C AS c WITHIN 9 [ts]
QUERY three: SELECT a, b FROM two WHERE two AS a ; two AS b WITHIN 12 [ts]
"""
    with interpreted():
        query = celc.compile(text, order_by="ts").queries["three"]
    events = [
        {"type": rng.choice("ABC"), "id": 1, "value": 1.0, "name": "p", "ts": n} for n in range(600)
    ]
    table = source_table(query, events)
    run = ChainRun(query.program)
    found = 0
    for batch in table.to_batches(max_chunksize=20):
        found += sum(map(len, run.push(batch)))
        assert run.waiting < 40
    assert found + sum(map(len, run.rest())) == len(query.match_table(table)) > 500


@pytest.mark.parametrize("keys", ["", "PARTITION BY id"])
@pytest.mark.parametrize("per", ["PER END", "PER PARTITION", "PER 3 SECONDS"])
@pytest.mark.parametrize("rows", [1, 3, 99])
def test_the_last_totals_come_in_batches_too(keys: str, per: str, rows: int) -> None:
    text = f"""CREATE STREAM S {{ EVENT A {{ id: LONG, ts: TIMESTAMP }} }}
QUERY firsts: SELECT x.id AS one FROM S WHERE A AS x {keys}
QUERY counted: SELECT TOTAL COUNT(*) AS n FROM firsts WHERE firsts AS f {keys} {per}
"""
    query = _compiled(text).queries["counted"]
    times = pa.array([n * 1_000_000 for n in range(9)], pa.timestamp("us", tz="UTC"))
    table = pa.table({"type": ["A"] * 9, "id": [n // 3 for n in range(9)], "ts": times})
    found = pa.Table.from_batches(query.match_arrow(table.to_batches(max_chunksize=rows)))
    assert found.to_pylist() == query.match_table(table).to_pylist()
    assert sum(found.column("n").to_pylist()) == 9


_PAIRS = f"""{DECLARATION}
QUERY pairs: SELECT x.value AS v FROM S WHERE A AS x ; B
"""


def _compiled(text: str) -> celc.Matcher:
    with interpreted():
        return celc.compile(text, order_by="ts")


def _event(type: str, ts: int) -> dict[str, Any]:
    return {"type": type, "id": 1, "value": 1.0, "name": "p", "ts": ts}


def test_a_union_starts_when_the_earliest_match_starts() -> None:
    # The row from 2 to 3 comes first, and the row from 0 to 5 starts first.
    text = f"""{DECLARATION}
QUERY pairs: SELECT x.value AS v FROM S WHERE (A AS x ; B AS y) FILTER x.id = y.id
QUERY unions: SELECT COLLAPSED p FROM pairs, S WHERE pairs AS p ; C
"""
    events = [_event("A", 0), _event("A", 2), _event("B", 3), _event("B", 5), _event("C", 6)]
    for event, number in zip(events, (7, 8, 8, 7, 9), strict=True):
        event["id"] = number
    query = _compiled(text).queries["unions"]
    (row,) = query.match_table(source_table(query, events)).to_pylist()
    assert (row["start_time"], row["start_pos"], row["end_time"]) == (0, 2, 6)
    assert row["matches"] == 2


@pytest.mark.parametrize("second", ["pairs AS p ; C", "pairs AS p ALL C"])
def test_types_can_stand_in_another_column(second: str) -> None:
    module = _compiled(f"{_PAIRS}QUERY reader: SELECT p FROM pairs, S WHERE {second}\n")
    events = [_event(type, ts) for ts, type in enumerate("ABDACB")]
    query = module.queries["reader"]
    table = source_table(query, events)
    names = ["kind" if name == "type" else name for name in table.column_names]
    found = query.with_options(type_column="kind").match_table(table.rename_columns(names))
    assert found.equals(query.match_table(table))
    assert len(found) > 0


def test_options_reach_the_queries_that_are_read() -> None:
    three = "QUERY reader: SELECT p FROM pairs WHERE pairs AS p\nQUERY last: SELECT r FROM reader "
    text = f"{_PAIRS}{three}WHERE reader AS r\n"
    options: dict[str, Any] = {"tiebreak": ("id",), "at_end": "closed", "max_work": 7}
    with interpreted():
        compiled = celc.compile(text, order_by="ts", **options).queries["last"]
        plain = celc.compile(text, order_by="ts").queries["last"]
    given = plain.with_options(**options, clock=9, type_column="kind")
    assert [one.name for one in levels_of(given.program).values()] == ["pairs", "reader", "last"]
    for query, clock, types in ((compiled, None, "type"), (given, 9, "kind")):
        for level in levels_of(query.program).values():
            source, choice = level.plan.source, level.plan.choice
            assert (source.tiebreak, source.type_name) == (("id",), types), level.name
            assert (choice.at_end, choice.max_work, choice.clock) == ("closed", 7, clock)


def test_simultaneous_events_are_those_of_every_query_of_a_chain() -> None:
    text = _PAIRS + "QUERY reader: SELECT p FROM pairs WHERE pairs AS p\n"
    with interpreted():
        ordered = celc.compile(text, order_by="ts").queries["reader"]
        simultaneous = celc.compile(text, order_by="ts", ties="simultaneous").queries["reader"]
    # The rows that a reader reads are simultaneous, however the events below them are compiled.
    assert ordered.plan.source.ties == simultaneous.plan.source.ties == "simultaneous"
    with pytest.raises(ValueError, match="'pairs' was compiled for events that come one after"):
        ordered.with_options(ties="simultaneous")
    events = [_event("A", 1), _event("B", 1)]
    table = source_table(ordered, events)
    assert len(ordered.match_table(table)) == 1
    assert len(simultaneous.with_options(ties="simultaneous").match_table(table)) == 0


def test_a_query_of_one_type_does_not_read_the_types_of_others() -> None:
    text = """CREATE STREAM S { EVENT A { ts: LONG } }
CREATE STREAM T { EVENT B { ts: LONG } }
QUERY firsts: SELECT COUNT(x) AS n FROM S WHERE A AS x
QUERY reader: SELECT p, b FROM firsts, T WHERE firsts AS p ; B AS b
"""
    query = _compiled(text).queries["reader"].with_options(type_column="kind")
    rows = query.match_table({"kind": ["A", "B", "B"], "ts": [1, 2, 3]}).to_pylist()
    assert [(row["p"][0]["pos"], row["b"][0]["pos"]) for row in rows] == [(0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": [1]}, "declares 'name' as STRING"),
        ({"ts": None}, "'ts'"),
        ({"id": ["x"]}, "declares 'id' as INT"),
    ],
)
def test_columns_that_only_a_reader_reads_are_checked(change: dict[str, Any], words: str) -> None:
    reader = "QUERY reader: SELECT p, c FROM pairs, S WHERE pairs AS p ; C AS c\n"
    query = _compiled(_PAIRS + reader).queries["reader"]
    columns = {name: [value] for name, value in _event("A", 1).items()} | change
    events = pa.table({name: value for name, value in columns.items() if value is not None})
    if change.get("id") is None:
        place = events.column_names.index("id")
        events = events.set_column(place, "id", events.column("id").cast(pa.int32()))
    with pytest.raises(EventError, match=words):
        query.match_table(events)
    with pytest.raises(EventError, match=words):
        list(query.match_arrow(events.to_batches()))


@pytest.mark.parametrize("has_keys", [True, False])
def test_batches_may_differ_in_how_texts_are_coded(has_keys: bool) -> None:
    """Also where all events are read before the first query is run, as without common keys."""
    keys = "PARTITION BY name"
    below = f"SELECT x.value AS v FROM S WHERE A AS x ; B {keys}"
    if not has_keys:
        below = "SELECT x.value AS v, x.name AS name FROM S WHERE A AS x ; B"
    text = f"""{DECLARATION}
QUERY pairs: {below}
QUERY reader: SELECT p, c FROM pairs, S WHERE pairs AS p ; C AS c {keys}
"""
    query = _compiled(text).queries["reader"]
    assert bool(why_gathered(query.program)) == (not has_keys)
    table = source_table(query, [_event(type, ts) for ts, type in enumerate("ABCABCAC")])
    plain = table.to_batches(max_chunksize=3)
    coded = [
        batch.set_column(i, "name", batch.column("name").dictionary_encode())
        for batch in plain[:2]
        for i in [batch.schema.get_field_index("name")]
    ]
    found = pa.Table.from_batches(query.match_arrow([*coded, *plain[2:]]))
    assert found.to_pylist() == query.match_table(table).to_pylist()
    assert len(found) > 0


@pytest.mark.parametrize("keys", ["", "PARTITION BY id"])
def test_an_empty_batch_ends_nothing(keys: str) -> None:
    """Neither a partition nor an instant, whose rows of queries come behind all its events."""
    text = f"""{DECLARATION}
QUERY pairs: SELECT x.value AS v FROM S WHERE A AS x ; B {keys}
QUERY reader: SELECT p, c FROM pairs, S WHERE pairs AS p ; C AS c {keys}
"""
    query = _compiled(text).queries["reader"]
    events = [_event("A", 0), _event("B", 1), _event("D", 1), _event("C", 2)]
    table = source_table(query, events)
    rows = table.to_batches(max_chunksize=1)
    found = [b for row in rows for b in (row, row.slice(0, 0))]
    answer = pa.Table.from_batches(query.match_arrow(found)).to_pylist()
    assert [row["p"][0]["pos"] for row in answer] == [3]
    assert answer == query.match_table(table).to_pylist()


def test_ways_that_a_chain_has_not_say_so() -> None:
    module = _compiled(_PAIRS + "QUERY reader: SELECT p FROM pairs WHERE pairs AS p ; pairs\n")
    query = module.queries["reader"]
    frame = type(
        "DataFrame", (), {"__module__": "pyspark.sql", "isStreaming": True, "sparkSession": None}
    )
    stream: Any = frame()
    with pytest.raises(EventError, match="its state grows with the stream"):
        query.match_stream(stream)
    with pytest.raises(TypeError, match="no parameter set"):
        query.match_table({}, rules=[])
    with pytest.raises(ValueError, match="for another order"):
        query.with_options(order_by="value")


@pytest.mark.parametrize("key", ["PARTITION BY id", ""])
def test_a_frame_of_pandas_is_a_table(key: str) -> None:
    text = f"""{DECLARATION}
QUERY pairs: SELECT x.value AS v FROM S WHERE A AS x ; B WITHIN 6 [ts]
QUERY reader: SELECT p.v AS v, c.id AS id_of_c FROM pairs, S WHERE pairs AS p ; C AS c WITHIN 9 [ts]
"""
    if key:
        text = text.replace(" WITHIN", f" {key} WITHIN")
    query = _compiled(text).queries["reader"]
    table = source_table(query, [_event("ABDC"[ts % 4], ts) for ts in range(30)])
    wanted = query.match_table(table)
    found = query.match_pandas(table.to_pandas(integer_object_nulls=True))
    assert found.to_dict("records") == wanted.to_pandas(integer_object_nulls=True).to_dict(
        "records"
    )
    assert len(wanted)
    with pytest.raises(TypeError, match="no parameter set"):
        query.match_pandas(table.to_pandas(), rule=table)


def test_an_absence_of_a_query_that_is_read_asks_for_a_clock() -> None:
    """A function of some partitions does not see the others."""
    text = f"""{DECLARATION}
QUERY alone: SELECT x.value AS v FROM S WHERE A AS x ; !B FOR 3 [ts] PARTITION BY id WITHIN 6 [ts]
QUERY reader: SELECT p FROM alone WHERE alone AS p ; alone PARTITION BY id
"""
    query = _compiled(text).queries["reader"]
    with pytest.raises(EventError, match=r"greatest 'ts' of all partitions.*with_options\(clock="):
        _ = query.match_pandas
    assert query.with_options(clock=3).match_pandas
    assert query.with_options(at_end="closed").match_pandas


def test_a_reader_says_what_it_reads() -> None:
    module = _compiled(_PAIRS + "QUERY reader: SELECT p FROM pairs, S WHERE pairs AS p ; C\n")
    told = repr(module.queries["reader"])
    assert "reads      the rows of pairs, stream S" in told
    assert "#start" not in told


def test_a_listing_by_definition_keeps_nothing_of_matches_that_were_handed_out() -> None:
    reader = "SELECT p, c FROM pairs, S WHERE pairs AS p ; !D ; C AS c"
    chain = f"{_PAIRS}QUERY reader: {reader} WITHIN 5 [ts]\n"
    query = _compiled(chain).queries["reader"]
    events = [_event("ABC"[ts % 3], ts) for ts in range(90)]
    run = ChainRun(query.program)
    for batch in source_table(query, events).to_batches(max_chunksize=6):
        list(run.push(batch))
    listing = run._levels["reader"].run._walk
    assert isinstance(listing, DefinitionWalk)
    assert len(listing._begins) == len(listing._numbers) == 0


def _without_positions(row: dict[str, Any]) -> dict[str, Any]:
    labels = {name: row[name] for name in ("p", "q")}
    events = {name: [{**one, "pos": 0} for one in found] for name, found in labels.items()}
    return {"start_time": row["start_time"], "end_time": row["end_time"], **events}


@pytest.mark.parametrize("seed", range(4))
def test_a_number_of_events_is_asked_beside_events_that_last(seed: int) -> None:
    """Events between those of a match do not carry its role, and the query has its own code."""
    text = f"""{DECLARATION}
QUERY pairs: SELECT x.id AS id FROM S WHERE A AS x ; B WITHIN 4 [ts]
QUERY reader: SELECT * FROM pairs, S
WHERE ((C AS c)+ ; pairs AS r) FILTER COUNT(c) < 3 WITHIN 9 [ts]
"""
    with interpreted():
        query = celc.compile(text, order_by="ts").queries["reader"]
    assert isinstance(query.program.listing, Checked)
    rng = random.Random(seed)
    events = [
        {"type": rng.choice("AABCC"), "id": n, "value": 1.0, "name": "p", "ts": ts}
        for n, ts in enumerate((1, 2, 3, 4, 5, 7, 8, 9))
    ]
    wanted = evaluate(text, events, times=True, query="reader", order_by=("ts",))
    assert not difference(chain_answer(query, events), wanted)
