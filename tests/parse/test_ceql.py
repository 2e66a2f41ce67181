"""What CORE writes in CEQL and nobody else: `NOT(R)`, ranges in braces, `primary_time`, `[a, b]`.

Answers are compared with the reference on random streams; a few are worked out by hand.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, EventError
from engines import answers, engines, interpreted, only_query
from reference import difference, evaluate

import celc
from celc.interfaces.cli import main

DECLARATION = """CREATE STREAM S {
  EVENT A { id: int, value: double, ts: long },
  EVENT B { id: int, value: double, ts: long },
  EVENT C { id: int, value: double, ts: long }
}
"""


def events_of(types: str) -> list[dict[str, Any]]:
    """Events of these types, one letter each; ids and values go round."""
    return [
        {"type": kind, "id": k % 2, "value": float(k * 5 % 7), "ts": k}
        for k, kind in enumerate(types)
    ]


def answer(query: str, events: list[dict[str, Any]]) -> list[tuple[int, int, dict[str, list[int]]]]:
    """(start, end, labels) of each match."""
    matcher = celc.compile(DECLARATION + query)
    table = only_query(matcher)
    rng = random.Random(0)
    rows = answers(table, events, rng)["match_table"]
    return [(row["start"], row["end"], row["labels"]) for row in rows]


@pytest.mark.each(2)
@pytest.mark.parametrize(
    "formula",
    [
        "NOT(A)",
        "NOT (A) ; B",
        "A : NOT(B) : C",
        "A ; NOT(A) ; C",
        "(A : NOT(A):+ : A)",
        "NOT(A OR B) : A",
        "NOT(A FILTER A.value > 2) : B",
        "(A AS x ; NOT(B FILTER B.value > x.value) ; C)",
        "A UNLESS NOT(A)",
        "A ; !NOT(B) ; C",
        "(A AS x ; (B AS y)+) FILTER x[value IN {2..4}] AND y[id IN {0..}]",
        "A AS x FILTER x.value NOT IN {2..4} OR x.value IN {..1}",
        "A AS x FILTER NOT x.value IN {3..} AND x[value NOT IN {..1}]",
        "A AS x FILTER x.value IN {1, 5}",
    ],
)
def test_the_reference_agrees(formula: str) -> None:
    query = f"{DECLARATION}SELECT * FROM S WHERE {formula}"
    with interpreted():
        compiled = engines(query)
        rng = random.Random(formula)
        for _ in range(12):
            stream = events_of("".join(rng.choices("ABC", k=rng.randint(0, 8))))
            for event in stream:
                event["value"] = rng.choice([None, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
            expected = [
                {
                    "partition": dict(found.partition),
                    "start": found.start,
                    "end": found.end,
                    "labels": {label: list(places) for label, places in found.labels},
                }
                for found in evaluate(query, stream)
            ]
            for matcher in compiled.values():
                for found in answers(only_query(matcher), stream, rng).values():
                    assert not difference(evaluate(query, stream), found)
                    assert len(found) == len(expected)


def test_not_is_one_event_of_another_type_without_a_label() -> None:
    found = answer("SELECT * FROM S WHERE NOT(A) ; B ; A", events_of("ABBA"))
    assert found == [(1, 3, {"B": [2], "A": [3]})]


def test_not_of_a_condition_is_an_event_that_does_not_meet_it() -> None:
    query = "SELECT NONE FROM S WHERE NOT(A FILTER A[value > 2])"
    assert [found[0] for found in answer(query, events_of("AAAB"))] == [0, 3]


def test_labels_inside_not_are_bound_nowhere() -> None:
    text = DECLARATION + "SELECT * FROM S WHERE (A ; NOT(B AS x)) FILTER x.id = 1"
    (found,) = celc.check(text)
    assert (found.code, found.message) == (
        "unbound-label",
        "label 'x' is used in this filter but nothing binds it",
    )


def test_not_of_several_events_is_refused() -> None:
    (found,) = celc.check(DECLARATION + "SELECT * FROM S WHERE A ; NOT(B ; B) ; C")
    assert found.code == "not-of-several"


def test_limits_of_a_range_belong_to_it() -> None:
    query = "SELECT x FROM S WHERE A AS x FILTER x[value IN {3..5}]"
    assert [found[0] for found in answer(query, events_of("AAAAA"))] == [1, 2]


def test_brackets_of_one_attribute_are_that_attribute() -> None:
    for keys in ("[id]", "[id], [ts]"):
        text = f"SELECT * FROM S WHERE A ; B PARTITION BY {keys}"
        plain = only_query(celc.compile(DECLARATION + text)).plan.source.partition_by
        assert plain == tuple(keys.replace("[", "").replace("]", "").split(", "))


@pytest.mark.parametrize(
    ("types", "key", "offered"),
    [
        ("A { k: INT, l: INT }, EVENT B { k: INT, l: INT }", "[k, l]", {"k, l", "k", "l"}),
        ("A { k: INT, l: STRING }, EVENT B { k: INT }", "[k, l]", {"k"}),
        ("A { k: INT, l: INT }, EVENT B { m: INT }", "[k, l, m]", {"[k, m]", "[l, m]"}),
        ("A { k: INT, l: STRING }, EVENT B { m: INT }", "[k, l, m]", {"[k, m]"}),
        ("A { k: INT, l: INT }, EVENT B { l: INT, m: INT }", "[k, l, m]", {"[k, m]"}),
        ("A { k: INT, l: INT }, EVENT B { m: INT }", "[k, l]", set()),
    ],
)
def test_what_is_offered_for_an_ambiguous_key_is_a_key(
    types: str, key: str, offered: set[str]
) -> None:
    text = f"CREATE STREAM S {{ EVENT {types} }} SELECT * FROM S WHERE A ; B PARTITION BY {key}"
    (found,) = celc.check(text)
    assert found.code == "ambiguous-partition-key"
    assert found.help
    assert {fix.text for fix in found.fixes} == offered
    for fix in found.fixes:
        mended = text[: fix.span.start] + fix.text + text[fix.span.end :]
        assert not celc.check(mended), fix.text


def test_brackets_are_one_key() -> None:
    text = "SELECT * FROM S WHERE A ; B PARTITION BY [id, ts]"
    (found,) = celc.check(DECLARATION + text)
    assert found.code == "ambiguous-partition-key"
    mended = {fix.text for fix in found.fixes}
    assert mended == {"id, ts", "id", "ts"}


# --- keys that are another attribute by the type of the event -------------------------------------

CHOSEN = """CREATE STREAM S {
  EVENT A { src: LONG, value: DOUBLE, ts: LONG },
  EVENT B { dst: LONG, value: DOUBLE, ts: LONG }
}
SELECT x[value], y FROM S WHERE A AS x ; B AS y PARTITION BY [src, dst]
"""


def chosen_key(text: str = CHOSEN, **options: Any) -> CompiledQuery:
    """The query of a text, run as plain Python, in the order of `ts`."""
    with interpreted():
        return only_query(celc.compile(text, order_by="ts", **options))


def hosts() -> pa.Table:
    """Six events of the partitions 1, 2 and NULL, and one of an undeclared type; both columns have
    values in each row, of which one counts."""
    return pa.table(
        {
            "type": ["A", "A", "B", "Stranger", "B", "A", "B"],
            "src": pa.array([1, 2, 2, 2, 7, None, 1], pa.int64()),
            "dst": pa.array([2, 1, 1, 2, 2, 1, None], pa.int64()),
            "value": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
            "ts": [0, 1, 2, 3, 4, 5, 6],
        }
    )


FOUND = [(None, 5, 6, [6.0]), (1, 0, 2, [1.0]), (2, 1, 4, [2.0])]
"""The key of each match, its times, and the values of x."""

undeclared = pytest.mark.filterwarnings("ignore::celc_runtime.EventWarning")


def shown(matches: Any, column: str = "src") -> list[Any]:
    """Matches in the form of `FOUND`."""
    return [
        (row[column], row["start_time"], row["end_time"], [event["value"] for event in row["x"]])
        for row in matches.to_pylist()
    ]


@undeclared
def test_a_key_is_the_attribute_that_the_type_of_an_event_has() -> None:
    query = chosen_key()
    found = query.match_table(hosts())
    assert found.schema.names == ["src", "start_pos", "end_pos", "start_time", "end_time", "x", "y"]
    assert shown(found) == FOUND
    # Labels show the columns as they are.
    assert [row["y"][0]["dst"] for row in found.to_pylist()] == [None, 1, 2]
    without = query.with_options(positions=False).match_table(hosts())
    assert without.schema.names == ["src", "start_time", "end_time", "x", "y"]
    assert shown(without) == FOUND


@undeclared
def test_the_column_of_a_key_is_called_like_the_first_attribute() -> None:
    query = chosen_key(CHOSEN.replace("[src, dst]", "[dst, src]"))
    assert shown(query.match_table(hosts()), "dst") == FOUND
    assert query.output_ddl.startswith("`dst` BIGINT, ")


@undeclared
def test_attributes_of_a_key_may_be_of_narrower_types_each() -> None:
    events = hosts()
    events = events.set_column(1, "src", events["src"].cast(pa.int8()))
    events = events.set_column(2, "dst", events["dst"].cast(pa.int32()))
    assert shown(chosen_key().match_table(events)) == FOUND
    nulls = events.set_column(2, "dst", pa.nulls(len(events)))
    assert shown(chosen_key().match_table(nulls)) == [
        (None, 5, 6, [6.0]),
    ]


@undeclared
@pytest.mark.parametrize("coded", [pa.string(), pa.large_string(), pa.string_view(), "dictionary"])
def test_a_key_of_texts_may_be_coded(coded: Any) -> None:
    query = chosen_key(
        CHOSEN.replace("src: LONG", "src: STRING").replace("dst: LONG", "dst: STRING")
    )
    events = hosts()
    for place, name in enumerate(("type", "src", "dst")):
        column = events[name].combine_chunks().cast(pa.string())
        column = column.dictionary_encode() if coded == "dictionary" else column.cast(coded)
        events = events.set_column(place, name, column)
    wanted = [(key if key is None else str(key), *rest) for key, *rest in FOUND]
    assert shown(query.match_table(events)) == wanted
    assert shown(query.match_table(pa.concat_tables([events[:3], events[3:]]))) == wanted


@undeclared
@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_a_key_in_batches_that_come_by_partition(rows: int) -> None:
    by_part = hosts().take([5, 6, 0, 2, 1, 3, 4])
    found = pa.Table.from_batches(
        chosen_key().match_arrow(by_part.to_batches(max_chunksize=rows)),
        chosen_key().output_schema,
    )
    assert shown(found) == FOUND
    with pytest.raises(EventError, match=r"the partition \[src, dst\]=1 comes back in row 2"):
        list(chosen_key().match_arrow(hosts().slice(0, 3).to_batches(max_chunksize=rows)))


@undeclared
def test_a_key_in_frames() -> None:
    frame = hosts().to_pandas()
    found = chosen_key().match_pandas(frame)
    assert list(found["end_time"]) == [6, 2, 4]


@undeclared
@pytest.mark.parametrize("name", ["[src, dst]", "[SRC, dst]", "[src, dst]_"])
def test_other_columns_may_be_called_like_a_key(name: str) -> None:
    """Also the column of the types, and one that tells apart events of one time."""
    other = pa.array(["x", "x", "y", "y", "z", "z", "z"])
    events = hosts().append_column(name, other)
    assert shown(chosen_key().match_table(events)) == FOUND
    query = chosen_key().with_options(tiebreak=name)
    assert shown(query.match_table(events.take([6, 5, 4, 3, 2, 1, 0]))) == FOUND
    by_part = events.take([5, 6, 0, 2, 1, 3, 4]).to_batches(max_chunksize=2)
    assert shown(pa.Table.from_batches(query.match_arrow(by_part), query.output_schema)) == FOUND
    named = chosen_key().with_options(type_column=name)
    renamed = hosts().rename_columns([name, *hosts().column_names[1:]])
    assert shown(named.match_table(renamed)) == FOUND


def test_what_a_key_is_read_from_is_checked() -> None:
    with pytest.raises(EventError, match="reads the column 'dst', which is missing"):
        chosen_key().match_table(hosts().drop_columns("dst"))
    wrong = hosts().set_column(2, "dst", pa.array(["1"] * 7))
    with pytest.raises(EventError, match="declares 'dst' as LONG, but the column's type is string"):
        chosen_key().match_table(wrong)
    types = pa.array(["A", None, "B", "B", "B", "A", "B"])
    with pytest.raises(EventError, match="column 'type' is NULL in row 1 "):
        chosen_key().match_table(hosts().set_column(0, "type", types))


@undeclared
@pytest.mark.parametrize("order", [range(7), (6, 2, 0, 1, 5, 4, 3)])
def test_the_command_line_reads_a_key(
    order: Any, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Sorted files are read as they come, others as a whole; each type has its own attribute."""
    own = {"A": ("src",), "B": ("dst",), "Stranger": ()}
    rows = hosts().to_pylist()
    (tmp_path / "q.cel").write_text(CHOSEN)
    lines = []
    for place in order:
        kept = {"type", "value", "ts", *own[rows[place]["type"]]}
        lines.append(json.dumps({name: v for name, v in rows[place].items() if name in kept}))
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    with interpreted():
        words = ["run", str(tmp_path / "q.cel"), str(tmp_path / "events.jsonl")]
        assert main([*words, "--order-by", "ts", "--format", "json"]) == 0
    found = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [(row["partition"], row["start"], row["end"]) for row in found] == [
        ({"src": None}, 0, 1),
        ({"src": 1}, 0, 1),
        ({"src": 2}, 0, 1),
    ]


def test_a_file_may_lack_an_attribute_of_a_key(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = CHOSEN.replace("x[value], y", "y").replace("A AS x ; ", "")
    (tmp_path / "q.cel").write_text(text)
    lines = [json.dumps({"type": "B", "dst": 3, "value": 1.5, "ts": ts}) for ts in (0, 1)]
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    with interpreted():
        words = ["run", str(tmp_path / "q.cel"), str(tmp_path / "events.jsonl")]
        assert main([*words, "--order-by", "ts", "--format", "json"]) == 0
    out, err = capsysbinary.readouterr()
    assert [json.loads(line)["partition"] for line in out.splitlines()] == [{"src": 3}] * 2
    assert not err, "no event has a type with that attribute"


def test_a_query_says_what_its_key_is() -> None:
    query = chosen_key()
    assert "partitions [src, dst]" in repr(query)
    assert query.plan.source.key_sql == (
        "CASE WHEN `type` IN ('A') THEN `src` WHEN `type` IN ('B') THEN `dst` END",
    )
    assert [field.name for field in query.input_schema] == ["type", "src", "value", "ts", "dst"]


def test_keys_of_brackets_are_no_labels() -> None:
    for text, code in (
        (CHOSEN.replace("x[value], y", "x[value], src"), "partition-in-select"),
        (CHOSEN.replace("A AS x", "A AS src").replace("x[value]", "src"), "duplicate-column"),
    ):
        assert code in {found.code for found in celc.check(text)}
    # The name of another attribute in the brackets is free.
    renamed = CHOSEN.replace("A AS x", "A AS dst").replace("x[value]", "dst")
    assert not [found for found in celc.check(renamed) if found.severity == "error"]


TIMES = """CREATE STREAM S {
  EVENT A { id: int, time: primary_time },
  EVENT B { id: int, time: primary_time }
}
"""


def test_primary_time_orders_the_stream_and_measures_windows() -> None:
    matcher = celc.compile(TIMES + "SELECT * FROM S WHERE A ; B WITHIN 10 SECONDS")
    query = only_query(matcher)
    assert query.plan.source.order_by == ("time",)
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    events = [
        {"type": kind, "id": 1, "time": start + dt.timedelta(seconds=seconds)}
        for kind, seconds in (("B", 10), ("A", 0), ("B", 11))
    ]
    table = pa.Table.from_pylist(events, query.input_schema)
    rows = query.match_table(table).to_pylist()
    assert [(row["start_time"], row["end_time"]) for row in rows] == [
        (start, start + dt.timedelta(seconds=10))
    ]


def test_primary_time_gives_way_to_what_is_said() -> None:
    text = TIMES + "SELECT * FROM S WHERE A ; B WITHIN 10 [id]"
    assert only_query(celc.compile(text)).plan.source.order_by == ("id",)
    named = celc.compile(TIMES + "SELECT * FROM S WHERE A ; B", order_by="id")
    assert only_query(named).plan.source.order_by == ("id",)


def test_primary_times_of_different_names_order_nothing() -> None:
    text = TIMES.replace("EVENT B { id: int, time", "EVENT B { id: int, other")
    assert only_query(celc.compile(text + "SELECT * FROM S WHERE A ; B")).plan.source.order_by == ()
