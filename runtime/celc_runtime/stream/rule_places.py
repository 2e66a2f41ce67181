"""The buckets that a row of a streaming table of parameters is sent to.

A row is paired with events of one partition if every event that it can concern has keys of
PARTITION BY that equal attributes of the row. Then only the bucket of this partition needs the row.
Versions of one row may have other keys, so the other buckets are told when a row begins and ends,
unless the attribute is the one by which rows are versions. The first bucket is always told, because
it counts for all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from celc_runtime.plan.parameters import OfBoth, Parameters
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.rules.inner import parameters_of
from celc_runtime.stream.held_rules import Told
from celc_runtime.stream.stored.key_table import hashes_of
from celc_runtime.stream.stored.rows import RowLayout

_WHOLE = ("BYTE", "SHORT", "INT", "LONG")


def attributes_of_keys(plan: Plan, keys: RowLayout) -> tuple[str, ...] | None:
    """The attributes of a row that its events have as keys of their partition; None: there are
    none, or not for each key.

    plan: by which events of a stream are paired with rows. keys: of its partitions.
    """
    parameters = parameters_of(plan)
    if not parameters.concerns or not keys.fields:
        return None
    found = []
    for field in keys.fields:
        shared = _equal_in_all(parameters, field.name)
        fitting = (one for one in shared if _fits(parameters.type_of(one), field.type))
        name = min(fitting, default=None)
        if name is None:
            return None
        found.append(name)
    return tuple(found)


def places_of(
    parameters: Parameters, named: tuple[str, ...] | None, keys: RowLayout, told: Told, buckets: int
) -> Iterator[tuple[int, Told]]:
    """The rows that each bucket is told of, by its number.

    named: `attributes_of_keys`; buckets: how many there are.
    """
    if named is None:
        for bucket in range(buckets):
            yield bucket, told
        return
    columns = [
        told.rows.columns[name].cast(field.arrow_type, safe=False)
        for name, field in zip(named, keys.fields, strict=True)
    ]
    encoded = keys.encoded(columns, np.zeros(told.rows.count, np.int64))
    of_rows = hashes_of(keys.keys_of(encoded)) % np.uint64(buckets)
    are_one = {*named} == {parameters.attributes[0].name}
    others = told.for_others(parameters)
    for bucket in range(buckets):
        is_own = of_rows == bucket
        parts = [told.take(np.flatnonzero(is_own))]
        if bucket == 0 or not are_one:
            parts.append(others.take(np.flatnonzero(~is_own)))
        found = Told.joined(parts)
        if found.rows.count:
            yield bucket, found


def _equal_in_all(parameters: Parameters, key: str) -> set[str]:
    """The attributes that a key equals in every event that concerns a row."""
    found: set[str] | None = None
    for concern in parameters.concerns or ():
        for way in concern.ways or ((),):
            equal = {
                clause[0].parameter
                for clause in way
                if len(clause) == 1
                and isinstance(clause[0], OfBoth)
                and (clause[0].operator, clause[0].attribute) == ("=", key)
            }
            found = equal if found is None else found & equal
    return found or set()


def _fits(parameter: str, key: str) -> bool:
    """Whether equal values of two types are one value of the second.

    A whole number that the key's type does not hold equals no key, so any place will do.
    """
    same = arrow_type(parameter) == arrow_type(key)
    return same or (parameter in _WHOLE and key in _WHOLE)
