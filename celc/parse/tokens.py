"""Text to tokens: one pass of one regular expression, and the meaning of each word at its place.

The grammar says how tokens are spelled. A mistake in a single token (an open quote, a character
without a meaning) is reported here. The token is then `flawed`, and the parser reports nothing more
about the place.

Long: what a word means at its place is decided here, and nowhere else.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from celc.diagnostics.deadline import look
from celc.diagnostics.errors import Diagnostic, Diagnostics
from celc.diagnostics.source import Source, Span
from celc.parse.durations import UNITS
from celc.parse.mistakes import tokens as token_errors
from celc.parse.tables import END, grammar

# More than the 200,000 tokens of an IN list with 100,000 items; many more would take over two
# seconds.
MAX_TOKENS = 250_000
# Python itself refuses to read whole numbers of more than 4,300 digits.
MAX_DIGITS = 1_000
BAD = "BAD"
# Between the last declaration of a file and the formula that is the rest of it.
BEGIN = "BEGIN"
# After a value that is a condition.
HOLDS = "HOLDS"


@dataclass(slots=True)
class Token:
    """A piece of the text. `type` is a terminal of the grammar, `BAD`, or `END`.

    A word is a NAME until the parser reaches it and `terminal_of` decides. `flawed`: its error has
    been reported.
    """

    type: str
    text: str
    start: int
    end: int
    flawed: bool = False

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def is_quoted(self) -> bool:
        """Whether it is a name in backquotes, which is never a keyword."""
        return self.text.startswith("`")


def keyword_of(token: Token) -> str | None:
    """The keyword that a word spells, None for other tokens and words."""
    # upper() makes "S" of "ſ" and "FF" of a ligature, but keywords are ASCII.
    return grammar().keywords.get(token.text.upper()) if token.text.isascii() else None


def word_of(token: Token) -> str:
    """The word of a token in capitals, empty for signs, numbers and texts."""
    return token.text.upper() if token.type in ("NAME", "ATTRIBUTE", "UNIT") else ""


def name_text(token: Token) -> str:
    """The identifier that a name token spells."""
    return token.text[1:-1].replace("``", "`") if token.is_quoted else token.text


# --- the lexer ------------------------------------------------------------------------------------

# Tried before the grammar's own terminals with the same beginning.
_BEFORE = {
    "FOREIGN_COMMENT": r"(?:#|//)[^\n]*",
    "FOREIGN": "|".join(re.escape(text) for text in token_errors.FOREIGN_OPERATORS),
}
# Tried before names, which may have any non-ASCII letter.
_FIRST = {
    "CURLY_QUOTED": f"[{token_errors.CURLY_QUOTES}][^{token_errors.CURLY_QUOTES}'\\n]*"
    f"[{token_errors.CURLY_QUOTES}]"
}
# Tried after them: tokens without an end, and characters that begin no token. An open token takes
# the rest of the text, so no text is searched twice for its end.
_AFTER = {
    "OPEN_TEXT": r"'[\s\S]*",
    "OPEN_NAME": r"`[\s\S]*",
    "DOUBLE_QUOTED": r'"[^"\n]*"',
    "OTHER": r"[\s\S]",
}
_OPEN_COMMENT = {"OPEN_COMMENT": r"/\*[\s\S]*"}
# Signs of other languages, each with a meaning there.
_UNKNOWN_SIGNS = frozenset("^~")
_COMPARING = frozenset(
    {"EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "FOREIGN"}
)
# The words that only a name can follow.
_BEFORE_NAME = frozenset(
    {"AS", "QUERY", "FROM", "WHERE", "EVENT", "STREAM", "BY", "EACH"}
    | {"AGGREGATE", "FUNCTION", "PARAMETERS"}
)
# How far to look for the operands of a `||`.
_NEAR = 20
_FREQUENT = ("SPACE", "NAME", "COMMENT", "DOUBLE", "INTEGER", "TEXT")


@cache
def _scanner() -> re.Pattern[str]:
    patterns = grammar().patterns
    # Longer spellings first: "->" before "-".
    signs = sorted(patterns.keys() - set(_FREQUENT), key=lambda name: (-len(patterns[name]), name))
    ordered = _FIRST | {name: patterns[name] for name in _FREQUENT}
    ordered |= _OPEN_COMMENT | _BEFORE | {name: patterns[name] for name in signs} | _AFTER
    return re.compile("|".join(f"(?P<{name}>{regexp})" for name, regexp in ordered.items()))


def tokenize(source: Source, diagnostics: Diagnostics) -> list[Token]:
    """The tokens of a text, with END after them; reports the mistakes in single tokens.

    Stops where the text is too long or not text at all; then the last token is not END.
    """
    return _Lexer(source, diagnostics).run()


class _Lexer:
    def __init__(self, source: Source, diagnostics: Diagnostics) -> None:
        self.source = source
        self.diagnostics = diagnostics
        self.tokens: list[Token] = []
        self.joins: list[int] = []  # the places of `||` among the tokens

    def run(self) -> list[Token]:
        text = self.source.text
        try:
            text.encode()
        except UnicodeEncodeError as problem:
            self.diagnostics.add(token_errors.unencodable(problem.start))
            return self.tokens
        ignored = grammar().ignored
        plain = grammar().patterns.keys() - ignored - {"NAME", "INTEGER", "DOUBLE"}
        tokens = self.tokens
        # A byte order mark is not part of the text.
        for match in _scanner().finditer(text, 1 if text.startswith("\ufeff") else 0):
            kind = match.lastgroup
            assert kind is not None
            if kind in ignored:
                continue
            if len(tokens) == MAX_TOKENS:
                self.diagnostics.add(token_errors.too_many_tokens(MAX_TOKENS, match.start()))
                return tokens
            if kind == "FOREIGN_COMMENT":
                comment = token_errors.foreign_comment(match.group(), match.start())
                token_errors.report(self.diagnostics, comment)
                continue
            token = Token(kind, match.group(), match.start(), match.end())
            look()
            if kind not in plain:
                getattr(self, f"_{kind.lower()}")(token)
            tokens.append(token)
        end = tokens[-1].end if tokens else 0
        tokens.append(Token(END, "", end, end))
        for place in self.joins:
            if self._joins_conditions(place):
                token = tokens[place]
                foreign = token_errors.foreign_join(token.text, token.start, "OR")
                self._report(token, foreign, becomes="OR")
                token.text = "OR"
        return tokens

    def _report(self, token: Token, diagnostic: Diagnostic, becomes: str = BAD) -> None:
        token.type = becomes
        token.flawed = True
        token_errors.report(self.diagnostics, diagnostic)

    def _name(self, token: Token) -> None:
        previous = self.tokens[-1] if self.tokens else None
        if token.is_quoted:
            if len(token.text) == 2:
                self._report(token, token_errors.empty_name(token.start), becomes="NAME")
        elif previous and previous.end == token.start and previous.type in ("INTEGER", "DOUBLE"):
            if token_errors.is_full(self.diagnostics):
                token.flawed = True
                return
            glued = token_errors.glued_number(previous.text, token.text, previous.start)
            self._report(token, glued, becomes="NAME")
        elif not token.text.isascii() and not token.text.isidentifier():
            at = next(
                i for i, c in enumerate(token.text) if not (f"a{c}" if i else c).isidentifier()
            )
            character = token_errors.bad_character(token.text[at], token.start + at, token.text)
            self._report(token, character)

    def _integer(self, token: Token) -> None:
        if len(token.text) > MAX_DIGITS:
            length = token.end - token.start
            long = token_errors.long_number(length, MAX_DIGITS, token.start)
            self._report(token, long, becomes=token.type)
            token.text = "0"

    _double = _integer

    def _open_text(self, token: Token) -> None:
        self._report(token, token_errors.open_text(token.start))

    def _open_name(self, token: Token) -> None:
        self._report(token, token_errors.open_name(token.start))

    def _open_comment(self, token: Token) -> None:
        self._report(token, token_errors.open_comment(token.start))

    def _double_quoted(self, token: Token) -> None:
        # Mostly a text is meant.
        previous = self.tokens[-1] if self.tokens else None
        is_name = previous is not None and (
            previous.type in ("DOT", "SEMICOLON", "BANG") or keyword_of(previous) in _BEFORE_NAME
        )
        quotes = token_errors.double_quotes(token.text, token.start, is_name=is_name)
        self._report(token, quotes, becomes="NAME" if is_name else "TEXT")
        if is_name:
            token.text = quotes.fixes[0].text

    def _curly_quoted(self, token: Token) -> None:
        self._report(token, token_errors.curly_quotes(token.text, token.start), becomes="TEXT")

    def _foreign(self, token: Token) -> None:
        if token.text in ("||", "\\|\\|"):
            # What stands around it is not known yet.
            token.type = "JOIN"
            self.joins.append(len(self.tokens))
            return
        foreign = token_errors.foreign_operator(token.text, token.start)
        token.text, terminal = token_errors.FOREIGN_OPERATORS[token.text]
        self._report(token, foreign, becomes=terminal)

    def _joins_conditions(self, place: int) -> bool:
        """Whether comparisons stand on both sides of a `||`, which was meant as OR then."""
        if keyword_of(self.tokens[place + 1]) == "NOT":
            return True
        before = reversed(self.tokens[max(0, place - _NEAR) : place])
        after = self.tokens[place + 1 : place + 1 + _NEAR]
        return _is_comparison(before, "RPAR", "LPAR") and _is_comparison(after, "LPAR", "RPAR")

    def _other(self, token: Token) -> None:
        if token.text in _UNKNOWN_SIGNS:
            # The message depends on the tokens around it: the parser stops there.
            token.type = BAD
            return
        previous = self.tokens[-1] if self.tokens else None
        if previous and previous.type == BAD and previous.end == token.start:
            # One message for several in a row.
            token.type, token.flawed = BAD, True
            return
        self._report(token, token_errors.bad_character(token.text, token.start, token.text))


_BETWEEN_CONDITIONS = ("FILTER", "AND", "OR", "WHERE", "HAVING", "SELECT", "WHEN", "THEN", "ELSE")
_OF_COMPARISONS = ("LIKE", "RLIKE", "IN", "IS", "BETWEEN")


def _is_comparison(tokens: Iterable[Token], opens: str, closes: str) -> bool:
    """Whether a comparison stands among tokens, up to the end of the condition or the bracket."""
    backwards, depth = opens == "RPAR", 0
    limits = False  # after an AND, which BETWEEN can have
    for token in tokens:
        keyword = keyword_of(token)
        if token.type == opens:
            depth += 1
        elif token.type == closes:
            depth -= 1
        if depth < 0 or token.type == "COMMA":
            return False
        if depth:
            continue
        if keyword == "AND" and backwards and not limits:
            limits = True
        elif keyword in _BETWEEN_CONDITIONS or (keyword == "NOT" and backwards):
            return False
        elif limits:
            if keyword == "BETWEEN":
                return True
        elif token.type in _COMPARING or keyword in (*_OF_COMPARISONS, "NOT"):
            return True
    return False


# --- keywords -------------------------------------------------------------------------------------

_FORMULA_OPERATORS = frozenset({"AS", "IN", "AND", "OR", "ALL", "UNLESS", "FILTER"})
# After these, a NOT that begins an operand is an attribute of that name.
_VALUES = frozenset({"NULL", "TRUE", "FALSE"})
_AFTER_OPERAND = frozenset(
    {"EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"}
    | {"STAR", "SLASH", "PERCENT", "RPAR", "RSQB", "COMMA"}
)


def terminal_of(tokens: Sequence[Token], index: int, accepts: Callable[[str], bool]) -> str:
    """The terminal of a word, given which terminals the parser accepts at its place.

    A word is a keyword where the grammar has a place for it. Where a name can stand too, reserved
    words are keywords; for others the next token decides.
    """
    token = tokens[index]
    if index and tokens[index - 1].type in _AMOUNTS and is_unit(token) and accepts("UNIT"):
        return "UNIT"
    name = "ATTRIBUTE" if accepts("ATTRIBUTE") else "NAME"
    keyword = keyword_of(token)
    if keyword is None:
        return name
    if (
        keyword in ("CREATE", "QUERY", "AGGREGATE", "FUNCTION", "PARAMETERS")
        and (name == "NAME" or accepts("EVENTS"))
        and begins_statement(tokens, index)
    ):
        # Even where it cannot stand, so that the error is here; also instead of a unit of time.
        return keyword
    if not accepts(name):
        return keyword if accepts(keyword) or keyword in grammar().reserved else "NAME"
    if not accepts(keyword):
        # Where a unit of time (or EVENTS) may stand, a reserved word means that the unit is
        # missing, although any word could be one.
        is_free = name == "ATTRIBUTE" and not accepts("EVENTS")
        return name if is_free or keyword not in grammar().reserved else keyword
    return keyword if _is_keyword(keyword, tokens[index + 1 : index + 3], accepts) else name


_AMOUNTS = ("INTEGER", "DOUBLE")


def is_unit(token: Token) -> bool:
    """Whether a word spells a unit of time."""
    return word_of(token) in UNITS


def _is_keyword(keyword: str, following: Sequence[Token], accepts: Callable[[str], bool]) -> bool:
    """Whether a word is meant as the keyword where both a name and the keyword could stand."""
    after = following[0]
    match keyword:
        case "NOT":
            return accepts("NAME") or after.type not in _AFTER_OPERAND
        case "QUERY" if after.type == "COLON":  # the name is missing
            return keyword_of(following[1]) == "SELECT"
        case "CREATE" | "QUERY":
            is_operator = keyword_of(after) in _FORMULA_OPERATORS
            return after.type in ("NAME", "TEXT") and not is_operator
        case "STRICT" | "NXT" | "NEXT" | "LAST" | "MAX" | "ANY" if accepts("NONE") and not accepts(
            "TOTAL"
        ):  # after TOTAL and COLLAPSED, where they are errors
            return after.type != "LPAR" and not _ends_item(after)
        case "LAST" | "MAX" if accepts("NONE"):  # directly after SELECT
            return after.type != "LPAR"
        case "FIRST" if not accepts("NONE"):  # in a formula
            return _begins_operand(following)
        case "FIRST" | "LONGEST" | "DISJOINT" | "FLAT" | "TOTAL" | "COLLAPSED":  # after SELECT
            is_function = keyword == "FIRST" and after.type == "LPAR"
            begins_clause = keyword_of(after) == "FOR" and keyword_of(following[1]) == "EACH"
            return not (is_function or begins_clause or _ends_item(after))
        case "STRICT" | "NXT" | "NEXT" | "LAST" | "MAX" if not accepts("NONE"):
            return after.type == "LPAR"
        case "PROJECT":
            return after.type == "LSQB"
        case "PREV":
            return after.type == "LPAR"
        case "DISTINCT" if keyword_of(after) == "FROM":
            return True
        case "PRIOR" | "DISTINCT":
            return after.type in ("NAME", "LPAR")
        case "IF" | "CAST" | "TRY_CAST":
            return after.type == "LPAR"
        case "CASE":
            begins = after.type in _BEGINS_ITEM - {"STAR"}
            return begins and keyword_of(after) not in grammar().reserved - _VALUES
        case "SOME" | "EVERY":  # `some IS A` and `some.a` are of a label
            return after.type == "NAME" and keyword_of(after) not in grammar().reserved
        case "AGGREGATE" | "FUNCTION":
            return after.type == "NAME" and following[1].type == "LPAR"
        case "PARAMETERS":
            return after.type == "NAME" and following[1].type == "LBRACE"
        case "TIMESTAMP" | "DATE":
            return after.type == "TEXT"
        case _:
            return True


def may_hold(tokens: Sequence[Token], index: int, *, named: bool) -> bool:
    """Whether the value before a token may be a condition. A number and a text never are, nor a
    name alone; `named`: here it is a value."""
    before, token = tokens[index - 1], tokens[index]
    if before.type in _NO_TRUTHS or (before.type == "NAME" and not named):
        return False
    # `x[last].a` was meant as an index.
    return token.type != "RSQB" or tokens[index + 1].type != "DOT"


def _begins_operand(following: Sequence[Token]) -> bool:
    """Whether an operand of a formula begins at a token, and no clause after a formula."""
    word, after = following[0], following[-1]
    if word.type != "NAME" or word.is_quoted:
        return word.type in ("NAME", "LPAR", "BANG")
    keyword = keyword_of(word)
    if keyword == "WITHIN":
        return after.type == "LSQB"
    if keyword in ("FOR", "PER", "HAVING", "WITH", "QUERY"):
        return after.type in _AFTER_OPERAND_SIGNS
    return keyword == "NOT" or keyword not in grammar().reserved


_AFTER_OPERAND_SIGNS = frozenset(
    {"SEMICOLON", "COLON", "PLUS", "COLON_PLUS", "LBRACE", "COLON_LBRACE", "RPAR", "LSQB", END}
)


def _ends_item(token: Token) -> bool:
    """Whether the word before a token is an item of SELECT, or its beginning."""
    signs = ("COMMA", "LSQB", "DOT", END)
    return token.type in signs or keyword_of(token) in ("AS", "FROM", "WHERE")


def begins_statement(tokens: Sequence[Token], index: int) -> bool:
    """Whether a declaration or query begins at a token, as far as the tokens show."""
    keyword = keyword_of(tokens[index])
    if keyword not in ("CREATE", "QUERY", "SELECT", "AGGREGATE", "FUNCTION", "PARAMETERS"):
        return False
    before = tokens[index - 1] if index else None
    if before and (before.type in _BEFORE_ATTRIBUTE or keyword_of(before) == "BY"):
        return False
    after = tokens[index + 1]
    if keyword == "CREATE":
        return keyword_of(after) == "STREAM"
    if keyword == "PARAMETERS":
        return after.type == "NAME" and tokens[index + 2].type == "LBRACE"
    if keyword in ("AGGREGATE", "FUNCTION"):
        return after.type == "NAME" and tokens[index + 2].type == "LPAR"
    if keyword == "QUERY":
        return after.type == "NAME" and tokens[index + 2].type == "COLON"
    return after.type in _BEGINS_ITEM


def begins_formula(tokens: Sequence[Token], index: int) -> bool:
    """Whether a formula begins at a token where the expression of RESULT can end."""
    token, before = tokens[index], tokens[index - 1]
    if token.type == "LPAR":
        # In `low (A ; B)` too, where `low` is not a function that RESULT can call. Before a query
        # it is a call of an unknown function, because no formula can stand before a query.
        is_call = not before.is_quoted and word_of(before) in _IN_RESULT
        return not is_call and not any(keyword_of(later) == "SELECT" for later in tokens[index:])
    if token.type == "BANG":
        return True
    if token.type != "NAME" or (before.type in _AMOUNTS and is_unit(token)):
        return False
    keyword = keyword_of(token)
    return not begins_statement(tokens, index) and keyword not in _FORMULA_OPERATORS


_IN_RESULT = ("ABS", "LEAST", "GREATEST", "COALESCE", "IF")
_NO_TRUTHS = ("INTEGER", "DOUBLE", "TEXT", "UNIT", "NULL")
_BEFORE_ATTRIBUTE = frozenset({"DOT", "LSQB", "COMMA", "LBRACE"})
_BEGINS_ITEM = frozenset({"STAR", "NAME", "LPAR", "MINUS", "PLUS", "INTEGER", "DOUBLE", "TEXT"})
