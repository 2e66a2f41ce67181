"""Compact answers whose numbers have been changed: an error names the row, or the rows of the
answer are well formed. Kernels run as plain Python, which tells of a place outside of an array."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventError, expand
from celc_runtime.arrow.matches import expanding
from celc_runtime.engine.walk import walk
from engines import in_python, interpreted

import celc

_STREAM = "CREATE STREAM S { EVENT A { id: INT, ts: LONG }, EVENT B { id: INT, ts: LONG } }\n"
_QUERIES = {
    "graphs": "SELECT * WHERE (A AS x)+ ; B WITHIN 6 EVENTS",
    "graphs of merges": "SELECT * WHERE (A OR B)+ ; (A AS x ; B OR B) WITHIN 5 EVENTS",
    "trees": "SELECT MAX * WHERE A+ ; B WITHIN 6 EVENTS LIMIT 3",
    "expressions": "SELECT COUNT(a) AS n, a[id], SUM(a.id) / 2 AS s WHERE A+ AS a ; B"
    " PARTITION BY id WITHIN 6 EVENTS",
}
_NUMBERS = (-1, 0, 1, 10**6, -(2**31), None)
_LIMIT = 12


@pytest.fixture(autouse=True)
def _in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    listing = in_python(walk).listing_kernel(None)
    monkeypatch.setattr(expanding, "list_fired", lambda *given: listing(*given, ()))


def _compact(query: str) -> pa.Table:
    with interpreted():
        matcher = celc.compile(_STREAM + query, order_by="ts")
    ids = pa.array([1, 1, 1, 0, 0, 0, 1, 1, 1, 0], pa.int32())
    table = pa.table({"type": list("AABABBABAB"), "id": ids, "ts": range(10)})
    return matcher.match_compact(table)


def _changed(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The row with one number changed, or one element of a list left out, or a whole list."""
    for name, value in row.items():
        if not isinstance(value, list):
            yield from ({**row, name: number} for number in _others(value))
            continue
        yield from ({**row, name: some} for some in (None, []))
        for place, one in enumerate(value):
            before, behind = value[:place], value[place + 1 :]
            yield {**row, name: [*before, *behind]}
            yield {**row, name: [*before, None, *behind]}
            for field, number in one.items():
                for other in _others(number):
                    yield {**row, name: [*before, {**one, field: other}, *behind]}


def _others(number: int | None) -> list[int | None]:
    near = [] if number is None else [number - 1, number + 1]
    return [one for one in (*_NUMBERS, *near) if one != number]


def _problem(compact: pa.Table, row: int) -> str:
    """What is wrong with how a table is expanded that has one row changed; empty: nothing is."""
    try:
        found = expand(compact, limit=_LIMIT).read_all()
    except EventError as error:
        return "" if f"row {row} (counted from 0)" in str(error) else str(error)
    found.validate(full=True)
    for match in found.to_pylist():
        for value in match.values():
            if isinstance(value, list):
                places = [event["pos"] for event in value]
                if places != sorted(set(places)) or None in places:
                    return f"a match has the events {places}"
        if None in (match["start_pos"], match["end_pos"], match["start_time"]):
            return f"a match without a place: {match}"
    return ""


@pytest.mark.each(2)
@pytest.mark.parametrize("name", _QUERIES)
def test_a_changed_number_is_an_error_or_gives_rows(name: str) -> None:
    compact = _compact(_QUERIES[name])
    rows = compact.to_pylist()
    assert len(rows) >= 3
    assert not _problem(compact, -1)
    chosen = max(range(len(rows) - 1), key=lambda n: len(rows[n]["nodes"]))
    tried, problems = 0, []
    for changed in _changed(rows[chosen]):
        # The row behind it has what a number that points too far would show.
        table = pa.Table.from_pylist([rows[0], changed, rows[-1]], compact.schema)
        tried += 1
        if wrong := _problem(table, 1):
            problems.append(f"{wrong}: {changed}")
    assert not problems, "\n".join(problems[:5])
    assert tried > 150


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("child", 10**6, "node 2 has the child 1000000, and a node stands behind those"),
        ("child", 2, "node 2 has the child 2, and a node stands behind"),
        ("next", -2, "node 2 has the next node -2"),
        ("event", 3, "node 2 has the event 3, and the row has 3 events"),
        ("event", 0, "node 2 has the event 0, and its child leads to an event that is not before"),
        ("event", -1, "node 2 has the mark 1, which its kind of node"),
        ("mark", 7, "node 2 has the mark 7"),
        ("child", -1, "node 2 has no child, and no match begins with its event"),
        ("mark", None, "node 2 has NULL for 'mark'"),
    ],
)
def test_the_error_says_which_number_is_wrong(field: str, value: int | None, said: str) -> None:
    with interpreted():
        matcher = celc.compile(_STREAM + "SELECT * WHERE A+ ; B", order_by="ts")
    compact = matcher.match_compact({"type": list("AAB"), "id": [1, 1, 1], "ts": [1, 2, 3]})
    (row,) = compact.to_pylist()
    row["nodes"][2][field] = value
    table = pa.Table.from_pylist([*compact.to_pylist(), row], compact.schema)
    with pytest.raises(EventError, match=r"expand: row 1 \(counted from 0\) is none of") as caught:
        expand(table.to_reader(max_chunksize=1)).read_all()
    assert said in str(caught.value)


def test_other_damage_is_told() -> None:
    compact = _compact(_QUERIES["graphs"])
    place = compact.schema.get_field_index("nodes")
    nodes = compact["nodes"].combine_chunks()
    # Arrow itself looks at the first and the last one.
    between = [10**6] * (len(nodes) - 1)
    offsets = pa.array([0, *between, len(nodes.values)], pa.int32())
    beyond = pa.Array.from_buffers(
        nodes.type, len(nodes), [None, offsets.buffers()[1]], children=[nodes.values]
    )
    wide = pa.struct([(field.name, pa.int64()) for field in nodes.type.value_type])
    changed = nodes.to_pylist()
    assert expand(compact.set_column(place, "nodes", nodes.cast(pa.list_(wide)))).read_all()
    changed[0][0]["child"] = 2**32  # 0 where its upper half is cut off
    for column in (pa.array([1] * len(nodes)), beyond, pa.array(changed, pa.list_(wide))):
        with pytest.raises(EventError, match=r"cannot read the column 'nodes'.*row 0"):
            expand(compact.set_column(place, "nodes", column)).read_all()
    with pytest.raises(EventError, match=r"cannot read the column 'end_pos': string and not int64"):
        expand(compact.set_column(0, "end_pos", pa.array(["1"] * len(nodes)))).read_all()


@pytest.mark.parametrize("name", _QUERIES)
def test_changed_metadata_are_told_or_give_rows(name: str) -> None:
    compact = _compact(_QUERIES[name])
    said = json.loads(compact.schema.metadata[b"celc.compact"])
    tried = refused = 0
    for changed in _with_other_numbers(said):
        tried += 1
        table = compact.replace_schema_metadata({"celc.compact": json.dumps(changed)})
        try:
            expand(table, limit=_LIMIT).read_all().validate(full=True)
        except EventError:
            refused += 1
    assert refused > tried / 2 > 10


def _with_other_numbers(said: Any) -> Iterator[Any]:
    """A value of JSON with one number in it changed."""
    if isinstance(said, int):
        yield from _others(said)
    elif isinstance(said, dict | list):
        for place, one in said.items() if isinstance(said, dict) else enumerate(said):
            for other in _with_other_numbers(one):
                changed = said.copy()
                changed[place] = other
                yield changed
