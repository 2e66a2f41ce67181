"""Which queries of a module go on from a checkpoint that other queries have begun.

Spark keeps the operators of a checkpoint, each in its place. So an operator needs a query that goes
on, and a new query needs an operator with its PARTITION BY and order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from celc_runtime.chain.streams.checkpoint import Recorded, going_on, recorded_units
from celc_runtime.chain.streams.header import is_of_module, named, read
from celc_runtime.chain.streams.units import GoesOn
from celc_runtime.plan.errors import PlanWarning, StateError
from celc_runtime.program import Program
from celc_runtime.stream.finish import all_headers
from celc_runtime.values.warned import warn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Group = tuple[tuple[str, ...], GoesOn | None]


def rearranged(
    programs: Mapping[str, Program],
    groups: Sequence[tuple[str, ...]],
    spark: SparkSession,
    checkpoint: str | None,
) -> list[_Group]:
    """The queries of each operator, in the order of the checkpoint, and what goes on there (None:
    the checkpoint does not exist yet, or nobody named it).

    Warns of queries that begin or are dropped. Raises StateError where the operators are others.
    """
    headers = {} if checkpoint is None else all_headers(spark, checkpoint)
    if not any(headers.values()):
        return [(names, None) for names in groups]
    return arranged(programs, groups, [*headers.values()])


def arranged(
    programs: Mapping[str, Program],
    groups: Sequence[tuple[str, ...]],
    headers: Sequence[Sequence[bytes]],
) -> list[_Group]:
    """The same, from the headers of all buckets of each operator."""
    told = named(programs)
    left = [*groups]
    found: list[_Group | None] = []
    units_of = [_units(told, of_operator) for of_operator in headers]
    known = {name for units in units_of if units for name in units.queries}
    for of_operator, units in zip(headers, units_of, strict=True):
        if not of_operator:
            found.append(None)  # no row has come to it
            continue
        if units is None:
            here = "the query FOR EACH"
            group = next((one for one in left if _is_for_each(programs, one)), None)
        else:
            names = units.queries
            here = ", ".join(names)
            group = next((one for one in left if not {*names}.isdisjoint(one)), None)
        if group is None:
            raise _other_operators(told, f"none is left of {here}")
        if units is not None:
            away = [name for name in names if name in programs and name not in group]
            away += [name for name in group if name in known and name not in names]
            if away:
                raise _other_operators(told, f"the key or the order of {away[0]} has changed")
        left.remove(group)
        found.append((group, None if units is None else going_on(units, programs)))
    if len(left) != found.count(None):
        names = [name for group in left for name in group]
        raise _other_operators(
            told,
            f"there would be {len(groups)} operators in place of {len(headers)}"
            + (f", the new of {', '.join(names)}" if names else ""),
        )
    fills = iter(left)
    done = [(next(fills), None) if one is None else one for one in found]
    _tell(programs, known, [group for group, units in done if units is not None])
    return done


def _units(told: str, headers: Sequence[bytes]) -> Recorded | None:
    """The units of an operator; None: it has a query FOR EACH, or no state yet."""
    if not headers or not is_of_module(headers[0]):
        return None
    return recorded_units([read(told, one) for one in headers])


def _is_for_each(programs: Mapping[str, Program], group: Sequence[str]) -> bool:
    return programs[group[0]].plan.source.parameters is not None


def _tell(
    programs: Mapping[str, Program], known: set[str], groups: Sequence[tuple[str, ...]]
) -> None:
    new = [name for group in groups for name in group if name not in known]
    gone = sorted(known - {*programs})
    parts = []
    if new:
        parts.append(f"{named(new)} begin{'s' * (len(new) == 1)} with the events from now on")
    if gone:
        parts.append(f"the state of {named(gone)} is dropped")
    if parts:
        warn(f"the checkpoint was begun with other queries: {'; '.join(parts)}", PlanWarning)


def _other_operators(told: str, why: str) -> StateError:
    return StateError(
        f"{told}: the checkpoint cannot go on with these queries, because Spark keeps its "
        f"operators, one for each PARTITION BY and order, and {why}: run a query with another key "
        "as a stream of its own, or end this one with celc_runtime.finish and begin a new "
        "checkpoint"
    )
