"""What a message offers to write is no mistake itself: for every message, and for mutated queries.

`tests/parse/test_mistakes.py` mends the mistakes of people as far as they go. Here each offered
change is made alone, in every query that causes a message and in queries with a token left out,
written twice, moved, or taken from another query.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from places import TESTS

from celc.core.limits import SIMULTANEOUS
from celc.diagnostics.errors import CelError, Diagnostic, Diagnostics, Fix
from celc.diagnostics.source import Source
from celc.parse.parser import parse
from celc.parse.tokens import tokenize
from celc.resolve.resolver import resolve

FOLDER = TESTS / "errors"
MISTAKES = FOLDER / "mistakes"
DECLARATIONS = (MISTAKES / "declarations.cel").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Query:
    """A text with the options that its message depends on; `declared`: its streams are in it."""

    name: str
    text: str
    ties: str | None = None

    @property
    def declared(self) -> bool:
        return "CREATE" in self.text

    def found(self, text: str) -> tuple[Diagnostic, ...]:
        """The errors and warnings of another text in its place."""
        source = Source("q.cel", text)
        named = re.match(r"-- order-by: (.*)\n", text)
        try:
            file = parse(source)
            if not self.declared:
                return ()
            order_by = tuple(named[1].split(",")) if named else None
            return resolve(file, source, order_by=order_by, ties=self.ties)[1]
        except CelError as refused:
            return refused.diagnostics


def queries() -> Iterator[Query]:
    for path in sorted(FOLDER.glob("*/*.cel")):
        if path.parent != MISTAKES:
            ties = SIMULTANEOUS if path.parent.name == "instants" else None
            name = str(path.relative_to(FOLDER))
            yield Query(name, path.read_bytes().decode(), ties)
    for path in sorted(MISTAKES.glob("*.txt")):
        declared = "" if path.stem.startswith("declarations") else DECLARATIONS
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                name, text = line.split("|", 1)
                yield Query(name, declared + text + "\n")


ALL = list(queries())


def refused(query: Query, text: str, fix: Fix, caused: Diagnostic, *, alone: bool) -> list[str]:
    """What is wrong with an offered text when it is put into its place; `alone`: the text has no
    other mistake, which the offer may repeat."""
    before = {(one.code, one.message) for one in query.found(text)} - {
        (caused.code, caused.message)
    }
    start, end = fix.span.start, fix.span.start + len(fix.text)
    changed = text[:start] + fix.text + text[fix.span.end :]
    wrong = []
    for one in query.found(changed):
        inside = start <= one.span.start < max(end, start + 1)
        again = (one.code, one.message) == (caused.code, caused.message) and inside and fix.text
        new = (one.code, one.message) not in before and inside and one.severity == "error"
        if again or (alone and new and not one.fixes and fix.text):
            wrong.append(f"{caused.code}: {text[start : fix.span.end]!r} → {fix.text!r}: {one}")
    return wrong


def wrong_offers(query: Query, text: str, *, alone: bool) -> list[str]:
    return [
        wrong
        for caused in query.found(text)
        for fix in caused.fixes
        for wrong in refused(query, text, fix, caused, alone=alone)
    ]


@pytest.mark.each(6)
@pytest.mark.parametrize("query", ALL, ids=[query.name for query in ALL])
def test_no_offered_text_is_a_mistake(query: Query) -> None:
    assert not wrong_offers(query, query.text, alone=True)


@pytest.mark.each(4)
@pytest.mark.parametrize("seed", range(4))
def test_nor_is_it_in_queries_with_a_change(seed: int) -> None:
    rng = random.Random(seed)
    wrong = []
    for _ in range(150):
        query = rng.choice(ALL)
        text = mutated(query.text, rng)
        wrong += [f"{found}\n{text}" for found in wrong_offers(query, text, alone=False)]
    assert not wrong, "\n".join(wrong[:3])


@pytest.mark.each(4)
@pytest.mark.parametrize("seed", range(4))
def test_changes_come_to_an_end(seed: int) -> None:
    """Where each error offers a change, the query after all of them has no error, or others: made
    again and again, they mend it, or end at an error that offers nothing."""
    rng = random.Random(1_000 + seed)
    circles, mended = [], 0
    for _ in range(400):
        query = rng.choice(ALL)
        text = begun = mutated(query.text, rng)
        errors = errors_in(query, text)
        if not query.declared or not errors:
            continue
        for _ in range(MOST_ROUNDS):
            if not errors or not all(one.fixes for one in errors):
                break
            text = changed_by(text, errors)
            errors = errors_in(query, text)
        mended += not errors
        if errors and all(one.fixes for one in errors):
            circles.append(f"{errors[0]}\n{begun}\n→\n{text}")
    assert not circles, "\n".join(circles[:3])
    assert mended > 20


MOST_ROUNDS = 15
"""A parser reports the first mistake of a statement only, so each round can uncover another one."""


def errors_in(query: Query, text: str) -> list[Diagnostic]:
    return [one for one in query.found(text) if one.severity == "error"]


def changed_by(text: str, errors: list[Diagnostic]) -> str:
    """The text after the first change of each error; of two that overlap, after the first one."""
    start = len(text) + 1
    for fix in sorted((one.fixes[0] for one in errors), key=lambda fix: fix.span, reverse=True):
        if fix.span.end <= start:
            text = f"{text[: fix.span.start]}{fix.text}{text[fix.span.end :]}"
            start = fix.span.start
    return text


def mutated(text: str, rng: random.Random) -> str:
    """A text with one to three tokens left out, written twice, exchanged, or from elsewhere."""
    for _ in range(rng.randint(1, 3)):
        spans = spans_of(text)
        if len(spans) < 2:
            break
        # Behind the declarations, most of the time.
        first = next((n for n, (at, end) in enumerate(spans) if text[at:end] == "SELECT"), 0)
        at = rng.randrange(first if rng.random() < 0.9 else 0, len(spans))
        start, end = spans[at]
        word = text[start:end]
        other = text[slice(*rng.choice(spans))]
        match rng.randrange(4):
            case 0:
                changed = ""
            case 1:
                changed = f"{word} {word}"
            case 2:
                changed = other
            case _:
                changed = f"{word} {from_elsewhere(rng)}"
        text = f"{text[:start]}{changed}{text[end:]}"
    return text


def from_elsewhere(rng: random.Random) -> str:
    text = rng.choice(ALL).text
    spans = spans_of(text)
    return text[slice(*rng.choice(spans))] if spans else ""


def spans_of(text: str) -> list[tuple[int, int]]:
    source = Source("q.cel", text)
    return [(one.start, one.end) for one in tokenize(source, Diagnostics(source)) if one.text]


_CUT = (
    "SELECT TOP",
    "SELECT * FROM Shop AS",
    "SELECT * FROM Shop WHERE View ; Cart WITHIN 5 MINUTES (",
    "SELECT * FROM Shop WHERE View AS v ; Cart AS c PARTITION BY v.user = c.",
)
"""Texts behind which messages looked for more."""


@pytest.mark.parametrize("text", _CUT)
def test_a_text_that_ends_early_is_a_mistake(text: str) -> None:
    query = Query("", DECLARATIONS)
    assert errors_in(query, DECLARATIONS + text)


@pytest.mark.parametrize("seed", range(2))
def test_texts_can_end_anywhere(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(400):
        query = rng.choice(ALL)
        ends = [end for _, end in spans_of(query.text)]
        query.found(query.text[: rng.choice(ends)] if ends else "")
