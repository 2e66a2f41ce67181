"""Keys that are DOUBLEs or FLOATs, among them NaN, 0.0 and −0.0, in queries and streams of other
strategies.

What is changed is drawn from the text and the events themselves: seeds draw the queries that they
always drew.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

_KEYS = ("id", "src", "dst")
_REAL = re.compile(r"\b(id|src|dst): (?:DOUBLE|FLOAT)\b")

# Equal numbers in several forms: the sign of a zero and of NaN.
_FORMS: Mapping[int, tuple[float, ...]] = {
    0: (2.5,),
    1: (0.0, -0.0),
    2: (math.nan, -math.nan),
    3: (1.0,),
}


def with_real_keys(text: str) -> str:
    """The text of some queries with real numbers for the attributes that they mostly partition
    by."""
    if re.search(rf"\bown_\w+\([^)]*\.({'|'.join(_KEYS)})\b", text):
        return text  # aggregates of the file take keys as they are declared
    rng = random.Random(text)
    if rng.random() >= (0.5 if "PARTITION BY" in text else 0.1):
        return text
    return re.sub(rf"\b({'|'.join(_KEYS)}): INT\b", rf"\1: {rng.choice(('DOUBLE', 'FLOAT'))}", text)


def real_keys(text: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events with real numbers where the text declares some for keys; changes them in place."""
    names = sorted(set(_REAL.findall(text)))
    rng = random.Random(f"{text}{events}")
    for event in events:
        for name in names:
            value = event.get(name)
            if isinstance(value, int):
                # The greatest INT is no FLOAT.
                event[name] = rng.choice(_FORMS.get(value, (float(np.float32(value)),)))
    return events
