"""`celc serve --local`: whom it answers and what it refuses."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Thread
from typing import Any

import pytest

from celc.interfaces.cli.command import main
from celc.interfaces.cli.serving.server import HOST, MOST_BYTES, MOST_QUERY, Playground, Server
from celc.options import Options

QUERY = """CREATE STREAM S { EVENT A { v: INT } }
SELECT x[v] FROM S WHERE A AS x FILTER x.v > 40
"""
ROWS = "type,v\nA,41\nA,39\n"


@contextmanager
def served(seconds: float = 60, compile_seconds: float = 5) -> Iterator[int]:
    """A server in a thread; its port."""
    made = Server(Playground(Options(max_compile_seconds=compile_seconds), (), seconds), 0)
    thread = Thread(target=made.serve_forever, daemon=True)
    thread.start()
    try:
        yield made.server_port
    finally:
        made.shutdown()
        made.server_close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served() as port:
        yield port


def ask(port: int, path: str, question: Any, **headers: str) -> tuple[int, Any]:
    """What the page asks; `headers` in the place of its own. The status, and the answer."""
    body = question if isinstance(question, bytes) else json.dumps(question).encode()
    own = {"Origin": f"http://{HOST}:{port}", "Content-Type": "application/json"}
    connection = HTTPConnection(HOST, port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", path, body, own | named)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_a_query_is_checked_laid_out_and_run(port: int) -> None:
    assert ask(port, "/check", {"query": QUERY}) == (200, {"found": []})
    status, told = ask(port, "/check", {"query": QUERY.replace("x.v", "x.w")})
    (found,) = told["found"]
    place = QUERY.index("x.v") + 2
    assert (status, found["code"], found["start"]) == (200, "unknown-attribute", place)
    assert ask(port, "/format", {"query": "select * from S where A;B"})[1] == {
        "text": "SELECT *\nFROM S\nWHERE A ; B\n"
    }
    (answer,) = ask(port, "/run", {"query": QUERY, "rows": ROWS})[1]["queries"]
    (row,) = answer["rows"]
    assert (answer["name"], row["x"], answer["more"]) == ("query", [{"pos": 0, "v": 41}], False)
    status, told = ask(port, "/run", {"query": "SELECT", "rows": ROWS})
    assert status == 422
    assert told["refused"].startswith("query.cel:1:7: error")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"http://{HOST}:1"}, 403),
        ({"Host": "example.org"}, 421),  # a name of another that leads to 127.0.0.1
        ({"Host": "localhost"}, 421),
        ({"Content_Type": "text/plain"}, 415),
    ],
)
def test_other_origins_and_hosts_are_refused(
    headers: dict[str, str], status: int, port: int
) -> None:
    answer = ask(port, "/check", {"query": QUERY}, **headers)
    assert answer[0] == status
    assert "found" not in answer[1]


def test_a_page_of_another_host_is_not_shown(port: int) -> None:
    connection = HTTPConnection(HOST, port, timeout=60)
    connection.request("GET", "/", headers={"Host": f"example.org:{port}"})
    answer = connection.getresponse()
    assert answer.status == 421
    assert b"<html" not in answer.read()


@pytest.mark.parametrize(
    ("question", "status"),
    [
        ({"query": "-" * (MOST_QUERY + 1)}, 413),
        (b"{" + b" " * MOST_BYTES, 413),
        (b"{", 400),
        (b"[1]", 400),
        (b"[" * 100_000, 400),
        ({"query": 1}, 400),
        ({"query": "\ud800"}, 400),
        ({"rows": ""}, 400),
    ],
    ids=range(8),
)
def test_what_is_too_large_or_no_question_is_refused(question: Any, status: int, port: int) -> None:
    assert ask(port, "/run", question)[0] == status


def test_no_other_address_is_listened_to(port: int) -> None:
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", port), timeout=10).close()
    assert ask(port, "/etc", {"query": ""})[0] == 404


_SLOW = """CREATE STREAM S { EVENT A { v: INT }, EVENT B { v: INT } }
SELECT MAX * FROM S WHERE NXT((A ; (A OR B){1,200} ; B) OR (B : A{3,200}))
"""


def test_what_takes_too_long_is_ended() -> None:
    with served(0.5, 0.3) as port:
        status, told = ask(port, "/run", {"query": _SLOW, "rows": ROWS})
        assert (status, told) == (422, {"refused": "stopped after 0.5 seconds: too much for a try"})
        codes = [one["code"] for one in ask(port, "/check", {"query": _SLOW})[1]["found"]]
        assert "too-slow-to-compile" in codes


def test_a_server_says_that_it_is_local(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve"])
    assert "--local" in capsys.readouterr().err
    with served() as port:
        assert main(["serve", "--local", "--port", str(port)]) == 2
    assert f"--port {port}: " in capsys.readouterr().err
