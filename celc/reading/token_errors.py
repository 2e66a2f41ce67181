"""What is said of a single broken token: open quotes, foreign operators, strange characters."""

from __future__ import annotations

import unicodedata

from celc.errors import Diagnostic, Diagnostics, error
from celc.source import Span

# What other languages write, and the terminal of the grammar that it stands for.
FOREIGN_OPERATORS = {
    "&&": ("AND", "AND"),
    "||": ("OR", "OR"),
    "=>": (">=", "GREATER_EQUAL"),
    "=<": ("<=", "LESS_EQUAL"),
}

# What keyboards, word processors and papers put in place of the characters of the language.
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

# One broken quote can make nonsense of all that follows: nobody reads further than this.
MAX_ERRORS = 100

_SHORT = 60


def report(diagnostics: Diagnostics, diagnostic: Diagnostic) -> None:
    """Keep a diagnostic if there are not too many already."""
    if len(diagnostics.items) < MAX_ERRORS:
        diagnostics.add(diagnostic)


def shortened(text: str) -> str:
    """A piece of a query for use inside a message: on one line, without the middle if long."""
    if len(text) > 4 * _SHORT:
        text = f"{text[: 2 * _SHORT]} … {text[-2 * _SHORT :]}"
    text = " ".join(text.split())
    if len(text) <= _SHORT:
        return text
    return f"{text[: _SHORT // 2].rstrip()} … {text[-_SHORT // 2 :].lstrip()}"


def unencodable(offset: int) -> Diagnostic:
    """Half a surrogate pair, which no file or column name can hold."""
    return error(
        "bad-character",
        Span(offset, offset + 1),
        "this is half of a character (a lone surrogate)",
        help=["read the file as UTF-8"],
    )


def bad_character(character: str, offset: int, word: str) -> Diagnostic:
    """A character that no token begins with, or that no name may hold; `word` is what holds it."""
    shown = f"'{character}' " if character.isprintable() and not character.isspace() else ""
    name = unicodedata.name(character, "")
    description = f"{shown}(U+{ord(character):04X}{', ' + name if name else ''})"
    message = f"the character {description} means nothing here"
    span = Span(offset, offset + 1)
    if character in _LOOKALIKES:
        hint = f"write {_LOOKALIKES[character]} instead"
    elif not character.isprintable():
        hint = "it cannot be seen: delete it"
    else:
        hint = f"in backquotes any text is a name: `{shortened(word)}`"
    return error("bad-character", span, message, help=[hint])


def double_quotes(text: str, start: int) -> Diagnostic:
    """`"…"`, which is neither a text nor a name here."""
    inner = text[1:-1]
    quoted = shortened(inner.replace("'", "''"))
    return error(
        "double-quotes",
        Span(start, start + len(text)),
        "double quotes mean nothing in CEL",
        help=[
            f"a text stands in single quotes: '{quoted}'",
            f"a name with unusual characters stands in backquotes: `{shortened(inner)}`",
        ],
    )


def foreign_operator(text: str, start: int) -> Diagnostic:
    """An operator of another language."""
    ours, _terminal = FOREIGN_OPERATORS[text]
    return error(
        "foreign-operator",
        Span(start, start + len(text)),
        f"'{text}' is not an operator of CEL",
        help=[f"write {ours}"],
    )


def open_text(start: int) -> Diagnostic:
    """A `'` without its partner."""
    return error(
        "unclosed-text",
        Span(start, start + 1),
        "this quote is never closed",
        help=["close the text with '; a quote inside a text is doubled: 'it''s'"],
    )


def open_name(start: int) -> Diagnostic:
    """A backquote without its partner."""
    return error(
        "unclosed-name",
        Span(start, start + 1),
        "this backquote is never closed",
        help=["close the name with `; a backquote inside a name is doubled"],
    )


def open_comment(start: int) -> Diagnostic:
    """A `/*` without its partner."""
    return error(
        "unclosed-comment",
        Span(start, start + 2),
        "this comment is never closed",
        help=["close it with */"],
    )


def empty_name(start: int) -> Diagnostic:
    """Two backquotes with nothing between them."""
    return error(
        "empty-name",
        Span(start, start + 2),
        "there is no name between these backquotes",
    )


def glued_number(number: str, word: str, start: int) -> Diagnostic:
    """`10MINUTES`, `1e`, `0x1F`: a number that runs into a word."""
    return error(
        "bad-number",
        Span(start, start + len(number) + len(word)),
        f"'{shortened(number + word)}' is neither a number nor a name",
        help=[
            "numbers are written 10, 1.5 or 1e-3, with a space after them where a word follows",
            f"a name that begins with a digit stands in backquotes: `{shortened(number + word)}`",
        ],
    )


def long_number(length: int, limit: int, start: int) -> Diagnostic:
    """A number with more digits than can be read in reasonable time."""
    return error(
        "long-number",
        Span(start, start + length),
        f"this number has {length:,} characters; celc reads up to {limit:,}",
    )


def too_many_tokens(limit: int, start: int) -> Diagnostic:
    """A text that is too long."""
    return error(
        "too-long",
        Span(start, start + 1),
        f"the file is too long: celc reads up to {limit:,} words, numbers and signs of one file",
        help=["split it into several files"],
    )
