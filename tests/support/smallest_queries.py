"""Smallest queries that have a part of the language, or two, for the table of the documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from celc_runtime import CompiledQuery
from engines import interpreted
from places import ROOT

import celc

_BASE = {
    "first": "A AS x",
    "joint": ";",
    "second": "B AS y",
    "window": "1 HOUR",
}


@dataclass(frozen=True)
class Part:
    """A part of the language. changes: what it puts into places of the query; items: what it adds
    to SELECT; around: what it puts around the formula, which stands for φ; options: those of the
    call."""

    name: str
    changes: Mapping[str, str] = field(default_factory=dict)
    items: str = ""
    around: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


_OWN = """AGGREGATE most(v: INT): INT
  STATE top: INT = NULL
  STEP top = GREATEST(top, v)
  RESULT top
"""


def low(x: Any) -> Any:
    """A function of one's own."""
    return x[0] < 3


_BELOW = "SELECT p.id AS id FROM S WHERE A AS p"
_COMPUTED = "SELECT p.id AS id FROM S WHERE A AS p PARTITION BY id % 2 WITHIN 1 HOUR"
_WAITS = "SELECT LONGEST p.id AS id FROM S WHERE A AS p ; (B)+ WITHIN 9 EVENTS"

_FUNCTION = {"aggregate": "FUNCTION low(INT[]): BOOLEAN\n"}

PARTS = (
    # What stands around the formula, the innermost first.
    Part("`A+`", {"first": "(A)+ AS x"}),
    Part("`:`", {"joint": ":"}),
    Part("`?`", {"second": "(B AS y)?"}),
    Part("absence between", {"joint": "; !C ;"}),
    Part("`ALL`", {"joint": "ALL"}),
    Part("condition across events", around="φ FILTER x.id < y.id"),
    Part(
        "own function in `FILTER`", _FUNCTION, "", "φ FILTER low(x.id)", {"functions": {"low": low}}
    ),
    Part("equal keys", around="φ FILTER x.id = y.id"),
    Part("`PREV`", around="φ FILTER y.id > PREV(y.id)"),
    Part("aggregate in `FILTER`", around="φ FILTER SUM(x.id) > 3"),
    Part("`OR`", around="φ OR C"),
    Part("`PROJECT` that can leave all out", around="PROJECT[x, y](φ OR C)"),
    Part("`AND`", around="φ AND (C ; D)"),
    Part("`UNLESS`", around="φ UNLESS C"),
    Part("selector inside", around="NXT φ ; D"),
    Part("selector that compares the whole stream", around="NXT(φ FILTER x.id = y.id) ; D"),
    Part(
        "`MAX` inside with a condition across events",
        {"first": "(A)+ AS x"},
        around="MAX(φ FILTER x.id < y.id) ; D",
    ),
    Part("`STRICT`", around="STRICT φ"),
    Part("`WITHIN[…]` inside", around="WITHIN[9 SECONDS] φ"),
    Part("absence before", around="!C FOR 1 MINUTE ; φ"),
    Part("absence at the end", around="φ ; !C FOR 1 MINUTE"),
    Part("absence at the end up to `WITHIN`", around="φ ; !C"),
    Part("absence at the end of EVENTS", around="φ ; !C FOR 3 EVENTS"),
    Part("absence at the end on another attribute", around="φ ; !C FOR 3 [n]"),
    # Clauses.
    Part("selector after `SELECT`", {"select": "NXT"}),
    Part("`ANY`", {"select": "ANY"}),
    Part("`FIRST`", {"select": "FIRST"}),
    Part("`LONGEST`", {"select": "LONGEST"}),
    Part("`DISJOINT`", {"select": "FIRST DISJOINT"}),
    Part("`COLLAPSED`", {"select": "COLLAPSED"}),
    Part("`TOTAL`", {"select": "TOTAL"}, "COUNT(*) AS found"),
    Part("`PER` of a duration", {"select": "TOTAL", "per": "1 HOUR"}, "COUNT(*) AS found"),
    Part("`PER PARTITION`", {"select": "TOTAL", "per": "PARTITION"}, "COUNT(*) AS found"),
    Part("attribute in `SELECT`", items="y.id AS v"),
    Part("function in `SELECT`", items="LAST(y.id) + 1 AS e"),
    Part(
        "some labels in `SELECT` and a condition across events",
        items="x",
        around="φ FILTER x.id < y.id",
    ),
    Part("own aggregate in `SELECT`", {"aggregate": _OWN}, "most(x.id) AS m"),
    Part(
        "own function in `SELECT`", _FUNCTION, "low(x.id) AS m", options={"functions": {"low": low}}
    ),
    Part("`PARTITION BY`", {"partition": "id"}),
    Part("`PARTITION BY` keys of several names", {"partition": "[src, dst]"}),
    Part("`PARTITION BY` the order column", {"partition": "ts"}),
    Part("no `WITHIN`", {"window": ""}),
    Part("`WITHIN` of EVENTS", {"window": "9 EVENTS"}),
    Part("`WITHIN` of more than 1,048,576 EVENTS", {"window": "2000000 EVENTS"}),
    Part("`WITHIN` on another attribute", {"window": "9 [n]"}),
    Part("`CONSUME BY`", {"consume": "ANY"}),
    Part("`CONSUME BY ANY` with `PARTITION BY`", {"consume": "ANY", "partition": "id"}),
    Part("`LIMIT`", {"limit": "2"}),
    Part("`LIMIT … PER`", {"limit": "2 PER 1 HOUR"}),
    Part("`LIMIT … PER` of some labels", {"limit": "2 PER 1 HOUR"}, "x"),
    Part("`LONGEST` and `LIMIT … PER`", {"select": "LONGEST", "limit": "2 PER 1 HOUR"}),
    Part("`LIMIT … PER` of more than 1,000 rows", {"limit": "2000 PER 1 HOUR"}),
    # The file, and options.
    Part("`FOR EACH`", {"each": "rule"}, around="φ FILTER y.id = rule.id"),
    Part("`FOR EACH` with an aggregate", {"each": "rule"}, around="φ FILTER COUNT(x) < rule.id"),
    Part("is read by another query", {"above": "FROM q WHERE q AS r"}),
    Part("reads another query", {"streams": "below, S", "second": "below AS y"}),
    Part(
        "reads a query with `LONGEST` of EVENTS",
        {"streams": "below, S", "second": "below AS y", "below": _WAITS},
    ),
    Part(
        "reads a query with a computed key",
        {"streams": "below, S", "second": "below AS y", "below": _COMPUTED},
    ),
    Part("uncertain time", {"times": "UNCERTAIN [ts, high] BY 1 SECONDS "}),
    Part("events that last", {"times": "LASTING [high, ts] "}),
    Part('`ties="simultaneous"`', options={"ties": "simultaneous"}),
    Part("no order column", {"window": "9 EVENTS"}, options={"order_by": None}),
    Part("an order column that is no TIMESTAMP", {"window": "9 [n]"}, options={"order_by": "n"}),
    Part(
        "an order column of texts",
        {"window": "9 EVENTS", "attributes": ", word: STRING"},
        options={"order_by": "word"},
    ),
    Part('`at_end="closed"`', options={"at_end": "closed"}),
    Part("`positions=True`", options={"positions": True}),
    Part("`match_id=True`", options={"match_id": True}),
)
"""In the order of the documents, those around a formula from the inside out."""

TOGETHER = (
    ("`LONGEST`", "no `WITHIN`"),
    ("`LONGEST`", "absence before"),
    ("`LONGEST`", "absence before", "`WITHIN` of EVENTS"),
    ("`LONGEST`", "selector that compares the whole stream"),
    ("`LONGEST`", "`LIMIT`"),
    ("`DISJOINT`", "events that last"),
    ("`LONGEST` and `LIMIT … PER`", "events that last"),
    ("`LONGEST`", "`WITHIN[…]` inside", "events that last"),
    ("`LONGEST`", "`LIMIT`", "`WITHIN` of EVENTS"),
    ("`FIRST`", "absence at the end"),
    ("`FIRST`", "absence at the end", "`WITHIN` of EVENTS"),
    ("`FIRST`", "absence at the end", "`PARTITION BY`"),
    ("`FIRST`", "absence at the end of EVENTS"),
    ("`LIMIT … PER` of some labels", "absence at the end up to `WITHIN`"),
    ("selector after `SELECT`", "`LIMIT … PER`", "absence at the end"),
    ("selector after `SELECT`", "`LIMIT … PER`", "absence at the end up to `WITHIN`"),
    ("`PER` of a duration", "absence at the end"),
    ("`COLLAPSED`", "absence at the end up to `WITHIN`"),
    ("`TOTAL`", "absence at the end up to `WITHIN`"),
    ("`PARTITION BY`", "absence at the end"),
    ("`PARTITION BY`", "reads another query"),
    ("`FOR EACH`", "reads another query"),
    ("absence between", "uncertain time"),
    ("`TOTAL`", "uncertain time"),
    ("`FOR EACH`", "uncertain time"),
    ("`TOTAL`", "`match_id=True`"),
    ("`COLLAPSED`", "`match_id=True`"),
    ("`FOR EACH`", "`positions=True`"),
    ("`FOR EACH`", "`WITHIN` of EVENTS"),
    ("`FOR EACH`", "absence at the end of EVENTS"),
)
"""What routes say of several parts together."""

_OF_CALLS = ("at_end", "positions", "match_id")
"""Options that are given to a call, and not to the compiler."""

BY_NAME = {one.name: one for one in PARTS}


@dataclass(frozen=True)
class Smallest:
    """A query with some parts. options: those of the compiler; changed: those of a call."""

    text: str
    options: Mapping[str, Any]
    changed: Mapping[str, Any]

    def refused(self) -> str:
        """The code of the first error of the compiler; empty where there is none."""
        found = celc.check(self.text, **self.options)
        return next((one.code for one in found if one.severity == "error"), "")

    def compiled(self) -> CompiledQuery:
        """The query q."""
        with interpreted():
            query: CompiledQuery = celc.compile(self.text, **self.options).queries["q"]
        return query.with_options(**self.changed)


def smallest(*parts: Part) -> Smallest | None:
    """The smallest query with these parts; None: two of them take one place."""
    taken = [name for one in parts for name in (*one.changes, *one.options)]
    if len({*taken}) < len(taken):
        return None
    places = dict(_BASE)
    given: dict[str, Any] = {}
    for one in parts:
        places |= one.changes
        given |= one.options
    formula = f"({places['first']} {places['joint']} {places['second']})"
    items = ", ".join(one.items for one in parts if one.items)
    for one in sorted(parts, key=PARTS.index):
        formula = f"({one.around.replace('φ', formula)})" if one.around else formula
    changed = {name: given.pop(name) for name in _OF_CALLS if name in given}
    # Events of uncertain time, and those that last, have an order of their own.
    order = {} if "times" in places else {"order_by": "ts"}
    return Smallest(_text(places, items or "*", formula), order | given, changed)


def _text(places: Mapping[str, str], items: str, formula: str) -> str:
    times = places.get("times", "")
    more = places.get("attributes", "")
    high = ", high: TIMESTAMP" if times else ""
    events = ", ".join(
        f"EVENT {one} {{ id: INT, n: LONG, {key}: INT, ts: TIMESTAMP{high}{more} }}"
        for one, key in zip("ABCD", ("src", "dst") * 2, strict=True)
    )
    given = places.get
    clauses = [
        f"SELECT {given('select', '')} {items} FROM {given('streams', 'S')}",
        f"FOR EACH {places['each']}" if "each" in places else "",
        f"WHERE {formula}",
        *(
            f"{word} {places[name]}" if given(name) else ""
            for name, word in (
                ("partition", "PARTITION BY"),
                ("window", "WITHIN"),
                ("consume", "CONSUME BY"),
                ("per", "PER"),
                ("limit", "LIMIT"),
            )
        ),
    ]
    return (
        f"CREATE STREAM S {times}{{ {events} }}\n{given('aggregate', '')}"
        + ("PARAMETERS rule { id: INT }\n" if "each" in places else "")
        + (f"QUERY below: {given('below', _BELOW)}\n" if "streams" in places else "")
        + f"QUERY q: {' '.join(filter(None, clauses))}\n"
        + (f"QUERY top: SELECT * {places['above']}\n" if "above" in places else "")
    )


def refusals_of_pairs() -> frozenset[str]:
    """The codes with which the compiler refuses two parts together, as the documents list them."""
    page = (ROOT / "docs" / "routes.md").read_text("utf-8")
    listed = page.split("<!-- language -->")[1].split("<!-- end of language -->")[0]
    return frozenset(re.findall(r"^\| `([a-z-]+)`", listed, re.MULTILINE))
