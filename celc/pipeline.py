"""The passes of a compilation, in order; the result of each is kept, so that it can be shown.

text → syntax tree → core formulas → LP-normal form → what an automaton finds of it, and what is
left to the listing → classes of events → CEA → I/O-deterministic CEA → the same, minimal →
transition tables → how the query is run → module text. Each pass is a pure function of what is
before it, and `verified` sees what each of them made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from celc.automaton import Automaton
from celc.construct import conditions_of_facts, construct
from celc.deadline import Deadline, look
from celc.determinize import DeterministicAutomaton, determinize
from celc.divide import Definitions, Division, Exact, Roles, Windowed, divide
from celc.errors import CelError, Diagnostic, Diagnostics
from celc.first_order import read_first_order
from celc.formula import Query
from celc.minimise import minimise
from celc.normal_form import KeepLabels, KeepSupport, NormalForm, is_correlated
from celc.normalize import normalize, output_labels
from celc.options import Options
from celc.parse import parse
from celc.predicates import Alphabet, symbol_classes
from celc.program import Program
from celc.resolve import resolve
from celc.rewrite import relabel
from celc.source import Source
from celc.strategy import EVERY_UPDATE, Found, Update, choose
from celc.tables import Tables, tabulate
from celc.window_selector import DETERMINISTIC, WindowSelector, window_selector

COMPARED = "finding what the conditions compare"
CLASSES = "finding the classes of events that its conditions tell apart"
AUTOMATON = "building the automaton of the formula"
MINIMAL = "making the automaton smaller"
TABLES = "writing the automaton as tables"


@dataclass(frozen=True, slots=True)
class Stages:
    """What every pass made of one query."""

    query: Query
    normal_form: NormalForm
    division: Division
    alphabet: Alphabet
    automaton: Automaton
    full: DeterministicAutomaton
    minimal: DeterministicAutomaton
    program: Program


@dataclass(frozen=True, slots=True)
class Compilation:
    """A compiled file: its queries pass by pass, and its warnings in order of place."""

    source: Source
    options: Options
    queries: tuple[Stages, ...]
    warnings: tuple[Diagnostic, ...]
    deadline: Deadline

    def module_text(self, command: str) -> str:
        """The generated module; `command` is named in its header.

        Raises CelError where the time for the compilation ends before it is written.
        """
        # Jinja and black take longer to import than most queries to compile, and `celc check`
        # needs neither.
        from celc.emit import emit_module

        with self.deadline.running():
            return emit_module(
                [stages.program for stages in self.queries],
                self.source.text,
                command,
                self.options.tiebreak,
            )


def compile_source(
    source: Source, options: Options, *, updates: frozenset[type[Update]] = EVERY_UPDATE
) -> Compilation:
    """All passes for all queries of a file; `updates` are those that a query may be run by.

    Raises CelError with every error of the file that can be found: those of all queries together
    for the passes that look at one query at a time. The time that `options` give may be over
    before; then that is one of the errors, and the last pass is not finished.
    """
    deadline = Deadline(source, options.max_compile_seconds)
    with deadline.running():
        stages, warnings = _stages(source, options, deadline, updates)
    return Compilation(source, options, stages, warnings, deadline)


_Made = TypeVar("_Made")


def verified(name: str, made: _Made) -> _Made:
    """What the pass `name` made, as it is: the one place where a verifier sees every result."""
    return made


def _stages(
    source: Source, options: Options, deadline: Deadline, updates: frozenset[type[Update]]
) -> tuple[tuple[Stages, ...], tuple[Diagnostic, ...]]:
    look(doing="reading the text")
    file = verified("parse", parse(source))
    look(doing="looking up names and types")
    queries, warnings = resolve(file, source, order_by=options.order_by)
    if options.first_order:
        look(doing="reading labels as the first paper does")
        queries, warnings = read_first_order(queries, warnings, source)
    verified("resolve", queries)
    diagnostics = Diagnostics(source)
    diagnostics.extend(warnings)
    forms = _for_each(
        queries, diagnostics, deadline, lambda query: _normalize(query, source, diagnostics)
    )
    stages = _for_each(
        tuple(zip(queries, forms, strict=True)),
        diagnostics,
        deadline,
        lambda pair: _passes(pair[0], pair[1], source, options, updates),
    )
    return stages, diagnostics.in_order()


_In = TypeVar("_In")
_Out = TypeVar("_Out")


def _for_each(
    items: tuple[_In, ...],
    diagnostics: Diagnostics,
    deadline: Deadline,
    stage: Callable[[_In], _Out],
) -> tuple[_Out, ...]:
    """Run passes on every query, and stop after them if any of the queries is wrong."""
    results = []
    for item in items:
        try:
            results.append(stage(item))
        except CelError as problem:
            diagnostics.extend(problem.diagnostics)
            if deadline.is_over():
                break
    diagnostics.raise_errors()
    return tuple(results)


def _normalize(query: Query, source: Source, diagnostics: Diagnostics) -> NormalForm:
    look(query.formula.span, "bringing conditions and labels to their events")
    form, warnings = normalize(query, source)
    # The resolver has said it already where it can name the condition.
    said = any(item.code == "never-matches" for item in diagnostics.items)
    diagnostics.extend(w for w in warnings if not (said and w.code == "never-matches"))
    return verified("normalize", form)


def _passes(
    query: Query,
    form: NormalForm,
    source: Source,
    options: Options,
    updates: frozenset[type[Update]],
) -> Stages:
    """The passes from the normal form of one query to all that its code is generated from."""
    span = query.formula.span
    if is_correlated(form):
        look(span, COMPARED)
    division = verified("divide", divide(query, form))
    look(span, CLASSES)
    asked = division.asked
    alphabet = verified("classify", symbol_classes(asked, conditions_of_facts(asked), source, span))
    look(span, AUTOMATON)
    automaton, rest = _construct(query, division, alphabet, source, options)
    verified("construct", automaton)
    look(span, DETERMINISTIC)
    full = verified(
        "determinize", determinize(automaton, source, span, max_states=options.max_states)
    )
    look(span, MINIMAL)
    minimal = verified("minimise", minimise(full))
    look(span, TABLES)
    machine = automaton.letters.machine
    tables = verified("tabulate", _tabulate(minimal, automaton, division))
    found = Found(query, minimal, machine, tables, rest, options.max_work)
    strategy = verified("choose", choose(found, updates))
    program = Program(
        query, automaton, alphabet, strategy.tables, strategy.update, strategy.listing
    )
    return Stages(query, form, division, alphabet, automaton, full, minimal, program)


def _construct(
    query: Query, division: Division, alphabet: Alphabet, source: Source, options: Options
) -> tuple[Automaton, Exact | WindowSelector | Roles | Definitions]:
    """The automaton, and what is left to the listing.

    A selector that never leaves out a match leaves nothing to the listing.
    """
    match division.rest:
        case Windowed(selected):
            labels = output_labels(query)
            span = query.formula.span
            selector = window_selector(selected, labels, alphabet, source, span, options.max_states)
            # What is projected away counts for the supports that are compared.
            shown = KeepSupport(labels) if selector.rejects else KeepLabels(labels)
            automaton = construct(relabel(selected.operand, shown), alphabet, source)
            return automaton, selector if selector.rejects else Exact()
        case rest:
            return construct(division.found, alphabet, source), rest


def _tabulate(minimal: DeterministicAutomaton, automaton: Automaton, division: Division) -> Tables:
    """The transition tables; every symbol is kept where the listing asks for it."""
    match division.rest:
        case Definitions():
            apart = True
        case Roles(flat=flat):
            apart = bool(flat.absent)
        case Exact() | Windowed():
            apart = False
    tables, _ = tabulate(minimal, automaton.letters.machine, apart=apart)
    return tables
