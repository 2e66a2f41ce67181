"""Lowers one query: from its program to the runtime's `Plan` and to its parts of a module.

A part is a template with its values (`TemplateView`); the module prints the parts in their order.
Kernels are templates. All else that the runtime needs is a value of `celc_runtime.plan`, which
`emit` prints as a constructor call: so the last representation can be verified before it is text.
There is one case for each update and for each listing. It makes the data of the module, and the
code that they name.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar, assert_never

from celc_runtime.plan import strategy
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.joins import NO_JOINS
from celc_runtime.plan.options import with_match_id, with_type_column
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import All, InRuns, Latest, United

from celc.codegen.correlated.checks import EventCode
from celc.codegen.correlated.correlation import checks_literal, definition_literal
from celc.codegen.expressions.classify import classifier, symbol_legend, types_code
from celc.codegen.expressions.conditions import ConditionCode
from celc.codegen.expressions.describe import describe_listing, describe_update
from celc.codegen.expressions.own_aggregates import OwnAggregateCode
from celc.codegen.expressions.own_functions import OwnFunctionCode
from celc.codegen.joins import joins_literal
from celc.codegen.plan_of import Asked, plan_of
from celc.codegen.text.emit import emit
from celc.codegen.text.escape import comment_text, tuple_text
from celc.codegen.text.imports import Imports
from celc.codegen.text.templates import LegendLine, TemplateView
from celc.codegen.updates.branch_free import branch_free_update
from celc.codegen.updates.key_lookups import KeyLookups
from celc.codegen.updates.pile_bounds import BoundCode
from celc.codegen.updates.straight_line import straight_line_update
from celc.codegen.updates.tables import earliest_literal, selection_literal, tables_update
from celc.codegen.updates.update import UpdateInput
from celc.codegen.updates.window import window_code
from celc.core.given_functions import GivenFunction
from celc.diagnostics.deadline import look
from celc.normal.divide import interleaves
from celc.plan.adjoining.spots import AdjoiningRuns, Step
from celc.plan.code import code as in_module
from celc.plan.program import Program
from celc.plan.strategy import (
    BranchFree,
    ByDefinition,
    Checked,
    Counted,
    EarliestInWindow,
    InWindow,
    InWorlds,
    Keyed,
    LongestRuns,
    StraightLine,
    UnionLists,
)


@frozen
class QueryEnd(TemplateView):
    """The last part of a query: the `CompiledQuery` that holds everything before it.

    All texts but `listing_header` are expressions of Python.
    """

    template: ClassVar[str] = "query"

    number: int  # of the query in the module, from 1
    plan: str  # makes the `Plan`
    classified_by: str  # the function that finds the symbols of events
    updated_by: str  # makes the update of the strategy
    listed_by: str  # makes the listing of the strategy
    listing_header: str  # a comment: how matches are listed, and why
    reads: tuple[str, ...]  # the programs of the queries whose rows it reads
    joins: str  # makes the pattern as joins of SQL
    positions: bool  # whether rows have positions


@frozen
class UpdatePart:
    """The update of a query, as the module has it."""

    value: strategy.Update
    before: tuple[TemplateView, ...] = ()  # the parts that `value` names, such as its kernel
    read: frozenset[str] = frozenset()  # attributes of events


@frozen
class ListingPart:
    """The listing of a query, as the module has it."""

    value: strategy.Listing
    before: tuple[TemplateView, ...] = ()  # the parts that `value` names, such as its conditions
    read: frozenset[str] = frozenset()  # attributes of events
    sees_all_events: bool = False  # whether it reads events that no condition names, too
    past: EventCode | None = None  # writes conditions on past events; None: it has none
    columns: tuple[str, ...] = ()  # the variables of `past`: the remembered columns of events


@frozen
class Lowered:
    """A query in its last representation."""

    plan: Plan
    update: strategy.Update
    listing: strategy.Listing
    parts: tuple[TemplateView, ...]  # of the module, in their order


@frozen
class ModuleOptions:
    """What a module depends on besides its programs."""

    text: str  # of the query file
    declared: str  # CREATE STREAM of the tables that the text reads and does not declare
    tiebreak: tuple[str, ...]  # columns that order events with equal order columns
    at_end: str  # "open" or "closed": whether events may come after the last one
    positions: bool  # whether rows have positions
    match_id: bool  # whether rows have an id
    joins: bool  # whether the module has the pattern as joins of SQL
    type_column: str | None  # the column of the event types; None: `type`
    functions: tuple[GivenFunction, ...] = ()  # functions in Python that the caller gives


def lower(
    number: int,
    program: Program,
    options: ModuleOptions,
    imports: Imports,
    numbers: Mapping[str, int],
) -> Lowered:
    """A query in its last representation.

    number: its number in the module, from 1. imports: gets the names that its parts use. numbers:
    the number of each query of the module by its name.

    Raises OptionClash if the query cannot have the column `match_id` or the column of the types.
    """
    alone = len(numbers) == 1
    query = program.query
    look(query.formula.span, "writing the module")
    code = ConditionCode(number, imports)
    if not alone:
        code.constants = []
    types = types_code(program, code)
    constants, code.constants = tuple(code.constants or ()), None
    classify = f"classify_{number}"
    if constants:
        classify = imports.call("with_constants", classify, tuple_text(constants))
    symbols = symbol_legend(program)
    calls = OwnFunctionCode(number, imports, options.functions)
    own = OwnAggregateCode(number, imports, code.members, calls)
    listing = _listing(number, program, code, own)
    update = _update(number, program, symbols, listing, imports)
    joins, before_joins = NO_JOINS, tuple[TemplateView, ...]()
    if options.joins:
        joins, before_joins = joins_literal(number, query, options.text, imports)
    imports.use("CompiledQuery", "Program")
    title = "" if alone else f"Query {comment_text(query.name)}. "
    read = listing.read | update.read | code.attributes_read
    asked = Asked(code, own, read, options.tiebreak, options.at_end, listing.sees_all_events)
    plan = _with_columns(plan_of(program, asked), options)
    how = f"listed {describe_listing(program.listing)}"
    if isinstance(program.listing, Counted):
        how = "not listed"
    elif isinstance(program.listing, United) or (
        isinstance(program.listing, Checked) and program.listing.unites
    ):
        how = "united, not listed"
    header = f"Matches are {how}, because {program.listed_because}."
    parts = (
        # The constants of the classifier also hold the long IN lists of the listing's conditions.
        classifier(number, title, program, symbols, types, code, len(constants)),
        *update.before,
        *own.views(),
        *listing.before,
        *before_joins,
        QueryEnd(
            number,
            emit(plan, imports),
            classify,
            emit(update.value, imports),
            emit(listing.value, imports),
            header,
            tuple(f"query_{numbers[name]}.program" for name in query.reads),
            emit(joins, imports),
            options.positions,
        ),
    )
    return Lowered(plan, update.value, listing.value, parts)


def _with_columns(plan: Plan, options: ModuleOptions) -> Plan:
    """The plan with the columns that the options ask for."""
    if options.type_column is not None:
        plan = with_type_column(plan, options.type_column)
    return with_match_id(plan) if options.match_id and plan.is_of_matches else plan


def _update(
    number: int,
    program: Program,
    symbols: tuple[LegendLine, ...],
    listing: ListingPart,
    imports: Imports,
) -> UpdatePart:
    """The update of a query, given its listing."""
    update = program.update
    given = UpdateInput(
        number,
        f"The update is {describe_update(update)}, because {update.reason}.",
        program.tables.kinds,
        program.kind_bits,
        symbols,
        window_code(program.query),
        imports,
        partitioned=bool(program.query.partition_by),
        consumes=program.consumes,
        simultaneous=program.query.simultaneous,
    )
    kernel = in_module(f"update_{number}")
    match update:
        case UnionLists():
            interleaved = interleaves(program.query)
            by_tables = tables_update(given, program.tables, interleaved=interleaved)
            unmarked = program.tables.unmarked
            found_lists = strategy.UnionLists(in_module(f"TABLES_{number}"), as_met=unmarked)
            return UpdatePart(found_lists, (by_tables,))
        case BranchFree(piles=piles):
            lister = "list_runs" if isinstance(program.listing, InRuns) else "list_fired"
            branch_free = branch_free_update(given, piles, list_matches=lister)
            found = strategy.BranchFree(kernel, piles=len(piles.piles))
            return UpdatePart(found, (branch_free,))
        case StraightLine(piles=piles, bounds=bounds):
            if bounds is not None:
                assert listing.past is not None, "bounds are of conditions that the listing checks"
                windowed = given.window.mode != "NO_WINDOW"
                code = BoundCode(
                    number,
                    bounds,
                    listing.past,
                    listing.columns,
                    imports,
                    windowed,
                    program.kind_bits,
                )
                given = replace(given, bounds=code)
            straight_line = straight_line_update(given, piles)
            kept = None if bounds is None else 2 * len(bounds.kept)
            in_lines = strategy.StraightLine(kernel, piles=len(piles.piles), bounds=kept)
            return UpdatePart(in_lines, (straight_line,))
        case Keyed(piles=piles, keys=keys):
            lookups = KeyLookups(keys, piles, given.kinds, imports, given.simultaneous)
            with_keys = straight_line_update(given, piles, lookups)
            return UpdatePart(
                lookups.keyed(f"update_{number}"), (with_keys,), frozenset(keys.attributes)
            )
        case _:
            assert_never(update)


def _listing(
    number: int, program: Program, code: ConditionCode, own: OwnAggregateCode
) -> ListingPart:
    """The listing of a query. `code` and `own` write its conditions and aggregates."""
    imports, selector, listing = code.imports, program.query.strategy, program.listing
    match listing:
        case All() | InRuns() | Latest() | United():
            return ListingPart(listing)
        case InWindow(tables=selection, all_events=sees_all):
            before = selection_literal(number, selector, selection, imports)
            found = strategy.InWindow(in_module(f"SELECTION_{number}"), all_events=sees_all)
            return ListingPart(found, (before,), sees_all_events=sees_all)
        case EarliestInWindow(tables=earliest, all_events=sees_all):
            by_sets = earliest_literal(number, selector, earliest, imports)
            first = strategy.EarliestInWindow(in_module(f"SELECTION_{number}"), all_events=sees_all)
            return ListingPart(first, (by_sets,), sees_all_events=sees_all)
        case Checked():
            checks, checked, choices = checks_literal(number, listing, program, code, own)
            attributes = frozenset(choices.attributes_read)
            return ListingPart(
                checked,
                (checks,),
                attributes,
                past=choices,
                columns=checks.columns,
            )
        case Counted():
            return ListingPart(strategy.Counted(in_module(f"TABLES_{number}")))
        case LongestRuns():
            return _runs(number, listing, program, code, own)
        case ByDefinition():
            definition, named, read = definition_literal(number, listing, program, code, own)
            return ListingPart(named, (definition,), frozenset(read))
        case InWorlds():
            return _worlds(number, listing, program, code, own)
        case _:
            assert_never(listing)


def _runs(
    number: int, listing: LongestRuns, program: Program, code: ConditionCode, own: OwnAggregateCode
) -> ListingPart:
    """The listing whose matches are the longest runs of events, with conditions inside a run."""
    run, conditions = listing.run, listing.checks
    if isinstance(run, AdjoiningRuns):
        return _adjoining(number, run, conditions, program, code, own)
    runs = strategy.LongestRuns(
        kinds=listing.kinds,
        least=run.least,
        contiguous=run.contiguous,
        ordered_by=run.ordered_by,
    )
    if conditions is None:
        return ListingPart(runs)
    between, checked, choices = checks_literal(number, conditions, program, code, own)
    judges = any(clause.when == "complete" for clause in conditions.clauses)
    runs = replace(runs, checks=checked, judges=judges)
    return ListingPart(runs, (between,), frozenset(choices.attributes_read))


def _adjoining(
    number: int,
    runs: AdjoiningRuns,
    before: Checked | None,
    program: Program,
    code: ConditionCode,
    own: OwnAggregateCode,
) -> ListingPart:
    """The listing whose matches are runs of neighbours that adjoin.

    before: what must not lie before such a run; None: anything may. Steps become bits of a number,
    so that the kernel moves through all of them at once.
    """

    def bits(wanted: Callable[[Step], bool]) -> int:
        return sum(1 << number for number, step in enumerate(runs.steps) if wanted(step))

    found = strategy.AdjoiningRuns(
        kinds=runs.kinds,
        ends=sum(1 << spot for spot in runs.ends),
        steps=tuple((-1 if one.source is None else one.source, one.target) for one in runs.steps),
        by_symbol=tuple(
            bits(lambda step, symbol=symbol: symbol in step.symbols)  # type: ignore[misc]
            for symbol in range(program.tables.symbols)
        ),
    )
    if before is None:
        return ListingPart(found)
    literal, checked, choices = checks_literal(number, before, program, code, own, runs)
    links = in_module(f"links_{number}") if literal.link_lines else None
    found = replace(found, checks=checked, links=links, looks_before=before.looks_outside)
    return ListingPart(found, (literal,), frozenset(choices.attributes_read))


def _worlds(
    number: int, listing: InWorlds, program: Program, code: ConditionCode, own: OwnAggregateCode
) -> ListingPart:
    """The listing for events of uncertain time, by checks or by the definition, if it has one."""
    form, conditions = listing.form, listing.checks
    worlds = strategy.InWorlds(one_order=listing.one_order)
    if conditions is not None:
        between, checked, choices = checks_literal(number, conditions, program, code, own)
        worlds = replace(worlds, checks=checked, ordered=listing.ordered)
        return ListingPart(worlds, (between,), frozenset(choices.attributes_read))
    if form is None:
        return ListingPart(worlds)
    whole = ByDefinition(form, False, listing.max_work)
    definition, named, read = definition_literal(number, whole, program, code, own)
    worlds = replace(
        worlds,
        definition=named,
        by_world=listing.by_world,
        outside=listing.outside,
        alone=listing.outside and listing.alone,
    )
    return ListingPart(worlds, (definition,), frozenset(read))
