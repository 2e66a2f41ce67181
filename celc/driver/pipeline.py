"""The passes of a compilation, in order. The result of each is kept, so that it can be shown.

text → syntax tree → core formulas → LP-normal form → its division into a form for an automaton and
a rest for the listing → classes of events → CEA → I/O-deterministic CEA → minimal CEA → transition
tables → strategy → module text. Each pass is a pure function of the results before it. With
CELC_VERIFY=1 each result is verified before the next pass takes it.

Long: the passes are one list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from celc_runtime.plan.frozen import frozen

from celc.automata.automaton import Automaton
from celc.automata.construct import conditions_of_facts, construct
from celc.automata.determinize import (
    DeterministicAutomaton,
    determinize,
    left_nondeterministic,
)
from celc.automata.minimise import minimise
from celc.automata.predicates import Alphabet, symbol_classes
from celc.core.declarations import undeclared_text
from celc.core.formula import MAX_FORMULA_DEPTH, Query
from celc.diagnostics.deadline import Deadline, look
from celc.diagnostics.errors import CelError, Diagnostic, Diagnostics, raise_all
from celc.diagnostics.messages.costs import by_definition, totals_by_listing
from celc.diagnostics.source import Source, Span, text_of
from celc.driver.check_functions import refuse_missing, refuse_wrong
from celc.normal.divide import (
    Definitions,
    Division,
    Exact,
    Roles,
    Windowed,
    divide,
    in_one_order,
    interleaves,
)
from celc.normal.flat_form import asks_for_types
from celc.normal.normal_form import KeepLabels, KeepSupport, NormalForm
from celc.normal.normalize import normalize, output_labels
from celc.normal.rewrite import relabel
from celc.normal.runs_of_events import run_of_events
from celc.normal.traversal import is_correlated
from celc.options import VERIFYING, Options
from celc.parse.parser import parse
from celc.parse.syntax import File
from celc.plan.growth import growth_of, is_bounded
from celc.plan.one_in_an_instant import can_wait
from celc.plan.program import Program
from celc.plan.strategy import (
    EVERY_UPDATE,
    Checked,
    ChoiceInput,
    LongestRuns,
    StraightLine,
    Update,
    choose,
)
from celc.plan.tables import tabulate, with_instants
from celc.plan.why_listed import Cause, why_listed
from celc.plan.window_selector import DETERMINISTIC, WindowSelector, window_selector
from celc.resolve.files import DeclaredInFiles
from celc.resolve.first_order.reader import read_first_order
from celc.resolve.resolver import resolve
from celc.resolve.types.tables import KnownTable

if VERIFYING or TYPE_CHECKING:
    from celc import verify
if TYPE_CHECKING:
    from celc.codegen.module import Module
    from celc.codegen.rules import Rules

COMPARED = "finding what the conditions compare"
CLASSES = "finding the classes of events that its conditions tell apart"
AUTOMATON = "building the automaton of the formula"
MINIMAL = "making the automaton smaller"
TABLES = "writing the automaton as tables"


@frozen
class Stages:
    """The results of all passes for one query."""

    query: Query
    normal_form: NormalForm
    division: Division
    alphabet: Alphabet
    automaton: Automaton
    full: DeterministicAutomaton
    minimal: DeterministicAutomaton
    program: Program
    why_listed: tuple[Cause, ...] = ()


@frozen
class CompiledFile:
    """A compiled file: its tree, its queries pass by pass, and its warnings in order of place."""

    source: Source
    tree: File
    queries: tuple[Stages, ...]
    warnings: tuple[Diagnostic, ...]


@frozen
class Compilation:
    """Compiled files, one or several, whose queries are in one module."""

    files: tuple[CompiledFile, ...]
    options: Options
    deadline: Deadline
    problems: tuple[CelError, ...] = ()
    """Those of files that were left out, where the compilation goes on past errors."""
    rules: Mapping[str, Rules] = field(default_factory=dict)
    """The rules that are rows of a query, by its name (`celc.driver.by_shape`)."""
    told: tuple[tuple[Source, tuple[Diagnostic, ...]], ...] = ()
    """The files of these rules that have warnings."""

    @property
    def queries(self) -> tuple[Stages, ...]:
        """The queries of all files."""
        return tuple(stages for file in self.files for stages in file.queries)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the queries."""
        return tuple(stages.query.name for stages in self.queries)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings of all files, file by file."""
        of_rules = (warning for _, warnings in self.told for warning in warnings)
        return (*of_rules, *(warning for file in self.files for warning in file.warnings))

    def module_text(self, command: str) -> str:
        """The generated module; `command` is named in its header.

        Raises CelError where the time for the compilation ends before the module is written.
        """
        from celc.codegen.text.layout import formatted

        parts = self.module_parts(command)
        with self.deadline.running():
            look(doing="putting the module into lines")
            return formatted(parts)

    def module_parts(self, command: str) -> tuple[str, ...]:
        """The generated module in parts that are not laid out yet, as a `Matcher` loads it."""
        with self.deadline.running():
            return self._written(command)

    def _written(self, command: str) -> tuple[str, ...]:
        # `celc check` does not need Jinja.
        from celc.codegen.module import module_parts

        return module_parts(self.lowered(), command, self.rules)

    def lowered(self) -> Module:
        """The module in its last representation."""
        from celc.codegen.module import lowered
        from celc.codegen.query import ModuleOptions

        options = self.options
        for file in self.files:
            refuse_missing(file.tree, file.source, options.functions or ())
        given = ModuleOptions(
            text_of([file.source for file in self.files]),
            undeclared_text((one.query, file.tree) for file in self.files for one in file.queries),
            tuple(options.tiebreak),
            options.at_end,
            options.positions,
            options.match_id,
            options.joins,
            options.type_column,
            options.functions or (),
        )
        programs = [(file.source, stages.program) for file in self.files for stages in file.queries]
        module = lowered(programs, given)
        _verify("lower", "plan", lambda: _of_module(module))
        return module


def _of_module(module: Module) -> Iterator[verify.Violation]:
    from celc.verify.lowered import plan

    for one in module.queries:
        yield from plan(one.plan, one.update, one.listing)


def compile_files(
    sources: Sequence[Source],
    options: Options,
    *,
    schema: Any = None,
    updates: frozenset[type[Update]] = EVERY_UPDATE,
    keep_going: bool = False,
) -> Compilation:
    """All passes for all queries of files that become one module.

    Each file is compiled alone, and all of them in the time that `options` give. `schema` has the
    columns of tables that are not declared, as `celc.resolve.types.schemas` reads them. `choose`
    chooses from `updates`. keep_going: files with errors are left out, unless all are.

    Raises CelError with every error of every file that can be found: passes that look at one query
    at a time report the errors of all queries together. A time that is over is one of the errors.
    """
    deadline = Deadline(sources[0], options.max_compile_seconds)
    declared = DeclaredInFiles()
    files: list[CompiledFile] = []
    problems: list[CelError] = []
    table = None if schema is None else KnownTable(schema, options.type_column)
    with deadline.running():
        for source in sources:
            deadline.turn_to(source)
            try:
                file = compiled_file(source, options, table, deadline, updates)
                declared.add(source, file.tree, [stages.query for stages in file.queries])
                files.append(file)
            except CelError as problem:
                problems.append(problem)
                if deadline.is_over():
                    break
    if not (keep_going and files):
        raise_all(problems)
    return Compilation(tuple(files), options, deadline, tuple(problems))


def compile_source(
    source: Source, options: Options, *, updates: frozenset[type[Update]] = EVERY_UPDATE
) -> Compilation:
    """Compile one file; see `compile_files`."""
    return compile_files([source], options, updates=updates)


def _verify(
    after: str, representation: str, violations: Callable[[], Iterable[verify.Violation]]
) -> None:
    """Verify the result of the pass `after`. Every result of a pass goes through here.

    `violations` is not called, and `verify` not imported, unless VERIFYING. Raises
    VerificationError.
    """
    if VERIFYING:
        verify.verify(after, representation, violations())


def _of_all(
    queries: Iterable[Query], violations: Callable[[Query, int], Iterable[verify.Violation]]
) -> Iterator[verify.Violation]:
    for query in queries:
        yield from violations(query, MAX_FORMULA_DEPTH)


def compiled_file(
    source: Source,
    options: Options,
    table: KnownTable | None,
    deadline: Deadline,
    updates: frozenset[type[Update]] = EVERY_UPDATE,
    tree: File | None = None,
) -> CompiledFile:
    """All passes for the queries of one file, while the deadline runs. Raises CelError.

    tree: that of the file, where it was parsed already.
    """
    look(doing="reading the text")
    file = parse(source) if tree is None else tree
    _verify("parse", "syntax tree", lambda: verify.syntax_tree(file, source))
    look(doing="looking up names and types")
    order_by, ties = options.order_by, options.ties
    queries, warnings = resolve(file, source, order_by=order_by, ties=ties, table=table)
    _verify("resolve", "query", lambda: _of_all(queries, verify.core_query))
    refuse_wrong(file, source, options.functions, warnings)
    if options.first_order:
        look(doing="reading labels as the first paper does")
        queries, warnings = read_first_order(queries, warnings, source)
        _verify("first_order", "query", lambda: _of_all(queries, verify.safe_query))
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
    diagnostics.extend(_of_listed_totals(stages))
    diagnostics.extend(_of_definitions(stages))
    brief = [one.query.span for one in stages if _searches_briefly(one)]
    told = tuple(w for w in diagnostics.in_order() if not _is_idle(w, brief))
    return CompiledFile(source, file, stages, told)


def _of_listed_totals(stages: Iterable[Stages]) -> Iterator[Diagnostic]:
    """The warnings that totals or unions need the list of all matches."""
    for one in stages:
        if not one.why_listed:
            continue
        total = one.query.total
        purpose = "united" if total is None else "counted"
        span = (one.query.strategy_span or one.query.span) if total is None else total.span
        reasons = [cause.reason for cause in one.why_listed]
        instead = [cause.instead for cause in one.why_listed if cause.instead is not None]
        yield totals_by_listing(purpose, reasons, tuple(dict.fromkeys(instead)), span)


def _of_definitions(stages: Iterable[Stages]) -> Iterator[Diagnostic]:
    """The warnings that no code is written for a formula."""
    for one in stages:
        query, rest = one.query, one.division.rest
        if isinstance(rest, Definitions):
            growth, bounded = growth_of(rest.form, query), is_bounded(rest.form, query)
            yield by_definition(rest.why.reason, growth, bounded=bounded, span=rest.why.span)


def _searches_briefly(stages: Stages) -> bool:
    """Whether no search of a query can take exponentially long. The resolver cannot know it."""
    match stages.program.listing:
        case LongestRuns():
            return True
        case Checked() as checks:
            if checks.unites:
                assert checks.carried is not None
                return all(one.function != "SUM" for one in checks.carried.functions)
            consumes = stages.query.consume_by != "NONE"
            collects = consumes and not (checks.in_order or checks.greatest)
            return checks.is_brief and not collects
        case _:
            return False


def _is_idle(found: Diagnostic, brief: Iterable[Span]) -> bool:
    """Whether a warning is about a search in a query that has none (`brief`)."""
    return found.code == "exponential-search" and any(
        span.start <= found.span.start < span.end for span in brief
    )


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
    _verify("normalize", "normal form", lambda: verify.normal_form(form))
    # The resolver has warned of it already, where it can name the condition.
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
    """The passes from the normal form of one query to its program."""
    # FIRST and LONGEST compare whole instants, which this code does not tell of events that do not
    # last.
    tells_ends = query.per_start is None or query.lasting
    if query.simultaneous and tells_ends and StraightLine in updates:
        plain = in_one_order(form, selects=query.selects)
        if plain is not None:
            # The code for ordered events, which lets simultaneous events wait for each other.
            in_order = replace(query, simultaneous=False)
            stages = _built(in_order, plain, source, options, updates)
            if can_wait(stages.program):
                program = replace(stages.program, query=query)
                return replace(stages, query=query, normal_form=form, program=program)
    return _built(query, form, source, options, updates)


def _built(
    query: Query,
    form: NormalForm,
    source: Source,
    options: Options,
    updates: frozenset[type[Update]],
) -> Stages:
    """The passes of a query whose way to treat simultaneous events is chosen."""
    span = query.formula.span
    if is_correlated(form):
        look(span, COMPARED)
    division = divide(query, form)
    _verify("divide", "division", lambda: verify.division(division))

    look(span, CLASSES)
    asked = division.asked
    alphabet = symbol_classes(asked, conditions_of_facts(asked), source, span)
    _verify("classify", "alphabet", lambda: verify.alphabet(alphabet, asked))

    look(span, AUTOMATON)
    automaton, rest = _construct(query, division, alphabet, source, options)
    _verify("construct", "automaton", lambda: verify.automaton(automaton))
    letters = automaton.letters

    look(span, DETERMINISTIC)
    full = _deterministic(query, automaton, rest, source, options)
    _verify("determinize", "automaton", lambda: verify.deterministic(full, letters.count))

    look(span, MINIMAL)
    minimal = full if full.as_met else minimise(full)
    if not minimal.as_met:
        _verify("minimise", "automaton", lambda: verify.minimal(minimal, letters.count))

    look(span, TABLES)
    tables, _ = tabulate(minimal, letters.machine, keep_symbols=_asks_for_symbols(division))
    if query.simultaneous:
        tables = with_instants(tables, letters.classes)
    _verify("tabulate", "tables", lambda: verify.tables(tables, len(alphabet.symbols)))

    run = run_of_events(query, form)
    machine = letters.machine
    given = ChoiceInput(query, minimal, machine, tables, alphabet, rest, options.max_work, run)
    strategy = choose(given, updates)
    program = Program(
        query,
        automaton,
        alphabet,
        strategy.tables,
        strategy.update,
        strategy.listing,
        strategy.listed_because,
    )
    _verify("choose", "program", lambda: verify.program(program))
    causes = why_listed(given, strategy)
    return Stages(query, form, division, alphabet, automaton, full, minimal, program, causes)


def _construct(
    query: Query, division: Division, alphabet: Alphabet, source: Source, options: Options
) -> tuple[Automaton, Exact | WindowSelector | Roles | Definitions]:
    """The automaton, and the rest of the query, which is left to the listing. A selector that never
    rejects a match leaves nothing to the listing."""
    match division.rest:
        case Windowed(selected):
            labels = output_labels(query)
            span = query.formula.span
            selector = window_selector(selected, labels, alphabet, source, span, options.max_states)
            _verify(
                "construct_selection",
                "selection",
                lambda: verify.selection(selector.selection, selector.letters),
            )
            # Labels that SELECT leaves out count for the supports that are compared.
            shown = KeepSupport(labels) if selector.rejects else KeepLabels(labels)
            form = relabel(selected.operand, shown)
            _verify("relabel", "normal form", lambda: verify.letter_form(form))
            return construct(form, alphabet, source), selector if selector.rejects else Exact()
        case rest:
            simultaneous = query.simultaneous
            return construct(division.found, alphabet, source, simultaneous=simultaneous), rest


def _deterministic(
    query: Query,
    automaton: Automaton,
    rest: Exact | WindowSelector | Roles | Definitions,
    source: Source,
    options: Options,
) -> DeterministicAutomaton:
    """The deterministic automaton. Where it has too many states, a query that the automaton alone
    decides is left nondeterministic: its runs make the states that they meet."""
    try:
        return determinize(automaton, source, query.formula.span, max_states=options.max_states)
    except CelError as problem:
        alone = isinstance(rest, Exact) and query.total is None and query.parameters is None
        in_order = not (query.simultaneous or query.uncertain or interleaves(query))
        few = automaton.states <= options.max_states and automaton.letters.machine.contexts == 1
        too_many = problem.diagnostics[0].code == "too-many-states"
        if not (alone and in_order and few and too_many):
            raise
        return left_nondeterministic(automaton)


def _asks_for_symbols(division: Division) -> bool:
    """Whether the listing needs the symbols of single events, also of events without marks."""
    match division.rest:
        case Definitions():
            return True
        case Roles(flat=flat):
            return flat.looks_outside or asks_for_types(flat)
        case Exact() | Windowed():
            return False
        case _:
            assert_never(division.rest)
