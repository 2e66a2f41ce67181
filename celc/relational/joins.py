"""A resolved query → what its module holds of it as joins."""

from collections.abc import Sequence

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.joins import Joins

from celc.core.formula import AttributeValue, Collection, OutputLabel, Query, WindowUnit
from celc.core.terms import nodes_named_in
from celc.core.traversal import nodes_of, windows_in
from celc.diagnostics.source import Span
from celc.relational.bands import Band, bands_of, is_tied
from celc.relational.expressions import Dialect
from celc.relational.layout import VARIABLE
from celc.relational.relate import output_value, relate
from celc.relational.relations import NotRelational, Relations
from celc.relational.select import columns_of, statement_of


@frozen
class NotJoined:
    """Why a query is none of joins, in words, and the part of the text that says so."""

    what: str
    span: Span


def joins_of(query: Query, dialect: Dialect = "spark") -> Joins | NotJoined:
    """The query as joins, or why it is not."""
    try:
        return _joined(relate(query), dialect)
    except NotRelational as problem:
        return NotJoined(problem.what, problem.span)


def _joined(branches: tuple[Relations, ...], dialect: Dialect) -> Joins:
    first, query = branches[0], branches[0].query
    columns = columns_of(first)
    bands = [(one, band) for one in branches for band in bands_of(one)]
    if not all(map(bands_of, branches)):
        bands = []  # one branch compares all pairs of a window
    reads = {name for one in branches for name in _reads(one)}
    types = (one for stream in query.streams for one in stream.event_types)
    declared = {one.name: one.type.value for type in types for one in type.attributes}
    windows = [*windows_in(query.formula), *([] if query.window is None else [query.window])]
    timed = [window for window in windows if window.unit is not WindowUnit.EVENTS]
    named = [window.attribute.name for window in timed if window.attribute is not None]
    if first.shows_decided_time:
        # The type of the times when matches are decided is that of the order.
        named += [one.name for one in query.order_by[:1]]
    reaches = [one.deadline for one in branches if one.deadline is not None]
    statement = statement_of(branches, dialect)
    if dialect == "spark" and any(VARIABLE in part for part in statement):
        raise NotRelational("Spark puts variables in the place of '${' in a name", query.span)
    return Joins(
        scans=statement.scans,
        numbered=statement.numbered,
        plain=statement.plain,
        found=statement.found,
        place=columns.place,
        time=columns.time,
        measure=columns.measure,
        keys=columns.keys,
        unit="" if first.unit is None else first.unit.name,
        attributes=tuple(dict.fromkeys(named)),
        counts=any(one.numbered for one in branches),
        latest=columns.latest if reaches else "",
        decided_by_clock=any(not one.of_positions for one in reaches),
        decided_by_ends=any(one.of_positions for one in reaches),
        reads=tuple((name, type) for name, type in declared.items() if name in reads),
        bands=_types_of(bands),
        untied=_types_of([(one, band) for one, band in bands if not is_tied(one, band)]),
    )


def _types_of(
    bands: Sequence[tuple[Relations, Band]],
) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """For each band the event types of its two events, the earlier one first; where either can be
    the earlier one, both ways."""
    found = []
    for relations, band in bands:
        types = {
            scan.name: tuple(dict.fromkeys(one.name for one in scan.types))
            for scan in relations.scans
        }
        for first, second in ((band.first, band.second), (band.second, band.first)):
            if not relations.follows(first, second):
                found.append((types[first], types[second]))
    return tuple(dict.fromkeys(found))


def _reads(relations: Relations) -> set[str]:
    """The attributes in the text of a branch."""
    query = relations.query
    found = {attribute for key in query.partition_by for attribute in key.attributes}
    for item in query.output:
        if isinstance(item, OutputLabel):
            found |= {attribute.name for attribute in item.attributes}
        elif isinstance(item.value, Collection):
            found.add(item.value.attribute)
        else:
            value = output_value(relations, item.value)
            found |= {one.attribute for one in nodes_of(value) if isinstance(one, AttributeValue)}
    absent = (one for missing in relations.missing for one in (missing.scan, missing))
    for condition in (
        *relations.conditions,
        *(one for part in (*relations.scans, *absent) for one in part.conditions),
    ):
        for predicate in condition:
            nodes = nodes_named_in(predicate)
            found |= {one.attribute for one in nodes if isinstance(one, AttributeValue)}
    return found
