"""`celc serve --local`: a page on the loopback address that checks and runs queries over rows which
are pasted into it.

A server on this machine can be reached by pages of other sites that a browser shows. So it answers
only where the request names this server as its host (a name that leads to 127.0.0.1 is refused),
and only where the page that asks is its own. What it is asked has a size and a time.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import BoundedSemaphore
from time import monotonic
from typing import Any

from celc.diagnostics.errors import CelError, Diagnostic
from celc.diagnostics.source import Source, Span
from celc.editor.formatting.statements import formatted_text
from celc.editor.languages import CEL
from celc.interfaces.cli.serving import limits
from celc.interfaces.pages.page import Page, page_of
from celc.options import Options

HOST = "127.0.0.1"
MOST_BYTES = 1 << 20  # of a question: the query and its rows
MOST_QUERY = 1 << 16  # characters
MOST_ROWS = 1000  # of an answer, for each query
CHECK_SECONDS = 5.0
_AT_A_TIME = 2  # runs; others are refused
_SILENT_SECONDS = 10  # after which a connection without a question is closed


class Refused(Exception):
    """A question that gets no answer, with the status that says so."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Playground:
    """What the page asks. `words` are options of `celc run`, and `options` the same for a check."""

    def __init__(self, options: Options, words: Sequence[str], seconds: float) -> None:
        self._options = options
        self._words = words
        self._seconds = seconds
        self._running = BoundedSemaphore(_AT_A_TIME)

    def check(self, text: str, _: str) -> dict[str, Any]:
        """The errors and warnings of a text, with places in characters from its begin."""
        return {"found": [_told(one) for one in CEL.check(_source(text), self._options)]}

    def format(self, text: str, _: str) -> dict[str, Any]:
        """The text in the canonical layout."""
        try:
            return {"text": formatted_text(_source(text), CEL)}
        except CelError as problem:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(problem)) from None

    def run(self, text: str, rows: str) -> dict[str, Any]:
        """The matches of each query of a text in rows: lines of JSON, else CSV."""
        try:
            queries = CEL.queries(_source(text))
        except CelError as problem:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(problem)) from None
        if not self._running.acquire(blocking=False):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"{_AT_A_TIME} runs are not done yet")
        try:
            with TemporaryDirectory() as folder:
                query = Path(folder, "query.cel")
                query.write_text(text, encoding="utf-8")
                form = "json" if rows.lstrip().startswith("{") else "csv"
                events = Path(folder, f"rows.{form}")
                events.write_text(rows, encoding="utf-8")
                end = monotonic() + self._seconds
                return {"queries": [self._answer(query, events, name, end) for name, _ in queries]}
        finally:
            self._running.release()

    def _answer(self, query: Path, events: Path, name: str | None, end: float) -> dict[str, Any]:
        words = ["run", str(query), str(events), *self._words, "--format", "rows"]
        words += ["--max-matches", str(MOST_ROWS)]
        if name is not None:
            words += ["--query", name]
        ended = limits.run(words, max(0.1, end - monotonic()))
        if ended.told is not None:
            told = ended.told.replace(f"{events.parent}/", "")
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, told)
        rows = [json.loads(line) for line in ended.out.splitlines()]
        return {"name": name or query.stem, "rows": rows, "more": len(rows) >= MOST_ROWS}


def _source(text: str) -> Source:
    return Source("query.cel", text)


def _told(found: Diagnostic) -> dict[str, Any]:
    return {
        "severity": found.severity,
        "code": found.code,
        **_place(found.span),
        "message": found.message,
        "help": list(found.help),
        "fixes": [{**_place(fix.span), "text": fix.text} for fix in found.fixes],
    }


def _place(span: Span) -> dict[str, int]:
    return {"start": span.start, "end": span.end}


def playground_page(nonce: str) -> Page:
    """The page, which loads nothing; `nonce` lets its editor write its own styles."""
    return page_of("playground", ("editor", "playground"), "celc", {"nonce": nonce}, nonce=nonce)


class Server(ThreadingHTTPServer):
    """A server for the page on a port of the loopback address (0: any that is free).

    Raises OSError where the port cannot be had.
    """

    daemon_threads = True

    def __init__(self, playground: Playground, port: int) -> None:
        self.page = playground_page(secrets.token_urlsafe(16)).encode()
        self.answers: Mapping[str, Callable[[str, str], dict[str, Any]]] = {
            "/check": playground.check,
            "/format": playground.format,
            "/run": playground.run,
        }
        super().__init__((HOST, port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = _SILENT_SECONDS
    server_version, sys_version = "celc", ""

    def do_GET(self) -> None:
        """Send the page."""
        self._answer(self._page)

    def do_POST(self) -> None:
        """Answer a question of the page."""
        self._answer(self._question)

    def _answer(self, made: Callable[[], tuple[str, bytes]]) -> None:
        status, kind, body = HTTPStatus.OK, "application/json", b""
        try:
            self._check_host()
            kind, body = made()
        except Refused as refused:
            status, body = refused.status, json.dumps({"refused": str(refused)}).encode()
        self.send_response(status)
        for name, value in (
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", "frame-ancestors 'none'"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _page(self) -> tuple[str, bytes]:
        if self.path != "/":
            raise Refused(HTTPStatus.NOT_FOUND, "there is only the page /")
        return "text/html", self.server.page

    def _question(self) -> tuple[str, bytes]:
        # A page of another site can send a question without asking first, but not with this
        # type, and not with this origin.
        if self.headers["Origin"] not in self._names("http://"):
            raise Refused(HTTPStatus.FORBIDDEN, "only the page of this server may ask")
        if self.headers.get_content_type() != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a question is application/json")
        answer = self.server.answers.get(self.path)
        if answer is None:
            raise Refused(HTTPStatus.NOT_FOUND, f"questions: {', '.join(self.server.answers)}")
        return "application/json", json.dumps(answer(*self._asked())).encode()

    def _asked(self) -> tuple[str, str]:
        length = self.headers["Content-Length"] or ""
        if not length.isdecimal():
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "a question says its length")
        if int(length) > MOST_BYTES:
            self.rfile.read(min(int(length), _MOST_THROWN))
            raise Refused(_TOO_LARGE, f"a question has at most {MOST_BYTES >> 20} MiB")
        try:
            asked = json.loads(self.rfile.read(int(length)))
            query, rows = asked["query"], asked.get("rows", "")
            query.encode(), rows.encode()
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            why = 'a question is as in {"query": "…", "rows": "…"}'
            raise Refused(HTTPStatus.BAD_REQUEST, why) from None
        if len(query) > MOST_QUERY:
            raise Refused(_TOO_LARGE, f"a query has at most {MOST_QUERY:,} characters")
        return query, rows

    def _check_host(self) -> None:
        if self.headers["Host"] not in self._names():
            raise Refused(
                HTTPStatus.MISDIRECTED_REQUEST, f"this server is {self._names('http://')[0]}"
            )

    def _names(self, before: str = "") -> list[str]:
        port = self.server.server_port
        return [f"{before}{host}:{port}" for host in (HOST, "localhost")]

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of single questions."""


_MOST_THROWN = 8 * MOST_BYTES  # read of what is too large: whoever still sends reads no answer
_TOO_LARGE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
