"""Partitions as numbers: what dictionaries of Python say, for keys of all types; and the hashes and
labels on which the buckets of a checkpoint depend."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.arrow.arrays import as_keys
from celc_runtime.stream.buckets import (
    MOST_BUCKETS,
    group_of_label,
    labels_of,
    labels_of_group,
    spark_hashes,
)
from celc_runtime.stream.stored.key_table import found_in, grouped, hashes_of, numbered
from celc_runtime.stream.stored.rows import Keys, RowField, RowLayout, Rows

_VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [None, False, True],
    "INT": [None, -(2**31), -1, 0, 1, 2**31 - 1],
    "LONG": [None, -(2**63), -1, 0, 1, 2**63 - 1, *range(50)],
    "FLOAT": [None, -0.0, 0.0, 1.5, math.inf, math.nan],
    "DOUBLE": [None, -0.0, 0.0, -1e-300, -math.inf, math.nan],
    "STRING": [None, "", "a", "aa", "ä", "\0", "a" * 8, "a" * 100, "\U0001f600"],
    "TIMESTAMP": [None, *(dt.datetime(year, 1, 1, tzinfo=dt.UTC) for year in (1, 1970, 9999))],
    "DATE": [None, dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)],
}

_NAN = object()


def _layout(types: Sequence[str]) -> RowLayout:
    own = [RowField("time", "TIMESTAMP"), RowField("text", "STRING")]
    return RowLayout(own, [RowField(f"key{n}", type) for n, type in enumerate(types)], 2)


def _rows(layout: RowLayout, keys: Sequence[tuple[Any, ...]]) -> Rows:
    """Rows of these keys, with other values before them."""
    count = len(keys)
    columns = [
        pa.array([key[n] for key in keys], field.arrow_type) for n, field in enumerate(layout.keys)
    ]
    times = pa.array(range(count), pa.timestamp("us", "UTC"))
    texts = pa.array([(None, "", "x", "longer")[n % 4] for n in range(count)], pa.string())
    return layout.encoded([times, texts, *map(as_keys, columns)], np.arange(count) % 2)


def _plain(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key of a dictionary: NaN is itself there too, and -0.0 is 0.0 in any case."""
    return tuple(_NAN if value != value else value for value in key)


def _drawn(rng: random.Random, types: Sequence[str], count: int) -> list[tuple[Any, ...]]:
    return [tuple(rng.choice(_VALUES[type]) for type in types) for _ in range(count)]


def _check(
    keys: list[tuple[Any, ...]], others: list[tuple[Any, ...]], types: Sequence[str]
) -> None:
    """The numbers of keys, and of other rows' keys in their table; also if all hashes are equal."""
    layout = _layout(types)
    numbers: dict[tuple[Any, ...], int] = {}
    wanted = [numbers.setdefault(_plain(key), len(numbers)) for key in keys]
    firsts = [wanted.index(number) for number in range(len(numbers))]
    in_table = [numbers.get(_plain(key), -1) for key in others]
    of_rows, of_others = (layout.keys_of(_rows(layout, one)) for one in (keys, others))
    alone = layout.rows_of_keys(of_others, np.arange(len(others)))
    for hashes in (hashes_of, _all_equal):
        codes, table = numbered(of_rows, hashes(of_rows))
        assert codes.tolist() == wanted
        assert table.first.tolist() == firsts
        assert found_in(table, of_others, hashes(of_others)).tolist() == in_table
        # A key is the same one by itself, as records of partitions have it.
        by_itself = layout.of_keys.keys_of(alone)
        assert found_in(table, by_itself, hashes(by_itself)).tolist() == in_table


def _all_equal(keys: Keys) -> np.ndarray:
    return np.zeros(len(keys.fixed), np.uint64)


@pytest.mark.parametrize("type", _VALUES)
def test_keys_of_one_column(type: str) -> None:
    rng = random.Random(type)
    for count in (0, 1, 7, 100):
        _check(_drawn(rng, [type], count), _drawn(rng, [type], 50), [type])


@pytest.mark.parametrize("seed", range(15))
def test_keys_of_several_columns(seed: int) -> None:
    rng = random.Random(seed)
    types = rng.choices([*_VALUES], k=rng.randint(2, 10))
    some = _drawn(rng, types, 40)
    keys = rng.choices(some, k=150)
    _check(keys, [*rng.choices(some, k=30), *_drawn(rng, types, 30)], types)


def test_texts_are_told_apart_where_they_meet() -> None:
    keys = [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc"), ("abc", None), (None, "abc")]
    _check([*keys, *keys[::-1]], keys[3:], ["STRING", "STRING"])


def test_a_query_without_keys_has_one_partition() -> None:
    _check([()] * 5, [()], [])
    assert len(numbered(*_hashed(_layout([]), [()] * 5))[1].first) == 1


def _hashed(layout: RowLayout, keys: Sequence[tuple[Any, ...]]) -> tuple[Keys, np.ndarray]:
    found = layout.keys_of(_rows(layout, keys))
    return found, hashes_of(found)


def test_many_keys() -> None:
    layout = _layout(["LONG"])
    rng = random.Random(1)
    ids = [rng.randrange(2**40) for _ in range(20_000)]
    codes, table = numbered(*_hashed(layout, [(id,) for id in ids + ids]))
    numbers = {id: number for number, id in enumerate(dict.fromkeys(ids))}
    assert codes.tolist() == [numbers[id] for id in ids + ids]
    assert len(table.first) == len(numbers)


def test_rows_by_groups() -> None:
    codes = np.array([2, 0, 2, 3, 0])
    order, starts = grouped(codes, 5)
    assert order.tolist() == [1, 4, 0, 2, 3]
    assert starts.tolist() == [0, 2, 2, 4, 5, 5]
    assert grouped(codes[:0], 2)[1].tolist() == [0, 0, 0]


# --- what a checkpoint depends on -----------------------------------------------------------------

_HASHES: dict[tuple[str, ...], dict[tuple[Any, ...], int]] = {
    ("LONG",): {
        (0,): 16044548467992670212,
        (1,): 16937211194002708020,
        (-1,): 318372597908460745,
        (None,): 1659796782531891897,
        (2**63 - 1,): 9706022201028673689,
    },
    ("INT",): {
        (0,): 1255590671017861196,
        (1,): 9184820210067395966,
        (None,): 5886594933301272811,
    },
    ("STRING",): {
        ("",): 1255590671017861196,
        ("a",): 7730213940352527315,
        ("äöü",): 5574349482394323194,
        ("a" * 20,): 10239706720093231502,
        (None,): 5886594933301272811,
    },
    ("DOUBLE",): {
        (-0.0,): 16044548467992670212,
        (math.nan,): 7937451008191320685,
        (1.5,): 7582758311068770895,
    },
    ("STRING", "STRING"): {
        ("ab", "c"): 3793627243442630980,
        ("a", "bc"): 3506756149821232890,
        ("", None): 15862354121999154197,
        (None, ""): 1659796782531891897,
    },
    ("BOOLEAN", "STRING", "LONG"): {(True, "x", 7): 10085017653973562348},
}


@pytest.mark.parametrize("types", _HASHES)
def test_hashes_never_change(types: tuple[str, ...]) -> None:
    """They say which bucket of a checkpoint a partition is in."""
    wanted = _HASHES[types]
    assert dict(zip(wanted, _hashed(_layout(types), [*wanted])[1].tolist(), strict=True)) == wanted


def test_hashes_spread_over_buckets() -> None:
    """Also of neighbours, and in what slots of tables are taken from."""
    _, hashes = _hashed(_layout(["LONG"]), [(id,) for id in range(20_000)])
    assert len(np.unique(hashes)) == 20_000
    for buckets in (7, 8, 200):
        counts = np.bincount((hashes % np.uint64(buckets)).astype(np.int64), minlength=buckets)
        assert counts.min() > 0.5 * 20_000 / buckets
        assert counts.max() < 1.5 * 20_000 / buckets
    assert len(np.unique((hashes >> np.uint64(32)) & np.uint64(2**16 - 1))) > 15_000


_LABELS = {
    1: [0],
    2: [0, 1],
    3: [0, 1, 11],
    7: [0, 4, 1, 9, 3, 2, 11],
    16: [0, 16, 5, 1, 37, 20, 2, 35, 13, 6, 49, 7, 25, 15, 4, 8],
}


@pytest.mark.parametrize("buckets", _LABELS)
def test_labels_never_change(buckets: int) -> None:
    assert labels_of(buckets).tolist() == _LABELS[buckets]


@pytest.mark.parametrize("buckets", [4, 24, 200, 800, 1 << 14])
def test_labels_spread_buckets_over_tasks(buckets: int) -> None:
    """Each number of tasks that divides the number of buckets gets equally many."""
    labels = labels_of(buckets)
    assert labels[0] == 0
    assert len({*labels.tolist()}) == buckets
    for tasks in (tasks for tasks in range(1, 201) if buckets % tasks == 0):
        of_tasks = np.delete(spark_hashes(labels), 0) % tasks
        assert np.bincount(of_tasks, minlength=tasks).max() <= buckets // tasks


def test_the_hashes_of_spark() -> None:
    """As of `SELECT hash(0)`; the tests on Spark compare more of them."""
    assert spark_hashes(np.array([0, 1])).tolist() == [933211791, -559580957]


@pytest.mark.parametrize("group", [0, 1, 77, (1 << 31) // MOST_BUCKETS - 1])
def test_labels_of_groups_say_their_group_and_bucket(group: int) -> None:
    labels = labels_of_group(group, MOST_BUCKETS)
    assert spark_hashes(labels).tolist() == [MOST_BUCKETS * group + n for n in range(MOST_BUCKETS)]
    assert {group_of_label(label) for label in labels[[0, 5, -1]].tolist()} == {group}
    assert labels_of_group(group, 3).tolist() == labels[:3].tolist()
