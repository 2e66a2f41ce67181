"""The parser of CEL: which token each word is depends on the state of the machine."""

from collections.abc import Callable, Sequence
from typing import Any

from celc.diagnostics.deadline import look
from celc.parse.mistakes.tokens import foreign_join
from celc.parse.queries import QueryBuilder
from celc.parse.stacks import Stacks
from celc.parse.tables import Reduction, grammar
from celc.parse.tokens import BEGIN, HOLDS, Token, begins_formula, may_hold, terminal_of

_ENDS_OF_AGGREGATE = (
    *("RESULT", "AGGREGATE", "FUNCTION", "CREATE", "PARAMETERS", "QUERY", "SELECT"),
)


class Machine(Stacks):
    """One run of the parser; a builder makes the nodes of the tree."""

    def __init__(self, builder: QueryBuilder) -> None:
        super().__init__(grammar())
        self._builder = builder
        self._methods: dict[str, Callable[[list[Any]], Any]] = {}
        # Whether an AGGREGATE is being read, and whether the expression of its RESULT is.
        self.in_aggregate = self._in_result = False
        self._in_having = False

    def run(self, tokens: Sequence[Token], start: int, end: int | None = None) -> int | None:
        """Take tokens from `start` up to `end` (None: all of them).

        Returns the index of the first token that cannot stand at its place, or None. After such a
        token, the machine may have reduced more than other tokens would have allowed.
        """
        for index in range(start, len(tokens) if end is None else end):
            token = tokens[index]
            if index % 64 == 0:
                look(token.span)
            if self._in_result and self.accepts(BEGIN) and begins_formula(tokens, index):
                self.take(Token(BEGIN, "", token.start, token.start))
                self.in_aggregate = self._in_result = False
            if self._ends_value(tokens, index):
                self.take(Token(HOLDS, "", token.start, token.start))
            if token.type == "NAME":
                token.type = terminal_of(tokens, index, self.accepts)
            if token.type == "JOIN":
                # Between formulas, and after conditions, it was meant as OR.
                is_or = not self.accepts("JOIN") and self.accepts("OR")
                token.type = "OR" if is_or else "JOIN"
                if is_or or token.text != "||":
                    self._builder.report(foreign_join(token.text, token.start, token.type))
            if not self.take(token):
                return index
            if token.type in _ENDS_OF_AGGREGATE:
                self._in_result = token.type == "RESULT"
                self.in_aggregate = token.type in ("RESULT", "AGGREGATE")
                self._in_having = False
            self._in_having |= token.type == "HAVING"
        return None

    def _ends_value(self, tokens: Sequence[Token], index: int) -> bool:
        """Whether the value before a token is the condition: the token can follow a condition, but
        not the value."""
        if HOLDS not in self._grammar.actions[self._states[-1]]:
            return False
        if not may_hold(tokens, index, named=self.in_aggregate or self._in_having):
            return False
        after, token = self._accepts_after_value, tokens[index]
        terminal = terminal_of(tokens, index, after) if token.type == "NAME" else token.type
        return self.accepts(HOLDS, terminal) and not self.accepts(terminal)

    def _accepts_after_value(self, terminal: str) -> bool:
        return self.accepts(terminal) or self.accepts(HOLDS, terminal)

    def _shifted(self, token: Token) -> Any:
        leaf = self._builder.leaves.get(token.type)
        return leaf(token) if leaf else token

    def _reduced(self, reduction: Reduction, parts: list[Any]) -> Any:
        name = reduction.method
        assert name is not None
        method = self._methods.get(name)
        if method is None:
            method = self._methods[name] = getattr(self._builder, name)
        return method(parts)
