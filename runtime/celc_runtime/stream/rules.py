"""A query FOR EACH on a stream: pairs of a row and an event are the events of an ordinary stream.

Before the shuffle, each event is paired with the rows that it can concern (`packing`). The number
of the row is a key of the partition. So the state and the operator know nothing of rows, and
partial matches of different rows never meet. After the operator, matches get the row's columns
again. The rows never change, because the state has their numbers. So they are sorted first, and a
header of the state has a hash of them. The order in which a call gives them does not matter.

Rejected: shuffling events, and pairing them after the shuffle. That would send an event once for
all of its rows. But each bucket would keep all rows and their index, and a query without PARTITION
BY would have one bucket.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import sortable
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program, Rows
from celc_runtime.rules.inner import over_pairs, parameters_of
from celc_runtime.rules.matching import with_rows


def all_concern(plan: Plan) -> Plan:
    """The plan by which events of a stream are paired with rows: where positions count, with every
    row, because a row has to count the events that concern others, too."""
    parameters = parameters_of(plan)
    if parameters.position is None and not plan.answer.positions:
        return plan
    source = replace(plan.source, parameters=replace(parameters, concerns=None))
    return replace(plan, source=source)


def stream_program(program: Program) -> Program:
    """The program that the operator runs; of a query FOR EACH, the program over pairs."""
    return program if program.plan.source.parameters is None else over_pairs(program)


def in_one_order(rows: Rows) -> Rows:
    """The rows in an order that depends only on their values."""
    keys = []
    for column in rows.columns.values():
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        coded = sortable(column).dictionary_encode(null_encoding="encode")
        places = pc.rank(coded.dictionary, tiebreaker="dense")
        keys.append(np.asarray(places, np.int64)[np.asarray(coded.indices)])
    if not keys:
        return rows
    return rows.take(np.lexsort(keys[::-1]).astype(np.int64))


def hash_of_rows(rows: Rows) -> int:
    """A number from 1 to 65,535 that identifies a table; its rows must be `in_one_order`."""
    found = blake2b(digest_size=8)
    for name, column in rows.columns.items():
        if name in rows.made:
            continue
        found.update(repr((name, str(column.type), column.to_pylist())).encode())
    return int.from_bytes(found.digest(), "little") % 65_535 + 1


def with_rows_again(
    program: Program, rules: Rows | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Matches of the operator as matches of the query."""
    for batch in batches:
        yield batch if rules is None else with_rows(program, rules, batch)
