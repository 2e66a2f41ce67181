"""Several queries in one operator of a stream, by hand: when rows come, what is late, what is kept,
and what a header says."""

from __future__ import annotations

import pickle
import random
import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from cases_io import load_cases
from celc_runtime.chain.columns import declared_types
from celc_runtime.chain.streams import header
from celc_runtime.chain.streams.explain import explain_module
from celc_runtime.chain.streams.header import ModuleState, UnitState
from celc_runtime.chain.streams.match import operators_of
from celc_runtime.chain.streams.operators import Group, Wanted, group_of
from celc_runtime.chain.streams.rearranged import arranged
from celc_runtime.chain.streams.tasks import module_task
from celc_runtime.plan.errors import EventError, PlanWarning, StateError
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import check, why_not
from celc_runtime.stream.buckets import FOR_EACH_TASK, group_of_label
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.session import check_size
from engines import interpreted
from memory import resident
from module_streams_by_hand import ModuleOperator, module_streamed
from places import CASES
from queries_over_queries import source_table
from streams_by_hand import instant, same_rows

import celc

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, v: INT, ts: TIMESTAMP },
  EVENT B { id: INT, v: INT, ts: TIMESTAMP }
}
"""
_CHAIN = _DECLARED + """QUERY pair:
SELECT x.v AS v FROM S WHERE A AS x ; B PARTITION BY id WITHIN 10 MILLISECONDS [ts]
QUERY alone:
SELECT x.v AS v FROM S WHERE A AS x ; !B FOR 5 MILLISECONDS [ts] PARTITION BY id
QUERY both:
SELECT p, a FROM pair, alone WHERE pair AS p ; alone AS a
PARTITION BY id WITHIN 90 MILLISECONDS [ts]
"""


def _table(*events: tuple[int, str, int]) -> pa.Table:
    """Events of (milliseconds, type, v) in one partition."""
    times, types, values = zip(*events, strict=True)
    return pa.table(
        {
            "type": types,
            "id": pa.array([1] * len(events), pa.int32()),
            "v": pa.array(values, pa.int32()),
            "ts": pa.array(map(instant, times), pa.timestamp("us", "UTC")),
        }
    )


def _compiled(text: str, **options: Any) -> Any:
    with interpreted():
        return celc.compile(text, order_by="ts", **options)


def _chain(**options: Any) -> ModuleOperator:
    program = _compiled(_CHAIN).queries["both"].program.on_spark
    operator = group_of(program, Wanted())
    return ModuleOperator(operator, StreamOptions({}, **options), random.Random(1))


def _together(text: str) -> ModuleOperator:
    programs = {n: q.program.on_spark for n, q in _compiled(text).queries.items()}
    return ModuleOperator(
        Group(programs, tuple(programs), programs), StreamOptions({}), random.Random(1)
    )


def test_a_reader_waits_until_the_rows_of_all_queries_are_known() -> None:
    stream = _chain()
    events = _table((1, "A", 1), (2, "B", 2), (4, "A", 3))
    assert not stream.advance(events, 0)
    # The second row is known after 4 + 5, and no other row up to its time comes any more.
    assert not stream.advance(None, 9)
    (row,) = stream.advance(None, 10)
    assert [row["p"][0]["v"], row["a"][0]["v"]] == [1, 3]
    assert row["end_time"] == instant(4)
    assert not stream.finish()


def test_a_timer_wakes_a_reader_without_events() -> None:
    stream = _chain()
    stream.advance(_table((1, "A", 1), (2, "B", 2), (4, "A", 3)), 0)
    found, watermark = [], 0
    while stream.timers and not found:
        (timers,) = stream.timers.values()
        watermark = max(watermark + 1, *timers)
        found = stream.advance(None, watermark + 1)
    assert len(found) == 1
    assert watermark <= 11


def test_an_event_that_is_late_for_one_query_is_late_for_all() -> None:
    """The reader of both could still take the event; it is reported once, with all its columns."""
    stream = _chain(late="side")
    stream.advance(_table((1, "A", 1), (20, "A", 2)), 0)
    stream.advance(_table((21, "A", 3)), 20)
    told = stream.advance(_table((19, "B", 4)), 20)
    assert [(row["kind"], row["event"]["v"]) for row in told] == [("late", 4)]
    assert stream.counts["late"] == 1
    assert all(row["kind"] == "match" for row in stream.finish())


def test_a_late_event_is_an_error_that_names_the_queries() -> None:
    stream = _chain(late="error")
    stream.advance(_table((20, "A", 2)), 0)
    stream.advance(_table((21, "A", 3)), 20)
    with pytest.raises(EventError, match=r"^query 'pair, alone': an event of .* is late: "):
        stream.advance(_table((19, "B", 4)), 20)


def test_an_event_is_kept_once_for_all_queries() -> None:
    queries = "".join(
        f"QUERY q{n}:\nSELECT x FROM S WHERE (A AS x ; B AS y) FILTER x.v > {n} "
        "PARTITION BY id WITHIN 50 MILLISECONDS [ts]\n"
        for n in range(6)
    )
    stream = _together(_DECLARED + queries)
    (unit,) = stream.group.units
    assert [one.name for one in unit.programs] == [f"q{n}" for n in range(6)]
    stream.advance(_table(*((n, "A", n) for n in range(1, 9))), 0)
    assert stream.sum("waiting") == 8
    stream.advance(None, 10)
    assert (stream.sum("waiting"), stream.sum("kept")) == (0, 8)
    rows = stream.advance(_table((11, "B", 0)), 11)
    assert len(rows) == sum(8 - n for n in range(6))
    stream.advance(None, 100)
    assert stream.sum("kept") == 0


_OTHER_KEYS = """CREATE STREAM S {{
  EVENT A {{ user: STRING, host: LONG, v: LONG, ts: TIMESTAMP }},
  EVENT B {{ user: STRING, host: LONG, v: LONG, ts: TIMESTAMP }}
}}
QUERY low:
SELECT a.v AS v FROM S WHERE A AS a ; B {low} WITHIN 6 MILLISECONDS [ts]
QUERY high:
SELECT * FROM low, S WHERE low AS x ; B AS y {high} WITHIN 30 MILLISECONDS [ts]
QUERY over:
SELECT * FROM low, high WHERE high AS x ; low AS y {over} WITHIN 60 MILLISECONDS [ts]
"""


@pytest.mark.each(4)
@pytest.mark.parametrize(
    ("low", "high", "over", "common"),
    [
        ("PARTITION BY user, host", "PARTITION BY user", "PARTITION BY user", ("user",)),
        ("PARTITION BY user, host", "PARTITION BY host, user", "PARTITION BY host", ("host",)),
        ("PARTITION BY host, user", "PARTITION BY user, host", "", ()),
        ("PARTITION BY user, host", "PARTITION BY host", "", ()),
    ],
)
def test_queries_with_other_keys_read_each_other(
    low: str, high: str, over: str, common: tuple[str, ...]
) -> None:
    """Events are spread by the keys that all queries have; the answer is that of a table."""
    module = _compiled(_OTHER_KEYS.format(low=low, high=high, over=over), tiebreak="number")
    query = module.queries["over"]
    group = group_of(query.program.on_spark, Wanted())
    assert group.keys == common
    rng, found = random.Random(4), 0
    for _ in range(3):
        columns = {
            "type": rng.choices("AB", k=40),
            "user": rng.choices(("a", "b", None), k=40),
            "host": rng.choices((1, 2), k=40),
            "v": pa.array(range(40), pa.int64()),
            "ts": pa.array(
                [instant(n + rng.choice((0, 1))) for n in range(40)], pa.timestamp("us", "UTC")
            ),
            "number": pa.array(range(40), pa.int64()),
        }
        table = pa.table(columns).sort_by([("ts", "ascending"), ("number", "ascending")])
        options = StreamOptions({"number": "LONG"}, buckets=3 if common else 1)
        rows = module_streamed(group, table, rng, options=options)
        wanted = query.with_options(at_end="closed", positions=False).match_table(table)
        told = same_rows(rows, wanted.to_pylist())
        assert not told, told
        found += len(wanted)
    assert found


def test_with_other_keys_a_bucket_says_what_is_late() -> None:
    """What has been run of a partition of one query is not known for those of another."""
    text = _OTHER_KEYS.format(low="PARTITION BY user, host", high="PARTITION BY user", over="")
    program = _compiled(text).queries["high"].program.on_spark
    stream = ModuleOperator(group_of(program, Wanted()), StreamOptions({}), random.Random(1))

    def table(time: int, type: str) -> pa.Table:
        stamp = pa.array([instant(time)], pa.timestamp("us", "UTC"))
        return pa.table({"type": [type], "user": ["a"], "host": [time], "v": [1], "ts": stamp})

    stream.advance(table(5, "A"), 9)
    stream.advance(table(7, "B"), 12)
    assert stream.counts["late"] == 1
    stream.advance(table(13, "B"), 12)
    assert stream.counts["late"] == 1


def test_groups_with_other_keys_begin_and_go() -> None:
    """A query with another PARTITION BY begins buckets of its own; those of a query that is gone
    are emptied when a timer calls them."""
    alone = _QUERIES["q1"].replace("PARTITION BY id ", "")
    stream = _together(_DECLARED + _QUERIES["q0"])
    stream.advance(_table((1, "A", 9), (2, "A", 9)), 0)
    with pytest.warns(PlanWarning, match="query 'q1' begins"):
        stream = _go_on(stream, _DECLARED + _QUERIES["q0"] + alone)
    assert [one.number for one, _ in stream.served] == [0, 1]
    stream.advance(_table((4, "A", 9), (5, "B", 0)), 3)
    rows = stream.advance(None, 6)
    assert Counter(row["query"] for row in rows) == {"q0": 3, "q1": 1}
    labels = {label for label in stream.headers if group_of_label(label) == 0}
    with pytest.warns(PlanWarning, match="the state of query 'q0' is dropped"):
        stream = _go_on(stream, _DECLARED + alone)
    stream.advance(None, 1000)
    assert not labels & {*stream.headers}
    assert not any(stream.segments[label] for label in labels)
    stream.advance(_table((1001, "A", 9), (1002, "B", 0)), 1001)
    assert len(stream.advance(None, 2000)) == 1


def test_a_group_that_is_gone_is_told_without_the_checkpoint() -> None:
    stream = _together(_DECLARED + _QUERIES["q0"])
    stream.advance(_table((1, "A", 9)), 3)
    other = _together(_DECLARED + _QUERIES["q1"].replace("PARTITION BY id ", ""))
    other.group = replace(other.group, number=1)
    other.headers, other.segments, other.timers = stream.headers, stream.segments, stream.timers
    with pytest.raises(StateError, match=r"has the queries q0; .*name the checkpoint"):
        other.advance(None, 1000)


def test_a_process_keeps_what_it_knows_of_an_operator() -> None:
    """Each micro-batch sends the queries anew, and a file can have hundreds of them."""
    query = _compiled(_CHAIN).queries["both"]
    options = StreamOptions({})._asdict()

    def sent(wanted: Wanted, options: dict[str, Any], **other: Any) -> Any:
        program = query.with_options(**other).program
        return pickle.loads(pickle.dumps(module_task(program)))([(wanted.plain, options)])

    alone = sent(Wanted(), options)
    assert sent(Wanted(), options) is alone
    assert sent(Wanted(), options | {"buckets": 2}) is not alone
    assert sent(Wanted(("pair", "alone")), options) is not alone
    assert sent(Wanted(), options, max_work=7) is not alone


def test_many_queries_have_fewer_buckets() -> None:
    """Each query has a fixed cost in each bucket."""
    query = (
        "QUERY q{n}:\nSELECT x FROM S WHERE A AS x ; B PARTITION BY id WITHIN 5 MILLISECONDS [ts]\n"
    )
    few, many = ("".join(query.format(n=n) for n in range(count)) for count in (8, 9))
    assert _together(_DECLARED + few).group.buckets_of_task == FOR_EACH_TASK
    assert _together(_DECLARED + many).group.buckets_of_task == 1


def test_events_leave_when_the_queries_that_need_them_do_not_any_more() -> None:
    text = """QUERY short:
SELECT x FROM S WHERE (A AS x ; A AS y) FILTER y.v < 0 PARTITION BY id WITHIN 5 MILLISECONDS [ts]
QUERY long:
SELECT x FROM S WHERE (B AS x ; B AS y) FILTER y.v < 0 PARTITION BY id WITHIN 900 MILLISECONDS [ts]
"""
    stream = _together(_DECLARED + text)
    assert len(stream.group.units) == 1
    stream.advance(_table(*((n, "AB"[n % 2], n) for n in range(1, 21))), 0)
    stream.advance(None, 21)
    assert stream.sum("kept") > 10
    stream.advance(None, 600)
    assert stream.sum("kept") == 10


def test_states_stay_small_over_many_micro_batches() -> None:
    text = _CHAIN + "QUERY more:\nSELECT x FROM S WHERE A AS x ; B AS y PARTITION BY id "
    stream = _together(text + "WITHIN 30 MILLISECONDS [ts]\n")
    sizes, latest = [], 0
    for _ in range(70):
        events = [(latest + n, random.choice("AB"), n) for n in range(1, 4)]
        stream.advance(_table(*events), max(0, latest - 1))
        latest += 3
        sizes.append(stream.stored)
    assert max(sizes[40:]) < 1.5 * max(sizes[15:40])


# --- headers --------------------------------------------------------------------------------------


def test_a_header_is_read_again_and_no_beginning_of_it_is_one() -> None:
    units = {0: UnitState(b"a", b"one"), 2: UnitState(b"", b""), 5: UnitState(b"c", b"three")}
    state = ModuleState(7, 6, units)
    data = header.written(state)
    assert header.read("query 'a'", data) == state
    for length in range(len(data)):
        with pytest.raises(StateError):
            header.read("query 'a'", data[:length])
    for place in range(len(data)):
        wrong = bytearray(data)
        wrong[place] ^= 1
        with pytest.raises(StateError):
            header.read("query 'a'", bytes(wrong))


_QUERIES = {
    f"q{n}": f"QUERY q{n}:\nSELECT x FROM S WHERE (A AS x ; B AS y) FILTER x.v > {n} "
    f"PARTITION BY id WITHIN {m} MILLISECONDS [ts]\n"
    for n, m in enumerate((50, 5, 900))
}


def _go_on(stream: ModuleOperator, text: str) -> ModuleOperator:
    """The same stream with the queries of another file."""
    programs = {n: q.program.on_spark for n, q in _compiled(text).queries.items()}
    (groups,) = arranged(programs, operators_of(programs), [stream.headers])
    types = frozenset().union(*map(declared_types, programs.values()))
    stream.group, *more = (
        Group({n: programs[n] for n in one.names}, one.names, programs, *one[1:], types)
        for one in groups
    )
    stream.more = [(group, StreamOptions({})) for group in more]
    return stream


@pytest.mark.filterwarnings("ignore:the checkpoint was begun")
def test_a_stream_goes_on_with_other_queries() -> None:
    """The longest query goes, a new one and a reader begin, and the state of what goes is gone."""
    stream = _together(_DECLARED + _QUERIES["q0"] + _QUERIES["q2"])
    stream.advance(_table((1, "A", 9), (2, "A", 9)), 0)
    stream.advance(None, 3)
    reader = "QUERY both:\nSELECT a FROM q0, q1 WHERE q0 AS a ; q1 PARTITION BY id "
    stream = _go_on(
        stream, _DECLARED + _QUERIES["q0"] + _QUERIES["q1"] + reader + "WITHIN 90 MILLISECONDS [ts]"
    )
    rows = stream.advance(_table((4, "B", 0)), 5)
    assert Counter(row["query"] for row in rows) == {"q0": 2}
    rows = stream.advance(_table((6, "A", 9), (7, "B", 0)), 8)
    assert Counter(row["query"] for row in rows) == {"q0": 3, "q1": 1, "both": 2}
    stream.advance(None, 1000)
    assert stream.sum("kept") == 0
    stream = _go_on(stream, _DECLARED + _QUERIES["q1"])
    stream.advance(_table((1001, "A", 9)), 1002)
    assert {place >> 52 for place in stream.segments[next(iter(stream.segments))]} == {1}


def test_deadlines_of_a_query_that_is_gone_wake_nobody() -> None:
    absent = "QUERY alone:\nSELECT x FROM S WHERE A AS x ; !B FOR 7 MILLISECONDS [ts] "
    absent += "PARTITION BY id"
    stream = _together(_DECLARED + _QUERIES["q0"] + absent)
    stream.advance(_table((1, "A", 9), (2, "A", 9)), 3)
    assert stream.sum("pending") == 2
    with pytest.warns(PlanWarning, match="the state of query 'alone' is dropped"):
        stream = _go_on(stream, _DECLARED + _QUERIES["q0"])
    stream.advance(_table((4, "A", 9)), 5)
    assert stream.sum("pending") == 0
    stream.advance(None, 11)  # a timer that is too early expires once
    ((timer,),) = stream.timers.values()
    assert timer > 50


@pytest.mark.filterwarnings("ignore:the checkpoint was begun")
def test_what_cannot_go_on_is_told() -> None:
    stream = _together(_DECLARED + _QUERIES["q0"] + _QUERIES["q1"])
    stream.advance(_table((1, "A", 1)), 0)
    for text, told in (
        (_QUERIES["q0"] + _QUERIES["q1"].replace("> 1", "> 7"), "query 'q1'.*the query's text"),
        (_QUERIES["q2"], "none is left of q0, q1"),
        (_QUERIES["q0"] + _QUERIES["q1"].replace("PARTITION BY id", ""), "of q1 has changed"),
    ):
        with pytest.raises(StateError, match=told):
            _go_on(stream, _DECLARED + text)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["q0", "q1", "q2"], "new are: q2. To go on with other queries, name the checkpoint"),
        (["q0"], "no more there are: q1"),
    ],
)
def test_without_the_checkpoint_its_queries_are_fixed(names: list[str], told: str) -> None:
    stream = _together(_DECLARED + _QUERIES["q0"] + _QUERIES["q1"])
    stream.advance(_table((1, "A", 1)), 0)
    other = _together(_DECLARED + "".join(_QUERIES[name] for name in names))
    other.headers, other.segments = stream.headers, stream.segments
    with pytest.raises(StateError, match=f"the checkpoint has the queries q0, q1; {told}"):
        other.advance(_table((2, "A", 1)), 0)


def test_a_changed_query_is_refused() -> None:
    text = _DECLARED + "".join(
        f"QUERY q{n}:\nSELECT x FROM S WHERE (A AS x ; B AS y) FILTER x.v > {n} "
        "PARTITION BY id WITHIN 50 MILLISECONDS [ts]\n"
        for n in range(3)
    )
    stream, other = _together(text), _together(text.replace("x.v > 1", "x.v > 4"))
    stream.advance(_table((1, "A", 1)), 0)
    other.headers, other.segments = stream.headers, stream.segments
    with pytest.raises(StateError, match="the query's text"):
        other.advance(_table((2, "A", 1)), 0)


# --- many rules -----------------------------------------------------------------------------------

_SHAPES = (
    "SELECT x.v AS v FROM S WHERE (A AS x ; B AS y) FILTER x.v = {n} AND y.v > x.v "
    "PARTITION BY id WITHIN 50 MILLISECONDS [ts]",
    "SELECT x.v AS v FROM S WHERE (A AS x FILTER x.v = {n}) ; !B FOR 20 MILLISECONDS [ts] "
    "PARTITION BY id",
    "SELECT x, y FROM S WHERE (A AS x ; A AS y) FILTER x.v = {n} AND y.v = {n} "
    "WITHIN 30 MILLISECONDS [ts]",
    "SELECT TOTAL COUNT(*) AS n FROM S WHERE B AS x FILTER x.v = {n} PARTITION BY id "
    "WITHIN 9 MILLISECONDS [ts] PER 100 MILLISECONDS",
)


def _rules(count: int) -> str:
    return _DECLARED + "".join(
        f"QUERY q{n}:\n{_SHAPES[n % len(_SHAPES)].format(n=n % 97)}\n" for n in range(count)
    )


def _random_events(rng: random.Random, first: int, count: int) -> pa.Table:
    """One event in each millisecond."""
    return pa.table(
        {
            "type": rng.choices("AB", k=count),
            "id": pa.array(rng.choices(range(5), k=count), pa.int32()),
            "v": pa.array(rng.choices(range(100), k=count), pa.int32()),
            "ts": pa.array(map(instant, range(first, first + count)), pa.timestamp("us", "UTC")),
        }
    )


def _all_groups(module: Any) -> list[tuple[Group, StreamOptions]]:
    programs = {name: query.program.on_spark for name, query in module.queries.items()}
    types = frozenset().union(*map(declared_types, programs.values()))
    (groups,) = operators_of(programs)
    return [
        (
            Group({name: programs[name] for name in names}, names, programs, None, number, types),
            StreamOptions({}, buckets=2 if programs[names[0]].plan.source.key_columns else 1),
        )
        for number, names in enumerate(groups)
    ]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_a_thousand_rules_are_one_stream() -> None:
    module = _compiled(_rules(1000))
    (group, options), *more = _all_groups(module)
    rng = random.Random(7)
    table = _random_events(rng, 1, 600)
    rows = module_streamed(group, table, rng, options=options, largest=200, more=more)
    found = Counter(row["query"] for row in rows)
    for name in [*module.queries][::13]:
        query = module.queries[name].with_options(at_end="closed", positions=False)
        assert found[name] == query.match_table(table).num_rows, name
    assert sum(found.values()) > 1000


@pytest.mark.long
@pytest.mark.parametrize("what", ["rules", "chain"])
@pytest.mark.filterwarnings("ignore")
def test_states_stay_small_over_five_hundred_micro_batches(what: str) -> None:
    """Fifty rules, and a chain of three queries: events that are kept, and bytes and pieces of the
    state, are as many in the last hundred micro-batches as in the second hundred. The memory of the
    process hardly grows in the second half."""
    text = _CHAIN.replace("QUERY both", "QUERY three") + (
        "QUERY top:\nSELECT p FROM three, alone WHERE three AS p ; alone AS a PARTITION BY id "
        "WITHIN 90 MILLISECONDS [ts]\n"
    )
    served = _all_groups(_compiled(_rules(50) if what == "rules" else text))
    if what == "chain":
        program = _compiled(text).queries["top"].program.on_spark
        served = [(group_of(program, Wanted()), StreamOptions({}, buckets=2))]
    (group, options), *more = served
    stream, rng = ModuleOperator(group, options, random.Random(3), more), random.Random(5)
    noted: list[tuple[int, ...]] = []
    memory = []
    for batch in range(500):
        stream.advance(_random_events(rng, 1 + 30 * batch, 30), 30 * batch)
        pieces = sum(map(len, stream.segments.values()))
        noted.append(
            (stream.sum("kept"), stream.stored, pieces, sum(map(len, stream.timers.values())))
        )
        memory.append(resident())
    for of_name in zip(*noted, strict=True):
        early, late = of_name[100:200], of_name[400:]
        assert max(late) <= 1.25 * max(early) + 2, of_name[::50]
    assert max(memory[400:]) <= 1.05 * max(memory[200:300]), memory[::50]


def test_a_plan_in_words_tells_of_groups() -> None:
    text = _DECLARED + """QUERY one:
SELECT * FROM S WHERE A ; B PARTITION BY id WITHIN 10 MILLISECONDS [ts]
QUERY two:
SELECT * FROM S WHERE B ; A PARTITION BY id WITHIN 30 MILLISECONDS [ts]
QUERY whole:
SELECT * FROM S WHERE A ; A WITHIN 10 MILLISECONDS [ts]
"""
    compiled = _compiled(text).queries
    programs = {name: query.program.on_spark for name, query in compiled.items()}
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: "2"))
    events: Any = SimpleNamespace(isStreaming=True, sparkSession=session)
    told = explain_module(programs, events)
    assert "operator 1: 2 groups of queries, because their PARTITION BY differ" in told
    assert "one, two: share their events, of which each is kept once" in told
    assert "buckets: 1, because without PARTITION BY there is one partition\n  whole:" in told


def test_what_spark_would_send_as_a_broadcast_is_told() -> None:
    """The workers of its operator read none: they ended with BROADCAST_VARIABLE_NOT_LOADED."""
    utils = SimpleNamespace(getBroadcastThreshold=lambda context: 1 << 20)
    context = SimpleNamespace(_jvm=SimpleNamespace(PythonUtils=utils), _jsc=None)
    spark: Any = SimpleNamespace(_sc=context)
    check_size(spark, bytes(1_000_000))
    with pytest.raises(
        RuntimeError, match=r"sends at most 1,048,576 bytes.*UDFCompressionThreshold"
    ):
        check_size(spark, bytes(1_100_000))
    check_size(cast("Any", SimpleNamespace()), bytes(1_100_000))


# --- what is refused ------------------------------------------------------------------------------


def test_computed_keys_are_refused_with_the_form_of_two_queries() -> None:
    text = _DECLARED + """QUERY pair:
SELECT x.v AS v FROM S WHERE A AS x ; B PARTITION BY id % 2 WITHIN 10 MILLISECONDS [ts]
QUERY both:
SELECT * FROM pair WHERE pair AS p ; pair AS q WITHIN 90 MILLISECONDS [ts]
"""
    program = _compiled(text).queries["both"].program
    with pytest.raises(EventError, match=r"a key of PARTITION BY is computed") as raised:
        check(program, Route.STREAM)
    declared = re.search(r"CREATE STREAM pair .*$", str(raised.value))
    assert declared
    query = "\nQUERY q:\nSELECT * FROM pair WHERE pair AS a ; pair AS b WITHIN 1 HOUR"
    between = declared[0] + query
    assert "q" in celc.compile(between).queries


def test_what_a_query_below_cannot_do_is_told() -> None:
    text = _CHAIN.replace("B PARTITION BY id WITHIN 10 MILLISECONDS [ts]", "B PARTITION BY id")
    reason = why_not(_compiled(text).queries["both"].program, Route.STREAM)
    assert reason is not None
    assert reason.why.startswith("it reads 'pair', and there its state grows with the stream")


# --- cases ----------------------------------------------------------------------------------------

_BY_TIME = re.compile(r"(\d+) \[ts\]")


@pytest.mark.parametrize("each", [3, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("stem", ["31-queries-over-queries", "absences-at-ends", "40-first"])
@pytest.mark.filterwarnings("ignore")
def test_cases_as_streams(stem: str, each: int) -> None:
    """Those whose `ts` can be a time, each query of them."""
    compared = 0
    for case in load_cases(stem, CASES / "queries")[::each]:
        text = case.query.replace("ts: LONG", "ts: TIMESTAMP")
        text = _BY_TIME.sub(r"\1 MILLISECONDS [ts]", text)
        try:
            module = _compiled(text)
        except celc.CelError:
            continue
        rng = random.Random(case.name)
        events = [{**event, "ts": 1000 * event["ts"]} for event in case.events]
        for name, query in module.queries.items():
            program = query.program.with_options(tiebreak="number").on_spark
            if not query.plan.source.reads or why_not(program, Route.UNBOUNDED):
                continue
            table = source_table(query, events)
            numbers = pa.array(range(len(table)), pa.int64())
            table = table.append_column("number", numbers)
            closed = query.with_options(at_end="closed", positions=False, tiebreak="number")
            options = StreamOptions({"number": "LONG"})
            rows = module_streamed(group_of(program, Wanted()), table, rng, options=options)
            told = same_rows(rows, closed.match_table(table).to_pylist())
            assert not told, f"{case.name} {name}\n{told}"
            compared += 1
    assert compared >= (1 if each > 1 else 2)
