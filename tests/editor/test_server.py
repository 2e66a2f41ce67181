"""`celc lsp`, driven as an editor drives it: a process, and messages on its standard streams."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from celc.diagnostics.source import Source

pytest.importorskip("pygls")

URI, SQL = "file:///queries/fire.cel", "file:///queries/v%20shape.sql"
TEXT = """\
CREATE STREAM Farm {
  EVENT T { id: LONG, value: DOUBLE }
}
/* 😀 */ SELECT hot FROM Farm WHERE T AS hot FILTER hot.valu > 40 AND hott.value < 90
"""
ROWS = """\
CREATE TABLE t (x INT);
SELECT * FROM t MATCH_RECOGNIZE (ORDER BY x MEASURES y AS m PATTERN (A) DEFINE A AS x > 1)
"""


class Editor:
    """What an editor does: it sends messages, and reads answers and what it is told."""

    def __init__(self, *options: str) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "celc", "lsp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        self._number = 0
        self.told: list[Any] = []

    def tell(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request; its answer."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params or None})
        while (message := self._read()).get("id") != self._number:
            self.told.append(message)
        return message

    def of_document(self, method: str, uri: str = URI, **params: Any) -> Any:
        """Ask something about a document."""
        return self.ask(f"textDocument/{method}", textDocument={"uri": uri}, **params)

    def diagnostics(self, uri: str = URI) -> Any:
        """The diagnostics that come next, or came already, for a document."""
        while True:
            message = self.told.pop(0) if self.told else self._read()
            is_told = message.get("method") == "textDocument/publishDiagnostics"
            if is_told and message["params"]["uri"] == uri:
                return message["params"]

    def open(self, text: str, uri: str = URI, language: str = "cel") -> None:
        """Open a document."""
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)

    def change(self, text: str, version: int, uri: str = URI) -> None:
        """Change the whole of a document."""
        document = {"uri": uri, "version": version}
        self.tell("textDocument/didChange", textDocument=document, contentChanges=[{"text": text}])

    def end(self) -> tuple[int, str]:
        """End the server; its exit code, and what it wrote on standard error."""
        self.ask("shutdown")
        self.tell("exit")
        _, told = self._server.communicate(timeout=120)
        return self._server.returncode, told.decode()

    def kill(self) -> None:
        """End the process if it is still there."""
        if self._server.poll() is None:
            self._server.kill()
            self._server.communicate()

    def answers_to(self, data: bytes) -> Any:
        """Send bytes as a message; the next answer, or the next line of a log."""
        self.send_bytes(data)
        while (message := self._read()).get("method") not in (None, "window/logMessage"):
            self.told.append(message)
        return message

    def _send(self, message: dict[str, Any]) -> None:
        self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as a message, be they one or not."""
        assert self._server.stdin is not None
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        self._server.stdin.flush()

    def _read(self) -> Any:
        assert self._server.stdout is not None
        length = 0
        while (line := self._server.stdout.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the server has ended"
        return json.loads(self._server.stdout.read(length))


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    """An editor that has opened both documents."""
    editor = Editor()
    try:
        general = {"positionEncodings": ["utf-16"]}
        answer = editor.ask(
            "initialize", processId=None, rootUri=None, capabilities={"general": general}
        )
        able = answer["result"]["capabilities"]
        assert able["positionEncoding"] == "utf-16"
        assert able["completionProvider"]["triggerCharacters"] == [".", "[", "("]
        editor.tell("initialized")
        editor.open(TEXT)
        editor.open(ROWS, SQL, "sql")
        yield editor
        # The server ends when the editor asks, and has told nothing on standard error.
        assert editor.end() == (0, "")
    finally:
        editor.kill()


def _at(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


def _column(word: str, line: int = 3) -> int:
    """Where a word begins in a line of the text, in units of UTF-16."""
    before = TEXT.splitlines()[line].partition(word)[0]
    return len(before.encode("utf-16-le")) // 2


def test_all_errors_of_a_text_are_told_with_help_and_code(editor: Editor) -> None:
    found = editor.diagnostics()["diagnostics"]
    assert [one["code"] for one in found] == ["unknown-attribute", "unbound-label"]
    first = found[0]
    assert first["range"] == {"start": _at(3, _column("valu")), "end": _at(3, _column("valu") + 4)}
    assert first["severity"] == 1
    assert first["source"] == "celc"
    assert "\nhelp: did you mean 'value'?" in first["message"]


def test_errors_of_match_recognize(editor: Editor) -> None:
    (found,) = editor.diagnostics(SQL)["diagnostics"]
    column = ROWS.splitlines()[1].index("y AS m")
    assert found["range"]["start"] == _at(1, column)


def test_completion(editor: Editor) -> None:
    answer = editor.of_document("completion", position=_at(3, _column("valu") + 2))
    (item,) = answer["result"]["items"]
    assert (item["label"], item["detail"], item["kind"]) == ("value", "DOUBLE, of T", 5)
    place = _at(1, ROWS.splitlines()[1].index("x > 1"))
    answer = editor.of_document("completion", SQL, position=place)
    assert [one["label"] for one in answer["result"]["items"]][:3] == ["x", "A", "FIRST"]


def test_hover(editor: Editor) -> None:
    shown = editor.of_document("hover", position=_at(3, _column("hot FROM") + 1))["result"]
    assert shown["contents"]["value"].startswith("label `hot` of events of `T`")
    assert shown["range"]["start"] == _at(3, _column("hot FROM"))
    assert editor.of_document("hover", position=_at(3, _column("40")))["result"] is None


def test_rename(editor: Editor) -> None:
    place = _at(3, _column("hot FROM"))
    assert editor.of_document("prepareRename", position=place)["result"]["start"] == place
    answer = editor.of_document("rename", position=place, newName="warm")
    (changes,) = answer["result"]["changes"].values()
    assert [one["range"]["start"]["character"] for one in changes] == [
        _column("hot FROM"),
        _column("hot FILTER"),
        _column("hot.valu"),
    ]
    refused = editor.of_document("rename", position=place, newName="T")["error"]
    assert "is an event type" in refused["message"]
    nothing = editor.of_document("prepareRename", position=_at(3, _column("40")))["error"]
    assert nothing["message"] == "there is no name here"


def test_quick_fixes(editor: Editor) -> None:
    place = _at(3, _column("valu"))
    asked = {"range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    (action,) = editor.of_document("codeAction", **asked)["result"]
    assert action["title"] == "write value in place of valu"
    assert action["isPreferred"]
    assert action["edit"]["changes"][URI][0]["newText"] == "value"


def test_formatting(editor: Editor) -> None:
    options = {"tabSize": 2, "insertSpaces": True}
    (edit,) = editor.of_document("formatting", options=options)["result"]
    assert edit["range"] == {"start": _at(0, 0), "end": _at(4, 0)}
    assert "\n/* 😀 */\nSELECT hot\nFROM Farm\nWHERE" in edit["newText"]
    (edit,) = editor.of_document("formatting", SQL, options=options)["result"]
    assert "\n  PATTERN (A)\n" in edit["newText"]


def test_errors_follow_the_changes_and_go_when_the_document_is_closed(editor: Editor) -> None:
    uri = "file:///queries/a%20changed.cel"
    editor.open(TEXT, uri)
    assert editor.diagnostics(uri)["version"] == 1
    # Of changes in quick succession only the last one is checked.
    editor.change("SELECT", 2, uri)
    editor.change(TEXT.replace("valu ", "value ").replace("hott", "hot"), 3, uri)
    told = editor.diagnostics(uri)
    assert (told["version"], told["diagnostics"]) == (3, [])
    editor.change("SELECT * FROM S WHERE", 4, uri)
    assert [one["code"] for one in editor.diagnostics(uri)["diagnostics"]] == ["missing-formula"]
    options = {"tabSize": 2, "insertSpaces": True}
    assert editor.of_document("formatting", uri, options=options)["result"] is None
    editor.tell("textDocument/didClose", textDocument={"uri": uri})
    assert editor.diagnostics(uri)["diagnostics"] == []


_PLACE = {"line": 0, "character": 0}
_WELL = {"textDocument": {"uri": URI}, "position": _PLACE}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"method": "textDocument/hover", "params": {"at": 1}}, -32602),
        ({"method": "textDocument/hover", "params": [1]}, -32602),
        ({"method": "textDocument/hover", "params": None}, -32602),
        ({"method": "textDocument/hover"}, -32602),
        ({"method": "textDocument/hover", "params": {**_WELL, "position": "here"}}, -32602),
        ({"method": "textDocument/hover", "params": {**_WELL, "textDocument": None}}, -32602),
        ({"method": "textDocument/codeAction", "params": {"textDocument": {"uri": 7}}}, -32602),
        ({"method": 7, "params": {}}, -32600),
        ({"method": "textDocument/hover", "params": _WELL, "jsonrpc": "1.0"}, -32600),
        ({"method": "textDocument/hover", "params": _WELL, "jsonrpc": None}, -32600),
        ({"method": "celc/unknown", "params": {}}, -32601),
    ],
)
@pytest.mark.parametrize("number", [901, "a text"])
def test_a_malformed_request_gets_an_answer(
    number: int | str, message: dict[str, Any], code: int, editor: Editor
) -> None:
    sent = {"jsonrpc": "2.0", **message, "id": number}
    answer = editor.answers_to(json.dumps(sent).encode())
    assert (answer["id"], answer["error"]["code"]) == (number, code)
    assert answer["error"]["message"]
    assert "Traceback" not in json.dumps(answer)


@pytest.mark.parametrize(
    "data", [b"{", b"\xff\xfe", b"[" * 100_000, b'{"jsonrpc": "2.0", "id": 1,}']
)
def test_what_is_no_json_gets_an_answer(data: bytes, editor: Editor) -> None:
    answer = editor.answers_to(data)
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    assert "is no JSON" in answer["error"]["message"]


@pytest.mark.parametrize(
    "data",
    [
        b"7",
        b"[]",
        b"null",
        b'"text"',
        b"{}",
        b'{"jsonrpc": "2.0"}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"text": 1}}',
        b'{"jsonrpc": "2.0", "id": 5000, "result": {"x": [1, {"jsonrpc": 3}]}}',
    ],
)
def test_what_is_no_request_ends_nothing(data: bytes, editor: Editor) -> None:
    editor.send_bytes(data)
    shown = editor.of_document("hover", position=_at(3, _column("hot FROM") + 1))["result"]
    assert shown["contents"]["value"].startswith("label `hot`")


def test_a_request_after_the_end_gets_an_answer() -> None:
    editor = Editor()
    try:
        editor.ask("initialize", processId=None, rootUri=None, capabilities={})
        editor.tell("initialized")
        assert editor.ask("shutdown")["result"] is None
        assert editor.of_document("hover", position=_PLACE)["error"]["code"] == -32600
        assert editor.end() == (0, "")
    finally:
        editor.kill()


_SLOW = """CREATE STREAM S { EVENT A { v: INT }, EVENT B { v: INT } }
SELECT MAX * FROM S WHERE NXT((A ; (A OR B){1,200} ; B) OR (B : A{3,200}))
"""
_SLOW_URI, _OTHER_URI = "file:///queries/slow.cel", "file:///queries/other.cel"


@pytest.fixture
def started(request: pytest.FixtureRequest) -> Iterator[Editor]:
    """An editor whose server compiles a text for as many seconds as the test says, at most."""
    editor = Editor("--max-compile-seconds", str(request.param))
    try:
        editor.ask("initialize", processId=None, rootUri=None, capabilities={})
        editor.tell("initialized")
        yield editor
    finally:
        editor.kill()


@pytest.mark.parametrize("started", [100_000], indirect=True)
def test_questions_are_answered_while_a_text_is_compiled(started: Editor) -> None:
    """And a compilation that runs keeps no process alive: this one would run for hours."""
    started.open(_SLOW, _SLOW_URI)
    for _ in range(5):
        shown = started.of_document("hover", _SLOW_URI, position=_at(1, 18))["result"]
        assert shown is not None
    assert not started.told
    assert started.end() == (0, "")
    assert not started.told


@pytest.mark.parametrize("started", [2], indirect=True)
def test_what_is_told_of_a_text_is_of_its_last_version(started: Editor) -> None:
    """Also where a text before it is compiled until its deadline."""
    started.open(_SLOW, _SLOW_URI)
    started.open(TEXT, _OTHER_URI)
    started.change(TEXT, 2, _SLOW_URI)
    assert started.diagnostics(_OTHER_URI)["diagnostics"]
    assert started.diagnostics(_SLOW_URI)["version"] == 2
    started.change(_SLOW, 3, _SLOW_URI)
    found = started.diagnostics(_SLOW_URI)
    assert "too-slow-to-compile" in [one["code"] for one in found["diagnostics"]]


_HOT = """CREATE STREAM S { EVENT A { v: INT } }

QUERY hot:
SELECT x[v] FROM S WHERE A AS x FILTER x.v > 40
"""


def test_a_query_is_run_on_the_events_of_the_settings_and_near_misses_are_hints(
    tmp_path: Path,
) -> None:
    (tmp_path / "celc.toml").write_text('events = ["s.csv"]\n')
    (tmp_path / "s.csv").write_text("type,v\nA,41\nA,39\nA,38\nA,1\n")
    # The text that is open is run, and not the file.
    uri = (tmp_path / "hot.cel").as_uri()
    editor = Editor()
    try:
        able = editor.ask("initialize", processId=None, rootUri=None, capabilities={})
        assert able["result"]["capabilities"]["executeCommandProvider"]["commands"] == ["celc.run"]
        editor.tell("initialized")
        editor.open(_HOT, uri)
        assert editor.diagnostics(uri)["diagnostics"] == []
        (hint,) = editor.diagnostics(uri)["diagnostics"]
        assert (hint["severity"], hint["code"]) == (4, "near-miss")
        told = "2 near misses: x.v > 40; the nearest had 39, where 40 is asked"
        assert hint["message"] == told
        place = {"start": _at(3, _HOT.splitlines()[3].index("x.v >")), "end": _at(3, 47)}
        assert hint["range"] == place
        (lens,) = editor.of_document("codeLens", uri)["result"]
        assert lens["range"]["start"] == _at(2, 0)
        assert lens["command"]["title"] == "run hot on s.csv"
        asked = {name: lens["command"][name] for name in ("command", "arguments")}
        printed = editor.ask("workspace/executeCommand", **asked)["result"]
        assert printed.splitlines()[-1] == "1 match"
        shown = [one["params"] for one in editor.told if one["method"] == "window/showMessage"]
        assert shown == [{"type": 3, "message": "hot: 1 match"}]
        # Without errors alone is looked for near misses, and a run says what is wrong.
        editor.change(_HOT.replace("x.v", "x.w"), 2, uri)
        assert [one["code"] for one in editor.diagnostics(uri)["diagnostics"]] == [
            "unknown-attribute"
        ]
        editor.ask("workspace/executeCommand", **asked)
        shown = [one["params"] for one in editor.told if one["method"] == "window/showMessage"]
        assert shown[-1] == {"type": 1, "message": "hot: 1 error"}
        answer = editor.ask("workspace/executeCommand", command="celc.run", arguments=["x:/y", "q"])
        assert answer["error"]["message"] == "x:/y is not open"
        assert editor.end() == (0, "")
    finally:
        editor.kill()


def test_a_run_has_an_end(tmp_path: Path) -> None:
    from celc.interfaces.cli.serving import limits

    query, events = tmp_path / "q.cel", tmp_path / "s.csv"
    query.write_text(_SLOW)
    events.write_text("type,v\nA,1\n")
    ended = limits.run(["run", str(query), str(events)], seconds=0.5)
    assert ended.told == "stopped after 0.5 seconds: too much for a try"


def test_other_sql_is_left_alone(editor: Editor) -> None:
    uri = "file:///queries/other.sql"
    editor.open("SELECT 1 + FROM", uri, "sql")
    assert editor.diagnostics(uri)["diagnostics"] == []
    answer = editor.of_document("completion", uri, position=_at(0, 3))
    assert answer["result"]["items"] == []


def test_without_pygls_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from celc.interfaces.cli import main

    monkeypatch.delitem(sys.modules, "celc.editor.server", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pygls"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pygls", None)
    assert main(["lsp"]) == 2
    assert "pip install 'celc[editor]'" in capsys.readouterr().err


def test_texts_are_checked_with_the_options_of_the_command() -> None:
    from celc.editor.languages import CEL
    from celc.editor.server import MAX_SECONDS, in_time
    from celc.options import Options

    declared = "CREATE STREAM S { EVENT A { x: INT, ts: TIMESTAMP } }\n"
    source = Source("q.cel", f"{declared}SELECT * FROM S WHERE A ; A WITHIN 3 EVENTS")
    assert [one.code for one in CEL.check(source)] == ["no-order"]
    assert CEL.check(source, Options(("ts",))) == ()
    simultaneous = CEL.check(source, Options(("ts",), ties="simultaneous"))
    assert [one.severity for one in simultaneous] == ["error"]
    assert in_time(Options()).max_compile_seconds == MAX_SECONDS
    at_once = Options(("ts",), max_compile_seconds=1e-9)
    assert [one.code for one in CEL.check(source, in_time(at_once))] == ["too-slow-to-compile"]
