"""Correlated forms → the text of their definition, for `celc_runtime.engine.definition.nodes`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from celc_runtime.plan.frozen import frozen

from celc.automata.predicates import Alphabet
from celc.codegen.correlated.choices import ChoiceCode
from celc.codegen.text.escape import comment_text, string_literal, string_tuple, tuple_text
from celc.codegen.text.templates import LegendLine
from celc.core.formula import Clause, Window
from celc.core.show import show_predicate
from celc.core.terms import labels_in_order
from celc.normal import normal_form as lp
from celc.normal.normal_form import EventClause, NormalForm
from celc.normal.rewrite import clause_on_type
from celc.normal.traversal import types_of


@frozen
class ConditionFunction:
    """A function that is true of a choice of events for the labels of a condition.

    Its `parameters` are the remembered columns, then for each label its events and, if the
    condition chooses one of them, the place of the chosen event. `constant` is the name of the
    `Condition` that `constructor` makes of the function.
    """

    function: str
    parameters: str
    code: str
    comment: str
    labels: tuple[LegendLine, ...]
    constant: str
    constructor: str


@dataclass(slots=True)
class DefinitionCode:
    """Writes a form as constructor calls; collects the functions of its conditions.

    `number` is that of the query in its file. `symbol_of` is the kernel's symbol of each symbol of
    the alphabet; here no two symbols share one. `windows` are the numbers of windows of parts.
    """

    number: int
    alphabet: Alphabet
    symbol_of: tuple[int, ...]
    choices: ChoiceCode
    windows: Mapping[Window, int]
    conditions: dict[Clause, ConditionFunction] = field(default_factory=dict)

    def of(self, form: NormalForm, *, top: bool = False) -> str:
        """A form as an expression. With `top`, a selector at its top is that of SELECT."""
        match form:
            case lp.Event():
                symbols = self._symbols(self.alphabet.matching(form.type, form.clauses))
                return self._call("OneEvent", symbols, string_tuple(form.labels))
            case lp.Sequence():
                text = self.of(form.operands[0])
                for following, contiguous in zip(form.operands[1:], form.contiguous, strict=True):
                    text = self._call("Then", text, self.of(following), repr(contiguous))
                return text
            case lp.Iteration():
                bounds = () if (form.least, form.most) == (1, None) else (form.least, form.most)
                arguments = map(repr, (form.contiguous, *bounds))
                return self._call("Rounds", self.of(form.operand), *arguments)
            case lp.Disjunction():
                return self._call("Alternatives", tuple_text(map(self.of, form.operands)))
            case lp.Conjunction():
                return self._call("SameOfBoth", self.of(form.left), self.of(form.right))
            case lp.All():
                return self._call("UnionOfBoth", self.of(form.left), self.of(form.right))
            case lp.Unless():
                sides = (self.of(form.left), self.of(form.right))
                return self._call("Without", *sides, string_tuple(form.sees))
            case lp.Absence():
                parts = (self.of(form.left), self.of(form.middle), self.of(form.right))
                return self._call("NotBetween", *parts, string_tuple(form.sees))
            case lp.ThenFirst():
                return self._first(form)
            case lp.Selected():
                operand = self.of(form.operand)
                return self._call("ChosenBy", string_literal(form.strategy), operand, repr(top))
            case lp.Relabel():
                operand = self.of(form.operand, top=top)
                return self._call("Relabelled", operand, tuple_text(map(_change, form.changes)))
            case lp.Where():
                fact = self._fact(form.operand, form.fact)
                return self._call("WhereFact", self.of(form.operand), fact)
            case lp.Correlated():
                conditions = tuple_text(map(self._condition, form.clauses))
                return self._call(
                    "Satisfying", self.of(form.operand), conditions, string_tuple(form.own)
                )
            case lp.Within():
                return self._call("Fitting", self.of(form.operand), str(self.windows[form.window]))
            case lp.AbsenceBefore():
                operand, absent = self.of(form.operand), self.of(form.absent)
                length = str(self.windows[form.length])
                return self._call("NotBefore", operand, absent, length, string_tuple(form.sees))
            case lp.AbsenceAfter():
                operand, absent = self.of(form.operand), self.of(form.absent)
                length, sees = str(self.windows[form.length]), string_tuple(form.sees)
                from_start = repr(form.from_start)
                return self._call("NotAfter", operand, absent, length, from_start, sees)
            case lp.MarkedEnds():
                raise AssertionError("not in what is run by definition")
            case lp.Scope():
                return self._call("InScope", self.of(form.operand), string_tuple(form.labels))
            case _:
                assert_never(form)

    def _first(self, form: lp.ThenFirst) -> str:
        left, chosen, absent, gap = (
            "None" if part is None else self.of(part)
            for part in (form.left, form.chosen, form.absent, form.gap)
        )
        labels = (form.sees, form.around, form.own, form.gap_sees, form.gap_rounds)
        seen = map(string_tuple, labels)
        bounds = (repr(form.least), repr(form.most))
        return self._call("ThenFirst", left, chosen, *bounds, absent, gap, *seen)

    def _call(self, constructor: str, *arguments: str) -> str:
        return self.choices.imports.call(constructor, *arguments)

    def _symbols(self, found: tuple[int, ...]) -> str:
        return tuple_text(str(self.symbol_of[symbol]) for symbol in found)

    def _condition(self, clause: Clause) -> str:
        if clause not in self.conditions:
            self.conditions[clause] = self._function(clause)
        return self.conditions[clause].constant

    def _function(self, clause: Clause) -> ConditionFunction:
        labels = labels_in_order(clause)
        name = f"condition_{self.number}_{len(self.conditions)}"
        chosen = len(clause.labels)
        parameters = ["past"]
        for number in range(len(labels)):
            parameters += [f"events_{number}", *([f"place_{number}"] if number < chosen else [])]
        return ConditionFunction(
            name,
            ", ".join(parameters),
            self.choices.of_clause(clause),
            comment_text(" OR ".join(map(show_predicate, clause.predicates))),
            tuple(LegendLine(number, comment_text(label)) for number, label in enumerate(labels)),
            name.upper(),
            self._call("Condition", name, string_tuple(labels), str(chosen)),
        )

    def _fact(self, form: NormalForm, fact: lp.Fact) -> str:
        match fact:
            case lp.Not():
                return f'("not", {self._fact(form, fact.fact)})'
            case lp.AnyOf():
                return tuple_text(['"any"', *(self._fact(form, part) for part in fact.facts)])
            case lp.SomeEvent():
                symbols = self._satisfying(form, fact.label, fact.clause)
                return f'("some", {string_literal(fact.label)}, {symbols}, {fact.holds})'
            case lp.EndEvent():
                symbols = self._satisfying(form, fact.label, fact.clause)
                kind = string_literal(fact.end.lower())
                return f"({kind}, {string_literal(fact.label)}, {symbols})"
            case lp.CountOf():
                return f'("count", {string_literal(fact.label)}, {fact.truths!r})'
            case _:
                assert_never(fact)

    def _satisfying(self, form: NormalForm, label: str, clause: EventClause) -> str:
        found: list[int] = []
        for event_type in types_of(form, label):
            there = clause_on_type(clause, event_type)
            if there is not False:
                asked = () if there is True else (there,)
                found += self.alphabet.matching(event_type, asked)
        return self._symbols(tuple(found))


def _change(change: lp.LabelChange) -> str:
    match change:
        case lp.AddLabel():
            return string_tuple(("add", change.label))
        case lp.RenameLabel():
            return string_tuple(("rename", change.old, change.new))
        case lp.KeepLabels():
            return string_tuple(("keep", *change.labels))
        case lp.KeepSupport() | lp.AddRole() | lp.AddToAll():
            raise AssertionError("not in what is run by definition")
        case _:
            assert_never(change)
