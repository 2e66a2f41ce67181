"""The stages of a compilation, in order; every stage's result is kept, so that it can be shown.

text → syntax tree → core formulas → LP-normal form → CEA → I/O-deterministic CEA → transition
tables → module text. Each stage is a pure function of the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from celc.automaton import Automaton
from celc.construct import construct
from celc.determinize import DeterministicAutomaton, determinize
from celc.emit import Compiled, emit_module
from celc.errors import CelError, Diagnostic, Diagnostics
from celc.first_order import read_first_order
from celc.formula import Query
from celc.minimise import minimise
from celc.normal_form import NormalForm
from celc.normalize import normalize
from celc.parse import parse
from celc.piles import plan_straight_line
from celc.predicates import Alphabet, symbol_classes
from celc.resolve import resolve
from celc.source import Source
from celc.tables import Tables, tabulate, with_starts_apart

DEFAULT_MAX_STATES = 2000


@dataclass(frozen=True, slots=True)
class Options:
    """Choices that a caller makes besides the query.

    `order_by` None: the order is WITHIN's attribute, if it has one. `tiebreak`: columns that tell
    apart events which are equal in the order columns; they need not be declared. `first_order`:
    labels made with AS are read as in the first paper.
    """

    order_by: tuple[str, ...] | None = None
    tiebreak: tuple[str, ...] = ()
    max_states: int = DEFAULT_MAX_STATES
    first_order: bool = False


@dataclass(frozen=True, slots=True)
class Stages:
    """What every stage made of one query."""

    query: Query
    normal_form: NormalForm
    alphabet: Alphabet
    automaton: Automaton
    full: DeterministicAutomaton
    minimal: DeterministicAutomaton
    tables: Tables
    compiled: Compiled


@dataclass(frozen=True, slots=True)
class Compilation:
    """A compiled file: its queries stage by stage, and its warnings in order of place."""

    source: Source
    options: Options
    queries: tuple[Stages, ...]
    warnings: tuple[Diagnostic, ...]

    def module_text(self, command: str) -> str:
        """The generated module; `command` is named in its header."""
        return emit_module(
            [stages.compiled for stages in self.queries],
            self.source.text,
            command,
            self.options.tiebreak,
        )


def compile_source(source: Source, options: Options) -> Compilation:
    """All stages for all queries of a file.

    Raises CelError with every error of the file that can be found: those of all queries together
    for the stages that look at one query at a time.
    """
    queries, warnings = resolve(parse(source), source, order_by=options.order_by)
    if options.first_order:
        queries, warnings = read_first_order(queries, warnings, source)
    diagnostics = Diagnostics(source)
    diagnostics.extend(warnings)
    forms = _for_each(queries, diagnostics, lambda query: _normalize(query, source, diagnostics))
    stages = _for_each(
        tuple(zip(queries, forms, strict=True)),
        diagnostics,
        lambda pair: _back_end(pair[0], pair[1], source, options),
    )
    return Compilation(source, options, stages, diagnostics.in_order())


_In = TypeVar("_In")
_Out = TypeVar("_Out")


def _for_each(
    items: tuple[_In, ...], diagnostics: Diagnostics, stage: Callable[[_In], _Out]
) -> tuple[_Out, ...]:
    """Run a stage on every query, and stop after it if any of them is wrong."""
    results = []
    for item in items:
        try:
            results.append(stage(item))
        except CelError as problem:
            diagnostics.extend(problem.diagnostics)
    diagnostics.raise_errors()
    return tuple(results)


def _normalize(query: Query, source: Source, diagnostics: Diagnostics) -> NormalForm:
    form, warnings = normalize(query, source)
    # The resolver has said it already where it can name the condition.
    said = any(item.code == "never-matches" for item in diagnostics.items)
    diagnostics.extend(w for w in warnings if not (said and w.code == "never-matches"))
    return form


def _back_end(query: Query, form: NormalForm, source: Source, options: Options) -> Stages:
    span = query.formula.span
    alphabet = symbol_classes(form, source, span)
    automaton = construct(form)
    full = determinize(automaton, alphabet, source, span, max_states=options.max_states)
    minimal = minimise(full)
    tables = tabulate(minimal)
    # CONSUME BY ANY reads partitions interleaved, which only the general engine can.
    interleaved = query.consume_by == "ANY" and query.partition_by
    straight_line = None if interleaved else plan_straight_line(tables)
    if straight_line is None:
        tables = with_starts_apart(tables)
    compiled = Compiled(query, automaton, alphabet, tables, straight_line)
    return Stages(query, form, alphabet, automaton, full, minimal, tables, compiled)
