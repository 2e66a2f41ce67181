"""Rules in the shapes of public ones: what they find in a few events, and the messages of what is
not translated. `rules` has the rules, the events and the answers. Those of Sigma and EQL were found
by hand, those of FlinkCEP by the runs of `test_flink.py`, which know nothing of celc.
"""

from __future__ import annotations

import json
import re
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from golden_files import compare

import celc
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.interfaces.importing.files import imported
from celc.interfaces.importing.languages import COLUMNS, SUFFIXES, Columns
from celc.interfaces.importing.names import query_name

_RULES = Path(__file__).parent / "rules"


def _text(language: str, name: str, text: str, columns: Columns | None = None) -> str:
    ((_, found),) = imported(language, [Source(name, text)], columns or COLUMNS[language])
    if isinstance(found, CelError):
        raise found
    return found.text


def _flat(given: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _table(rows: list[dict[str, Any]], time: str) -> pa.Table:
    """Rows with all fields that one of them has; the time is seconds or an ISO time."""
    names = {name: None for row in rows for name in row}
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in names}
    seconds = [
        one if isinstance(one, int) else int(datetime.fromisoformat(one).timestamp())
        for one in columns[time]
    ]
    assert len(set(seconds)) == len(seconds), "a time says which event it is"
    columns[time] = pa.array([one * 10**6 for one in seconds], pa.timestamp("us", "UTC"))
    return pa.table(columns)


def _found(
    text: str, table: pa.Table, columns: Columns, type_column: str | None = None
) -> list[list[int]]:
    """The positions of the events of each match of a file's last query."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = celc.compile(
            text, order_by=[columns.time], at_end="closed", type_column=type_column
        )
        rows = module.match_table(table).to_pylist()
    place = {time: at for at, time in enumerate(table[columns.time].to_pylist())}
    return sorted(
        sorted(
            place[one[columns.time]]
            for label in row.values()
            if isinstance(label, list)
            for one in label
        )
        for row in rows
    )


def _event(word: str, position: int) -> dict[str, Any]:
    found = re.fullmatch(r"([a-d])([w-z]?)([w-z]?)(\d?)(?:@(\d+))?", word)
    assert found, word
    kind, k, v = found[1], found[2] or None, int(found[4]) if found[4] else None
    time = int(found[5]) if found[5] else position
    return {"kind": kind, "type": "event", "k": k, "l": found[3] or None, "v": v, "ts": time}


def test_sequences_by_the_words_of_the_documents() -> None:
    cases = tomllib.loads((_RULES / "sequences.toml").read_text())["case"]
    assert len(cases) == 43
    kinds = {"k": pa.string(), "l": pa.string(), "v": pa.int64()}
    wrong = {}
    columns = Columns("ts", "kind")
    for case in cases:
        events = [_event(word, place) for place, word in enumerate(case["events"].split())]
        table = _table(events, "ts")
        for name, kind in kinds.items():
            column = table.schema.get_field_index(name)
            table = table.set_column(column, name, table[name].cast(kind))
        text = _text("eql", "case.eql", case["query"], columns)
        found = _found(text, table, columns, "type" if "any where" in case["query"] else "kind")
        if found != case["matches"]:
            wrong[case["name"]] = found
    assert wrong == {}


def test_rules_of_eql() -> None:
    rules = tomllib.loads((_RULES / "eql.toml").read_text())["rule"]
    lines = (_RULES / "eql.jsonl").read_text().splitlines()
    table = _table([dict(_flat(json.loads(line))) for line in lines], "@timestamp")
    any_kind = table.append_column("type", pa.array(["event"] * len(lines)))
    found = {}
    for one in rules:
        text = _text("eql", f"{one['name']}.eql", one["query"])
        assert f"QUERY {one['name']}:" in text
        is_any = "any where" in one["query"]
        found[one["name"]] = _found(
            text,
            any_kind if is_any else table,
            COLUMNS["eql"],
            "type" if is_any else "event.category",
        )
    assert len(found) == 30
    assert found == {one["name"]: one["matches"] for one in rules}


def _answer(row: Mapping[str, Any], place: Mapping[datetime, int]) -> int | str:
    """The position of the last event of a match; of a count of few events, the key."""
    return place[row["end_time"]] if "end_time" in row else str(row["TargetUserName"])


def test_rules_of_sigma() -> None:
    text = (_RULES / "sigma.yml").read_text()
    rules = [one for one in yaml.safe_load_all(text) if "expected" in one]
    assert len(rules) == 30
    rows = [json.loads(line) for line in (_RULES / "sigma.jsonl").read_text().splitlines()]
    table = _table(rows, "timestamp")
    place = {time: at for at, time in enumerate(table["timestamp"].to_pylist())}
    module = celc.compile(
        _text("sigma", "sigma.yml", text), order_by=["timestamp"], type_column="logsource"
    )
    answers = module.match_all_table(table)
    found = {}
    for one in rules:
        answer = answers[query_name(one.get("name", one["title"]))].to_pylist()
        found[one["title"]] = sorted(_answer(row, place) for row in answer)
    assert found == {one["title"]: one["expected"] for one in rules}


def test_rules_of_flink() -> None:
    rules = [json.loads(line) for line in (_RULES / "flink.jsonl").read_text().splitlines()]
    assert len(rules) == 30
    lines = (_RULES / "flink_events.jsonl").read_text().splitlines()
    table = _table([json.loads(line) for line in lines], "ts")
    found = {}
    for one in rules:
        rule = {name: value for name, value in one.items() if name != "expected"}
        text = _text("flink", f"{one['name']}.json", json.dumps(rule))
        found[one["name"]] = _found(text, table, COLUMNS["flink"])
    assert found == {one["name"]: one["expected"] for one in rules}


def test_what_cannot_be_translated_is_told_with_its_place(update: bool) -> None:
    refused = tomllib.loads((_RULES / "refused.toml").read_text())
    told = []
    for language, rules in refused.items():
        for number, rule in enumerate(rules, 1):
            source = Source(f"{language}{number}{SUFFIXES[language][0]}", rule)
            ((_, found),) = imported(language, [source], COLUMNS[language])
            assert isinstance(found, CelError), rule
            told.append(f"{found}\n")
    compare(_RULES / "messages.txt", "\n".join(told), update)
