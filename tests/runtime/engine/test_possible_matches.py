"""The order of matches over uncertain times, as one pass over them finds it."""

import numpy as np
from celc_runtime.engine.worlds.possible_matches import last_and_order


def _order(*matches: tuple[int, ...]) -> tuple[list[int], list[int], bool]:
    tags = np.array([event << 1 for match in matches for event in match], np.int64)
    last, order, is_in_order = last_and_order(np.cumsum([*map(len, matches)]), tags, 1)
    return last.tolist(), order.tolist(), is_in_order


def test_matches_that_are_in_order_have_no_other_one() -> None:
    assert _order((1, 2), (0, 2), (0, 3)) == ([2, 2, 3], [], True)


def test_of_one_last_event_the_latest_first_event_comes_first() -> None:
    last, order, is_in_order = _order((0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
    assert (last, is_in_order) == ([2, 2, 3, 3, 3], True)
    assert order == [1, 0, 4, 3, 2]


def test_matches_out_of_the_order_of_their_last_events() -> None:
    assert not _order((0, 3), (1, 2))[2]
