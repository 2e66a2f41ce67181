"""One query → the parts of a module that are about it, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from celc.compiled import Compiled
from celc.deadline import look
from celc.earliest import EarliestTables, is_quiet
from celc.emit_branch_free import BranchFreeUpdate, branch_free_update, is_branch_free
from celc.emit_classify import classifier, symbol_legend, types_code
from celc.emit_conditions import ConditionCode
from celc.emit_correlation import checks_literal, definition_literal
from celc.emit_imports import Imports
from celc.emit_joins import JoinCode
from celc.emit_plan import PlanArgument, plan_arguments
from celc.emit_tables import TablesUpdate, earliest_literal, selection_literal, tables_update
from celc.emit_templates import LegendLine, TemplateView
from celc.emit_update import StraightLineUpdate, straight_line_update
from celc.emit_window import window_code
from celc.escape import comment_text
from celc.piles import why_not_straight_line, why_straight_line
from celc.shapes import Shape, fixed_shape


@dataclass(frozen=True, slots=True)
class QueryEnd(TemplateView):
    """The end of a query: the `CompiledQuery` made of all of it.

    `listing` are the arguments that say how matches are listed.
    """

    template: ClassVar[str] = "query"

    number: int
    plan: tuple[PlanArgument, ...]
    listing: tuple[str, ...]


def query_parts(
    number: int,
    compiled: Compiled,
    tiebreak: tuple[str, ...],
    imports: Imports,
    *,
    alone: bool,
) -> list[TemplateView]:
    """The parts of query `number`, from 1; `alone`: the module has no other query."""
    query = compiled.query
    look(query.formula.span, "writing the module")
    code = ConditionCode(number, imports)
    types = types_code(compiled, code)
    symbols = symbol_legend(compiled)
    listing: list[TemplateView] = []
    arguments: list[str] = []
    read: set[str] = set()
    if isinstance(compiled.selection, EarliestTables):
        listing.append(earliest_literal(number, query.strategy, compiled.selection, imports))
        arguments.append(f"SELECTION_{number}")
    elif compiled.selection is not None:
        listing.append(selection_literal(number, query.strategy, compiled.selection, imports))
        arguments.append(f"SELECTION_{number}")
    if compiled.definition is not None:
        definition, attributes = definition_literal(number, compiled.definition, compiled, code)
        listing.append(definition)
        arguments.append(f"definition=DEFINITION_{number}")
        read |= attributes
    if compiled.joins is not None:
        arguments.append(f"joins=JOINS_{number}")
        read |= compiled.joins.attributes
    if compiled.checks is not None:
        checks, attributes = checks_literal(number, compiled.checks, compiled, code)
        listing.append(checks)
        arguments.append(f"checks=CHECKS_{number}")
        read |= attributes
    update, joins = _update(number, compiled, symbols, imports)
    imports.use("CompiledQuery")
    title = "" if alone else f"Query {comment_text(query.name)}. "
    plan = plan_arguments(
        compiled,
        code,
        read | code.attributes_read,
        tiebreak,
        _shape(compiled),
        sees_all_events=_sees_all_events(compiled),
    )
    return [
        # Long IN lists of the listing's conditions are among its constants too.
        classifier(number, title, compiled, symbols, types, code),
        update,
        *listing,
        *([] if joins is None else [joins.literal(number)]),
        QueryEnd(number, plan, tuple(arguments)),
    ]


def _update(
    number: int, compiled: Compiled, symbols: tuple[LegendLine, ...], imports: Imports
) -> tuple[TablesUpdate | BranchFreeUpdate | StraightLineUpdate, JoinCode | None]:
    """The update, and the look-ups in it of states with keys."""
    query, tables, plan = compiled.query, compiled.tables, compiled.straight_line
    window = window_code(query)
    partitioned = bool(query.partition_by)
    if plan is None:
        by_tables = tables_update(
            number,
            tables,
            why_not_straight_line(tables) or "partitions interleave",
            window,
            imports,
            consumes=compiled.consumes,
            interleaved=query.consume_by == "ANY" and partitioned,
        )
        return by_tables, None
    because, kinds, kind_bits = why_straight_line(plan), tables.kinds, compiled.kind_bits
    if is_branch_free(compiled):
        branch_free = branch_free_update(
            number,
            plan,
            because,
            kinds,
            kind_bits,
            symbols,
            window,
            imports,
            partitioned=partitioned,
            list_matches="list_fired" if _shape(compiled) is None else "list_runs",
        )
        return branch_free, None
    joins = None
    if compiled.joins is not None:
        joins = JoinCode(compiled.joins, plan, kinds, imports)
    straight_line = straight_line_update(
        number,
        plan,
        because,
        kinds,
        kind_bits,
        joins,
        symbols,
        window,
        imports,
        partitioned=partitioned,
        consumes=compiled.consumes,
    )
    return straight_line, joins


def _shape(compiled: Compiled) -> Shape | None:
    """The shape of all matches, where all that the automaton finds are, and all are listed."""
    chosen = compiled.selection or compiled.greedy or compiled.checks or compiled.definition
    query = compiled.query
    if chosen or query.limit is not None or query.strategy == "ANY":
        return None
    if compiled.straight_line is None or not is_branch_free(compiled):
        return None
    return fixed_shape(compiled.straight_line)


def _sees_all_events(compiled: Compiled) -> bool:
    """Whether a selection must be shown the events that the query does not ask about as well."""
    selection = compiled.selection
    if selection is None:
        return False
    quiet = (
        is_quiet(selection, 0) if isinstance(selection, EarliestTables) else selection.is_quiet(0)
    )
    return compiled.tables.contexts is not None or not quiet
