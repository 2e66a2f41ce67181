"""Values that are only carried come out as they went in, on one machine and in a state."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from carried import (
    CARRIED,
    CLAUSES,
    DECLARED,
    LABELS,
    MISSING,
    VALUES,
    carried_query,
    rows_of,
    table_of_carried,
)
from celc_runtime import EventError
from celc_runtime.arrow.nested import from_bytes, to_bytes
from celc_runtime.plan.errors import StateError
from celc_runtime.plan.schemas import arrow_type, named_type
from engines import interpreted
from streams_by_hand import Operator

import celc

TABLE = table_of_carried()


@pytest.mark.parametrize("text", [LABELS, VALUES], ids=["labels", "values"])
def test_values_come_out_as_they_went_in(text: str) -> None:
    """By their numbers, the events of the answer are those of the input."""
    events = {event["n"]: event for event in TABLE.to_pylist()}
    query = carried_query(text)
    rows = query.match_table(TABLE).to_pylist()
    assert len(rows) > 20
    for row in rows:
        for name in CARRIED:
            if text is LABELS:
                shown = [*row["x"], *row["y"]]
                assert [one[name] for one in shown] == [events[one["n"]][name] for one in shown]
            else:
                known = [event[name] for event in events.values()]
                assert all(one in known for one in row[f"all_{name}"])
                assert row[f"first_{name}"] == row[f"all_{name}"][0]
    assert query.match_table(TABLE).schema.field("k").type == pa.int64()


def test_null_is_seen_in_every_type() -> None:
    events = {event["n"]: event for event in TABLE.to_pylist()}
    pairs = {
        (row["x"][0]["n"], row["y"][0]["n"])
        for row in carried_query(MISSING).match_table(TABLE).to_pylist()
    }
    every = {
        (row["x"][0]["n"], row["y"][0]["n"])
        for row in carried_query(LABELS).match_table(TABLE).to_pylist()
    }
    wanted = {
        (x, y)
        for x, y in every
        if all(events[x][one] is None or events[y][one] is not None for one in CARRIED)
    }
    assert wanted
    assert wanted < every
    assert pairs == wanted


@pytest.mark.parametrize("text", [LABELS, VALUES, MISSING], ids=["labels", "values", "missing"])
def test_routes_of_one_machine(text: str) -> None:
    query = carried_query(text)
    wanted = query.match_table(TABLE)
    batches = query.match_arrow(TABLE.sort_by([("k", "ascending")]).to_batches(max_chunksize=3))
    given = pa.Table.from_batches(list(batches), wanted.schema)
    left = [name for name in wanted.column_names if name not in ("start_pos", "end_pos", "x", "y")]
    assert len(given) == len(wanted)
    assert rows_of(given.select(left)) == rows_of(wanted.select(left))
    frame = query.match_pandas(TABLE.to_pandas(types_mapper=_arrow_in_pandas))
    assert len(frame) == len(wanted)
    if text is LABELS:
        compact = query.match_compact(TABLE)
        assert rows_of(pa.table(query.expand(compact).read_all())) == rows_of(wanted)


def _arrow_in_pandas(type: pa.DataType) -> Any:
    import pandas as pd

    return pd.ArrowDtype(type)


@pytest.mark.parametrize("text", [LABELS, VALUES, MISSING], ids=["labels", "values", "missing"])
def test_a_stream_keeps_them_in_its_state(text: str) -> None:
    """The state is bytes between two micro-batches, as over a restart."""
    query = carried_query(text)
    operator = Operator(query)
    found = []
    for start in range(0, len(TABLE), 7):
        found += operator.advance(TABLE.slice(start, 7), 0)
    found += operator.finish()
    wanted = query.match_table(TABLE).drop_columns(["start_pos", "end_pos"])
    shown = pa.Table.from_pylist(found, query.match_table(TABLE).schema)
    assert _without_places(shown) == _without_places(wanted)


def _without_places(table: pa.Table) -> list[str]:
    """The rows without positions, which a stream does not have."""
    rows = []
    for row in table.to_pylist():
        plain = {name: value for name, value in row.items() if not name.endswith("_pos")}
        for label in ("x", "y"):
            for event in plain.get(label) or ():
                event.pop("pos", None)
        rows.append(repr(plain))
    return sorted(rows)


def test_a_reader_of_queries_and_parameter_sets() -> None:
    reader = (
        f"QUERY one: SELECT y.tags AS tags, y.place AS place, y.raw AS raw, y.n AS n FROM S "
        f"WHERE A AS x ; B AS y {CLAUSES}\n"
        f"QUERY two: SELECT z FROM one WHERE one AS z FILTER z.tags IS NOT NULL {CLAUSES}"
    )
    with interpreted():
        found = celc.compile(DECLARED + reader, order_by="ts").queries["two"].match_table(TABLE)
    events = {event["n"]: event for event in TABLE.to_pylist()}
    shown = [row["z"][0] for row in found.to_pylist()]
    assert shown
    assert all(
        one[name] == events[one["n"]][name] for one in shown for name in ("tags", "place", "raw")
    )
    rules = pa.table(
        {
            "id": [0, 1, 1, 1],
            "tags": [["a"], None, [], []],
            "price": pa.array([Decimal("1.5"), None, None, None], pa.decimal128(10, 2)),
        }
    )
    each = (
        "PARAMETERS rule { id: LONG, tags: ARRAY<STRING>, price: DECIMAL(10, 2) }\n"
        + DECLARED
        + "SELECT x[n] FROM S FOR EACH rule WHERE A AS x FILTER x.k = rule.id AND x.raw IS NULL "
        + CLAUSES
    )
    with interpreted():
        (query,) = celc.compile(each, order_by="ts").queries.values()
        answer = query.match_table(TABLE, rule=rules)
    # Equal rows count once.
    shown = {repr(row["rule"]) for row in answer.to_pylist()}
    assert shown == {repr(rules.slice(number, 1).to_pylist()[0]) for number in (0, 1, 2)}


def test_match_ids_tell_values_apart() -> None:
    """An id depends on each value, and not on how Arrow stores it."""
    query = carried_query(LABELS).with_options(match_id=True)
    ids = query.match_table(TABLE)["match_id"]
    assert len(set(ids.to_pylist())) == len(ids)
    stored = {"tags": pa.large_list(pa.large_string()), "raw": pa.large_binary()}
    other = TABLE
    for name, type in stored.items():
        place = other.schema.get_field_index(name)
        other = other.set_column(place, name, other[name].cast(type))
    assert query.match_table(other)["match_id"].equals(ids)
    for name in CARRIED:
        place = TABLE.schema.get_field_index(name)
        last = TABLE.set_column(place, name, pa.nulls(len(TABLE), TABLE.schema.field(name).type))
        assert not query.match_table(last)["match_id"].equals(ids), name


# --- Arrow's forms --------------------------------------------------------------------------------


def _recoded(column: pa.Array, type: pa.DataType) -> pa.Array:
    return pa.array(column.to_pylist(), type)


FORMS = {
    "large lists": ("tags", lambda c: c.cast(pa.large_list(pa.large_string()))),
    "list views": ("tags", lambda c: _recoded(c, pa.list_view(pa.string()))),
    "large list views": ("tags", lambda c: _recoded(c, pa.large_list_view(pa.string_view()))),
    "coded texts": ("tags", lambda c: c.cast(pa.list_(pa.dictionary(pa.int32(), pa.string())))),
    "large keys": ("scores", lambda c: c.cast(pa.map_(pa.large_string(), pa.float32()))),
    "other fields": (
        "place",
        lambda c: _recoded(
            c,
            pa.struct(
                [
                    ("at", pa.timestamp("s")),
                    ("more", pa.int8()),
                    ("path", pa.large_list(pa.list_(pa.int8()))),
                    ("x", pa.int16()),
                ]
            ),
        ),
    ),
    "large bytes": ("raw", lambda c: c.cast(pa.large_binary())),
    "views of bytes": ("raw", lambda c: c.cast(pa.binary_view())),
    "coded bytes": ("raw", lambda c: c.dictionary_encode()),
    "runs": ("tiny", pc.run_end_encode),
    "runs of decimals": ("price", pc.run_end_encode),
    "wide decimals": ("price", lambda c: c.cast(pa.decimal256(10, 2))),
    "narrow decimals": ("price", lambda c: c.cast(pa.decimal64(10, 2))),
    "narrow numbers": ("small", lambda c: c.cast(pa.int8(), safe=False)),
    "seconds": ("local", lambda c: c.cast(pa.timestamp("s"))),
}


@pytest.mark.parametrize("form", FORMS)
def test_further_forms_of_arrow(form: str) -> None:
    name, change = FORMS[form]
    table = TABLE.filter(pc.equal(TABLE["k"], 0))
    if form == "narrow numbers":
        place = table.schema.get_field_index("small")
        table = table.set_column(place, "small", pa.array(range(len(table)), pa.int16()))
    query = carried_query(LABELS)
    place = table.schema.get_field_index(name)
    other = table.set_column(place, name, change(table[name].combine_chunks()))
    assert other.schema.field(name).type != table.schema.field(name).type
    assert query.match_table(other).equals(query.match_table(table))


def test_bytes_of_fixed_length_and_nulls() -> None:
    query = carried_query(LABELS)
    place = TABLE.schema.get_field_index("raw")
    ids = pa.array([bytes([n]) * 16 for n in range(len(TABLE))], pa.binary(16))
    for column in (ids, ids.cast(pa.uuid())):
        found = query.match_table(TABLE.set_column(place, "raw", column))
        assert (
            found.to_pylist()[0]["y"][0]["raw"] == bytes([found.to_pylist()[0]["y"][0]["n"]]) * 16
        )
    for name in CARRIED:
        place = TABLE.schema.get_field_index(name)
        found = query.match_table(TABLE.set_column(place, name, pa.nulls(len(TABLE))))
        assert {row["y"][0][name] for row in found.to_pylist()} == {None}


REFUSED = {
    "another scale": ("price", pa.decimal128(10, 3)),
    "more digits": ("price", pa.decimal128(11, 2)),
    "floating": ("price", pa.float64()),
    "other elements": ("tags", pa.list_(pa.int64())),
    "no list": ("tags", pa.string()),
    "other keys": ("scores", pa.map_(pa.int32(), pa.float64())),
    "no field": ("place", pa.struct([("x", pa.int32())])),
    "views in a list": (
        "place",
        pa.struct(
            [
                ("x", pa.int32()),
                ("path", pa.list_(pa.list_view(pa.int8()))),
                ("at", pa.timestamp("us")),
            ]
        ),
    ),
    "text": ("raw", pa.string()),
    "wider": ("small", pa.int32()),
    "unsigned": ("tiny", pa.uint8()),
    "zone": ("local", pa.timestamp("us", "UTC")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_types_are_refused_in_words(case: str) -> None:
    name, type = REFUSED[case]
    place = TABLE.schema.get_field_index(name)
    table = TABLE.set_column(place, name, pa.nulls(len(TABLE), type))
    with pytest.raises(EventError) as caught:
        carried_query(LABELS).match_table(table)
    message = str(caught.value)
    declared = message.partition(" as ")[2].partition(", but the column's type is ")[0]
    assert (f"declares {name!r}" in message, declared) == (True, CARRIED[name])
    assert "cast the column" in message or "give it a column" in message


def test_values_inside_others_that_do_not_fit() -> None:
    place = TABLE.schema.get_field_index("place")
    type = pa.struct(
        [
            ("x", pa.int32()),
            ("path", pa.list_(pa.list_(pa.int16()))),
            ("at", pa.timestamp("ns")),
        ]
    )
    column = pa.array([{"x": 1, "path": [], "at": 1}] * len(TABLE), type)
    with pytest.raises(EventError, match="which some values of the type struct"):
        carried_query(LABELS).match_table(TABLE.set_column(place, "place", column))


@pytest.mark.parametrize("type", [*CARRIED.values(), "ARRAY<MAP<STRING, STRUCT<`a b`: DATE>>>"])
def test_types_have_names(type: str) -> None:
    assert named_type(arrow_type(type)) == type


@pytest.mark.parametrize(
    "type",
    [
        pa.list_(pa.null()),
        pa.map_(pa.int32(), pa.int32()),
        pa.struct([]),
        pa.large_list(pa.int32()),
        pa.list_(pa.int32(), 2),
        pa.list_(pa.uint8()),
    ],
)
def test_some_types_of_arrow_have_none(type: pa.DataType) -> None:
    assert named_type(type) is None


# --- values with parts as bytes -------------------------------------------------------------------


def _random_type(rng: random.Random, depth: int = 0) -> pa.DataType:
    match rng.choice("lms" + "p" * 4 * depth) if depth < 3 else "p":
        case "l":
            return pa.list_(_random_type(rng, depth + 1))
        case "m":
            return pa.map_(pa.string(), _random_type(rng, depth + 1))
        case "s":
            fields = range(rng.randint(1, 3))
            return pa.struct([(f"f{n}", _random_type(rng, depth + 1)) for n in fields])
        case _:
            return rng.choice(_LEAVES)


_LEAVES = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_()),
    *(pa.string(), pa.binary(), pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")),
    *(pa.duration("us"), pa.decimal128(20, 3)),
)


def _random_value(rng: random.Random, type: pa.DataType) -> Any:
    if rng.random() < 0.2:
        return None
    if pa.types.is_map(type):
        return [(f"{n}ß", _random_value(rng, type.item_type)) for n in range(rng.randint(0, 3))]
    if pa.types.is_list(type):
        return [_random_value(rng, type.value_type) for _ in range(rng.randint(0, 4))]
    if pa.types.is_struct(type):
        return {field.name: _random_value(rng, field.type) for field in type}
    if pa.types.is_boolean(type):
        return rng.random() < 0.5
    if pa.types.is_string(type):
        return "é" * rng.randint(0, 3)
    if pa.types.is_binary(type):
        return bytes(rng.randint(0, 3))
    if pa.types.is_decimal(type):
        return Decimal(rng.randint(-(10**19), 10**19)).scaleb(-3)
    return rng.randint(-100, 100)


@pytest.mark.parametrize("seed", range(60))
def test_values_with_parts_are_bytes(seed: int) -> None:
    rng = random.Random(seed)
    type = _random_type(rng)
    rows = rng.choice([0, 1, 5, 40])
    column = pa.array([_random_value(rng, type) for _ in range(rows)], type)
    for given in (column, pa.concat_arrays([column, column]).slice(rng.randint(0, rows))):
        stored = to_bytes(given)
        assert stored.null_count == given.null_count
        found = from_bytes(stored, type)
        found.validate(full=True)
        assert found.equals(given)
        # A value can be picked without the others.
        index = pa.array(
            [rng.randrange(len(given)) for _ in range(5 * bool(len(given)))], pa.int64()
        )
        assert from_bytes(stored.take(index), type).equals(given.take(index))


@pytest.mark.parametrize("seed", range(60))
def test_changed_bytes_are_refused_or_values(seed: int) -> None:
    rng = random.Random(seed)
    type = _random_type(rng)
    stored = to_bytes(pa.array([_random_value(rng, type) for _ in range(5)], type)).to_pylist()
    texts = [bytearray(one) for one in stored if one is not None]
    for text in texts:
        for _ in range(2):
            text[rng.randrange(len(text))] = rng.randrange(256)
    try:
        found = from_bytes(pa.array(map(bytes, texts), pa.large_binary()), type)
    except StateError:
        return
    found.validate(full=True)


@pytest.mark.parametrize("name", ["small", "tiny", "local"])
def test_values_of_one_type_are_compared(name: str) -> None:
    events = {event["n"]: event for event in TABLE.to_pylist()}
    query = carried_query(
        f"QUERY compared: SELECT x[n], y[n] FROM S WHERE (A AS x ; A AS y) FILTER x.{name} < "
        f"y.{name} OR x.{name} = y.{name} {CLAUSES}"
    )
    every = carried_query(f"QUERY every: SELECT x[n], y[n] FROM S WHERE A AS x ; A AS y {CLAUSES}")
    found, pairs = (
        [(row["x"][0]["n"], row["y"][0]["n"]) for row in one.match_table(TABLE).to_pylist()]
        for one in (query, every)
    )
    there = [pair for pair in pairs if None not in [events[n][name] for n in pair]]
    assert sorted(found) == sorted((x, y) for x, y in there if events[x][name] <= events[y][name])
    assert found


def test_bytes_are_keys() -> None:
    query = carried_query(
        "QUERY keys: SELECT x, y FROM S WHERE A AS x ; B AS y PARTITION BY raw WITHIN 1 MINUTE [ts]"
    )
    rows = query.match_table(TABLE).to_pylist()
    assert {row["raw"] for row in rows} >= {b"", b"\x00\xff"}
    assert all(row["x"][0]["raw"] == row["raw"] == row["y"][0]["raw"] for row in rows)
