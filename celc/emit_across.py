"""Conditions across events → what the templates are given: definitions, checks and joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from celc.emit_checks import CheckCode, EventCode, roles_later
from celc.emit_choices import SET_FUNCTIONS, ChoiceCode
from celc.emit_conditions import ConditionCode
from celc.emit_definition import DefinitionCode
from celc.emit_joins import ROW_FUNCTIONS
from celc.escape import string_literal, tuple_text
from celc.normal_form import Event, shown
from celc.program import Program
from celc.strategy import ByDefinition, Checked

View = dict[str, Any]


def join_names(views: Sequence[View]) -> list[str]:
    """What keyed updates use of the module `joins`."""
    keyed = [view for view in views if view["joins"]]
    names = {"AHEAD", "fetch_ahead", "pile_at"}
    text = repr([(view["branches"], view["joins"]) for view in keyed])
    called = {name for name in ROW_FUNCTIONS if f" {name}(" in text}
    return sorted(names | called) if keyed else []


def definition_view(
    number: int, program: Program, listing: ByDefinition, code: ConditionCode
) -> View:
    """The definition of a query; what it reads is added to what conditions read."""
    choices = ChoiceCode(number, members=code.members)
    writer = DefinitionCode(number, program.alphabet, program.tables.symbol_of, choices)
    selects = program.query.strategy not in ("ALL", "ANY")
    formula = writer.of(listing.form, top=selects)
    code.read |= _read_by(choices)
    functions = {name for name in choices.helpers if name in SET_FUNCTIONS}
    return {
        "formula": formula,
        "conditions": list(writer.conditions.values()),
        "constructors": writer.constructors | ({"Condition"} if writer.conditions else set()),
        "helpers": choices.helpers - functions,
        "functions": functions,
        **_remembers_view(choices),
        "sees_all": listing.sees_all,
    }


def checks_view(number: int, program: Program, checks: Checked, code: ConditionCode) -> View:
    """What is checked while matches are listed; what it reads is added to what conditions read."""
    choices = EventCode(number, members=code.members)
    # Both read the same columns.
    sets = ChoiceCode(
        number,
        choices.attributes,
        choices.texts,
        choices.members,
        choices.helpers,
        choices.text_attributes,
        codes=choices.codes,
        ranks=choices.ranks,
    )
    writer = CheckCode(choices, sets, program.kind_bits, later=roles_later(program.tables))
    lines = writer.lines(checks.clauses)
    complete_lines = writer.complete_lines(checks.clauses)
    for place, absent in enumerate(checks.absent):
        complete_lines += writer.absent_lines(place, absent)
    code.read |= _read_by(choices)
    functions = {name for name in choices.helpers if name in SET_FUNCTIONS}
    if complete_lines:
        functions.add("events_of_role")
    kinds = program.tables.kinds
    return {
        "lines": lines,
        "complete_lines": complete_lines,
        "absent": [_symbols_of(absent.events, program) for absent in checks.absent],
        "states": writer.states,
        "roles": writer.roles_of(kinds),
        "kind_bits": program.kind_bits,
        "kind_mask": (1 << program.kind_bits) - 1,
        "helpers": choices.helpers - functions,
        "functions": functions,
        **_remembers_view(choices, symbols=bool(checks.absent)),
        "supports": tuple_text(str(bool(shown(frozenset(kind.marks)))) for kind in kinds),
        "strategy": string_literal(checks.selector),
        "distinct": checks.distinct,
    }


def _symbols_of(events: Sequence[Event], program: Program) -> list[bool]:
    """For each symbol of the kernel whether its events are among some."""
    alphabet, symbol_of = program.alphabet, program.tables.symbol_of
    found = {
        symbol_of[symbol]
        for event in events
        for symbol in alphabet.matching(event.type, event.clauses)
    }
    return [symbol in found for symbol in range(max(symbol_of) + 1)]


def _remembers_view(choices: ChoiceCode, *, symbols: bool = False) -> View:
    """What is remembered of past events, and what the columns of it are called in conditions."""
    columns = [
        f"{kind}_{n}" for n in range(len(choices.attributes)) for kind in ("column", "valid")
    ]
    for kind, names in (("text", choices.texts), ("code", choices.codes), ("rank", choices.ranks)):
        columns += [f"{kind}_{n}" for n in range(len(names))]
    if symbols:
        columns.append("symbol")
    return {
        "columns": columns,
        "remembers": {
            "columns": tuple_text(map(string_literal, choices.attributes)),
            "texts": tuple_text(choices.texts),
            "codes": tuple_text(map(string_literal, choices.codes)),
            "ranks": tuple_text(map(string_literal, choices.ranks)),
            **({"symbols": True} if symbols else {}),
        },
    }


def _read_by(choices: ChoiceCode) -> set[str]:
    return {*choices.attributes, *choices.codes} | choices.text_attributes
