"""Queries of an editor run on the events that the project's settings name: a lens above each query,
and near misses as hints.

A run is a process of its own with an end (`Trials`), and one at a time: the server answers
meanwhile, and what is asked for twice waits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Span, visible, visible_lines
from celc.editor.beside import Beside, Ended
from celc.editor.languages import ROW_PATTERNS
from celc.editor.opened import Document, open_document

RUN = "celc.run"
"""The command of a lens: the address of a document, and the name of a query, or None."""


class Trials(Protocol):
    """Runs texts on the events that the settings of their project name. Both methods raise CelError
    where these settings are wrong."""

    def events(self, file: Path) -> list[str]:
        """The names of the events; none where the settings have none."""

    def run(self, file: Path, text: str, words: Sequence[str]) -> Ended:
        """`celc run` of the text of a file with these options, and with an end."""


class Runs:
    """What the server asks of `Trials`, each after the one before."""

    def __init__(self, server: LanguageServer, trials: Trials) -> None:
        self._server = server
        self._trials = trials
        self._beside: Beside[Ended | None] = Beside()
        # By the address of a document: the text that was saved, and the near misses of it.
        self._hints: dict[str, tuple[str, list[lsp.Diagnostic]]] = {}

    def lenses(self, document: Document) -> list[lsp.CodeLens]:
        """A lens above each query; none where the text has errors or the settings no events."""
        if document.path is None or not document.is_ours:
            return []
        try:
            events = self._trials.events(document.path)
            queries = document.language.queries(document.source) if events else ()
        except CelError:
            return []  # they are shown
        on = ", ".join(Path(one).name for one in events)
        return [
            lsp.CodeLens(
                document.range(Span(span.start, span.start)),
                lsp.Command(
                    title=visible(f"run {name} on {on}" if name else f"run on {on}"),
                    command=RUN,
                    arguments=[document.uri, name],
                ),
            )
            for name, span in queries
        ]

    async def run(self, document: Document, name: str | None) -> Ended:
        """Run a query; the editor is told how it ended, and its log has what it printed."""
        ended = await self._ended(document, [] if name is None else ["--query", name])
        if ended is None:
            raise JsonRpcException("the settings of the project name no events", _REFUSED)
        kind = lsp.MessageType.Info if ended.told is None else lsp.MessageType.Error
        text = ended.out if ended.told is None else ended.told
        self._server.window_log_message(lsp.LogMessageParams(kind, visible_lines(text)))
        *_, last = text.strip().splitlines() or [""]
        shown = f"{name or document.source.name}: {last}"
        self._server.window_show_message(lsp.ShowMessageParams(kind, visible(shown)))
        return ended

    def hints(self, document: Document) -> list[lsp.Diagnostic]:
        """The near misses of a document that are known; none where its text has changed."""
        text, hints = self._hints.get(document.uri, ("", []))
        return hints if text == document.source.text else []

    async def look(self, document: Document) -> bool:
        """Look for near misses of a text without errors; whether there is something to tell: a hint
        at each part that keeps events from being a match by a little."""
        if document.path is None or not document.is_ours or document.language is ROW_PATTERNS:
            return False
        ended = await self._ended(document, ["--near", "--format", "rows"])
        if ended is None:
            hints = []
        elif ended.told is None:
            hints = _hints(document, ended.out)
        else:
            first = ended.told.strip().splitlines()[0]
            hints = [_hint(document, Span(0, 0), f"near misses were not looked for: {first}")]
        self._hints[document.uri] = document.source.text, hints
        return bool(hints)

    async def _ended(self, document: Document, words: Sequence[str]) -> Ended | None:
        path, text = document.path, document.source.text

        def run() -> Ended | None:
            if path is None or not document.is_open or not self._trials.events(path):
                return None
            return self._trials.run(path, text, words)

        try:
            return await self._beside.done(run)
        except CelError as problem:
            return Ended("", str(problem))


_REFUSED = lsp.LSPErrorCodes.RequestFailed.value


def offer_runs(server: LanguageServer, runs: Runs) -> None:
    """Let the server answer what is asked about runs."""

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    def seen(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        return runs.lenses(Document(server, params.text_document.uri))

    @server.command(RUN)
    async def asked(uri: str, name: str | None) -> str:
        if open_document(server, uri) is None:
            raise JsonRpcException(f"{uri} is not open", _REFUSED)
        return (await runs.run(Document(server, uri), name)).out


def _hints(document: Document, lines: str) -> list[lsp.Diagnostic]:
    """The near misses of a text, as `celc run --near --format rows` prints them, by part."""
    by_part: dict[tuple[int, int, str], list[Mapping[str, Any]]] = {}
    for line in lines.splitlines():
        row = json.loads(line)
        by_part.setdefault((row["line"], row["column"], row["part"]), []).append(row)
    return [_of_part(document, *place, rows) for place, rows in by_part.items()]


def _of_part(
    document: Document, line: int, column: int, part: str, rows: Sequence[Mapping[str, Any]]
) -> lsp.Diagnostic:
    least = min(rows, key=lambda row: (row["amount"] is None, row["amount"] or 0))
    count = f"{len(rows)} near miss{'' if len(rows) == 1 else 'es'}"
    told = f"{count}: {part}; the nearest had {least['found']}, where {least['asked']} is asked"
    start = document.source.text.split("\n", line - 1)
    at = len(document.source.text) - len(start[-1]) + column - 1
    end = at + len(part)
    if document.source.text[at:end] != part:
        end = at + len(document.source.text[at:].partition("\n")[0])
    return _hint(document, Span(at, end), told)


def _hint(document: Document, span: Span, text: str) -> lsp.Diagnostic:
    return lsp.Diagnostic(
        range=document.range(span),
        message=visible(text),
        severity=lsp.DiagnosticSeverity.Hint,
        code="near-miss",
        source="celc",
    )
