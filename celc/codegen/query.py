"""One query → the parts of a module that are about it, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, assert_never

from celc.codegen.branch_free import branch_free_update
from celc.codegen.classify import classifier, symbol_legend, types_code
from celc.codegen.conditions import ConditionCode
from celc.codegen.correlation import checks_literal, definition_literal
from celc.codegen.escape import comment_text, tuple_text
from celc.codegen.imports import Imports
from celc.codegen.joins import JoinCode
from celc.codegen.plan_literal import PlanArgument, plan_arguments
from celc.codegen.straight_line import straight_line_update
from celc.codegen.tables import earliest_literal, selection_literal, tables_update
from celc.codegen.templates import LegendLine, TemplateView
from celc.codegen.window import window_code
from celc.diagnostics.deadline import look
from celc.plan.program import Program
from celc.plan.strategy import (
    All,
    BranchFree,
    ByDefinition,
    Checked,
    EarliestInWindow,
    InRuns,
    InWindow,
    Keyed,
    Latest,
    StraightLine,
    UnionLists,
)


@dataclass(frozen=True, slots=True)
class QueryEnd(TemplateView):
    """The end of a query: the `CompiledQuery` made of all of it.

    `updated_by` and `listed_by` are constructor calls of the two parts of its strategy.
    """

    template: ClassVar[str] = "query"

    number: int
    plan: tuple[PlanArgument, ...]
    updated_by: str
    listed_by: str
    listed_because: str


@dataclass(frozen=True, slots=True)
class StrategyCode:
    """One part of a strategy in a module: its constructor call, and what stands before that.

    `read` are the attributes that it reads, `sees_all_events`: it has to be shown the events that
    the query does not ask about as well.
    """

    call: str
    before: tuple[TemplateView, ...] = ()
    read: frozenset[str] = frozenset()
    sees_all_events: bool = False


def query_parts(
    number: int,
    program: Program,
    tiebreak: tuple[str, ...],
    imports: Imports,
    *,
    alone: bool,
) -> list[TemplateView]:
    """The parts of query `number`, from 1; `alone`: the module has no other query."""
    query = program.query
    look(query.formula.span, "writing the module")
    code = ConditionCode(number, imports)
    types = types_code(program, code)
    symbols = symbol_legend(program)
    listing = _listing(number, program, code)
    update = _update(number, program, symbols, imports)
    imports.use("CompiledQuery", "Program")
    title = "" if alone else f"Query {comment_text(query.name)}. "
    plan = plan_arguments(
        program,
        code,
        listing.read | update.read | code.attributes_read,
        tiebreak,
        sees_all_events=listing.sees_all_events,
    )
    return [
        # Long IN lists of the listing's conditions are among its constants too.
        classifier(number, title, program, symbols, types, code),
        *update.before,
        *listing.before,
        QueryEnd(number, plan, update.call, listing.call, program.listing.reason),
    ]


def _update(
    number: int, program: Program, symbols: tuple[LegendLine, ...], imports: Imports
) -> StrategyCode:
    """How the update runs."""
    query, tables, update = program.query, program.tables, program.update
    kinds, kind_bits = tables.kinds, program.kind_bits
    window = window_code(query)
    partitioned = bool(query.partition_by)
    kernel = f"update_{number}"
    match update:
        case UnionLists(reason=because):
            by_tables = tables_update(
                number,
                tables,
                because,
                window,
                imports,
                consumes=program.consumes,
                interleaved=query.consume_by == "ANY" and partitioned,
            )
            return StrategyCode(imports.call("UnionLists", f"TABLES_{number}"), (by_tables,))
        case BranchFree(piles=piles, reason=because):
            in_runs = isinstance(program.listing, InRuns)
            branch_free = branch_free_update(
                number,
                piles,
                because,
                kinds,
                kind_bits,
                symbols,
                window,
                imports,
                partitioned=partitioned,
                list_matches="list_runs" if in_runs else "list_fired",
            )
            call = imports.call("BranchFree", kernel, f"piles={len(piles.piles)}")
            return StrategyCode(call, (branch_free,))
        case StraightLine(piles=piles, reason=because) | Keyed(piles=piles, reason=because):
            joins = None
            if isinstance(update, Keyed):
                joins = JoinCode(update.keys, piles, kinds, imports)
            straight_line = straight_line_update(
                number,
                piles,
                because,
                kinds,
                kind_bits,
                joins,
                symbols,
                window,
                imports,
                partitioned=partitioned,
                consumes=program.consumes,
            )
            if isinstance(update, Keyed) and joins is not None:
                read = frozenset(update.keys.attributes)
                return StrategyCode(joins.keyed(kernel), (straight_line,), read)
            call = imports.call("StraightLine", kernel, f"piles={len(piles.piles)}")
            return StrategyCode(call, (straight_line,))
        case _:
            assert_never(update)


def _listing(number: int, program: Program, code: ConditionCode) -> StrategyCode:
    """How the matches that end at an event are listed."""
    imports, strategy, listing = code.imports, program.query.strategy, program.listing
    match listing:
        case All():
            return StrategyCode(imports.call("All"))
        case Latest():
            return StrategyCode(imports.call("Latest"))
        case InRuns(shape=shape):
            kinds = tuple_text(map(str, shape.kinds))
            call = imports.call("InRuns", f"kinds={kinds}", f"leaf_pile={shape.leaf_pile}")
            return StrategyCode(call)
        case InWindow(tables=selection, all_events=sees_all):
            call = imports.call("InWindow", f"SELECTION_{number}", f"all_events={sees_all}")
            before = selection_literal(number, strategy, selection, imports)
            return StrategyCode(call, (before,), sees_all_events=sees_all)
        case EarliestInWindow(tables=earliest, all_events=sees_all):
            call = imports.call("EarliestInWindow", f"SELECTION_{number}", f"all_events={sees_all}")
            by_sets = earliest_literal(number, strategy, earliest, imports)
            return StrategyCode(call, (by_sets,), sees_all_events=sees_all)
        case Checked():
            checks, read = checks_literal(number, listing, program, code)
            return StrategyCode(f"CHECKS_{number}", (checks,), frozenset(read))
        case ByDefinition():
            definition, read = definition_literal(number, listing, program, code)
            return StrategyCode(f"DEFINITION_{number}", (definition,), frozenset(read))
        case _:
            assert_never(listing)
