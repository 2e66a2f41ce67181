"""Texts by number with their bytes, and the order of texts that are joined of several."""

import itertools
import random

import numpy as np
import pyarrow as pa
from celc_runtime.arrow.text_numbers import SpelledTexts
from celc_runtime.engine.values.texts import order_of_texts
from engines import interpreted

import celc

_PIECES = ("", "a", "b", "ab", "ba", "é", "\U0001f600", "\uffff", "a\0")


def test_pieces_are_ordered_as_their_texts() -> None:
    rng = random.Random(1)
    texts = SpelledTexts(())
    numbers = texts.of(pa.array(_PIECES))
    for _ in range(500):
        left, right = (rng.choices(range(len(_PIECES)), k=rng.randint(1, 3)) for _ in range(2))
        sides = [tuple(numbers[one] for one in side) for side in (left, right)]
        one, other = ("".join(_PIECES[place] for place in side) for side in (left, right))
        wanted = (one.encode() > other.encode()) - (one.encode() < other.encode())
        assert order_of_texts(*texts.letters, *sides) == wanted, (one, other)


def test_forgotten_texts_leave_the_others() -> None:
    own, kept = ("x", "é"), ("a", None, "é", "long " * 50, "a")
    texts = SpelledTexts(own)
    texts.of(pa.array([str(number) * 100 for number in range(3000)]))
    column, other = texts.of(pa.array(kept)), texts.of(pa.array(["b", "x"]))
    before = texts.nbytes
    column, other = texts.forget([column, other])
    letters, stops = texts.letters
    spelled = [
        None if n < 0 else bytes(letters[stops[n] : stops[n + 1]]).decode() for n in [*column]
    ]
    assert (spelled, len(texts)) == ([*kept], 5)
    assert texts.of(pa.array([*own, "b", "a"])).tolist() == [0, 1, other[0], column[0]]
    assert texts.nbytes < before / 10
    assert not np.isin([-1], other).any()


def test_a_dictionary_is_read_as_its_texts() -> None:
    texts = SpelledTexts(("b",))
    column = pa.array(["a", None, "b", "a"]).dictionary_encode()
    first, nothing, own, same = texts.of(column).tolist()
    assert (nothing, own, first == same) == (-1, 0, True)


def test_a_piece_that_is_null_is_not_read() -> None:
    """Texts that are joined of several events; the longer ones end where no letters are."""
    stream = "CREATE STREAM S { EVENT A { n: STRING, c: STRING }, EVENT B { n: STRING } }\n"
    condition = "x.n || y.n || x.c NOT IN ('pp', 'p1')"
    with interpreted():
        query = celc.compile(f"{stream}SELECT * WHERE (A AS x ; B AS y) FILTER {condition}")
    rng = random.Random(1)
    for _ in range(20):
        types = rng.choices("AB", k=8)
        names = rng.choices((None, "p", "", "pppp"), k=8)
        codes = rng.choices((None, "p", "1", "0123456789abc"), k=8)
        found = query.match_table({"type": types, "n": names, "c": codes})
        wanted = [
            (one, two)
            for one, two in itertools.combinations(range(8), 2)
            if (types[one], types[two]) == ("A", "B")
            and None not in (names[one], names[two], codes[one])
            and f"{names[one]}{names[two]}{codes[one]}" not in ("pp", "p1")
        ]
        assert found.num_rows == len(wanted)
