"""The texts that an editor has open, with places as it counts them."""

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlparse

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from celc.diagnostics.errors import Fix
from celc.diagnostics.source import Source, Span
from celc.editor.languages import ROW_PATTERNS, language_of
from celc.editor.places import Places


class Document:
    """A text that an editor has open."""

    def __init__(self, server: LanguageServer, uri: str) -> None:
        document = server.workspace.get_text_document(uri)
        name = PurePosixPath(unquote(urlparse(uri).path)).name or "query.cel"
        self._server = server
        self.uri = uri
        self.path = Path(document.path) if urlparse(uri).scheme == "file" else None
        self.version = document.version
        self.source = Source(name, document.source)
        self.language = ROW_PATTERNS if document.language_id == "sql" else language_of(name)
        encoding = server.workspace.position_encoding
        self._places = Places(document.source, str(getattr(encoding, "value", encoding)))

    @property
    def is_open(self) -> bool:
        """Whether the editor has it open with this text."""
        now = open_document(self._server, self.uri)
        return now is not None and now.source == self.source.text

    @property
    def is_ours(self) -> bool:
        """Whether it is in one of the languages. Other SQL is not."""
        return self.language.has(self.source)

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
        return [lsp.TextEdit(self.range(fix.span), fix.text) for fix in fixes]


def open_document(server: LanguageServer, uri: str) -> TextDocument | None:
    """A document that the editor has open. pygls keeps documents by names without escapes; it had
    kept them by the names that the editor gives."""
    documents: Mapping[str, TextDocument] = server.workspace.text_documents
    return documents.get(unquote(uri)) or documents.get(uri)
