"""Columns that a query makes of others of the same event: derived attributes, and functions.

They are made once, where events enter: of a table on one machine (here), by Spark itself on Spark
(`spark/input/columns`). All later code reads them like any column.
"""

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import in_one_piece, plain
from celc_runtime.arrow.events.conforming import TEXTS, conforming_column
from celc_runtime.arrow.events.row_names import row_text
from celc_runtime.arrow.vectors import ValueOf, column_of
from celc_runtime.arrow.views import without_views
from celc_runtime.plan.expressions import Call, Column, Derived, Leaf, OfTypes, nodes_in
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import input_schema
from celc_runtime.values.code import SLOW


def with_derived(plan: Plan, events: pa.Table, rows_seen: int = 0) -> pa.Table:
    """Events with the columns of the plan that are derived; a column of such a name is replaced.

    Columns of the input that only derived ones need are left out. rows_seen: the number of rows
    before. Raises EventError for a column
    whose type does not fit.
    """
    derived = plan.source.derived
    if plan.source.rest and plan.source.type_name in events.column_names:
        events = _with_rest(plan, events)
    if not derived:
        return events
    fields = {field.name: field for field in input_schema(plan)}
    row_of = partial(row_text, events, rows_seen=rows_seen, numbered=None)
    read = {name for one in derived for name, _ in one.reads}
    columns = {
        name: conforming_column(plan, fields[name], without_views(_piece(events, name)), row_of)
        for name in read
    }

    def leaf(tree: Leaf | OfTypes) -> pa.Array:
        if isinstance(tree, OfTypes):
            return _is_of(plan, tree, events)
        assert isinstance(tree, Column), "a derived column is made of columns"
        return columns[tree.name]

    slow = [one for one in derived if _is_slow(plan, one)]
    rows = _rows_asked(plan, events) if slow else None
    made = {
        one.name: (
            column_of(one.value, one.type, leaf, len(events))
            if rows is None or one not in slow
            else _of_rows(one, rows, leaf, len(events))
        )
        for one in derived
    }
    kept = {one.name for one in plan.source.attributes} | {*plan.source.tiebreak}
    only_read = read - kept
    found = {n: events.column(n) for n in events.column_names if n not in only_read | {*made}}
    return pa.table({**found, **made})


def _with_rest(plan: Plan, events: pa.Table) -> pa.Table:
    """Events whose types are declared: rows of other types get the type that stands for them."""
    source = plan.source
    place = events.column_names.index(source.type_name)
    names = plain(in_one_piece(events.column(place)))
    if names.type not in TEXTS:
        return events  # which is reported where columns are checked
    names = names.cast(pa.string())
    for stream, rest in source.rest:
        known = [
            name for of, name in source.declared_types if of == stream or not source.stream_column
        ]
        of_stream = pc.and_(
            names.is_valid(), pc.invert(pc.is_in(names, pa.array(known, pa.string())))
        )
        if source.stream_column and "stream" in events.column_names:
            streams = plain(in_one_piece(events.column("stream"))).cast(pa.string())
            of_stream = pc.and_(of_stream, pc.fill_null(pc.equal(streams, stream), False))
        names = pc.if_else(of_stream, rest, names)
    return events.set_column(place, source.type_name, names)


# --- only of the events that can matter -----------------------------------------------------------


def _is_slow(plan: Plan, one: Derived) -> bool:
    """Whether a column takes longer than to leave out rows, and is asked for of events of the
    formula's types alone."""
    source, window = plan.source, plan.matching.window
    of_all = {*source.key_columns, *source.order_by, *source.tiebreak}
    if window is not None and window.attribute is not None:
        of_all.add(window.attribute)
    of_all |= {name for key in source.chosen_keys for name, _ in key.ways}
    functions = (node for node in nodes_in(one.value) if isinstance(node, Call))
    return one.name not in of_all and any(node.function in SLOW for node in functions)


def _rows_asked(plan: Plan, events: pa.Table) -> pa.Array | None:
    """The numbers of the rows of the formula's types; None: most rows, or all."""
    source = plan.source
    if not source.other_types or source.reads or source.uncertain is not None:
        return None
    asked = pc.fill_null(_is_of(plan, OfTypes(source.types), events), False)
    rows = np.flatnonzero(asked.to_numpy(zero_copy_only=False))
    return pa.array(rows) if 2 * len(rows) < len(events) else None


def _of_rows(one: Derived, rows: pa.Array, leaf: ValueOf, total: int) -> pa.Array:
    """A column that is computed for some rows, and NULL in all others."""

    def of_rows(tree: Leaf | OfTypes) -> pa.Array:
        whole = leaf(tree)
        assert isinstance(whole, pa.Array), "columns of the table"
        return whole.take(rows)

    values = column_of(one.value, one.type, of_rows, len(rows))
    places = np.full(total, -1)
    places[rows] = np.arange(len(rows))
    return values.take(pa.array(places, mask=places < 0))


def _piece(events: pa.Table, name: str) -> pa.Array:
    """A column in one piece. Where it was one, texts stay coded: a function of them is computed for
    each distinct one."""
    column = events.column(name)
    is_coded = pa.types.is_dictionary(column.type) and column.num_chunks == 1
    return column.chunk(0) if is_coded else in_one_piece(column)


def _is_of(plan: Plan, asked: OfTypes, events: pa.Table) -> pa.BooleanArray:
    """Where an event is of one of some types. An event without a type is of none."""
    names = plain(in_one_piece(events.column(plan.source.type_name))).cast(pa.string())
    if plan.source.stream_column:
        streams = plain(in_one_piece(events.column("stream"))).cast(pa.string())
        names = pc.binary_join_element_wise(streams, names, ">")
        wanted = [f"{stream}>{name}" for stream, name in asked.types]
    else:
        wanted = [name for _, name in asked.types]
    found = pc.is_in(names, pa.array(wanted, names.type))
    return pc.invert(found) if asked.negated else found
