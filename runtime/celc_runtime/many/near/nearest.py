"""Chooses one near miss for each start: the nearest of the candidates.

The candidates are the matches of all bent queries. A *group* has the candidates of one partition
that start at one event. The nearest one of a group bends least; among equals it ends first.

Most groups have several of these: matches with other events in between. A loop over the groups
would take a step of Python for each candidate. So all groups are decided at once, event by event: a
step compares the next event of all candidates and drops those that are later than another one of
their group. What is left after the last event has the same events under other labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.many.near.measuring import Measured
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.near.queries import BentQuery


@frozen
class Candidates:
    """The matches of one bent query."""

    query: BentQuery
    rows: pa.Table  # one row for each match
    lists: Mapping[str, pa.ListArray]  # by label: the rows of its events in the input, int64
    measured: Measured  # how far each match bends


def nearest(
    found: Sequence[Candidates], keys: Sequence[str], shown: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest candidate of each group, in the order of partitions and starts.

    Returns int64[groups] twice: the place of its query in `found`, and its row there. keys: the
    columns of PARTITION BY. shown: the labels that decide between candidates with the same events.
    """
    sizes = [len(one.rows) for one in found]
    if not sum(sizes):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    amounts = np.concatenate([one.measured.amounts for one in found])
    starts, ends = (
        np.concatenate([one.rows[name].to_numpy() for one in found])
        for name in ("start_pos", "end_pos")
    )
    parts = numbered_parts([one.rows.select(keys) for one in found], sum(sizes))
    groups = np.unique(parts * (int(starts.max()) + 1) + starts, return_inverse=True)[1]
    near = _with_least(np.arange(len(groups)), groups, amounts)
    near = _with_least(near, groups, ends)
    near = near[np.argsort(groups[near], kind="stable")]
    begins = np.cumsum([0, *sizes])
    chosen = np.sort(_without_ties(near, groups[near], found, begins, shown))
    numbers = np.searchsorted(begins, chosen, "right") - 1
    rows = chosen - begins[numbers]
    # Rows are numbered part by part; without keys there is one part.
    places = _first_events(found, numbers, rows) if keys else starts[chosen]
    in_order = np.argsort(places, kind="stable")
    return numbers[in_order], rows[in_order]


def numbered_parts(keys: Sequence[pa.Table], rows: int) -> np.ndarray:
    """int64[rows]: the number of the partition of each match. keys: the key columns of the matches,
    table after table, with this number of rows in all."""
    if not keys[0].column_names:
        return np.zeros(rows, np.int64)
    table = pa.concat_tables(keys)
    numbers = np.zeros(rows, np.int64)
    for column in table.columns:
        if pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0, column.type))  # -0.0 is the key 0.0
        codes = column.combine_chunks().dictionary_encode("encode").indices.to_numpy()
        numbers = numbers * (int(codes.max()) + 1) + codes
        numbers = np.unique(numbers, return_inverse=True)[1]
    return numbers


def _with_least(rows: np.ndarray, groups: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Those of `rows` that have the least value of their group; NaN is no value."""
    of_rows = values[rows].astype(np.float64)  # positions are exact
    least = np.full(int(groups.max()) + 1, math.inf)
    np.fmin.at(least, groups[rows], of_rows)
    kept: np.ndarray = rows[of_rows == least[groups[rows]]]
    return kept


def _inside(counts: np.ndarray) -> np.ndarray:
    """int64: the place of each row in its group, from 0; `counts` are the rows of the groups."""
    ends = np.cumsum(counts)
    found: np.ndarray = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)
    return found


def _without_ties(
    near: np.ndarray,
    groups: np.ndarray,
    found: Sequence[Candidates],
    begins: np.ndarray,
    shown: Sequence[str],
) -> np.ndarray:
    """The first candidate of each group.

    near: candidates, group by group; within a group all are equally near. groups: the group of
    each.
    """
    begins_group = np.diff(groups, prepend=-1) != 0
    is_alone = begins_group & np.append(begins_group[1:], True)
    tied, group = near[~is_alone], groups[~is_alone]
    numbers = np.searchsorted(begins, tied, "right") - 1
    support, offsets = _supports(found, numbers, tied - begins[numbers])
    left = np.arange(len(tied))
    wanted = len(np.unique(group))
    for place in range(int(np.diff(offsets).max(initial=0)) + 1):
        if len(left) == wanted:
            break
        at = offsets[:-1][left] + place
        has = at < offsets[1:][left]
        # A match without a further event comes behind those with one.
        values = np.full(len(left), math.inf)
        values[has] = support[at[has]]
        left = _least(left, group, values)
    if len(left) > wanted:
        left = _least(left, group, numbers[left])
    if len(left) > wanted:
        left = _with_first_labels(left, group, tied, found, begins, shown)
    return np.concatenate([near[is_alone], tied[left]])


def _with_first_labels(
    left: np.ndarray,
    group: np.ndarray,
    tied: np.ndarray,
    found: Sequence[Candidates],
    begins: np.ndarray,
    shown: Sequence[str],
) -> np.ndarray:
    """One candidate of each group: the one whose events under the shown labels come first. The
    candidates of a group are here of one query and have the same events."""
    best: dict[int, tuple[Any, int]] = {}
    for place in left.tolist():
        number = int(np.searchsorted(begins, tied[place], "right")) - 1
        row = int(tied[place] - begins[number])
        labels = tuple(tuple(found[number].lists[name][row].as_py()) for name in shown)
        known = best.get(int(group[place]))
        if known is None or labels < known[0]:
            best[int(group[place])] = labels, place
    return np.array([place for _, place in best.values()], np.int64)


def _least(left: np.ndarray, group: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Those of the candidates `left` that have the least value of their group."""
    begins, ends = _bounds(group[left])
    least = np.repeat(np.minimum.reduceat(values, begins), ends - begins)
    kept: np.ndarray = left[values == least]
    return kept


def _bounds(groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the places at which groups begin, those behind their ends); `groups` are sorted."""
    begins = np.flatnonzero(np.diff(groups, prepend=-1))
    return begins, np.append(begins[1:], len(groups))[: len(begins)]


def _first_events(found: Sequence[Candidates], numbers: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """float64[candidates]: the row of the first event with a label; infinite if none has one."""
    first = np.full(len(rows), math.inf)
    for number, one in enumerate(found):
        mine = np.flatnonzero(numbers == number)
        for lists in one.lists.values():
            offsets = lists.offsets.to_numpy()
            begins, ends = offsets[:-1][rows[mine]], offsets[1:][rows[mine]]
            has = mine[ends > begins]
            values = lists.values.to_numpy(zero_copy_only=False)[begins[ends > begins]]
            first[has] = np.minimum(first[has], values)
    return first


def _supports(
    found: Sequence[Candidates], numbers: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(int64: the events of some candidates, each once and in order, candidate after candidate;
    int64[candidates + 1]: where those of each begin)."""
    owners, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, one in enumerate(found):
        mine = np.flatnonzero(numbers == number)
        for lists in one.lists.values():
            offsets = lists.offsets.to_numpy()
            counts = np.diff(offsets)[rows[mine]]
            at = np.repeat(offsets[:-1][rows[mine]], counts) + _inside(counts)
            owners.append(np.repeat(mine, counts))
            places.append(lists.values.to_numpy(zero_copy_only=False)[at])
    owner, place = np.concatenate(owners), np.concatenate(places)
    order = np.lexsort((place, owner))
    owner, place = owner[order], place[order]
    again = np.zeros(len(owner), np.bool_)
    again[1:] = (owner[1:] == owner[:-1]) & (place[1:] == place[:-1])
    owner, place = owner[~again], place[~again]
    return place, np.searchsorted(owner, np.arange(len(rows) + 1))
