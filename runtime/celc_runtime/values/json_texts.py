"""What a text of JSON holds at a path, as Spark's `get_json_object` says.

Spark reads a text only as far as it must: to the end of the outermost value, and what is wrong
behind it does not count. Names and texts may stand in single quotes, and characters below a blank
may stand in them as they are. What it finds it writes anew: numbers in the shortest way, objects
without blanks. NULL is the answer to a text that is no JSON, to a path that leads nowhere, and to
null behind a name (null in an array is the text 'null').

Source: the loop of `GetJsonObject` in Spark, over the tokens of Jackson.
"""

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa

from celc_runtime.values.json_paths import Path, read_path
from celc_runtime.values.operands import Operand, column_of, each
from celc_runtime.values.written_numbers import text_of


class _NotJson(Exception):
    """The text is no JSON, up to the end of its outermost value."""


_BLANKS = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE][+-]?([0-9]+))?(?![0-9])")
_PLAIN = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"} | {c: c for c in "\"'/\\"}
_CODE = re.compile(r"[0-9a-fA-F]{4}")
_HALF = re.compile("[\ud800-\udfff]")
_WORDS = ("true", "false", "null")
_DEEPEST = 1_000  # levels
_LONGEST_NUMBER = 1_000  # digits


class _Tokens:
    """The tokens of a text, one after another: `{ } [ ]`, `name`, `text`, `number`, and the words
    true, false and null."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open: list[str] = []
        self._is_first = True  # in the innermost brackets
        self._after_name = False
        self.token = ""
        self.value = ""  # of a name, a text or a number

    def next(self) -> str:
        """Go to the next token; it is empty at the end of a text without a value."""
        self.token = self._next()
        return self.token

    def _next(self) -> str:
        sign = self._sign()
        if self._open and not self._after_name:
            if sign == _CLOSING[self._open[-1]]:
                self._at += 1
                self._open.pop()
                self._is_first = False
                return sign
            if not self._is_first:
                if sign != ",":
                    raise _NotJson
                self._at += 1
                sign = self._sign()
            self._is_first = False
            if self._open[-1] == "{":
                return self._name(sign)
        self._after_name = False
        if sign in _CLOSING:
            if len(self._open) == _DEEPEST:
                raise _NotJson
            self._open.append(sign)
            self._at += 1
            self._is_first = True
            return sign
        if sign in _PLAIN:
            self.value = self._quoted(sign)
            return "text"
        return self._bare(sign)

    def _sign(self) -> str:
        """The next character that is no blank."""
        found = _BLANKS.match(self._text, self._at)
        self._at = found.end() if found else self._at
        if self._at < len(self._text):
            return self._text[self._at]
        if self._open:
            raise _NotJson
        return ""

    def _name(self, sign: str) -> str:
        if sign not in _PLAIN:
            raise _NotJson
        self.value = self._quoted(sign)
        if self._sign() != ":":
            raise _NotJson
        self._at += 1
        self._after_name = True
        return "name"

    def _quoted(self, quote: str) -> str:
        text, parts = self._text, []
        self._at += 1
        while True:
            plain = _PLAIN[quote].match(text, self._at)
            assert plain is not None
            parts.append(plain.group())
            self._at = plain.end()
            if self._at == len(text):
                raise _NotJson
            if text[self._at] == quote:
                self._at += 1
                return "".join(parts)
            parts.append(self._escaped())

    def _escaped(self) -> str:
        sign = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if sign in _ESCAPED:
            return _ESCAPED[sign]
        code = _CODE.match(self._text, self._at) if sign == "u" else None
        if code is None:
            raise _NotJson
        self._at = code.end()
        return chr(int(code.group(), 16))

    def _bare(self, sign: str) -> str:
        number = _NUMBER.match(self._text, self._at)
        if number is not None:
            self.value = number.group()
            if sum(len(digits or "") for digits in number.groups()) > _LONGEST_NUMBER:
                raise _NotJson
            self._at = number.end()
            return "number"
        for word in _WORDS:
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return word
        if sign:
            raise _NotJson
        return ""

    def skip(self) -> None:
        """Go to the end of the value that begins at the token."""
        depth = 0
        while True:
            depth += (self.token in _CLOSING) - (self.token in _CLOSING.values())
            if not depth:
                return
            self.next()

    def copied(self) -> str:
        """The value that begins at the token, written anew; go to its end."""
        parts: list[str] = []
        depth, needs_comma = 0, False
        while True:
            token = self.token
            depth += (token in _CLOSING) - (token in _CLOSING.values())
            if needs_comma and token not in _CLOSING.values():
                parts.append(",")
            match token:
                case "text":
                    parts.append(_quoted(self.value))
                case "number":
                    parts.append(_number(self.value))
                case "name":
                    parts.append(f"{_quoted(self.value)}:")
                case _:
                    parts.append(token)
            needs_comma = token not in _CLOSING and token != "name"
            if not depth:
                return "".join(parts)
            self.next()


_CLOSING = {"{": "}", "[": "]"}


def _quoted(text: str) -> str:
    return '"' + _TO_ESCAPE.sub(_escape, text) + '"'


_TO_ESCAPE = re.compile('[\x00-\x1f"\\\\\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}


def _escape(found: re.Match[str]) -> str:
    sign = found.group()
    if sign in _SHORT:
        return f"\\{_SHORT[sign]}"
    # What UTF-16 writes in two halves is escaped half by half.
    halves = sign.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{halves[at : at + 4]}" for at in range(0, len(halves), 4))


def _number(text: str) -> str:
    if text.lstrip("-").isdigit():
        return str(int(text))
    written = text_of(np.float64(text))
    return written if written.lstrip("-") != "Infinity" else f'"{written}"'


def json_at(text: str, path: Path) -> str | None:
    """What a text of JSON holds at a path; None: nothing, or the text is no JSON."""
    tokens = _Tokens(text)
    try:
        tokens.next()
        found = _at(tokens, path)
    except _NotJson:
        return None
    return None if found is None else _joined(found)


def _joined(text: str) -> str | None:
    """A text with one character for two halves of it; None: a half is alone."""
    if not _HALF.search(text):
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return None


def _at(tokens: _Tokens, path: Path) -> str | None:
    """What stands at a path in the value that begins at the current token; None: nothing. Reads to
    the end of the value."""
    if not path:
        return tokens.value if tokens.token == "text" else tokens.copied()
    step, *rest = path
    found: str | None = None
    if tokens.token == "{" and isinstance(step, str):
        while tokens.next() != "}":
            # Of several values of a name the first counts in which the path leads somewhere.
            is_it = tokens.value == step
            tokens.next()
            if found is None and is_it and tokens.token != "null":
                found = _at(tokens, tuple(rest))
            else:
                tokens.skip()
        return found
    if tokens.token == "[" and isinstance(step, int):
        place = 0
        while tokens.next() != "]":
            if place == step:
                found = _at(tokens, tuple(rest))
            else:
                tokens.skip()
            place += 1
        return found
    tokens.skip()
    return None


def _json(operand: Operand, path: Operand, rows: int) -> pa.Array:
    if not path.is_valid:
        return pa.nulls(rows, pa.string())
    steps = _steps(path.as_py())

    def code(text: str) -> str | None:
        return json_at(text, steps)

    return each(code, pa.string(), column_of(operand, rows), rows=rows)


@cache
def _steps(path: str) -> Path:
    steps = read_path(path)
    assert steps is not None, "the compiler checks paths"
    return steps


CODE: dict[str, Callable[..., pa.Array]] = {"GET_JSON_OBJECT": _json}
