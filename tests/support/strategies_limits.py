"""Random queries with LIMIT n PER d and LIMIT n PER PARTITION.

Any random query is given such a clause: with selectors, one match for each start, absences before
and behind, CONSUME BY, parts that the answer does not show.
"""

from __future__ import annotations

import random
import re

from strategies import EVERYTHING, SHORTER, Feature, random_query
from strategies_absences import branching_absence_query, correlated_absence_query

_PLAIN = (EVERYTHING | SHORTER | {Feature.LOCAL_WINDOW}) - {Feature.LIMIT, Feature.ANY}
_ACROSS = {Feature.CORRELATION, Feature.PREV, Feature.PRIOR, Feature.OUTER, Feature.AGGREGATE}
_ABSENT = frozenset({Feature.NOT_BEFORE, Feature.NOT_AFTER})


_LENGTHS = ("PARTITION", "0", "1", "2", "2.5", "3", "5")


def limited_query(rng: random.Random) -> str:
    """A random query with LIMIT … PER, and its declaration."""
    kind = rng.choice(("plain", "plain", "across", "start", "absent", "correlated", "branching"))
    if kind == "correlated":
        text = correlated_absence_query(rng)
    elif kind == "branching":
        text = branching_absence_query(rng)
    else:
        more = {"start": frozenset({Feature.PER_START}), "absent": _ABSENT}.get(kind, frozenset())
        features = _PLAIN if kind == "across" else _PLAIN - _ACROSS
        text = random_query(rng, features | more, depth=rng.choice((1, 2, 3)))
    text = re.sub(r"LIMIT 1\n", "", text.replace("SELECT ANY ", "SELECT "))
    if re.search("SELECT (TOTAL|COLLAPSED)", text):
        text = re.sub(r"SELECT (TOTAL|COLLAPSED) .* FROM S", "SELECT * FROM S", text)
        text = text.replace("PER PARTITION\n", "")
    if rng.random() < 0.25:
        text = re.sub(r"SELECT (\w+ )?(\w+ )?\*", r"SELECT \1\2NONE", text)
    return text + f"LIMIT {rng.choice((1, 1, 2, 3))} PER {rng.choice(_LENGTHS)}\n"
