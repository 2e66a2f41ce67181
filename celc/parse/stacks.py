"""The LALR machine: shift, reduce, and questions about what could come next."""

from typing import Any

from celc.parse.tables import Grammar, Reduction


class Stacks:
    """The stacks of one run of a parser. Nothing is recursive, however deep the text."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._states = [grammar.start_state]
        self._values: list[Any] = []

    @property
    def result(self) -> Any:
        """What has become of the start rule. Valid after the end of the text was taken."""
        (value,) = self._values
        return value

    def begin_after(self, symbol: str, value: Any) -> None:
        """Go on as after a text that was read already, of which this symbol has become."""
        goto = self._grammar.actions[self._grammar.start_state][symbol]
        assert isinstance(goto, int)
        self._states.append(goto)
        self._values.append(value)

    def _shifted(self, token: Any) -> Any:
        """The value of a token."""
        raise NotImplementedError

    def _reduced(self, reduction: Reduction, parts: list[Any]) -> Any:
        """The value of a rule, of its parts."""
        raise NotImplementedError

    def take(self, token: Any) -> bool:
        """Reduce as long as the token requires it, then shift it. False where it cannot stand
        here."""
        actions, end_state = self._grammar.actions, self._grammar.end_state
        states, values = self._states, self._values
        terminal = token.type
        while True:
            action = actions[states[-1]].get(terminal)
            if action is None:
                return False
            if isinstance(action, int):
                states.append(action)
                values.append(self._shifted(token))
                return True
            if action.method is None:
                del states[-1]
            else:
                # Slices by position: the size can be 0.
                del states[len(states) - action.size :]
                parts = values[len(values) - action.size :]
                del values[len(values) - action.size :]
                values.append(self._reduced(action, parts))
            goto = actions[states[-1]][action.target]
            assert isinstance(goto, int)
            states.append(goto)
            if goto == end_state:
                return True

    def accepted(self) -> frozenset[str]:
        """The terminals that could come next."""
        row = self._grammar.actions[self._states[-1]]
        return frozenset(symbol for symbol in row if symbol.isupper() and self.accepts(symbol))

    def accepts(self, *terminals: str) -> bool:
        """Whether these terminals could come next, in this order."""
        # A row of LALR tables promises too much: only the shift after all reductions decides. The
        # states that reductions would push are kept apart from the stack, which may be long.
        table = self._grammar
        kept = len(self._states)
        pushed: list[int] = []  # `list[int]()` took a tenth of the time of a parse
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
