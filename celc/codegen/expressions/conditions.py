"""Conditions on events as Python expressions over columns, for the first pass of the kernel.

Three-valued logic needs no third value here. NOT has been moved to the predicates, so it only
matters whether a predicate is TRUE, and it is TRUE only where none of its operands is NULL.
Generated code compares numbers. It does not compare texts: the runtime evaluates each condition on
texts once for each distinct value, and passes the truths as a column.
"""

from dataclasses import dataclass, field
from typing import assert_never

from celc_runtime.plan.conditions import TextComparison, TextCondition
from celc_runtime.values.types import is_wide

from celc.codegen.expressions import decimals
from celc.codegen.expressions.decimals import in_column
from celc.codegen.expressions.operations import as_float, comparison, needs, operation, real
from celc.codegen.text.chains import chained
from celc.codegen.text.imports import Imports
from celc.core import formula as core
from celc.core.fold import fold_predicate
from celc.core.like import like_to_regex
from celc.core.terms import distances_looked_back
from celc.core.traversal import OF_SEVERAL_EVENTS, operands_of, terms_of
from celc.normal.normal_form import EventClause

_LONGEST_CHAIN = 8


@dataclass(slots=True)
class ConditionCode:
    """Turns predicates into expressions; collects the columns, texts and constants that they need.

    The variables `column_3` and `valid_3` hold column 3 of the present event, and `text_0` the
    truth of text condition 0. Each is loaded once for all conditions, because LLVM does not find
    this out, and the loop would take half as long again.
    """

    query: int  # the number of the query in its file, which ends the names of `members`
    imports: Imports  # the imports of the module
    attributes: dict[str, int] = field(default_factory=dict)  # name → number of its column
    texts: dict[TextCondition | TextComparison, int] = field(default_factory=dict)
    """Conditions on texts → number of the truth column of each."""
    members: dict[str, tuple[tuple[int | float, ...], str]] = field(default_factory=dict)
    """Name → (values, dtype) of long IN lists."""
    text_attributes: set[str] = field(default_factory=set)  # the attributes that these read
    constants: list[str] | None = field(default=None, kw_only=True)
    """Literals of numbers that conditions take from variables `constant_0` and so on. So queries
    that differ only in them have the same code. None: they stand in the conditions."""
    key_attributes: set[str] = field(default_factory=set, kw_only=True)
    """The attributes of keys by which a table finds events: their conditions are not evaluated."""

    @property
    def attributes_read(self) -> set[str]:
        """All attributes that the conditions so far read, and those of keys."""
        return {*self.attributes} | self.text_attributes | self.key_attributes

    def clause(self, clause: EventClause) -> str:
        """An expression that is true where the clause is TRUE."""
        parts = [self.predicate(predicate) for predicate in clause.predicates]
        return parts[0] if len(parts) == 1 else chained(parts, "|")

    def predicate(self, predicate: core.Predicate) -> str:
        """An expression that is true where the predicate is TRUE."""
        operands = operands_of(predicate)
        if operands[0].type is core.DataType.STRING:
            self.text_attributes |= {
                o.attribute for o in operands if isinstance(o, core.AttributeValue)
            }
            return f"text_{self._text(predicate)}"
        known: dict[str, None] = {}
        for operand in operands:
            self._needs(operand, known)
        if isinstance(predicate, core.NullTest):
            valid = " & ".join(known) or "True"
            return f"({valid})" if predicate.negated else f"(not ({valid}))"
        values = [self._value(operand) for operand in operands]
        match predicate:
            case core.Comparison():
                truth = comparison(predicate, values[0], values[1], self.imports)
            case core.Membership():
                truth = self._membership(predicate, values[0])
            case core.PatternMatch():
                raise AssertionError("LIKE and RLIKE are about texts")
            case core.Quantified():
                raise AssertionError(OF_SEVERAL_EVENTS)
            case _:
                assert_never(predicate)
        return "(" + " & ".join([*known, truth]) + ")"

    def _truth(self, truth: core.Truth) -> str:
        """An expression that is true where a condition within an expression is TRUE."""
        if isinstance(truth, core.Every | core.Some):
            parts = [self._truth(part) for part in truth.parts]
            return chained(parts, "&" if isinstance(truth, core.Every) else "|")
        folded = None if distances_looked_back(truth) else fold_predicate(truth)
        return self.predicate(truth) if folded is None else str(folded)

    # --- numbers ----------------------------------------------------------------------------------

    def _column(self, attribute: str) -> tuple[str, str]:
        """The variables with the value of an attribute, and with the truth that it is not NULL."""
        number = self.attributes.setdefault(attribute, len(self.attributes))
        return f"column_{number}", f"valid_{number}"

    def _needs(self, expression: core.Expression, known: dict[str, None]) -> None:
        """Add to `known` the conditions under which an expression is not NULL."""
        match expression:
            case core.Constant(value=None):
                known["False"] = None
            case core.Constant():
                pass
            case core.AttributeValue():
                known[self._column(expression.attribute)[1]] = None
            case core.Cast() | core.Negation() | core.Absolute() | core.Arithmetic() | core.Call():
                for operand in terms_of(expression):
                    self._needs(operand, known)
                known |= dict.fromkeys(needs(expression, self._value, self.imports))
            case core.Choice():
                sides = [self._known(operand) for operand in expression.operands]
                if all(sides):
                    known[f"({' | '.join(sides)})"] = None
            case core.Conditional():
                found = self._known(expression.otherwise) or "True"
                for asked, then in reversed(expression.branches):
                    found = f"({self._known(then) or 'True'} if {self._truth(asked)} else {found})"
                known[found] = None
            case (
                core.Aggregate()
                | core.OwnCall()
                | core.Previous()
                | core.Variable()
                | core.TotalOf()
                | core.TimeDifference()
                | core.InRowPatterns()
            ):
                raise AssertionError("not a condition on one event")
            case _:
                assert_never(expression)

    def _value(self, expression: core.Expression) -> str:
        """The value of an expression where it is not NULL."""
        match expression:
            case core.Constant(value=None):
                return decimals.constant(0, expression.type, self.imports)
            case core.Constant():
                return self._constant(expression.value, expression.type)
            case core.AttributeValue():
                column, _ = self._column(expression.attribute)
                return in_column(column, expression.type, self.imports)
            case core.Cast() | core.Negation() | core.Absolute() | core.Arithmetic() | core.Call():
                return operation(expression, self._value, self.imports)
            case core.Choice():
                return self._best(expression)
            case core.Conditional():
                found = self._value(expression.otherwise)
                for asked, then in reversed(expression.branches):
                    found = f"({self._value(then)} if {self._truth(asked)} else {found})"
                return found
            case (
                core.Aggregate()
                | core.OwnCall()
                | core.Previous()
                | core.Variable()
                | core.TotalOf()
                | core.TimeDifference()
                | core.InRowPatterns()
            ):
                raise AssertionError("not a condition on one event")
            case _:
                assert_never(expression)

    def _known(self, expression: core.Expression) -> str:
        """When an expression is not NULL; empty: always."""
        known: dict[str, None] = {}
        self._needs(expression, known)
        found = " & ".join(known)
        return f"({found})" if len(known) > 1 else found

    def _best(self, node: core.Choice) -> str:
        """The value of LEAST, GREATEST or COALESCE."""
        first, *others = node.operands
        best, known = self._value(first), self._known(first)
        operator: core.ComparisonOperator = "<" if node.function == "LEAST" else ">"
        for other in others:
            value, there = self._value(other), self._known(other)
            if node.function == "COALESCE":
                takes = f"(not {known})" if known else "False"
            else:
                asked = core.Comparison(operator, other, first, node.span)
                better = comparison(asked, value, best, self.imports)
                takes = f"((not {known}) | {better})" if known else better
                takes = f"({there} & {takes})" if there else takes
            best = f"({value} if {takes} else {best})"
            known = f"({known} | {there})" if known and there else ""
        return best

    def _constant(self, value: object, type: core.DataType) -> str:
        assert value is not None, "what is NULL for every event is folded away"
        if isinstance(value, bool):
            return str(int(value))
        if isinstance(value, float) and type is core.DataType.FLOAT:
            return as_float(self._number(real(value, self.imports)), self.imports)
        if isinstance(value, int):
            return self._number(decimals.constant(value, type, self.imports))
        if isinstance(value, float):
            return self._number(real(value, self.imports))
        return self._number(repr(value))

    def _number(self, text: str) -> str:
        if self.constants is None:
            return text
        self.constants.append(text)
        return f"constant_{len(self.constants) - 1}"

    def _membership(self, predicate: core.Membership, value: str) -> str:
        type = predicate.operand.type
        if len(predicate.values) <= _LONGEST_CHAIN or is_wide(type):
            parts = [f"({value} == {self._constant(item, type)})" for item in predicate.values]
            truth = chained(parts, "|") if parts else "False"
        else:
            dtype = "float64" if type in (core.DataType.FLOAT, core.DataType.DOUBLE) else "int64"
            items = tuple(sorted(item for item in predicate.values if not isinstance(item, str)))
            name = f"VALUES_{len(self.members)}"
            self.members[name] = (items, dtype)
            truth = self.imports.call("is_member", f"{name}_{self.query}", value)
        return f"(not {truth})" if predicate.negated else truth

    # --- texts ------------------------------------------------------------------------------------

    def _text(self, predicate: core.Predicate) -> int:
        return self.texts.setdefault(text_condition(predicate), len(self.texts))


def text_condition(predicate: core.Predicate) -> TextCondition | TextComparison:
    """A condition on the texts of one event, as the runtime evaluates it."""

    def condition(kind: str, operand: core.Expression, *values: str) -> TextCondition:
        return TextCondition(kind, _name(operand), values)

    match predicate:
        case core.NullTest():
            return condition("is_not_null" if predicate.negated else "is_null", predicate.operand)
        case core.PatternMatch():
            pattern = predicate.pattern
            if predicate.operator == "LIKE":
                pattern = like_to_regex(pattern)
            kind = "not_rlike" if predicate.negated else "rlike"
            return condition(kind, predicate.operand, pattern)
        case core.Membership():
            kind = "not_in" if predicate.negated else "in"
            return condition(kind, predicate.operand, *map(str, predicate.values))
        case core.Comparison(left=left, right=right, operator=operator):
            if isinstance(left, core.Constant):
                left, right, operator = right, left, core.MIRRORED[operator]
            if isinstance(right, core.Constant):
                return condition(operator, left, str(right.value))
            return TextComparison(operator, _name(left), _name(right))
        case core.Quantified():
            raise AssertionError(OF_SEVERAL_EVENTS)
        case _:
            assert_never(predicate)


def _name(expression: core.Expression) -> str:
    assert isinstance(expression, core.AttributeValue), "texts have no arithmetic"
    return expression.attribute
