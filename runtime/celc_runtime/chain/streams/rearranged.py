"""Which queries of a module go on from a checkpoint that other queries have begun.

Spark keeps the operators of a checkpoint, each in its place. So an operator needs a query that goes
on, and a new query needs an operator with its event time. Groups of queries with another PARTITION
BY can begin and go: their buckets are told apart by their labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from celc_runtime.chain.streams.checkpoint import Recorded, going_on, recorded_units
from celc_runtime.chain.streams.header import ModuleState, is_of_module, named, read
from celc_runtime.chain.streams.units import GoesOn
from celc_runtime.plan.errors import PlanWarning, StateError
from celc_runtime.program import Program
from celc_runtime.stream.buckets import group_of_label
from celc_runtime.stream.finish import all_headers
from celc_runtime.values.warned import warn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Arranged(NamedTuple):
    """A group of queries."""

    names: tuple[str, ...]
    goes_on: GoesOn | None  # None: the checkpoint does not exist yet, or nobody named it
    number: int  # by which its buckets are labelled


_Operators = Sequence[Sequence[tuple[str, ...]]]
"""The queries of each group of each operator."""


def rearranged(
    programs: Mapping[str, Program],
    operators: _Operators,
    spark: SparkSession,
    checkpoint: str | None,
) -> list[list[Arranged]]:
    """The groups of each operator, in the order of the checkpoint, and what goes on there.

    Warns of queries that begin or are dropped. Raises StateError where the operators are others.
    """
    headers = {} if checkpoint is None else all_headers(spark, checkpoint)
    if not any(headers.values()):
        return [_begun(groups) for groups in operators]
    return arranged(programs, operators, [*headers.values()])


def _begun(groups: Sequence[tuple[str, ...]]) -> list[Arranged]:
    return [Arranged(names, None, number) for number, names in enumerate(groups)]


def arranged(
    programs: Mapping[str, Program],
    operators: _Operators,
    headers: Sequence[Mapping[int, bytes]],
) -> list[list[Arranged]]:
    """The groups of each operator, and what goes on there.

    headers: for each operator, those of all its buckets, by label. Warns and raises as
    `rearranged`.
    """
    told = named(programs)
    left = [*operators]
    found: list[list[Arranged] | None] = []
    recorded = [_recorded(told, of_operator) for of_operator in headers]
    known = {name for of in recorded for units in of.values() for name in units.queries}
    begins: set[str] = set()
    for of_operator, units_of in zip(headers, recorded, strict=True):
        if not of_operator:
            found.append(None)  # no row has come to it
            continue
        names = [name for units in units_of.values() for name in units.queries]
        if units_of:
            here = ", ".join(names)
            mine = (one for one in left if any(not {*names}.isdisjoint(group) for group in one))
        else:
            here = "the query FOR EACH"
            mine = (one for one in left if _is_for_each(programs, one[0]))
        groups = next(mine, None)
        if groups is None:
            raise _other_operators(told, f"none is left of {here}")
        left.remove(groups)
        if not units_of:
            found.append(_begun(groups))
            continue
        found.append(_going_on(programs, told, groups, units_of))
        begins |= {name for one in groups for name in one} - known
    if len(left) != found.count(None):
        names = [name for groups in left for group in groups for name in group]
        raise _other_operators(
            told,
            f"there would be {len(operators)} operators in place of {len(headers)}"
            + (f", the new of {', '.join(names)}" if names else ""),
        )
    fills = iter(left)
    done = [_begun(next(fills)) if one is None else one for one in found]
    new = [name for name in programs if name in begins]
    _tell(new, sorted(known - {*programs}))
    return done


def _going_on(
    programs: Mapping[str, Program],
    told: str,
    groups: Sequence[tuple[str, ...]],
    recorded: Mapping[int, Recorded],
) -> list[Arranged]:
    """The groups of an operator, with their numbers in the checkpoint. New ones get numbers that no
    bucket has."""
    number_of = {name: n for n, units in recorded.items() for name in units.queries}
    fresh = count(1 + max(recorded))
    found = []
    for names in groups:
        numbers = dict.fromkeys(number_of[name] for name in names if name in number_of)
        away = [name for n in numbers for name in recorded[n].queries]
        moved = [name for name in away if name in programs and name not in names]
        if moved or len(numbers) > 1:
            changed = moved[0] if moved else recorded[[*numbers][1]].queries[0]
            raise _other_operators(told, f"the key or the order of {changed} has changed")
        if not numbers:
            found.append(Arranged(names, GoesOn((), 0), next(fresh)))
            continue
        (number,) = numbers
        found.append(Arranged(names, going_on(recorded[number], programs), number))
    return found


def _recorded(told: str, headers: Mapping[int, bytes]) -> dict[int, Recorded]:
    """The units of each group of an operator, by its number; none: it has a query FOR EACH, or no
    state yet."""
    of_groups: dict[int, list[ModuleState]] = {}
    for label, header in headers.items():
        if not is_of_module(header):
            return {}
        of_groups.setdefault(group_of_label(label), []).append(read(told, header))
    return {number: recorded_units(states) for number, states in sorted(of_groups.items())}


def _is_for_each(programs: Mapping[str, Program], group: Sequence[str]) -> bool:
    return programs[group[0]].plan.source.parameters is not None


def _tell(new: Sequence[str], gone: Sequence[str]) -> None:
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
        f"operators, one for each event time and each query FOR EACH, and {why}: run a query of "
        "another as a stream of its own, or end this one with celc_runtime.finish and begin a new "
        "checkpoint"
    )
