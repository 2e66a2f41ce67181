"""Mistakes that people make, and what they read: every offered change mends the query.

Each line of tests/errors/mistakes/*.txt is `name|query text`, to be read after `declarations.cel`;
those of `declarations-*.txt` are whole files. The messages of all lines of a file stand in its
`.expected`. `people*.txt` and `declarations-2.txt` are mistakes that people made, the others those
that habits of other languages suggest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from places import TESTS
from shares import share

from celc.diagnostics.errors import CelError, Diagnostic, Fix, render_all
from celc.diagnostics.source import Source
from celc.driver.pipeline import Options, compile_source
from celc.parse.mistakes.tokens import offered

FOLDER = TESTS / "errors" / "mistakes"
DECLARATIONS = (FOLDER / "declarations.cel").read_text(encoding="utf-8")
FILES = sorted(FOLDER.glob("*.txt"))
# How many errors of the first lists may offer no change of the text. It must not rise: a new list
# has names, and a reason for each of them.
WITHOUT_CHANGE = 31
FIRST = {"people", "more"}

NO_WORD = "the language has no such function, so no other text says it"
SEVERAL = "it can mean several things, which the help names"
IN_DECLARATION = "the declaration has to say what was meant"
NO_COLUMNS = "nothing says which columns the table has"
NO_MEANING = "no text says what was meant: the value is compared with nothing"

WITHOUT_CHANGE_SINCE = {
    "e1 position as attribute": NO_WORD,
    "optional beside AND": SEVERAL,
    "length between two events, of a sequence": SEVERAL,
    "key of two attributes": SEVERAL,
    "list as a condition": NO_MEANING,
    "text of a set as a condition": NO_MEANING,
    "constant as a condition": NO_MEANING,
    "number compared with nobody's": "no event type has the attribute, so its label is not known",
    "type that nobody declares": "no declared type is like the text",
    "event name with a hyphen": "no such type is declared",
    "type like a text": SEVERAL,
    "stream as an attribute": "which event types the stream has is not said",
    "time as formatted text": SEVERAL,
    "zone beside a time": SEVERAL,
    "whole division": SEVERAL,
    **dict.fromkeys(("HAVING with a number of matches", "HAVING with a name of SELECT"), SEVERAL),
    **dict.fromkeys(("duration as a number", "times subtracted by a function"), SEVERAL),
    "week of EXTRACT": NO_WORD,
    **dict.fromkeys(
        ("average of a subquery", "subquery of EXISTS", "subquery behind FROM"), SEVERAL
    ),
    "next event by a function": SEVERAL,
    "is not NaN": SEVERAL,
    "one for each key": SEVERAL,
    "flat after a label": SEVERAL,
    "flat label of an attribute with a hyphen": SEVERAL,
    "texts in one": NO_WORD,
    "values of CASE with two types": NO_MEANING,
    "type in brackets": "the rest of the brackets stays where it is",
    "type as a key": IN_DECLARATION,
    "table without columns": NO_COLUMNS,
    "i1 none at all": NO_COLUMNS,
    "no stream at all": NO_COLUMNS,
}
"""The mistakes of the later lists that offer no change, and why each has none."""


@dataclass(frozen=True)
class Mistake:
    """A line of a file."""

    name: str
    query: str
    declared: str = DECLARATIONS

    @property
    def source(self) -> Source:
        return Source("query.cel", self.declared + self.query + "\n")


def mistakes(path: Path) -> list[Mistake]:
    lines = path.read_text(encoding="utf-8").splitlines()
    # Declarations stand alone.
    declared = "" if path.stem.startswith("declarations") else DECLARATIONS
    written = [line for line in lines if line and not line.startswith("#")]
    return [Mistake(*line.split("|", 1), declared) for line in written]


ALL = [mistake for path in FILES for mistake in mistakes(path)]
NAMES = [mistake.name for mistake in ALL]


def diagnostics_of(source: Source) -> tuple[Diagnostic, ...]:
    try:
        return compile_source(source, Options()).warnings
    except CelError as problem:
        return problem.diagnostics


def errors_of(source: Source) -> list[Diagnostic]:
    return [found for found in diagnostics_of(source) if found.severity == "error"]


def changed(text: str, fixes: Iterable[Fix]) -> str:
    """The text after changes that do not overlap."""
    for fix in sorted(fixes, key=lambda one: one.span, reverse=True):
        text = text[: fix.span.start] + fix.text + text[fix.span.end :]
    return text


def first_fixes(errors: Sequence[Diagnostic]) -> list[Fix]:
    """The likeliest change of each error, without those that overlap an earlier one."""
    chosen: list[Fix] = []
    for found in errors:
        if found.fixes and (not chosen or chosen[-1].span.end <= found.fixes[0].span.start):
            chosen.append(found.fixes[0])
    return chosen


def rendered(path: Path) -> str:
    parts = []
    for mistake in mistakes(path):
        shown = render_all(mistake.source, diagnostics_of(mistake.source)) or "fine"
        parts.append(f"=== {mistake.name}\n{mistake.query}\n\n{shown}\n")
    return "\n".join(parts)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_messages(path: Path, request: pytest.FixtureRequest) -> None:
    found, golden = rendered(path), path.with_suffix(".expected")
    if request.config.getoption("--update-golden"):
        golden.write_text(found, encoding="utf-8", newline="\n")
    assert golden.exists(), f"{golden.name} is missing: run pytest --update-golden and review it"
    assert found == golden.read_text(encoding="utf-8")


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)


# A stream that the queries do not read, whose event types must not be offered.
OTHER_STREAM = (
    "CREATE STREAM Other { EVENT Ping { host: STRING, at: DATE }, EVENT Pong { at: DATE } }\n"
)


def fully_mended(text: str) -> str:
    """The text after the likeliest change of every error, until none is left that offers one.

    The parser reports the first error of a statement only, so one change can uncover the next.
    """
    for _ in range(5):
        fixes = first_fixes(errors_of(Source("query.cel", text)))
        if not fixes:
            break
        text = changed(text, fixes)
    return text


_BESIDE = [one for one in ALL if "FROM Shop" in one.query and one.declared]


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("mistake", "before"),
    [(one, "") for one in ALL] + share(((one, OTHER_STREAM) for one in _BESIDE), 4),
    ids=NAMES + [f"{NAMES[ALL.index(one)]} beside another stream" for one in _BESIDE],
)
def test_every_offered_change_mends_the_query(mistake: Mistake, before: str) -> None:
    """Some beside another stream; the long run has the others."""
    text = before + mistake.source.text
    errors = errors_of(Source("query.cel", text))
    if len(errors) == 1:
        for fix in errors[0].fixes:
            mended = fully_mended(changed(text, [fix]))
            assert not errors_of(Source("query.cel", mended)), mended
            assert errors[0].code not in codes_near(changed(text, [fix]), fix), mended
    elif all(found.fixes for found in errors):
        mended = fully_mended(text)
        assert not errors_of(Source("query.cel", mended)), mended


def codes_near(text: str, fix: Fix) -> set[str]:
    """The codes of the errors that begin in the text of a change."""
    end = fix.span.start + len(fix.text)
    found = errors_of(Source("query.cel", text))
    return {one.code for one in found if fix.span.start <= one.span.start < end}


@pytest.mark.each(3)
@pytest.mark.parametrize("mistake", ALL, ids=NAMES)
def test_the_help_shows_every_offered_text(mistake: Mistake) -> None:
    for found in diagnostics_of(mistake.source):
        said = " ".join(" ".join((found.message, *found.help)).replace("'", "").split())
        for fix in found.fixes:
            words = " ".join(fix.text.replace("'", "").split())
            assert words in said or len(words) > 200 or not words, (fix.text, found.help)


def test_an_offered_text_is_what_was_written() -> None:
    """On one line, which a comment up to the end of its line would hide, with its texts as they
    are."""
    text = (
        "A -- one's\n  AS x\tFILTER\r\n x.`a  b` = 'it''s  --' /* isn't */ AND x.b = 'a\n' -- end"
    )
    assert offered(text) == (
        "A AS x FILTER x.`a  b` = 'it''s  --' /* isn't */ AND x.b = 'a\n' -- end"
    )


def test_every_mistake_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    every = [found for mistake in ALL for found in diagnostics_of(mistake.source)]
    helpless = [found for found in every if not found.help]
    errors = [found for found in every if found.severity == "error"]
    without = [found for found in errors if not found.fixes]
    with capsys.disabled():
        print(
            f"\n{len(every)} messages about {len(ALL)} mistakes: {len(helpless)} without help, "
            f"{len(without)} of {len(errors)} errors offer no change of the text"
        )
    assert not helpless


def unchanged(path: Path) -> list[str]:
    """The mistake of each error in a list that offers no change."""
    return [
        mistake.name
        for mistake in mistakes(path)
        for found in errors_of(mistake.source)
        if not found.fixes
    ]


def test_no_more_errors_offer_no_change() -> None:
    first = [name for path in FILES if path.stem in FIRST for name in unchanged(path)]
    assert len(first) <= WITHOUT_CHANGE


def test_later_errors_without_a_change_have_a_reason() -> None:
    since = {name for path in FILES if path.stem not in FIRST for name in unchanged(path)}
    assert since == {*WITHOUT_CHANGE_SINCE}
