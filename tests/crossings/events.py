"""Short streams for a draft: events at one time, NULLs, keys of every kind, gaps, late starts."""

from __future__ import annotations

import datetime as dt
import math
import random
from typing import Any

from streams_by_hand import instant

from .drafts import TYPES, Draft

Events = list[dict[str, Any]]

_STEPS = ((0, 1, 1, 2), (1, 1, 2), (1, 3, 9), (0, 0, 1))
_KEYS = (0.0, -0.0, math.nan, 1.0, None)


def events_for(draft: Draft, rng: random.Random) -> Events:
    """Events in the order of `ts`; `row` tells those of one time apart."""
    traits = draft.traits
    # The reference tries all worlds.
    longest = 5 if draft.uncertain else 9
    length = rng.choice((rng.randint(0, longest), longest - 1, longest))
    names = [one for one in draft.types if one in TYPES]
    steps = _STEPS[3] if "ties" in traits else rng.choice(_STEPS[:3])
    nulls = rng.choice((0.1, 0.3)) if "nulls" in traits else rng.choice((0, 0, 0.1))
    # The answers of uncertain time are compared value by value.
    keys = (
        _KEYS
        if not draft.uncertain and ("keys" in traits or rng.random() < 0.3)
        else (1.0, 2.0, 1.0)
    )
    few = rng.choice(((1, 1, 2), (1, 2), (1,), (1, 2, 3)))
    ts, mile = 1, 0
    events: Events = []
    for row in range(length):
        ts += rng.choice(steps)
        mile += rng.choice((0, 1, 1, 2))
        event: dict[str, Any] = {
            "type": rng.choice((*names, *names, *names, rng.choice(TYPES))),
            "id": rng.choice(few),
            "value": rng.choice((1.0, 2.0, 3.0, 2.5, 0.0)),
            "name": rng.choice(("p", "q", "pq")),
            "num": rng.choice((1, 2, 1, -3)),
            "key": rng.choice(keys),
            "src": rng.choice(few),
            "dst": rng.choice(few),
            "took": dt.timedelta(milliseconds=rng.choice((0, 1, 2, 3))),
        }
        for name in ("id", "value", "name", "num", "key", "src", "dst", "took"):
            if nulls and rng.random() < nulls:
                event[name] = None
        if "strangers" in traits and rng.random() < 0.25:
            event["type"] = "Stranger"
        if "late starts" in traits:
            # Half of the keys begin when the others are nearly over.
            event["id"] = 1 if row < length * 0.6 else 2
        if "T" in draft.streams:
            event["stream"] = rng.choice("ST")
        if draft.lasting:
            event["since"] = instant(ts - rng.choice((0, 0, 1, 2, 5)))
        if draft.uncertain:
            event["high"] = instant(ts + rng.choice((0, 0, 1, 3)))
        events.append(event | {"mile": mile, "ts": instant(ts), "row": row})
    return events


def rules_for(rng: random.Random) -> list[dict[str, Any]]:
    """Rows of the parameter table; some come twice."""
    rows = [
        {
            "nr": number,
            "id": rng.choice((1, 2, None, 1)),
            "value": rng.choice((0.0, 1.0, 2.0, None)),
            "name": rng.choice(("p", "p%", "_", None)),
        }
        for number in range(rng.choice((0, 1, 2, 3)))
    ]
    return rows + [dict(row) for row in rows if rng.random() < 0.2]
