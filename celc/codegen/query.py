"""One query → its parts of a module, in their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, assert_never

from celc.codegen.branch_free import branch_free_update
from celc.codegen.checks import EventCode
from celc.codegen.classify import classifier, symbol_legend, types_code
from celc.codegen.conditions import ConditionCode
from celc.codegen.correlation import checks_literal, definition_literal
from celc.codegen.describe import describe_listing, describe_update
from celc.codegen.escape import comment_text, string_literal, tuple_text
from celc.codegen.imports import Imports
from celc.codegen.joins import joins_literal
from celc.codegen.key_lookups import KeyLookups
from celc.codegen.own_aggregates import OwnAggregateCode
from celc.codegen.pile_bounds import BoundCode
from celc.codegen.plan_arguments import PlanArgument, plan_arguments
from celc.codegen.straight_line import straight_line_update
from celc.codegen.tables import earliest_literal, selection_literal, tables_update
from celc.codegen.templates import LegendLine, TemplateView
from celc.codegen.update import UpdateInput
from celc.codegen.window import window_code
from celc.diagnostics.deadline import look
from celc.normal.divide import interleaves
from celc.plan.program import Program
from celc.plan.strategy import (
    All,
    BranchFree,
    ByDefinition,
    Checked,
    Counted,
    EarliestInWindow,
    InRuns,
    InWindow,
    InWorlds,
    Keyed,
    Latest,
    LongestRuns,
    StraightLine,
    UnionLists,
    United,
)


@dataclass(frozen=True, slots=True)
class QueryEnd(TemplateView):
    """The end of a query: the `CompiledQuery` made of all of it.

    `classified_by` is the function that finds symbols; `updated_by` and `listed_by` are constructor
    calls of the two parts of its strategy; `listing_header` says how matches are listed, and why.
    `reads` are the programs of the queries that it reads.
    """

    template: ClassVar[str] = "query"

    number: int
    plan: tuple[PlanArgument, ...]
    classified_by: str
    updated_by: str
    listed_by: str
    listing_header: str
    reads: tuple[str, ...]
    joins: str


@dataclass(frozen=True, slots=True)
class StrategyPart:
    """One part of a strategy in a module: its constructor call, and the parts of the module before
    it.

    `past` writes conditions over the columns of past events that it remembers, whose variables are
    `columns`. `read` are the attributes that it reads, `sees_all_events`: it also has to read the
    events that the query does not ask about.
    """

    call: str
    before: tuple[TemplateView, ...] = ()
    read: frozenset[str] = frozenset()
    sees_all_events: bool = False
    past: EventCode | None = None
    columns: tuple[str, ...] = ()


def query_parts(
    number: int,
    program: Program,
    tiebreak: tuple[str, ...],
    at_end: str,
    imports: Imports,
    numbers: Mapping[str, int],
    text: str,
) -> list[TemplateView]:
    """The parts of query `number`, from 1; `numbers` are those of all queries of the module, and
    `text` is its text."""
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
    own = OwnAggregateCode(number, imports, code.members)
    listing = _listing(number, program, code, own)
    update = _update(number, program, symbols, listing, imports)
    joins, before_joins = joins_literal(number, query, text, imports)
    imports.use("CompiledQuery", "Program")
    title = "" if alone else f"Query {comment_text(query.name)}. "
    plan = plan_arguments(
        program,
        code,
        listing.read | update.read | code.attributes_read,
        tiebreak,
        at_end,
        own=own,
        sees_all_events=listing.sees_all_events,
    )
    how = f"listed {describe_listing(program.listing)}"
    if isinstance(program.listing, Counted | United):
        how = "not listed" if isinstance(program.listing, Counted) else "united, not listed"
    header = f"Matches are {how}, because {program.listing.reason}."
    return [
        # The constants of the classifier hold the long IN lists of the listing's conditions too.
        classifier(number, title, program, symbols, types, code, len(constants)),
        *update.before,
        *([own.view()] if own.functions else []),
        *listing.before,
        *before_joins,
        QueryEnd(
            number,
            plan,
            classify,
            update.call,
            listing.call,
            header,
            tuple(f"query_{numbers[name]}.program" for name in query.reads),
            joins,
        ),
    ]


def _update(
    number: int,
    program: Program,
    symbols: tuple[LegendLine, ...],
    listing: StrategyPart,
    imports: Imports,
) -> StrategyPart:
    """The update of a query, beside its listing."""
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
    kernel = f"update_{number}"
    match update:
        case UnionLists():
            interleaved = interleaves(program.query)
            by_tables = tables_update(given, program.tables, interleaved=interleaved)
            return StrategyPart(imports.call("UnionLists", f"TABLES_{number}"), (by_tables,))
        case BranchFree(piles=piles):
            lister = "list_runs" if isinstance(program.listing, InRuns) else "list_fired"
            branch_free = branch_free_update(given, piles, list_matches=lister)
            call = imports.call("BranchFree", kernel, f"piles={len(piles.piles)}")
            return StrategyPart(call, (branch_free,))
        case StraightLine(piles=piles, bounds=bounds):
            arguments = [f"piles={len(piles.piles)}"]
            if bounds is not None:
                assert listing.past is not None, "bounds are of conditions that the listing checks"
                windowed = given.window.mode != "NO_WINDOW"
                code = BoundCode(bounds, listing.past, listing.columns, imports, windowed)
                given = replace(given, bounds=code)
                arguments.append(f"bounds={2 * len(bounds.kept)}")
            straight_line = straight_line_update(given, piles)
            call = imports.call("StraightLine", kernel, *arguments)
            return StrategyPart(call, (straight_line,))
        case Keyed(piles=piles, keys=keys):
            lookups = KeyLookups(keys, piles, given.kinds, imports, given.simultaneous)
            with_keys = straight_line_update(given, piles, lookups)
            return StrategyPart(lookups.keyed(kernel), (with_keys,), frozenset(keys.attributes))
        case _:
            assert_never(update)


def _listing(
    number: int, program: Program, code: ConditionCode, own: OwnAggregateCode
) -> StrategyPart:
    """The listing of the matches that end at an event."""
    imports, strategy, listing = code.imports, program.query.strategy, program.listing
    match listing:
        case All():
            return StrategyPart(imports.call("All"))
        case Latest():
            return StrategyPart(imports.call("Latest"))
        case InRuns(shape=shape):
            kinds = tuple_text(map(str, shape.kinds))
            call = imports.call("InRuns", f"kinds={kinds}", f"leaf_pile={shape.leaf_pile}")
            return StrategyPart(call)
        case InWindow(tables=selection, all_events=sees_all):
            call = imports.call("InWindow", f"SELECTION_{number}", f"all_events={sees_all}")
            before = selection_literal(number, strategy, selection, imports)
            return StrategyPart(call, (before,), sees_all_events=sees_all)
        case EarliestInWindow(tables=earliest, all_events=sees_all):
            call = imports.call("EarliestInWindow", f"SELECTION_{number}", f"all_events={sees_all}")
            by_sets = earliest_literal(number, strategy, earliest, imports)
            return StrategyPart(call, (by_sets,), sees_all_events=sees_all)
        case Checked():
            checks, choices = checks_literal(number, listing, program, code, own)
            attributes = frozenset(choices.attributes_read)
            return StrategyPart(
                f"CHECKS_{number}", (checks,), attributes, past=choices, columns=checks.columns
            )
        case United(weighs=weighs):
            return StrategyPart(imports.call("United", *(["weighs=True"] if weighs else [])))
        case Counted():
            return StrategyPart(imports.call("Counted", f"TABLES_{number}"))
        case LongestRuns(run=run, checks=conditions):
            code.imports.use("LongestRuns")
            arguments = [tuple_text(map(str, listing.kinds)), str(run.least), str(run.contiguous)]
            arguments.append("None" if run.ordered_by is None else string_literal(run.ordered_by))
            if conditions is None:
                return StrategyPart(imports.call("LongestRuns", *arguments))
            between, choices = checks_literal(number, conditions, program, code, own)
            arguments.append(f"CHECKS_{number}")
            if any(clause.when == "complete" for clause in conditions.clauses):
                arguments.append("judges=True")
            call = imports.call("LongestRuns", *arguments)
            return StrategyPart(call, (between,), frozenset(choices.attributes_read))
        case ByDefinition():
            definition, read = definition_literal(number, listing, program, code, own)
            return StrategyPart(f"DEFINITION_{number}", (definition,), frozenset(read))
        case InWorlds(form=form, checks=conditions, one_order=one_order):
            orders = f"one_order={one_order}"
            if conditions is not None:
                between, choices = checks_literal(number, conditions, program, code, own)
                call = imports.call("InWorlds", orders, f"checks=CHECKS_{number}")
                return StrategyPart(call, (between,), frozenset(choices.attributes_read))
            if form is None:
                return StrategyPart(imports.call("InWorlds", orders))
            whole = ByDefinition(form, False, listing.max_work, listing.reason)
            definition, read = definition_literal(number, whole, program, code, own)
            call = imports.call("InWorlds", orders, f"definition=DEFINITION_{number}")
            return StrategyPart(call, (definition,), frozenset(read))
        case _:
            assert_never(listing)
