"""Compact answers: graphs that hold all matches of an end, and the rows that they stand for."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime import EventError, expand
from celc_runtime.arrow.matches import expanding
from celc_runtime.engine.walk import walk
from counting import lines_of
from engines import in_python, interpreted

import celc

_STREAM = "CREATE STREAM S {{ {} }}\n".format(
    ", ".join(f"EVENT {name} {{ id: INT, ts: LONG }}" for name in "ABC")
)


_OWN = """AGGREGATE own(a: INT): INT
  STATE most: INT = NULL
  STEP most = GREATEST(most, a)
  RESULT most
"""


def _matcher(query: str) -> celc.Matcher:
    with interpreted():
        return celc.compile(_STREAM + query, order_by="ts")


def _events(types: str, seed: int = 1) -> pa.Table:
    rng = random.Random(seed)
    ids = pa.array([rng.randrange(2) for _ in types], pa.int32())
    return pa.table({"type": list(types), "id": ids, "ts": list(range(len(types)))})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * WHERE A ; B ; C WITHIN 20 EVENTS",
        "SELECT * WHERE (A AS x)+ ; B AS y WITHIN 9 EVENTS",
        "SELECT * WHERE (A OR B)+ ; !C ; C PARTITION BY [id] WITHIN 12 EVENTS",
        "SELECT a[id] WHERE (A AS a ; B+ ; C) WITHIN 8 EVENTS CONSUME BY ANY",
        "SELECT COUNT(a) AS n, SUM(a.id) / 2 AS s, b WHERE A+ AS a ; B AS b WITHIN 6 EVENTS",
        "SELECT * WHERE (A AS x ; B AS y ; C AS z) FILTER x.id = y.id AND y.id = z.id "
        "WITHIN 20 EVENTS",
        "SELECT NONE WHERE A+ ; B WITHIN 9 EVENTS",
        "SELECT * WHERE A ; B WITHIN 9 EVENTS LIMIT 2",
        "SELECT LAST * WHERE A ; B WITHIN 9 EVENTS",
        "SELECT MAX * WHERE A+ ; B WITHIN 9 EVENTS",
        "SELECT * WHERE (A AS x OR A AS y)+ ; (B AS b OR B AS c) WITHIN 9 EVENTS LIMIT 7",
        # conditions that nodes carry
        "SELECT * WHERE (A+ AS x ; B AS y) FILTER x.id > PREV(x.id) WITHIN 12 EVENTS",
        "SELECT * WHERE (A+ AS x ; B AS y) FILTER x.id > PREV(x.id, 2) AND x.id <= y.id "
        "WITHIN 12 EVENTS",
        "SELECT * WHERE (A+ AS x ; B AS y) FILTER x.id >= MAX(PRIOR x.id) WITHIN 12 EVENTS",
        "SELECT * WHERE (A+ AS x ; B AS y) FILTER x.id > MIN(PRIOR x.id) WITHIN 12 EVENTS",
        "SELECT * WHERE (A+ AS x ; B AS y) FILTER COUNT(PRIOR x) <= x.id WITHIN 12 EVENTS",
        "SELECT * WHERE (A+ AS x ; B AS y) FILTER 1 = COUNT(PRIOR x) OR x.id = 1 "
        "WITHIN 9 EVENTS LIMIT 3",
        "SELECT * WHERE (A+ AS x ; B AS y) FILTER COUNT(PRIOR x) >= y.id WITHIN 12 EVENTS",
        "SELECT * WHERE (A+ AS x ; B AS y) FILTER MAX(x.id) < y.id WITHIN 9 EVENTS",
        "SELECT * WHERE (A+ AS x ; B+ AS y ; C) FILTER x.id = y.id WITHIN 9 EVENTS",
        "SELECT * WHERE ((A AS x ; B AS y) FILTER x.id < y.id)+ ; C CONSUME BY ANY",
        "SELECT * WHERE (A+ AS x ; B AS y) FILTER SUM(x.id) = 2 WITHIN 9 EVENTS",
        "SELECT * WHERE (A AS x ; B AS y ; C AS z) FILTER x.id + y.id < z.id WITHIN 20 EVENTS",
        "SELECT LAST * WHERE (A AS x ; B AS y) FILTER x.id < y.id WITHIN 9 EVENTS",
        "SELECT ANY * WHERE (A AS x ; B AS y) FILTER x.id < y.id WITHIN 9 EVENTS",
    ],
)
def test_an_expanded_answer_is_the_answer(query: str) -> None:
    matcher = _matcher(query)
    events = _events("".join(random.Random(3).choices("ABC", k=60)))
    wanted = matcher.match_table(events)
    compact = matcher.match_compact(events)
    assert wanted.num_rows
    assert compact["end_pos"].to_pylist() == sorted(set(compact["end_pos"].to_pylist())) or (
        "PARTITION" in query
    )
    assert expand(compact).read_all().equals(wanted)
    assert matcher.expand(compact, limit=3).read_all().equals(wanted.slice(0, 3))


def test_a_graph_grows_with_the_events_and_not_with_the_matches() -> None:
    matcher = _matcher("SELECT * WHERE A+ ; B")
    sizes = []
    for count in (20, 40, 80):
        (row,) = matcher.match_compact(_events("A" * count + "B")).to_pylist()
        assert len(row["events"]) == count + 1
        sizes.append(len(row["nodes"]))
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        ("COUNT(PRIOR x) < 3", 4),  # a node for each number that may come before
        ("COUNT(PRIOR x) >= x.id OR x.ts < 9", 2),
        ("COUNT(PRIOR x) <= x.ts", 1),  # so many never come before
        ("2 * x.id >= COUNT(PRIOR x)", 4),
    ],
)
def test_a_graph_of_counts_before_grows_with_the_events(condition: str, most: int) -> None:
    """A list of these matches grows as 2^n, or as n^3."""
    matcher = _matcher(f"SELECT * WHERE (A+ AS x ; B) FILTER {condition}")
    sizes = []
    for count in (40, 80, 160):
        (row,) = matcher.match_compact(_events("A" * count + "B")).to_pylist()
        sizes.append(len(row["nodes"]))
        assert len(row["nodes"]) <= 2 * most * (count + 1)
    assert sizes[2] - sizes[1] <= 2.2 * (sizes[1] - sizes[0])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * WHERE (A+ AS a ; B) FILTER AVG(a.id) < 3",
        "SELECT * WHERE A AS a ; !(B AS b FILTER b.id = a.id) ; B",
        "SELECT a WHERE (A AS a ; B AS b) FILTER a.id < b.id",
        "SELECT * WHERE MAX(A+ AS x ; B AS y FILTER x.id < y.id) ; A",
    ],
)
def test_a_graph_of_what_only_whole_matches_decide_is_a_tree(query: str) -> None:
    matcher, events = _matcher(query), _events("ABAAB" * 3)
    wanted = matcher.match_table(events)
    assert len(wanted)
    found = expand(matcher.match_compact(events)).read_all()
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT * WHERE A ; !B FOR 5 EVENTS", "an absence at its end"),
        ("SELECT LONGEST * WHERE A ; B", "matches that end at different events"),
        ("SELECT TOTAL COUNT(*) AS n WHERE A ; B", "one row for many matches already"),
        ("SELECT COLLAPSED * WHERE A ; B", "one row for many matches already"),
        (f"{_OWN}SELECT own(a.id) AS n WHERE A+ AS a ; B", "no table holds its code"),
    ],
)
def test_what_no_graph_can_say_is_an_error_that_says_why(query: str, why: str) -> None:
    matcher = _matcher(query)
    for match in (matcher.match_compact, lambda events: list(matcher.match_compact_arrow(events))):
        with pytest.raises(EventError, match=rf"by match_compact: .*{why}.*: use match_table"):
            match(_events("AB"))


def test_for_each_row_of_a_table_there_are_graphs() -> None:
    """They have the attributes that matches show, and those that expressions read."""
    declared = "PARAMETERS rule { id: INT, more: INT }\n"
    each = _matcher(
        f"{declared}SELECT a, COUNT(a) + rule.more AS n, rule[id] FROM S FOR EACH rule "
        "WHERE A+ AS a ; B FILTER a.id >= rule.id"
    )
    events, rows = _events("AAAB"), {"id": [1, 0, 1], "more": [7, 8, 9]}
    compact = each.match_compact(events, rule=rows)
    shown = [{"id": 1, "more": 7}, {"id": 0, "more": 8}, {"id": 1, "more": 9}]
    assert compact.column("rule").to_pylist() == shown
    wanted = each.match_table(events, rule=rows)
    assert len(wanted) == 3 * 3
    by_batches = pa.Table.from_batches(each.match_compact_arrow(events, rule=rows), compact.schema)
    for found in (compact, by_batches, each.with_parameters(rule=rows).match_compact(events)):
        expanded = expand(found).read_all()
        assert expanded.schema.equals(wanted.schema)
        assert sorted(map(repr, expanded.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


def test_tables_that_no_query_has_are_refused() -> None:
    plain = _matcher("SELECT * WHERE A")
    for match in (plain.match_compact, plain.match_compact_arrow):
        with pytest.raises(TypeError, match="takes no argument 'rule'"):
            match(_events("AB"), rule={"id": [1]})


def test_the_first_matches_cost_nothing_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of 61 events ends 2⁶⁰ matches, of 601 events 2⁶⁰⁰: no pass over them would end."""
    matcher = _matcher("SELECT * WHERE A+ ; B")
    few, many = (matcher.match_compact(_events("A" * count + "B")) for count in (60, 600))
    listing = in_python(walk).listing_kernel(None)
    monkeypatch.setattr(expanding, "list_fired", lambda *given: listing(*given, ()))

    def steps(compact: pa.Table, limit: int) -> int:
        found = expand(compact, limit=limit)
        return lines_of(lambda: found.read_all(), "walk")

    assert expand(few, limit=10).read_all().num_rows == 10
    assert steps(few, 10) == steps(many, 10) < 600
    assert steps(many, 200) <= 25 * steps(many, 10)


def test_matches_come_in_batches_of_bounded_size() -> None:
    matcher = _matcher("SELECT * WHERE A+ ; B")
    found = expand(matcher.match_compact(_events("A" * 60 + "B")))
    for _ in range(3):
        assert 1_000 <= len(found.read_next_batch()) <= 1 << 16


def test_a_table_says_what_it_means() -> None:
    """Its metadata survive files and other columns, and its values another form."""
    matcher = _matcher("SELECT * WHERE A ; B PARTITION BY id")
    events = _events("".join(random.Random(3).choices("ABC", k=60)))
    compact = matcher.match_compact(events)
    sink = pa.BufferOutputStream()
    pq.write_table(compact.append_column("mine", compact["id"]), sink)
    kept = pq.read_table(pa.BufferReader(sink.getvalue()))
    assert expand(kept.to_reader()).read_all().equals(matcher.match_table(events))
    with pytest.raises(EventError, match=r"needs the columns 'id', .* without 'events'"):
        expand(kept.drop_columns("events")).read_all()
    odd = kept.replace_schema_metadata({"celc.compact": '{"version": 2}'})
    with pytest.raises(EventError, match="another version of celc may have made it"):
        expand(odd)


def test_rows_that_are_cut_or_empty() -> None:
    matcher = _matcher("SELECT COUNT(A) AS n WHERE A ; B WITHIN 9 EVENTS")
    compact = matcher.match_compact(_events("AABABABB"))
    rows = compact.to_pylist()
    wanted = matcher.match_table(_events("AABABABB"))
    last = expand(compact.slice(len(rows) - 1)).read_all()
    assert last.equals(wanted.filter(pa.compute.equal(wanted["end_pos"], 7)))
    rows[1] |= {"events": None, "nodes": None}
    rows[2] |= {"events": [], "nodes": []}
    holes = pa.Table.from_pylist(rows, compact.schema)
    kept = [row for row in wanted.to_pylist() if row["end_pos"] not in (4, 6)]
    assert expand(holes).read_all().to_pylist() == kept
    assert not expand(matcher.match_compact(_events("AAA"))).read_all().num_rows


def test_answers_without_positions_and_times() -> None:
    with interpreted():
        matcher = celc.compile(f"{_STREAM}SELECT COUNT(A) AS n WHERE A+ ; B")
    (one,) = matcher.queries.values()
    compact = one.with_options(positions=False).match_compact(_events("AAB"))
    assert compact.schema.names == ["events", "nodes"]
    assert sorted(expand(compact).read_all()["n"].to_pylist()) == [1, 1, 2]


@pytest.mark.parametrize("limit", [0, -1, 1.0, True])
def test_limits_that_cannot_be(limit: object) -> None:
    compact = _matcher("SELECT * WHERE A").match_compact(_events("A"))
    with pytest.raises(ValueError, match="limit must be a whole number from 1"):
        expand(compact, limit=limit)  # type: ignore[arg-type]


def test_expand_refuses_a_table_that_is_no_compact_answer() -> None:
    with pytest.raises(EventError, match="expand takes what match_compact gave"):
        expand(_events("AB"))
    with pytest.raises(TypeError, match="expand takes the compact answers of match_compact"):
        expand([1])
