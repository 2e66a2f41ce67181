"""Aggregates that the file declares → a function for each aggregate with given attributes.

A function goes through events once: it loads the arguments, computes all right sides of STEP from
the state before, and at the end the RESULT. It returns the value, and whether it is not NULL.

Conditions on single events write an expression twice, once for its value and once for its NULL
(`conditions`). Here IF, LEAST, GREATEST and COALESCE would double the text at each level, so each
of them has its own variables. Names of the query never become identifiers: all are numbered.

Long: what a declaration can say is one language, with conditions in its expressions.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

from celc_runtime.plan import expressions as plan
from celc_runtime.plan.conditions import TextComparison, TextCondition
from celc_runtime.plan.frozen import frozen

from celc.codegen.expressions.conditions import ConditionCode
from celc.codegen.expressions.made_texts import code_of_texts
from celc.codegen.expressions.own_functions import OwnFunctionCode
from celc.codegen.text.chains import chained
from celc.codegen.text.escape import comment_text
from celc.codegen.text.imports import Imports
from celc.codegen.text.templates import TemplateView
from celc.core import formula as core
from celc.core.fold import fold_predicate, is_always_null
from celc.core.made_texts import is_of_texts
from celc.core.traversal import operands_of
from celc.plan.code import code

_Key: TypeAlias = tuple[core.OwnAggregate, tuple[str, ...], tuple[core.DataType, ...]]


@frozen
class FunctionText:
    """The text of a function; `parameters` are the columns that it takes before the events. With
    `of_matches`, SELECT takes it of many matches."""

    name: str
    comment: str
    parameters: tuple[str, ...]
    lines: tuple[str, ...]
    of_matches: bool
    is_made: bool = False  # whether its value is a text that is made, as its bytes
    makes_texts: bool = False  # whether it makes arrays, which kernels around it do not


@dataclass(slots=True)
class OwnFunction:
    """The function of an aggregate of given attributes.

    It takes a value and a truth for each of `columns`, then the truths of `texts`, conditions on
    the attributes `text_attributes` that the runtime evaluates, then the numbers of the texts
    `spelled` and `spellings`, and if there are any, their letters (`order_of_texts`).
    """

    text: FunctionText
    columns: tuple[str, ...]
    texts: tuple[TextCondition | TextComparison, ...]
    text_attributes: frozenset[str]
    spelled: tuple[str, ...] = ()  # text attributes whose texts it computes with
    spellings: tuple[str, ...] = ()  # its own texts beside them

    @property
    def name(self) -> str:
        return self.text.name

    @property
    def is_made(self) -> bool:
        """Whether its value is a text that is made."""
        return self.text.is_made


@frozen
class OwnFunctions(TemplateView):
    """The functions of a query's own aggregates."""

    template: ClassVar[str] = "own_aggregates"

    functions: tuple[FunctionText, ...]


# The variables of conditions on whole label sets.
_VARIABLE = re.compile(
    r"\b(?:(?:column|valid|text|code|rank|spelled|events|place|chosen)_\d+"
    r"|symbol|state|letters|stops)\b"
)


@frozen
class SearchText:
    """The text of a function of SOME or EVERY, or of a condition on texts that are made, with the
    names of its parameters. `makes`: it makes arrays, which kernels around it do not."""

    name: str
    comment: str
    parameters: tuple[str, ...]
    lines: tuple[str, ...]
    makes: bool = False


@frozen
class Searches(TemplateView):
    """The functions of SOME and EVERY in a query's conditions, and of texts that are made."""

    template: ClassVar[str] = "quantified"

    functions: tuple[SearchText, ...]


@dataclass(slots=True)
class OwnAggregateCode:
    """Writes each function once. `query` is the number of the query in its file, with which the
    names begin. `members`: see `ConditionCode`. `calls` writes calls of functions of one's own."""

    query: int
    imports: Imports
    members: dict[str, tuple[tuple[int | float, ...], str]]
    calls: OwnFunctionCode
    functions: dict[_Key, OwnFunction] = field(default_factory=dict)
    searches: dict[tuple[str, ...], SearchText] = field(default_factory=dict)
    """Those functions, by their lines."""

    def search(self, shown: str, lines: Sequence[str], chosen: Sequence[str]) -> str:
        """The call of a function with these lines. Its parameters are the variables that it reads,
        under their names, but those that it chooses itself."""
        key = tuple(lines)
        if key not in self.searches:
            read = dict.fromkeys(_VARIABLE.findall("\n".join(lines)))
            name = f"quantified_{self.query}_{len(self.searches)}"
            parameters = tuple(one for one in read if one not in chosen)
            self.searches[key] = SearchText(name, comment_text(shown), parameters, key)
            self.imports.use("njit")
        found = self.searches[key]
        return f"{found.name}({', '.join(found.parameters)})"

    def of_texts(self, shown: str, lines: Sequence[str]) -> str:
        """The call of a function with these lines, which compares texts that are made: only in a
        function of its own is there memory for them."""
        key = tuple(lines)
        if key not in self.searches:
            read = _read_in("\n".join(lines))
            name = f"texts_{self.query}_{len(self.searches)}"
            self.searches[key] = SearchText(name, comment_text(shown), read, key, makes=True)
            self.imports.use("njit")
        found = self.searches[key]
        return f"{found.name}({', '.join(found.parameters)})"

    def function(self, node: core.Aggregate) -> OwnFunction:
        """The function of an aggregate of these attributes."""
        assert node.own is not None
        key = (node.own, node.attributes, node.read)
        if key not in self.functions:
            self.imports.use("njit", "np")
            name = f"aggregate_{self.query}_{len(self.functions)}"
            makes = node.own.makes_texts
            body = _Body(self.query, self.imports, members=self.members, makes_texts=makes)
            self.functions[key] = body.function(name, *key)
        return self.functions[key]

    def tree(self, node: core.Aggregate) -> plan.OwnAggregate:
        """An aggregate in an expression of SELECT."""
        function = self.function(node)
        function.text = replace(function.text, of_matches=True)
        if function.is_made:
            self.imports.use("with_text")
        of_matches = code(f"{function.name}_of_matches")
        type = node.type.value
        return plan.OwnAggregate(
            of_matches,
            node.label,
            function.columns,
            function.texts,
            type,
            function.spelled,
            function.spellings,
            function.is_made,
        )

    def views(self) -> tuple[TemplateView, ...]:
        """All that it has written, in an order in which it can be read."""
        functions = tuple(function.text for function in self.functions.values())
        searches = tuple(self.searches.values())
        parts = {OwnFunctions(functions): functions, self.calls.view(): self.calls.calls}
        parts[Searches(searches)] = searches
        return tuple(view for view, written in parts.items() if written)


def _read_in(lines: str) -> tuple[str, ...]:
    """The variables that lines of a function read and do not set. Names of the module are functions
    that are called, `np`, and constants in capitals."""
    nodes = [*ast.walk(ast.parse(lines))]
    called = {getattr(one.func, "id", "") for one in nodes if isinstance(one, ast.Call)}
    names = [one for one in nodes if isinstance(one, ast.Name)]
    here = {*called, "np", *(one.id for one in names if isinstance(one.ctx, ast.Store))}
    return tuple({one.id: None for one in names if one.id not in here and not one.id.isupper()})


@dataclass(slots=True)
class _Body(ConditionCode):
    """Writes the body of one function. `names` are the variables of parameters and state: the value
    of each, and whether it is not NULL (empty where it never is). `makes_texts`: a text is its
    bytes, not a number."""

    makes_texts: bool = False
    names: dict[str, tuple[str, str]] = field(default_factory=dict)
    attribute_of: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    indent: str = ""
    spelled: dict[str, int] = field(default_factory=dict)
    spellings: dict[str, int] = field(default_factory=dict)
    _made: dict[int, tuple[str, str]] = field(default_factory=dict)

    # Long: the lines of one function, in their order.
    def function(
        self,
        name: str,
        own: core.OwnAggregate,
        attributes: tuple[str, ...],
        types: tuple[core.DataType, ...],
    ) -> OwnFunction:
        """The function of an aggregate of attributes of these types."""
        state = {one.name: (f"state_{n}", f"known_{n}") for n, one in enumerate(own.state)}
        for one in own.state:
            value, known = state[one.name]
            first = self._zero(one.type)
            if one.first is not None:
                first = self._typed(one.type, self._constant(one.first, one.type))
            self._line(f"{value}, {known} = {first}, {one.first is not None}")
        self._line("for event in events:")
        self.indent = "    "
        columns = self._load(own, attributes, types)
        # The truths of conditions on texts come after the arguments, when all are known.
        here = len(self.lines)
        self.names = {**self.names, **state}
        following = []
        for number, one in enumerate(own.state):
            if one.step == core.Variable(one.name, one.type, own.result.span):
                continue
            known, value = self._settled(one.step)
            self._line(f"has_{number} = {known}")
            typed = self._typed(one.type, value)
            self._line(f"next_{number} = {typed} if has_{number} else {self._zero(one.type)}")
            following.append(number)
        for number in following:
            self._line(f"state_{number}, known_{number} = next_{number}, has_{number}")
        self.lines[here:here] = [
            f"    text_{number} = texts_{number}[event]" for number in range(len(self.texts))
        ]
        self.indent = ""
        self.names = state
        known, value = self._settled(own.result)
        self._line(f"found = {known}")
        self._line(
            f"return {self._typed(own.type, value)} if found else {self._zero(own.type)}, found"
        )
        parameters = [f"{kind}_{n}" for n in range(len(columns)) for kind in ("column", "valid")]
        parameters += [f"texts_{number}" for number in range(len(self.texts))]
        parameters += [f"spelled_{number}" for number in range(len(self.spelled))]
        parameters += [f"spelling_{number}" for number in range(len(self.spellings))]
        parameters += ["letters", "stops"] if self.spelled or self.spellings else []
        comment = comment_text(f"{own.name}({', '.join(attributes)})")
        return OwnFunction(
            FunctionText(
                name,
                comment,
                tuple(parameters),
                tuple(self.lines),
                of_matches=False,
                is_made=self._is_made(own.type),
                makes_texts=self.makes_texts,
            ),
            columns,
            tuple(self.texts),
            frozenset(self.text_attributes),
            tuple(self.spelled),
            tuple(self.spellings),
        )

    def _load(
        self, own: core.OwnAggregate, attributes: tuple[str, ...], types: tuple[core.DataType, ...]
    ) -> tuple[str, ...]:
        """Write the lines that load the arguments of an event, and skip an event where one is NULL.
        Returns the attributes that are read as numbers."""
        columns: list[str] = []
        valid: dict[str, None] = {}
        loads = []
        for number, (parameter, attribute, data_type) in enumerate(
            zip(own.parameters, attributes, types, strict=True)
        ):
            if parameter.type is core.DataType.STRING:
                self.attribute_of[parameter.name] = attribute
                there = core.AttributeValue("", attribute, core.DataType.STRING, own.result.span)
                self.text_attributes.add(attribute)
                text = self._text(core.NullTest(there, True, own.result.span))
                valid[f"texts_{text}[event]"] = None
                continue
            if attribute not in columns:
                columns.append(attribute)
            column = columns.index(attribute)
            raw = f"column_{column}[event]"
            valid[f"valid_{column}[event]"] = None
            self.names[parameter.name] = (f"given_{number}", "")
            if (data_type, parameter.type) == (core.DataType.DATE, core.DataType.TIMESTAMP):
                valid[self.imports.call("begins_at_time", raw)] = None
                raw = self.imports.call("days_to_microseconds", raw)
            elif parameter.type is core.DataType.FLOAT and data_type is not core.DataType.FLOAT:
                raw = self.imports.call("whole_to_float", raw)
            loads.append(f"given_{number} = {self._typed(parameter.type, raw)}")
        self._line(f"if not ({' & '.join(valid)}):")
        self._line("    continue")
        for load in loads:
            self._line(load)
        return tuple(columns)

    def _line(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def _typed(self, data_type: core.DataType, value: str) -> str:
        """A value in the one type that a variable has."""
        if self._is_made(data_type):
            return value
        kinds = {core.DataType.DOUBLE: "float64", core.DataType.FLOAT: "float32"}
        return f"np.{kinds.get(data_type, 'int64')}({value})"

    def _zero(self, data_type: core.DataType) -> str:
        """What stands where a value is NULL."""
        if self._is_made(data_type):
            return self.imports.call("no_text")
        return self._typed(data_type, "0")

    def _is_made(self, data_type: core.DataType) -> bool:
        """Whether values of a type are the bytes of texts."""
        return self.makes_texts and data_type is core.DataType.STRING

    # --- expressions ------------------------------------------------------------------------------

    def _settled(self, expression: core.Expression) -> tuple[str, str]:
        """When an expression is not NULL, and its value then."""
        if is_always_null(expression):
            return "False", self._zero(expression.type)
        known: dict[str, None] = {}
        self._needs(expression, known)
        if isinstance(expression, core.Cast) and expression.type is core.DataType.TIMESTAMP:
            days = self._value(expression.operand)
            known[self.imports.call("begins_at_time", days)] = None
        return " & ".join(known) or "True", self._value(expression)

    def _needs(self, expression: core.Expression, known: dict[str, None]) -> None:
        match expression:
            case core.Constant(value=None):
                known["False"] = None
            case core.Variable() if expression.name in self.attribute_of:
                pass  # an event is skipped where a parameter is NULL
            case core.Variable():
                there = self.names[expression.name][1]
                if there:
                    known[there] = None
            case core.Choice() | core.Conditional():
                known[self._variables(expression)[1]] = None
            case core.Call() if self.makes_texts and is_of_texts(expression):
                for operand in expression.operands:
                    self._needs(operand, known)
            case _:
                ConditionCode._needs(self, expression, known)

    def _value(self, expression: core.Expression) -> str:
        match expression:
            case core.Constant(value=None):
                return self._zero(expression.type)
            case core.Constant(type=core.DataType.STRING):
                return self._constant(expression.value, expression.type)
            case core.Variable() if expression.name in self.attribute_of:
                attribute = self.attribute_of[expression.name]
                number = self.spelled.setdefault(attribute, len(self.spelled))
                return self._text_of_number(f"spelled_{number}[event]")
            case core.Variable():
                return self.names[expression.name][0]
            case core.Choice() | core.Conditional():
                return self._variables(expression)[0]
            case core.Call() if self.makes_texts and is_of_texts(expression):
                return code_of_texts(expression, self._value, self.imports)
            case _:
                return ConditionCode._value(self, expression)

    def _constant(self, value: object, type: core.DataType) -> str:
        if type is not core.DataType.STRING:
            return ConditionCode._constant(self, value, type)
        number = self.spellings.setdefault(str(value), len(self.spellings))
        return self._text_of_number(f"spelling_{number}")

    def _text_of_number(self, number: str) -> str:
        """A text as the aggregate computes with it."""
        if not self.makes_texts:
            return number
        return self.imports.call("spelled_text", "letters", "stops", number)

    def _ordered(self, left: str, operator: str, right: str) -> str:
        """A comparison of two texts, by their bytes."""
        if self.makes_texts:
            return f"({self.imports.call('order_of_made', left, right)} {operator} 0)"
        order = self.imports.call("order_of_texts", "letters", "stops", f"({left},)", f"({right},)")
        return f"({order} {operator} 0)"

    def _variables(self, node: core.Choice | core.Conditional) -> tuple[str, str]:
        """The variables with the value of a node, and with the truth that it is not NULL. The lines
        that set them are written once."""
        if id(node) not in self._made:
            # The declaration keeps the node alive, so no other node gets its number.
            number = len(self._made)
            names = (f"value_{number}", f"found_{number}")
            self._made[id(node)] = names
            if isinstance(node, core.Choice):
                self._choice(node, *names)
            else:
                self._conditional(node, *names)
        return self._made[id(node)]

    def _conditional(self, node: core.Conditional, value: str, found: str) -> None:
        # All of them before the first line, because they write lines of their own.
        asked = [self._truth(one) for one, _ in node.branches]
        ways = [self._settled(one) for one in (*(way for _, way in node.branches), node.otherwise)]
        known, chosen = ways[-1]
        known = f"({known})"
        for number in range(len(asked) - 1, -1, -1):
            taken = f"{value.replace('value', 'taken')}_{number}"
            self._line(f"{taken} = {asked[number]}")
            then_known, then = ways[number]
            known = f"(({then_known}) if {taken} else {known})"
            chosen = f"({then} if {taken} else {chosen})"
        self._line(f"{found} = {known}")
        typed = self._typed(node.type, chosen)
        self._line(f"{value} = {typed} if {found} else {self._zero(node.type)}")

    def _choice(self, node: core.Choice, value: str, found: str) -> None:
        settled = [self._settled(operand) for operand in node.operands]
        self._line(f"{value}, {found} = {self._zero(node.type)}, False")
        for known, other in settled:
            test = f"(not {found})"
            if node.function != "COALESCE":
                sides = (other, value) if node.function == "LEAST" else (value, other)
                is_real = node.type in (core.DataType.FLOAT, core.DataType.DOUBLE)
                less = f"({sides[0]} < {sides[1]})"
                if is_real:
                    less = self.imports.call("less_real", *sides)
                if node.type is core.DataType.STRING:
                    # Texts are looked up where there are texts only.
                    self._line(
                        f"if ({known}) and ({test} or {self._ordered(sides[0], '<', sides[1])}):"
                    )
                    self._line(f"    {value}, {found} = {self._typed(node.type, other)}, True")
                    continue
                test = f"({test} | {less})"
            self._line(f"if ({known}) & {test}:")
            self._line(f"    {value}, {found} = {self._typed(node.type, other)}, True")

    # --- conditions -------------------------------------------------------------------------------

    def _truth(self, truth: core.Truth) -> str:
        match truth:
            case core.Every() | core.Some():
                parts = [self._truth(part) for part in truth.parts]
                return chained(parts, "&" if isinstance(truth, core.Every) else "|")
            case _:
                folded = fold_predicate(truth)
                return self.predicate(truth) if folded is None else str(folded)

    def predicate(self, predicate: core.Predicate) -> str:
        is_text = operands_of(predicate)[0].type is core.DataType.STRING
        if is_text and not all(map(self._is_of_event, operands_of(predicate))):
            return self._computed_texts(predicate)
        if isinstance(predicate, core.NullTest) and not is_text:
            known, _ = self._settled(predicate.operand)
            return f"({known})" if predicate.negated else f"(not ({known}))"
        # Not `super()`: a dataclass with slots is not the class that `super` looks for.
        return ConditionCode.predicate(self, _of_attributes(predicate, self.attribute_of))

    def _is_of_event(self, operand: core.Expression) -> bool:
        """Whether a text is a parameter or one of the declaration's own."""
        if isinstance(operand, core.Variable):
            return operand.name in self.attribute_of
        return isinstance(operand, core.Constant)

    def _computed_texts(self, predicate: core.Predicate) -> str:
        """A condition on texts of STATE, or of functions."""
        settled = [self._settled(operand) for operand in operands_of(predicate)]
        known = " & ".join(f"({one})" for one, _ in settled)
        match predicate:
            case core.NullTest(negated=negated):
                return f"({known})" if negated else f"(not ({known}))"
            case core.Comparison():
                operator = "==" if predicate.operator == "=" else predicate.operator
                asked = self._ordered(settled[0][1], operator, settled[1][1])
            case core.Membership():
                own = [self._constant(one, core.DataType.STRING) for one in predicate.values]
                found = [self._ordered(settled[0][1], "==", one) for one in own]
                asked = f"({' or '.join(found) or 'False'})"
                asked = f"(not {asked})" if predicate.negated else asked
            case core.PatternMatch(operator="LIKE") if self.makes_texts:
                pattern = self._constant(predicate.pattern, core.DataType.STRING)
                asked = self.imports.call("is_like", settled[0][1], pattern)
                asked = f"(not {asked})" if predicate.negated else asked
            case _:
                raise AssertionError("a pattern asks for a parameter")
        # Texts are looked up where there are texts only.
        return f"(({known}) and {asked})"


def _of_attributes(predicate: core.Predicate, attribute_of: Mapping[str, str]) -> core.Predicate:
    """A predicate in which attributes replace the texts among the parameters."""

    def read(operand: core.Expression) -> core.Expression:
        if not isinstance(operand, core.Variable) or operand.type is not core.DataType.STRING:
            return operand
        return core.AttributeValue("", attribute_of[operand.name], operand.type, operand.span)

    match predicate:
        case core.Comparison():
            return replace(predicate, left=read(predicate.left), right=read(predicate.right))
        case core.Membership() | core.PatternMatch() | core.NullTest():
            return replace(predicate, operand=read(predicate.operand))
        case core.Quantified():
            raise AssertionError("the declaration of an aggregate has no labels")
