"""Signs that change how a terminal or a browser shows others, and texts that spreadsheets run."""

from __future__ import annotations

import csv
import json
import os
import pty
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from engines import interpreted
from shares import share

import celc
from celc.diagnostics.source import visible_json
from celc.interfaces.cli import main

_SIGNS = "a\u202e\x9b\x7f\u2066\u200b\U000e0041é日b"
_NAME = f"`{_SIGNS}`"
_STREAM = f"CREATE STREAM S {{ EVENT A {{ {_NAME}: STRING, ts: LONG }} }}\n"
_QUERY = f"{_STREAM}SELECT A.{_NAME} AS {_NAME} FROM S WHERE A FILTER A.{_NAME} = '{_SIGNS}'\n"
_ROWS = f"""SELECT * FROM t MATCH_RECOGNIZE (
  ORDER BY ts MEASURES LAST({_NAME}) AS {_NAME} PATTERN (A) DEFINE A AS ts > 0
)
"""


def _odd(text: str) -> set[str]:
    """The characters of a text that change how others are shown."""
    odd = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    return {
        ascii(sign) for sign in text if sign not in "\n\t" and unicodedata.category(sign) in odd
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("q.cel").write_text(_QUERY)
    Path("wrong.cel").write_text(_QUERY.replace(f"A.{_NAME} =", f"A.`none{_SIGNS}` ="))
    Path("q.sql").write_text(f"CREATE TABLE t (ts LONG, {_NAME} STRING);\n{_ROWS}")
    Path("e.jsonl").write_text(json.dumps({"type": "A", "ts": 1, _SIGNS: _SIGNS}) + "\n")
    return tmp_path


@pytest.mark.parametrize("source", ["q.cel", "q.sql"])
def test_json_has_odd_signs_as_escapes(source: str, folder: Path, capsys: Any) -> None:
    """Which mean the same; letters of all languages stay."""
    with interpreted():
        assert main(["run", source, "e.jsonl", "--format", "json"]) == 0
    text = capsys.readouterr().out
    assert not _odd(text)
    assert "é日" in text
    line = json.loads(text)
    assert (line["values"] if source == "q.cel" else line["row"]) == {_SIGNS: _SIGNS}


@pytest.mark.parametrize("format", ["text", "json", "sarif"])
def test_messages_have_odd_signs_as_escapes(format: str, folder: Path, capsys: Any) -> None:
    assert main(["check", "wrong.cel", "--format", format]) == 1
    printed = capsys.readouterr()
    text = printed.out + printed.err
    assert "none" in text
    assert not _odd(text)
    with pytest.raises(SystemExit):
        main(["check", "q.cel", _SIGNS, f"--{_SIGNS}"])
    assert not _odd(capsys.readouterr().err)


def test_every_text_of_json_means_the_same() -> None:
    texts = [chr(code) for code in (*range(0x3000), 0x1F600, 0xE0041, 0x10FFFF, 0xFEFF)]
    for indent in (None, 2):
        text = json.dumps(texts, ensure_ascii=False, indent=indent)
        assert json.loads(visible_json(text)) == texts
        assert not _odd(visible_json(text))


_FORMATS = ("table", "json", "csv")


@pytest.mark.each(2)
@pytest.mark.parametrize(
    "arguments",
    [
        *share((["run", "q.cel", "e.jsonl", "--format", one] for one in _FORMATS), 2),
        *share((["run", "q.sql", "e.jsonl", "--format", one] for one in _FORMATS), 2, first=1),
        ["fmt", "--diff", "q.cel"],
        ["compile", "q.cel", "--to", "duckdb-sql", "--order-by", "ts"],
        ["explain", "q.cel", "--format", "html"],
    ],
    ids=" ".join,
)
def test_a_terminal_gets_no_odd_signs(arguments: list[str], folder: Path) -> None:
    ours, theirs = pty.openpty()
    ended = subprocess.Popen(
        [sys.executable, "-m", "celc", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # Linux: the other end is closed
            break
        if not part:
            break
        shown += part
    assert ended.stderr is not None
    assert b"rror" not in ended.stderr.read()
    assert ended.wait() == 0
    os.close(ours)
    text = shown.decode().replace("\r\n", "\n")
    assert "é日" in text
    assert not _odd(text)


def test_pages_show_odd_signs_as_escapes(folder: Path) -> None:
    with interpreted():
        query = celc.compile(_QUERY)
        events = pa.table({"type": ["A"], "ts": [1], _SIGNS: [_SIGNS]})
        page = celc.report(query.match_table(events), events, query=query, title=_SIGNS)
        assert main(["explain", "q.cel", "--format", "html", "-o", "page.html"]) == 0
    assert not _odd(page + Path("page.html").read_text())
    # Scripts write texts of the data as they are.
    data = page.partition('id="data">')[2].partition("</script>")[0]
    assert "\\\\u202e" in data
    assert not _odd(json.dumps(json.loads(data), ensure_ascii=False))


_FORMULAS = {
    **{
        text: f"'{text}"
        for text in ("=1+1", "+x", "-2+3", "@sum", "\tx", "\rx", "\n=x", "＝1", "-")
    },
    **{text: text for text in ("", "a=1", "-5", "+1.5", "-2e9", " =1", "'=1", "1-2", "é")},
}


@pytest.mark.parametrize("source", ["q.cel", "q.sql"])
@pytest.mark.parametrize("options", [[], ["--csv-safe"]], ids=["plain", "safe"])
def test_texts_that_spreadsheets_run(
    source: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stay as they are, or begin with a sign that makes them texts."""
    monkeypatch.chdir(tmp_path)
    stream = "CREATE STREAM S { EVENT A { v: STRING, n: LONG } }\n"
    Path("q.cel").write_text(f"{stream}SELECT A.v AS `=v`, A.n AS n FROM S WHERE A")
    Path("q.sql").write_text(
        "CREATE TABLE t (v STRING, n LONG); SELECT * FROM t MATCH_RECOGNIZE ("
        "ORDER BY n MEASURES LAST(v) AS `=v`, LAST(n) AS n2 PATTERN (A) DEFINE A AS n < 0)"
    )
    rows = [{"type": "A", "v": text, "n": n - 100} for n, text in enumerate(_FORMULAS)]
    Path("e.jsonl").write_text("".join(map("{}\n".format, map(json.dumps, rows))))
    with interpreted():
        assert main(["run", source, "e.jsonl", "-o", "m.csv", *options]) == 0
    with open("m.csv", newline="") as stream_:
        found = list(csv.DictReader(stream_))
    name = "'=v" if options else "=v"
    assert [row[name] for row in found] == [
        safe if options else text for text, safe in _FORMULAS.items()
    ]
    number = "n" if source == "q.cel" else "n2"
    assert [int(row[number]) for row in found] == [row["n"] for row in rows]


def test_a_safe_csv_is_csv(folder: Path, capsys: Any) -> None:
    for source in ("q.cel", "q.sql"):
        for format in ("json", "table"):
            assert main(["run", source, "e.jsonl", "--format", format, "--csv-safe"]) == 2
            assert "--csv-safe is for the format csv" in capsys.readouterr().err
