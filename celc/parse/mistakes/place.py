"""The place of a syntax error: the unexpected token, the tokens that would fit, and those around
it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from celc.diagnostics.source import Source, Span
from celc.parse.mistakes.tokens import shortened
from celc.parse.tables import END, grammar
from celc.parse.tokens import Token, begins_statement, keyword_of

CLOSERS = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE", "COLON_LBRACE": "RBRACE"}
SIGNS = {
    "RPAR": ")",
    "RSQB": "]",
    "RBRACE": "}",
    "LPAR": "(",
    "LSQB": "[",
    "LBRACE": "{",
    "COMMA": ",",
    "COLON": ":",
    "DOT": ".",
    "ARROW": "->",
}
COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
STRATEGIES = frozenset({"ALL", "ANY", "STRICT", "NXT", "NEXT", "LAST", "MAX"})
# In their required order, which `clause-order` reports.
CLAUSES = ("SELECT", "FROM", "WHERE", "PARTITION", "WITHIN", "WITH", "CONSUME", "LIMIT")
FULL_NAMES = {
    "PARTITION": "PARTITION BY",
    "WITH": "WITH CONFIDENCE",
    "CONSUME": "CONSUME BY",
}


@dataclass(frozen=True)
class Place:
    """A token where no such token can stand, and its surroundings. Tokens before `index` have their
    final types; later words are still NAMEs."""

    source: Source
    tokens: Sequence[Token]
    start: int  # where the parser began
    index: int
    accepted: frozenset[str]  # the terminals that could stand at `index`
    fits_after: Callable[[str], bool]  # whether the token could stand after a terminal

    @property
    def found(self) -> Token:
        """The token that cannot stand here."""
        return self.tokens[self.index]

    def token(self, index: int) -> Token:
        """The token at an index; END for all indices beyond the text."""
        return self.tokens[min(index, len(self.tokens) - 1)]

    @property
    def part_of_aggregate(self) -> str | None:
        """The word that begins the part of an AGGREGATE here, up to its RESULT; None elsewhere."""
        for token in reversed(self.tokens[self.start : self.index]):
            if token.type in ("AGGREGATE", "STATE", "STEP"):
                return token.type
            if token.type in ("RESULT", "FUNCTION", "CREATE", "QUERY", "SELECT"):
                break
        return None

    @property
    def before(self) -> str:
        """The type of the token before, empty at the start."""
        return self.tokens[self.index - 1].type if self.index > self.start else ""

    @property
    def previous(self) -> Token:
        """The token before; only where there is one."""
        assert self.index > self.start
        return self.tokens[self.index - 1]

    @property
    def following(self) -> Token:
        """The token after the found one, END after the end."""
        return self.token(self.index + 1)

    def accepts(self, *terminals: str) -> bool:
        """Whether each of some terminals could have stood here."""
        return self.accepted.issuperset(terminals)

    # --- what kind of thing could stand here ---

    @property
    def wants_formula(self) -> bool:
        """Whether an operand of a formula should begin here."""
        return self.accepts("PROJECT")

    @property
    def wants_value(self) -> bool:
        """Whether a value should begin here, in a condition or in SELECT."""
        return self.accepts("INTEGER", "TEXT")

    @property
    def wants_comparison(self) -> bool:
        """Whether a condition has a left side and nothing else so far."""
        return self.accepts("EQUAL")

    @property
    def after_operand(self) -> bool:
        """Whether an operand of a formula has just ended."""
        return self.accepts("COLON_PLUS")

    @property
    def at_end(self) -> bool:
        """Whether the query ends here: a clause, the next statement or the end of the file."""
        found = self.found
        ends = found.type == END or found.type in CLAUSES
        return ends or begins_statement(self.tokens, self.index)

    @property
    def is_trailing(self) -> bool:
        """Whether this is a `;` that ends a statement as in other languages."""
        following = min(self.index + 1, len(self.tokens) - 1)
        is_last = self.tokens[following].type == END or begins_statement(self.tokens, following)
        return self.found.type == "SEMICOLON" and is_last

    # --- what stands around ---

    @cached_property
    def _statement(self) -> tuple[int, tuple[int, ...]]:
        start = self.start
        for index in range(self.index - 1, self.start - 1, -1):
            if self.tokens[index].type in ("CREATE", "QUERY", "SELECT"):
                start = index
                if self.tokens[index].type != "SELECT" or not self._is_named(index):
                    break
        openers: list[int] = []
        for index in range(start, self.index):
            kind = self.tokens[index].type
            if kind in CLOSERS:
                openers.append(index)
            elif kind in CLOSERS.values():
                opened = openers.pop()
                if not openers and opened > 1 and self.tokens[opened - 2].type == "STREAM":
                    start = index + 1  # a declaration has ended
        return start, tuple(openers)

    def _is_named(self, select: int) -> bool:
        """Whether `QUERY name:` stands before a SELECT."""
        before = [token.type for token in self.tokens[max(self.start, select - 3) : select]]
        return before == ["QUERY", "NAME", "COLON"]

    @property
    def statement_start(self) -> int:
        """The index of the first token of the statement, as far as its beginning is known."""
        return self._statement[0]

    @property
    def opener(self) -> int | None:
        """The index of the innermost bracket that is open here."""
        openers = self._statement[1]
        return openers[-1] if openers else None

    @property
    def innermost_start(self) -> int:
        """The index of the first token inside the innermost bracket, or of the statement."""
        return self.statement_start if self.opener is None else self.opener + 1

    def backwards(self) -> Iterator[int]:
        """The tokens before, nearest first, within the innermost bracket; tokens in inner brackets
        are left out. Closing brackets are included, opening ones never."""
        depth = 0
        for index in range(self.index - 1, self.innermost_start - 1, -1):
            kind = self.tokens[index].type
            if kind in CLOSERS:
                depth -= 1
            elif not depth:
                yield index
            if kind in CLOSERS.values():
                depth += 1

    def last(self, *types: str) -> int | None:
        """The index of the nearest token before of one of some types, at this level of brackets."""
        return next((i for i in self.backwards() if self.tokens[i].type in types), None)

    def formula_start(self) -> int:
        """The index where the formula begins, at this level of brackets."""
        where = self.last("WHERE")
        return self.innermost_start if where is None else where + 1

    def formula_end(self) -> int:
        """The index after the last token of the formula, at this level of brackets."""
        depth = 0
        end = self.statement_end()
        for index in range(self.index, end):
            token = self.tokens[index]
            if token.type in CLOSERS:
                depth += 1
            elif token.type in CLOSERS.values():
                depth -= 1
            if depth < 0 or (not depth and keyword_of(token) in CLAUSES):
                return index
        return end

    def statement_end(self) -> int:
        """The index after the last token of the statement, as far as can be seen."""
        indices = range(self.index + 1, len(self.tokens))
        ends = (i for i in indices if begins_statement(self.tokens, i))
        return next(ends, len(self.tokens) - 1)

    # --- words for it ---

    def text(self, start: int, end: int) -> str:
        """The text from one token up to another (not including it), short and on one line."""
        if start >= end:
            return ""
        first, last = self.tokens[start], self.tokens[end - 1]
        return shortened(self.source.slice(Span(first.start, last.end)))

    def span(self, start: int, end: int) -> Span:
        """The place of the tokens from one up to another (not including it)."""
        return self.tokens[start].span.to(self.tokens[end - 1].span)

    def raw(self, start: int, end: int) -> str:
        """The text from one token up to another (not including it), unchanged."""
        return self.source.slice(self.span(start, end)) if start < end else ""

    def changed(self, start: int, end: int, texts: Mapping[int, str]) -> str:
        """The text of the tokens from one up to another, some of them with another text.

        The space before a token that becomes empty goes with it.
        """
        parts: list[str] = []
        for index in range(start, end):
            token = self.tokens[index]
            text = texts.get(index, token.text)
            gap = (
                self.source.text[self.tokens[index - 1].end : token.start] if index > start else ""
            )
            parts.append(gap + text if text else "")
        return "".join(parts).strip()

    def closer(self, opener: int) -> int | None:
        """The index of the bracket that closes another one; None where there is none."""
        depth = 0
        for index in range(opener, len(self.tokens)):
            kind = self.tokens[index].type
            depth += (kind in CLOSERS) - (kind in CLOSERS.values())
            if not depth:
                return index
        return None

    def is_reserved(self) -> bool:
        """Whether the found token is a reserved word."""
        return keyword_of(self.found) in grammar().reserved


def described(token: Token) -> str:
    """A token as a message speaks of it."""
    if token.type == END:
        return "the end of the file"
    is_keyword = token.type in grammar().keywords
    if is_keyword or (token.type == "NAME" and keyword_of(token) in grammar().reserved):
        return f"the keyword {token.text.upper()}"
    if token.type == "TEXT":
        return f"the text {shortened(token.text)}"
    return f"'{shortened(token.text)}'"
