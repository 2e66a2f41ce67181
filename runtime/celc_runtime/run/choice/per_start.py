"""The choice among matches with the same start, for SELECT FIRST and LONGEST.

Listings find matches in the order of their ends, but this choice compares matches with different
ends. So it takes the rows of all matches, and returns the chosen ones as soon as they are known:

* FIRST: at their end, because later matches of a start end later;
* LONGEST: when no later match can have their start, and no earlier end can still come;
* DISJOINT: when no later match can have their start or an earlier one, so that all kept matches
  before them are known.

Among the matches with the same start and end, the walk returns only those with the support that NXT
prefers. So a match is identified here by its first and its last event. Both are entries: numbers
that rise along the stream, over all partitions.

Events that last start at times (`starts`), and come in the order of their ends. A later match can
start earlier. So DISJOINT waits for the end of the partition, and starts are told by the rows.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.engine.arena.batch import relevant_rows
from celc_runtime.engine.walk.per_start import disjoint_chain
from celc_runtime.plan.plan import PerStart, Window
from celc_runtime.run.choice.choices import ChoiceOfRun
from celc_runtime.run.choice.starts import PartsOfEntries, Starts
from celc_runtime.run.source.event_source import Reading
from celc_runtime.run.source.stretches import Stretches, begins_inside, positions_at
from celc_runtime.run.walk.listed import Listed

_ROWS_PER_BATCH = 1 << 16

_NEVER = 2**63 - 1
_BEFORE = -(2**63)  # the end of no match

_NO_ENTRIES = np.zeros(0, np.int64)


class StartChoice(ChoiceOfRun):
    """Chooses among matches with the same start; holds the rows that are not known yet."""

    def __init__(self, choice: PerStart, window: Window | None, starts_of: Starts) -> None:
        self._choice = choice
        self._window = window
        self._starts_of = starts_of
        self._is_first = choice.end == "FIRST"
        self._tables: list[pa.Table] = []
        self._starts = self._ends = self._firsts = _NO_ENTRIES
        self._parts = PartsOfEntries()
        self._by_time = self._notes_parts = choice.disjoint and starts_of.lasts
        self._merged = 0
        self._oldest = 0  # no later match starts before this entry
        # The first of all waiting starts.
        self._least = _NEVER
        # For FIRST: the starts that have their matches already, ascending, and their ends.
        self._answered = self._answers = _NO_ENTRIES
        # For DISJOINT: the last event of the last match kept.
        self._after = -1
        # For LIMIT: the end of the last rows returned, and their number.
        self._last_end, self._given = -1, 0

    @property
    def nbytes(self) -> int:
        arrays = (self._starts, self._ends, self._answered, self._answers)
        return int(sum(one.nbytes for one in (*self._tables, *arrays)))

    @property
    def given_before(self) -> int:
        return min(self._oldest, int(self._starts_of.entries(np.array([self._least]))[0]))

    def arrived(self, reading: Reading, *, lists: bool) -> Iterable[tuple[Reading, bool]]:
        if self._notes_parts:
            self._parts.note(reading)
        return ((reading, lists),)

    def narrow(self, listed: Listed) -> None:
        """Drop matches that lose against another match with the same start."""
        if not self._starts_of.lasts:
            listed.keep(self._candidates(listed.entries.starts, listed.entries.ends))

    def _candidates(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """bool[matches]: which matches may be chosen, by what is known so far."""
        found: np.ndarray = np.ones(len(starts), np.bool_)
        if not self._starts_of.lasts:
            found = starts > self._after
        distinct, group = np.unique(starts, return_inverse=True)
        if self._is_first:
            best = np.full(len(distinct), _NEVER)
            np.minimum.at(best, group, ends)
            place = np.searchsorted(self._answered, distinct)
            place[place == len(self._answered)] = 0
            if len(self._answered):
                known = self._answered[place] == distinct
                best[known] = np.minimum(best[known], self._answers[place[known]])
        else:
            best = np.full(len(distinct), -1)
            np.maximum.at(best, group, ends)
        found &= ends == best[group]
        return found

    def take(self, rows: pa.RecordBatch, listed: Listed) -> Iterator[pa.RecordBatch]:
        """Add the rows of candidates to those that wait."""
        starts, ends = self._starts_of.of(rows, listed), listed.ends
        firsts = listed.firsts
        if self._starts_of.lasts:
            kept = self._candidates(starts, ends)
            rows = rows.filter(pa.array(kept))
            starts, ends, firsts = starts[kept], ends[kept], firsts[kept]
        if len(rows):
            self._add(rows, starts, ends, firsts)
        yield from ()

    def _add(
        self, matches: pa.RecordBatch, starts: np.ndarray, ends: np.ndarray, firsts: np.ndarray
    ) -> None:
        self._tables.append(pa.Table.from_batches([matches]))
        self._least = min(self._least, int(starts.min()))
        self._starts = np.concatenate([self._starts, starts])
        self._ends = np.concatenate([self._ends, ends])
        self._firsts = np.concatenate([self._firsts, firsts])
        if self._is_first:
            self._answer(starts, ends)
        if len(self._starts) > max(_ROWS_PER_BATCH, 2 * self._merged):
            self._keep(self._best())
            self._merged = len(self._starts)

    def _best(self) -> np.ndarray:
        """bool[rows]: the waiting rows that may be chosen. Of those with one start and one end NXT
        prefers the ones with the first of all first events."""
        found: np.ndarray = self._candidates(self._starts, self._ends)
        if self._starts_of.lasts:
            rows = np.flatnonzero(found)
            _, group = np.unique(self._starts[rows], return_inverse=True)
            least = np.full(len(rows), _NEVER)
            np.minimum.at(least, group, self._firsts[rows])
            found[rows] = self._firsts[rows] == least[group]
        return found

    def known(self, oldest: Callable[[], int]) -> Iterator[pa.RecordBatch]:
        """The rows that no later match can replace."""
        yield from self._known(oldest())

    def _known(self, oldest: int) -> Iterator[pa.RecordBatch]:
        self._oldest = oldest
        bound = self._bound(oldest)
        if not len(self._starts) or (bound <= self._least and not self._choice.known_at_end):
            return
        over = self._starts < bound
        if self._by_time:
            chosen = self._disjoint_in_time(over)
        elif self._choice.disjoint:
            chosen = self._disjoint(over)
            over |= self._starts <= self._after
        elif self._choice.known_at_end:
            over = np.ones(len(self._starts), np.bool_)
            chosen = self._best()
        else:
            best = self._best()
            waiting = self._ends[best & ~over]
            if len(waiting):
                # An earlier start need not wait; but rows are returned in the order of ends.
                over &= ~best | (self._ends < waiting.min())
            chosen = best & over
        yield from self._handed_out(np.flatnonzero(chosen))
        self._keep(~over)
        still = np.searchsorted(self._answered, bound)
        self._answered, self._answers = self._answered[still:], self._answers[still:]
        self._starts_of.forget(self.given_before)
        self._parts.forget(self.given_before)

    def _bound(self, oldest: int) -> int:
        """No row that is still to come has a start that counts before this number."""
        if self._by_time and oldest != _NEVER:
            oldest = self._parts.begin_of_part(oldest)
        return self._starts_of.bound(oldest)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """All waiting rows: no match can replace them any more."""
        yield from self._known(_NEVER)

    def silent(self, stretches: Stretches, events: pa.RecordBatch) -> np.ndarray | None:
        """None: a match that ends in a silent row may be known only now."""
        return None

    def undecided_ends(self, stretches: Stretches, events: pa.RecordBatch) -> np.ndarray | None:
        """bool[rows]: where matches end that LIMIT has not counted, or that are not decided."""
        known = stretches.known
        if (
            not (self._choice.counts_ends or self._choice.late)
            or known is None
            or known.until is None
        ):
            return None
        lengths = np.diff(np.append(stretches.starts, len(stretches.positions)))
        found: np.ndarray = stretches.positions >= np.repeat(known.until, lengths)
        return found

    def of_stretches(self, stretches: Stretches, prepared: Prepared) -> Iterator[pa.RecordBatch]:
        """Also writes the ends of the last kept matches into `stretches.known`."""
        batch = prepared.batch
        entries = relevant_rows(batch.symbols)
        starts = entries[self._starts_of.entries(self._starts)]
        ends = entries[self._ends]
        chosen = self._best()
        if self._choice.known_at_end:
            yield from self._handed_out(np.flatnonzero(chosen & ~stretches.silent[ends]))
            return
        known = stretches.known
        assert known is not None
        if known.until is not None:
            until = known.until
        elif self._window is None:
            until = known.since
        else:
            until = positions_at(begins_inside(self._window, batch, stretches), stretches)
        parts = np.searchsorted(stretches.starts, starts, side="right") - 1
        positions = stretches.positions[ends if self._choice.counts_ends else starts]
        chosen &= (positions >= known.since[parts]) & (positions < until[parts])
        chosen &= stretches.positions[starts] > known.after[parts]
        if self._choice.disjoint:
            chosen = self._disjoint(chosen)
            np.maximum.at(known.after, parts[chosen], stretches.positions[ends[chosen]])
        yield from self._handed_out(np.flatnonzero(chosen))

    # --- choosing ---------------------------------------------------------------------------------

    def _answer(self, starts: np.ndarray, ends: np.ndarray) -> None:
        new, place = np.unique(starts, return_index=True)
        is_new = ~np.isin(new, self._answered)
        answered = np.concatenate([self._answered, new[is_new]])
        order = np.argsort(answered, kind="stable")
        answers = np.concatenate([self._answers, ends[place[is_new]]])
        self._answered, self._answers = answered[order], answers[order]

    def _disjoint(self, over: np.ndarray) -> np.ndarray:
        """bool[rows]: the rows to keep among the `over` ones."""
        chosen: np.ndarray = over & self._candidates(self._starts, self._ends)
        rows = np.flatnonzero(chosen)
        starts, place = np.unique(self._starts[rows], return_index=True)
        kept, self._after = disjoint_chain(starts, self._ends[rows[place]], self._after)
        chosen[rows] = kept[np.searchsorted(starts, self._starts[rows])]
        return chosen

    def _disjoint_in_time(self, over: np.ndarray) -> np.ndarray:
        """bool[rows]: the same for starts that are times, among rows of whole partitions."""
        chosen: np.ndarray = over & self._best()
        rows = np.flatnonzero(chosen)
        starts, place = np.unique(self._starts[rows], return_index=True)
        times = self._times_at(rows[place])
        parts = self._parts.of(self._starts_of.entries(starts))
        order = np.lexsort((starts, times[:, 0], parts))
        begins = np.flatnonzero(np.diff(parts[order], prepend=-1))
        kept = np.zeros(len(starts), np.bool_)
        for some in np.split(order, begins[1:]):
            kept[some], _ = disjoint_chain(times[some, 0].copy(), times[some, 1].copy(), _BEFORE)
        chosen[rows] = kept[np.searchsorted(starts, self._starts[rows])]
        return chosen

    def _times_at(self, rows: np.ndarray) -> np.ndarray:
        """int64[rows, 2]: `Starts.times` of some waiting rows."""
        return self._starts_of.times(self._together().take(pa.array(rows)))

    # --- rows -------------------------------------------------------------------------------------

    def _keep(self, wanted: np.ndarray) -> None:
        if wanted.all():
            return
        rows = np.flatnonzero(wanted)
        self._tables = [self._together().take(pa.array(rows))] if len(rows) else []
        self._starts, self._ends = self._starts[rows], self._ends[rows]
        self._firsts = self._firsts[rows]
        self._least = int(self._starts.min()) if len(rows) else _NEVER
        self._merged = min(self._merged, len(rows))

    def _together(self) -> pa.Table:
        self._tables = [pa.concat_tables(self._tables)]
        return self._tables[0]

    def _handed_out(self, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
        """The matches of the given rows (int64) in the order of their ends, up to LIMIT for
        each."""
        rows = rows[np.argsort(self._ends[rows], kind="stable")]
        if self._choice.limit is not None and len(rows):
            rows = rows[self._within_limit(self._ends[rows])]
        if len(rows):
            chosen = self._together().take(pa.array(rows)).combine_chunks()
            yield from chosen.to_batches(max_chunksize=_ROWS_PER_BATCH)

    def _within_limit(self, ends: np.ndarray) -> np.ndarray:
        """bool[rows]: the first rows of each end (int64, ascending); earlier returned rows
        count."""
        assert self._choice.limit is not None
        number = np.arange(len(ends)) - np.searchsorted(ends, ends)
        if ends[0] == self._last_end:
            number[ends == ends[0]] += self._given
        found: np.ndarray = number < self._choice.limit
        self._last_end, self._given = int(ends[-1]), int(number[-1]) + 1
        return found
