"""Keys of PARTITION BY as small numbers: rows, positions and places as counting gives them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.arrow.events.digits import ALONE
from celc_runtime.jit.kernels import compiling, interpreting
from celc_runtime.run.numbered_keys import (
    Keys,
    count_keys,
    number_rows,
    numbering,
    place_keys,
    place_rows,
)

_ROWS = 400
_RNG = np.random.default_rng(8)
_SMALL = _RNG.integers(0, 7, _ROWS)
_TEXTS = pa.array(np.array(["b", "a", "ä", "", "abc", "z", "y"])[_SMALL])
_COLUMNS = {
    "one byte": pa.array(_SMALL - 3, pa.int8()),
    "two bytes": pa.array(_SMALL - 30_000, pa.int16()),
    "four bytes": pa.array(_SMALL - 2**31, pa.int32()),
    "eight bytes": pa.array(_SMALL + np.iinfo(np.int64).min),
    "around a border of four bytes": pa.array(_SMALL + 2**32 - 3),
    "days": pa.array((_SMALL - 3).astype(np.int32), pa.date32()),
    "times": pa.array(_SMALL + 10**15, pa.timestamp("us", "UTC")),
    "texts": _TEXTS,
    "coded": _TEXTS.dictionary_encode(),
    "coded by a byte": pa.DictionaryArray.from_arrays(
        pa.array(_SMALL, pa.uint8()), pa.array([*"gfedcba"])
    ),
}
_CHOSEN = [[name] for name in _COLUMNS] + [["four bytes", "texts"], ["one byte", "days", "times"]]


@pytest.mark.parametrize("running", [compiling, interpreting])
@pytest.mark.parametrize("names", _CHOSEN, ids="/".join)
def test_rows_that_stay_are_counted_and_placed(names: list[str], running: Any) -> None:
    whole = pa.table({name: _COLUMNS[name] for name in names})
    pieces = [whole.slice(first, end - first) for first, end in pairwise([0, 0, 9, 150, _ROWS])]
    table = pa.concat_tables(pieces)
    found = [ALONE.take(numbering(table[name], ALONE))[0] for name in names]
    read = [
        (
            table[name]
            if one.codes is None
            else (
                pa.chunked_array([one.codes.combine_chunks()])
                if isinstance(one.codes, pa.ChunkedArray)
                else pa.chunked_array([one.codes])
            )
        )
        for name, one in zip(names, found, strict=True)
    ]
    keys = Keys.of(found, read)
    values = [*zip(*(table[name].to_pylist() for name in names), strict=True)]
    symbols = (_RNG.random(_ROWS) < 0.3).astype(np.uint8)
    stays = np.flatnonzero(symbols)
    seen: dict[Any, int] = {}
    positions = []
    for value in values:
        seen[value] = seen.get(value, -1) + 1
        positions.append(seen[value])

    slices = [(0, 130), (130, _ROWS)]
    counts = np.zeros((2, keys.different), np.int64)
    standing = np.zeros((3, len(stays)), np.int64)
    laid = keys.laid
    with running():
        count_keys(laid.pieces, laid.size, keys.least, 0, 130, counts[1])
        for number, (first, end) in enumerate(slices):
            some = slice(*np.searchsorted(stays, [first, end]))
            number_rows(
                *(laid.pieces, laid.size, keys.least, symbols, first, end),
                *(counts[number], *standing[:, some]),
            )
    assert standing[0].tolist() == stays.tolist()
    assert standing[1].tolist() == [positions[row] for row in stays]
    ranks = np.arange(keys.different) if keys.ranks is None else keys.ranks
    ranked = sorted({values[row] for row in stays}, key=lambda value: [*map(_order, value)])
    by_rank = dict(zip(sorted({*ranks[standing[2]].tolist()}), ranked, strict=True))
    assert [by_rank[rank] for rank in ranks[standing[2]].tolist()] == [values[row] for row in stays]
    assert (counts >> 32).sum() == len(stays)

    in_order = np.argsort(ranks) if keys.ranks is not None else np.zeros(0, np.int64)
    begins = np.zeros(keys.different, np.int64)
    places, rows, moved = (np.full(len(stays), -1) for _ in range(3))
    with running():
        count = place_keys(counts, in_order, begins)
        for number, (first, end) in enumerate(slices):
            some = np.searchsorted(stays, [first, end]).tolist()
            place_rows(*standing, counts[number], *some, places, rows, moved)
    order = np.argsort(ranks[standing[2]], kind="stable")
    assert rows.tolist() == stays[order].tolist()
    assert moved.tolist() == standing[1][order].tolist()
    assert places[order].tolist() == [*range(len(stays))]
    ordered = [values[row] for row in rows]
    changes = [n for n in range(len(stays)) if n == 0 or ordered[n] != ordered[n - 1]]
    assert begins[:count].tolist() == changes


def _order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("running", [compiling, interpreting])
def test_without_keys_rows_are_numbered(running: Any) -> None:
    keys, symbols = Keys.of([], []), np.array([0, 3, 0, 1, 1, 0], np.uint16)
    rows, none = np.zeros(2, np.int64), np.zeros(0, np.int64)
    with running():
        number_rows(keys.laid.pieces, 8, 0, symbols, 2, 6, none, rows, none, none)
    assert rows.tolist() == [3, 4]
