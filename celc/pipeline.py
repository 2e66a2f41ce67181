"""The passes of a compilation, in order; the result of each is kept, so that it can be shown.

text → syntax tree → core formulas → LP-normal form → what an automaton finds of it, and what is
left to the listing → classes of events → CEA → I/O-deterministic CEA → the same, minimal →
transition tables → how the query is run → module text. Each pass is a pure function of what is
before it, and its result is verified before the next one takes it, where CELC_VERIFY is 1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from celc.automata.automaton import Automaton
from celc.automata.construct import conditions_of_facts, construct
from celc.automata.determinize import DeterministicAutomaton, determinize
from celc.automata.minimise import minimise
from celc.automata.predicates import Alphabet, symbol_classes
from celc.core.formula import MAX_FORMULA_DEPTH, Query
from celc.diagnostics.deadline import Deadline, look
from celc.diagnostics.errors import CelError, Diagnostic, Diagnostics
from celc.diagnostics.source import Source
from celc.normal.divide import Definitions, Division, Exact, Roles, Windowed, divide
from celc.normal.normal_form import KeepLabels, KeepSupport, NormalForm
from celc.normal.normalize import normalize, output_labels
from celc.normal.rewrite import relabel
from celc.normal.traversal import is_correlated
from celc.options import Options
from celc.parse.parser import parse
from celc.plan.program import Program
from celc.plan.strategy import EVERY_UPDATE, Found, Update, choose
from celc.plan.tables import Tables, tabulate
from celc.plan.window_selector import DETERMINISTIC, WindowSelector, window_selector
from celc.resolve.first_order.reader import read_first_order
from celc.resolve.resolver import resolve

VERIFYING = os.environ.get("CELC_VERIFY") == "1"
"""Whether each representation is checked before the next pass takes it."""

if VERIFYING or TYPE_CHECKING:
    from celc import verify

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
        from celc.codegen.module import emit_module

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


def _verified(
    after: str,
    representation: str,
    made: _Made,
    violations: Callable[[_Made], Iterable[verify.Violation]],
) -> _Made:
    """What a pass has made, as it is; the one place where the verifier sees every result.

    Raises VerificationError where it breaks an invariant.
    """
    if VERIFYING:
        verify.verify(after, representation, violations(made))
    return made


def _stages(
    source: Source, options: Options, deadline: Deadline, updates: frozenset[type[Update]]
) -> tuple[tuple[Stages, ...], tuple[Diagnostic, ...]]:
    look(doing="reading the text")
    file = _verified(
        "parse", "syntax tree", parse(source), lambda tree: verify.syntax_tree(tree, source)
    )
    look(doing="looking up names and types")
    queries, warnings = resolve(file, source, order_by=options.order_by)
    for query in queries:
        _verified("resolve", "query", query, lambda one: verify.core_query(one, MAX_FORMULA_DEPTH))
    if options.first_order:
        look(doing="reading labels as the first paper does")
        queries, warnings = read_first_order(queries, warnings, source)
        for query in queries:
            _verified(
                "first_order", "query", query, lambda one: verify.safe_query(one, MAX_FORMULA_DEPTH)
            )
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
    _verified("normalize", "normal form", form, lambda made: verify.normal_form(made))
    # The resolver has said it already where it can name the condition.
    said = any(item.code == "never-matches" for item in diagnostics.items)
    diagnostics.extend(w for w in warnings if not (said and w.code == "never-matches"))
    return form


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
    division = _verified(
        "divide", "division", divide(query, form), lambda made: verify.division(made)
    )
    look(span, CLASSES)
    asked = division.asked
    alphabet = _verified(
        "classify",
        "alphabet",
        symbol_classes(asked, conditions_of_facts(asked), source, span),
        lambda made: verify.alphabet(made, asked),
    )
    look(span, AUTOMATON)
    automaton, rest = _construct(query, division, alphabet, source, options)
    _verified("construct", "automaton", automaton, lambda made: verify.automaton(made))
    letters = automaton.letters.count
    look(span, DETERMINISTIC)
    full = _verified(
        "determinize",
        "automaton",
        determinize(automaton, source, span, max_states=options.max_states),
        lambda made: verify.deterministic(made, letters),
    )
    look(span, MINIMAL)
    minimal = _verified(
        "minimise", "automaton", minimise(full), lambda made: verify.minimal(made, letters)
    )
    look(span, TABLES)
    tables = _verified(
        "tabulate",
        "tables",
        _tabulate(minimal, automaton, division),
        lambda made: verify.tables(made, len(alphabet.symbols)),
    )
    found = Found(query, minimal, automaton.letters.machine, tables, rest, options.max_work)
    strategy = choose(found, updates)
    program = _verified(
        "choose",
        "program",
        Program(query, automaton, alphabet, strategy.tables, strategy.update, strategy.listing),
        lambda made: verify.program(made),
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
            selector = _verified(
                "construct_selection",
                "selection",
                window_selector(selected, labels, alphabet, source, span, options.max_states),
                lambda made: verify.selection(made.selection, made.letters),
            )
            # What is projected away counts for the supports that are compared.
            shown = KeepSupport(labels) if selector.rejects else KeepLabels(labels)
            form = _verified(
                "relabel",
                "normal form",
                relabel(selected.operand, shown),
                lambda made: verify.letter_form(made),
            )
            return construct(form, alphabet, source), selector if selector.rejects else Exact()
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
