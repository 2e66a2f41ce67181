"""How the language server treats malformed messages: each request gets an answer.

pygls drops what it cannot read, and writes a traceback to standard error. Then an editor that waits
for the answer waits for ever.
"""

from typing import Any

from celc_runtime.plan.frozen import frozen
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

_VERSION = "2.0"

NO_JSON = (ValueError, RecursionError)  # what Python's reader of JSON raises


@frozen
class _Malformed:
    """A message that cannot be read, and why. `number` is that of a request; None: it needs no
    answer."""

    number: int | str | None
    method: str
    code: lsp.ErrorCodes
    why: str


class Protocol(LanguageServerProtocol):
    """The protocol of pygls with an answer to every request."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message as an object. A message that cannot be read becomes `_Malformed`."""
        if "jsonrpc" in data and not isinstance(data.get("method", ""), str):
            why = "is no method of the protocol"
            return _malformed(data, lsp.ErrorCodes.InvalidRequest, why)
        try:
            return super().structure_message(data)
        except JsonRpcException as problem:
            cause = problem.__cause__ or problem
            why = "; ".join(line.strip() for line in str(cause).splitlines()) or "it is malformed"
            return _malformed(data, lsp.ErrorCodes.InvalidParams, f"cannot be read: {why}")

    def handle_message(self, message: Any) -> None:
        """Pass a message on, or answer what is wrong with it."""
        if isinstance(message, _Malformed):
            self._refuse(message)
        elif getattr(message, "jsonrpc", None) != _VERSION:
            why = f"is no message of JSON-RPC {_VERSION}"
            self._refuse(_malformed(_parts(message), lsp.ErrorCodes.InvalidRequest, why))
        elif self._shutdown and {"id", "method"} <= _parts(message).keys():
            why = "comes after the editor has ended the server"
            self._refuse(_malformed(_parts(message), lsp.ErrorCodes.InvalidRequest, why))
        else:
            super().handle_message(message)

    def _refuse(self, message: _Malformed) -> None:
        told = f"celc: {message.method or 'a message'} {message.why}"
        if message.number is not None:
            self._send_response(message.number, error=lsp.ResponseError(message.code, told))
        else:
            log = lsp.LogMessageParams(lsp.MessageType.Warning, told)
            self.notify(lsp.WINDOW_LOG_MESSAGE, log)

    def refuse_text(self, problem: Exception) -> None:
        """Answer a text that is not JSON. Its number is unknown."""
        told = f"celc: a message is no JSON: {problem}"
        error = lsp.ResponseError(lsp.ErrorCodes.ParseError, told)
        self._send_data({"jsonrpc": _VERSION, "id": None, "error": error})


class Server(LanguageServer):
    """The server with that protocol."""

    protocol: Protocol

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Tell the editor of an error that belongs to no answer."""
        if isinstance(error, NO_JSON) and source is JsonRpcException:
            self.protocol.refuse_text(error)
        else:
            super().report_server_error(error, source)


def _parts(message: Any) -> dict[str, Any]:
    """The number and the method of a message, as far as it has them."""
    if isinstance(message, dict):
        return message
    return {name: getattr(message, name) for name in ("id", "method") if hasattr(message, name)}


def _malformed(data: dict[str, Any], code: lsp.ErrorCodes, why: str) -> _Malformed:
    number, method = data.get("id"), data.get("method")
    is_request = isinstance(number, int | str) and method is not None
    return _Malformed(number if is_request else None, str(method or ""), code, why)
