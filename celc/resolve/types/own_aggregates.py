"""Aggregates that a file declares: their names, types and expressions.

The expressions are those of conditions over other names: parameters and the variables of STATE
replace attributes of labels. So `expressions` and `conditions` resolve them, and ask the functions
here about names and calls.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from celc_runtime.values.functions import FUNCTIONS as TABLE
from celc_runtime.values.functions import Function

from celc.core import fold
from celc.core import formula as core
from celc.core.answers import Answers
from celc.core.made_texts import OF_TEXTS, is_of_texts
from celc.core.traversal import nodes_of, operands_of, predicates_of
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import aggregates as messages
from celc.diagnostics.messages import types
from celc.diagnostics.messages.functions import FUNCTIONS
from celc.diagnostics.messages.totals import TOTALS
from celc.diagnostics.source import Span
from celc.parse import syntax, trees
from celc.resolve.schema import Declarations, Schema
from celc.resolve.scopes import Frame
from celc.resolve.types import functions as calls
from celc.resolve.types.between import folded, has_kernel, never_null
from celc.resolve.types.conditions import condition
from celc.resolve.types.conversions import Misfit, common_type, convert, is_null, meeting_type
from celc.resolve.types.expressions import AGGREGATES, Site, expression, numeric
from celc.resolve.types.written import type_of_written

Part = Literal["STATE", "STEP", "RESULT"]

IN_AGGREGATES = ("ABS", "LEAST", "GREATEST", "COALESCE", "IF")
_COMPUTED = (
    *(core.DataType.BOOLEAN, core.DataType.STRING, core.DataType.INTERVAL),
    *(*core.NUMBERS, *core.TIMES),
)
_FORMS = {
    "ABS": "ABS(a - b)",
    "LEAST": "LEAST(low, a)",
    "GREATEST": "GREATEST(high, a)",
    "COALESCE": "COALESCE(last, a)",
}
_NO_STREAMS = Schema(Declarations({}, {}, frozenset(), {}), (), (), {}, {}, {}, frozenset(), {})


def _makes_texts(node: syntax.AggregateDeclaration, found: Diagnostics) -> bool:
    """Whether a declaration calls functions of texts, or casts to a text."""

    def makes(one: object) -> bool:
        if isinstance(one, syntax.Cast):
            # What is wrong with the type is reported where the cast is resolved.
            return type_of_written(one.type, Diagnostics(found.source)) is core.DataType.STRING
        return isinstance(one, syntax.Call) and one.function.text.upper() in OF_TEXTS

    return any(map(makes, trees.nodes_of((node.steps, node.result))))


def declare_aggregates(
    nodes: Iterable[syntax.AggregateDeclaration], found: Diagnostics
) -> Mapping[str, core.OwnAggregate | None]:
    """The aggregates of a file by name; of two with one name the first counts. None for a wrong
    declaration, which has been reported. Its calls are not judged."""
    declared: dict[str, core.OwnAggregate | None] = {}
    places: dict[str, Span] = {}
    nodes = tuple(nodes)
    called = frozenset(node.name.text for node in nodes)
    for node in nodes:
        name, span = node.name.text, node.name.span
        given = frozenset(one.name.text for one in node.parameters)
        answers = Answers(
            given, given | {one.declared.name.text for one in node.state}, _makes_texts(node, found)
        )
        own = _Declaration(node, called, found, answers).resolved()
        if name in declared or name.upper() in (*FUNCTIONS, *IN_AGGREGATES, *TOTALS):
            found.add(messages.taken_name(name, span, places.get(name)))
        elif name not in declared:
            declared[name], places[name] = own, span
    return declared


@dataclass(slots=True)
class Declared:
    """The names that the expressions of one part of a declaration can use."""

    part: Part
    variables: Mapping[str, core.DataType | None]
    """Parameters and STATE, as far as they can stand in `part`; None: its type is wrong."""
    hidden: frozenset[str]  # names that have a meaning only in other parts
    aggregate: str  # the name of the aggregate
    aggregates: frozenset[str]  # those of the file
    answers: Answers  # those of LIKE and RLIKE

    def value(
        self,
        node: syntax.OfSite,
        site: Site,
    ) -> core.Expression | None:
        """The meaning of a name or a call in the declaration of an aggregate."""
        match node:
            case syntax.Attribute(label=None):
                return self._variable(node.attribute, site)
            case syntax.Attribute():
                assert node.label is not None
                self.no_label(node.label.text, node.span, site)
                return None
            case syntax.Call():
                return self._call(node, site)
            case syntax.CallOfAll():
                called = node.function
                site.found.add(
                    messages.function_in_aggregate(called.text, self.aggregate, called.span)
                )
                return None
            case syntax.Conditional():
                return self._conditional(node, site)
            case syntax.Cast():
                operand = expression(node.operand, site)
                return self._calculated(calls.cast_to(operand, node, site.found), site)
            case _:
                site.found.add(messages.not_in_aggregate(syntax.word_of(node), node.span))
                return None

    def no_label(self, label: str, span: Span, site: Site) -> None:
        site.found.add(messages.label_in_aggregate(label, self.variables, span))

    def pattern(self, asked: core.PatternMatch) -> core.Truth:
        return self.answers.truth(asked)

    def _variable(self, name: syntax.Name, site: Site) -> core.Expression | None:
        if name.text in self.variables:
            data_type = self.variables[name.text]
            return None if data_type is None else core.Variable(name.text, data_type, name.span)
        if self.part == "STATE":
            site.found.add(messages.state_before(name.text, name.span))
        elif name.text in self.hidden:
            site.found.add(messages.no_parameter_here(name.text, self.part, name.span))
        else:
            site.found.add(
                messages.unknown_variable(name.text, self.part, self.variables, name.span)
            )
        return None

    def _call(self, node: syntax.Call, site: Site) -> core.Expression | None:
        name = node.function.text.upper()
        is_of_positions = node.function.text in self.aggregates or name in FUNCTIONS
        if name not in IN_AGGREGATES and is_of_positions:
            called, span = node.function.text, node.function.span
            site.found.add(messages.function_in_aggregate(called, self.aggregate, span))
            return None
        if name not in (*IN_AGGREGATES, *TABLE):
            slice_of = site.found.source.slice
            given = [slice_of(one.span) for one in (node.argument, *node.more)]
            name, span = node.function.text, node.function.span
            calculated = (one.name for one in TABLE.values() if one.kernel)
            functions = (*IN_AGGREGATES, *calculated, *OF_TEXTS)
            site.found.add(messages.unknown_function(name, functions, span, given, node.span))
            return None
        if node.distinct or node.prior:
            site.found.add(
                messages.misplaced_distinct(name, None, node.span)
                if node.distinct
                else types.misplaced_prior(name, AGGREGATES, node.span)
            )
            return None
        if name not in IN_AGGREGATES:
            return self._of_values(TABLE[name], node, site)
        arguments = (node.argument, *node.more)
        least, most = {"ABS": (1, 1), "COALESCE": (1, None)}.get(name, (2, None))
        if len(arguments) < least or (most is not None and len(arguments) > most):
            wanted = "one argument" if most == 1 else f"{least} or more arguments"
            form = _FORMS[name]
            site.found.add(messages.number_of_arguments(name, wanted, form, node.span))
            return None
        if name == "ABS":
            operand = numeric("ABS", node.argument, site)
            if operand is None or is_null(operand):
                return operand
            return core.Absolute(operand, operand.type, node.span)
        operands = [expression(one, site) for one in arguments]
        known = [one for one in operands if one is not None]
        if len(known) < len(operands):
            return None
        data_type = self._common_type(known, node.span, site)
        if data_type is None:
            return None
        chosen = tuple(convert(one, data_type) for one in known)
        function: Literal["LEAST", "GREATEST", "COALESCE"]
        function = "LEAST" if name == "LEAST" else "GREATEST"
        return core.Choice(
            function if name != "COALESCE" else "COALESCE", chosen, data_type, node.span
        )

    def _of_values(
        self, function: Function, node: syntax.Call, site: Site
    ) -> core.Expression | None:
        """A call of a function of the table."""
        arguments = (node.argument, *node.more)
        if not calls.has_number(function, len(arguments), node.span, site.found):
            return None
        operands = [expression(one, site) for one in arguments]
        known = [one for one in operands if one is not None]
        if len(known) < len(operands):
            return None
        found = calls.called(function, known, node.zone, node.span, site.found)
        return self._calculated(found, site)

    def _calculated(self, value: core.Expression | None, site: Site) -> core.Expression | None:
        """A value for which there is code; None after an error."""
        value = None if value is None else folded(value)
        if isinstance(value, core.Call) and not (has_kernel(value) or is_of_texts(value)):
            text = site.found.source.slice(value.span)
            site.found.add(messages.not_calculated(text, self.aggregate, value.span))
            return None
        return None if value is None else never_null(value)

    def _conditional(self, node: syntax.Conditional, site: Site) -> core.Expression | None:
        null = core.Constant(None, core.DataType.BOOLEAN, node.span)
        truths = [condition(asked, site) for asked, _ in node.branches]
        found = [expression(value, site) for _, value in node.branches]
        found.append(null if node.otherwise is None else expression(node.otherwise, site))
        asked = [one for one in truths if one is not None]
        values = [one for one in found if one is not None]
        if len(asked) < len(truths) or len(values) < len(found):
            return None
        data_type = self._common_type(values, node.span, site)
        if data_type is None:
            return None
        *ways, otherwise = (convert(one, data_type) for one in values)
        branches = tuple(zip(asked, ways, strict=True))
        return core.Conditional(branches, otherwise, data_type, node.span)

    def _common_type(
        self, operands: list[core.Expression], span: Span, site: Site
    ) -> core.DataType | None:
        data_type = meeting_type(operands)
        if isinstance(data_type, Misfit):
            other = operands[data_type.number].type.value
            site.found.add(types.compared_types(data_type.before.value, other, span))
            return None
        if data_type is None:
            site.found.add(types.two_nulls(span))
        return data_type


@dataclass(slots=True)
class _Declaration:
    """Resolves one declaration; `called` are the names of all aggregates."""

    node: syntax.AggregateDeclaration
    called: frozenset[str]
    found: Diagnostics
    answers: Answers

    def resolved(self) -> core.OwnAggregate | None:
        """The aggregate; None where something in it is wrong, which is reported."""
        node, before = self.node, len(self.found.items)
        places: dict[str, Span] = {}
        parameters: dict[str, core.DataType | None] = {}
        for declared in node.parameters:
            self._declare(declared, places, parameters)
        state: dict[str, core.DataType | None] = {}
        firsts: dict[str, core.Constant | None] = {}
        for one in node.state:
            name = one.declared.name.text
            is_new = name not in places
            self._declare(one.declared, places, state if is_new else {})
            if is_new:
                firsts[name] = self._first(one, state[name])
        steps = self._steps(state, parameters)
        result_type = self._declared_type(node.type)
        result = self._value(
            node.result, "RESULT", state, frozenset(parameters), "the aggregate", result_type
        )
        self._refuse_regexes([*steps.values(), result])
        if any(item.severity == "error" for item in self.found.items[before:]) or result is None:
            return None
        variables = []
        for name, data_type in state.items():
            first = firsts[name]
            assert data_type is not None
            assert first is not None
            step = steps.get(name) or core.Variable(name, data_type, node.name.span)
            variables.append(core.StateVariable(name, data_type, first.value, step))
        given = tuple(
            core.AttributeDeclaration(name, data_type)
            for name, data_type in parameters.items()
            if data_type is not None
        )
        state_with_answers = self.answers.state(variables)
        makes_texts = self.answers.makes_texts
        return core.OwnAggregate(node.name.text, given, state_with_answers, result, makes_texts)

    def _refuse_regexes(self, values: Iterable[core.Expression | None]) -> None:
        """Report RLIKE of texts that are made."""
        if not self.answers.makes_texts:
            return
        nodes = [one for value in values if value is not None for one in nodes_of(value)]
        asked = [
            one
            for node in nodes
            if isinstance(node, core.Conditional)
            for truth, _ in node.branches
            for one in predicates_of(truth)
        ]
        for one in asked:
            is_regex = isinstance(one, core.PatternMatch) and one.operator == "RLIKE"
            if is_regex and not self.answers.is_of_event(operands_of(one)[0]):
                self.found.add(messages.regex_of_made(self.node.name.text, one.span))

    def _declare(
        self,
        declared: syntax.AttributeDeclaration,
        places: dict[str, Span],
        into: dict[str, core.DataType | None],
    ) -> None:
        name = declared.name
        data_type = self._declared_type(declared.type)
        if name.text in places:
            first = places[name.text]
            self.found.add(messages.taken_variable(name.text, name.span, first))
        else:
            places[name.text], into[name.text] = name.span, data_type

    def _declared_type(self, node: syntax.WrittenType) -> core.DataType | None:
        data_type = type_of_written(node, self.found)
        if data_type is None or data_type in _COMPUTED:
            return data_type
        self.found.add(messages.type_in_aggregate(data_type.value, node.span))
        return None

    def _first(
        self, declared: syntax.StateDeclaration, data_type: core.DataType | None
    ) -> core.Constant | None:
        """The value that a variable of STATE begins with."""
        name = declared.declared.name.text
        value = self._value(declared.value, "STATE", {}, frozenset(), f"{name!r}", data_type)
        if value is None or data_type is None:
            return None
        assert fold.is_constant(value), "no name has a meaning there"
        return core.Constant(fold.evaluate(value), data_type, value.span)

    def _steps(
        self,
        state: Mapping[str, core.DataType | None],
        parameters: Mapping[str, core.DataType | None],
    ) -> dict[str, core.Expression | None]:
        steps: dict[str, core.Expression | None] = {}
        places: dict[str, Span] = {}
        for step in self.node.steps:
            name = step.name.text
            if name in parameters and name not in state:
                self.found.add(messages.no_parameter_here(name, "STEP", step.name.span))
            elif name not in state:
                self.found.add(messages.unknown_variable(name, "STEP", state, step.name.span))
            elif name in places:
                self.found.add(messages.repeated_step(name, step.name.span, places[name]))
            places.setdefault(name, step.name.span)
            known = {**parameters, **state}
            wanted = state.get(name)
            value = self._value(step.value, "STEP", known, frozenset(), f"{name!r}", wanted)
            steps.setdefault(name, value)
        return steps

    def _value(
        self,
        node: syntax.Expression,
        part: Part,
        known: Mapping[str, core.DataType | None],
        hidden: frozenset[str],
        what: str,
        wanted: core.DataType | None,
    ) -> core.Expression | None:
        """An expression in the type that is wanted of it."""
        own_name = self.node.name.text
        unseen = hidden - known.keys()
        declared = Declared(part, known, unseen, own_name, self.called, self.answers)
        site = Site(
            _NO_STREAMS,
            Frame({}, None, None),
            {},
            self.found,
            "filter",
            condition,
            declared=declared,
        )
        value = expression(node, site)
        if value is None or wanted is None:
            return None
        if not is_null(value) and common_type(value.type, wanted) is not wanted:
            text = self.found.source.slice(node.span)
            self.found.add(
                messages.value_type(what, value.type.value, wanted.value, text, node.span)
            )
            return None
        return convert(value, wanted)
