"""What later events need to know of stretches that have been read."""

import numpy as np

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.engine.arena.batch import NO_INTEGERS, Batch
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.run.past.history import measured
from celc_runtime.run.source.stretches import Behind, Stretches, begins_inside, positions_at
from celc_runtime.run.update.updates import UpdateOfRun


def behind_stretches(
    program: Program,
    update: UpdateOfRun,
    stretches: Stretches,
    prepared: Prepared,
    *,
    last_ends: np.ndarray,
    undecided: np.ndarray | None,
) -> Behind:
    """What later events need to know of stretches.

    prepared: the stretches as they were read. last_ends: int64[parts], the last row at which a
    match ends, −1: none. undecided: bool[rows], where a match can end that is not decided yet.
    """
    plan, batch, starts = program.plan, prepared.batch, stretches.starts
    matters = batch.symbols != 0
    if plan.source.uncertain is not None:
        # Events stay until their latest end is over. The state of a stream knows when that is.
        firsts = np.zeros(len(starts), np.int64)
        return Behind(
            matters & (not plan.matching.one_event), firsts, NO_INTEGERS, NO_INTEGERS, batch.keys
        )
    ends = np.append(starts[1:], len(matters)) - 1
    lengths = ends + 1 - starts
    consumed = (last_ends >= 0) & (plan.matching.consume_by != "NONE")
    begins = np.where(consumed, last_ends + 1, starts)
    # Selectors compare matches with all matches before them.
    is_bounded = not program.sees_all
    if plan.matching.one_event and is_bounded:
        waited_for = _waited_for(plan, ends + 1, stretches, batch, undecided)
        begins = np.maximum(begins, _reached(plan, waited_for, stretches, prepared))
    elif plan.matching.window is not None and is_bounded:
        in_window = begins_inside(plan.matching.window, batch, stretches)
        in_window = _waited_for(plan, in_window, stretches, batch, undecided)
        begins = np.maximum(begins, _reached(plan, in_window, stretches, prepared))
    rows = np.arange(len(matters))
    matters &= rows >= np.repeat(begins, lengths)
    if prepared.instant_rows is not None:
        # Later matches start where an instant starts. Rows are left out together with their
        # instants.
        found = np.flatnonzero(matters)
        matters[prepared.instant_rows.first(found)] = True
        matters[prepared.instant_rows.last(found)] = True
    contexts, behind = update.contexts_before(
        batch.symbols, starts, stretches.contexts, last_ends + 1, consumed
    )
    return Behind(matters, positions_at(begins, stretches), contexts, behind, batch.keys)


def _waited_for(
    plan: Plan,
    begins: np.ndarray,
    stretches: Stretches,
    batch: Batch,
    undecided: np.ndarray | None,
) -> np.ndarray:
    """int64[parts]: the first row of each stretch that later or undecided matches need.

    Later matches begin at the rows `begins` or after them.
    """
    if undecided is None:
        return begins
    starts = stretches.starts
    rows = np.where(undecided, np.arange(len(undecided)), len(undecided))
    first = np.minimum.reduceat(rows, starts)
    if plan.matching.window is not None:
        waiting = first < len(undecided)
        of_waiting = begins_inside(
            plan.matching.window, batch, stretches, np.where(waiting, first, starts)
        )
        first = np.where(waiting, of_waiting, len(undecided))
    found: np.ndarray = np.minimum(begins, first)
    return found


def _reached(
    plan: Plan, begins: np.ndarray, stretches: Stretches, prepared: Prepared
) -> np.ndarray:
    """int64[parts]: the first row of each stretch that matches from the rows `begins` on need."""
    if not plan.matching.reaches:
        return begins
    starts, rows = stretches.starts, len(stretches.positions)
    windows = measured(plan, prepared.events, stretches.positions)
    ends = np.append(starts[1:], rows) - 1
    found = begins
    for hops in plan.matching.reaches:
        at = begins
        for number in hops:
            keys, floors = windows[number]
            # After the last row, no window reaches farther back than from it.
            floor = np.repeat(floors[np.minimum(at, ends)], ends + 1 - starts)
            at = starts + np.add.reduceat((keys < floor).astype(np.int64), starts)
        found = np.minimum(found, at)
    return found
