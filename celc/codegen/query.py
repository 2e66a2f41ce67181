"""One query → its parts of a module, in their order."""

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
    """The end of a query: the `CompiledQuery` made of all of it.

    - `classified_by` is the function that finds symbols.
    - `plan`, `updated_by` and `listed_by` are calls that make its plan and the two parts of its
      strategy.
    - `listing_header` says how matches are listed, and why.
    - `reads` are the programs of the queries that it reads.
    - `positions`: positions are output.
    """

    template: ClassVar[str] = "query"

    number: int
    plan: str
    classified_by: str
    updated_by: str
    listed_by: str
    listing_header: str
    reads: tuple[str, ...]
    joins: str
    positions: bool


@frozen
class UpdatePart:
    """The update in a module, the parts before it, and the attributes that it reads."""

    value: strategy.Update
    before: tuple[TemplateView, ...] = ()
    read: frozenset[str] = frozenset()


@frozen
class ListingPart:
    """The listing in a module, the parts before it, and the attributes that it reads.

    `sees_all_events`: it also reads events that the query does not ask about. `past` writes
    conditions over the remembered columns of past events, whose variables are `columns`.
    """

    value: strategy.Listing
    before: tuple[TemplateView, ...] = ()
    read: frozenset[str] = frozenset()
    sees_all_events: bool = False
    past: EventCode | None = None
    columns: tuple[str, ...] = ()


@frozen
class Lowered:
    """A query in its last representation: values of `celc_runtime.plan`, and the parts of the
    module."""

    plan: Plan
    update: strategy.Update
    listing: strategy.Listing
    parts: tuple[TemplateView, ...]


@frozen
class ModuleOptions:
    """What a module depends on besides its programs: its text, the declarations of the tables that
    the text reads and does not declare, `tiebreak`, `at_end`, whether positions, `match_id` and
    joins are output, the column of the event types, if it has another name than `type`, and the
    functions that are given."""

    text: str
    declared: str
    tiebreak: tuple[str, ...]
    at_end: str
    positions: bool
    match_id: bool
    joins: bool
    type_column: str | None
    functions: tuple[GivenFunction, ...] = ()


def lower(
    number: int,
    program: Program,
    options: ModuleOptions,
    imports: Imports,
    numbers: Mapping[str, int],
) -> Lowered:
    """The query of number `number`, from 1; `numbers` are those of all queries of the module.
    Raises OptionClash where the query cannot have the column `match_id` or that of the types."""
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
    """The listing of the matches that end at an event."""
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
    """Runs that adjoin, whose steps are bits; `before`: what must not lie before them."""

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
