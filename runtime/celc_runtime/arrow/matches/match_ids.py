"""The column `match_id`: sixteen bytes for each match, the same on every route.

A match is identified by its first and its last event and the events under its labels, an event by
the values that the query reads of it. Each value is hashed. The hashes of an event are added, and
hashed again; so are those of a match. Addition does not depend on the order of columns and events.
So an id depends neither on the order in which a walk lists events nor on how a stream is cut into
batches. NumPy does all this, once for each event in some match of a batch, and with a few additions
for each match. Sixteen bytes are two such hashes of 64 bits (`_LANES`) with different seeds.

A value has one form, however Arrow stores it: numbers have 64 bits, −0.0 is 0.0, all NaN are alike,
texts are UTF-8, a DECIMAL is its digits, values with parts are their bytes (`arrow/nested`). The
mixing function is the finalizer of SplitMix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom
Number Generators, OOPSLA 2014).

Sinks keep ids, so none may change: `tests/test_match_ids.py` has some.

Rejected: MD5 or BLAKE2 of each event, which takes a microsecond of Python. Arrow has no hash that
stays the same between versions.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import as_keys, coded, numbers, plain
from celc_runtime.arrow.event_store import POSITION
from celc_runtime.arrow.matches.values import LabelValues
from celc_runtime.arrow.nested import to_bytes
from celc_runtime.plan.plan import Plan

_LANES = 2
_BYTES = 8 * _LANES


def match_ids(plan: Plan, starts: np.ndarray, ends: np.ndarray, labels: LabelValues) -> pa.Array:
    """The ids of matches that start and end at entries (int64[matches]), with their labels."""
    answer, source = plan.answer, plan.source
    assert answer.match_id is not None
    under = [labels.entries(name) for name in answer.label_names]
    events, places = _distinct([starts, ends, *under])
    # Without order columns, the position of an event is its order.
    names = answer.match_id if source.order_by else (*answer.match_id, POSITION)
    values = {name: labels.look_up(name, events) for name in names}
    of_events = hashes(values, len(events))
    if not source.takes_ties:
        found = _edges(of_events, places)
    else:
        # Nothing orders the events of an instant, or two that can have the same time. So a match
        # starts and ends at values of the order columns, in a partition.
        of_order = {name: values[name] for name in source.order_by}
        found = _edges(hashes(of_order, len(events)), places)
        known = {*answer.match_id, *source.chosen_columns}  # not the number of a parameter row
        keys = {name: labels.at_end(name) for name in source.key_columns if name in known}
        found += _moved(hashes(keys, labels.matches), "partition")
    for name, chosen in zip(answer.label_names, places[2:], strict=True):
        of_label = _moved(of_events, "label", name)
        found += _sums(of_label[:, chosen], labels.offsets(name))
    return _as_bytes(_mixed(found))


def _edges(of_events: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
    """The hashes of starts and ends of matches, at the first two of these indices."""
    starts, ends = places[:2]
    found: np.ndarray = _moved(of_events, "start")[:, starts]
    found += _moved(of_events, "end")[:, ends]
    return found


def ids_of_members(
    of_rows: np.ndarray,
    starts: np.ndarray,
    members: np.ndarray,
    names: Sequence[str],
    labels: np.ndarray,
    offsets: np.ndarray,
) -> pa.Array:
    """The ids of matches of rows that have one label each.

    of_rows: their `hashes`. starts: int64[matches], and members: int64[entries], rows by their
    place there; the entries of a match, between its `offsets`, are its rows. labels: the places of
    their labels in `names`.
    """
    found = _moved(of_rows, "start")[:, starts]
    of_entries = np.empty((_LANES, len(members)), np.uint64)
    for number, name in enumerate(names):
        chosen = np.flatnonzero(labels == number)
        of_entries[:, chosen] = _moved(of_rows[:, members[chosen]], "label", name)
    found += _sums(of_entries, offsets)
    return _as_bytes(_mixed(found))


def with_rows_in(ids: pa.Array, of_rows: np.ndarray) -> pa.Array:
    """The ids combined with the rows of a parameter set, by their `hashes`, one for each match."""
    if not len(ids):
        return ids
    data = np.frombuffer(ids.buffers()[2], "<u8")
    first = _LANES * ids.offset
    lanes = data[first : first + _LANES * len(ids)].reshape(-1, _LANES).T
    return _as_bytes(_mixed(lanes + _moved(of_rows, "row")))


def hashes(columns: Mapping[str, pa.Array], rows: int) -> np.ndarray:
    """uint64[lanes, rows]: a hash of each row, by the names of columns and their values."""
    found = np.zeros((_LANES, rows), np.uint64)
    for name, column in columns.items():
        found += _of_values(column, name)
    return _mixed(found)


def _of_values(column: pa.Array, name: str) -> np.ndarray:
    column = _in_one_form(column)
    if pa.types.is_primitive(column.type):
        values, valid = numbers(column)
        wide = np.float64 if pa.types.is_floating(column.type) else np.int64
        found = _moved(values.astype(wide).view(np.uint64), "value", name)
    else:
        # Each distinct text once.
        found, texts = np.zeros((_LANES, len(column)), np.uint64), coded(column)
        valid = np.asarray(texts.is_valid())
        if len(texts.dictionary):
            of_texts = _moved(_of_bytes(texts.dictionary), "value", name)
            found = of_texts[:, np.asarray(texts.indices.fill_null(0))]
    return found if valid.all() else np.where(valid, found, _seeds("null", name))


def _in_one_form(column: pa.Array) -> pa.Array:
    """Values in a type that does not depend on the source of the events.

    Attributes have their declared type already, tiebreak columns may have any.
    """
    column = as_keys(plain(column))
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us"), safe=False)
    if pa.types.is_duration(column.type):
        return column.cast(pa.duration("us"), safe=False)
    if pa.types.is_date64(column.type):
        return column.cast(pa.date32())
    if pa.types.is_primitive(column.type):
        return column
    if pa.types.is_nested(column.type):
        return to_bytes(column)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    return column.cast(pa.large_binary())


def _of_bytes(texts: pa.Array) -> np.ndarray:
    """uint64[lanes, texts]: a hash of the bytes of each text, eight at a time."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][: len(texts) + 1]
    sizes = np.diff(offsets)
    words = np.maximum(1, (sizes + 7) // 8)
    first = np.cumsum(words) - words
    padded = np.zeros(8 * int(words.sum()), np.uint8)
    if offsets[-1] > offsets[0]:
        given = np.frombuffer(texts.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
        moved_by = 8 * first - (offsets[:-1] - offsets[0])
        padded[np.arange(len(given)) + np.repeat(moved_by, sizes)] = given
    number = (np.arange(len(padded) // 8) - np.repeat(first, words)).astype(np.uint64)
    of_words = _mixed(padded.view("<u8").astype(np.uint64) ^ _moved(number, "place"))
    found: np.ndarray = np.add.reduceat(of_words, first, axis=1)
    found += _moved(sizes.astype(np.uint64), "size")
    return found


# --- arithmetic -----------------------------------------------------------------------------------


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """A mixing permutation of uint64: every bit depends on all bits of the given number.

    It may overwrite `numbers`.
    """
    numbers = np.ascontiguousarray(numbers)  # a gathered array is transposed
    flat = numbers.reshape(-1)
    for start in range(0, len(flat), _BLOCK):
        block = flat[start : start + _BLOCK]
        shifted = block >> _SHIFTS[0]
        block ^= shifted
        block *= _FACTORS[0]
        block ^= np.right_shift(block, _SHIFTS[1], out=shifted)
        block *= _FACTORS[1]
        block ^= np.right_shift(block, _SHIFTS[2], out=shifted)
    return numbers


_SHIFTS = tuple(map(np.uint64, (30, 27, 31)))
_FACTORS = tuple(map(np.uint64, (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))
_BLOCK = 1 << 13  # numbers that stay in the processor's cache from one step to the next


def _moved(numbers: np.ndarray, what: str, name: str = "") -> np.ndarray:
    """Hashes of something under a name: the label of an event matters."""
    return _mixed(numbers + _seeds(what, name))


@cache
def _seeds(what: str, name: str) -> np.ndarray:
    """uint64[lanes, 1]: numbers for a name, the same on every machine."""
    data = blake2b(f"{what}\0{name}".encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest()
    return np.frombuffer(data, "<u8").astype(np.uint64).reshape(_LANES, 1)


def _sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """uint64[lanes, matches]: the sums of each match's values (uint64[lanes, entries])."""
    matches = len(offsets) - 1
    if values.shape[1] == matches and (np.diff(offsets) == 1).all():
        return values
    found = np.zeros((_LANES, matches), np.uint64)
    has_events = offsets[1:] > offsets[:-1]
    if has_events.any():
        found[:, has_events] = np.add.reduceat(values, offsets[:-1][has_events], axis=1)
    return found


def _distinct(entries: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """(the distinct entries, ascending; for each array, the indices of its entries there),
    int64."""
    together = np.concatenate(entries)
    low, high = int(together.min()), int(together.max())
    if high - low <= 4 * len(together):
        # Without sorting: a tenth of the time if entries are close together.
        is_there = np.zeros(high - low + 1, np.bool_)
        is_there[together - low] = True
        found = np.flatnonzero(is_there) + low
        places = (np.cumsum(is_there) - 1)[together - low]
    else:
        found, places = np.unique(together, return_inverse=True)
    return found, np.split(places, np.cumsum([len(one) for one in entries[:-1]]))


def _as_bytes(lanes: np.ndarray) -> pa.Array:
    count = lanes.shape[1]
    data = np.ascontiguousarray(lanes.T.astype("<u8"))
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(_BYTES)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
