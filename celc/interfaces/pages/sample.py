"""A repeatable random choice among many rows, by a hash of their numbers.

Rejected: every nth row. If the events have that period, it shows all or nothing of a pattern.
"""

import numpy as np


def ranks(first: int, count: int) -> np.ndarray:
    """uint64[count]: a number for each row from `first` on that looks random (SplitMix64)."""
    mixed = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def lowest(of_rows: np.ndarray, most: int) -> np.ndarray:
    """The places of the `most` lowest ranks, ascending."""
    if len(of_rows) <= most:
        return np.arange(len(of_rows))
    return np.sort(np.argpartition(of_rows, most)[:most]) if most else np.zeros(0, np.int64)


def with_others(needed: np.ndarray, rows: int, most: int) -> np.ndarray:
    """`most` places among `rows`: first those in `needed`, then others by their ranks."""
    if rows <= most:
        return np.arange(rows)
    of_rows = ranks(0, rows)
    taken = np.zeros(rows, np.bool_)
    taken[needed[lowest(of_rows[needed], most)]] = True
    others = np.flatnonzero(~taken)
    more = most - int(taken.sum())
    taken[others[lowest(of_rows[others], more)]] = True
    return np.flatnonzero(taken)
