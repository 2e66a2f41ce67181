"""Calls of functions that the file declares → their source, and a function for each call.

The module holds the source of a given function as text, because a name in it could be one of the
module's own. The runtime makes a namespace of its own for it. For each call a function of the
module collects the arrays: events of a label where an argument of this label is NULL are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

from celc_runtime.plan import expressions as plan
from celc_runtime.plan.frozen import frozen

from celc.codegen.text.escape import comment_text, literal_lines, string_literal
from celc.codegen.text.imports import Imports
from celc.codegen.text.templates import TemplateView
from celc.core import formula as core
from celc.core.given_functions import GivenFunction
from celc.core.show import show_expression
from celc.plan.code import code

_LISTS: Mapping[core.DataType, str] = {
    core.DataType.BOOLEAN: "bool_",
    core.DataType.BYTE: "int8",
    core.DataType.SHORT: "int16",
    core.DataType.INT: "int32",
    core.DataType.LONG: "int64",
    core.DataType.FLOAT: "float32",
    core.DataType.DOUBLE: "float64",
    core.DataType.TIMESTAMP: "int64",
}
"""NumPy's types of the elements of arrays."""
_BITS = {core.DataType.BYTE: 8, core.DataType.SHORT: 16, core.DataType.INT: 32}

_Key: TypeAlias = tuple[
    core.OwnFunction, tuple[tuple[int, str | None, tuple[core.DataType, ...]], ...]
]
"""The function, and for each argument the number of its label, its attribute and its type."""


@frozen
class FunctionSource:
    """A given function in a module: its variable, and literals of its names and its lines."""

    variable: str
    comment: str
    name: str
    entry: str
    lines: tuple[str, ...]


@frozen
class CallText:
    """The text of the function of a call. It takes a value and a truth for each of its arguments,
    then the events of each label. With `of_matches`, SELECT takes it of many matches."""

    name: str
    comment: str
    parameters: str  # of the function
    parameters_of_matches: str
    arguments: str  # of the call for one of the matches
    lines: tuple[str, ...]
    of_matches: bool = False


@frozen
class CallsOfFunctions(TemplateView):
    """The given functions that a query calls, and its calls."""

    template: ClassVar[str] = "own_functions"

    functions: tuple[FunctionSource, ...]
    calls: tuple[CallText, ...]


@dataclass(slots=True)
class OwnFunctionCode:
    """Writes each call once. `query` is the number of the query in its file, with which the names
    begin."""

    query: int
    imports: Imports
    given: tuple[GivenFunction, ...]
    functions: dict[str, FunctionSource] = field(default_factory=dict)
    calls: dict[_Key, CallText] = field(default_factory=dict)

    def call(self, node: core.OwnCall) -> str:
        """The name of the function of a call."""
        return self.calls[self._written(node)].name

    def tree(self, node: core.OwnCall) -> plan.OwnCall:
        """A call in an expression of SELECT."""
        key = self._written(node)
        self.calls[key] = text = replace(self.calls[key], of_matches=True)
        columns = tuple((one.label, one.attributes[0]) for one in node.operands)
        of_matches = code(f"{text.name}_of_matches")
        return plan.OwnCall(of_matches, columns, node.labels, node.type.value)

    def digests(self) -> tuple[tuple[str, str], ...]:
        """The names of the functions that are called, and digests of what they compute."""
        called = sorted(self.functions)
        return tuple((name, self._given(name).digest) for name in called)

    def _given(self, name: str) -> GivenFunction:
        return next(one for one in self.given if one.name == name)

    def view(self) -> CallsOfFunctions:
        return CallsOfFunctions(tuple(self.functions.values()), tuple(self.calls.values()))

    def _written(self, node: core.OwnCall) -> _Key:
        labels = node.labels
        key = (
            node.function,
            tuple((labels.index(one.label), one.attribute, one.read) for one in node.operands),
        )
        if key not in self.calls:
            self.imports.use("njit", "np", "own_function")
            self.calls[key] = self._text(node, self._function(node.function.name))
        return key

    def _function(self, name: str) -> str:
        """The variable of a given function."""
        if name not in self.functions:
            given = self._given(name)
            self.functions[name] = FunctionSource(
                f"own_function_{self.query}_{len(self.functions)}",
                comment_text(name),
                string_literal(name),
                string_literal(given.entry),
                tuple(literal_lines(given.source)),
            )
        return self.functions[name].variable

    def _text(self, node: core.OwnCall, variable: str) -> CallText:
        labels, lines, arguments = node.labels, list[str](), dict[int, str]()
        for number, label in enumerate(labels):
            there: dict[str, None] = {}
            puts = []
            for place, (one, parameter) in enumerate(
                zip(node.operands, node.function.parameters, strict=True)
            ):
                if one.label != label:
                    continue
                kind = _LISTS[parameter]
                lines.append(f"list_{place} = np.empty(len(events_{number}), np.{kind})")
                there[f"valid_{place}[event]"] = None
                value = self._element(f"column_{place}[event]", one.read[0], parameter, there)
                puts.append(f"list_{place}[size_{number}] = {value}")
                arguments[place] = f"list_{place}[:size_{number}]"
            lines += [
                f"size_{number} = 0",
                f"for event in events_{number}:",
                f"    if {' & '.join(there)}:",
                *(f"        {put}" for put in puts),
                f"        size_{number} += 1",
            ]
        given = ", ".join(arguments[place] for place in range(len(node.operands)))
        lines += [f"found = {variable}({given})", *_result(node.function.type)]
        columns = [f"{kind}_{n}" for n in range(len(node.operands)) for kind in ("column", "valid")]
        places = range(len(labels))
        events = (f"events_{n}" for n in places)
        offsets = (f"offsets_{n}" for n in places)
        of_match = (f"range(offsets_{n}[match], offsets_{n}[match + 1])" for n in places)
        return CallText(
            f"own_call_{self.query}_{len(self.calls)}",
            comment_text(show_expression(node)),
            ", ".join([*columns, *events]),
            ", ".join([*columns, *offsets, "values"]),
            ", ".join([*columns, *of_match]),
            tuple(lines),
        )

    def _element(
        self, raw: str, read: core.DataType, parameter: core.DataType, there: dict[str, None]
    ) -> str:
        """The element of an array that a raw value of an attribute becomes; `there` gets what must
        hold of it."""
        if parameter is core.DataType.BOOLEAN:
            return f"{raw} != 0"
        if (read, parameter) == (core.DataType.DATE, core.DataType.TIMESTAMP):
            there[self.imports.call("begins_at_time", raw)] = None
            return self.imports.call("days_to_microseconds", raw)
        if parameter is core.DataType.FLOAT and read is not core.DataType.FLOAT:
            return self.imports.call("whole_to_float", raw)
        return raw


def _result(type: core.DataType) -> list[str]:
    """The lines that return what a function found."""
    if type is core.DataType.BOOLEAN:
        return ["return found"]
    if type in (core.DataType.FLOAT, core.DataType.DOUBLE):
        return [f"return np.{_LISTS[type]}(found)"]
    lines = []
    if type in _BITS:
        bound = 1 << (_BITS[type] - 1)
        lines = [
            f"if found < {-bound} or found >= {bound}:",
            f'    raise OverflowError("its result does not fit into {type.value}")',
        ]
    return [*lines, "return np.int64(found)"]
