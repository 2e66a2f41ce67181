"""The functions of EQL, by those of CEL."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import Span
from celc.interfaces.importing.eql.values import Uses, Value
from celc.interfaces.importing.fields import Kind
from celc.interfaces.importing.networks import network_pattern
from celc.interfaces.importing.words import Level, Words, call, literal, operation

_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%"}


@frozen
class _Call:
    """A call with its arguments; `any_case`: the name ends with `~`."""

    of: Uses
    name: str
    given: Sequence[Value]
    span: Span
    any_case: bool

    def text(self, number: int) -> Words:
        """An argument that is a text, in small letters where case does not matter."""
        value = self.given[number]
        self.of.text(value)
        if not self.any_case:
            return value.words
        if value.is_text:
            return Words(literal(str(value.constant).lower()))
        return call("LOWER", value.words)

    def constant(self, number: int, what: str) -> str:
        """An argument that is a text written out."""
        value = self.given[number]
        if not value.is_text:
            self.of.wrong(value.span, f"{what} is a text that is written out")
            return ""
        return str(value.constant)

    def whole(self, number: int) -> int | None:
        """An argument that is a whole number written out."""
        value = self.given[number].constant
        if isinstance(value, bool) or not isinstance(value, int):
            self.of.wrong(
                self.given[number].span, "a whole number that is written out is needed here"
            )
            return None
        return value


_Made = tuple[Words, Kind]


def _length(one: _Call) -> _Made:
    return call("LENGTH", one.text(0)), "LONG"


def _starts(one: _Call) -> _Made:
    return call("STARTSWITH", one.text(0), one.text(1)), "BOOLEAN"


def _ends(one: _Call) -> _Made:
    return call("ENDSWITH", one.text(0), one.text(1)), "BOOLEAN"


def _contains(one: _Call) -> _Made:
    return call("CONTAINS", one.text(0), one.text(1)), "BOOLEAN"


def _concat(one: _Call) -> _Made:
    words = [
        (
            value.words
            if value.kind in ("STRING", None)
            else Words(f"CAST({value.words.text} AS STRING)")
        )
        for value in one.given
    ]
    for value in one.given:
        if value.kind in ("STRING", None):
            one.of.text(value)
    return call("CONCAT", *words), "STRING"


def _string(one: _Call) -> _Made:
    return Words(f"CAST({one.given[0].words.text} AS STRING)"), "STRING"


def _number(one: _Call) -> _Made:
    if len(one.given) > 1:
        one.of.wrong(one.given[1].span, "a number in another base cannot be translated")
    one.of.text(one.given[0])
    return Words(f"TRY_CAST({one.given[0].words.text} AS DOUBLE)"), "DOUBLE"


def _substring(one: _Call) -> _Made:
    start = one.whole(1) or 0
    first = Words(str(start + 1 if start >= 0 else start))
    if len(one.given) == 2:
        return call("SUBSTR", one.text(0), first), "STRING"
    end = one.whole(2) or 0
    if (start < 0) != (end < 0):
        one.of.wrong(
            one.span, "start and end of substring are both counted from the front, or from the back"
        )
    return call("SUBSTR", one.text(0), first, Words(str(max(0, end - start)))), "STRING"


def _index_of(one: _Call) -> _Made:
    if len(one.given) > 2:
        one.of.wrong(one.given[2].span, "indexOf with a start cannot be translated")
    found = call("POSITION", one.text(1), one.text(0))
    return operation(call("NULLIF", found, Words("0")), "-", Words("1"), Level.SUM), "LONG"


def _between(one: _Call) -> _Made:
    left = re.escape(one.constant(1, "the second argument of between"))
    right = re.escape(one.constant(2, "the third argument of between"))
    greedy = len(one.given) > 3 and one.given[3].constant is True
    one.of.text(one.given[0])
    # `.` is any character but the line feed, and REGEXP_EXTRACT has no flags.
    pattern = literal(f"{left}((?:.|\\n)*{'' if greedy else '?'}){right}")
    return call("REGEXP_EXTRACT", one.given[0].words, Words(pattern), Words("1")), "STRING"


def _in_network(one: _Call) -> _Made:
    one.of.text(one.given[0])
    found = []
    for number in range(1, len(one.given)):
        text = one.constant(number, "a network")
        pattern = network_pattern(text)
        if pattern is None:
            one.of.wrong(
                one.given[number].span,
                f"'{text}' is no network of IPv4, such as 10.0.0.0/8; others cannot be translated",
            )
        else:
            found.append(pattern)
    pattern = literal(f"^(?:{'|'.join(found)})$")
    return (
        Words(f"{one.given[0].words.at(Level.SUM)} RLIKE {pattern}", Level.COMPARISON),
        "BOOLEAN",
    )


_FUNCTIONS: dict[str, tuple[Callable[[_Call], _Made], int, int]] = {
    "between": (_between, 3, 4),
    "cidrMatch": (_in_network, 2, 1000),
    "concat": (_concat, 1, 1000),
    "endsWith": (_ends, 2, 2),
    "indexOf": (_index_of, 2, 3),
    "length": (_length, 1, 1),
    "number": (_number, 1, 2),
    "startsWith": (_starts, 2, 2),
    "string": (_string, 1, 1),
    "stringContains": (_contains, 2, 2),
    "substring": (_substring, 2, 3),
}
"""What makes each function, and how many arguments it takes."""

_OF_AVIATOR = {
    "string.contains": "stringContains",
    "string.endsWith": "endsWith",
    "string.length": "length",
    "string.startsWith": "startsWith",
}
"""The names that functions have in conditions of FlinkCEP's rules."""

_OF_CASE = {"endsWith", "indexOf", "startsWith", "stringContains"}


def called(of: Uses, name: str, given: Sequence[Value], span: Span, *, any_case: bool) -> Value:
    """A call of a function of EQL as an expression of CEL. What has none is told to `of`."""
    name = _OF_AVIATOR.get(name, name)
    if name in _OPERATORS and len(given) == 2:
        return of.computed(given[0], _OPERATORS[name], given[1], span)
    if name not in _FUNCTIONS:
        known = sorted((*_FUNCTIONS, *_OPERATORS))
        of.wrong(span, f"there is no function '{name}' here", f"known: {', '.join(known)}")
        return Value(Words("TRUE"), None, span)
    make, least, most = _FUNCTIONS[name]
    if not least <= len(given) <= most:
        of.wrong(
            span,
            f"{name} takes {least} argument{'' if least == 1 else 's'}"
            + (" or more" if most > least else ""),
        )
        return Value(Words("TRUE"), None, span)
    if any_case and name not in _OF_CASE:
        of.wrong(span, f"'{name}' has no form with '~'")
    words, kind = make(_Call(of, name, given, span, any_case))
    return Value(words, kind, span)
