"""Sorting by digits has the order of Arrow's sort, with NULL first and equal rows as they stand."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from celc_runtime.arrow.events import digits, sorting
from celc_runtime.arrow.events.digits import in_order, order_by_digits, places_of
from celc_runtime.arrow.events.moving import Moves
from celc_runtime.arrow.events.partition_keys import codes_of_keys
from celc_runtime.jit.kernels import compiling, interpreting
from celc_runtime.run.threads import workers_of

import celc

ROWS = 3_000


def columns(seed: int) -> dict[str, pa.Array]:
    rng = np.random.default_rng(seed)
    gaps = rng.random(ROWS) < 0.1
    texts = pa.array(np.array(["b", "", "ä", "abc", "a"])[rng.integers(0, 5, ROWS)], mask=gaps)
    twice = pa.array(["z", "b", "z", None, "a"])
    return {
        "few": pa.array(rng.integers(-3, 3, ROWS).astype(np.int8)),
        "gaps": pa.array(rng.integers(0, 50, ROWS), mask=gaps),
        "wide": pa.array(rng.integers(-(2**40), 2**40, ROWS)),
        "least": pa.array(rng.integers(-(2**63), -(2**63) + 9, ROWS)),
        "times": pa.array(rng.integers(0, 2**45, ROWS), pa.timestamp("us", "UTC")),
        "days": pa.array(rng.integers(-9, 9, ROWS).astype(np.int32), pa.date32(), mask=gaps),
        "texts": texts,
        "long": texts.cast(pa.large_string()),
        "coded": texts.dictionary_encode(),
        "twice": pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 5, ROWS)), twice),
        "nothing": pa.nulls(ROWS, pa.int32()),
    }


def order_of_arrow(chosen: list[pa.Array]) -> list[int]:
    keys: list[pa.Array] = []
    for column in chosen:
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        keys += [plain.is_valid(), plain]
    names = list(map(str, range(len(keys))))
    order = pc.sort_indices(pa.table(keys, names=names), [(one, "ascending") for one in names])
    found: list[int] = order.to_pylist()
    return found


@pytest.mark.parametrize("seed", range(3))
def test_the_order_is_that_of_arrow(seed: int) -> None:
    rng, given = np.random.default_rng(seed), columns(seed)
    chosen = [[column] for column in given.values()]
    chosen += [[*map(given.__getitem__, rng.choice(list(given), 3))] for _ in range(5)]
    for some in chosen:
        places = [places_of(column) for column in some]
        assert None not in places
        assert order_by_digits(places).tolist() == order_of_arrow(some)  # type: ignore[arg-type]


def _in_pieces(column: pa.Array) -> pa.ChunkedArray:
    """A column in four pieces, one of them empty; each piece of a coded one has its own codes,
    unless some of these mean NULL."""
    pieces = [column[first:end] for first, end in pairwise([0, 1, 1, ROWS // 3, ROWS])]
    if pa.types.is_dictionary(column.type) and not column.dictionary.null_count:
        pieces = [one.cast(pa.string()).dictionary_encode() for one in pieces]
    return pa.chunked_array(pieces, pieces[-1].type)


@pytest.mark.parametrize("pieces", [False, True])
def test_some_rows_are_moved(pieces: bool) -> None:
    rng, given = np.random.default_rng(3), columns(7)
    rows = np.flatnonzero(rng.random(ROWS) < 0.3)
    places = rng.permutation(len(rows))
    names = ["few", "coded", "times"]
    given["coded"] = given["coded"].fill_null("b")
    asked = [
        _in_pieces(given[name]) if pieces else pa.chunked_array([given[name]]) for name in names
    ]
    moves = Moves(asked, rows)
    for first, end in pairwise([0, 3, len(rows) // 2, len(rows)]):
        moves.of_slice(places, first, end)
    wanted = pa.array(rows[np.argsort(places)])
    for name, found in zip(names, moves.columns, strict=True):
        assert found is not None
        assert found.to_pylist() == given[name].take(wanted).to_pylist(), name


_SIZES = (pa.uint8(), pa.int16(), pa.date32(), pa.float64(), pa.timestamp("us"))


@pytest.mark.parametrize("running", [compiling, interpreting])
@pytest.mark.parametrize("some", [False, True])
def test_values_of_all_sizes_are_moved(running: Any, some: bool) -> None:
    """By machine code and by Python, with a slice that begins and ends inside of pieces."""
    rng = np.random.default_rng(4)
    table = pa.table(
        {
            str(type): pa.array(rng.integers(0, 200, 300).astype(type.to_pandas_dtype()), type)
            for type in _SIZES
        }
        | {"coded": pa.array(rng.choice([*"abc"], 300)).dictionary_encode()}
    )
    pieces = [table.slice(first, end - first) for first, end in pairwise([0, 0, 7, 90, 299, 300])]
    rows = np.flatnonzero(rng.random(300) < 0.4) if some else np.arange(300)
    places = rng.permutation(len(rows))
    moves = Moves([*pa.concat_tables(pieces).itercolumns()], rows if some else None)
    with running():
        for first, end in pairwise([0, 5, 60, len(rows)]):
            moves.of_slice(places, first, end)
    wanted = table.take(pa.array(rows[np.argsort(places)]))
    for name, found in zip(table.column_names, moves.columns, strict=True):
        assert found is not None
        assert found.to_pylist() == wanted[name].to_pylist(), name


def test_empty_pieces_need_no_memory() -> None:
    empty = pa.Array.from_buffers(pa.int64(), 0, [None, None])
    moves = Moves([pa.chunked_array([empty, pa.array([7, 8]), empty])])
    moves.of_slice(np.array([1, 0]), 0, 2)
    (found,) = moves.columns
    assert found is not None
    assert found.to_pylist() == [8, 7]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_sort_and_move_as_one_does(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    for name in ("_ROWS_OF_A_DIGIT", "_ROWS_OF_A_SLICE"):
        monkeypatch.setattr(digits, name, 1)
    workers, given = workers_of(threads), columns(7)
    for names in (["few"], ["texts", "wide"], ["nothing"], ["times", "few"]):
        places = [places_of(given[name], workers) for name in names]
        asked = {**given, "real": pa.array(np.arange(ROWS) / 7), "truth": pa.array([True] * ROWS)}
        asked["slice"] = pa.concat_arrays([pa.array([5]), given["wide"]])[1:]
        asked["coded"] = given["coded"].fill_null("b")
        moves = Moves([*map(_in_pieces, asked.values())])
        found = in_order(places, workers, moves.of_slice)  # type: ignore[arg-type]
        assert found.order.tolist() == order_of_arrow([given[name] for name in names])
        if found.begins is not None:
            values = given[names[0]].take(pa.array(found.order)).to_pylist()
            changes = [n for n in range(ROWS) if n == 0 or values[n] != values[n - 1]]
            assert found.begins.tolist() == changes
        for name, one in zip(asked, moves.columns, strict=True):
            is_moved = name in ("few", "wide", "least", "times", "real", "slice", "coded", "twice")
            assert (one is not None) == is_moved, name
            if one is not None:
                wanted = asked[name].take(pa.array(found.order))
                assert one.to_pylist() == wanted.to_pylist(), name


def test_what_has_no_digits_is_left_to_arrow() -> None:
    ends = pa.array([-(2**63), 2**63 - 1])
    for column in (ends, pa.array([0.5]), pa.array([2**63], pa.uint64()), pa.array([True])):
        assert places_of(column) is None


@pytest.mark.parametrize("rises", [True, False])
def test_a_large_table_is_in_the_order_of_a_small_one(
    monkeypatch: pytest.MonkeyPatch, rises: bool
) -> None:
    attributes = "{ k: STRING, n: LONG, ts: LONG }"
    declared = f"CREATE STREAM S {{ EVENT A {attributes}, EVENT B {attributes} }}"
    query = celc.compile(
        f"{declared} SELECT * WHERE A AS a ; B AS b PARTITION BY k, n", order_by="ts"
    )
    rng = np.random.default_rng(1)
    times = rng.integers(0, 500, ROWS)
    table = pa.table(
        {
            "type": rng.choice(["A", "B"], ROWS),
            "k": columns(1)["twice"],
            "n": columns(1)["gaps"],
            "ts": np.sort(times) if rises else times,
        }
    )
    plan = next(iter(query.queries.values())).plan
    small, _ = sorting.sorted_for(plan, table)
    monkeypatch.setattr(sorting, "_FEW", 10)
    monkeypatch.setattr(sorting, "is_worth_it", lambda _rows: True)
    large, _ = sorting.sorted_for(plan, table)
    assert large.cast(small.schema).equals(small)  # types may be coded


def test_codes_of_keys_are_ranks_of_first_appearances() -> None:
    rng = np.random.default_rng(2)
    one, two = (pa.array(rng.integers(0, n, 500)) for n in (5, 200))
    codes = codes_of_keys([one, two], 500)
    wanted = np.zeros(500, np.int64)
    for column in (one, two):
        coded = column.dictionary_encode()
        wanted = wanted * len(coded.dictionary) + coded.indices.to_numpy()
        wanted = np.unique(wanted, return_inverse=True)[1]
    assert codes.tolist() == wanted.tolist()
