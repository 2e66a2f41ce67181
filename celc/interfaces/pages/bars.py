"""Matches as a report draws them: each with its lane, its ends, and its events among the marks."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from celc_runtime.arrow.arrays import in_one_piece, plain
from celc_runtime.arrow.events.partition_keys import codes_of_keys
from celc_runtime.plan.uncertain import CONFIDENCE

from celc.interfaces.pages.marks import Marks, coordinates
from celc.interfaces.pages.tables import first_key

MOST_EVENTS = 1_000  # events drawn of one label of one match

MOST_IN_ALL = 300_000  # events drawn of all matches; beyond it, fewer are drawn of each label


@dataclass(frozen=True)
class Lanes:
    """The partitions: the lane of each event and of each match, and the keys of each lane."""

    of_events: np.ndarray
    of_matches: np.ndarray
    keys: tuple[pa.Array, ...]
    count: int


@dataclass(frozen=True)
class Bars:
    """Matches with their ends on both axes.

    Coordinates are float64, NaN where nothing is drawn. Positions are int64, −1 where they are not
    known. The events of match n are `rows[offsets[n]:offsets[n + 1]]`.
    """

    starts: np.ndarray
    ends: np.ndarray
    start_positions: np.ndarray
    end_positions: np.ndarray
    rows: np.ndarray  # rows of events among the marks
    labels: np.ndarray  # for each of these events, the place of its label in `label_names`
    offsets: np.ndarray
    label_names: tuple[str, ...]
    counts: np.ndarray  # how many events each match has


def lanes_of(marks: Marks, matches: pa.Table) -> Lanes:
    """The lanes. Keys of events come first, in their order, then keys that only matches have."""
    keys_at = range(first_key(matches.schema), len(matches.schema))[: len(marks.key_names)]
    of_matches = [plain(in_one_piece(matches.column(place))) for place in keys_at]
    both = [
        pa.concat_arrays([ours.cast(theirs.type), theirs])
        for ours, theirs in zip(marks.keys, of_matches, strict=True)
    ]
    rows = len(marks) + len(matches)
    codes = codes_of_keys(both, rows)
    _, first, found = np.unique(codes, return_index=True, return_inverse=True)
    by_place = np.argsort(first, kind="stable")
    place = np.empty(len(by_place), np.int64)
    place[by_place] = np.arange(len(by_place))
    lanes = place[found]
    taken = pa.array(first[by_place], pa.int64())
    keys = tuple(column.take(taken) for column in both)
    return Lanes(lanes[: len(marks)], lanes[len(marks) :], keys, len(first))


def bars_of(marks: Marks, lanes: Lanes, matches: pa.Table) -> Bars:
    """The bars of matches. Raises ValueError where the matches were not found in these events."""
    label_names = tuple(
        field.name
        for field in matches.schema
        if pa.types.is_list(field.type) and _has_positions(field.type.value_type)
    )
    finder = _Finder(lanes)
    start_positions = _positions(matches, "start_pos", "end_pos")
    end_positions = _positions(matches, "end_pos")
    starts = coordinate_of_ends(matches, "start_time", "end_time", "span_start")
    ends = coordinate_of_ends(matches, "end_time", "span_end")
    if len(marks):
        _check(marks, finder, lanes, matches)
    if marks.order is None:
        starts, ends = start_positions.astype(float), end_positions.astype(float)
        starts[start_positions < 0] = ends[end_positions < 0] = np.nan
    lists = [in_one_piece(matches.column(name)) for name in label_names]
    sizes = [_sizes(column) for column in lists]
    most = _most_of_label(sizes)
    rows, labels, of_match = [], [], []
    for number, column in enumerate(lists):
        parents = pc.list_parent_indices(column).to_numpy(zero_copy_only=False)
        positions = pc.struct_field(column.flatten(), "pos").to_numpy(zero_copy_only=False)
        within = _numbers_in(parents) < most
        if len(marks):
            found = finder.rows(lanes.of_matches[parents[within]], positions[within])
            rows.append(found)
            labels.append(np.full(len(found), number))
            of_match.append(parents[within])
    all_rows = np.concatenate([np.zeros(0, np.int64), *rows])
    all_labels = np.concatenate([np.zeros(0, np.int64), *labels])
    parents = np.concatenate([np.zeros(0, np.int64), *of_match])
    order = np.lexsort((all_rows, parents))
    offsets = np.searchsorted(parents[order], np.arange(len(matches) + 1))
    return Bars(
        starts,
        ends,
        start_positions,
        end_positions,
        all_rows[order],
        all_labels[order],
        offsets,
        label_names,
        np.sum([np.zeros(len(matches), np.int64), *sizes], axis=0),
    )


def _sizes(lists: pa.Array) -> np.ndarray:
    found: np.ndarray = (
        pc.list_value_length(lists).fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    )
    return found


def _most_of_label(sizes: list[np.ndarray]) -> int:
    """How many events are drawn of each label, so that all matches stay below MOST_IN_ALL."""
    most = MOST_EVENTS
    while most > 1 and sum(int(np.minimum(of_rows, most).sum()) for of_rows in sizes) > MOST_IN_ALL:
        most //= 2
    return most


def _has_positions(type: pa.DataType) -> bool:
    return bool(pa.types.is_struct(type)) and int(type.get_field_index("pos")) >= 0


def _numbers_in(parents: np.ndarray) -> np.ndarray:
    """int64: the number of each item within its own list."""
    return np.arange(len(parents)) - np.searchsorted(parents, parents, side="left")


def _positions(matches: pa.Table | pa.RecordBatch, *names: str) -> np.ndarray:
    for name in names:
        if name in matches.schema.names:
            column = in_one_piece(matches.column(name)).cast(pa.int64()).fill_null(-1)
            found: np.ndarray = column.to_numpy(zero_copy_only=False)
            return found
    return np.full(len(matches), -1, np.int64)


def coordinate_of_ends(matches: pa.Table | pa.RecordBatch, *names: str) -> np.ndarray:
    """float64[rows]: the first of these columns that matches have, as an axis; NaN without one."""
    for name in names:
        if name in matches.schema.names:
            found = coordinates(plain(in_one_piece(matches.column(name))))
            if found is not None:
                return found[0]
    return np.full(len(matches), np.nan)


class _Finder:
    def __init__(self, lanes: Lanes) -> None:
        self._by_lane = np.argsort(lanes.of_events, kind="stable")
        ordered = lanes.of_events[self._by_lane]
        self._first = np.searchsorted(ordered, np.arange(lanes.count + 1))

    def rows(self, lanes: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The rows of events. Raises ValueError where a lane has no such position."""
        wrong = (positions < 0) | (positions >= self._first[lanes + 1] - self._first[lanes])
        if wrong.any():
            place = int(positions[np.argmax(wrong)])
            raise ValueError(
                f"the matches are not of these events: a match names the position {place:,} of its "
                "partition, which has fewer events; give the events that the query was run on, "
                "and query= if other rows stand among them"
            )
        found: np.ndarray = self._by_lane[self._first[lanes] + positions]
        return found


def _check(marks: Marks, finder: _Finder, lanes: Lanes, matches: pa.Table) -> None:
    """Raises ValueError where the event at the start or the end of a match has another time."""
    for place, time in (("start_pos", "start_time"), ("end_pos", "end_time")):
        if place not in matches.schema.names:
            continue
        rows = finder.rows(lanes.of_matches, _positions(matches, place))
        if marks.order is None or time not in matches.schema.names:
            continue
        if place == "start_pos" and marks.last:
            continue  # such a match starts with its earliest event, whichever ends first
        if place == "end_pos" and CONFIDENCE in matches.schema.names:
            continue  # the latest time that any of its events can have
        theirs = plain(in_one_piece(matches.column(time)))
        ours = marks.order.take(pa.array(rows))
        same = pc.equal(ours.cast(theirs.type), theirs).fill_null(True)
        if not pc.all(same, min_count=0).as_py():
            match = pc.index(same, False).as_py()
            raise ValueError(
                f"the matches are not of these events: match {match:,} has the {time} "
                f"{theirs[match]}, and the event at its {place} the {marks.order_name} "
                f"{ours[match]}; give the events that the query was run on, and query= if other "
                "rows stand among them"
            )
