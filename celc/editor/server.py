"""The language server: the functions of this folder, in the protocol of editors.

Documents come whole with each change. Texts are read again for each question. That takes some
milliseconds, and there is no state to keep up to date. Only the compilation for errors waits until
the typing pauses, and runs in its own thread.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from celc.diagnostics.errors import CelError, Diagnostic, Fix
from celc.diagnostics.source import Span, visible, visible_lines
from celc.editor.beside import Beside
from celc.editor.completion import Completion, Kind
from celc.editor.formatting.statements import formatted_text
from celc.editor.opened import Document, open_document
from celc.editor.protocol import NO_JSON, Protocol, Server
from celc.editor.rename import RenameProblem, rename, renameable
from celc.editor.trying import Runs, Trials, offer_runs
from celc.options import Options
from celc.version import VERSION

PAUSE = 0.2  # seconds without a change after which a text is checked

MAX_SECONDS = 5.0  # of a compilation while a text is typed; an error says where it was too short

_KINDS: dict[Kind, lsp.CompletionItemKind] = {
    "attribute": lsp.CompletionItemKind.Field,
    "label": lsp.CompletionItemKind.Variable,
    "type": lsp.CompletionItemKind.Class,
    "stream": lsp.CompletionItemKind.Module,
    "query": lsp.CompletionItemKind.Module,
    "parameters": lsp.CompletionItemKind.Struct,
    "function": lsp.CompletionItemKind.Function,
    "data type": lsp.CompletionItemKind.TypeParameter,
    "unit": lsp.CompletionItemKind.Unit,
    "variable": lsp.CompletionItemKind.Variable,
    "column": lsp.CompletionItemKind.Field,
    "keyword": lsp.CompletionItemKind.Keyword,
}


Choices: TypeAlias = Callable[[Path | None], tuple[Options, Any]]
"""The options that a file is compiled with, and the columns of tables that it does not declare;
None: a text that is no file. It raises CelError where the settings of the file's project are
wrong."""


def serve(choices: Choices, trials: Trials) -> None:
    """Run the server on standard input and output until the editor ends it. `choices` are those of
    `celc check`, for each file; `trials` run queries."""
    # The editor itself tells its user of a refusal. On standard error it would look like a mistake.
    for name in ("pygls.protocol.json_rpc", "pygls.server", "pygls.io_"):
        logging.getLogger(name).addFilter(_is_no_refusal)
    # The server closes what it writes to, and the process still needs its standard output.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
        language_server(choices, trials).start_io(sys.stdin.buffer, out)


def _is_no_refusal(record: logging.LogRecord) -> bool:
    said = str(record.msg)
    problem = record.exc_info[1] if record.exc_info else None
    is_no_json = said == "Unable to handle message" and isinstance(problem, NO_JSON)
    return not (said.startswith(_REFUSALS) or is_no_json or isinstance(problem, JsonRpcException))


_REFUSALS = (
    "Unable to deserialize message",
    "Failed to handle request %r, unknown method",
)


def language_server(choices: Choices, trials: Trials) -> LanguageServer:
    """The server, with all that it answers."""
    sync = lsp.TextDocumentSyncKind.Full
    server = Server("celc", VERSION, sync, protocol_cls=Protocol)
    runs = Runs(server, trials)
    checks = _Checks(server, choices, runs)
    _tell_errors(server, checks, runs)
    _answer_questions(server)
    _offer_changes(server, choices, checks)
    offer_runs(server, runs)
    return server


class _Checks:
    """The errors and warnings of documents, which are compiled beside the server."""

    def __init__(self, server: LanguageServer, choices: Choices, runs: Runs) -> None:
        self._server = server
        self._choices = choices
        self._runs = runs
        self._beside: Beside[tuple[Diagnostic, ...]] = Beside()
        # By the address of a document: a text, and what was found in it when it was told last.
        self._told: dict[str, tuple[str, tuple[Diagnostic, ...]]] = {}

    async def known(self, document: Document) -> tuple[Diagnostic, ...]:
        """What was told of a document, if that was of its present text; else what is found now.
        Editors ask for changes wherever the cursor goes."""
        text, found = self._told.get(document.uri, (None, ()))
        return found if text == document.source.text else await self.found(document)

    async def found(self, document: Document) -> tuple[Diagnostic, ...]:
        """The errors and warnings of a document; none where it has changed meanwhile."""

        def check() -> tuple[Diagnostic, ...]:
            if not document.is_ours or not document.is_open:
                return ()
            try:
                options, schema = self._choices(document.path)
            except CelError as problem:
                return _of_settings(problem)
            return document.language.check(document.source, in_time(options), schema)

        return await self._beside.done(check)

    async def publish(self, uri: str) -> bool:
        """Tell the editor the errors, warnings and hints of a document; whether there are no
        errors."""
        document = Document(self._server, uri)
        known = await self.found(document)
        found = [_diagnostic(document, one) for one in known]
        is_right = all(one.severity != lsp.DiagnosticSeverity.Error for one in found)
        if document.is_open:
            self._told[uri] = document.source.text, known
            found += self._runs.hints(document)
            self._server.text_document_publish_diagnostics(
                lsp.PublishDiagnosticsParams(uri, found, document.version)
            )
        return is_right


def _of_settings(problem: CelError) -> tuple[Diagnostic, ...]:
    """The errors of a project's settings at the begin of a document: their own file need not be
    open."""
    return tuple(
        replace(one, span=Span(0, 0), message=f"{_place(problem, one)}: {one.message}", fixes=())
        for one in problem.diagnostics
    )


def _place(problem: CelError, one: Diagnostic) -> str:
    line, column = problem.source.line_and_column(one.span.start)
    return f"{problem.source.name}:{line}:{column}"


def in_time(options: Options) -> Options:
    """Options of `celc check`, with the time of an editor where they give none."""
    if options.max_compile_seconds is not None:
        return options
    return replace(options, max_compile_seconds=MAX_SECONDS)


def _tell_errors(server: LanguageServer, checks: _Checks, runs: Runs) -> None:
    async def tell(uri: str) -> None:
        if await checks.publish(uri) and await runs.look(Document(server, uri)):
            await checks.publish(uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        await tell(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        await tell(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        await asyncio.sleep(PAUSE)
        document = open_document(server, uri)
        if document is not None and document.version == version:
            await checks.publish(uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))


def _answer_questions(server: LanguageServer) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", "[", "("])
    )
    def completed(params: lsp.CompletionParams) -> lsp.CompletionList:
        document = Document(server, params.text_document.uri)
        if not document.is_ours:
            return lsp.CompletionList(False, [])
        place = document.offset(params.position)
        found = document.language.complete(document.source.text, place)
        return lsp.CompletionList(False, [_item(one, rank) for rank, one in enumerate(found)])

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
        document = Document(server, params.text_document.uri)
        if not document.is_ours:
            return None
        found = document.language.hover(document.source.text, document.offset(params.position))
        if found is None:
            return None
        text = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text)
        return lsp.Hover(text, document.range(found.span))


def _offer_changes(server: LanguageServer, choices: Choices, checks: _Checks) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def asked_for_rename(params: lsp.PrepareRenameParams) -> lsp.Range:
        document = Document(server, params.text_document.uri)
        place = document.offset(params.position)
        try:
            return document.range(renameable(document.source, place, document.language).span)
        except RenameProblem as problem:
            raise _refused(problem) from None

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def renamed(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        document = Document(server, params.text_document.uri)
        place = document.offset(params.position)
        try:
            options, _ = choices(document.path)
            fixes = rename(document.source, place, params.new_name, document.language, options)
        except RenameProblem as problem:
            raise _refused(problem) from None
        except CelError as problem:
            raise _refused(RenameProblem(_of_settings(problem)[0].message)) from None
        return lsp.WorkspaceEdit({document.uri: document.edits(fixes)})

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        document = Document(server, params.text_document.uri)
        try:
            text = formatted_text(document.source, document.language)
        except CelError:
            return None  # its errors are shown, and a text with errors has no layout
        if text == document.source.text:
            return []
        return document.edits([Fix(Span(0, len(document.source.text)), text)])

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]),
    )
    async def mended(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = Document(server, params.text_document.uri)
        start, end = document.offset(params.range.start), document.offset(params.range.end)
        return [
            _action(document, found, fix)
            for found in await checks.known(document)
            if found.span.start <= end and start <= found.span.end
            for fix in found.fixes
        ]


def _diagnostic(document: Document, found: Diagnostic) -> lsp.Diagnostic:
    is_error = found.severity == "error"
    return lsp.Diagnostic(
        range=document.range(found.span),
        message=visible_lines(
            "\n".join((found.message, *(f"help: {line}" for line in found.help)))
        ),
        severity=lsp.DiagnosticSeverity.Error if is_error else lsp.DiagnosticSeverity.Warning,
        code=found.code,
        source="celc",
        related_information=[
            lsp.DiagnosticRelatedInformation(
                lsp.Location(document.uri, document.range(one.span)), visible(one.text)
            )
            for one in found.related
        ],
    )


def _action(document: Document, found: Diagnostic, fix: Fix) -> lsp.CodeAction:
    old = document.source.slice(fix.span)
    if not fix.text:
        title = f"leave out {old}"
    else:
        title = f"write {fix.text.strip()}" + (f" in place of {old}" if old.strip() else "")
    return lsp.CodeAction(
        visible(title),
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[_diagnostic(document, found)],
        is_preferred=fix is found.fixes[0],
        edit=lsp.WorkspaceEdit({document.uri: document.edits([fix])}),
    )


def _item(found: Completion, rank: int) -> lsp.CompletionItem:
    return lsp.CompletionItem(
        label=found.name,
        kind=_KINDS[found.kind],
        detail=found.detail,
        insert_text=found.text,
        sort_text=f"{rank:04}",
    )


def _refused(problem: RenameProblem) -> JsonRpcException:
    return JsonRpcException(str(problem), lsp.LSPErrorCodes.RequestFailed.value)
