"""EQL: conditions by what Python says of the same rows, patterns as text, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import celc
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.interfaces.cli.command import main
from celc.interfaces.importing.files import imported
from celc.interfaces.importing.languages import COLUMNS
from celc.interfaces.importing.names import query_name

_ROWS: list[dict[str, Any]] = [
    {
        "name": "cmd.exe",
        "path": r"C:\Windows\cmd.exe",
        "ip": "10.2.3.4",
        "n": 5,
        "x": 0.5,
        "ok": True,
    },
    {"name": "CMD.EXE", "path": "/bin/100%_a", "ip": "172.20.0.1", "n": -7, "x": 2.0, "ok": False},
    {"name": "Powershell.exe", "path": "", "ip": "172.32.0.1", "n": 0, "x": -1.5, "ok": True},
    {"name": "it's", "path": "a*b", "ip": "fe80::1", "n": 443, "x": 443.0, "ok": None},
    {"name": None, "path": None, "ip": None, "n": None, "x": None, "ok": None},
]


def _is(value: Any, test: Callable[[Any], bool]) -> bool:
    return value is not None and test(value)


_CONDITIONS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    'name == "cmd.exe"': lambda e: e["name"] == "cmd.exe",
    'name != "cmd.exe"': lambda e: _is(e["name"], lambda v: v != "cmd.exe"),
    'not name == "cmd.exe"': lambda e: _is(e["name"], lambda v: v != "cmd.exe"),
    'name : "cmd.exe"': lambda e: _is(e["name"], lambda v: v.lower() == "cmd.exe"),
    'name : ("c*.EXE", "it\'?")': lambda e: _is(
        e["name"], lambda v: v.lower() in ("cmd.exe", "it's")
    ),
    'name in ("cmd.exe", "it\'s")': lambda e: e["name"] in ("cmd.exe", "it's"),
    'name in~ ("CMD.exe", "x")': lambda e: _is(e["name"], lambda v: v.lower() == "cmd.exe"),
    'substring(name, 0, 3) in~ ("CMD")': lambda e: _is(e["name"], lambda v: v[:3].lower() == "cmd"),
    'name not in ("cmd.exe")': lambda e: _is(e["name"], lambda v: v != "cmd.exe"),
    'name like "*.exe"': lambda e: _is(e["name"], lambda v: v.endswith(".exe")),
    'name like~ ("*.exe", "it?s")': lambda e: _is(
        e["name"], lambda v: v.lower().endswith(".exe") or v == "it's"
    ),
    'path like "/bin/100%_?"': lambda e: e["path"] == "/bin/100%_a",
    r'path == "C:\\Windows\\cmd.exe"': lambda e: e["path"] == r"C:\Windows\cmd.exe",
    'path == """C:\\Windows\\cmd.exe"""': lambda e: e["path"] == r"C:\Windows\cmd.exe",
    r'path like "C:\\*"': lambda e: e["path"] == r"C:\Windows\cmd.exe",
    r'path like "C:\u{5c}W?ndows*"': lambda e: e["path"] == r"C:\Windows\cmd.exe",
    'name regex "[cp].*"': lambda e: _is(
        e["name"], lambda v: re.fullmatch("[cp].*", v) is not None
    ),
    'name regex~ ("cmd.exe", "p.*l.*")': lambda e: _is(
        e["name"], lambda v: v.lower() in ("cmd.exe", "powershell.exe")
    ),
    "name == null": lambda e: e["name"] is None,
    "name != null and n == null or ok": lambda e: e["ok"] is True,
    "ok == true": lambda e: e["ok"] is True,
    "ok == false": lambda e: e["ok"] is False,
    "not ok": lambda e: e["ok"] is False,
    "n > 4 and n <= 443": lambda e: _is(e["n"], lambda v: 4 < v <= 443),
    "n + 2 * 3 == 11": lambda e: e["n"] == 5,
    "n / 2 == -4": lambda e: e["n"] == -7,
    "n % 4 == -3": lambda e: e["n"] == -7,
    "n - -1 >= 1": lambda e: _is(e["n"], lambda v: v >= 0),
    "x >= 0.5": lambda e: _is(e["x"], lambda v: v >= 0.5),
    "x == n": lambda e: e["x"] == 443.0,
    "add(n, 1) == 6 or multiply(n, 2) == -14": lambda e: e["n"] in (5, -7),
    "length(name) == 7": lambda e: _is(e["name"], lambda v: len(v) == 7),
    'startsWith(name, "cmd")': lambda e: _is(e["name"], lambda v: v.startswith("cmd")),
    'startsWith~(name, "cmd")': lambda e: _is(e["name"], lambda v: v.lower().startswith("cmd")),
    'endsWith~(name, ".EXE")': lambda e: _is(e["name"], lambda v: v.lower().endswith(".exe")),
    'stringContains(path, "ows")': lambda e: _is(e["path"], lambda v: "ows" in v),
    'substring(name, 0, 3) == "cmd"': lambda e: _is(e["name"], lambda v: v[0:3] == "cmd"),
    'substring(name, -4) == ".exe"': lambda e: _is(e["name"], lambda v: v[-4:] == ".exe"),
    'indexOf(name, ".") == 3': lambda e: _is(e["name"], lambda v: v.find(".") == 3),
    'between(path, "\\\\", "\\\\") == "Windows"': lambda e: e["path"] == r"C:\Windows\cmd.exe",
    'concat(name, "!") == "it\'s!"': lambda e: e["name"] == "it's",
    'string(n) == "443"': lambda e: e["n"] == 443,
    "number(name) == null": lambda e: True,
    'cidrMatch(ip, "10.0.0.0/8", "172.16.0.0/12")': lambda e: e["ip"] in ("10.2.3.4", "172.20.0.1"),
    'name == "a" or n == 5 and not (x > 1 or ok == false)': lambda e: e["n"] == 5,
    "true": lambda e: True,
}


def _translated(text: str, name: str = "q.eql") -> str:
    ((_, found),) = imported("eql", [Source(name, text)], COLUMNS["eql"])
    if isinstance(found, CelError):
        raise found
    return found.text


def test_conditions_are_true_where_python_says_so() -> None:
    kinds = {
        "name": pa.string(),
        "path": pa.string(),
        "ip": pa.string(),
        "n": pa.int64(),
        "x": pa.float64(),
        "ok": pa.bool_(),
    }
    # All in one file, so that they are compiled at once: a query of each, and one declaration.
    queries = []
    for number, condition in enumerate(_CONDITIONS):
        text = _translated(f"any where {condition}")
        queries.append(text[text.index("QUERY") :].replace("QUERY q:", f"QUERY q{number}:"))
    declared = ", ".join(
        f"{name}: {kind}"
        for name, kind in zip(
            kinds, ("STRING", "STRING", "STRING", "LONG", "DOUBLE", "BOOLEAN"), strict=True
        )
    )
    text = f"CREATE STREAM logs {{ EVENT event {{ {declared}, `@timestamp`: TIMESTAMP }} }}\n"
    table = pa.table(
        {name: pa.array([row[name] for row in _ROWS], kind) for name, kind in kinds.items()}
        | {"@timestamp": pa.array(range(len(_ROWS)), pa.timestamp("us", "UTC"))}
    )
    found = celc.compile(text + "\n".join(queries), order_by=["@timestamp"]).match_all_table(table)
    rows = {name: answer["start_pos"].to_pylist() for name, answer in found.items()}
    wrong = {
        condition: rows[f"q{number}"]
        for number, (condition, test) in enumerate(_CONDITIONS.items())
        if sorted(rows[f"q{number}"]) != [place for place, row in enumerate(_ROWS) if test(row)]
    }
    assert wrong == {}


def test_a_sequence_becomes_a_formula_that_a_person_would_write() -> None:
    text = """// A shell, then a connection
sequence by host.id with maxspan=1h
  [process where process.name : "cmd.exe"]
  [network where destination.port in (80, 443)] // two ports
until [process where event.type == "end"]
"""
    assert _translated(text, "shell.eql") == """\
-- compile with: --type-column event.category
CREATE STREAM logs {
  EVENT process {
    `host.id`: STRING,
    `process.name`: STRING,
    `event.type`: STRING,
    `@timestamp`: TIMESTAMP
  },
  EVENT network { `host.id`: STRING, `destination.port`: LONG, `@timestamp`: TIMESTAMP }
}

-- A shell, then a connection
-- two ports
-- As in EQL, a newer partial match takes the place of an older one.
QUERY shell:
SELECT *
FROM logs
WHERE (
  process FILTER process[LOWER(`process.name`) = 'cmd.exe' AND `host.id` IS NOT NULL]
)
  ; !(
    (process AS other FILTER other[LOWER(`process.name`) = 'cmd.exe'])
    OR (process AS other FILTER other[`event.type` = 'end'])
  )
  ; FIRST (network FILTER network[`destination.port` IN (80, 443)])
PARTITION BY `host.id`
WITHIN 1 HOUR [`@timestamp`]
"""


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        (
            "sequence with maxspan=5m [file where true] ![network where true]",
            "WHERE file ; !network\nWITHIN 5 MINUTES [`@timestamp`]",
        ),
        (
            "sequence with maxspan=500ms ![network where true] [file where true]",
            "WHERE !network FOR 500 MILLISECONDS [`@timestamp`] ; file",
        ),
        ("file where true | head 3 | head 2", "WHERE file\nLIMIT 2 PER PARTITION"),
        (
            "sample by host.id [file where true] [network where true]",
            "WHERE (file FILTER file[`host.id` IS NOT NULL]) ALL network\nPARTITION BY `host.id`\n"
            "LIMIT 1 PER PARTITION",
        ),
        (
            "sequence by ?k [file where true] by a [network where true] by a",
            "WHERE (file FILTER file[a IS NOT NULL]) ; !(file AS other) ; FIRST network\n"
            "PARTITION BY k, a",
        ),
        (
            "sequence [file where true] by a [network where true] by b",
            "WHERE file AS file1\n  ; !(file AS other FILTER other.a = file1.a)\n"
            "  ; FIRST (network AS network1 FILTER network1.b = file1.a)",
        ),
    ],
)
def test_clauses(text: str, clauses: str) -> None:
    found = _translated(text)
    assert found[found.index("WHERE") :].rstrip() == clauses
    celc.compile(found, order_by=["@timestamp"], type_column="event.category")


def test_the_command_writes_a_file_for_each_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "one.eql").write_text('file where file.name == "x"')
    (rules / "two.toml").write_text(
        '[rule]\nname = "A file: written!"\nlanguage = "eql"\nquery = """\nfile where true\n"""\n'
    )
    assert main(["import", "eql", str(rules), "-o", str(tmp_path / "out")]) == 0
    assert "QUERY one:" in (tmp_path / "out" / "one.cel").read_text()
    assert "QUERY a_file_written:" in (tmp_path / "out" / "two.cel").read_text()
    assert capsys.readouterr().err == "2 files translated\n"

    (rules / "three.toml").write_text(
        '[rule]\nlanguage = "eql"\nquery = """file where x > "\n"""\n'
    )
    assert main(["import", "eql", str(rules), "-o", str(tmp_path / "out"), "--force"]) == 1
    told = capsys.readouterr().err
    assert "three.toml:3:27: error[import-syntax]" in told
    assert told.endswith("2 files translated, 1 not\n")

    assert main(["import", "eql", str(rules)]) == 2
    assert main(["import", "eql", str(rules / "one.eql"), "-o", str(rules / "one.eql")]) == 2
    capsys.readouterr()
    events = tmp_path / "events.jsonl"
    event = {"event.category": "file", "file.name": "x", "@timestamp": "2026-01-01 00:00:00"}
    events.write_text(json.dumps(event) + "\n")
    query = str(tmp_path / "out" / "one.cel")
    options = ["--type-column", "event.category", "--order-by", "@timestamp", "--format", "json"]
    assert main(["run", query, str(events), *options]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == {"file": [0]}


@pytest.mark.parametrize(
    ("text", "name"),
    [("A rule (7)", "a_rule_7"), ("7 things", "rule_7_things"), ("…", "rule")],
)
def test_a_query_has_a_name(text: str, name: str) -> None:
    assert query_name(text) == name
