"""LIKE and RLIKE of texts that an aggregate of the file computes.

Kernels have no patterns: the runtime answers them for each text of an event, and they read the
answers. A text that an aggregate computes is one of an event or one of the declaration, which IF,
LEAST, GREATEST, COALESCE and STEP have chosen. So its answer is chosen along with it: a variable of
STATE gets a second one, a BOOLEAN, with the answer of its text.

Rejected: patterns in kernels, of which RLIKE would need a library of its own; and the answers of
all texts by their numbers, which would have to be kept wherever texts are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from celc.core import formula as core
from celc.core.fold import fold_predicate

_Asked: TypeAlias = tuple[str, Literal["LIKE", "RLIKE"], str]
"""The name of a variable, the operator and the pattern."""


@dataclass(slots=True)
class Answers:
    """The answers that one declaration asks for; `parameters` are the names of its parameters,
    `taken` those of all its variables. `makes_texts`: as in `OwnAggregate`; then LIKE is asked of
    the bytes of the text."""

    parameters: frozenset[str]
    taken: frozenset[str]
    makes_texts: bool = False
    names: dict[_Asked, str] = field(default_factory=dict)

    def truth(self, asked: core.PatternMatch) -> core.Truth:
        """A pattern as kernels can ask it."""
        if self.is_of_event(asked.operand) or self.makes_texts:
            return asked
        answer = self.of(asked.operand, asked)
        wanted = core.Constant(not asked.negated, core.DataType.BOOLEAN, asked.span)
        return core.Comparison("=", answer, wanted, asked.span)

    def of(self, text: core.Expression, asked: core.PatternMatch) -> core.Expression:
        """Whether a text is like the pattern that is asked for: a BOOLEAN, NULL for NULL."""
        match text:
            case core.Constant(value=value):
                single = replace(asked, operand=text, negated=False)
                return self._constant(None if value is None else fold_predicate(single), asked)
            case core.Variable(name=name) if name in self.parameters:
                # An event is skipped where a parameter is NULL.
                single = replace(asked, operand=text, negated=False)
                yes, no = self._constant(True, asked), self._constant(False, asked)
                return core.Conditional(((single, yes),), no, core.DataType.BOOLEAN, asked.span)
            case core.Variable(name=name):
                answer = self._name(name, asked)
                return core.Variable(answer, core.DataType.BOOLEAN, asked.span)
            case core.Conditional(branches=branches, otherwise=otherwise):
                ways = tuple((condition, self.of(way, asked)) for condition, way in branches)
                last = self.of(otherwise, asked)
                return core.Conditional(ways, last, core.DataType.BOOLEAN, asked.span)
            case core.Choice(function="COALESCE", operands=operands):
                answers = tuple(self.of(one, asked) for one in operands)
                return core.Choice("COALESCE", answers, core.DataType.BOOLEAN, asked.span)
            case core.Choice(operands=(only,)):
                return self.of(only, asked)
            case core.Choice(function=function, operands=(*before, last)):
                chosen = replace(text, operands=tuple(before))
                first = chosen if len(before) > 1 else before[0]
                order: Literal["<=", ">="] = "<=" if function == "LEAST" else ">="
                is_first = core.Some(
                    (
                        core.NullTest(last, False, asked.span),
                        core.Comparison(order, first, last, asked.span),
                    ),
                    asked.span,
                )
                ways = ((is_first, self.of(first, asked)),)
                rest = self.of(last, asked)
                return core.Conditional(ways, rest, core.DataType.BOOLEAN, asked.span)
            case _:
                raise AssertionError(f"an aggregate computes no text by {text!r}")

    def state(self, state: Sequence[core.StateVariable]) -> tuple[core.StateVariable, ...]:
        """The variables of STATE, and those with the answers."""
        found, known = [*state], {one.name: one for one in state}
        made: set[_Asked] = set()
        while missing := self.names.keys() - made:
            for key in [one for one in self.names if one in missing]:
                name, operator, pattern = key
                variable = known[name]
                first = core.Constant(variable.first, variable.type, variable.step.span)
                asked = core.PatternMatch(operator, first, pattern, False, first.span)
                value = self.of(first, asked)
                assert isinstance(value, core.Constant)
                step = self.of(variable.step, asked)
                made.add(key)
                found.append(
                    core.StateVariable(self.names[key], core.DataType.BOOLEAN, value.value, step)
                )
        return tuple(found)

    def _name(self, variable: str, asked: core.PatternMatch) -> str:
        """The name of the variable with the answer of another one."""
        key = variable, asked.operator, asked.pattern
        if key not in self.names:
            name = f"{variable} {asked.operator} '{asked.pattern}'"
            while name in self.taken:
                name += " "
            self.names[key] = name
        return self.names[key]

    def is_of_event(self, text: core.Expression) -> bool:
        is_given = isinstance(text, core.Variable) and text.name in self.parameters
        return is_given or isinstance(text, core.Constant)

    def _constant(self, value: bool | None, asked: core.PatternMatch) -> core.Constant:
        return core.Constant(value, core.DataType.BOOLEAN, asked.span)


def is_like(aggregate: core.Aggregate, asked: core.PatternMatch) -> core.Comparison:
    """LIKE or RLIKE of the text that an aggregate of the file computes over a label."""
    own = aggregate.own
    assert own is not None
    if own.makes_texts:
        answering = replace(own, result=_is_like_made(own.result, asked))
    else:
        given = frozenset(one.name for one in own.parameters)
        answers = Answers(given, given | {one.name for one in own.state})
        result = answers.of(own.result, asked)
        answering = replace(own, state=answers.state(own.state), result=result)
    answer = replace(aggregate, own=answering, type=core.DataType.BOOLEAN)
    wanted = core.Constant(not asked.negated, core.DataType.BOOLEAN, asked.span)
    return core.Comparison("=", answer, wanted, asked.span)


def _is_like_made(text: core.Expression, asked: core.PatternMatch) -> core.Expression:
    """Whether a text that is made is like the pattern: a BOOLEAN, NULL for NULL."""
    span, type = asked.span, core.DataType.BOOLEAN
    single = replace(asked, operand=text, negated=False)
    there = core.NullTest(text, True, span)
    ways = ((single, core.Constant(True, type, span)), (there, core.Constant(False, type, span)))
    return core.Conditional(ways, core.Constant(None, type, span), type, span)
