"""The language server: what the functions of this folder find, in the protocol of editors.

Documents come whole with each change. Texts are taken apart anew for each question: that takes some
milliseconds, and nothing has to be kept in step. Only the compilation for errors waits until the
typing pauses.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote, urlparse

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from celc.diagnostics.errors import CelError, Diagnostic, Fix
from celc.diagnostics.source import Source, Span
from celc.editor.checks import Dialect, diagnostics_of
from celc.editor.completion import Completion, Kind, complete
from celc.editor.formatting.text import formatted
from celc.editor.hover import hover
from celc.editor.places import Places
from celc.editor.rename import RenameProblem, rename, renameable
from celc.editor.row_completion import complete_rows
from celc.editor.row_hover import hover_rows
from celc.options import Options
from celc.version import VERSION

PAUSE = 0.2
"""The seconds without a change after which a text is checked."""

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


class Document:
    """A text that an editor has open."""

    def __init__(self, server: LanguageServer, uri: str) -> None:
        document = server.workspace.get_text_document(uri)
        name = PurePosixPath(unquote(urlparse(uri).path)).name or "query.cel"
        is_sql = name.endswith(".sql") or document.language_id == "sql"
        self.uri = uri
        self.version = document.version
        self.source = Source(name, document.source)
        self.dialect: Dialect = "match_recognize" if is_sql else "cel"
        encoding = server.workspace.position_encoding
        self._places = Places(document.source, str(getattr(encoding, "value", encoding)))

    @property
    def is_ours(self) -> bool:
        """Whether it is in one of the languages: other SQL is not."""
        return self.dialect == "cel" or "match_recognize" in self.source.text.casefold()

    def offset(self, position: lsp.Position) -> int:
        """The offset of a place."""
        return self._places.offset(position.line, position.character)

    def range(self, span: Span) -> lsp.Range:
        """The range of a span."""
        return lsp.Range(
            lsp.Position(*self._places.position(span.start)),
            lsp.Position(*self._places.position(span.end)),
        )

    def edits(self, fixes: Iterable[Fix]) -> list[lsp.TextEdit]:
        """Changes of the text."""
        return [lsp.TextEdit(self.range(fix.span), fix.text) for fix in fixes]


def serve(options: Options) -> None:
    """Run the server on standard input and output until the editor ends it.

    options: those of `celc check`, for all texts.
    """
    # What an editor is refused, it tells itself; on standard error it would look like a mistake.
    for name in ("pygls.protocol.json_rpc", "pygls.server"):
        logging.getLogger(name).addFilter(_is_no_refusal)
    # The server closes what it writes to, and the process still needs its standard output.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
        language_server(options).start_io(sys.stdin.buffer, out)


def _is_no_refusal(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], JsonRpcException))


def language_server(options: Options) -> LanguageServer:
    """The server, with all that it answers."""
    server = LanguageServer("celc", VERSION, lsp.TextDocumentSyncKind.Full)
    _tell_errors(server, options)
    _answer_questions(server)
    _offer_changes(server, options)
    return server


def _tell_errors(server: LanguageServer, options: Options) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        _publish(server, params.text_document.uri, options)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        await asyncio.sleep(PAUSE)
        document = server.workspace.text_documents.get(uri)
        if document is not None and document.version == version:
            _publish(server, uri, options)

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
        find = complete if document.dialect == "cel" else complete_rows
        found = find(document.source.text, document.offset(params.position))
        return lsp.CompletionList(False, [_item(one, place) for place, one in enumerate(found)])

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
        document = Document(server, params.text_document.uri)
        if not document.is_ours:
            return None
        find = hover if document.dialect == "cel" else hover_rows
        found = find(document.source.text, document.offset(params.position))
        if found is None:
            return None
        text = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text)
        return lsp.Hover(text, document.range(found.span))


def _offer_changes(server: LanguageServer, options: Options) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def asked_for_rename(params: lsp.PrepareRenameParams) -> lsp.Range:
        document = Document(server, params.text_document.uri)
        place = document.offset(params.position)
        try:
            return document.range(renameable(document.source, place, document.dialect).span)
        except RenameProblem as problem:
            raise _refused(problem) from None

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def renamed(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        document = Document(server, params.text_document.uri)
        place = document.offset(params.position)
        try:
            fixes = rename(document.source, place, params.new_name, document.dialect, options)
        except RenameProblem as problem:
            raise _refused(problem) from None
        return lsp.WorkspaceEdit({document.uri: document.edits(fixes)})

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        document = Document(server, params.text_document.uri)
        try:
            text = formatted(document.source, document.dialect)
        except CelError:
            return None  # its errors are shown, and a text with errors has no layout
        if text == document.source.text:
            return []
        return document.edits([Fix(Span(0, len(document.source.text)), text)])

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]),
    )
    def mended(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = Document(server, params.text_document.uri)
        start, end = document.offset(params.range.start), document.offset(params.range.end)
        return [
            _action(document, found, fix)
            for found in _found(document, options)
            if found.span.start <= end and start <= found.span.end
            for fix in found.fixes
        ]


def _publish(server: LanguageServer, uri: str, options: Options) -> None:
    document = Document(server, uri)
    found = [_diagnostic(document, one) for one in _found(document, options)]
    server.text_document_publish_diagnostics(
        lsp.PublishDiagnosticsParams(uri, found, document.version)
    )


def _found(document: Document, options: Options) -> tuple[Diagnostic, ...]:
    if not document.is_ours:
        return ()
    return diagnostics_of(document.source, document.dialect, options)


def _diagnostic(document: Document, found: Diagnostic) -> lsp.Diagnostic:
    is_error = found.severity == "error"
    return lsp.Diagnostic(
        range=document.range(found.span),
        message="\n".join((found.message, *(f"help: {line}" for line in found.help))),
        severity=lsp.DiagnosticSeverity.Error if is_error else lsp.DiagnosticSeverity.Warning,
        code=found.code,
        source="celc",
        related_information=[
            lsp.DiagnosticRelatedInformation(
                lsp.Location(document.uri, document.range(one.span)), one.text
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
        title,
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[_diagnostic(document, found)],
        edit=lsp.WorkspaceEdit({document.uri: document.edits([fix])}),
    )


def _item(found: Completion, place: int) -> lsp.CompletionItem:
    return lsp.CompletionItem(
        label=found.name,
        kind=_KINDS[found.kind],
        detail=found.detail,
        insert_text=found.text,
        sort_text=f"{place:04}",
    )


def _refused(problem: RenameProblem) -> JsonRpcException:
    return JsonRpcException(str(problem), lsp.LSPErrorCodes.RequestFailed.value)
