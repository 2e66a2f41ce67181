"""Classes of events → the function that finds the symbol of an event, and the legend of numbers."""

from typing import ClassVar

from celc_runtime.plan.frozen import frozen

from celc.automata.determinize import DetState
from celc.automata.predicates import TypeConditions
from celc.codegen.expressions.conditions import ConditionCode
from celc.codegen.expressions.describe import OTHER, describe_state, describe_symbol
from celc.codegen.text.chains import chained
from celc.codegen.text.escape import comment_text
from celc.codegen.text.imports import Imports
from celc.codegen.text.templates import LegendLine, TemplateView
from celc.diagnostics.deadline import look
from celc.normal.show import show_clauses, show_labels
from celc.plan.program import Program

# conditions on a type up to which one table over all their combinations is small enough
_MAX_IN_TABLE = 14

_STEP = 6  # conditions of one look-up step, where there are more

# conditions on a type up to which symbols are computed without a table (and vectorised)
_FEW_CONDITIONS = 2


@frozen
class ConditionLine:
    """A condition on an event type, and the name of the variable with its truth."""

    name: str
    code: str
    comment: str


@frozen
class TypeCode:
    """The code that finds the symbol of an event of one type."""

    number: int  # the number of the type in the query, from 1
    place: int  # the same number, from 0
    comment: str
    conditions: tuple[ConditionLine, ...]
    lookups: tuple[str, ...]
    """Lines that find the symbol in a table, for a type with more than a few conditions."""


@frozen
class SymbolTable:
    """A constant of the module: symbols by the truths of all conditions on a type."""

    name: str
    value: str


@frozen
class NumberList:
    """A constant of the module: the numbers of a long IN list."""

    name: str
    lines: tuple[str, ...]
    dtype: str


@frozen
class Classifier(TemplateView):
    """The beginning of a query: a legend of its numbers, and the function `classify`.

    `title` names the query, where the module has several. `columns` and `texts` are the numbers of
    the columns of values and of truths that the conditions read. `constants` are the numbers of the
    constants in the tuple that is the function's first argument. `sum` are the lines of an
    expression for the symbol of an event.
    """

    template: ClassVar[str] = "classify"

    number: int
    title: str
    symbols: tuple[LegendLine, ...]
    states: tuple[LegendLine, ...]
    kinds: tuple[LegendLine, ...]
    members: tuple[NumberList, ...]
    tables: tuple[SymbolTable, ...]
    types: tuple[TypeCode, ...]
    columns: range
    texts: range
    constants: range
    sum: tuple[str, ...]


@frozen
class TypesCode:
    """The types of a query, the tables they need, and the terms whose sum is a symbol."""

    types: tuple[TypeCode, ...]
    tables: tuple[SymbolTable, ...]
    terms: tuple[str, ...]


def types_code(program: Program, code: ConditionCode) -> TypesCode:
    """The conditions on each type, written by `code`."""
    types, tables, terms = [], [], []
    for place, conditions in enumerate(program.alphabet.types):
        look()
        type_code, table, type_terms = _type(place, conditions, program, code)
        types.append(type_code)
        tables += [] if table is None else [table]
        terms += type_terms
    return TypesCode(tuple(types), tuple(tables), tuple(terms))


def classifier(
    number: int,
    title: str,
    program: Program,
    symbols: tuple[LegendLine, ...],
    types: TypesCode,
    code: ConditionCode,
    constants: int,
) -> Classifier:
    """The beginning of a query, when all of its conditions have been written by `code`. `constants`
    is the number of constants that the function gets."""
    code.imports.use("BLOCK", "njit")
    if code.attributes:
        code.imports.use("block_of")
    if code.members:
        code.imports.use("np")
    return Classifier(
        number,
        title,
        symbols,
        states=_state_legend(program),
        kinds=_kind_legend(program),
        members=tuple(
            NumberList(f"{name}_{number}", _number_lines(values), dtype)
            for name, (values, dtype) in code.members.items()
        ),
        tables=types.tables,
        types=types.types,
        columns=range(len(code.attributes)),
        texts=range(len(code.texts)),
        constants=range(constants),
        sum=tuple(f"{'+ ' if place else ''}{term}" for place, term in enumerate(types.terms))
        or ("0",),
    )


def symbol_legend(program: Program) -> tuple[LegendLine, ...]:
    """The symbols of a query in words, in their order."""
    by_symbol: dict[int, list[str]] = {}
    for number, symbol in enumerate(program.alphabet.symbols):
        look()
        by_symbol.setdefault(program.tables.symbol_of[number], []).append(
            describe_symbol(program.alphabet, symbol)
        )
    return tuple(
        LegendLine(symbol, comment_text(" | ".join(texts) if symbol else OTHER, limit=80))
        for symbol, texts in sorted(by_symbol.items())
    )


def _state_legend(program: Program) -> tuple[LegendLine, ...]:
    return tuple(
        LegendLine(state, describe_state(program, DetState(state)))
        for state in range(program.tables.states)
    )


def _kind_legend(program: Program) -> tuple[LegendLine, ...]:
    return tuple(
        LegendLine(
            number,
            comment_text(show_labels(kind.marks)) + (", can be the first" if kind.starts else ""),
        )
        for number, kind in enumerate(program.output_kinds)
    )


def _number_lines(values: tuple[int | float, ...]) -> tuple[str, ...]:
    """Long lists of numbers as lines of one text: black takes minutes for a very long tuple."""
    parts = [repr(value) for value in values]
    return tuple(" ".join(parts[at : at + 12]) for at in range(0, len(parts), 12))


# --- one type -------------------------------------------------------------------------------------


def _type(
    place: int, conditions: TypeConditions, program: Program, code: ConditionCode
) -> tuple[TypeCode, SymbolTable | None, list[str]]:
    number = place + 1
    symbols = {
        symbol.truth: program.tables.symbol_of[index]
        for index, symbol in program.alphabet.numbered(conditions.type)
        if program.tables.symbol_of[index]
    }
    comment = comment_text(conditions.type.name)
    # Where no event of the type can matter, its conditions are left out too.
    lines = tuple(
        ConditionLine(
            f"holds_{number}_{bit}",
            " & ".join(map(code.clause, group)),
            f"{comment}: {comment_text(show_clauses(group), limit=60)}",
        )
        for bit, group in enumerate(conditions.groups if symbols else ())
    )
    names = [line.name for line in lines]
    table: SymbolTable | None = None
    lookups: tuple[str, ...] = ()
    terms: list[str] = []
    if symbols and len(lines) <= _FEW_CONDITIONS:
        terms = [
            f"((code == type_{number}){_test(names, truths)}) * {symbol}"
            for symbol, truths in _by_symbol(symbols).items()
        ]
    elif symbols:
        table = _table(f"SYMBOLS_{code.query}_{number}", len(names), symbols, code.imports)
        lookups, found = _lookups(number, table.name, names)
        terms = [f"(code == type_{number}) * {found}"]
    return TypeCode(number, place, comment, lines, lookups), table, terms


def _table(name: str, conditions: int, symbols: dict[int, int], imports: Imports) -> SymbolTable:
    items = ", ".join(f"{truth}: {symbol}" for truth, symbol in symbols.items())
    arguments = (str(conditions), "{" + items + "}")
    if conditions > _MAX_IN_TABLE:
        return SymbolTable(name, imports.call("symbol_steps", *arguments, str(_STEP)))
    return SymbolTable(name, imports.call("symbol_table", *arguments))


def _lookups(number: int, table: str, names: list[str]) -> tuple[tuple[str, ...], str]:
    """Lines that look a symbol up by the truths of the conditions, and the expression for it."""
    truth = f"truth_{number}"
    bits = " + ".join(f"{name} * {1 << bit}" for bit, name in enumerate(names))
    lines = [f"{truth} = {bits}"]
    found = f"{table}[{truth}]"
    if len(names) > _MAX_IN_TABLE:
        for step, shift in enumerate(range(0, len(names), _STEP)):
            mask = (1 << _STEP) - 1
            place = f"{truth} & {mask}"
            if step:
                place = f"{found} * {1 << _STEP} + ({truth} >> {shift} & {mask})"
            found = f"step_{number}_{step}"
            lines.append(f"{found} = {table}[{step}][{place}]")
    return tuple(lines), found


def _by_symbol(symbols: dict[int, int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for truth, symbol in symbols.items():
        found.setdefault(symbol, []).append(truth)
    return found


def _test(names: list[str], truths: list[int]) -> str:
    """A test whether the conditions are true in one of these combinations, each a bit set."""
    if len(truths) == 1 << len(names):
        return ""
    for bit, name in enumerate(names):
        values = {truth >> bit & 1 for truth in truths}
        if len(values) == 1 and 2 * len(truths) == 1 << len(names):
            return f" & {name}" if values == {1} else f" & (not {name})"
    products = [
        " & ".join(name if truth >> bit & 1 else f"(not {name})" for bit, name in enumerate(names))
        for truth in truths
    ]
    return " & " + chained([f"({product})" for product in products], "|")
