"""The grammar of Lezer, with which pages colour queries, reads what celc reads and nothing else."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import lezer
import pytest
from all_queries import queries_of_the_repository
from places import ROOT

from celc.diagnostics.errors import CelError, Diagnostics
from celc.diagnostics.source import Source
from celc.parse.parser import parse
from celc.parse.tokens import tokenize

TOLERATED = {
    # The grammar reads these, and the parser of celc refuses them when it builds the tree.
    "bare-attribute": "an attribute without a label has the form of a label",
    "bare-condition": "which values can be a condition is seen in the words before it",
    "call-arguments": "how many values PREV and others take",
    "empty-name": "a name of no letters between backquotes",
    "function-in-brackets": "functions of a label inside the brackets of a label",
    "label-in-brackets": "a label inside the brackets of a label",
    "label-renamed": "a renamed label, behind which a condition names the old one",
    "long-number": "how many digits a number has",
    "misplaced-first": "FIRST is read with any operand",
    "misplaced-for": "FOR is read with any operand",
    "misplaced-optional": "`?` is read with any operand",
    "misplaced-prior": "PRIOR is read in any argument",
    "misplaced-is": "a name behind IS is a type, which a value has not",
    "negation-at-end": "`!` is read with any operand",
    "negation-contiguous": "`!` is read between any two signs",
    "negation-twice": "`!` is read with any operand",
    "no-query": "a file of declarations alone has a form",
    "round-count": "which numbers of rounds there are",
    "too-deep": "how deep brackets are",
    "unknown-unit": "a window takes any word as its unit, so that an error can say which there are",
    "unnamed-query": "several queries need names",
    # The tokens differ.
    "bad-number": "a word directly behind a number begins a token of its own",
}
"""Texts that Lezer reads and celc refuses: the codes of their errors, and why."""

# After SELECT such a word can be a name as well. celc looks at the next word to decide; Lezer goes
# on with both, and keeps the one that fits: `SELECT STRICT * x` as a product.
AFTER_SELECT = re.compile(
    r"\bSELECT\s+(ANY|STRICT|NXT|NEXT|LAST|MAX|FIRST|LONGEST|DISJOINT|FLAT|TOTAL|COLLAPSED)\b",
    re.IGNORECASE,
)
OF_SELECT = {"unexpected", "unknown-clause", "selector-without-items"}


def test_the_scripts_are_made_of_the_grammar() -> None:
    head = f"Made by tools/lezer.py of {lezer.hash_of_parts()}."
    for path in lezer.SCRIPTS.values():
        assert head in path.read_text("utf-8")[:99], f"{path.name}: python tools/lezer.py"


def _texts() -> Iterator[str]:
    yield from (text for _, dialect, text in queries_of_the_repository() if dialect == "cel")
    for path in sorted((ROOT / "tests").rglob("*.cel")):
        try:
            yield path.read_text("utf-8").removeprefix("\ufeff")
        except UnicodeDecodeError:
            continue  # a case of a file that is no text


def _changed(texts: list[str], count: int) -> Iterator[str]:
    """Texts with a word left out, twice, or in the place of another."""
    chance = random.Random(2026)
    for _ in range(count):
        text = chance.choice(texts)
        source = Source("q.cel", text)
        words = [text[one.start : one.end] for one in tokenize(source, Diagnostics(source))]
        one, other = (chance.randrange(len(words)) for _ in "ab")
        put = chance.choice([[], [words[one]] * 2, [words[other]], [words[other], words[one]]])
        yield " ".join([*words[:one], *put, *words[one + 1 :]])


_REFUSED = """
import { readFileSync } from "fs"
import { parser } from "./cel.js"
const places = JSON.parse(readFileSync(0, "utf-8")).map(text => {
  let place = -1
  const enter = one => { if (one.type.isError && place < 0) place = one.from }
  parser.parse(text).iterate({ enter })
  return place
})
console.log(JSON.stringify(places))
"""


@pytest.mark.long
def test_lezer_reads_what_celc_reads(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("needs node and npm")
    for name, script in lezer.make(tmp_path).items():
        assert script == lezer.SCRIPTS[name].read_text("utf-8"), name
    (tmp_path / "refused.mjs").write_text(_REFUSED)
    texts = [*dict.fromkeys(_texts())]
    short = [text for text in texts if 0 < len(text) < 3000 and text.strip()]
    texts += _changed(short, 4000)
    done = subprocess.run(
        ["node", "refused.mjs"],
        input=json.dumps(texts),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    read = 0
    for text, place in zip(texts, json.loads(done.stdout), strict=True):
        try:
            parse(Source("q.cel", text))
        except CelError as problem:
            codes = {one.code for one in problem.diagnostics if one.severity == "error"}
            tolerated = TOLERATED.keys() | (OF_SELECT if AFTER_SELECT.search(text) else ())
            assert place >= 0 or codes <= tolerated, (codes, text)
        else:
            assert place < 0, (text[:place], text[place:])
            read += 1
    assert read > 2000
