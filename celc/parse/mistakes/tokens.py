"""Mistakes in single tokens: open quotes, foreign operators, strange characters."""

import re
import unicodedata

from celc.diagnostics.errors import Diagnostic, Diagnostics, Fix, error
from celc.diagnostics.source import Span
from celc.parse.durations import spelled

# Operators of other languages, and the terminals of the grammar that they stand for.
FOREIGN_OPERATORS = {
    "&&": ("AND", "AND"),
    "||": ("OR", "OR"),
    "\\|\\|": ("OR", "OR"),
    "=>": (">=", "GREATER_EQUAL"),
    "=<": ("<=", "LESS_EQUAL"),
}

# Characters that keyboards, word processors and papers use instead of those of the language.
_LOOKALIKES = {
    "\N{LEFT SINGLE QUOTATION MARK}": "'",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": "'",
    "\N{RIGHT DOUBLE QUOTATION MARK}": "'",
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "\N{MINUS SIGN}": "-",
    "\N{RIGHTWARDS ARROW}": "->",
    "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{NOT EQUAL TO}": "!=",
    "\N{LOGICAL AND}": "AND",
    "\N{LOGICAL OR}": "OR",
    "\N{NOT SIGN}": "NOT",
    "\N{FULLWIDTH SEMICOLON}": ";",
    "\N{FULLWIDTH COLON}": ":",
    "\N{FULLWIDTH COMMA}": ",",
    "\N{FULLWIDTH LEFT PARENTHESIS}": "(",
    "\N{FULLWIDTH RIGHT PARENTHESIS}": ")",
    "&": "AND",
    "|": "OR",
}

CURLY_QUOTES = "\u2018\u2019\u201c\u201d"
"""What word processors make of quotes."""

# One broken quote can make nonsense of all that follows. Nobody reads more errors than this.
MAX_ERRORS = 100

_SHORT = 60
_LONGEST_OFFER = 300

_KEPT_OR_GAP = re.compile(
    r"(?P<kept>'(?:[^']|'')*'|`(?:[^`]|``)*`|/\*(?s:.*?)\*/)|(?:\s|--[^\n]*\n)+"
)


def is_full(diagnostics: Diagnostics) -> bool:
    """Whether there are too many errors for anybody to read another one."""
    return len(diagnostics.items) >= MAX_ERRORS


def report(diagnostics: Diagnostics, diagnostic: Diagnostic) -> None:
    if not is_full(diagnostics):
        diagnostics.add(diagnostic)


def shortened(text: str) -> str:
    """A piece of a query inside a message: on one line, without its middle if long."""
    if len(text) > 4 * _SHORT:
        text = f"{text[: 2 * _SHORT]} … {text[-2 * _SHORT :]}"
    text = _on_one_line(text)
    if len(text) <= _SHORT:
        return text
    return f"{text[: _SHORT // 2].rstrip()} … {text[-_SHORT // 2 :].lstrip()}"


def offered(text: str) -> str:
    """A piece of a query that a message offers: on one line, and complete unless very long."""
    text = _on_one_line(text)
    return text if len(text) <= _LONGEST_OFFER else shortened(text)


def _on_one_line(text: str) -> str:
    """A piece of a query on one line. Its texts and names stay as they are. A comment that ends
    with its line is removed, because it would hide what follows."""
    return _KEPT_OR_GAP.sub(lambda found: found["kept"] or " ", text).strip()


def unencodable(offset: int) -> Diagnostic:
    """Half a surrogate pair, which no file or column name can hold."""
    message = "this is half of a character (a lone surrogate)"
    return error("bad-character", Span(offset, offset + 1), message, "read the file as UTF-8")


def bad_character(character: str, offset: int, word: str) -> Diagnostic:
    """A character that no token begins with, or that no name may hold; `word` is what holds it."""
    shown = f"'{character}' " if character.isprintable() and not character.isspace() else ""
    name = unicodedata.name(character, "")
    description = f"{shown}(U+{ord(character):04X}{', ' + name if name else ''})"
    message = f"the character {description} means nothing here"
    span = Span(offset, offset + 1)
    fixes: list[Fix] = []
    if character in _LOOKALIKES:
        hint = f"write {_LOOKALIKES[character]} instead"
        fixes = [Fix(span, _LOOKALIKES[character])]
    elif not character.isprintable():
        hint = "it cannot be seen: delete it"
        fixes = [Fix(span, "")]
    elif word == character and character.isascii():
        # No word contains it, so a name is not meant.
        hint = "delete it; in a text, '…', and in a name in backquotes any character can stand"
        fixes = [Fix(span, "")]
    else:
        hint = f"in backquotes any text is a name: `{shortened(word)}`"
    return error("bad-character", span, message, hint, fixes=fixes)


def curly_quotes(text: str, start: int) -> Diagnostic:
    """A text in the quotes of word processors."""
    name = unicodedata.name(text[0])
    mended = f"'{text[1:-1]}'"
    message = f"the character {text[0]} (U+{ord(text[0]):04X}, {name}) means nothing here"
    hint = f"a text stands in plain quotes: {shortened(mended)}"
    fixes = [Fix(Span(start, start + len(text)), mended)]
    return error("bad-character", Span(start, start + 1), message, hint, fixes=fixes)


def double_quotes(text: str, start: int, *, is_name: bool) -> Diagnostic:
    """`"…"`, which is neither a text nor a name here; `is_name`: where only a name can stand."""
    inner = text[1:-1]
    quoted, name = inner.replace("'", "''"), inner.replace("`", "``") or "name"
    hints = [
        f"a text stands in single quotes: '{shortened(quoted)}'",
        f"a name with unusual characters stands in backquotes: `{shortened(name)}`",
    ]
    return error(
        "double-quotes",
        Span(start, start + len(text)),
        "double quotes mean nothing in CEL",
        *hints[is_name:],
        fixes=[Fix(Span(start, start + len(text)), f"`{name}`" if is_name else f"'{quoted}'")],
    )


def foreign_operator(text: str, start: int) -> Diagnostic:
    """An operator of another language."""
    ours, _terminal = FOREIGN_OPERATORS[text]
    span = Span(start, start + len(text))
    message = f"'{text}' is not an operator of CEL"
    return error("foreign-operator", span, message, f"write {ours}", fixes=[Fix(span, ours)])


def foreign_join(text: str, start: int, meant: str) -> Diagnostic:
    """`||` between conditions or formulas, and `\\|\\|`; `meant`: OR, or JOIN of texts."""
    span, ours = Span(start, start + len(text)), "||" if meant == "JOIN" else meant
    message = f"'{text}' is not an operator of CEL"
    if text == "||":
        message = "'||' joins texts, and these are conditions or formulas"
    return error("foreign-operator", span, message, f"write {ours}", fixes=[Fix(span, ours)])


def foreign_comment(text: str, start: int) -> Diagnostic:
    """`# …` and `// …`."""
    sign = "#" if text.startswith("#") else "//"
    rest = text[len(sign) :].strip()
    mended = f"-- {rest}" if rest else "--"
    span = Span(start, start + len(text))
    message = f"{sign} does not begin a comment here"
    hint = f"a comment begins with --: {shortened(mended)}"
    return error("foreign-comment", span, message, hint, fixes=[Fix(span, mended)])


def open_text(start: int) -> Diagnostic:
    """A `'` without its partner."""
    message = "this quote is never closed"
    hint = "close the text with '; a quote inside a text is doubled: 'it''s'"
    return error("unclosed-text", Span(start, start + 1), message, hint)


def open_name(start: int) -> Diagnostic:
    """A backquote without its partner."""
    message = "this backquote is never closed"
    hint = "close the name with `; a backquote inside a name is doubled"
    return error("unclosed-name", Span(start, start + 1), message, hint)


def open_comment(start: int) -> Diagnostic:
    """A `/*` without its partner."""
    message = "this comment is never closed"
    return error("unclosed-comment", Span(start, start + 2), message, "close it with */")


def empty_name(start: int) -> Diagnostic:
    """Two backquotes with nothing between them."""
    message = "there is no name between these backquotes"
    hint = "write a name between them, such as `a b`, or a name without backquotes"
    return error("empty-name", Span(start, start + 2), message, hint)


def glued_number(number: str, word: str, start: int) -> Diagnostic:
    """`10MINUTES`, `1e`, `0x1F`, `1_000`: a number that runs into a word."""
    whole = number + word
    span = Span(start, start + len(whole))
    message = f"'{shortened(whole)}' is neither a number nor a name"
    digits = whole.replace("_", "")
    mended = digits if digits.isdecimal() and digits.isascii() else spelled(whole)
    if mended is not None:
        fixes = [Fix(span, mended)]
        return error("bad-number", span, message, f"write {mended}", fixes=fixes)
    return error(
        "bad-number",
        span,
        message,
        "numbers are written 10, 1.5 or 1e-3, with a space after them where a word follows",
        f"a name that begins with a digit stands in backquotes: `{shortened(whole)}`",
    )


def long_number(length: int, limit: int, start: int) -> Diagnostic:
    """A number with more digits than can be read in reasonable time."""
    message = f"this number has {length:,} characters; celc reads up to {limit:,}"
    hint = "write it with fewer digits, such as 1e30"
    return error("long-number", Span(start, start + length), message, hint)


def too_many_tokens(limit: int, start: int) -> Diagnostic:
    """A text that is too long."""
    return error(
        "too-long",
        Span(start, start + 1),
        f"the file is too long: celc reads up to {limit:,} words, numbers and signs of one file",
        "split it into several files",
    )
