"""Names, literals and conditions of CEL as text, with parentheses where they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, IntEnum
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.core.declarations import quoted
from celc.core.declarations import spelled as spelled


class Level(IntEnum):
    """How tight an expression of CEL binds; an operand needs at least the level of its operator."""

    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    SUM = 5
    PRODUCT = 6
    SIGN = 7
    ATOM = 8


@frozen
class Words:
    """The text of an expression, and how tight its outermost operator binds."""

    text: str
    level: Level = Level.ATOM

    def at(self, level: Level) -> str:
        """The text as an operand of an operator of this level."""
        return self.text if self.level >= level else f"({self.text})"


_OTHERWISE = {"CASE", "FALSE", "NOT", "NULL", "STREAM", "TRUE"}
"""The words that mean something else where an attribute can stand."""


def attribute(name: str) -> str:
    """The name of an attribute as it is written: most words may stand without backquotes."""
    is_plain = name.isidentifier() and name.upper() not in _OTHERWISE
    return name if is_plain else quoted(name)


def literal(text: str) -> str:
    """A text as it is written."""
    return "'" + text.replace("'", "''") + "'"


def call(name: str, *arguments: Words) -> Words:
    """A call of a function."""
    return Words(f"{name}({', '.join(one.text for one in arguments)})")


def operation(left: Words, operator: str, right: Words, level: Level) -> Words:
    """Two operands with an operator that binds to the left."""
    return Words(f"{left.at(level)} {operator} {right.at(Level(level + 1))}", level)


def negated(condition: Words) -> Words:
    """NOT of a condition."""
    return Words(f"NOT {condition.at(Level.NOT)}", Level.NOT)


def joined(conditions: Sequence[Words], level: Level) -> Words:
    """Conditions joined by AND, or by OR; of none, TRUE for AND and FALSE for OR."""
    if not conditions:
        return Words("TRUE" if level is Level.AND else "FALSE")
    if len(conditions) == 1:
        return conditions[0]
    word = " AND " if level is Level.AND else " OR "
    return Words(word.join(one.at(level) for one in conditions), level)


class Wildcard(Enum):
    """What stands for other signs in a pattern: any text, or one sign."""

    MANY = "%"
    ONE = "_"


Pattern: TypeAlias = Sequence[str | Wildcard]
"""A text with wildcards between its parts."""


def is_one_of(value: Words, patterns: Sequence[Pattern]) -> Words:
    """Whether a text is one of some texts, or like one of them."""
    plain: list[str] = []
    found: list[Words] = []
    for pattern in patterns:
        if all(isinstance(part, str) for part in pattern):
            plain.append(literal("".join(map(str, pattern))))
        elif list(pattern) == [Wildcard.MANY]:
            found.append(Words(f"{value.at(Level.SUM)} IS NOT NULL", Level.COMPARISON))
        else:
            text = literal("".join(map(_of_like, pattern)))
            found.append(Words(f"{value.at(Level.SUM)} LIKE {text}", Level.COMPARISON))
    if len(plain) == 1:
        found.insert(0, Words(f"{value.at(Level.SUM)} = {plain[0]}", Level.COMPARISON))
    elif plain:
        found.insert(0, Words(f"{value.at(Level.SUM)} IN ({', '.join(plain)})", Level.COMPARISON))
    return joined(found, Level.OR)


def _of_like(part: str | Wildcard) -> str:
    if isinstance(part, Wildcard):
        return part.value
    return "".join(f"\\{sign}" if sign in "%_\\" else sign for sign in part)


def event(event_type: str, label: str, conditions: Sequence[str] = ()) -> str:
    """An operand of a sequence: one event of a type, with a label where that has another name, and
    conditions."""
    named = (
        spelled(event_type) if label == event_type else f"{spelled(event_type)} AS {spelled(label)}"
    )
    return f"({named} FILTER {' AND '.join(conditions)})" if conditions else named


def of_label(label: str, condition: Words) -> str:
    """A condition on one label, in which the names of attributes stand alone."""
    return f"{spelled(label)}[{condition.text}]"
