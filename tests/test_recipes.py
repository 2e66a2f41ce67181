"""The recipes of docs/recipes answer what they promise, as functions written by hand do."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
import recipes_in_pandas
from celc_runtime.plan.schemas import input_schema
from recipes import Recipe, Row, counted, recipes

pytestmark = pytest.mark.filterwarnings("ignore:.*undecided")

START = dt.datetime(2026, 7, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Stream:
    """Random events of a recipe, some of which are exactly as far apart as the recipe's lengths.

    No two events have one time. `unit` is the least time between events, `gap` is how many units
    lie between two events on average. `attributes` draws the values of each type.
    """

    key: str
    keys: int
    unit: dt.timedelta
    gap: int
    types: Sequence[str]
    attributes: Mapping[str, Mapping[str, Callable[[random.Random], Any]]] = field(
        default_factory=dict
    )
    once: bool = False
    """Whether each key has at most one event of each type, and keys follow each other."""

    def rows(self, rng: random.Random, count: int = 300) -> list[Row]:
        rows, seen = list[Row](), set[tuple[str, int]]()
        for time in sorted(rng.sample(range(count * self.gap), count)):
            name, key = rng.choice(self.types), rng.randrange(self.keys)
            if self.once:
                key += time // self.keys
                if (name, key) in seen:
                    continue
                seen.add((name, key))
            values = {name: draw(rng) for name, draw in self.attributes.get(name, {}).items()}
            rows.append({"type": name, self.key: key, "ts": START + time * self.unit, **values})
        return rows


def one_of(*values: Any) -> Callable[[random.Random], Any]:
    return lambda rng: rng.choice(values)


SECOND, MINUTE, DAY = (dt.timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "days"))
PAGES = {"page": one_of("home", "hats", "shoes", "cart")}
STREAMS = {
    "carts": Stream(
        "customer",
        8,
        MINUTE,
        3,
        ("Added", "Added", "Purchased"),
        {"Added": {"item": one_of("lamp", "desk", "rug")}},
    ),
    "tickets": Stream(
        "ticket",
        40,
        20 * MINUTE,
        2,
        ("Opened", "Noted", "Answered", "Closed"),
        {"Opened": {"topic": one_of("login", "refund", None)}},
    ),
    "logins": Stream("account", 6, MINUTE / 2, 2, ("Failed", "Failed", "Failed", "Succeeded")),
    "returns": Stream("account", 10, DAY / 2, 5, ("Login", "Mailed")),
    "prices": Stream(
        "name", 5, SECOND, 2, ("Quote",), {"Quote": {"price": one_of(1.0, 2.0, 3.0, 4.5, 5.0)}}
    ),
    "bursts": Stream(
        "host",
        3,
        SECOND,
        2,
        ("Error", "Error", "Info"),
        {"Error": {"code": one_of(500, 502, 503)}},
    ),
    "sessions": Stream(
        "visitor", 10, MINUTE, 3, ("Viewed", "Clicked"), {"Viewed": PAGES, "Clicked": PAGES}
    ),
    "steps": Stream("id", 4, 60 * MINUTE, 1, ("Packed", "Checked", "Shipped"), once=True),
    "changes": Stream("account", 10, 2 * MINUTE, 3, ("PasswordChanged", "AddressChanged")),
    "heartbeats": Stream("device", 5, SECOND * 10, 3, ("Beat",)),
    "cards": Stream(
        "card",
        8,
        MINUTE,
        4,
        ("Payment",),
        {"Payment": {"city": one_of("Lima", "Oslo", "Rome")}},
    ),
}


def random_events(recipe: Recipe, stream: Stream, seed: int) -> pa.Table:
    """Keys are numbers, or texts that look like them."""
    rows = stream.rows(random.Random(seed))
    schema = input_schema(recipe.query.plan)
    if schema.field(stream.key).type == pa.string():
        rows = [row | {stream.key: str(row[stream.key])} for row in rows]
    return pa.Table.from_pylist(rows, schema)


def by_hand(name: str, events: pa.Table) -> list[Row]:
    written: Callable[..., list[Row]] = getattr(recipes_in_pandas, name)
    return written(events.to_pandas())


def test_each_recipe_is_written_by_hand() -> None:
    assert recipes().keys() == STREAMS.keys()


@pytest.mark.parametrize("name", STREAMS)
def test_the_events_of_the_page(name: str) -> None:
    recipe = recipes()[name]
    answer = recipe.answer(recipe.events)
    assert answer
    assert counted(answer) == counted(by_hand(name, recipe.events))


@pytest.mark.each(3)
@pytest.mark.parametrize("name", STREAMS)
def test_random_events(name: str) -> None:
    recipe = recipes()[name]
    for seed in range(3):
        events = random_events(recipe, STREAMS[name], seed)
        answer = recipe.answer(events)
        assert len(answer) >= 5, seed
        assert counted(answer) == counted(by_hand(name, events)), seed
