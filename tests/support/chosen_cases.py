"""Which of the conformance cases go by each way to run a query, where not all of them can."""

from __future__ import annotations

import random

from cases_io import Case, load_cases
from reference import as_expected, evaluate
from strategies import DECLARATION, random_stream, with_chosen_keys

# Queries that go by every route whatever the step through the rest: where a letter depends on what
# came before, or a match is chosen or given up by what else is in its window, state is kept between
# batches that the other queries do not have.
_CHOSEN = {
    "06": ("SELECT MAX * FROM S WHERE (A+ ; B)+ ; C",),
    "07": (
        "SELECT * FROM S WHERE MAX(A+) ; LAST(B ; C)",
        "SELECT * FROM S WHERE LAST(NXT(A+ ; B) ; C)",
        "SELECT * FROM S WHERE A ; NXT(B ; C)+",
        "SELECT * FROM S WHERE (STRICT(A ; B))+ ; C",
    ),
    "08": (
        "SELECT NXT * FROM S WHERE A ; B ; C WITHIN 3 EVENTS",
        "SELECT LAST * FROM S WHERE A+ ; B WITHIN 4 [ts]",
        "SELECT MAX * FROM S WHERE A+ ; B WITHIN 4 [ts]",
    ),
    "09": ("SELECT LAST * FROM S WHERE A+ ; B PARTITION BY id",),
    "12": ("SELECT * FROM S WHERE (A+ ; B) ALL C",),
    "13": (
        "SELECT * FROM S WHERE ((A ; C) UNLESS B)+ ; D",
        "SELECT LAST * FROM S WHERE (A ; C) UNLESS B",
    ),
    "14": (
        "SELECT * FROM S WHERE A ; !(B ; C) ; D",
        "SELECT * FROM S WHERE A ; !B ; C WITHIN 4 EVENTS",
    ),
    "15": (
        "SELECT * FROM S WHERE (A AS x ; B AS y ; C AS z) FILTER x.id = y.id AND y.id = z.id "
        "WITHIN 4 EVENTS",
        "SELECT * FROM S WHERE ((A AS x)+ ; (B AS y)+) FILTER x.value < y.value",
    ),
    "16": ("SELECT MAX * FROM S WHERE ((A AS x)+ ; B AS y) FILTER x.value < y.value",),
    "17": ("SELECT * FROM S WHERE (B ; (A AS x)+ ; C) FILTER x.value > AVG(PRIOR x.value)",),
    "19": ("SELECT * FROM S WHERE A AS x ; !(B AS y FILTER y.id = x.id) ; C",),
    "20": ("SELECT * FROM S WHERE A AS x ; MAX((B AS y FILTER y.id = x.id)+ ; C)",),
    "22": ("SELECT * FROM S WHERE ((A AS x){2,} ; B) FILTER x.value >= PREV(x.value)",),
    "24": ("SELECT * FROM S WHERE A ; !(WITHIN[2 [ts]](B ; B)) ; C",),
    "25": (
        "SELECT * FROM S WHERE !B FOR 5 [ts] ; A ; C WITHIN 3 [ts]",
        "SELECT * FROM S WHERE !(B AS b FILTER b.id = x.id) FOR 9 [ts] ; A AS x",
    ),
    "33": (
        "SELECT FIRST * FROM S WHERE A ; !C ; B",
        "SELECT LONGEST DISJOINT * FROM S WHERE A+ ; B+ PARTITION BY id WITHIN 5 [ts]",
        "SELECT LONGEST x FROM S WHERE (A AS x ; B AS y) FILTER x.id = y.id WITHIN 6 [ts]",
    ),
}


def _written(query: str) -> str:
    """What follows the declarations."""
    return query[query.index("SELECT") :].strip()


def chosen() -> list[Case]:
    """For each query of `_CHOSEN`, the case with the most matches."""
    found = []
    for stem, queries in _CHOSEN.items():
        cases = load_cases(stem)
        for query in queries:
            same = [case for case in cases if _written(case.query).split() == query.split()]
            assert same, f"{stem}: {query}"
            found.append(max(same, key=lambda case: len(case.expected)))
    # No file has STRICT in a window, nor a selector in one with partitions and consumption.
    found += [_evaluated(query) for query in _MORE]
    found += [_evaluated(query, chosen_keys=True) for query in _OF_CHOSEN_KEYS]
    assert all(case.expected for case in found)
    return found


_MORE = (
    "SELECT STRICT * FROM S WHERE (A OR B)+ ; C WITHIN 4 [ts]",
    "SELECT NXT * FROM S WHERE A+ ; B PARTITION BY id WITHIN 6 EVENTS",
    "SELECT LAST x FROM S WHERE A AS x ; !C ; B PARTITION BY id WITHIN 8 [ts] CONSUME BY PARTITION",
    "SELECT MAX * FROM S WHERE NXT(A ; B) ; C WITHIN 9 EVENTS CONSUME BY ANY",
    "SELECT * FROM S WHERE WITHIN[3 [ts]]((A OR B) AS x ; A OR C){2} ; C? "
    "FILTER x IS A OR x.value > PREV(x.value, 2) WITHIN 9 EVENTS",
    # An absence that is measured as the window is, and one that is not.
    "SELECT * FROM S WHERE !(B ; C) FOR 4 EVENTS ; A ; C PARTITION BY id WITHIN 6 EVENTS",
    "SELECT * FROM S WHERE !(B AS y FILTER y.id = x.id) FOR 6 EVENTS ; A AS x ; C WITHIN 5 [ts]",
)


_OF_CHOSEN_KEYS = (
    "SELECT * FROM S WHERE A AS x ; B AS y PARTITION BY [src, dst] WITHIN 6 [ts]",
    "SELECT MAX x, y FROM S WHERE (A OR C) AS x ; B+ AS y PARTITION BY name, [dst, src]",
)


def _evaluated(query: str, *, chosen_keys: bool = False) -> Case:
    """A case of a query: the reference's answer on the first random stream with a few matches.

    With `chosen_keys`, A and D have `src`, and B and C have `dst`.
    """
    declaration = DECLARATION
    for name, attribute in zip("ABCD", ("src", "dst", "dst", "src"), strict=True):
        if chosen_keys:
            event = f"EVENT {name} {{ "
            declaration = declaration.replace(event, f"{event}{attribute}: INT, ")
    text = declaration + query
    for seed in range(100):
        rng = random.Random(seed)
        events = random_stream(rng, 20, nulls=0)
        if chosen_keys:
            events = with_chosen_keys(rng, events, "INT")
        found = evaluate(text, events, order_by="ts")
        if len(found) >= 3:
            return Case(query, text, events, [as_expected(match) for match in found])
    raise AssertionError(query)


def some_cases(limit: int, start: int = 0) -> list[Case]:
    """A case each of `limit` queries: those that must not be missed, then others from all files.

    Another `start` takes other ones of those.
    """
    first = chosen()
    seen = {case.query for case in first}
    rest: list[Case] = []
    for case in load_cases():
        # Simultaneous events, late matches and times have tests of their own.
        has_own = case.ties is not None or case.ends_late or " PER " in case.query
        if case.query not in seen and not has_own:
            seen.add(case.query)
            rest.append(case)
    others = max(1, limit - len(first))
    places = [len(rest) * number // others + start for number in range(others)]
    return first + [rest[place % len(rest)] for place in places]
