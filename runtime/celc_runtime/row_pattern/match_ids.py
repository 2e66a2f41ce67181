"""The column `match_id` of MATCH_RECOGNIZE: what `arrow/matches/match_ids` does, for rows.

A match is told by its rows, each with its variable, and a row by all columns that the query reads.
A match without rows is told by the row that it is found at. So rows that are equal in all these
columns are one row to an id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.matches.match_ids import hashes, ids_of_members
from celc_runtime.plan.errors import OptionClash
from celc_runtime.plan.plan import MATCH_ID
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.row_pattern.passes import FIRST_LABEL, LENGTH, START


def with_match_id(plan: RowPlan) -> RowPlan:
    """The plan with the column `match_id` in its result; raises OptionClash if the name is
    taken."""
    for one in plan.outputs:
        if one.name.casefold() == MATCH_ID:
            raise OptionClash(
                "match_id",
                f"query {plan.name!r} has a column {one.name!r} already: name the measure "
                "otherwise, or leave out match_id",
            )
    return replace(plan, match_id=True)


def ids_of_rows(
    plan: RowPlan,
    columns: Mapping[int, pa.Array],
    matches: np.ndarray,
    variables: np.ndarray,
    shown: np.ndarray,
) -> pa.Array:
    """The ids of the rows of a result, NULL for a row of no match.

    columns: of the rows that are read, by number. matches: as `passes.MATCH_COLUMNS` has them.
    variables: of their rows. shown: int64[rows], the match of each row of the result.
    """
    starts, lengths = matches[:, START], np.maximum(matches[:, LENGTH], 0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    # Between the variables of these matches there may be those of others.
    labels = variables[np.repeat(matches[:, FIRST_LABEL], lengths) + places]
    rows = np.repeat(starts, lengths) + places
    met, found = np.unique(np.concatenate([starts, rows]), return_inverse=True)
    taken = pa.array(met)
    read = {plan.columns[number].name: columns[number].take(taken) for number in plan.columns_read}
    members = found[: len(starts)], found[len(starts) :]
    ids = ids_of_members(hashes(read, len(met)), *members, plan.variables, labels, offsets)
    return ids.take(pa.array(shown, mask=matches[shown, LENGTH] < 0))
