"""The stages of a compilation, in order; every stage's result is kept, so that it can be shown.

text → syntax tree → core formulas → LP-normal form → CEA → I/O-deterministic CEA → transition
tables → module text. Each stage is a pure function of the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from celc.automaton import Automaton
from celc.compiled import Compiled
from celc.construct import conditions_of_facts, construct, construct_selection
from celc.deadline import Deadline, look
from celc.determinize import (
    DeterministicAutomaton,
    determinize,
    determinize_selection,
    looks_alike,
)
from celc.earliest import Chosen, EarliestTables, choose_the_same, earliest_tables
from celc.errors import CelError, Diagnostic, Diagnostics
from celc.first_order import read_first_order
from celc.formula import Query
from celc.graphs import Graph, relabelled
from celc.joins import plan_joins
from celc.letters import machine_over
from celc.minimise import minimise
from celc.normal_form import (
    Disjunction,
    KeepLabels,
    KeepSupport,
    LabelChange,
    NormalForm,
    Relabel,
    Selected,
    is_correlated,
    nests_selectors,
)
from celc.normalize import normalize, output_labels
from celc.options import Options
from celc.parse import parse
from celc.piles import plan_straight_line
from celc.predicates import Alphabet, symbol_classes
from celc.relax import relaxed
from celc.resolve import resolve
from celc.rewrite import relabel
from celc.roles import Checks, FlatForm, flatten
from celc.select import Selection
from celc.source import Source
from celc.tables import SelectionTables, Tables, tabulate, with_starts_apart

CLASSES = "finding the classes of events that its conditions tell apart"
AUTOMATON = "building the automaton of the formula"
DETERMINISTIC = "making the automaton deterministic"
MINIMAL = "making the automaton smaller"
TABLES = "writing the automaton as tables"


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
    deadline: Deadline

    def module_text(self, command: str) -> str:
        """The generated module; `command` is named in its header.

        Raises CelError where the time for the compilation ends before it is written.
        """
        # Jinja and black take longer to import than most queries to compile, and `celc check`
        # needs neither.
        from celc.emit_module import emit_module

        with self.deadline.running():
            return emit_module(
                [stages.compiled for stages in self.queries],
                self.source.text,
                command,
                self.options.tiebreak,
            )


def compile_source(source: Source, options: Options, *, straight_lines: bool = True) -> Compilation:
    """All stages for all queries of a file; without `straight_lines` for the general engine alone.

    Raises CelError with every error of the file that can be found: those of all queries together
    for the stages that look at one query at a time. The time that `options` give may be over
    before; then that is one of the errors, and the last stage is not finished.
    """
    deadline = Deadline(source, options.max_compile_seconds)
    with deadline.running():
        stages, warnings = _stages(source, options, deadline, straight_lines)
    return Compilation(source, options, stages, warnings, deadline)


def _stages(
    source: Source, options: Options, deadline: Deadline, straight_lines: bool
) -> tuple[tuple[Stages, ...], tuple[Diagnostic, ...]]:
    look(doing="reading the text")
    file = parse(source)
    look(doing="looking up names and types")
    queries, warnings = resolve(file, source, order_by=options.order_by)
    if options.first_order:
        look(doing="reading labels as the first paper does")
        queries, warnings = read_first_order(queries, warnings, source)
    diagnostics = Diagnostics(source)
    diagnostics.extend(warnings)
    forms = _for_each(
        queries, diagnostics, deadline, lambda query: _normalize(query, source, diagnostics)
    )
    stages = _for_each(
        tuple(zip(queries, forms, strict=True)),
        diagnostics,
        deadline,
        lambda pair: _back_end(pair[0], pair[1], source, options, straight_lines),
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
    """Run a stage on every query, and stop after it if any of them is wrong."""
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
    return form


def _back_end(
    query: Query, form: NormalForm, source: Source, options: Options, straight_lines: bool
) -> Stages:
    if is_correlated(form):
        return _correlated_back_end(query, form, source, options, straight_lines)
    span = query.formula.span
    look(span, CLASSES)
    alphabet = symbol_classes(form, conditions_of_facts(form), source, span)
    look(span, AUTOMATON)
    chosen = None
    split = _selector_in_window(query, form)
    if split is not None:
        found, letters = construct_selection(split, alphabet, source)
        chosen = found if found.rejects else None
        kept = output_labels(query)
        # What is projected away counts for the supports that are compared.
        shown = KeepLabels(kept) if chosen is None else KeepSupport(kept)
        form_of_all = relabel(split.operand, shown)
    automaton = construct(form if split is None else form_of_all, alphabet, source)
    look(span, DETERMINISTIC)
    full = determinize(automaton, source, span, max_states=options.max_states)
    look(span, MINIMAL)
    minimal = minimise(full)
    look(span, TABLES)
    machine = automaton.letters.machine
    tables, _ = tabulate(minimal, machine)
    # CONSUME BY ANY reads partitions interleaved, which only the general engine can.
    interleaved = query.consume_by == "ANY" and bool(query.partition_by)
    by_tables = not straight_lines or interleaved
    straight_line = None if by_tables else plan_straight_line(tables)
    selection: SelectionTables | EarliestTables | None = None
    greedy = False
    if chosen is not None and split is not None:
        assert letters.machine == machine, "both read the same letters"

        def deterministic(selected: Selection) -> Chosen:
            look(span, DETERMINISTIC)
            automaton = determinize_selection(
                _relabelled(selected, KeepLabels(kept)),
                letters.count,
                source,
                span,
                max_states=options.max_states,
            )
            return minimise(automaton), machine_over(selected.tracker, letters.count)

        look(span, f"finding how to choose for SELECT {query.strategy}")
        if query.strategy == "LAST":
            greedy = straight_line is not None and _all_marked(tables)
        elif query.strategy == "NXT" and not interleaved:
            selection = earliest_tables(tables)
        elif query.strategy == "MAX" and not interleaved:
            selection = earliest_tables(tables)
            if selection is not None:
                instead, _ = construct_selection(split, alphabet, source, "NXT")
                if not choose_the_same(deterministic(chosen), deterministic(instead)):
                    selection = None
        if selection is None and not greedy:
            tables, selection = tabulate(minimal, machine, deterministic(chosen))
            straight_line = None if by_tables else plan_straight_line(tables)
    if straight_line is None:
        tables = with_starts_apart(tables)
    compiled = Compiled(query, automaton, alphabet, tables, straight_line, selection, greedy)
    return Stages(query, form, alphabet, automaton, full, minimal, tables, compiled)


def _correlated_back_end(
    query: Query, form: NormalForm, source: Source, options: Options, straight_lines: bool
) -> Stages:
    """The same for a formula with conditions across events.

    Where they can be read off the events of a match they become roles on its events, and the
    automaton is that of the flat form; else the automaton is one that matches more, and what it
    finds is left to the definitions.
    """
    span = query.formula.span
    look(span, "finding what the conditions compare")
    flat, strategy = _flat(query, form)
    interleaved = query.consume_by == "ANY" and bool(query.partition_by)
    if flat is not None and flat.absent and interleaved:
        flat = None  # events of other partitions lie in between
    consumes = query.consume_by != "NONE"
    selects = query.strategy not in ("ALL", "ANY")
    if consumes and nests_selectors(form, top=selects):
        flat = None  # what a selector sees begins anew after a match, which the update cannot know
    run = relaxed(form, selectors=not consumes) if flat is None else flat.form
    asked = form
    if flat is not None:
        events = tuple(event for absent in flat.absent for event in absent.events)
        asked = Disjunction((run, *events), form.span) if events else run
    look(span, CLASSES)
    alphabet = symbol_classes(asked, conditions_of_facts(asked), source, span)
    look(span, AUTOMATON)
    automaton = construct(run, alphabet, source)
    look(span, DETERMINISTIC)
    full = determinize(automaton, source, span, max_states=options.max_states)
    look(span, MINIMAL)
    minimal = minimise(full)
    look(span, TABLES)
    tables, _ = tabulate(
        minimal, automaton.letters.machine, apart=flat is None or bool(flat.absent)
    )
    by_tables = not straight_lines or interleaved
    straight_line = None if by_tables else plan_straight_line(tables)
    if straight_line is None:
        tables = with_starts_apart(tables)
    joins = checks = None
    if flat is not None:
        if straight_line is not None:
            joins = plan_joins(tables, flat.clauses)
        decided = () if joins is None else joins.decided
        left = tuple(clause for clause in flat.clauses if clause not in decided)
        checks = Checks(left, strategy, looks_alike(minimal), flat.absent)
        if checks == Checks((), "", False):
            checks = None
    compiled = Compiled(
        query,
        automaton,
        alphabet,
        tables,
        straight_line,
        definition=form if flat is None else None,
        joins=joins,
        checks=checks,
        max_work=options.max_work,
    )
    return Stages(query, form, alphabet, automaton, full, minimal, tables, compiled)


def _flat(query: Query, form: NormalForm) -> tuple[FlatForm | None, str]:
    """The form with roles, and the selector that is left to the listing."""
    if query.strategy not in ("NXT", "LAST", "MAX"):
        return flatten(form), ""
    assert isinstance(form, Relabel)
    assert isinstance(form.operand, Selected)
    flat = flatten(form.operand.operand)
    if flat is None:
        return None, ""
    # What is projected away counts for the supports that are compared.
    shown = relabel(flat.form, KeepSupport(output_labels(query)))
    return replace(flat, form=shown), query.strategy


def _relabelled(chosen: Selection, change: LabelChange) -> Selection:
    starts = relabelled(Graph(chosen.graph.version, chosen.starts), (change,))
    return replace(chosen, graph=relabelled(chosen.graph, (change,)), starts=starts.edges)


def _all_marked(tables: Tables) -> bool:
    """Whether every event of a match is in its support, so that the latest ones decide."""
    return all(kind.marks for kind in tables.kinds)


def _selector_in_window(query: Query, form: NormalForm) -> Selected | None:
    """The selector of SELECT where it compares matches in a window; the formula is its operand."""
    if query.window is None or query.strategy not in ("NXT", "LAST", "MAX"):
        return None
    if isinstance(form, Relabel) and isinstance(form.operand, Selected):
        return form.operand
    return None  # a formula without matches
