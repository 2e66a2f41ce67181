"""The detection of a Sigma rule → a condition of CEL on one event.

Texts are compared without regard to case, as Sigma says. A field that the event does not have
satisfies nothing, so that NOT of it holds: inside NOT, each comparison asks for the field first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sigma.conditions import (
    ConditionAND,
    ConditionFieldEqualsValueExpression,
    ConditionNOT,
    ConditionOR,
    ConditionValueExpression,
)
from sigma.types import (
    CompareOperators,
    Placeholder,
    SigmaBool,
    SigmaCasedString,
    SigmaCIDRExpression,
    SigmaCompareExpression,
    SigmaExists,
    SigmaExpansion,
    SigmaFieldReference,
    SigmaNull,
    SigmaNumber,
    SigmaRegularExpression,
    SigmaString,
    SigmaTimestampPart,
    SigmaType,
    SpecialChars,
)

from celc.diagnostics.messages.types import invalid_regex
from celc.interfaces.importing.fields import Fields, Kind
from celc.interfaces.importing.networks import network_pattern
from celc.interfaces.importing.places import Places
from celc.interfaces.importing.words import (
    Level,
    Wildcard,
    Words,
    attribute,
    call,
    is_one_of,
    joined,
    literal,
    negated,
    operation,
)
from celc.resolve.types.regexes import refusal_of_regex

_OPERATORS = {
    CompareOperators.LT: "<",
    CompareOperators.LTE: "<=",
    CompareOperators.GT: ">",
    CompareOperators.GTE: ">=",
    CompareOperators.NEQ: "<>",
}

_PARTS = {"MINUTE", "HOUR", "DAY", "MONTH", "YEAR"}


@dataclass
class Detections:
    """Translates the detections of the rules of one file; `used` are the fields that were named
    since it was emptied, in the order of their first use."""

    fields: Fields
    places: Places
    used: dict[str, None] = field(default_factory=dict)

    def condition(self, node: object, *, in_not: bool = False) -> Words:
        """A parsed condition of Sigma; `in_not`: it stands inside a NOT."""
        if isinstance(node, ConditionNOT):
            return negated(self.condition(node.args[0], in_not=True))
        if isinstance(node, ConditionAND):
            return self._all(node.args, in_not=in_not)
        if isinstance(node, ConditionOR):
            return self._either(node.args, in_not=in_not)
        if isinstance(node, ConditionFieldEqualsValueExpression):
            return self._of_field(node.field, [node.value], in_not=in_not)
        if isinstance(node, ConditionValueExpression):
            self.places.wrong(
                str(node.value),
                f"'{node.value}' is searched in all of an event, and events have fields here",
                "name the field: field|contains: …",
            )
        else:
            self.places.wrong("", f"{type(node).__name__} cannot be translated")
        return Words("FALSE")

    def _all(self, args: Sequence[object], *, in_not: bool) -> Words:
        """Conditions that all hold; each field is asked for once."""
        there = {
            one.field: _is_there(one.field)
            for one in args
            if isinstance(one, ConditionFieldEqualsValueExpression) and not _asks_null(one.value)
        }
        parts = [
            (
                self._of_field(one.field, [one.value], in_not=False)
                if isinstance(one, ConditionFieldEqualsValueExpression)
                else self.condition(one, in_not=in_not)
            )
            for one in args
        ]
        return joined([*there.values(), *parts] if in_not else parts, Level.AND)

    def _either(self, args: Sequence[object], *, in_not: bool) -> Words:
        """Alternatives; those of one field that stand side by side are one list."""
        found: list[Words] = []
        last = ""
        values: list[SigmaType] = []
        for one in [*args, None]:
            of_field = one if isinstance(one, ConditionFieldEqualsValueExpression) else None
            if values and (of_field is None or of_field.field != last):
                found.append(self._of_field(last, values, in_not=in_not))
                values = []
            if of_field is not None:
                last = of_field.field
                values.append(of_field.value)
            elif one is not None:
                found.append(self.condition(one, in_not=in_not))
        return joined(found, Level.OR)

    def _of_field(self, name: str, values: Sequence[SigmaType], *, in_not: bool) -> Words:
        """Whether a field has one of several values."""
        self.used.setdefault(name)
        texts = [one for one in values if isinstance(one, SigmaString)]
        numbers = [one for one in values if type(one) is SigmaNumber]
        found = [self._texts(name, texts)] if texts else []
        if len(numbers) > 1:
            for one in numbers:
                self._number(name, "=", one)
            listed = ", ".join(str(one.number) for one in numbers)
            found.append(Words(f"{attribute(name)} IN ({listed})", Level.COMPARISON))
        others = [one for one in values if not isinstance(one, SigmaString)]
        if len(numbers) > 1:
            others = [one for one in others if type(one) is not SigmaNumber]
        found += [self._value(name, one) for one in others]
        condition = joined(found, Level.OR)
        if in_not and not any(map(_asks_null, values)):
            return joined([_is_there(name), condition], Level.AND)
        return condition

    def _texts(self, name: str, values: Sequence[SigmaString]) -> Words:
        self._expect(name, "STRING")
        column = Words(attribute(name))
        found = []
        for is_cased in (False, True):
            patterns = [
                self._pattern(one, is_cased=is_cased)
                for one in values
                if isinstance(one, SigmaCasedString) == is_cased
            ]
            if patterns:
                found.append(is_one_of(column if is_cased else call("LOWER", column), patterns))
        return joined(found, Level.OR)

    def _pattern(self, value: SigmaString, *, is_cased: bool) -> list[str | Wildcard]:
        """The text of a value with its wildcards, in small letters where case does not matter."""
        parts: list[str | Wildcard] = []
        for one in value.s:
            if isinstance(one, Placeholder):
                self.places.wrong(one.name, f"the placeholder %{one.name}% has no value")
            elif one is SpecialChars.WILDCARD_MULTI:
                parts.append(Wildcard.MANY)
            elif one is SpecialChars.WILDCARD_SINGLE:
                parts.append(Wildcard.ONE)
            else:
                parts.append(str(one) if is_cased else str(one).lower())
        return parts

    def _expect(self, name: str, kind: Kind) -> None:
        self.fields.expect(name, kind, self.places.of_field(name))

    # Long: each kind of value in its own lines.
    def _value(self, name: str, value: SigmaType) -> Words:
        column = Words(attribute(name))
        if isinstance(value, SigmaExpansion):
            return self._of_field(name, value.values, in_not=False)
        if isinstance(value, SigmaNull):
            return Words(f"{column.text} IS NULL", Level.COMPARISON)
        if isinstance(value, SigmaExists):
            return Words(f"{column.text} IS {'NOT ' if value.exists else ''}NULL", Level.COMPARISON)
        if isinstance(value, SigmaBool):
            self._expect(name, "BOOLEAN")
            return column if value.boolean else negated(column)
        if isinstance(value, SigmaTimestampPart):
            part = value.timestamp_part.name
            if part not in _PARTS:
                self.places.wrong_field(
                    name, f"the {part.lower()} of a time cannot be compared here"
                )
            self._expect(name, "TIMESTAMP")
            return operation(call(part, column), "=", Words(str(value)), Level.COMPARISON)
        if isinstance(value, SigmaNumber):
            return self._number(name, "=", value)
        if isinstance(value, SigmaCompareExpression):
            return self._number(name, _OPERATORS[value.op], value.number)
        if isinstance(value, SigmaRegularExpression):
            self._expect(name, "STRING")
            flags = "".join(sorted(value.sigma_to_re_flag[one] for one in value.flags))
            pattern = (f"(?{flags})" if flags else "") + str(value.regexp)
            reason = refusal_of_regex(pattern)
            if reason is not None:
                span = self.places.of(str(value.regexp))
                self.places.diagnostics.add(invalid_regex(reason, span))
            return Words(f"{column.text} RLIKE {literal(pattern)}", Level.COMPARISON)
        if isinstance(value, SigmaCIDRExpression):
            return self._network(name, value)
        if isinstance(value, SigmaFieldReference):
            return self._other_field(name, value)
        self.places.wrong_field(name, f"{type(value).__name__} of '{name}' cannot be translated")
        return Words("FALSE")

    def _number(self, name: str, operator: str, value: SigmaNumber) -> Words:
        number = value.number
        if isinstance(number, float) and abs(number) >= 2**53:
            self.places.wrong_field(name, "pySigma reads so large a number as another one")
        self._expect(name, "LONG" if isinstance(number, int) else "DOUBLE")
        return operation(Words(attribute(name)), operator, Words(str(number)), Level.COMPARISON)

    def _network(self, name: str, value: SigmaCIDRExpression) -> Words:
        self._expect(name, "STRING")
        pattern = network_pattern(value.cidr)
        if pattern is None:
            self.places.wrong(value.cidr, f"'{value.cidr}': networks of IPv4 alone are translated")
            return Words("FALSE")
        return Words(f"{attribute(name)} RLIKE {literal(f'^{pattern}$')}", Level.COMPARISON)

    def _other_field(self, name: str, value: SigmaFieldReference) -> Words:
        self.used.setdefault(value.field)
        left, right = Words(attribute(name)), Words(attribute(value.field))
        kinds = {self.fields.kind(name), self.fields.kind(value.field)} - {None}
        if kinds <= {"STRING"}:
            self._expect(name, "STRING")
            self._expect(value.field, "STRING")
            left, right = call("LOWER", left), call("LOWER", right)
        if value.starts_with or value.ends_with:
            # pySigma's `contains` is both.
            one = "STARTSWITH" if value.starts_with else "ENDSWITH"
            return call("CONTAINS" if value.starts_with and value.ends_with else one, left, right)
        return operation(left, "=", right, Level.COMPARISON)


def _asks_null(value: SigmaType) -> bool:
    return isinstance(value, SigmaNull | SigmaExists)


def _is_there(name: str) -> Words:
    return Words(f"{attribute(name)} IS NOT NULL", Level.COMPARISON)
