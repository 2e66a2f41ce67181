"""The LALR machine: shift, reduce, and questions about what could come next."""

from collections.abc import Callable, Sequence
from typing import Any

from celc.diagnostics.deadline import look
from celc.parse.queries import QueryBuilder
from celc.parse.tables import grammar
from celc.parse.tokens import BEGIN, Token, begins_formula, terminal_of

_ENDS_OF_AGGREGATE = ("RESULT", "AGGREGATE", "CREATE", "PARAMETERS", "QUERY", "SELECT")


class Machine:
    """The stacks of one run of the parser. Nothing is recursive, however deep the text."""

    def __init__(self, builder: QueryBuilder) -> None:
        self._states = [grammar().start_state]
        self._values: list[Any] = []
        self._builder = builder
        self._methods: dict[str, Callable[[list[Any]], Any]] = {}
        # Whether an AGGREGATE is being read, and whether the expression of its RESULT is.
        self.in_aggregate = self._in_result = False

    @property
    def result(self) -> Any:
        """The tree that the builder made of the start rule. Valid after `run` has taken all
        tokens."""
        (value,) = self._values
        return value

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
                self._take(Token(BEGIN, "", token.start, token.start))
                self.in_aggregate = self._in_result = False
            if token.type == "NAME":
                token.type = terminal_of(tokens, index, self.accepts)
                if token.type == "IF" and not self.in_aggregate:
                    token.type = "NAME"  # like every unknown function
            if not self._take(token):
                return index
            if token.type in _ENDS_OF_AGGREGATE:
                self._in_result = token.type == "RESULT"
                self.in_aggregate = token.type in ("RESULT", "AGGREGATE")
        return None

    def _take(self, token: Token) -> bool:
        """Reduce as long as the token requires it, then shift it. False where it cannot stand
        here."""
        table = grammar()
        actions, end_state = table.actions, table.end_state
        states, values = self._states, self._values
        terminal = token.type
        while True:
            action = actions[states[-1]].get(terminal)
            if action is None:
                return False
            if isinstance(action, int):
                states.append(action)
                leaf = self._builder.leaves.get(terminal)
                values.append(leaf(token) if leaf else token)
                return True
            if action.method is None:
                del states[-1]
            else:
                # Slices by position: the size can be 0.
                del states[len(states) - action.size :]
                parts = values[len(values) - action.size :]
                del values[len(values) - action.size :]
                values.append(self._method(action.method)(parts))
            goto = actions[states[-1]][action.target]
            assert isinstance(goto, int)
            states.append(goto)
            if goto == end_state:
                return True

    def _method(self, name: str) -> Callable[[list[Any]], Any]:
        method = self._methods.get(name)
        if method is None:
            method = self._methods[name] = getattr(self._builder, name)
        return method

    def accepted(self) -> frozenset[str]:
        """The terminals that could come next."""
        row = grammar().actions[self._states[-1]]
        return frozenset(symbol for symbol in row if symbol.isupper() and self.accepts(symbol))

    def accepts(self, *terminals: str) -> bool:
        """Whether these terminals could come next, in this order."""
        # A row of LALR tables promises too much: only the shift after all reductions decides. The
        # states that reductions would push are kept apart from the stack, which may be long.
        table = grammar()
        kept, pushed = len(self._states), list[int]()
        for terminal in terminals:
            shifted = False
            while not shifted:
                top = pushed[-1] if pushed else self._states[kept - 1]
                action = table.actions[top].get(terminal)
                if action is None:
                    return False
                if isinstance(action, int):
                    pushed.append(action)
                    shifted = True
                    continue
                kept -= max(0, action.size - len(pushed))
                del pushed[max(0, len(pushed) - action.size) :]
                top = pushed[-1] if pushed else self._states[kept - 1]
                goto = table.actions[top][action.target]
                assert isinstance(goto, int)
                pushed.append(goto)
                shifted = goto == table.end_state
        return True
